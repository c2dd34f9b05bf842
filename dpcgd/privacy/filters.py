"""Accounts that pay for a run, and their ledger; filters stop a run before it exceeds a budget."""

import decimal
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from dpcgd.privacy import conversions
from dpcgd.privacy.budget import LEAST, ROOM, Budget, BudgetSpent, Spent, check_delta, growth
from dpcgd.privacy.events import Event, GaussianEvent, Neighbours

__all__ = ["Account", "Ledger", "NoPrivacy", "Odometer"]
__all__ += ["BasicFilter", "Filter", "GaussianFilter", "PureFilter"]


@dataclass(frozen=True)
class Ledger:
    """What ran, in order, and what it cost.

    Attributes
    ----------
    events : tuple
        Each mechanism that ran, at the price for one record.
    spent : Spent
        What was used by the end, ``(epsilon, delta)``, for the unit of the budget. For planning
        only: where a run chooses by its own answers when to stop, this is no guarantee (chapter
        02). The budget is one, and budgets add up over releases.
    budget : Budget or None
        The promise; None where nothing was enforced.
    accountant : str
        How the total was reached.
    whole : str
        What the whole run satisfies, as its filter enforced it: in rho, or as a pure epsilon.
    """

    COLUMNS: ClassVar = ("mechanism", "times", "each", "rho in all")

    events: tuple[Event, ...]
    spent: Spent
    budget: Budget | None
    accountant: str
    whole: str = ""

    def to_frame(self):
        """The ledger as a pandas table, one row for each kind of mechanism, in order."""
        kinds: dict[tuple[str, type], list[Event]] = {}
        for event in self.events:
            name = ", ".join(filter(None, (event.mechanism, event.label)))
            kinds.setdefault((name, type(event)), []).append(event)
        rows = [
            (name, len(events), prices_of(events), sum(map(conversions.zcdp_rho, events)))
            for (name, _), events in kinds.items()
        ]
        return pd.DataFrame(rows, columns=self.COLUMNS)

    def __str__(self):
        lines = ["{:<18}{:>6}  {:<34}{:>11}".format(*self.COLUMNS)]
        rows = self.to_frame().itertuples(index=False)
        lines += ["{:<18}{:>6}  {:<34}{:>11.6f}".format(*row) for row in rows]
        used = f"epsilon = {self.spent.epsilon:.4g} at delta = {self.spent.delta:g}"
        if self.budget:
            promise = f"({self.budget.epsilon:g}, {self.budget.delta:g})"
            unit = "; prices are of one record" if self.budget.rows_per_person > 1 else ""
            lines.append(f"promised {promise} by a {self.accountant}{unit}")
            lines += [self.whole] if self.whole else []
            lines.append(f"used so far, for planning: {used}")
        else:
            lines.append(f"nothing is promised; a reading of {used} ({self.accountant})")
        return "\n".join(lines)


def prices_of(events) -> str:
    """What each of these events cost, as the parameters they were run with."""
    shown = []
    for name in events[0].parameters:
        values = [getattr(event, name) for event in events]
        low, high = f"{min(values):.4g}", f"{max(values):.4g}"
        shown.append(f"{name.replace('_', ' ')} = {low}" + ("" if low == high else f" to {high}"))
    return ", ".join(shown)


class NoPrivacy:
    """The account of a run without privacy: nothing is counted, and nothing promised."""

    guarantee: ClassVar[str] = "none"

    def spend(self, *events: Event) -> None:
        """Count nothing."""

    @property
    def ledger(self) -> Ledger:
        """An empty one, with an infinite total."""
        return Ledger((), Spent(math.inf, 1.0), None, "no privacy")


class Cost(NamedTuple):
    """What events have cost, or may: the sum of their prices, and that of their deltas.

    A price is a rho or an epsilon, as the filter adds them up.
    """

    price: float
    delta: float


