"""Bugs planted by hand as functions in place of the correct ones: each has to be noticed.

A wrong function is given the correct one, then its arguments. Who looks for it is as in
planted_bugs.py.
"""

import numpy as np
from planting import Swap

__all__ = ["BUGS"]

FOUND: list[Swap] = []


def bug(name: str, where: str, replayed: str = "", tests: str = ""):
    """Add a bug to the catalogue: the function below it."""

    def add(wrong):
        FOUND.append(Swap(name, where, wrong, replayed, tests))
        return wrong

    return add


# --- secure noise


@bug(
    "numpy's noise for large arrays",
    "dpcgd.privacy.noise:SecureNoise.gaussian",
    tests="privacy/test_mechanisms.py",
)
def _(right, self, value, scale):
    if np.size(value) > 1000:
        return value + np.random.default_rng().normal(scale=scale, size=np.shape(value))
    return right(self, value, scale)


BUGS = tuple(FOUND)
