"""Bugs planted on purpose, each beside the correct code: an audit that misses one has no teeth.

Every mutant is a mistake that somebody has published or could make in an afternoon. The mechanisms
run on data sets that are a single number or a list of query values, moved by one person.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpcgd.privacy.budget import Budget
from dpcgd.privacy.events import GaussianEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import (
    AboveThreshold,
    exponential,
    laplace,
    propose_test_release,
)
from dpcgd.privacy.noise import SeededNoise
from dpcgd.privacy.odometer import Odometer
from dpcgd.statistics.rank_statistics import KendallZ, kendall_z
from dpcgd.statistics.statistic import Statistic
from dpcgd_book.attacks.audit import Witness, empirical_epsilon
from dpcgd_book.attacks.sensitivity_attack import sensitivity_search

__all__ = ["MUTANTS", "Mutant"]

CONFIDENCE = 1 - 1e-9


EPSILON = 1.0


@dataclass(frozen=True)
class Mutant:
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


def _audited(mechanism, rng, *, data, neighbour, claim=EPSILON, delta=0.0) -> bool:
    """Whether watching it on two neighbours shows more than it claims."""
    shown = empirical_epsilon(
        partial(mechanism, noise=SeededNoise(rng)),
        data,
        neighbour,
        delta=delta,
        confidence=CONFIDENCE,
    )
    return shown > claim


def _searched(statistic, rng, *, n=2000, levels=(2, 3, 2)) -> bool:
    """Whether one person moves it by more than its sensitivity says."""
    worst = sensitivity_search(statistic, n, levels, pairs=30_000, rng=rng)
    return worst.change > statistic.sensitivity(n, levels) * (1 + 1e-9)


def _witnessed(run, rng) -> bool:
    """Whether it uses noise or a sub-sample that nobody paid for."""
    witness = Witness(Filter(Budget(10.0, 1e-6)), SeededNoise(rng))
    run(witness)
    return bool(witness.unpaid)


def _nobody_counts():
    return Odometer(1e-6)


def _laplace(data, noise, *, epsilon=EPSILON):
    return laplace(
        lambda: data, sensitivity=1.0, epsilon=epsilon, account=_nobody_counts(), noise=noise
    )


def _gaussian_of_laplace_scale(data, noise):
    return noise.gaussian(1.0, GaussianEvent("Gaussian", 1 / EPSILON))(data)


def _above_threshold(data, noise, *, cls=AboveThreshold, many=False):
    """Where the first hit is; or, for a sieve that goes on, which queries hit."""
    sieve = cls(0.0, sensitivity=1.0, epsilon=EPSILON, account=_nobody_counts(), noise=noise)
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
    return exponential(
        lambda: np.array(data),
        sensitivity=1.0,
        epsilon=epsilon,
        account=_nobody_counts(),
        noise=noise,
    )


DELTA = 1e-3


def _tested_release(data, noise, *, test=True):
    """Release a query that one person moves by 100, proposing 1: the test must refuse."""
    settings = {"proposed": 1.0, "epsilon": EPSILON, "delta": DELTA}
    account = Filter(Budget(20.0, 0.1), reserved=DELTA)
    distance = 0.0 if test else math.inf
    return propose_test_release(
        lambda: data, lambda: distance, **settings, account=account, noise=noise
    )


class _AddRemoveBound(KendallZ):
    """The bound of Priv-PC's theorem 3, used for a replaced record."""

    def sensitivity(self, n, levels):
        return 4.5 / math.sqrt(n)


class _SkippedStrata(KendallZ):
    """Leaves out strata in which x or y is constant, as the published code does."""

    def value(self, table):
        table = table.reshape(*table.shape[:2], -1)
        varied = [np.count_nonzero(table.sum(axis=axis), axis=0) > 1 for axis in (0, 1)]
        return abs(kendall_z(table[:, :, varied[0] & varied[1]]))


def _sieve_run(account, *, last_is_paid=True, samples=4):
    """Three sieves that fire, with their examinations, and one that never does."""
    settings = {"sensitivity": 1.0, "epsilon": 0.1, "noise": account}
    for i, answer in enumerate([1e6, 1e6, 1e6, -1e6]):
        paying = account if i < 3 or last_is_paid else _nobody_counts()
        sieve = AboveThreshold(0.0, **settings, account=paying, rate=0.1)
        if i < samples:
            account.choose(1000, 100)
        if sieve.above(partial(float, answer)):
            laplace(lambda: 1e6, **settings, account=account)


_ONE_MOVED = {"data": 0.0, "neighbour": 1.0}


_TURNED = {"data": [1.0] * 40 + [0.0] * 40, "neighbour": [0.0] * 40 + [1.0] * 40}


MUTANTS = (
    Mutant(
        "Laplace noise scale halved",
        "empirical epsilon",
        partial(_audited, **_ONE_MOVED),
        broken=partial(_laplace, epsilon=2 * EPSILON),
        correct=_laplace,
    ),
    Mutant(
        "Gaussian noise of Laplace's scale",
        "empirical epsilon",
        partial(_audited, **_ONE_MOVED),
        broken=_gaussian_of_laplace_scale,
        correct=_laplace,
    ),
    Mutant(
        "threshold not renewed after a hit",
        "empirical epsilon",
        partial(_audited, **_TURNED),
        broken=partial(_above_threshold, cls=_NeverRenewed, many=True),
        correct=_above_threshold,
    ),
    Mutant(
        "query noise missing in the sieve",
        "empirical epsilon",
        partial(_audited, data=[0.0, 1.0], neighbour=[1.0, 0.0]),
        broken=partial(_above_threshold, cls=_NoQueryNoise),
        correct=_above_threshold,
    ),
    Mutant(
        "sub-sample reused after a hit",
        "witness",
        _witnessed,
        broken=partial(_sieve_run, samples=1),
        correct=_sieve_run,
    ),
    Mutant(
        "exponential mechanism without the 2",
        "empirical epsilon",
        partial(_audited, data=[1.0] + [0.0] * 9, neighbour=[0.0] + [1.0] * 9),
        broken=partial(_chosen, epsilon=2 * EPSILON),
        correct=_chosen,
    ),
    Mutant(
        "release without its test",
        "empirical epsilon",
        partial(_audited, data=0.0, neighbour=100.0, claim=2 * EPSILON, delta=DELTA),
        broken=partial(_tested_release, test=False),
        correct=_tested_release,
    ),
    Mutant(
        "sensitivity 9/2 for a replaced record",
        "sensitivity search",
        _searched,
        broken=_AddRemoveBound(),
        correct=KendallZ(),
    ),
    Mutant(
        "constant strata skipped",
        "sensitivity search",
        _searched,
        broken=_SkippedStrata(),
        correct=KendallZ(),
    ),
    Mutant(
        "last sieve not charged",
        "witness",
        _witnessed,
        broken=partial(_sieve_run, last_is_paid=False),
        correct=_sieve_run,
    ),
)
"""Ten mistakes and the attack that has to find each."""
