"""The budget of a run, fixed before it starts, and a reserve for rounding."""

import math
import sys
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

import numpy as np

from dpcgd.datasets.arguments import as_doubles, check_whole, is_real

__all__ = ["Budget", "BudgetSpent", "Spent", "delta_for", "kept_for_rounding"]

LEAST, MOST = sys.float_info.min, sys.float_info.max
"""The smallest and largest positive numbers that doubles hold with all their digits."""

ROOM = 1e-9
"""Relative reserve for rounding: parts of a budget are smaller by this share, and noise is wider,
so rounding never overspends."""

LARGEST_EXPONENT = 709
"""The largest number with a finite exponential."""

USUAL_DELTA = 1e-6
"""The default delta of a run with up to 100,000 records."""

MOST_ROWS = 10**9
"""The most rows that one person may have; its square is still far below the largest double."""

MOST_RECORDS = 1 << 48
"""The most records of a table; their whole sums are still exact in doubles."""


class BudgetSpent(Exception):
    """A spend was refused: it would exceed the budget. No data was touched for it."""


class Spent(NamedTuple):
    """Used epsilon and delta, as an account reads them; the guarantee is the :class:`Budget`."""

    epsilon: float
    delta: float


def check_positive(name, value):
    exact = value.item() if isinstance(value, np.generic) else value  # single precision overflows
    if not (is_real(exact) and LEAST <= exact <= MOST):
        rule = f"a positive finite number, at least {LEAST:.3g}"
        raise ValueError(f"{name} must be {rule}, not {value!r}")


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
        Positive and finite, delta below 1; kept in double precision.
    rows_per_person : int
        Rows that one person may have, 1 to 1,000,000,000: a public bound.

    Raises
    ------
    ValueError
        If a number is out of these ranges, or `rows_per_person` is no whole number.

    Privacy
    -------
    The promise is made to a person. An account for this budget charges such a price for one row
    that all rows of a person together stay within the budget. Chapter 18,
    :prf:ref:`thm-rows-per-person`.

    Examples
    --------
    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    >>> Budget(1.0, 1e-6, rows_per_person=2)
    Budget(epsilon=1.0, delta=1e-06, rows_per_person=2)
    """

    epsilon: float
    delta: float
    rows_per_person: int = 1

    def __post_init__(self):
        check_positive("epsilon", self.epsilon)
        check_delta(self.delta)
        check_whole("rows_per_person", self.rows_per_person, 1)
        if self.rows_per_person > MOST_ROWS:
            raise ValueError(f"rows_per_person must be at most {MOST_ROWS:,}")
        as_doubles(self, ["epsilon", "delta"])
        object.__setattr__(self, "rows_per_person", int(self.rows_per_person))

    def __repr__(self):
        rows = f", rows_per_person={self.rows_per_person}" if self.rows_per_person > 1 else ""
        return f"Budget(epsilon={self.epsilon!r}, delta={self.delta!r}{rows})"


def delta_for(n: int, delta: float | None = None, allow_delta: bool = False) -> float:
    """The delta of a run on n records.

    Parameters
    ----------
    n : int
    delta : float, optional
        The smaller of 1e-6 and 1/(10 n) unless given.
    allow_delta : bool
        Whether delta may be 1/n or more.

    Raises
    ------
    ValueError
        If delta is unusable, or is 1/n or more and `allow_delta` is False: publishing a random
        person's record is (0, 1/n)-differentially private.

    Examples
    --------
    >>> delta_for(100_000), delta_for(1_000_000)
    (1e-06, 1e-07)
    >>> delta_for(1_000_000, 1e-6)
    Traceback (most recent call last):
    ...
    ValueError: delta = 1e-06 is not below 1/n = 1e-06: ...
    """
    if not isinstance(allow_delta, bool):
        raise ValueError(f"allow_delta must be True or False, not {allow_delta!r}")
    if delta is None:
        return min(USUAL_DELTA, 1 / (10 * max(n, 1)))
    check_delta(delta)
    if n and delta >= 1 / n and not allow_delta:
        cure = "choose delta well below 1/n, or set allow_delta=True"
        allowed = f"not below 1/n = {1 / n:g}: it allows publishing a random person's record"
        raise ValueError(f"delta = {delta:g} is {allowed}; {cure}")
    return delta


def kept_for_rounding(n: int) -> float:
    """Share of a budget that is kept for the rounding of statistics of n records.

    The rounding error of a value may be 4 n 2^-53 sensitivities. The values of both neighbours have
    one, and the cost grows with the square of their sum. Up to half a million records the reserve
    of every account is enough.

    Notes
    -----
    Interactions and clipped moments are sums of whole numbers, rounded once after adding up. This
    is proved to cost at most n 2^-50 (chapter 11, :prf:ref:`thm-pairs`). For test statistics the
    bound is not proved; the largest measured error is 3 n 2^-53 sensitivities (G, chapter 25).

    Examples
    --------
    >>> kept_for_rounding(500_000), kept_for_rounding(10**9)
    (0.0, 1.77...e-06)
    """
    if n > MOST_RECORDS:
        raise ValueError(f"{n:,} records are too many for exact sums; at most {MOST_RECORDS:,}")
    share = n * 2.0**-49
    return share if share > ROOM else 0.0


def growth(epsilon: float) -> float:
    """e^epsilon - 1, infinite if it is too large for a double."""
    return math.expm1(epsilon) if epsilon < LARGEST_EXPONENT else math.inf


def level_of_the_caller() -> int:
    """The stack level at which a warning points to the code that called dpcgd."""
    package, level = __name__.partition(".")[0], 1
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level
