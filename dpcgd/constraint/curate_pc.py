"""CURATE: the budget of each order of tests is planned anew, from released facts only."""

import math
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np

from dpcgd.constraint.allocation import (
    MOST_COUNT,
    Plan,
    Surrogate,
    askable,
    concentrated,
    guessed_questions,
    planner,
)
from dpcgd.constraint.laplace_pc import LaplaceOracle, released_by
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.graphs.release import Release
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.statistics.rank_statistics import KendallZ
from dpcgd.statistics.statistic import RECORDS_PER_CELL, Statistic, in_sensitivities

__all__ = [
    "CurateOracle",
    "curate_pc",
    "proved_plan",
    "resolution",
]


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
