"""Plain PC, and PC with Laplace noise on every test."""

import math
import time
from dataclasses import dataclass

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.dataset import Dataset
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import search
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import Spent
from dpcgd.privacy.ledger import Ledger
from dpcgd.privacy.mechanisms import (
    Account,
    laplace,
)
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import open_run
from dpcgd.statistics.rank_statistics import KendallP, KendallZ
from dpcgd.statistics.statistic import Statistic, refusal

__all__ = ["LaplaceOracle", "PlainOracle", "laplace_pc", "pc"]

MOST_TESTS = 1e50
"""A budget split over more tests would leave each of them next to nothing."""


@dataclass
class PlainOracle:
    """Asks the data directly. Not private."""

    tables: Tables
    statistic: Statistic

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Is the statistic below its critical value? A refused test separates nothing."""
        tested = (x, y, *given)
        if refusal(self.tables.n, self.tables.shape(tested)):
            return False
        return self.statistic.value(self.tables.counts(tested)) < self.statistic.critical


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
    """

    tables: Tables
    statistic: Statistic
    epsilon: float
    margin: float
    account: Account
    noise: Noise

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Is the noisy statistic below the threshold?"""
        tested = (x, y, *given)
        levels = self.tables.shape(tested)
        if refusal(self.tables.n, levels):
            return False
        sensitivity = self.statistic.sensitivity(self.tables.n, levels)
        noisy = laplace(
            lambda: self.statistic.value(self.tables.counts(tested)),
            sensitivity=sensitivity,
            epsilon=self.epsilon,
            account=self.account,
            noise=self.noise,
        )
        return self._is_below(noisy, sensitivity)

    def _is_below(self, noisy, sensitivity) -> bool:
        return noisy < self.statistic.critical + self.margin * sensitivity / self.epsilon


def pc(
    data: Dataset,
    *,
    statistic: Statistic | None = None,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
) -> Release:
    """The PC algorithm without privacy, its colliders decided by majority.

    Parameters
    ----------
    data : Dataset
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
    started = time.perf_counter()
    oracle = PlainOracle(Tables(data), statistic or KendallP())
    nothing = Ledger((), Spent(math.inf, 1.0), None, "no privacy")
    found = search(oracle, data.variables, max_order=max_order, knowledge=knowledge, majority=True)
    return _release(found, nothing, "none", started)


def laplace_pc(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    planned_tests: int | None = None,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
) -> Release:
    """The PC algorithm with Laplace noise on every test.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee.
    rng : numpy.random.Generator
        Seeded noise, for experiments.
    secure : bool
        Floating-point-safe noise without a seed, for real releases.
    statistic : Statistic, optional
        ``KendallZ()`` unless given.
    margin : float
        Noise scales between the statistic's critical value and the threshold.
    planned_tests : int, optional
        The budget is split evenly over this many tests; twice the number of pairs unless given.
    max_order, knowledge
        See :func:`pc`.

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
    (epsilon, delta)-differentially private for replace-one neighbours. Chapters 02 and 03.
    """
    started = time.perf_counter()
    check_margin(margin)
    account, noise = open_run(data, epsilon, delta, rng, secure)
    tests = data.d * (data.d - 1) if planned_tests is None else planned_tests
    if not 1 <= tests <= MOST_TESTS:
        raise ValueError(
            f"planned_tests must be at least 1 and at most {MOST_TESTS:g}, not {tests}"
        )
    oracle = LaplaceOracle(
        Tables(data),
        statistic or KendallZ(),
        epsilon=math.sqrt(2 * account.rho / tests) * (1 - 1e-9),  # room for rounding
        margin=margin,
        account=account,
        noise=noise,
    )
    return release_of(oracle, data, max_order, knowledge, started, secure)


def check_margin(margin: float):
    """Refuse what is no number of noise scales."""
    if not math.isfinite(margin):
        raise ValueError(f"margin must be a finite number of noise scales, not {margin!r}")


def release_of(oracle, data, max_order, knowledge, started, secure=False) -> Release:
    """Search with an oracle that pays; as good as its account and its statistic's sensitivity."""
    found = search(oracle, data.variables, max_order=max_order, knowledge=knowledge)
    proved = oracle.statistic.proved and oracle.account.proved
    guarantee = "proved" if proved else "claimed, not proved"
    return _release(found, oracle.account.ledger, guarantee, started, secure)


def _release(found, ledger, guarantee, started, secure=False) -> Release:
    seconds = None if secure else time.perf_counter() - started
    return Release(
        graph=found.graph,
        ledger=ledger,
        guarantee=guarantee,
        separating_sets=found.separating_sets,
        tests=found.tests,
        stopped_early=found.stopped_early,
        seconds=seconds,
    )
