"""SVT-PC and Priv-PC: the PC algorithm over above-threshold, with and without an examination."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar, NamedTuple, Unpack

import numpy as np
from scipy.optimize import minimize_scalar

from dpcgd.constraint.laplace_pc import released_by
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.ahead import Ahead
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.graphs.release import Release
from dpcgd.privacy.account import Account
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import (
    AboveThreshold,
    before_amplification,
    laplace,
)
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.odometer import Odometer
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.statistics.many_tables import are_allowed, are_compiled, value_of, values_of
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanP
from dpcgd.statistics.statistic import Statistic, in_sensitivities, normal_tail, refusal

__all__ = [
    "PublishedKendallP",
    "PublishedSpearmanP",
    "Round",
    "SieveOracle",
    "ThresholdOracle",
    "hits_of_the_rest",
    "optimal_rate",
    "priv_pc",
    "published_priv_pc",
    "published_svt_pc",
    "share_of_the_rest",
    "svt_pc",
]

PUBLISHED_TWEAK = 0.02
"""How far the published code lowers the sieve's threshold on the p-value."""


class Round(NamedTuple):
    """What one round of sieve and examination may spend."""

    sieve: float
    examination: float


@dataclass
class ThresholdOracle:
    """The sparse vector technique: an above-threshold asks all, and every hit separates.

    Parameters
    ----------
    tables, statistic
    price : callable
        From the number of pairs separated so far to the epsilons of the next round. It may use what
        has been released and what is left, never the data.
    margin : float
        A threshold is the statistic's critical value plus this many noise scales: of the sieve's
        own threshold, or of the examination.
    tweak : float
        How much easier the sieve is to pass, in units of the statistic.
    rate : float
        Fraction of the records that a sieve looks at, drawn anew for each.
    account, noise
    """

    tables: Tables
    statistic: Statistic
    price: Callable[[int], Round]
    margin: float
    tweak: float
    rate: float
    account: Account
    noise: Noise

    def __post_init__(self):
        self._open = False  # is there a sieve?
        self._separated = 0
        self._sampled = max(1, math.floor(self.rate * self.tables.n))
        critical = self.statistic.critical
        self._ahead = Ahead(self._values, lambda value: value < critical)
        self._sensitivity = cache(self.statistic.sensitivity)
        self._refusal = cache(partial(refusal, self._sampled))
        self._is_compiled = are_compiled(self.statistic, self.tables)

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked: what a paid query looks at is worked out together."""
        self._ahead.begin_order(order, joined, to_test)

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the pair passes the sieve and what follows it; None if the test is refused."""
        tested = (x, y, *given)
        levels = self.tables.shape(tested)
        if self._refusal(levels):
            return None
        if not self._open:
            self._renew()
        sample, margin = self._sample, self.margin * self._sieve.scale
        if not self._sieve.above(lambda: self._below(sample, tested, levels, margin, self.tweak)):
            return False
        self._open = False
        independent = self._confirms(tested, levels)
        self._separated += independent
        return independent

    def _confirms(self, tested, levels) -> bool:
        return True

    def _renew(self):
        n, m = self.tables.n, self._sampled
        self._round = self.price(self._separated)
        self._sieve = AboveThreshold(
            0.0,
            sensitivity=1.0,
            epsilon=self._round.sieve,
            rate=m / n,
            account=self.account,
            noise=self.noise,
        )
        self._open = True
        self._sample = self.tables if m == n else self.tables.subsample(self.noise.choose(n, m))

    def _below(self, tables, tested, levels, margin, tweak=0.0) -> float:
        """How far the statistic is below the threshold, in units of its sensitivity."""
        sensitivity = self._sensitivity(tables.n, levels)
        distance = self.statistic.critical + tweak - self._value(tables, tested)
        return in_sensitivities(distance, sensitivity) + margin

    def _value(self, tables, tested) -> float:
        if tables is self.tables and self._is_compiled:
            return self._ahead.of(tested)
        return value_of(self.statistic, tables, tested)

    def _values(self, tests) -> list[float]:
        """Of all records; not a number where public facts do not allow a test."""
        asked = np.array(tests, np.int64)
        allowed, found = are_allowed(self.tables, asked), np.full(len(asked), math.nan)
        found[allowed] = values_of(self.statistic, self.tables, asked[allowed])
        return found.tolist()


@dataclass
class SieveOracle(ThresholdOracle):
    """Sieve and examine: what the above-threshold lets pass, a Laplace test on all data confirms.

    Parameters
    ----------
    tables, statistic, price, margin, tweak, rate, account, noise
        As for :class:`ThresholdOracle`.
    """

    def _confirms(self, tested, levels) -> bool:
        margin = self.margin / self._round.examination
        noisy = laplace(
            lambda: self._below(self.tables, tested, levels, margin),
            sensitivity=1.0,
            epsilon=self._round.examination,
            account=self.account,
            noise=self.noise,
        )
        return noisy >= 0


