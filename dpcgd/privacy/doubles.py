"""Where doubles end, and the room that is left for their rounding."""

import math
import sys

__all__ = ["LEAST", "MOST", "ROOM", "growth", "kept_for_rounding"]

LEAST, MOST = sys.float_info.min, sys.float_info.max
"""Ends of the positive numbers that doubles hold with all their digits."""

ROOM = 1e-9
"""Parts of a budget are taken smaller by this part of themselves, and noise wider, so that rounding
never spends more than there is."""

LARGEST_EXPONENT = 709
"""The exponential of a larger number is infinite."""


def kept_for_rounding(n: int) -> float:
    """Share of a budget that is kept for the rounding of statistics of n records.

    A value may be off by 4 n 2^-53 sensitivities. There are two, of neighbours, and the cost grows
    with the square. Up to half a million records the room that every account leaves is enough.

    Notes
    -----
    Interactions and clipped moments are sums of whole numbers, rounded once they are added up. That
    is proved to cost at most n 2^-50 (chapter 11, :prf:ref:`thm-pairs`). Of statistics of tests the
    bound is not proved; seen is an error of 3 n 2^-53 sensitivities (G, chapter 02).

    Examples
    --------
    >>> kept_for_rounding(500_000), kept_for_rounding(10**9)
    (0.0, 1.77...e-06)
    """
    share = n * 2.0**-49
    return share if share > ROOM else 0.0


def growth(epsilon: float) -> float:
    """e^epsilon - 1, infinite where it is too large a number."""
    return math.expm1(epsilon) if epsilon < LARGEST_EXPONENT else math.inf