class _Enforced:
    """Pays for events, for all of them or for none, and keeps them.

    Attributes
    ----------
    budget : Budget
        What the whole run promises.
    limit : Cost
        What the events may cost.
    before_spending : callable or None
        Runs once, before anything is spent: a run that an account file pays for says so there.
    """

    guarantee: ClassVar[str] = "proved"
    """What a release may say of a run that this account paid for."""
    kind: ClassVar[str]
    _price: Callable[[Event], float]
    """What an event costs; raises TypeError where that is not known."""
    _spent: Callable[[], Spent]
    """What has been used, for all rows of a person."""
    _whole: Callable[[], str]
    """What the whole run satisfies, in a sentence."""

    def __init__(self, budget: Budget, limit: Cost):
        self.budget, self.limit = budget, limit
        self.before_spending: Callable[[], None] | None = None
        self._events: list[Event] = []
        self._used = Cost(0.0, 0.0)

    def spend(self, *events: Event):
        """Pay for events that are about to run, for all of them or for none.

        Raises
        ------
        BudgetSpent
            If they would exceed the budget; nothing is charged then.
        TypeError
            If the cost of an event is not known here.
        ValueError
            If an event was proved for other neighbours, or costs nothing.
        """
        used = self._used
        for event in events:
            used = self._after(used, event)
        if self.before_spending:
            self.before_spending()
            self.before_spending = None
        self._events.extend(events)
        self._used = used

    def _after(self, used: Cost, event: Event) -> Cost:
        """What has been used once this event has run; raises BudgetSpent if that is too much."""
        price = self._price(event)
        if event.neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(
                f"{event.mechanism} is proved for neighbours that {event.neighbours.value}; use "
                f"its sensitivity for those that {Neighbours.REPLACE_ONE.value}"
            )
        if not (price > 0 and event.delta >= 0):
            cost = "cost more than nothing, with a delta of 0 or more"
            raise ValueError(f"{event.mechanism} must {cost}")
        total = math.nextafter(used.price + price, math.inf)  # rounding never in our favour
        failing = used.delta + event.delta
        if not (total <= self.limit.price and failing <= self.limit.delta):
            cure = "; see Filter(reserved=...)" if event.delta else ""
            raise BudgetSpent(
                f"{event.mechanism} with {prices_of([event])} would exceed epsilon = "
                f"{self.budget.epsilon:g}, delta = {self.budget.delta:g}{cure}"
            )
        return Cost(total, failing)

    def keep(self, share: float) -> None:
        """Leave a share of what may be spent unspent, for rounding.

        Parameters
        ----------
        share : float
            Of rho, or of epsilon where epsilons are added up.
        """
        self.limit = self.limit._replace(price=self.limit.price * (1 - share))

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to; infinite if none is."""
        return math.inf

    @property
    def ledger(self) -> Ledger:
        """What has been used so far."""
        spent = self._spent() if self._events else Spent(0.0, 0.0)
        accountant = f"{self.kind}, {Neighbours.REPLACE_ONE.of(self.budget.rows_per_person)}"
        return Ledger(tuple(self._events), spent, self.budget, accountant, self._whole())


class Filter(_Enforced):
    """Lets an adaptive run spend until its budget is gone, and not a bit more.

    Parameters
    ----------
    budget : Budget
        For neighbours that replace one record; events proved for others are refused.
    reserved : float
        Part of delta kept for the deltas of approximate events; without it they are refused.

    Raises
    ------
    ValueError
        If the part reserved is not below delta, or is for persons with several rows, or the budget
        is too small for double precision.

    Privacy
    -------
    Whatever is run through the filter, chosen however adaptively, is (epsilon, delta)-private in
    all: concentrated costs add up and are compared with the largest rho that converts to the
    budget (Feldman and Zrnic 2021; Whitehouse et al. 2023). Chapter 02, :prf:ref:`thm-filter`.

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> account = Filter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.2))
    >>> account.spend(PureEvent("Laplace", 0.2))
    Traceback (most recent call last):
    ...
    dpcgd...BudgetSpent: Laplace with epsilon = 0.2 would exceed epsilon = 1, delta = 1e-06
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Laplace                1  epsilon = 0.2                        0.020000
    promised (1, 1e-06) by a zCDP filter, replace one record
    the whole run is 0.02436-zCDP
    used so far, for planning: epsilon = 0.8999 at delta = 1e-06
    """

    kind = "zCDP filter"
    _price = staticmethod(conversions.zcdp_rho)

    def __init__(self, budget: Budget, *, reserved: float = 0.0):
        if not 0 <= reserved < budget.delta * (1 - 10 * ROOM):
            raise ValueError(f"reserved must be at least 0 and below delta, not {reserved!r}")
        if reserved and budget.rows_per_person > 1:
            raise ValueError("no part of delta can be reserved where a person has several rows")
        self.reserved = reserved * (1 + ROOM)
        rho = min(self._largest_rho(budget), conversions.MOST_RHO)
        super().__init__(budget, Cost(rho, self.reserved))
        if rho < conversions.LEAST_RHO:
            cure = "take a larger epsilon or delta"
            raise ValueError(f"{budget!r} is too small a budget to be split up in doubles; {cure}")

    def _largest_rho(self, budget: Budget) -> float:
        return conversions.rho_of_budget(replace(budget, delta=budget.delta - self.reserved))

    @property
    def rho(self) -> float:
        """The rho that may be spent in all."""
        return self.limit.price

    @property
    def promised_rho(self) -> float:
        """The rho of the whole run, for all rows of a person."""
        largest = self._largest_rho(replace(self.budget, rows_per_person=1))
        return min(largest, conversions.MOST_RHO * self.budget.rows_per_person**2)

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to; infinite if none is."""
        return math.inf if self.reserved else order * self.promised_rho

    def _whole(self) -> str:
        failing = f", except with probability {self.reserved:.4g}" if self.reserved else ""
        return f"the whole run is {_rounded_up(self.promised_rho)}-zCDP{failing}"

    @property
    def remaining(self) -> float:
        """The rho that is left."""
        return self.rho - self._used.price

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

    def _spent(self) -> Spent:
        rho = self._used.price * self.budget.rows_per_person**2
        epsilon = conversions.epsilon_of_rho(rho, self.budget.delta - self.reserved)
        return Spent(epsilon, self.budget.delta)


