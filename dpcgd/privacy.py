"""What is spent: budgets, the zCDP filter that refuses in time, and the ledger that shows it."""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from numbers import Real
from typing import ClassVar, NamedTuple

__all__ = [
    "ApproximateEvent",
    "BasicFilter",
    "BoundedRangeEvent",
    "Budget",
    "BudgetSpent",
    "Event",
    "Filter",
    "GaussianEvent",
    "GaussianFilter",
    "Ledger",
    "Neighbours",
    "Odometer",
    "PureEvent",
    "Spent",
    "advanced_composition",
    "epsilon_of_rho",
    "gaussian_delta",
    "gaussian_multiplier",
    "multiplier_of_rho",
    "rho_of_budget",
    "zcdp_rho",
]


LEAST, MOST = sys.float_info.min, sys.float_info.max
"""Ends of the positive numbers that doubles hold with all their digits."""

LEAST_RHO, MOST_RHO = 1e-200, 1e300
"""A filter is not opened for less, and pays out no more: parts of it must be numbers too."""

STEEP = 1e4
"""Above it, an epsilon or a noise multiplier takes a form of the Gaussian's delta that keeps its
digits there."""


class BudgetSpent(Exception):
    """A spend was refused: it would exceed the budget. No data was touched for it."""


class Neighbours(Enum):
    """When two data sets count as differing in one person."""

    REPLACE_ONE = "replace one record"
    ADD_OR_REMOVE_ONE = "add or remove one record"


class Spent(NamedTuple):
    """A guarantee in the (epsilon, delta) sense."""

    epsilon: float
    delta: float


def _check_positive(name, value):
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # a whole number beyond doubles
        number = math.inf
    if not LEAST <= number <= MOST:
        tiny = f" (at least {LEAST:.3g})" if 0 < number < LEAST else ""
        raise ValueError(f"{name} must be a positive finite number{tiny}, not {value!r}")


def _check_delta(delta):
    _check_positive("delta", delta)
    if delta >= 1:
        raise ValueError(f"delta must be below 1 (1e-6 is usual), not {delta!r}")


def _squared(value) -> float:
    """Infinite, and no error, where it is too large a number."""
    return value**2 if float(value) < 1e150 else float(value) * float(value)


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
        _check_positive("epsilon", self.epsilon)
        _check_delta(self.delta)

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
    package, frame, level = __name__.partition(".")[0], sys._getframe(1), 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


@dataclass(frozen=True)
class PureEvent:
    """A mechanism that was (epsilon, 0)-differentially private ran."""

    mechanism: str
    epsilon: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    parameters: ClassVar[tuple[str, ...]] = ("epsilon",)


