"""What is spent: budgets, the zCDP filter that refuses in time, and the ledger that shows it."""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from numbers import Real
from typing import ClassVar, NamedTuple

__all__ = [
    "Budget",
    "BudgetSpent",
    "Filter",
    "GaussianEvent",
    "Ledger",
    "Neighbours",
    "Odometer",
    "PureEvent",
    "Spent",
    "advanced_composition",
    "epsilon_of_rho",
    "rho_of_budget",
    "zcdp_rho",
]


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
    if not (isinstance(value, Real) and math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive finite number, not {value!r}")


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
        _check_positive("delta", self.delta)
        if self.delta >= 1:
            raise ValueError(f"delta must be below 1 (1e-6 is usual), not {self.delta!r}")

    def warn_if_weak(self, n: int):
        """Warn where delta is so large that publishing a few records outright would satisfy it."""
        if self.delta >= 1 / n:
            warnings.warn(
                f"delta = {self.delta:g} is not below 1/n = {1 / n:g}: such a guarantee allows "
                "publishing a random person's record; choose delta well below 1/n",
                stacklevel=4,  # the caller of the caller: who chose delta
            )


@dataclass(frozen=True)
class PureEvent:
    """A mechanism that was (epsilon, 0)-differentially private ran."""

    mechanism: str
    epsilon: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise ran; `noise_multiplier` is its deviation over the L2 sensitivity."""

    mechanism: str
    noise_multiplier: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE


def zcdp_rho(event: PureEvent | GaussianEvent) -> float:
    """Zero-concentrated privacy cost of an event.

    Raises
    ------
    TypeError
        For an event whose cost is not known: it is refused, not guessed.
    ValueError
        If its parameter is not positive and finite.

    Notes
    -----
    Bun and Steinke (2016): epsilon^2 / 2 for a pure mechanism, 1 / (2 sigma^2) for a Gaussian one.

    Examples
    --------
    >>> zcdp_rho(PureEvent("Laplace", 0.2))
    0.020000000000000004
    """
    if isinstance(event, PureEvent):
        _check_positive("epsilon", event.epsilon)
        return event.epsilon**2 / 2
    if isinstance(event, GaussianEvent):
        _check_positive("noise_multiplier", event.noise_multiplier)
        return 0.5 / event.noise_multiplier / event.noise_multiplier
    raise TypeError(f"no cost is known for {event!r}; add its zCDP cost with a proof first")


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Smallest known epsilon for which rho-zCDP implies (epsilon, delta)-differential privacy.

    Notes
    -----
    Minimises over a > 1 the bound a rho + ln(1 - 1/a) - ln(a delta) / (a - 1) of Canonne, Kamath
    and Steinke (2020). Any a is valid, so numerical error can only lose, never overclaim.

    Examples
    --------
    >>> round(epsilon_of_rho(0.02, 1e-6), 3)
    0.9
    """
    from scipy.optimize import minimize_scalar  # heavy, and only needed here

    if rho == 0:
        return 0.0

    def bound(log_excess):
        a = 1 + math.exp(log_excess)
        return a * rho + math.log1p(-1 / a) - math.log(a * delta) / (a - 1)

    guess = 0.5 * math.log(-math.log(delta) / rho)
    best = minimize_scalar(
        bound, bounds=(guess - 8, guess + 8), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, float(best.fun))


@cache
def rho_of_budget(budget: Budget) -> float:
    """Largest rho whose conversion stays within the budget.

    Examples
    --------
    >>> rho = rho_of_budget(Budget(1.0, 1e-6))
    >>> round(rho, 4), epsilon_of_rho(rho, 1e-6) <= 1.0
    (0.0244, True)
    """
    low, high = 0.0, budget.epsilon + math.sqrt(budget.epsilon) + 1
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if epsilon_of_rho(middle, budget.delta) <= budget.epsilon:
            low = middle
        else:
            high = middle
    return low * (1 - 1e-9)


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

    events: tuple[PureEvent | GaussianEvent, ...]
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
            (name, len(events), _prices(events), math.fsum(map(zcdp_rho, events)))
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


def _prices(events) -> str:
    """What each of these events cost, as the parameter they were run with."""
    pure = isinstance(events[0], PureEvent)
    name = "epsilon" if pure else "noise multiplier"
    values = [event.epsilon if pure else event.noise_multiplier for event in events]
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return f"{name} = {low}" if low == high else f"{name} = {low} to {high}"


class Filter:
    """Lets an adaptive run spend until its budget is gone, and not a bit more.

    Parameters
    ----------
    budget : Budget
    neighbours : Neighbours
        Events proved for another relation are refused.

    Privacy
    -------
    Whatever is run through the filter, chosen however adaptively, is (epsilon, delta)-private in
    all: concentrated costs add up and are compared with the largest rho that converts to the
    budget (Feldman and Zrnic 2021; Whitehouse et al. 2023). Chapter 04.

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

    def __init__(self, budget: Budget, *, neighbours: Neighbours = Neighbours.REPLACE_ONE):
        self.budget = budget
        self.neighbours = neighbours
        self.rho = rho_of_budget(budget)
        self._events = []
        self._spent = 0.0

    @property
    def remaining(self) -> float:
        """The rho that is left."""
        return self.rho - self._spent

    def spend(self, event: PureEvent | GaussianEvent):
        """Pay for an event that is about to run.

        Raises
        ------
        BudgetSpent
            If it would exceed the budget; nothing is charged then.
        ValueError
            If the event was proved for other neighbours.
        """
        cost = zcdp_rho(event)
        if event.neighbours is not self.neighbours:
            raise ValueError(
                f"{event.mechanism} is proved for neighbours that {event.neighbours.value}, this "
                f"run promises {self.neighbours.value}; use its sensitivity for the latter"
            )
        if not 0 < cost < math.inf:
            raise ValueError(f"{event.mechanism} must cost more than nothing and less than all")
        total = math.nextafter(self._spent + cost, math.inf)  # rounding never in our favour
        if total > self.rho:
            raise BudgetSpent(
                f"{event.mechanism} with {_prices([event])} would exceed "
                f"epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}"
            )
        self._events.append(event)
        self._spent = total

    @property
    def ledger(self) -> Ledger:
        """What has been spent so far."""
        spent = Spent(0.0, 0.0)
        if self._events:
            epsilon = epsilon_of_rho(self._spent, self.budget.delta)
            spent = Spent(epsilon, self.budget.delta)
        accountant = f"zCDP filter, {self.neighbours.value}"
        return Ledger(tuple(self._events), spent, self.budget, accountant)


def advanced_composition(epsilon: float, times: int, delta: float) -> float:
    """Epsilon of `times` runs of a pure mechanism by advanced composition.

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
    spread = math.sqrt(2 * times * math.log(1 / delta)) * epsilon
    return spread + times * epsilon * math.expm1(epsilon)


class Odometer:
    """Never refuses; reads off afterwards what a run has cost, as the papers report it.

    The reading is not a guarantee: how much was spent depends on the data. A last above-threshold
    that has not fired is left out, as in the papers, although it ran too.

    Parameters
    ----------
    delta : float
        Split evenly over the kinds of mechanism.
    """

    def __init__(self, delta: float):
        self.delta = delta
        self._events = []

    def spend(self, event: PureEvent):
        """Note an event."""
        self._events.append(event)

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