RoundPrice = Callable[[int], Round]


def hits_of_the_rest(account: Filter, pairs: int) -> RoundPrice:
    """Price each sieve without examination so that the budget lasts as long as there are pairs.

    Notes
    -----
    A sieve may use 1 / (L + 1) of the remaining rho, L the pairs not yet separated: every hit
    separates one, and a last sieve finds no more. Prices follow from released bits, as a filter
    allows.
    """

    def price(separated: int) -> Round:
        return Round(math.sqrt(2 * account.share(1 / (pairs - separated + 1))), 0.0)

    return price


def share_of_the_rest(account: Filter, pairs: int) -> RoundPrice:
    """Price each round so that the budget lasts as long as there are pairs left.

    Notes
    -----
    A round may use 1 / (2 L + 1) of the remaining rho, L the pairs not yet separated: most rounds
    separate a pair, some fail. Sieve and examination cost the same. Prices follow from released
    bits, as a filter allows.
    """

    def price(separated: int) -> Round:
        each = math.sqrt(account.share(1 / (2 * (pairs - separated) + 1)))
        return Round(sieve=each, examination=each)

    return price


class _PublishedBound:
    """A p-value's change from z = 0 to z = constant / sqrt(n), whatever the levels."""

    proved: ClassVar[bool] = False
    constant: ClassVar[float]

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """As published; not a bound."""
        return 0.5 - normal_tail(self.constant / math.sqrt(n))


class PublishedKendallP(_PublishedBound, KendallP):
    """Kendall's p-value with the sensitivity of Priv-PC's theorem 3, which is too small.

    Privacy
    -------
    None proved: 9/2 / sqrt(n) in z holds for adding a record near z = 0 only. Chapter 03.
    """

    constant: ClassVar[float] = 4.5


class PublishedSpearmanP(_PublishedBound, SpearmanP):
    """Spearman's p-value with the sensitivity that follows from a published change of 30/n of rho.

    Privacy
    -------
    None claimed by Priv-PC in the part of it that is public: Kusner et al. (2016) print 30/n for
    one stratum. Chapter 03 proves less for one stratum, and how much it takes for several.
    """

    constant: ClassVar[float] = 30.0


@takes_keywords
def svt_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    rate: float = 1.0,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """SVT-PC: the PC algorithm over above-threshold alone; every hit separates.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, statistic, margin, rate
        As for :func:`priv_pc`.
    max_order, knowledge, rows_per_person
        As for :func:`priv_pc`.

    Returns
    -------
    Release

    Raises
    ------
    ValueError
        As :func:`priv_pc`.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours, as :func:`priv_pc` but
    without examinations. Chapter 02, :prf:ref:`thm-above-threshold` and :prf:ref:`thm-filter`, and
    :prf:ref:`thm-subsampling` where `rate` is below 1.

    Notes
    -----
    Wang, Pang and Song (2020), section 4. Copies lose edges as in :func:`priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = svt_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    statistic = KendallZ() if statistic is None else statistic
    run = open_run(
        data,
        by=("svt_pc", "thm-above-threshold", "thm-filter", *_sampling(rate)),
        records=rate != 1,
        statistic=statistic,
        margin=margin,
        rate=rate,
        max_order=max_order,
        **shared,
    )
    price = hits_of_the_rest(run.account, math.comb(data.d, 2))
    oracle = ThresholdOracle(
        Tables(data), statistic, price, margin, 0.0, rate, run.account, run.noise
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


@takes_keywords
def priv_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    rate: float = 1.0,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """Priv-PC: the PC algorithm over sieve-and-examine.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon, delta : float
        The guarantee of the whole run.
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
        Noise scales between the statistic's critical value and the thresholds.
    rate : float
        Fraction of the records that a sieve looks at; below 1 records must be at hand.
    max_order, knowledge
        See :func:`~dpcgd.constraint.laplace_pc.pc`.
    rows_per_person : int
        Rows that one person may have: a public bound, such as
        :func:`~dpcgd.datasets.rows_per_person.check_rows_per_person` checks. The guarantee is for
        all of them together.

    Returns
    -------
    Release
        Its guarantee is "proved", or "claimed, not proved" for a statistic without a proof.

    Raises
    ------
    ValueError
        If the data, the budget, the noise source or a setting is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: sensitivity of Kendall's z,
    above-threshold, Laplace and the zCDP filter, proved in chapters 02 to 04,
    :prf:ref:`thm-priv-pc`, and :prf:ref:`thm-subsampling` where `rate` is below 1.

    Notes
    -----
    Wang, Pang and Song (2020), algorithm 2.

    Given a copy of a column, or what determines it, every stratum is constant, and a test finds
    independence: copies lose their edges, to each other and to what depends on them. To look for
    copies would cost budget. The report names variables that two others part in each other's place;
    leave out a column that public facts tell to be a copy.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = priv_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    statistic = KendallZ() if statistic is None else statistic
    run = open_run(
        data,
        by=("priv_pc", "thm-priv-pc", *_sampling(rate)),
        records=rate != 1,
        statistic=statistic,
        margin=margin,
        rate=rate,
        max_order=max_order,
        **shared,
    )
    price = share_of_the_rest(run.account, math.comb(data.d, 2))
    oracle = SieveOracle(Tables(data), statistic, price, margin, 0.0, rate, run.account, run.noise)
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


