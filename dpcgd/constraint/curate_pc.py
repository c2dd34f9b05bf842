"""CURATE: the budget of each order of tests is planned anew, from released facts only."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Unpack

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
from dpcgd.constraint.laplace_pc import LaplaceOracle, released_by
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.events import PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.ledger import Ledger
from dpcgd.privacy.odometer import Odometer
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.statistics.rank_statistics import KendallP, KendallZ
from dpcgd.statistics.statistic import RECORDS_PER_CELL, Statistic, in_sensitivities

__all__ = [
    "CoinOracle",
    "CurateOdometer",
    "CurateOracle",
    "PublishedCurateP",
    "curate_pc",
    "proved_plan",
    "published_curate_pc",
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
    tables, statistic, epsilon, margin, account, noise, label
        As for :class:`~dpcgd.constraint.laplace_pc.LaplaceOracle`; `epsilon` and `label` are those
        of the order at hand, set by the plan.
    plan : callable
        From the pairs still joined and the order to the epsilon of its tests. It may use what has
        been released and what is left, never the data.
    crowded : float
        How many noise scales to lower the threshold for each factor of e in the sets a pair may be
        asked about: one of them is enough to lose it.
    """

    plan: Plan = field(kw_only=True)
    crowded: float = field(default=0.5, kw_only=True)

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Plan the tests of an order."""
        self.epsilon = self.plan(joined, order)
        self.label = f"order {order}"
        pairs = max(1, int(np.triu(joined).sum()))
        sets = min(askable(joined, order), MOST_COUNT) / pairs
        self._lowered = self.crowded * math.log(max(1.0, sets))

    def _is_below(self, noisy, sensitivity) -> bool:
        return super()._is_below(noisy + self._lowered * sensitivity / self.epsilon, sensitivity)


@dataclass
class CoinOracle(CurateOracle):
    """The published decision: near the threshold, a coin."""

    beta: float = field(default=PUBLISHED_BETA, kw_only=True)

    def _is_below(self, noisy, sensitivity) -> bool:
        above = noisy - self.statistic.critical
        if abs(above) > self.beta * abs(self.statistic.critical):
            return above < 0
        return self.noise.choose(2, 1)[0] == 0


def reading(events: Iterable[PureEvent], delta: float) -> float:
    """CURATE's account of a run, :func:`~dpcgd.constraint.allocation.leakage` added up."""
    orders = Counter((event.label, event.epsilon) for event in events)
    return float(sum(leakage(t, epsilon, delta) for (_, epsilon), t in orders.items()))


class CurateOdometer(Odometer):
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
        orders = len({event.label for event in self._events})
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


@takes_keywords
def curate_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """CURATE: the PC algorithm with Laplace noise on every test, planned order by order.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, statistic, max_order, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    margin : float
        Noise scales between the statistic's critical value and the threshold at order 0; at higher
        orders less by half the logarithm of the sets a pair may be asked about.

    Returns
    -------
    Release
        Its ledger has a row for each order.

    Raises
    ------
    ValueError
        If the statistic has its critical value at 0, which leaves nothing to plan by, and as
        :func:`~dpcgd.constraint.priv_pc.priv_pc`; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a zCDP filter pays for every
    test of every order. Chapters 02, 03 and 06, :prf:ref:`thm-curate-filter`.

    Notes
    -----
    Bhattacharjee and Tandon (2024), algorithm 1. Copies lose edges as in
    :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = curate_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    statistic = KendallZ() if statistic is None else statistic
    run = open_run(
        data,
        by=("curate_pc", "thm-curate-filter"),
        statistic=statistic,
        margin=margin,
        max_order=max_order,
        **shared,
    )
    last = min(max_order, data.d - 2)
    plan = proved_plan(run.account, statistic, data.n, last=last)
    oracle = CurateOracle(
        Tables(data), statistic, math.nan, margin, run.account, run.noise, plan=plan
    )
    return released_by(oracle, run, data.variables, last, shared.get("knowledge"))


@takes_keywords
def published_curate_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """CURATE as published: p-values, a coin near the threshold, its surrogate and its account.

    Parameters
    ----------
    epsilon, delta : float
        The total that the paper's account allows, and the delta of each order.
    allow_delta : bool
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    statistic : Statistic, optional
        ``PublishedCurateP()`` unless given.
    data, rng, max_order, knowledge
        As for :func:`curate_pc`.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapters 03 and 06.
    """
    run = open_run(data, account=CurateOdometer, statistic=statistic, max_order=max_order, **shared)
    statistic, last = statistic or PublishedCurateP(), min(max_order, data.d - 2)
    plan = published_plan(run.account, statistic, data.n, last=last)
    oracle = CoinOracle(Tables(data), statistic, math.nan, 0.0, run.account, run.noise, plan=plan)
    return released_by(oracle, run, data.variables, last, shared.get("knowledge"))


def published_plan(account: CurateOdometer, statistic: Statistic, n: int, *, last: int) -> Plan:
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
