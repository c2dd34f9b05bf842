"""Plain PC, and PC with Laplace noise on every test."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Unpack

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import Knowledge, SearchKeywords
from dpcgd.graphs.pc_search import Answer, Oracle, Pair, Set, search
from dpcgd.graphs.release import Release
from dpcgd.privacy.account import Account
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.mechanisms import laplace
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run, open_run, run_without_privacy, takes_keywords
from dpcgd.statistics.many_tables import (
    are_allowed,
    are_determined,
    nearnesses_of,
    value_of,
    values_of,
)
from dpcgd.statistics.rank_statistics import KendallP, KendallZ
from dpcgd.statistics.statistic import Statistic, refusal

__all__ = ["LaplaceOracle", "PlainOracle", "laplace_pc", "pc"]

FIRST_SETS = 2
"""Sets of each pair that are looked at together at first; then twice as many."""

MOST_TESTS = 1 << 14
"""Tests that are looked at together."""


@dataclass
class PlainOracle:
    """Asks the data directly. Not private.

    Given z that determines x, a test of x and y has no degree of freedom. It tells nothing, and
    does not separate, if z and y pass for independent given x as well: which of x and z it is that
    y depends on cannot be told then.

    Parameters
    ----------
    tables : Tables
    statistic : Statistic
    """

    tables: Tables
    statistic: Statistic

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the statistic is below its critical value; None if there is no such test."""
        [(_, answer)] = self.answers({(x, y): [given]})
        return answer.by is not None if answer.tested else None

    def answers(self, sets: Mapping[Pair, Iterable[Set]]) -> Iterable[tuple[Pair, Answer]]:
        """Look at some sets of each pair, and at more of the pairs that none of them separates."""
        found = {pair: Answer(None, 0, False) for pair in sets}
        left, many = {pair: iter(those) for pair, those in sets.items()}, FIRST_SETS
        while left:
            few = {pair: list(islice(those, many)) for pair, those in left.items()}
            values = iter(self._values([(*pair, s) for pair in few for s in few[pair]], values_of))
            for pair, those in few.items():
                found[pair] = self._answer(found[pair], those, list(islice(values, len(those))))
                if len(those) < many or found[pair].by is not None:
                    del left[pair]
            many = max(1, min(2 * many, MOST_TESTS // max(1, len(left))))
        return found.items()

    def _answer(self, before, sets, values) -> Answer:
        """What these sets add to what the sets before them have told."""
        critical = self.statistic.critical
        at = next((i for i, value in enumerate(values) if value < critical), None)
        asked = before.asked + (len(sets) if at is None else at + 1)
        tested = before.tested or any(value < math.inf for value in values[:asked])
        return Answer(None if at is None else sets[at], asked, tested)

    def nearness(self, x: int, y: int, given: Set) -> float | None:
        """The test's p-value, or minus the statistic if that is of one scale for all tables."""
        return self.nearnesses([(x, y, given)])[0]

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> list[float | None]:
        """The nearness of each test; all sets are of one size."""
        return [None if near == math.inf else near for near in self._values(tests, nearnesses_of)]

    def _values(self, tests, of) -> list[float]:
        """What each test gives; infinite where it is not allowed or tells nothing."""
        if not tests:
            return []
        asked = np.array([(x, y, *given) for x, y, given in tests], np.int64)
        allowed, found = are_allowed(self.tables, asked), np.full(len(tests), math.inf)
        found[allowed] = of(self.statistic, self.tables, asked[allowed])
        for i in self._telling_nothing(asked[allowed]):
            found[allowed.nonzero()[0][i]] = math.inf
        return found.tolist()

    def _telling_nothing(self, asked) -> list[int]:
        """Tests given a variable that determines x or y, and changes places with it unnoticed."""
        determined, found = are_determined(self.tables, asked), []
        for i, at in np.argwhere(determined).tolist():
            of_x, of_y = asked[i].copy(), asked[i].copy()
            of_x[[0, 2 + at]], of_y[[1, 2 + at]] = of_x[[2 + at, 0]], of_y[[2 + at, 1]]
            swapped = values_of(self.statistic, self.tables, [of_x, of_y])
            if (swapped < self.statistic.critical).any():
                found.append(i)
        return found


@dataclass
class LaplaceOracle:
    """Adds Laplace noise to every test.

    Parameters
    ----------
    tables, statistic
    epsilon : float
        Of each test.
    margin : float
        The threshold is the statistic's critical value plus this many noise scales.
    account, noise
    label : str
        Of the tests' row in the ledger.
    """

    tables: Tables
    statistic: Statistic
    epsilon: float
    margin: float
    account: Account
    noise: Noise
    label: str = ""

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the noisy statistic is below the threshold; None if the test is refused."""
        tested = (x, y, *given)
        levels = self.tables.shape(tested)
        if refusal(self.tables.n, levels):
            return None
        sensitivity = self.statistic.sensitivity(self.tables.n, levels)
        noisy = laplace(
            lambda: value_of(self.statistic, self.tables, tested),
            sensitivity=sensitivity,
            epsilon=self.epsilon,
            account=self.account,
            noise=self.noise,
            label=self.label,
        )
        return self._is_below(noisy, sensitivity)

    def _is_below(self, noisy, sensitivity) -> bool:
        return noisy < self.statistic.critical + self.margin * sensitivity / self.epsilon


def pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
) -> Release:
    """The PC algorithm without privacy, its colliders decided by the clearest separation.

    A test given a copy of x, or what determines x, has no degree of freedom. It separates x from y
    only if the copy and y depend on each other given x. Copies thus stay joined to each other, and
    what depends on them to one of them at least.

    Parameters
    ----------
    data : Dataset or Counts
    statistic : Statistic, optional
        ``KendallP(alpha=0.1)`` unless given.
    max_order : int
        Largest conditioning set.
    knowledge : Knowledge, optional
        Forbidden and required arcs.

    Returns
    -------
    Release
        Its guarantee is "none".

    Notes
    -----
    What several variables determine together without being told by it, as two of `asia` do a third,
    passes for independent given all of them: such a distribution is not faithful (chapter 01).
    Given a near copy a test has few records to go by.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("earthquake", rng=np.random.default_rng(0))
    >>> print(pc(data).graph)
    Burglary -> Alarm
    Earthquake -> Alarm
    Alarm -> JohnCalls
    Alarm -> MaryCalls
    """
    run = run_without_privacy(data, statistic=statistic, max_order=max_order, knowledge=knowledge)
    oracle = PlainOracle(Tables(data), statistic or KendallP())
    found = search(oracle, data.variables, max_order=max_order, knowledge=knowledge, grading=oracle)
    return Release(found.graph, **run.receipt(), answers=found.answers)


@takes_keywords
def laplace_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    planned_tests: int | None = None,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """The PC algorithm with Laplace noise on every test.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon, delta : float
        The guarantee.
    allow_delta : bool
        Allow a delta of 1/n or more. Delta is the smaller of 1e-6 and 1/(10 n) unless given.
    rng : numpy.random.Generator, optional
        Seeded noise, for experiments. Unless given, noise is safe in floating point and has no
        seed, as a real release needs it.
    secure : bool
        Refuse a seed.
    statistic : Statistic, optional
        ``KendallZ()`` unless given.
    margin : float
        Noise scales between the statistic's critical value and the threshold.
    planned_tests : int, optional
        The budget is split evenly over this many tests; twice the number of pairs unless given.
    max_order, knowledge
        See :func:`pc`.
    rows_per_person : int
        Rows that one person may have: a public bound, such as
        :func:`~dpcgd.datasets.rows_per_person.check_rows_per_person` checks. The guarantee is for
        all of them together.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        If the budget, the noise source, the margin or the number of tests is unusable; nothing has
        run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: Laplace mechanisms through a
    zCDP filter. Chapter 02, :prf:ref:`thm-laplace` and :prf:ref:`thm-filter`.

    Notes
    -----
    Copies lose edges as in :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    """
    statistic = KendallZ() if statistic is None else statistic
    run = open_run(
        data,
        by=("laplace_pc", "thm-laplace", "thm-filter"),
        statistic=statistic,
        margin=margin,
        planned_tests=planned_tests,
        max_order=max_order,
        **shared,
    )
    tests = data.d * (data.d - 1) if planned_tests is None else planned_tests
    oracle = LaplaceOracle(
        Tables(data),
        statistic,
        epsilon=math.sqrt(2 * run.account.rho / tests) * (1 - ROOM),
        margin=margin,
        account=run.account,
        noise=run.noise,
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


def released_by(
    oracle: Oracle,
    run: Run,
    variables: Sequence[str],
    max_order: int,
    knowledge: Knowledge | None = None,
) -> Release:
    """What a private search finds, with the receipt of its run."""
    found = search(oracle, variables, max_order=max_order, knowledge=knowledge)
    return Release(found.graph, **run.receipt(), answers=found.answers)