def _sampling(rate: float) -> tuple[str, ...]:
    """The theorem that a sieve on a part of the records needs."""
    return () if rate == 1 else ("thm-subsampling",)


@takes_keywords
def published_svt_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    rate: float = 1.0,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """SVT-PC as published: p-values, their claimed sensitivity, an odometer.

    Parameters
    ----------
    epsilon : float
        Of one round.
    data, delta, allow_delta, rng, statistic, rate, max_order, knowledge
        As for :func:`published_priv_pc`.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapters 03 and 04.
    """
    run = open_run(
        data,
        account=Odometer.for_budget,
        records=rate != 1,
        statistic=statistic,
        rate=rate,
        max_order=max_order,
        **shared,
    )
    each = Round(shared["epsilon"], 0.0)
    statistic = statistic or PublishedKendallP()
    oracle = ThresholdOracle(
        Tables(data), statistic, lambda _: each, 0.0, 0.0, rate, run.account, run.noise
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


@takes_keywords
def published_priv_pc(
    data: Counts,
    *,
    statistic: Statistic | None = None,
    rate: float | None = None,
    max_order: int = 3,
    **shared: Unpack[SearchKeywords],
) -> Release:
    """Priv-PC as published: p-values, their claimed sensitivity and thresholds, an odometer.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon : float
        Of one round of sieve and examination.
    delta : float
        Of the reading afterwards.
    allow_delta : bool
        As for :func:`priv_pc`.
    rng : numpy.random.Generator
    statistic : Statistic, optional
        ``PublishedKendallP()`` unless given.
    rate : float, optional
        Fraction of the records that a sieve looks at; by :func:`optimal_rate` unless given.
    max_order, knowledge
        See :func:`~dpcgd.constraint.laplace_pc.pc`.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Raises
    ------
    ValueError
        As :func:`priv_pc`.

    Privacy
    -------
    None proved: the sensitivity is too small and the reading is no guarantee, chapters 03 and 04.

    Notes
    -----
    Wang, Pang and Song (2020), algorithm 2, with the settings of its code.
    """
    run = open_run(
        data,
        account=Odometer.for_budget,
        records=rate != 1,
        statistic=statistic,
        rate=rate,
        max_order=max_order,
        **shared,
    )
    half = Round(shared["epsilon"] / 2, shared["epsilon"] / 2)
    statistic, tweak = statistic or PublishedKendallP(), PUBLISHED_TWEAK
    rate = optimal_rate(half.sieve) if rate is None else rate
    oracle = SieveOracle(
        Tables(data), statistic, lambda _: half, 0.0, tweak, rate, run.account, run.noise
    )
    return released_by(oracle, run, data.variables, max_order, shared.get("knowledge"))


def optimal_rate(epsilon: float) -> float:
    """Sampling rate with the least sieve noise, if sensitivity grows as the root of its inverse.

    Parameters
    ----------
    epsilon : float
        Of the sieve, after amplification.

    Returns
    -------
    float
        Minimises sqrt(1/r) / ln(1 + (e^epsilon - 1) / r) over 1/20 <= r <= 1 (Priv-PC, section
        3.2).

    Raises
    ------
    ValueError
        If epsilon is not positive.

    Examples
    --------
    >>> optimal_rate(0.5), round(optimal_rate(2.0), 3)
    (0.165..., 1.0)
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, not {epsilon!r}")
    epsilon = max(epsilon, 1e-100)  # the best rate no longer depends on it

    def noise(rate):
        return math.sqrt(1 / rate) / before_amplification(epsilon, rate)

    best = minimize_scalar(noise, bounds=(1 / 20, 1), method="bounded", options={"xatol": 1e-10})
    return min((float(best.x), 1.0), key=noise)
