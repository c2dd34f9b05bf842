"""Differentially private causal graph discovery: a search, an oracle and a budget.

The public names stand in the stub beside this file; each is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
