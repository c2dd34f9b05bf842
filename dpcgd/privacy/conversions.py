"""Conversions between zero-concentrated, Gaussian and (epsilon, delta) privacy."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from scipy.optimize import minimize_scalar
from scipy.special import erfcx, log_ndtr, ndtr

from dpcgd.privacy.budget import LEAST, MOST, ROOM, Budget, check_delta, check_positive
from dpcgd.privacy.events import BoundedRangeEvent, Event, GaussianEvent

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_multiplier", "multiplier_of_rho"]
__all__ += ["epsilon_of_rho", "rho_of_budget", "zcdp_rho"]
__all__ += ["pure_divergence", "renyi_limit", "renyi_order"]

LEAST_RHO, MOST_RHO = 1e-200, 1e300
"""The least rho that a filter accepts, for parts of it must still be doubles, and the most."""

STEEP = 1e4
"""Above this epsilon or noise multiplier, another formula keeps the digits of a Gaussian's
delta."""


def squared(value) -> float:
    """The square, infinite if it is too large for a double."""
    return value**2 if float(value) < 1e150 else float(value) * float(value)


def zcdp_rho(event: Event) -> float:
    """Zero-concentrated privacy cost of an event; for an approximate event, except with its delta.

    It is infinite or zero if it is too large or small for a double; a filter refuses both.

    Raises
    ------
    TypeError
        If the cost of the event is not known.
    ValueError
        If its parameter is not positive and finite.

    Notes
    -----
    epsilon^2 / 2 for a pure mechanism and 1 / (2 sigma^2) for a Gaussian one (Bun and Steinke
    2016), epsilon^2 / 8 for a bounded range (Cesar and Rogers 2021). Chapter 02,
    :prf:ref:`thm-range`, :prf:ref:`thm-gaussian` and :prf:ref:`thm-exponential`.

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> zcdp_rho(PureEvent("Laplace", 0.2))
    0.020000000000000004
    """
    if not isinstance(event, Event):
        raise TypeError(f"no cost is known for {event!r}; add its zCDP cost with a proof first")
    for name in event.parameters:
        check_positive(name, getattr(event, name))
    value = getattr(event, event.parameters[0])
    if isinstance(event, GaussianEvent):
        return 0.5 / value / value
    return squared(value) / (8 if isinstance(event, BoundedRangeEvent) else 2)


def multiplier_of_rho(rho: float) -> float:
    """Noise multiplier of a Gaussian mechanism that costs rho, or slightly less by rounding.

    Raises
    ------
    ValueError
        If rho is not positive and finite.

    Examples
    --------
    >>> round(multiplier_of_rho(0.02), 6)
    5.0
    """
    check_positive("rho", rho)
    return math.sqrt(0.5 / rho) * (1 + ROOM)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest known epsilon for which rho-zCDP implies (epsilon, delta)-differential privacy.

    Parameters
    ----------
    rho : float
        At least 0; infinite for no privacy.
    delta : float
        Above 0 and below 1.

    Raises
    ------
    ValueError
        If either is out of range.

    Notes
    -----
    Minimises over a > 1 the bound a rho + ln(1 - 1/a) - ln(a delta) / (a - 1) of Canonne, Kamath
    and Steinke (2020). Any a is valid, so a numerical error can only give a larger epsilon, never a
    false one. If the best a is 1 in double precision, the bound is rho + 2 sqrt(rho ln(1/delta)) of
    Bun and Steinke (2016). Chapter 02, :prf:ref:`thm-conversion`.

    Examples
    --------
    >>> round(epsilon_of_rho(0.02, 1e-6), 3)
    0.9
    """
    check_delta(delta)
    if not rho >= 0:
        raise ValueError(f"rho must be 0 or more, not {rho!r}")
    if rho == 0 or math.isinf(rho):
        return float(rho)
    if (best := _best(rho, delta)) is None:
        return rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))
    return max(0.0, float(best.fun))


def _best(rho: float, delta: float) -> Any:
    """The best logarithm of a - 1, and its bound; None if the best a is 1 in double precision."""

    def bound(log_excess):
        return _converted(1 + math.exp(log_excess), rho, delta)

    guess = 0.5 * math.log(min(max(-math.log(delta) / rho, LEAST), MOST))
    bounds, options = (guess - 8, guess + 8), {"xatol": 1e-10}
    if guess < -25:
        return None
    return minimize_scalar(bound, bounds=bounds, method="bounded", options=options)


def _converted(a: float, rho: float, delta: float) -> float:
    """The epsilon that a Renyi divergence of a rho at order a implies."""
    return a * rho + math.log1p(-1 / a) - math.log(a * delta) / (a - 1)


def renyi_order(budget: Budget) -> float:
    """The order at which a zCDP filter's whole rho converts to the budget.

    Raises
    ------
    ValueError
        If the budget is so large or small that doubles hold no such order.

    Examples
    --------
    >>> round(renyi_order(Budget(1.0, 1e-6)), 1)
    22.0
    """
    rho = rho_of_budget(replace(budget, rows_per_person=1))
    best = _best(rho, budget.delta) if rho >= LEAST_RHO else None
    order = 1 + math.exp(best.x) if best else 1.0
    if not (order > 1.001 and renyi_limit(order, budget) > 0):
        raise ValueError(f"{budget!r} is too large or too small to add up divergences")
    return order


def renyi_limit(order: float, budget: Budget) -> float:
    """The Renyi divergence of an order, above 1, that implies the budget."""
    return budget.epsilon - _converted(order, 0.0, budget.delta)


