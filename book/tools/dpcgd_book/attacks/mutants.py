"""Bugs planted on purpose, each beside the correct code: an audit that misses one has no teeth.

Every mutant is a mistake that somebody has published or could make in an afternoon. The mechanisms
run on data sets that are a single number or a list of query values, moved by one person.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpcgd.privacy import events, filters
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.mechanisms import AboveThreshold, exponential, laplace, propose_test_release
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.rank_statistics import KendallZ, kendall_z
from dpcgd.statistics.statistic import Statistic
from dpcgd_book.attacks.audit import Recorder, empirical_epsilon
from dpcgd_book.attacks.replay import Divergence, _draws, _Replayed, worst
from dpcgd_book.attacks.sensitivity_attack import sensitivity_search

__all__ = ["MUTANTS", "Mutant"]

EPSILON = 1.0


class Mutant(NamedTuple):
    """A planted bug.

    Attributes
    ----------
    name : str
    found_by : str
        Which attack is to find it.
    flagged : callable
        (code, rng) -> bool, the attack. Correct code is flagged with probability below 1e-9.
    broken, correct
        The code with the bug and without.
    """

    name: str
    found_by: str
    flagged: Callable[[Any, np.random.Generator], bool]
    broken: Callable | Statistic
    correct: Callable | Statistic


def _audited(name, correct, data, neighbour, *, claim=EPSILON, delta=0.0, **bug) -> Mutant:
    """A bug that shows when it is watched on two neighbours: more than it claims."""

    def flagged(mechanism, rng):
        watched = partial(mechanism, noise=SeededNoise(rng))
        return empirical_epsilon(watched, data, neighbour, delta=delta) > claim

    return Mutant(name, "empirical epsilon", flagged, partial(correct, **bug), correct)


def _searched(name, broken, n=2000, levels=(2, 3, 2)) -> Mutant:
    """A bug that shows when one person moves a statistic by more than its sensitivity says."""

    def flagged(statistic, rng):
        worst = sensitivity_search(statistic, n, levels, pairs=30_000, rng=rng)
        return worst.change > statistic.sensitivity(n, levels) * (1 + 1e-9)

    return Mutant(name, "sensitivity search", flagged, broken, KendallZ())


def _replayed(name, **bug) -> Mutant:
    """A bug that shows by noise, or a sub-sample, that nobody paid for, in a replay."""

    def flagged(run, rng):
        account, noise = filters.Filter(Budget(20.0, 1e-6)), SeededNoise(rng)
        first = Recorder(account, noise)
        run(first, 0.0)
        second = _Replayed(account, noise, first.steps)
        run(second, 1.0)
        try:
            return worst([*_draws(first.steps, second.steps)]) > 1
        except Divergence:
            return True

    return Mutant(name, "replay", flagged, partial(_sieve_run, **bug), _sieve_run)


def _free(epsilon=EPSILON) -> dict:
    """The settings of a mechanism that nobody counts."""
    return {"sensitivity": 1.0, "epsilon": epsilon, "account": filters.NoPrivacy()}


def _noisy(data, noise, *, epsilon=EPSILON, gaussian=False):
    if gaussian:
        return noise.gaussian(1.0, events.GaussianEvent("Gaussian", 1 / EPSILON))(data)
    return laplace(lambda: data, noise=noise, **_free(epsilon))


def _sieve(data, noise, *, cls=AboveThreshold, many=False):
    """Where the first hit is; or, for a sieve that goes on, which queries hit."""
    sieve = cls(0.0, noise=noise, **_free())
    if many:
        hits = [sieve.above(lambda q=q: q) for q in data]
        half = len(hits) // 2
        return sum(hits[:half]) - sum(hits[half:])
    return next((i for i, q in enumerate(data) if sieve.above(lambda q=q: q)), None)


class _NeverRenewed(AboveThreshold):
    """Answers on with the threshold that has fired."""

    def above(self, query):
        self._fired = False
        return super().above(query)


class _NoQueryNoise(AboveThreshold):
    """Compares the query itself with the noisy threshold."""

    def above(self, query):
        self._fired = query() >= self._threshold
        return self._fired


def _chosen(data, noise, *, epsilon=EPSILON):
    """Which candidate wins."""
    return exponential(lambda: np.array(data), noise=noise, **_free(epsilon))


DELTA = 1e-3


def _tested_release(data, noise, *, test=True):
    """Release a query that one person moves by 100, proposing 1: the test must refuse."""
    settings = {"proposed": 1.0, "epsilon": EPSILON, "delta": DELTA, "noise": noise}
    account = filters.Filter(Budget(20.0, 0.1), reserved=DELTA)
    distance = 0.0 if test else np.inf
    return propose_test_release(lambda: data, lambda: distance, account=account, **settings)


class _AddRemoveBound(KendallZ):
    """The bound of Priv-PC's theorem 3, used for a replaced record."""

    def sensitivity(self, n, levels):
        return 4.5 / np.sqrt(n)


class _SkippedStrata(KendallZ):
    """Leaves out strata in which x or y is constant, as the published code does."""

    def value(self, table):
        table = table.reshape(*table.shape[:2], -1)
        varied = [np.count_nonzero(table.sum(axis=axis), axis=0) > 1 for axis in (0, 1)]
        return abs(kendall_z(table[:, :, varied[0] & varied[1]]))


def _sieve_run(account, moved, *, last_is_paid=True, samples=4):
    """Three sieves that fire, with their examinations, and one that never does.

    On a neighbour all answers have moved.
    """
    settings = {"sensitivity": 1.0, "epsilon": 0.1, "noise": account}
    for i, answer in enumerate([1e6, 1e6, 1e6, -1e6]):
        paying = account if i < 3 or last_is_paid else filters.NoPrivacy()
        sieve = AboveThreshold(0.0, **settings, account=paying, rate=0.1)
        if i < samples:
            account.choose(1000, 100)
        if sieve.above(partial(float, answer + moved)):
            laplace(lambda: 1e6, **settings, account=account)


_TEN = [1.0] + [0.0] * 9, [0.0] + [1.0] * 9
_ENDS = [1.0] * 40 + [0.0] * 40, [0.0] * 40 + [1.0] * 40
_UNTESTED: dict[str, Any] = {"claim": 2 * EPSILON, "delta": DELTA, "test": False}

MUTANTS = (
    _audited("Laplace noise scale halved", _noisy, 0.0, 1.0, epsilon=2 * EPSILON),
    _audited("Gaussian noise of Laplace's scale", _noisy, 0.0, 1.0, gaussian=True),
    _audited("threshold not renewed after a hit", _sieve, *_ENDS, cls=_NeverRenewed, many=True),
    _audited("query noise missing in the sieve", _sieve, [0, 1], [1, 0], cls=_NoQueryNoise),
    _replayed("sub-sample reused after a hit", samples=1),
    _audited("exponential mechanism without the 2", _chosen, *_TEN, epsilon=2 * EPSILON),
    _audited("release without its test", _tested_release, 0.0, 100.0, **_UNTESTED),
    _searched("sensitivity 9/2 for a replaced record", _AddRemoveBound()),
    _searched("constant strata skipped", _SkippedStrata()),
    _replayed("last sieve not charged", last_is_paid=False),
)
"""Ten mistakes and the attack that has to find each."""
