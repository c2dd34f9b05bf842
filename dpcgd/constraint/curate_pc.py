"""CURATE: the budget of each order of tests is planned anew, from released facts only."""

import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dpcgd.constraint.allocation import (
    MOST_COUNT,
    Plan,
    Surrogate,
    askable,
    concentrated,
    guessed_questions,
    leakage,
    most_questions,
    planner,
)
from dpcgd.constraint.laplace_pc import LaplaceOracle, check_margin, release_of
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.events import Event
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.ledger import Ledger
from dpcgd.privacy.odometer import Odometer
from dpcgd.privacy.run import open_run
from dpcgd.statistics.rank_statistics import KendallP, KendallZ
from dpcgd.statistics.statistic import RECORDS_PER_CELL, Statistic, in_sensitivities

__all__ = [
    "CoinOracle",
    "CurateOracle",
    "OrderFilter",
    "OrderOdometer",
    "PublishedCurateP",
    "curate_pc",
    "proved_plan",
    "published_plan",
    "reading",
    "resolution",
]

PUBLISHED_BETA = 0.2
"""Half the width of the published grey zone, as a share of the threshold."""


@dataclass
class CurateOracle(LaplaceOracle):
    """Laplace noise on every test, its size planned anew at the beginning of each order.

    Parameters
    ----------
    tables, statistic, epsilon, margin, account, noise
        As for :class:`LaplaceOracle`; `epsilon` is that of the order at hand, set by the plan, and
        `account` an :class:`OrderFilter` or :class:`OrderOdometer`.
    plan : callable
        From the pairs still joined and the order to the epsilon of its tests. It may use what has
        been released and what is left, never the data.
    joined : boolean array of shape (d, d)
        Pairs that are joined at the start.
    crowded : float
        How many noise scales to lower the threshold for each factor of e in the sets a pair may be
        asked about: one of them is enough to lose it.
    """

    plan: Plan
    joined: np.ndarray
    crowded: float = 0.5
    _order: int = -1

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Is the noisy statistic below the threshold of this order?"""
        if len(given) > self._order:
            self._begin(len(given))
        independent = super().separates(x, y, given)
        if independent:
            self.joined[x, y] = self.joined[y, x] = False
        return independent

    def _begin(self, order):
        self.epsilon = self.plan(self.joined, order)
        self.account.order = self._order = order
        pairs = max(1, int(np.triu(self.joined).sum()))
        sets = min(askable(self.joined, order), MOST_COUNT) / pairs
        self._lowered = self.crowded * math.log(max(1.0, sets))

    def _is_below(self, noisy, sensitivity) -> bool:
        return super()._is_below(noisy + self._lowered * sensitivity / self.epsilon, sensitivity)


@dataclass
class CoinOracle(CurateOracle):
    """The published decision: near the threshold, a coin."""

    beta: float = PUBLISHED_BETA

    def _is_below(self, noisy, sensitivity) -> bool:
        above = noisy - self.statistic.critical
        if abs(above) > self.beta * abs(self.statistic.critical):
            return above < 0
        return self.noise.choose(2, 1)[0] == 0


def reading(events: Iterable[Event], delta: float) -> float:
    """CURATE's account of a run: the sum of :func:`leakage` over its orders."""
    orders = Counter((event.mechanism, event.epsilon) for event in events)
    return float(sum(leakage(t, epsilon, delta) for (_, epsilon), t in orders.items()))


class _ByOrder:
    """Events are noted by order."""

    order = 0

    def spend(self, *events: Event):
        """Pay for events that are about to run."""
        super().spend(*(_at(self.order, event) for event in events))


def _at(order, event) -> Event:
    return replace(event, mechanism=f"{event.mechanism}, order {order}")


class OrderFilter(_ByOrder, Filter):
    """A filter whose ledger has a row for each order.

    Examples
    --------
    >>> from dpcgd.privacy.events import PureEvent
    >>> account = OrderFilter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.1))
    >>> account.order = 1
    >>> account.spend(PureEvent("Laplace", 0.05))
    >>> account.ledger.to_frame().mechanism.tolist()
    ['Laplace, order 0', 'Laplace, order 1']
    """


class OrderOdometer(_ByOrder, Odometer):
    """CURATE's own account: orders by advanced composition, then added; what is left is refunded.

    Parameters
    ----------
    budget : Budget
        Epsilon of the whole run, and delta' of each order.
    """

    def __init__(self, budget: Budget):
        super().__init__(budget.delta)
        self._budget = budget

    @property
    def remaining(self) -> float:
        """What the paper has left for the orders to come."""
        return self._budget.epsilon - reading(self._events, self.delta)

    @property
    def ledger(self) -> Ledger:
        """What has been noted so far."""
        orders = len({event.mechanism for event in self._events})
        spent = Spent(reading(self._events, self.delta), orders * self.delta)
        accountant = "CURATE's sum over orders: claimed, not proved"
        return Ledger(tuple(self._events), spent, None, accountant)


