"""Privacy filters: accounts that stop a run before it exceeds its budget."""

import decimal
import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, NamedTuple

from dpcgd.privacy import conversions
from dpcgd.privacy.budget import Budget, BudgetSpent, Spent
from dpcgd.privacy.doubles import LEAST, ROOM, growth
from dpcgd.privacy.events import Event, GaussianEvent, Neighbours
from dpcgd.privacy.ledger import Ledger, prices_of

__all__ = ["BasicFilter", "Filter", "GaussianFilter", "PureFilter"]


class _Concentrated(NamedTuple):
    """A concentrated cost, and the deltas of approximate events."""

    rho: float
    delta: float


class _Enforced:
    """Pays for events, for all of them or for none, and keeps them.

    Attributes
    ----------
    budget : Budget
        What the whole run promises.
    limit : tuple of float
        What prices may add up to, and what the deltas of events may.
    before_spending : callable or None
        Runs once, before anything is spent: a run that an account file pays for says so there.
    """

    guarantee: ClassVar = "proved"
    """What a release may say of a run that this account paid for."""
    limit: _Concentrated | Spent
    kind: ClassVar[str]
    _price: Callable[[Event], float]
    """What an event costs; raises TypeError where that is not known."""
    _spent: Callable[[], Spent]
    """What has been used, for all rows of a person."""

    def __init__(self, budget: Budget, limit: _Concentrated | Spent):
        self.budget, self.limit = budget, limit
        self.before_spending: Callable[[], None] | None = None
        self._events: list[Event] = []
        self._used = type(limit)(0.0, 0.0)

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

    def _after(self, used: _Concentrated | Spent, event: Event):
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
        total = math.nextafter(used[0] + price, math.inf)  # rounding never in our favour
        failing = used.delta + event.delta
        if not (total <= self.limit[0] and failing <= self.limit.delta):
            raise BudgetSpent(
                f"{event.mechanism} with {prices_of([event])} would exceed epsilon = "
                f"{self.budget.epsilon:g}, delta = {self.budget.delta:g}"
                + ("; see Filter(reserved=...)" if event.delta else "")
            )
        return type(used)(total, failing)

    def keep(self, share: float) -> None:
        """Leave a share of what may be spent unspent, for rounding.

        Parameters
        ----------
        share : float
            Of rho, or of epsilon where epsilons are added up.
        """
        self.limit = type(self.limit)(self.limit[0] * (1 - share), self.limit.delta)

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to; infinite if none is."""
        return math.inf

    @property
    def whole(self) -> str:
        """What the whole run satisfies, in a sentence."""
        raise NotImplementedError

    @property
    def ledger(self) -> Ledger:
        """What has been used so far."""
        spent = self._spent() if self._events else Spent(0.0, 0.0)
        persons = Neighbours.REPLACE_ONE.of(self.budget.rows_per_person)
        accountant = f"{self.kind}, {persons}"
        return Ledger(tuple(self._events), spent, self.budget, accountant, self.whole)


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
    limit: _Concentrated
    _used: _Concentrated

    def __init__(self, budget: Budget, *, reserved: float = 0.0):
        if not 0 <= reserved < budget.delta * (1 - 10 * ROOM):
            raise ValueError(f"reserved must be at least 0 and below delta, not {reserved!r}")
        if reserved and budget.rows_per_person > 1:
            raise ValueError("no part of delta can be reserved where a person has several rows")
        self.reserved = reserved * (1 + ROOM)
        rho = min(self._largest_rho(budget), conversions.MOST_RHO)
        if rho < conversions.LEAST_RHO:
            raise ValueError(
                f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g} is too small a budget to "
                "be split up in double precision; take a larger epsilon or delta"
            )
        super().__init__(budget, _Concentrated(rho, self.reserved))

    def _largest_rho(self, budget: Budget) -> float:
        return conversions.rho_of_budget(replace(budget, delta=budget.delta - self.reserved))

    @property
    def rho(self) -> float:
        """The rho that may be spent in all."""
        return self.limit.rho

    @property
    def promised_rho(self) -> float:
        """The rho of the whole run, for all rows of a person."""
        rows = self.budget.rows_per_person
        return min(
            self._largest_rho(replace(self.budget, rows_per_person=1)),
            conversions.MOST_RHO * rows**2,
        )

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to; infinite if none is."""
        return math.inf if self.reserved else order * self.promised_rho

    @property
    def whole(self) -> str:
        """What the whole run satisfies, in a sentence."""
        failing = f", except with probability {self.reserved:.4g}" if self.reserved else ""
        return f"the whole run is {_rounded_up(self.promised_rho)}-zCDP{failing}"

    @property
    def remaining(self) -> float:
        """The rho that is left."""
        return self.rho - self._used.rho

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

    def _price(self, event: Event) -> float:
        return conversions.zcdp_rho(event)

    def _spent(self) -> Spent:
        of_a_person = self._used.rho * self.budget.rows_per_person**2
        epsilon = conversions.epsilon_of_rho(of_a_person, self.budget.delta - self.reserved)
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
    TypeError: Laplace is no Gaussian noise; use a zCDP Filter
    """

    kind = "Gaussian filter"

    def __init__(self, budget: Budget):
        super().__init__(budget)

    def _largest_rho(self, budget: Budget) -> float:
        # for rounding, and for noise from a grid as fine as that of double precision
        return 0.5 / conversions.squared(conversions.gaussian_multiplier(budget)) * (1 - ROOM)

    @property
    def whole(self) -> str:
        """What the whole run satisfies, in a sentence."""
        return f"{super().whole}, and as private as one Gaussian mechanism of that rho"

    def _price(self, event: Event) -> float:
        cost = conversions.zcdp_rho(event)
        if not isinstance(event, GaussianEvent):
            raise TypeError(f"{event.mechanism} is no Gaussian noise; use a zCDP Filter")
        return cost

    def _spent(self) -> Spent:
        multiplier = math.sqrt(0.5 / max(self._used.rho, LEAST))
        epsilon = conversions.gaussian_epsilon(
            multiplier / self.budget.rows_per_person, self.budget.delta
        )
        return Spent(epsilon, self.budget.delta)


class BasicFilter(_Enforced):
    """Lets a run spend until the sum of its epsilons or deltas is gone: basic composition.

    For few mechanisms this promises less than a zCDP :class:`Filter`: two pure ones
    may have epsilon / 2 each.

    Parameters
    ----------
    budget : Budget

    Attributes
    ----------
    limit : Spent
        What the prices may add up to: the budget of one row.

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
    limit: Spent

    def __init__(self, budget: Budget):
        super().__init__(budget, _of_one_row(budget))

    def _price(self, event: Event) -> float:
        if not isinstance(event, Event) or isinstance(event, GaussianEvent):
            raise TypeError(f"{event!r} has no epsilon to add up; use a zCDP Filter")
        return event.epsilon

    def _spent(self) -> Spent:
        rows, (epsilon, delta) = self.budget.rows_per_person, self._used
        return Spent(rows * epsilon, delta and delta * _times(epsilon, rows))

    @property
    def whole(self) -> str:
        """What the whole run satisfies, in a sentence."""
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

    @property
    def whole(self) -> str:
        """What the whole run satisfies, in a sentence."""
        epsilon, rho = (
            self.budget.epsilon,
            _rounded_up(conversions.squared(self.budget.epsilon) / 2),
        )
        return f"the whole run is ({epsilon:g}, 0)-private and {rho}-zCDP"


def _rounded_up(rho: float) -> str:
    """To four digits, and never to less."""
    digits = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)
    return f"{float(digits.create_decimal_from_float(rho)):.4g}"


def _of_one_row(budget: Budget) -> Spent:
    """What may be spent on one row if all rows of a person are to stay within the budget."""
    rows = budget.rows_per_person
    if rows == 1:
        return Spent(budget.epsilon, budget.delta)
    epsilon = budget.epsilon / rows * (1 - ROOM)
    return Spent(epsilon, budget.delta / _times(epsilon, rows) * (1 - ROOM))


def _times(epsilon: float, rows: int) -> float:
    """How often a delta of one row counts for a person: 1 + e^epsilon + ..., a term for each row.

    Infinite where it is too large a number.
    """
    if rows == 1:
        return 1.0
    most = growth(rows * epsilon)
    return most / growth(epsilon) if 0 < most < math.inf else most or float(rows)
