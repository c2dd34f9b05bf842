"""Plain PC, and PC with Laplace noise on every test."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import Knowledge, SearchKeywords
from dpcgd.graphs.pc_search import Ahead, AsksAhead, GradingOracle, Oracle, Set, search
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import ROOM
from dpcgd.privacy.filters import Account
from dpcgd.privacy.mechanisms import laplace
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import DEFAULTS, Run, open_run, run_without_privacy, takes_keywords
from dpcgd.statistics.many_tables import (
    are_determined,
    nearnesses_of,
    value_of,
    values_of,
    where_allowed,
)
from dpcgd.statistics.moment_matrices import FisherZ, fisher_z
from dpcgd.statistics.rank_statistics import KendallP, KendallZ
from dpcgd.statistics.statistic import Statistic, refusal

__all__ = ["CorrelationOracle", "LaplaceOracle", "PlainOracle", "TestKeywords", "laplace_pc", "pc"]


@dataclass
class PlainOracle(AsksAhead):
    """An oracle that tests the data without noise. Not private.

    If z determines x, a test of x and y given z has no degree of freedom. It does not separate if z
    and y also pass as independent given x: the data do not show then on which of x and z y depends.

    Parameters
    ----------
    tables : Tables
    statistic : Statistic
    """

    tables: Tables
    statistic: Statistic

    def __post_init__(self):
        critical = self.statistic.critical
        self._ahead = Ahead(partial(self._results, values_of), lambda value: value < critical)

    def separates(self, x: int, y: int, given: Set) -> bool | None:
        """Whether the statistic is below its critical value; None if there is no such test."""
        value = self._ahead.of((x, y, *given))
        return None if value == math.inf else value < self.statistic.critical

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> list[float | None]:
        """Each test's p-value, or minus the statistic if all tables have the same scale."""
        near = self._results(nearnesses_of, [(x, y, *given) for x, y, given in tests])
        return [None if value == math.inf else value for value in near]

    def _results(self, results_of, tests) -> list[float]:
        """The result of each test; infinite if the test is not allowed or is uninformative."""
        if not tests:
            return []
        results = where_allowed(results_of, self.statistic, self.tables, tests)
        allowed = np.flatnonzero(results != math.inf)
        results[allowed[self._telling_nothing(np.array(tests, np.int64)[allowed])]] = math.inf
        return results.tolist()

    def _telling_nothing(self, tested) -> np.ndarray:
        """Tests given a variable that determines x or y, and could take the place of x or y."""
        which, place = np.nonzero(are_determined(self.tables, tested))
        nothing = np.zeros(len(tested), bool)
        for end in (0, 1):
            turned, row = tested[which], np.arange(len(which))
            turned[row, end], turned[row, 2 + place] = tested[which, 2 + place], tested[which, end]
            below = values_of(self.statistic, self.tables, turned) < self.statistic.critical
            nothing[which[below]] = True
        return nothing


class CorrelationOracle(AsksAhead):
    """An oracle that tests partial correlations of numbers by Fisher's z. Not private.

    Parameters
    ----------
    data : Dataset
    test : FisherZ

    Raises
    ------
    ValueError
        If a variable is the same in all records.
    """

    def __init__(self, data: Any, test: FisherZ):
        numbers = data.scaled
        for name, range_of_one in zip(data.variables, np.ptp(numbers, axis=0), strict=True):
            if range_of_one == 0:
                raise ValueError(f"variable {name!r} is the same in all records; leave it out")
        self._critical, self._correlations, self._n = test.critical, np.corrcoef(numbers.T), data.n
        self._ahead = Ahead[float](self._log_p, lambda log_p: log_p > test.critical)

    def separates(self, x: int, y: int, given: Set) -> bool:
        """Whether the p-value is above the significance level."""
        return bool(self._ahead.of((x, y, *given)) > self._critical)

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> list[float]:
        """The logarithm of each test's p-value."""
        return self._log_p([(x, y, *given) for x, y, given in tests]) if tests else []

    def _log_p(self, tests: Sequence[Sequence[int]]) -> list[float]:
        return fisher_z(self._correlations, self._n, tests).tolist()