@dataclass(frozen=True)
class BoundedRangeEvent:
    """A mechanism whose privacy loss has a range of at most epsilon ran, as the exponential one."""

    mechanism: str
    epsilon: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    parameters: ClassVar[tuple[str, ...]] = ("epsilon",)


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise ran; `noise_multiplier` is its deviation over the L2 sensitivity."""

    mechanism: str
    noise_multiplier: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    parameters: ClassVar[tuple[str, ...]] = ("noise_multiplier",)


@dataclass(frozen=True)
class ApproximateEvent:
    """A mechanism that was (epsilon, 0)-private but for events of probability delta ran."""

    mechanism: str
    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    parameters: ClassVar[tuple[str, ...]] = ("epsilon", "delta")


Event = PureEvent | BoundedRangeEvent | GaussianEvent | ApproximateEvent


def zcdp_rho(event: Event) -> float:
    """Zero-concentrated privacy cost of an event; for an approximate one, but for its delta.

    It is infinite, or zero, where doubles hold no such number. A filter refuses both.

    Raises
    ------
    TypeError
        For an event whose cost is not known: it is refused, not guessed.
    ValueError
        If its parameter is not positive and finite.

    Notes
    -----
    epsilon^2 / 2 for a pure mechanism and 1 / (2 sigma^2) for a Gaussian one (Bun and Steinke
    2016), epsilon^2 / 8 for a bounded range (Cesar and Rogers 2021). Chapter 02.

    Examples
    --------
    >>> zcdp_rho(PureEvent("Laplace", 0.2))
    0.020000000000000004
    """
    if not isinstance(event, Event):
        raise TypeError(f"no cost is known for {event!r}; add its zCDP cost with a proof first")
    for name in event.parameters:
        _check_positive(name, getattr(event, name))
    value = getattr(event, event.parameters[0])
    if isinstance(event, GaussianEvent):
        return 0.5 / value / value
    return _squared(value) / (8 if isinstance(event, BoundedRangeEvent) else 2)


def multiplier_of_rho(rho: float) -> float:
    """Noise multiplier of a Gaussian mechanism that costs a rho, or just less, for rounding.

    Raises
    ------
    ValueError
        If rho is not positive and finite.

    Examples
    --------
    >>> round(multiplier_of_rho(0.02), 6)
    5.0
    """
    _check_positive("rho", rho)
    return math.sqrt(0.5 / rho) * (1 + 1e-9)


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
    and Steinke (2020). Any a is valid, so numerical error can only lose, never overclaim. Where the
    best a is 1 in double precision, rho + 2 sqrt(rho ln(1/delta)) of Bun and Steinke (2016).

    Examples
    --------
    >>> round(epsilon_of_rho(0.02, 1e-6), 3)
    0.9
    """
    from scipy.optimize import minimize_scalar  # heavy, and only needed here

    _check_delta(delta)
    if not rho >= 0:
        raise ValueError(f"rho must be 0 or more, not {rho!r}")
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf

    def bound(log_excess):
        a = 1 + math.exp(log_excess)
        return a * rho + math.log1p(-1 / a) - math.log(a * delta) / (a - 1)

    guess = 0.5 * math.log(min(max(-math.log(delta) / rho, LEAST), MOST))
    if guess < -25:
        return rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))
    best = minimize_scalar(
        bound, bounds=(guess - 8, guess + 8), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, float(best.fun))


@cache
def rho_of_budget(budget: Budget) -> float:
    """Largest rho whose conversion stays within the budget; 0 where that is too small a number.

    Examples
    --------
    >>> rho = rho_of_budget(Budget(1.0, 1e-6))
    >>> round(rho, 4), epsilon_of_rho(rho, 1e-6) <= 1.0
    (0.0244, True)
    """
    low, _ = _turning_point(
        lambda rho: epsilon_of_rho(rho, budget.delta) <= budget.epsilon,
        budget.epsilon + math.sqrt(budget.epsilon) + 1,
    )
    return low * (1 - 1e-9)


def _turning_point(holds: Callable[[float], bool], high: float) -> tuple[float, float]:
    """The last number at which a condition holds, and the first at which it fails; 0 to `high`."""
    low = 0.0
    while high - low > 1e-12 * high:
        middle = low / 2 + high / 2
        last = not low < middle < high  # the numbers between are too small
        if holds(middle):
            low = middle
        else:
            high = middle
        if last:
            break
    return low, high


def gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Smallest delta for which one Gaussian mechanism is (epsilon, delta)-private, exactly.

    Parameters
    ----------
    noise_multiplier : float
        Positive and finite.
    epsilon : float
        Also a negative one, as what is left of it once another mechanism has run (chapter 07).

    Returns
    -------
    float
        Between 0 and 1; 0 where it is too small a number.

    Raises
    ------
    ValueError
        If either is out of range.

    Notes
    -----
    Phi(1/(2 s) - epsilon s) - e^epsilon Phi(-1/(2 s) - epsilon s) with s the deviation over the
    sensitivity (Balle and Wang 2018, theorem 8). Chapter 02.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    from scipy.special import log_ndtr  # heavy, and only needed here

    _check_positive("noise_multiplier", noise_multiplier)
    if math.isnan(epsilon):
        raise ValueError(f"epsilon must be a number, not {epsilon!r}")
    if epsilon < 0:  # the two neighbours change places
        rest = gaussian_delta(noise_multiplier, -epsilon)
        return -math.expm1(epsilon) + math.exp(epsilon) * rest
    half, shift = 0.5 / noise_multiplier, float(epsilon) * float(noise_multiplier)
    first = log_ndtr(half - shift)
    if first < -745:  # delta is at most its exponential
        return 0.0
    if max(noise_multiplier, epsilon) > STEEP:
        return _steep_delta(half, shift)
    # as a product, for the difference of two nearly equal numbers would lose its digits
    return math.exp(first) * -math.expm1(epsilon + log_ndtr(-half - shift) - first)


