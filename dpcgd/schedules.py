"""Schedules: how a total epsilon is shared among the steps of a run."""

from collections.abc import Callable

import numpy as np

__all__ = ["Schedule", "additive", "exponential", "multiplicative", "rising", "uniform"]

Schedule = Callable[[float, int], np.ndarray]
"""From a total epsilon and a number of steps to the epsilon of each step."""


def uniform(total: float, steps: int) -> np.ndarray:
    """The same epsilon for every step.

    Examples
    --------
    >>> uniform(1.0, 4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(steps, total / steps)


def additive(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow linearly, to almost twice the first.

    Examples
    --------
    >>> additive(1.1, 2)
    array([0.44, 0.66])
    """
    return _in_all(total, 1 + np.arange(steps) / steps)


def exponential(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow geometrically, to almost e times the first.

    Examples
    --------
    >>> exponential(1.0, 2).round(3)
    array([0.378, 0.622])
    """
    return _in_all(total, np.exp(np.arange(steps) / steps))


def _in_all(total, shape) -> np.ndarray:
    return total * shape / shape.sum()


def multiplicative(total: float, steps: int) -> np.ndarray:
    """CURATE's choice, e^(1 + k / steps) from a first epsilon e: it falls where that is below 1.

    Examples
    --------
    >>> multiplicative(0.75, 2).round(3)
    array([0.449, 0.301])
    """
    from scipy.optimize import brentq  # heavy, and only needed here

    exponents = 1 + np.arange(steps) / steps
    low, high = min(1.0, total / steps), max(1.0, total)
    first = brentq(lambda e: (e**exponents).sum() - total, low, high, xtol=1e-300)
    return _in_all(total, first**exponents)


def rising(total: float, steps: int) -> np.ndarray:
    """The epsilons of :func:`multiplicative` from the smallest to the largest.

    Examples
    --------
    >>> rising(0.75, 2).round(3)
    array([0.301, 0.449])
    """
    return np.sort(multiplicative(total, steps))