@dataclass
class LaplaceOracle:
    """An oracle that adds Laplace noise to every test.

    Parameters
    ----------
    tables, statistic
    epsilon : float
        Price of each test.
    margin : float
        The threshold is the statistic's critical value plus this many noise scales.
    account, noise
    label : str
        Label of the tests in the ledger.
    """

    tables: Tables
    statistic: Statistic
    epsilon: float
    margin: float
    account: Account
    noise: Noise
    label: str = ""

    def separates(self, x: int, y: int, given: Set) -> bool | None:
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
    statistic: Statistic | FisherZ | None = None,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
) -> Release:
    """The PC algorithm without privacy, its colliders decided by the clearest separation.

    A test of x and y given a copy of x, or given variables that determine x, has no degree of
    freedom. It separates x from y only if the copy and y are dependent given x. So copies stay
    joined to each other, and a variable that depends on them stays joined to at least one of them.

    Parameters
    ----------
    data : Dataset or Counts
    statistic : Statistic or FisherZ, optional
        The default is ``KendallP(alpha=0.1)``; for a table with numbers it is
        ``FisherZ(alpha=0.01)``, which uses the level numbers of categories as numbers.
    max_order : int
        Largest conditioning set.
    knowledge : Knowledge, optional
        Forbidden and required arcs.

    Returns
    -------
    Release
        Its guarantee is "none".

    Raises
    ------
    ValueError
        If the data or a setting is unusable. For a test of numbers also if a variable is the same
        in all records, a number may be missing, or the records are too few for `max_order`.

    Notes
    -----
    A variable may be a function of several others, as one variable of `asia` is of two others.
    Given all of them it then passes as independent of any variable: such a distribution is not
    faithful (chapter 01). Given a near copy, a test has few informative records.

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
    test = statistic or (FisherZ() if getattr(data, "numbers", ()) else KendallP())
    by_numbers = isinstance(test, FisherZ)
    settings = {"statistic": statistic, "max_order": max_order, "knowledge": knowledge}
    run = run_without_privacy(data, numbers=by_numbers, records=by_numbers, **settings)
    oracle: CorrelationOracle | PlainOracle
    if isinstance(test, FisherZ):
        oracle = CorrelationOracle(data, test)
    else:
        oracle = PlainOracle(Tables(data), test)
    return released_by(oracle, run, max_order, grading=oracle)


class TestKeywords(SearchKeywords, total=False):
    """The keywords of a private system that pays for each test."""

    statistic: Statistic | None
    margin: float
    max_order: int


@takes_keywords
def laplace_pc(
    data: Counts, *, planned_tests: int | None = None, **shared: Unpack[TestKeywords]
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
        :func:`~dpcgd.datasets.columns.check_rows_per_person` checks. The guarantee is for
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

    def oracle(run: Run, statistic: Statistic) -> LaplaceOracle:
        tests = data.d * (data.d - 1) if planned_tests is None else planned_tests
        epsilon = math.sqrt(2 * run.account.rho / tests) * (1 - ROOM)
        margin = run.terms.settings["margin"]
        return LaplaceOracle(Tables(data), statistic, epsilon, margin, run.account, run.noise)

    by = ("laplace_pc", "thm-laplace", "thm-filter")
    return private_search(data, by, oracle, planned_tests=planned_tests, **shared)


def private_search(
    data: Counts,
    by: tuple[str, ...],
    oracle_of: Callable[[Run, Statistic], Oracle],
    **settings: Any,
) -> Release:
    """Open a run, search with an oracle for which the run pays, and release the result.

    Parameters
    ----------
    data : Dataset or Counts
    by : tuple of str
        The system's name and its theorems.
    oracle_of : callable
        Function from the open run and the statistic (Kendall's z unless given) to the oracle.
    settings
        Settings that :func:`~dpcgd.privacy.run.open_run` checks and records.
    """
    settings = DEFAULTS | settings
    statistic = settings["statistic"] = settings.get("statistic") or KendallZ()
    run = open_run(data, by=by, **settings)
    return released_by(oracle_of(run, statistic), run, settings["max_order"])


def released_by(
    oracle: Oracle, run: Run, max_order: int, *, grading: GradingOracle | None = None
) -> Release:
    """A release: the result of a search, with the receipt of its run."""
    variables, knowledge = tuple(run.terms.domain), run.terms.settings.get("knowledge")
    result = search(oracle, variables, max_order=max_order, knowledge=knowledge, grading=grading)
    return Release(result.graph, **run.receipt(), answers=result.answers)