def _steep_delta(half: float, shift: float) -> float:
    """The same without a difference of exponents that loses its digits.

    With Mills' ratio R(x) = Phi(-x) / phi(x), delta is phi(shift - half) times R(shift - half) -
    R(shift + half). R falls and is convex, and so is its slope 1 - x R(x): between two near points
    R falls by at most their distance times the mean of the slopes there.
    """
    from scipy.special import erfcx, ndtr

    def ratio(x):
        return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))

    near, far = shift - half, shift + half
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    if half < 0.5 / STEEP:
        slopes = (max(0.0, 1 - x * ratio(x)) for x in (near, far))
        return density * half * math.fsum(slopes)
    return max(0.0, float(ndtr(-near)) - density * ratio(far))


def _gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Smallest epsilon for which one Gaussian mechanism is (epsilon, delta)-private, if finite."""

    def too_little(epsilon):
        return gaussian_delta(noise_multiplier, epsilon) > delta

    high = 1.0
    while too_little(high):
        high *= 2
    return _turning_point(too_little, high)[1]


def gaussian_multiplier(budget: Budget) -> float:
    """Smallest noise multiplier for which one Gaussian mechanism stays within the budget.

    Notes
    -----
    A run that goes on needs a :class:`Filter` instead, which pays for all of its mechanisms.

    Examples
    --------
    >>> round(gaussian_multiplier(Budget(1.0, 1e-6)), 3)
    4.225
    """

    def too_little(multiplier):
        return gaussian_delta(multiplier, budget.epsilon) > budget.delta

    high = 1.0
    while too_little(high):
        high *= 2
    return _turning_point(too_little, high)[1]


@dataclass(frozen=True)
class Ledger:
    """What ran, in order, and what it cost.

    Attributes
    ----------
    events : tuple
        Each mechanism that ran.
    spent : Spent
        The total, ``(epsilon, delta)``.
    budget : Budget or None
        What was allowed; None where nothing was enforced.
    accountant : str
        How the total was reached.
    """

    COLUMNS: ClassVar = ("mechanism", "times", "each", "rho in all")

    events: tuple[Event, ...]
    spent: Spent
    budget: Budget | None
    accountant: str

    def to_frame(self):
        """The ledger as a pandas table, one row for each kind of mechanism."""
        import pandas as pd  # heavy, and only needed here

        return pd.DataFrame(self._rows(), columns=self.COLUMNS)

    def _rows(self):
        """(mechanism, times, price range, rho in all) of each kind of mechanism, in order."""
        kinds = {}
        for event in self.events:
            kinds.setdefault((event.mechanism, type(event)), []).append(event)
        return [
            (name, len(events), _prices(events), _in_all(map(zcdp_rho, events)))
            for (name, _), events in kinds.items()
        ]

    def __str__(self):
        lines = ["{:<18}{:>6}  {:<34}{:>11}".format(*self.COLUMNS)]
        lines += ["{:<18}{:>6}  {:<34}{:>11.6f}".format(*row) for row in self._rows()]
        allowed = f" of {self.budget.epsilon:g}" if self.budget else ""
        lines.append(
            f"spent epsilon = {self.spent.epsilon:.4g}{allowed} at delta = {self.spent.delta:g} "
            f"({self.accountant})"
        )
        return "\n".join(lines)


def _in_all(costs) -> float:
    """Their sum; infinite where it is too large a number."""
    try:
        return math.fsum(costs)
    except OverflowError:
        return math.inf


def _prices(events) -> str:
    """What each of these events cost, as the parameters they were run with."""
    shown = []
    for name in events[0].parameters:
        values = [getattr(event, name) for event in events]
        low, high = f"{min(values):.4g}", f"{max(values):.4g}"
        shown.append(f"{name.replace('_', ' ')} = {low}" + ("" if low == high else f" to {high}"))
    return ", ".join(shown)


class Filter:
    """Lets an adaptive run spend until its budget is gone, and not a bit more.

    Parameters
    ----------
    budget : Budget
    neighbours : Neighbours
        Events proved for another relation are refused.
    reserved : float
        Part of delta kept for the deltas of approximate events; without it they are refused.

    Raises
    ------
    ValueError
        If the part reserved is not below delta, or the budget is too small for double precision.

    Privacy
    -------
    Whatever is run through the filter, chosen however adaptively, is (epsilon, delta)-private in
    all: concentrated costs add up and are compared with the largest rho that converts to the
    budget (Feldman and Zrnic 2021; Whitehouse et al. 2023). Chapter 02.

    Examples
    --------
    >>> account = Filter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.2))
    >>> account.spend(PureEvent("Laplace", 0.2))
    Traceback (most recent call last):
    ...
    dpcgd.privacy.BudgetSpent: Laplace with epsilon = 0.2 would exceed epsilon = 1, delta = 1e-06
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Laplace                1  epsilon = 0.2                        0.020000
    spent epsilon = 0.8999 of 1 at delta = 1e-06 (zCDP filter, replace one record)
    """

    KIND: ClassVar = "zCDP"
    proved: ClassVar = True
    """Whether what it allows is a theorem; a release says so."""

    def __init__(
        self,
        budget: Budget,
        *,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        reserved: float = 0.0,
    ):
        if not 0 <= reserved < budget.delta * (1 - 1e-8):
            raise ValueError(f"reserved must be at least 0 and below delta, not {reserved!r}")
        self.budget = budget
        self.neighbours = neighbours
        self.reserved = reserved * (1 + 1e-9)  # so that parts that round up still fit in
        self.rho = min(self._largest_rho(), MOST_RHO)
        if self.rho < LEAST_RHO:
            raise ValueError(
                f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g} is too small a budget to "
                "be split up in double precision; take a larger epsilon or delta"
            )
        self._events = []
        self._spent = self._failing = 0.0

    @property
    def _concentrated(self) -> Budget:
        return Budget(self.budget.epsilon, self.budget.delta - self.reserved)

    def _largest_rho(self) -> float:
        return rho_of_budget(self._concentrated)

    @property
    def remaining(self) -> float:
        """The rho that is left."""
        return self.rho - self._spent

    def share(self, part: float) -> float:
        """A part of the rho that is left, for a price that may depend on it.

        Raises
        ------
        BudgetSpent
            If nothing is left, or so little that the part is too small a number.
        """
        price = self.remaining * part
        if not price >= LEAST:
            raise BudgetSpent("nothing is left to share out")
        return price

    def spend(self, *events: Event):
        """Pay for events that are about to run, for all of them or for none.

        Raises
        ------
        BudgetSpent
            If they would exceed the budget; nothing is charged then.
        ValueError
            If an event was proved for other neighbours.
        """
        total, failing = self._spent, self._failing
        for event in events:
            # rounding never in our favour
            total = math.nextafter(total + self._cost(event), math.inf)
            failing += _failure(event)
            if failing > self.reserved:
                raise BudgetSpent(
                    f"{event.mechanism} with delta = {event.delta:g} would exceed the part of delta"
                    f" that is kept for such events, {self.reserved:g}; see Filter(reserved=...)"
                )
            if total > self.rho:
                raise BudgetSpent(
                    f"{event.mechanism} with {_prices([event])} would exceed "
                    f"epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}"
                )
        self._events.extend(events)
        self._spent, self._failing = total, failing

    def _cost(self, event: Event) -> float:
        cost = zcdp_rho(event)
        if event.neighbours is not self.neighbours:
            raise ValueError(
                f"{event.mechanism} is proved for neighbours that {event.neighbours.value}, this "
                f"run promises {self.neighbours.value}; use its sensitivity for the latter"
            )
        if not cost > 0:
            raise ValueError(f"{event.mechanism} must cost more than nothing")
        return cost

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far."""
        spent = Spent(self._epsilon, self.budget.delta) if self._events else Spent(0.0, 0.0)
        accountant = f"{self.KIND} filter, {self.neighbours.value}"
        return Ledger(tuple(self._events), spent, self.budget, accountant)

    @property
    def _epsilon(self) -> float:
        """Of what has been spent."""
        return epsilon_of_rho(self._spent, self._concentrated.delta)


