"""The probability that a test on released tables finds a dependence of a given size."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr, chndtrinc, ndtr, ndtri

from dpcgd.moments.interactions import MeasuredMarginals
from dpcgd.reading.association import Association, association

__all__ = ["Detection", "Population"]

SMALL = 0.01
"""A small correlation; results for other correlations follow from the result for this one."""

LARGE = 1e6
"""The root of a larger chi-squared statistic is treated as normal, with an error of a millionth."""

LARGEST_RELATED = 0.9
"""Groups correlate with the third variable by at most this share of the largest correlation."""


class Population:
    """Expected counts of a table, with the methods of a data set's tables.

    Parameters
    ----------
    n : int
        Number of records.
    table : array
        Probabilities, with one axis for each variable.

    Examples
    --------
    >>> Population(100, np.array([[0.3, 0.1], [0.2, 0.4]])).counts((1,)).round(9)
    array([50., 50.])
    """

    def __init__(self, n: int, table: np.ndarray):
        self.n, self.table, self.levels = n, table, table.shape

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Expected counts of these variables, axes in increasing order."""
        others = tuple(v for v in range(self.table.ndim) if v not in variables)
        return self.n * self.table.sum(axis=others)

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Expected counts of several tables."""
        return list(map(self.counts, questions))

    def marginals(self, deviation: float) -> MeasuredMarginals:
        """The exact moments of all pairs, with the deviation of a noise that is not added.

        Parameters
        ----------
        deviation : float
            Deviation of the noise of a released number, as a share of the records.
        """

        def measure(query, *, sensitivity, rho):
            return query(), deviation * self.n

        marginals = MeasuredMarginals(self, measure)  # type: ignore[arg-type]
        marginals.measure_pairs(1.0)
        return marginals


@dataclass(frozen=True)
class Detection:
    """A test of two variables, given one more or none, in an assumed population.

    The levels of each variable form two groups, as even as the order of the levels allows. The
    groups of the two tested variables have the correlation r; given a third variable, in each of
    its strata. The groups of the third variable have the correlation `related` with those of the
    other two. Within groups the levels are independent of everything else.

    Parameters
    ----------
    n : int
        Number of records.
    shares : sequence of sequence of float
        For two variables or three, the share of each level.
    deviation : float
        Deviation of the noise of a released number, as a share of the records.
    alpha : float
        Significance level of the test.
    related : float
        Correlation of the third variable's groups with the others; at most nine tenths of the
        largest correlation that the margins allow.
    least_effect : float
        The least squared partial correlation that counts as found, given a third variable.
    least_share : float
        The least effect as a share of the pair's squared correlation given none.
    levels : tuple of int
        Numbers of levels of the tested variables, if `shares` are those of several levels together.

    Notes
    -----
    Take the statistic that :func:`~dpcgd.reading.association.association` gives for the exact
    moments of the population, with the noise of a run. It is the noncentrality of the chi-squared
    distribution of the test's statistic in this run. It grows with the square of r, as the effect
    does; so the least effect gives a least statistic. Given none, the correlation of the groups is
    a constant, from the third variable, plus a multiple of r. Its noise is ignored beside the noise
    of the test given the third variable. Chapter 11 has the test's variance.

    Examples
    --------
    >>> test = Detection(10_000, ((0.5, 0.5), (0.5, 0.5)), 0.002, 0.01)
    >>> r = test.smallest(0.8)
    >>> round(r, 4), round(test.power(r), 4), round(test.points(r), 2)
    (0.0368, 0.8, 3.68)
    """

    n: int
    shares: tuple[tuple[float, ...], ...]
    deviation: float
    alpha: float
    related: float = 0.0
    least_effect: float = 0.0
    least_share: float = 0.0
    levels: tuple[int, ...] = ()

    def power(self, r: float) -> float:
        """Probability that the test finds a correlation of r."""
        if not self.freedom:
            return 0.0
        return _exceeds(self._least(r), self.freedom, self._per_square * r**2)

    def smallest(self, power: float) -> float:
        """Smallest correlation found with this probability; not a number if there is none."""
        if not self.freedom:
            return math.nan
        noncentrality = _noncentrality(self._least(0.0), self.freedom, power)
        if not noncentrality <= self._per_square * self.largest**2:
            return math.nan
        r = math.sqrt(noncentrality / self._per_square)
        if self._least(r) == self._least(0.0) or self.power(r) >= power:
            return r
        if self.power(self.largest) < power:
            return math.nan
        return float(brentq(lambda r: self.power(r) - power, r, self.largest, xtol=1e-12))

    def points(self, r: float) -> float:
        """Difference in percentage points between two groups that a correlation of r makes.

        It is the difference of the share of one variable's upper group between the groups of the
        other variable, in the average stratum. The larger one of both directions is returned.
        """
        if math.isnan(r):
            return math.nan
        ratio = np.sqrt(self._spreads[1] / self._spreads[0])
        return 100 * r * max(float(self._strata @ ratio), float(self._strata @ (1 / ratio)))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the test."""
        return math.prod(levels - 1 for levels in (self.levels or map(len, self.shares[:2])))

    @cached_property
    def largest(self) -> float:
        """Largest correlation that the groups can have."""
        (a, b), (spread_a, spread_b) = self._upper, self._spreads
        return float(((np.minimum(a, b) - a * b) / np.sqrt(spread_a * spread_b)).min())

    @cached_property
    def _small(self) -> Association:
        """The result of the test for a small correlation."""
        return self._test(SMALL, tuple(range(2, len(self.shares))))

    def _test(self, r, given) -> Association:
        return association(Population(self.n, self.table(r)).marginals(self.deviation), 0, 1, given)

    @property
    def _per_square(self) -> float:
        return self._small.statistic / SMALL**2

    def _least(self, r) -> float:
        """The least statistic that counts as found."""
        significant = float(chdtri(self.freedom, self.alpha))
        if len(self.shares) == 2 or not self._small.effect:
            return significant
        none, small = self._given_none
        effect = max(self.least_effect, self.least_share * (none + (small - none) * r / SMALL) ** 2)
        return max(significant, self._small.statistic / self._small.effect * effect)

    @cached_property
    def _given_none(self) -> list[float]:
        """Correlations given none that the test sees, for r = 0 and for a small r."""
        return [math.sqrt(self._test(r, ()).effect) for r in (0.0, SMALL)]

    def table(self, r: float) -> np.ndarray:
        """Probabilities of the population, one axis for each variable."""
        upper, (spread_a, spread_b) = self._upper, self._spreads
        both = upper[0] * upper[1] + r * np.sqrt(spread_a * spread_b)
        groups = [[1 - upper[0] - upper[1] + both, upper[1] - both], [upper[0] - both, both]]
        table = np.array(groups) * self._strata
        if len(self.shares) == 2:
            table = table[..., 0]  # there is one stratum
        for axis, shares in enumerate(self.shares):
            table = np.moveaxis(np.tensordot(_within(shares), table, (1, axis)), 0, axis)
        return table

    @cached_property
    def _strata(self) -> np.ndarray:
        """Shares of the groups of the third variable; without one, all records are in the first."""
        upper = _upper(self.shares[2]) if len(self.shares) > 2 else 0.0
        return np.array([1 - upper, upper])

    @cached_property
    def _upper(self) -> np.ndarray:
        """Share of the upper group of each tested variable, in each stratum."""
        upper = np.array([[_upper(shares)] * 2 for shares in self.shares[:2]])
        strata = self._strata
        if strata.min() == 0:
            return upper
        standard = np.array([-1, 1]) * np.sqrt(strata[::-1] / strata)
        spread = np.sqrt(upper * (1 - upper))
        most = np.minimum(upper, strata[1]) - upper * strata[1]
        most = most / (spread * np.sqrt(strata.prod()))
        return upper + np.minimum(self.related, LARGEST_RELATED * most) * spread * standard

    @cached_property
    def _spreads(self) -> np.ndarray:
        return self._upper * (1 - self._upper)


def _cut(shares) -> int:
    """Number of levels in the lower group; the two groups are as even as the order allows."""
    return 1 + int(np.argmin(np.abs(np.cumsum(shares)[: max(1, len(shares) - 1)] - 0.5).round(9)))


def _upper(shares) -> float:
    return float(sum(shares[_cut(shares) :]))


def _within(shares) -> np.ndarray:
    """Share of each level in its group, a column for each group."""
    upper = np.arange(len(shares)) >= _cut(shares)
    columns = np.array(shares)[:, None] * np.column_stack([~upper, upper])
    return columns / np.maximum(columns.sum(axis=0), 1e-300)


def _exceeds(least: float, freedom: int, noncentrality: float) -> float:
    """Probability that a noncentral chi-squared statistic is above `least`."""
    if least > LARGE:
        return float(ndtr(math.sqrt(noncentrality) - math.sqrt(least - freedom)))
    return 1 - float(chndtr(least, freedom, noncentrality))


def _noncentrality(least: float, freedom: int, power: float) -> float:
    """The noncentrality at which the statistic is above `least` with this probability."""
    if least > LARGE:
        return float(math.sqrt(least - freedom) + ndtri(power)) ** 2
    return float(chndtrinc(least, freedom, 1 - power))
