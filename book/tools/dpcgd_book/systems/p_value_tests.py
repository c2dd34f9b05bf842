"""Tests of conditional independence that give a p-value, for reals and for codes. Not private."""

import math

import numpy as np
from scipy.special import gammaincc, gammaln

from dpcgd.datasets import contingency_tables, counts
from dpcgd.privacy.run import check_level
from dpcgd.statistics import categorical_statistics, moment_matrices, statistic
from dpcgd_book.systems.direction_scores import checked_columns, rescaled

__all__ = ["FisherZ", "GSquare", "IndependenceTest", "Level"]

LARGEST = 1e100
"""Of a correlation: noise may bring it above 1, but not so far."""


class FisherZ:
    """Fisher's z test of a partial correlation, exact in the limit for Gaussian records.

    Parameters
    ----------
    correlation : array, shape (d, d)
    n : int
        Number of records behind it.

    Raises
    ------
    ValueError
        If the matrix is not square, a variable is constant, or n is too small to condition at all.

    Examples
    --------
    >>> test = FisherZ(np.array([[1, 0.5], [0.5, 1]]), 28)
    >>> round(math.exp(test.log_p(0, 1, ())), 4)
    0.006
    """

    def __init__(self, correlation: np.ndarray, n: int):
        correlation = np.array(correlation, float)
        if not (np.abs(correlation) <= LARGEST).all():
            cure = "is a column constant? Leave it out"
            raise ValueError(f"a correlation is not a number, or above {LARGEST:g}: {cure}")
        self.correlation, self.n, self.d = correlation, n, len(correlation)

    @classmethod
    def from_values(cls, values: np.ndarray) -> "FisherZ":
        """The test on columns of reals or codes, shape (n, d)."""
        values = checked_columns(values)
        return cls(np.corrcoef(rescaled(values).T), len(values))

    def log_p(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """Natural logarithm of the two-sided p-value."""
        return float(moment_matrices.fisher_z(self.correlation, self.n, [(x, y, *given)])[0])


class GSquare:
    """The G-test, with the degrees of freedom of the levels that occur in each stratum.

    Parameters
    ----------
    data : Dataset or Counts

    Notes
    -----
    A test whose table would hold fewer than five records a cell on average is not made: its p-value
    is 0, so that it separates nothing. Nor is one whose strata leave no degree of freedom. Degrees
    of freedom that depend on the records are for tests on what is public already, such as the
    reports of a local mechanism; the private tests of :mod:`dpcgd.statistics` have those of the
    public table, and less power where much of it is empty.

    Examples
    --------
    >>> from dpcgd import Dataset
    >>> levels = {"a": ["0", "1"], "b": ["0", "1"]}
    >>> data = Dataset([[0, 0]] * 50 + [[1, 1]] * 50, levels)
    >>> GSquare(data).log_p(0, 1, ()) < -50
    True
    """

    def __init__(self, data: counts.Counts):
        self.d, self._tables = data.d, contingency_tables.Tables(data)

    def log_p(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """Natural logarithm of the p-value, minus infinity where no test is made."""
        if statistic.refusal(self._tables.n, self._tables.shape((x, y, *given))):
            return -math.inf
        table = self._tables.counts((x, y, *given))
        freedom = categorical_statistics.AdjustedChiSquared().freedoms(statistic.alone(table))[0]
        half, value = freedom / 2, categorical_statistics.g_statistic(table) / 2
        if half == 0:  # a constant is independent; what a stratum makes constant may be anything
            return -math.inf if given else 0.0
        tail = gammaincc(half, value)
        if tail > 0:
            return math.log(tail)
        beyond = 1 - (half - 1) / value  # the tail falls about geometrically, by this less a step
        return float((half - 1) * math.log(value) - value - gammaln(half) - math.log(beyond))


IndependenceTest = FisherZ | GSquare
"""A test that tells how surprising the data would be if two variables were independent."""


class Level:
    """An oracle for the PC search: it separates where the p-value exceeds alpha.

    Examples
    --------
    >>> test = FisherZ(np.array([[1, 0.5], [0.5, 1]]), 28)
    >>> Level(test, 0.05).separates(0, 1, ()), Level(test, 0.001).separates(0, 1, ())
    (False, True)
    """

    def __init__(self, test: IndependenceTest, alpha: float):
        check_level(alpha)
        self.test, self.alpha = test, alpha

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether the p-value is above the level."""
        return self.test.log_p(x, y, given) > math.log(self.alpha)