class GaussianFilter(Filter):
    """A filter for Gaussian noise alone, which it counts without loss.

    It allows more than a zCDP :class:`Filter`: at (1, 1e-6) 15% more rho. Parameters are the same.

    Privacy
    -------
    Whatever Gaussian mechanisms run through it, chosen however adaptively, satisfy every (epsilon,
    delta) that one Gaussian mechanism of their rho in all satisfies (Smith and Thakurta 2022).
    Chapter 02.

    Examples
    --------
    >>> account = GaussianFilter(Budget(1.0, 1e-6))
    >>> round(account.rho / Filter(account.budget).rho, 2)
    1.15
    >>> account.spend(GaussianEvent("Gaussian", 5.0))
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Gaussian               1  noise multiplier = 5                 0.020000
    spent epsilon = 0.8341 of 1 at delta = 1e-06 (Gaussian filter, replace one record)
    >>> account.spend(PureEvent("Laplace", 0.01))
    Traceback (most recent call last):
    ...
    TypeError: this filter counts Gaussian noise only, not Laplace; use a zCDP Filter
    """

    KIND = "Gaussian"

    def _largest_rho(self) -> float:
        # for rounding, and for noise from a grid as fine as that of double precision
        return 0.5 / _squared(gaussian_multiplier(self._concentrated)) * (1 - 1e-9)

    def _cost(self, event: Event) -> float:
        cost = super()._cost(event)
        if not isinstance(event, GaussianEvent):
            raise TypeError(
                f"this filter counts Gaussian noise only, not {event.mechanism}; use a zCDP Filter"
            )
        return cost

    @property
    def _epsilon(self) -> float:
        spent = max(self._spent, LEAST)
        return _gaussian_epsilon(math.sqrt(0.5 / spent), self._concentrated.delta)