class GaussianFilter(Filter):
    """A filter for Gaussian noise alone, which it counts without loss.

    It allows more than a zCDP :class:`Filter`: at (1, 1e-6) 15% more rho.

    Parameters
    ----------
    budget : Budget

    Privacy
    -------
    Whatever Gaussian mechanisms run through it, chosen however adaptively, satisfy every (epsilon,
    delta) that one Gaussian mechanism of their rho in all satisfies (Smith and Thakurta 2022).
    Chapter 02, :prf:ref:`thm-gaussian-filter`. That it loses nothing is in chapter 07,
    :prf:ref:`thm-gaussian-steps`.

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> account = GaussianFilter(Budget(1.0, 1e-6))
    >>> round(account.rho / Filter(account.budget).rho, 2)
    1.15
    >>> account.spend(GaussianEvent("Gaussian", 5.0))
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Gaussian               1  noise multiplier = 5                 0.020000
    promised (1, 1e-06) by a Gaussian filter, replace one record
    the whole run is 0.02802-zCDP, and as private as one Gaussian mechanism of that rho
    used so far, for planning: epsilon = 0.8341 at delta = 1e-06
    >>> account.spend(PureEvent("Laplace", 0.01))
    Traceback (most recent call last):
    ...
    TypeError: ... is no Gaussian noise; use a zCDP Filter
    """

    kind = "Gaussian filter"

    def _largest_rho(self, budget: Budget) -> float:
        # for rounding, and for noise from a grid as fine as that of double precision
        return 0.5 / conversions.squared(conversions.gaussian_multiplier(budget)) * (1 - ROOM)

    def _whole(self) -> str:
        return f"{super()._whole()}, and as private as one Gaussian mechanism of that rho"

    def _price(self, event: Event) -> float:
        if not isinstance(event, GaussianEvent):
            raise TypeError(f"{event!r} is no Gaussian noise; use a zCDP Filter")
        return conversions.zcdp_rho(event)

    def _spent(self) -> Spent:
        multiplier = math.sqrt(0.5 / max(self._used.price, LEAST)) / self.budget.rows_per_person
        return Spent(conversions.gaussian_epsilon(multiplier, self.budget.delta), self.budget.delta)