def pure_divergence(order: float, epsilon: float) -> float:
    """The largest Renyi divergence of an order that an (epsilon, 0)-private mechanism can have.

    Notes
    -----
    Randomised response has the largest divergence, because every pure mechanism is post-processing
    of it (Kairouz, Oh and Viswanath 2015): ln((e^(a epsilon) + e^((1 - a) epsilon)) / (1 +
    e^epsilon)) / (a - 1). It is at most a epsilon^2 / 2 (Bun and Steinke 2016), which keeps its
    digits if epsilon is small.

    Examples
    --------
    >>> round(pure_divergence(2.0, 1.0), 4), pure_divergence(1e9, 1.0) <= 1.0
    (0.7353, True)
    """
    ratio = math.log1p(math.exp((1 - 2 * order) * epsilon)) - math.log1p(math.exp(-epsilon))
    return min(epsilon + ratio / (order - 1) + 1e-12, epsilon, order * squared(epsilon) / 2)


@cache
def rho_of_budget(budget: Budget) -> float:
    """Largest rho whose conversion stays within the budget; 0 if it is too small for doubles.

    This rho is for one row: the k rows of a person cost k^2 times as much.

    Examples
    --------
    >>> rho = rho_of_budget(Budget(1.0, 1e-6))
    >>> round(rho, 4), epsilon_of_rho(rho, 1e-6) <= 1.0
    (0.0244, True)
    >>> rho_of_budget(Budget(1.0, 1e-6, rows_per_person=2)) == rho / 4
    True
    """
    high = budget.epsilon + math.sqrt(budget.epsilon) + 1
    low, _ = turning_point(lambda rho: epsilon_of_rho(rho, budget.delta) <= budget.epsilon, high)
    return low * (1 - ROOM) / budget.rows_per_person**2


def turning_point(holds: Callable[[float], bool], high: float) -> tuple[float, float]:
    """The last number in [0, high] at which a condition holds, and the first at which it fails."""
    low = 0.0
    while high - low > 1e-12 * high:
        middle = low / 2 + high / 2
        is_last = not low < middle < high  # the numbers between are too small
        low, high = (middle, high) if holds(middle) else (low, middle)
        if is_last:
            break
    return low, high


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Smallest delta for which one Gaussian mechanism is (epsilon, delta)-private, exactly.

    Parameters
    ----------
    noise_multiplier : float
        Positive and finite.
    epsilon : float
        It may be negative, such as the rest of an epsilon after another mechanism (chapter 07).

    Returns
    -------
    float
        Between 0 and 1; 0 if it is too small for a double.

    Raises
    ------
    ValueError
        If either is out of range.

    Notes
    -----
    Phi(1/(2 s) - epsilon s) - e^epsilon Phi(-1/(2 s) - epsilon s) with s the deviation over the
    sensitivity (Balle and Wang 2018, theorem 8). Chapter 02, :prf:ref:`thm-gaussian`.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    check_positive("noise_multiplier", noise_multiplier)
    if math.isnan(epsilon):
        raise ValueError(f"epsilon must be a number, not {epsilon!r}")
    if epsilon < 0:  # the two neighbours change places
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(noise_multiplier, -epsilon)
    half, shift = 0.5 / noise_multiplier, float(epsilon) * float(noise_multiplier)
    first = log_ndtr(half - shift)
    if first < -745:  # delta is at most its exponential
        return 0.0
    if max(noise_multiplier, epsilon) > STEEP:
        return _steep_delta(half, shift)
    # as a product, for the difference of two nearly equal numbers would lose its digits
    return math.exp(first) * -math.expm1(epsilon + log_ndtr(-half - shift) - first)


def _steep_delta(half: float, shift: float) -> float:
    """The delta of a Gaussian mechanism, without a difference of exponents that loses digits.

    With Mills' ratio R(x) = Phi(-x) / phi(x), delta is phi(shift - half) times R(shift - half) -
    R(shift + half). R falls and is convex, and so is its slope 1 - x R(x): between two near points
    R falls by at most their distance times the mean of the slopes there.
    """

    def ratio(x):
        return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))

    near, far = shift - half, shift + half
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    if half < 0.5 / STEEP:
        return density * half * math.fsum(max(0.0, 1 - x * ratio(x)) for x in (near, far))
    return max(0.0, float(ndtr(-near)) - density * ratio(far))


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Smallest epsilon for which a Gaussian mechanism is (epsilon, delta)-private, or infinity."""
    return _first_enough(lambda epsilon: gaussian_delta(noise_multiplier, epsilon) > delta)


def _first_enough(too_little: Callable[[float], bool]) -> float:
    """The first number that is large enough."""
    high = 1.0
    while too_little(high):
        high *= 2
    return turning_point(too_little, high)[1]


def gaussian_multiplier(budget: Budget) -> float:
    """Smallest noise multiplier for which one Gaussian mechanism stays within the budget.

    This multiplier is for one row: the k rows of a person move an answer by up to k times as much.

    Notes
    -----
    A run of several mechanisms needs a :class:`~dpcgd.privacy.filters.Filter` instead.

    Examples
    --------
    >>> round(gaussian_multiplier(Budget(1.0, 1e-6)), 3)
    4.225
    """
    least = _first_enough(lambda m: gaussian_delta(m, budget.epsilon) > budget.delta)
    return least * budget.rows_per_person