class BasicFilter:
    """Lets a run spend until the sum of its epsilons or deltas is gone: basic composition.

    For few mechanisms this promises less than a zCDP :class:`Filter`: two pure ones
    may have epsilon / 2 each.

    Parameters
    ----------
    budget : Budget

    Privacy
    -------
    Whatever is run through it, chosen however adaptively, is (epsilon, delta)-private in all
    (Dwork et al. 2006; Rogers et al. 2016 for adaptive prices).

    Examples
    --------
    >>> account = BasicFilter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.5))
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Laplace                1  epsilon = 0.5                        0.125000
    spent epsilon = 0.5 of 1 at delta = 0 (sum of epsilons, replace one record)
    >>> account.spend(PureEvent("Laplace", 0.6))
    Traceback (most recent call last):
    ...
    dpcgd.privacy.BudgetSpent: Laplace with epsilon = 0.6 would exceed epsilon = 1, delta = 1e-06
    """

    proved: ClassVar = True

    def __init__(self, budget: Budget):
        self.budget = budget
        self._events = []
        self._spent = Spent(0.0, 0.0)

    def spend(self, *events: Event):
        """Pay for events that are about to run, for all of them or for none.

        Raises
        ------
        BudgetSpent
            If they would exceed the budget; nothing is charged then.
        TypeError, ValueError
            If an event has no (epsilon, delta), or was proved for other neighbours.
        """
        epsilon, delta = self._spent
        for event in events:
            if not isinstance(event, PureEvent | BoundedRangeEvent | ApproximateEvent):
                raise TypeError(f"{event!r} has no epsilon to add up; use a zCDP Filter")
            if event.neighbours is not Neighbours.REPLACE_ONE:
                raise ValueError(f"{event.mechanism} is proved for other neighbours")
            if not event.epsilon > 0:
                raise ValueError(f"{event.mechanism} must cost more than nothing")
            if not _failure(event) >= 0:
                raise ValueError(f"{event.mechanism} must have a delta of 0 or more")
            # rounding never in our favour
            epsilon = math.nextafter(epsilon + event.epsilon, math.inf)
            delta += _failure(event)
            if not (epsilon <= self.budget.epsilon and delta <= self.budget.delta):
                raise BudgetSpent(
                    f"{event.mechanism} with epsilon = {event.epsilon:.4g} would exceed "
                    f"epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}"
                )
        self._events.extend(events)
        self._spent = Spent(epsilon, delta)

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far."""
        accountant = f"sum of epsilons, {Neighbours.REPLACE_ONE.value}"
        return Ledger(tuple(self._events), self._spent, self.budget, accountant)


def _failure(event: Event) -> float:
    """The probability that an event's guarantee may fail."""
    return event.delta if isinstance(event, ApproximateEvent) else 0.0


