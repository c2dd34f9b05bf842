"""Schedules, which divide a total epsilon among the steps of a run."""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

__all__ = ["Schedule", "additive", "exponential", "multiplicative", "rising", "uniform"]

Schedule = Callable[[float, int], np.ndarray]
"""A function from a total epsilon and a number of steps to the epsilon of each step."""


def uniform(total: float, steps: int) -> np.ndarray:
    """The same epsilon for every step.

    Examples
    --------
    >>> uniform(1.0, 4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    _check(total, steps)
    return np.full(steps, total / steps)


def additive(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow linearly, to almost twice the first one.

    Examples
    --------
    >>> additive(1.1, 2)
    array([0.44, 0.66])
    """
    return _in_all(total, 1 + np.arange(steps) / steps)


def exponential(total: float, steps: int) -> np.ndarray:
    """Epsilons that grow geometrically, to almost e times the first one.

    Examples
    --------
    >>> exponential(1.0, 2).round(3)
    array([0.378, 0.622])
    """
    return _in_all(total, np.exp(np.arange(steps) / steps))


def _check(total, steps):
    if not (0 < total < math.inf and steps >= 1):
        given = f"{total!r}, {steps!r}"
        raise ValueError(f"total must be positive and finite, steps 1 or more: {given}")


def _in_all(total, shape) -> np.ndarray:
    _check(total, len(shape))
    return shape / shape.sum() * total


def multiplicative(total: float, steps: int) -> np.ndarray:
    """CURATE's choice, e^(1 + k / steps) from a first epsilon e; it decreases if e is below 1.

    Notes
    -----
    Chapter 07, :prf:ref:`thm-schedules`.

    Examples
    --------
    >>> multiplicative(0.75, 2).round(3)
    array([0.449, 0.301])
    """
    _check(total, steps)
    exponents = 1 + np.arange(steps) / steps
    low, high = math.log(total) - math.log(steps), math.log(total)

    def excess(log_of_first):
        return float(logsumexp(log_of_first * exponents)) - high

    log_of_first = brentq(excess, min(0.0, low) - 1, max(0.0, high) + 1, xtol=1e-15)
    return _in_all(total, np.exp(log_of_first * (exponents - 1)))


def rising(total: float, steps: int) -> np.ndarray:
    """The epsilons of :func:`multiplicative` from the smallest to the largest.

    Examples
    --------
    >>> rising(0.75, 2).round(3)
    array([0.301, 0.449])
    """
    return np.sort(multiplicative(total, steps))