@dataclass(frozen=True)
class PublishedCurateP(KendallP):
    """Kendall's p-value with the sensitivity of CURATE's appendix, which is too small.

    Parameters
    ----------
    alpha : float

    Privacy
    -------
    None proved: chapter 03.

    Notes
    -----
    Formula (16) at its largest, two records in the stratum: 10 / (11 sqrt(pi n)) = 0.513 / sqrt(n).
    The authors' code has 0.3627 / sqrt(n), smaller by a factor of sqrt(2).
    """

    alpha: float = 0.05
    proved: ClassVar[bool] = False

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """As published; not a bound."""
        return 10 / 11 / math.sqrt(math.pi * n)


def curate_pc(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
    published: bool = False,
) -> Release:
    """CURATE: the PC algorithm with Laplace noise on every test, planned order by order.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee of the whole run. With ``published=True``, epsilon is the total that the
        paper's account allows and delta that of each order.
    statistic : Statistic, optional
        ``KendallZ()`` unless given; ``PublishedCurateP()`` for the published version.
    margin : float
        Noise scales between the statistic's critical value and the threshold at order 0; at higher
        orders less by half the logarithm of the sets a pair may be asked about. Not used when
        published.
    published : bool
        Run the paper's version instead: p-values, its sensitivity, a coin near the threshold, its
        surrogate, its bounds on the tests, its account.
    rng, secure, max_order, knowledge
        As for :func:`dpcgd.priv_pc`.

    Returns
    -------
    Release
        Its ledger has a row for each order.

    Raises
    ------
    ValueError
        If the budget, the noise source or the margin is unusable, or the statistic has its critical
        value at 0, which leaves nothing to plan by (unless published); nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a zCDP filter pays for every
    test of every order. Chapters 02, 03 and 06. None with ``published=True``.

    Notes
    -----
    Bhattacharjee and Tandon (2024), algorithm 1.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = curate_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    started = time.perf_counter()
    check_margin(margin)
    account, noise = open_run(data, epsilon, delta, rng, secure, published, OrderFilter)
    last = min(max_order, data.d - 2)
    forbidden, _ = (knowledge or Knowledge()).arrays(data.variables)
    joined = ~(forbidden & forbidden.T) & ~np.eye(data.d, dtype=bool)
    if published:
        kind, statistic = CoinOracle, statistic or PublishedCurateP()
        account = OrderOdometer(Budget(epsilon, delta))
        plan = published_plan(account, statistic, data.n, last=last)
    else:
        kind, statistic = CurateOracle, statistic or KendallZ()
        plan = proved_plan(account, statistic, data.n, last=last)
    oracle = kind(
        Tables(data), statistic, math.nan, margin, account, noise, plan=plan, joined=joined
    )
    return release_of(oracle, data, last, knowledge, started, secure)


def published_plan(account: OrderOdometer, statistic: Statistic, n: int, *, last: int) -> Plan:
    """The paper's: c1 = c2 = 1, margins of beta T, every set of other variables, its account."""
    slope = PUBLISHED_BETA * resolution(statistic, n)
    price = partial(leakage, delta=account.delta)
    left = lambda: account.remaining  # noqa: E731
    return planner(left, most_questions, Surrogate(slope, grey=1.0), price, last=last)


def proved_plan(account: Filter, statistic: Statistic, n: int, *, last: int) -> Plan:
    """Ours: a fixed distance to resolve, zCDP, guessed tests, and an end where noise would decide.

    Raises
    ------
    ValueError
        If the statistic's critical value is 0: there is no distance then.

    Notes
    -----
    The distance is that of the critical value from 0, and an order whose noise scale is more than
    ten times that is not begun. Chosen on networks that are not in the book (chapter 06).
    """
    slope, left = resolution(statistic, n), lambda: account.share(1.0)
    if slope == 0:
        raise ValueError(
            f"{statistic.name} has its critical value at 0, and the plan needs a distance of it "
            "from 0; take a statistic with another, such as KendallZ()"
        )
    surrogate = Surrogate(slope)
    return planner(left, guessed_questions, surrogate, concentrated, last=last, least=0.1 / slope)


def resolution(statistic: Statistic, n: int) -> float:
    """Distance of the critical value from 0, in sensitivities of the smallest conditional test."""
    levels = (2, 2, 2)
    smallest = RECORDS_PER_CELL * math.prod(levels)  # with fewer records it would be refused
    sensitivity = statistic.sensitivity(max(n, smallest), levels)
    return in_sensitivities(abs(statistic.critical), sensitivity)