class BasicFilter(_Enforced):
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
    >>> from dpcgd.privacy.events import PureEvent
    >>> account = BasicFilter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.5))
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Laplace                1  epsilon = 0.5                        0.125000
    promised (1, 1e-06) by a sum of epsilons, replace one record
    the whole run is (1, 1e-06)-private, and no rho is proved for it
    used so far, for planning: epsilon = 0.5 at delta = 0
    >>> account.spend(PureEvent("Laplace", 0.6))
    Traceback (most recent call last):
    ...
    dpcgd...BudgetSpent: Laplace with epsilon = 0.6 would exceed epsilon = 1, delta = 1e-06
    """

    kind = "sum of epsilons"

    def __init__(self, budget: Budget):
        rows, limit = budget.rows_per_person, Cost(budget.epsilon, budget.delta)
        if rows > 1:  # what may be spent on one row if all rows are to stay within the budget
            epsilon = budget.epsilon / rows * (1 - ROOM)
            limit = Cost(epsilon, budget.delta / _times(epsilon, rows) * (1 - ROOM))
        super().__init__(budget, limit)

    def _price(self, event: Event) -> float:
        if not isinstance(event, Event) or isinstance(event, GaussianEvent):
            raise TypeError(f"{event!r} has no epsilon to add up; use a zCDP Filter")
        return event.epsilon

    def _spent(self) -> Spent:
        rows, (epsilon, delta) = self.budget.rows_per_person, self._used
        return Spent(rows * epsilon, delta and delta * _times(epsilon, rows))

    def _whole(self) -> str:
        epsilon, delta = self.budget.epsilon, self.budget.delta
        return f"the whole run is ({epsilon:g}, {delta:g})-private, and no rho is proved for it"


class PureFilter(BasicFilter):
    """A sum of epsilons for pure mechanisms alone: no delta is spent.

    Parameters
    ----------
    budget : Budget
        Its delta is part of the promise, and is not used.

    Privacy
    -------
    Whatever is run through it, chosen however adaptively, is (epsilon, 0)-private in all, and so
    epsilon^2 / 2-zCDP (Bun and Steinke 2016, proposition 1.4).

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> account = PureFilter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.5))
    >>> print(account.ledger)
    mechanism          times  each                               rho in all
    Laplace                1  epsilon = 0.5                        0.125000
    promised (1, 1e-06) by a sum of epsilons, replace one record
    the whole run is (1, 0)-private and 0.5-zCDP
    used so far, for planning: epsilon = 0.5 at delta = 0
    """

    def __init__(self, budget: Budget):
        super().__init__(budget)
        self.limit = self.limit._replace(delta=0.0)

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to."""
        return conversions.pure_divergence(order, self.budget.epsilon)

    def _whole(self) -> str:
        rho = _rounded_up(conversions.squared(self.budget.epsilon) / 2)
        return f"the whole run is ({self.budget.epsilon:g}, 0)-private and {rho}-zCDP"


def _rounded_up(rho: float) -> str:
    """To four digits, and never to less."""
    digits = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)
    return f"{float(digits.create_decimal_from_float(rho)):.4g}"


def _times(epsilon: float, rows: int) -> float:
    """How often a delta of one row counts for a person: 1 + e^epsilon + ..., a term for each row.

    Infinite where it is too large a number.
    """
    if rows == 1:
        return 1.0
    most = growth(rows * epsilon)
    return most / growth(epsilon) if 0 < most < math.inf else most or float(rows)


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

    guarantee: ClassVar[str] = "claimed, not proved"

    def __init__(self, delta: float):
        check_delta(delta)
        self.delta = delta
        self._events: list[Any] = []  # those with an epsilon

    @classmethod
    def for_budget(cls, budget: Budget) -> "Odometer":
        """One that reads off at the budget's delta; its epsilon is not enforced."""
        return cls(budget.delta)

    def keep(self, share: float) -> None:
        """Leave nothing unspent: there is no budget."""

    def spend(self, *events: Event):
        """Note events."""
        self._events.extend(events)

    @property
    def ledger(self) -> Ledger:
        """What has been noted so far."""
        unfinished = self._events and self._events[-1].mechanism == "above threshold"
        counts = Counter(self._events[:-1] if unfinished else self._events)
        kinds = max(1, len(counts))
        epsilon = sum(
            conversions.advanced_composition(event.epsilon, times, self.delta / kinds)
            for event, times in counts.items()
        )
        accountant = "odometer, advanced composition: claimed, not proved"
        return Ledger(tuple(self._events), Spent(epsilon, self.delta), None, accountant)


Account = _Enforced | Odometer | NoPrivacy
"""An account pays for the mechanisms of a run: it has a guarantee, `spend` and a ledger."""
