"""Where doubles end, and the room that is left for their rounding."""

import math
import sys

__all__ = ["LEAST", "MOST", "ROOM", "growth"]

LEAST, MOST = sys.float_info.min, sys.float_info.max
"""Ends of the positive numbers that doubles hold with all their digits."""

ROOM = 1e-9
"""Parts of a budget are taken smaller by this part of themselves, and noise wider, so that rounding
never spends more than there is."""

LARGEST_EXPONENT = 709
"""The exponential of a larger number is infinite."""


def growth(epsilon: float) -> float:
    """e^epsilon - 1, infinite where it is too large a number."""
    return math.expm1(epsilon) if epsilon < LARGEST_EXPONENT else math.inf
