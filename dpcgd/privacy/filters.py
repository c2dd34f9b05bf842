"""Accounts that pay for a run, and their ledger; filters stop a run before it exceeds a budget."""

import decimal
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import pandas as pd

from dpcgd.privacy import conversions
from dpcgd.privacy.budget import LEAST, ROOM, Budget, BudgetSpent, Spent, growth
from dpcgd.privacy.events import Event, GaussianEvent, Neighbours

__all__ = ["Account", "BasicFilter", "Filter", "GaussianFilter", "Ledger", "NoPrivacy"]
__all__ += ["PureFilter"]


@dataclass(frozen=True)
class Ledger:
    """The mechanisms that ran, in order, and their cost.

    Attributes
    ----------
    events : tuple
        Each mechanism that ran, at the price for one record.
    spent : Spent
        Used ``(epsilon, delta)``, for the unit of the budget. Use it for planning only: if the
        run's answers decide when it stops, this is no guarantee (chapter 25). The budget is a
        guarantee, and budgets add up over releases.
    budget : Budget or None
        The promise; None if nothing was enforced.
    accountant : str
        How the total was reached.
    whole : str
        The guarantee of the whole run, as its filter enforced it: in rho, or as a pure epsilon.
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
    """The parameters of these events as text, which give the price of each."""
    shown = []
    for name in events[0].parameters:
        values = [getattr(event, name) for event in events]
        low, high = f"{min(values):.4g}", f"{max(values):.4g}"
        shown.append(f"{name.replace('_', ' ')} = {low}" + ("" if low == high else f" to {high}"))
    return ", ".join(shown)


PAYING = threading.RLock()
"""Held while anything pays or fires, so that threads do not use one budget twice."""


class NoPrivacy:
    """The account of a run without privacy: it counts nothing and promises nothing."""

    guarantee: ClassVar[str] = "none"

    def spend(self, *events: Event) -> None:
        """Count nothing."""

    @property
    def ledger(self) -> Ledger:
        """An empty ledger, with an infinite total."""
        return Ledger((), Spent(math.inf, 1.0), None, "no privacy")


class Cost(NamedTuple):
    """A cost, or a limit on it: the sum of the prices of events, and the sum of their deltas.

    A price is a rho or an epsilon; the filter decides which.
    """

    price: float
    delta: float


class _Enforced:
    """An account that pays for all given events or for none, and records them.

    Attributes
    ----------
    budget : Budget
        The promise of the whole run.
    limit : Cost
        The most that the events may cost.
    before_spending : callable or None
        Runs once, before anything is spent: it marks the reservation of an account file as used.
    """

    guarantee: ClassVar[str] = "proved"
    """The guarantee that a release states for a run that this account paid for."""
    kind: ClassVar[str]
    _price: Callable[[Event], float]
    """The cost of an event; raises TypeError if it is not known."""
    _spent: Callable[[], Spent]
    """Used epsilon and delta, for all rows of a person."""
    _whole: Callable[[], str]
    """The guarantee of the whole run, in a sentence."""

    def __init__(self, budget: Budget, limit: Cost):
        self.budget, self.limit = budget, limit
        self.before_spending: Callable[[], None] | None = None
        self._events: list[Event] = []
        self._used = Cost(0.0, 0.0)

    def __reduce__(self):
        raise TypeError("no account or sieve is copied: each copy would be a budget of its own")

    def spend(self, *events: Event):
        """Pay for events that are about to run, for all of them or for none.

        Raises
        ------
        BudgetSpent
            If they would exceed the budget; nothing is charged then.
        TypeError
            If the cost of an event is not known here.
        ValueError
            If an event has a sensitivity for other neighbours, or costs nothing.
        """
        with PAYING:
            used = self._used
            for event in events:
                used = self._after(used, event)
            if self.before_spending:
                self.before_spending()
                self.before_spending = None
            self._events.extend(events)
            self._used = used

    def _after(self, used: Cost, event: Event) -> Cost:
        """The used cost after this event; raises BudgetSpent if it exceeds the limit."""
        price = self._price(event)
        if event.neighbours is not Neighbours.REPLACE_ONE:
            theirs, ours = event.neighbours.value, Neighbours.REPLACE_ONE.value
            problem = f"{event.mechanism} has a sensitivity for neighbours that {theirs}"
            raise ValueError(f"{problem}; use one for those that {ours}")
        if not (price > 0 and event.delta >= 0):
            cost = "cost more than nothing, with a delta of 0 or more"
            raise ValueError(f"{event.mechanism} must {cost}")
        total = math.nextafter(used.price + price, math.inf)  # rounding never in our favour
        failing = used.delta + event.delta
        if failing - used.delta < event.delta:
            failing = math.nextafter(failing, math.inf)
        if not (total <= self.limit.price and failing <= self.limit.delta):
            cure = "; see Filter(reserved=...)" if event.delta else ""
            asked = f"{event.mechanism} with {prices_of([event])}"
            whole = f"epsilon = {self.budget.epsilon:g}, delta = {self.budget.delta:g}"
            raise BudgetSpent(f"{asked} would exceed {whole}{cure}")
        return Cost(total, failing)

    def keep(self, share: float) -> None:
        """Reserve a share of the limit for rounding.

        Parameters
        ----------
        share : float
            The share of rho, or of epsilon if epsilons are added up; at least 0 and below 1.

        Raises
        ------
        ValueError
            If it is another number.
        """
        if not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1, not {share!r}")
        self.limit = self.limit._replace(price=self.limit.price * (1 - share))

    def divergence(self, order: float) -> float:
        """The Renyi divergence of an order that the whole run keeps to; infinite if none is."""
        return math.inf

    @property
    def ledger(self) -> Ledger:
        """The ledger of the run so far."""
        spent = self._spent() if self._events else Spent(0.0, 0.0)
        accountant = f"{self.kind}, {Neighbours.REPLACE_ONE.of(self.budget.rows_per_person)}"
        return Ledger(tuple(self._events), spent, self.budget, accountant, self._whole())


class Filter(_Enforced):
    """A zCDP filter: it refuses the first event that would exceed the budget of an adaptive run.

    Parameters
    ----------
    budget : Budget
        For neighbours that replace one record; events for other neighbours are refused.
    reserved : float
        Part of delta kept for the deltas of approximate events; without it they are refused.

    Raises
    ------
    ValueError
        If the reserved part is not below delta, a part is reserved although persons have several
        rows, or the budget is too small for double precision.

    Privacy
    -------
    All mechanisms that the filter pays for are together (epsilon, delta)-private, also if earlier
    answers choose later mechanisms: zCDP costs add up and are compared with the largest rho that
    converts to the budget (Feldman and Zrnic 2021; Whitehouse et al. 2023). Chapter 02,
    :prf:ref:`thm-filter`.

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
            raise ValueError("no part of delta can be reserved if a person has several rows")
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
        return f"the whole run is {rounded_up(self.promised_rho)}-zCDP{failing}"

    @property
    def remaining(self) -> float:
        """The rho that is left."""
        return self.rho - self._used.price

    def share(self, part: float) -> float:
        """A part of the remaining rho; prices may depend on it.

        Raises
        ------
        BudgetSpent
            If no rho is left, or the part is too small for a double.
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
    """A filter for Gaussian noise only; its accounting of Gaussian noise is exact.

    It allows more than a zCDP :class:`Filter`: at (1, 1e-6) 15% more rho.

    Parameters
    ----------
    budget : Budget

    Privacy
    -------
    All Gaussian mechanisms that the filter pays for satisfy together every (epsilon, delta) that
    one Gaussian mechanism of their total rho satisfies, also if earlier answers choose later
    mechanisms (Smith and Thakurta 2022). Chapter 02, :prf:ref:`thm-gaussian-filter`. Chapter 07
    shows that the accounting is exact, :prf:ref:`thm-gaussian-steps`.

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
    """A filter by basic composition: it adds up epsilons and deltas.

    A run of few mechanisms needs a smaller budget than with a zCDP :class:`Filter`: two pure
    mechanisms may have epsilon / 2 each.

    Parameters
    ----------
    budget : Budget

    Privacy
    -------
    All mechanisms that it pays for are together (epsilon, delta)-private, also if earlier answers
    choose later mechanisms (Dwork et al. 2006; Rogers et al. 2016 for adaptive prices).

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
        if rows > 1:  # the limit for one row that keeps all rows of a person within the budget
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
    """A filter for pure mechanisms only: it adds up epsilons, and no delta is spent.

    Parameters
    ----------
    budget : Budget
        Its delta is stated in the promise, and is not used.

    Privacy
    -------
    All mechanisms that it pays for are together (epsilon, 0)-private, also if earlier answers
    choose later mechanisms, and so epsilon^2 / 2-zCDP (Bun and Steinke 2016, proposition 1.4).

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
        rho = rounded_up(conversions.squared(self.budget.epsilon) / 2)
        return f"the whole run is ({self.budget.epsilon:g}, 0)-private and {rho}-zCDP"


def rounded_up(value: float, digits: int = 4) -> str:
    """The number with so many digits, rounded up."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{digits}g}"


def _times(epsilon: float, rows: int) -> float:
    """The factor from a delta of one row to that of a person: 1 + e^epsilon + ..., a term a row.

    It is infinite if it is too large for a double.
    """
    if rows == 1:
        return 1.0
    most = growth(rows * epsilon)
    return most / growth(epsilon) if 0 < most < math.inf else most or float(rows)


Account = _Enforced | NoPrivacy
"""An account pays for the mechanisms of a run. It has a guarantee, `spend` and a ledger."""
