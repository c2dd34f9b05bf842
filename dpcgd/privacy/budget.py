"""The budget of a run: (epsilon, delta), fixed before it starts."""

import math
import sys
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from dpcgd.datasets.arguments import is_real
from dpcgd.privacy.doubles import LEAST, MOST

__all__ = ["Budget", "BudgetSpent", "Spent"]


class BudgetSpent(Exception):
    """A spend was refused: it would exceed the budget. No data was touched for it."""


class Spent(NamedTuple):
    """What has been used, read off by an account; the :class:`Budget` is the guarantee."""

    epsilon: float
    delta: float


def check_positive(name, value):
    try:
        number = float(value) if is_real(value) else math.nan
    except OverflowError:  # a whole number beyond doubles
        number = math.inf
    if not LEAST <= number <= MOST:
        tiny = f" (at least {LEAST:.3g})" if 0 < number < LEAST else ""
        raise ValueError(f"{name} must be a positive finite number{tiny}, not {value!r}")


def check_delta(delta):
    check_positive("delta", delta)
    if delta >= 1:
        raise ValueError(f"delta must be below 1 (1e-6 is usual), not {delta!r}")


@dataclass(frozen=True)
class Budget:
    """The guarantee that is fixed before a run.

    Parameters
    ----------
    epsilon, delta : float
        Positive and finite, delta below 1.

    Raises
    ------
    ValueError
        Otherwise.

    Examples
    --------
    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)
        check_delta(self.delta)

    def warn_if_weak(self, n: int):
        """Warn where delta is so large that publishing a few records outright would satisfy it."""
        if self.delta >= 1 / n:
            warnings.warn(
                f"delta = {self.delta:g} is not below 1/n = {1 / n:g}: such a guarantee allows "
                "publishing a random person's record; choose delta well below 1/n",
                stacklevel=_level_of_the_caller(),  # who chose delta
            )


def _level_of_the_caller() -> int:
    """Where a warning given by this function's caller points outside of the package."""
    package, level = __name__.partition(".")[0], 1
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level
