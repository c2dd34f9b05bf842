"""SVT-PC and Priv-PC: the PC algorithm over above-threshold, with and without an examination."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

from dpcgd.constraint.laplace_pc import TestKeywords, private_search
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.pc_search import Ahead, AsksAhead
from dpcgd.graphs.release import Release
from dpcgd.privacy.filters import Account, Filter
from dpcgd.privacy.mechanisms import AboveThreshold, laplace
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run, takes_keywords
from dpcgd.statistics.many_tables import are_compiled, value_of, values_of, where_allowed
from dpcgd.statistics.statistic import Statistic, distance_below, refusal

__all__ = ["Round", "SieveOracle", "ThresholdOracle", "priv_pc", "share_of_the_rest", "svt_pc"]


class Round(NamedTuple):
    """The epsilons of one round: of the sieve, and of the examination."""

    sieve: float
    examination: float


@dataclass
class ThresholdOracle(AsksAhead):
    """An oracle by the sparse vector technique: above-threshold tests all, and each hit separates.

    Parameters
    ----------
    tables, statistic
    price : callable
        Function from the number of pairs separated so far to the epsilons of the next round. It may
        use earlier releases and the remaining budget, never the data.
    margin : float
        A threshold is the statistic's critical value plus this many noise scales: those of the
        sieve's threshold noise, or of the examination.
    tweak : float
        The shift of the sieve's threshold that makes it easier to pass, in units of the statistic.
    rate : float
        Fraction of the records that a sieve uses, drawn anew for each sieve.
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
        self._open = False  # whether there is a sieve
        self._separated = 0
        self._sampled = max(1, math.floor(self.rate * self.tables.n))
        self._ahead = Ahead(self._values, lambda value: value < self.statistic.critical)
        self._sensitivity = cache(self.statistic.sensitivity)
        self._is_compiled = are_compiled(self.statistic, self.tables)

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether the pair passes the sieve and the examination; None if the test is refused."""
        tested = (x, y, *given)
        levels = self.tables.shape(tested)
        if refusal(self._sampled, levels):
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
        sieve = partial(AboveThreshold, account=self.account, noise=self.noise)
        self._sieve = sieve(0.0, sensitivity=1.0, epsilon=self._round.sieve, rate=m / n)
        self._open = True
        self._sample = self.tables if m == n else self.tables.subsample(self.noise.choose(n, m))

    def _below(self, tables, tested, levels, margin, tweak=0.0) -> float:
        """Distance of the statistic below the threshold, in units of its sensitivity."""
        value, critical = self._value(tables, tested), self.statistic.critical + tweak
        sensitivity, reach = self._sensitivity(tables.n, levels), tables.n + self._sieve.scale
        return distance_below(critical, value, sensitivity, margin, reach)

    def _value(self, tables, tested) -> float:
        if tables is self.tables and self._is_compiled:
            return self._ahead.of(tested)
        return value_of(self.statistic, tables, tested)

    def _values(self, tests) -> list[float]:
        return where_allowed(values_of, self.statistic, self.tables, tests).tolist()


@dataclass
class SieveOracle(ThresholdOracle):
    """Sieve and examine: a Laplace test on all data examines each pair that passes the sieve.

    Parameters
    ----------
    tables, statistic, price, margin, tweak, rate, account, noise
        As for :class:`ThresholdOracle`.
    """

    def _confirms(self, tested, levels) -> bool:
        epsilon = self._round.examination
        below = partial(self._below, self.tables, tested, levels, self.margin / epsilon)
        noisy = laplace(
            below, sensitivity=1.0, epsilon=epsilon, account=self.account, noise=self.noise
        )
        return noisy >= 0


RoundPrice = Callable[[int], Round]


def share_of_the_rest(account: Filter, pairs: int, *, examined: bool = True) -> RoundPrice:
    """A price of each round such that the budget lasts while pairs are left.

    Notes
    -----
    Let L be the number of pairs not yet separated. A round with an examination may use 1 / (2 L +
    1) of the remaining rho, half of it for the sieve: most rounds separate a pair, some fail. A
    sieve without examination may use 1 / (L + 1): every hit separates a pair, and a last sieve has
    no hit. Prices depend only on released bits, which a filter allows.
    """
    parts = 2 if examined else 1

    def price(separated: int) -> Round:
        epsilon = math.sqrt(2 / parts * account.share(1 / (parts * (pairs - separated) + 1)))
        return Round(sieve=epsilon, examination=epsilon if examined else 0.0)

    return price


@takes_keywords
def svt_pc(data: Counts, *, rate: float = 1.0, **shared: Unpack[TestKeywords]) -> Release:
    """SVT-PC: the PC algorithm with above-threshold only; every hit separates a pair.

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
    >>> import numpy as np
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = svt_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    by = ("svt_pc", "thm-above-threshold", "thm-filter")
    return _by_rounds(ThresholdOracle, by, data, rate, **shared)


@takes_keywords
def priv_pc(data: Counts, *, rate: float = 1.0, **shared: Unpack[TestKeywords]) -> Release:
    """Priv-PC: the PC algorithm with sieve and examination.

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
        Fraction of the records that a sieve uses; below 1 the data set must hold records.
    max_order, knowledge
        See :func:`~dpcgd.constraint.laplace_pc.pc`.
    rows_per_person : int
        Rows that one person may have: a public bound, such as
        :func:`~dpcgd.datasets.columns.check_rows_per_person` checks. The guarantee is for
        all of them together.

    Returns
    -------
    Release
        Its guarantee is "proved", or "claimed, not proved" for a statistic without a proof.

    Raises
    ------
    ValueError
        If the data, the budget, the noise source or a setting is unusable; nothing has run then.
    ImportError
        If `rng` is left out and OpenDP is not installed.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: sensitivity of Kendall's z,
    above-threshold, Laplace and the zCDP filter, proved in chapters 02 to 04,
    :prf:ref:`thm-priv-pc`, and :prf:ref:`thm-subsampling` where `rate` is below 1.

    Notes
    -----
    Wang, Pang and Song (2020), algorithm 2.

    Given a copy of a column, or columns that determine it, the column is constant in every stratum,
    and a test finds independence. So copies lose their edges to each other and to the variables
    that depend on them. A search for copies would cost budget. The report names pairs of variables
    that look like copies; leave out a column that is a copy by public facts.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = priv_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    return _by_rounds(SieveOracle, ("priv_pc", "thm-priv-pc"), data, rate, **shared)


def _by_rounds(
    kind: type[ThresholdOracle], by: tuple[str, ...], data: Counts, rate: float, **shared: Any
) -> Release:
    """A search by rounds of sieves; a sieve uses a part of the records if its rate is below 1."""

    def oracle(run: Run, statistic: Statistic) -> ThresholdOracle:
        pairs, examined = math.comb(data.d, 2), kind is SieveOracle
        price = share_of_the_rest(run.account, pairs, examined=examined)
        margin = run.terms.settings["margin"]
        return kind(Tables(data), statistic, price, margin, 0.0, rate, run.account, run.noise)

    sampling = () if rate == 1 else ("thm-subsampling",)
    return private_search(data, (*by, *sampling), oracle, records=rate != 1, rate=rate, **shared)