def advanced_composition(epsilon: float, times: int, delta: float) -> float:
    """Epsilon of `times` runs of a pure mechanism by advanced composition.

    It is infinite where it is too large a number.

    Notes
    -----
    sqrt(2 k ln(1/delta)) epsilon + k epsilon (e^epsilon - 1), Dwork and Roth (2014), theorem 3.20.

    Examples
    --------
    >>> round(advanced_composition(0.1, 100, 1e-6), 2)
    6.31
    """
    if times == 0:
        return 0.0
    spread = math.sqrt(2 * times * _logarithm_of_inverse(delta)) * epsilon
    return spread + times * epsilon * _growth(epsilon)


def _logarithm_of_inverse(delta) -> float:
    """ln(1 / delta), infinite for a delta that is too small a number."""
    return math.log(1 / delta) if delta >= LEAST else math.inf


def _growth(epsilon) -> float:
    """e^epsilon - 1, infinite where it is too large a number."""
    return math.expm1(epsilon) if epsilon < 709 else math.inf


class Odometer:
    """Never refuses; reads off afterwards what a run has cost, as the papers report it.

    The reading is not a guarantee: how much was spent depends on the data. A last above-threshold
    that has not fired is left out, as in the papers, although it ran too.

    Parameters
    ----------
    delta : float
        Split evenly over the kinds of mechanism.

    Raises
    ------
    ValueError
        If delta is not above 0 and below 1.
    """

    proved: ClassVar = False

    def __init__(self, delta: float):
        _check_delta(delta)
        self.delta = delta
        self._events = []

    def spend(self, *events: Event):
        """Note events."""
        self._events.extend(events)

    @property
    def ledger(self) -> Ledger:
        """What has been noted so far."""
        counts = Counter(self._charged())
        kinds = max(1, len(counts))
        epsilon = sum(
            advanced_composition(event.epsilon, times, self.delta / kinds)
            for event, times in counts.items()
        )
        accountant = "odometer, advanced composition: claimed, not proved"
        return Ledger(tuple(self._events), Spent(epsilon, self.delta), None, accountant)

    def _charged(self) -> Sequence[PureEvent]:
        unfinished = self._events and self._events[-1].mechanism == "above threshold"
        return self._events[:-1] if unfinished else self._events
