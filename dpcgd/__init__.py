"""Differentially private causal graph discovery: a search, an oracle and a budget.

The stub beside this file lists the public names; each name is loaded when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
