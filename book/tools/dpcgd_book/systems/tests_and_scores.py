"""Tests of independence that give a p-value, and scores of a variable's parents. Not private.

Both are for columns of reals or codes. The sum of the scores over the variables scores a graph.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import gammaincc, gammaln, multigammaln

from dpcgd.datasets import contingency_tables, counts
from dpcgd.datasets.dataset import Dataset, check_records
from dpcgd.privacy.run import check_settings
from dpcgd.statistics import categorical_statistics, moment_matrices, statistic
from dpcgd_book.systems.direction_scores import checked_columns, rescaled

__all__ = ["BDeu", "BGe", "FisherZ", "GSquare", "GraphScore", "IndependenceTest", "Level"]

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
        check_settings(None, alpha=alpha)
        self.test, self.alpha = test, alpha

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether the p-value is above the level."""
        return self.test.log_p(x, y, given) > math.log(self.alpha)


LEAST_LOG = -700.0
"""A singular matrix has this logarithm of its determinant for each variable."""


class BGe:
    """Bayesian Gaussian equivalent score: the log marginal likelihood of a linear Gaussian model.

    Parameters
    ----------
    covariance : array, shape (d, d)
        Of the records, with divisor n. The prior has the same scale for all variables, so bring
        them to variance 1 first, or use ``BGe.from_values``.
    n : int
        Number of records.
    variables : sequence of str, optional
        ``x0, x1, ...`` unless given.

    Raises
    ------
    ValueError
        If a variable is constant or the shapes do not fit.

    Notes
    -----
    Geiger and Heckerman (2002) with the correction of Kuipers, Moffa and Heckerman (2014): a subset
    of l of the d variables keeps l + 2 of the d + 2 degrees of freedom of the Wishart prior. The
    prior's matrix is half the identity. Its mean is that of the records and counts as one record.

    Examples
    --------
    >>> score = BGe(np.array([[1, 0.8], [0.8, 1]]), 100)
    >>> score.local(1, (0,)) > score.local(1, ())
    True
    """

    def __init__(self, covariance: np.ndarray, n: int, variables: Sequence[str] = ()):
        covariance = np.array(covariance, float)
        names = variables or [f"x{i}" for i in range(len(covariance))]
        if covariance.shape != (len(names), len(names)):
            raise ValueError(f"{len(names)} variables need a square covariance matrix")
        if not (covariance.diagonal() > 0).all() or not np.isfinite(covariance).all():
            raise ValueError("a variance is not positive: is a column constant? Leave it out")
        self.covariance, self.n, self.variables = covariance, n, tuple(names)
        self._posterior = 0.5 * np.eye(len(names)) + n * covariance
        self._known = cache(self._marginal)

    @classmethod
    def from_values(cls, values: np.ndarray, variables: Sequence[str] = ()) -> "BGe":
        """The score of columns of reals or codes, shape (n, d), each brought to variance 1."""
        values = checked_columns(values)
        return cls(np.corrcoef(rescaled(values).T), len(values), variables)

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Log marginal likelihood of the child's column given those of its parents."""
        return self.marginal((child, *parents)) - self.marginal(parents)

    def marginal(self, variables: tuple[int, ...]) -> float:
        """Log marginal likelihood of these columns, with nothing assumed independent."""
        return self._known(tuple(sorted(variables)))

    def _marginal(self, columns) -> float:
        size, n = len(columns), self.n
        freedom = 2.0 + size
        ratio = multigammaln((n + freedom) / 2, size) - multigammaln(freedom / 2, size)
        _, determinant = np.linalg.slogdet(self._posterior[np.ix_(columns, columns)])
        determinant = max(float(determinant), LEAST_LOG * size)
        prior = freedom * math.log(0.5) - n * math.log(math.pi) - math.log(n + 1)
        return float(ratio + size / 2 * prior - (n + freedom) / 2 * determinant)


class BDeu:
    """Bayesian Dirichlet equivalent uniform score of coded data.

    Parameters
    ----------
    data : Dataset
    weight : float
        How many records the prior is worth: the equivalent sample size.

    Notes
    -----
    Heckerman, Geiger and Chickering (1995), with the number of public levels. A cell without
    records adds nothing, so only occupied cells are counted.

    Examples
    --------
    >>> levels = {"a": ["0", "1"], "b": ["0", "1"]}
    >>> data = Dataset([[0, 0]] * 50 + [[1, 1]] * 50, levels)
    >>> score = BDeu(data)
    >>> score.local(1, (0,)) > score.local(1, ())
    True
    """

    def __init__(self, data: Dataset, weight: float = 10.0):
        check_records(data, "this score")
        if not weight > 0:
            raise ValueError(f"the prior's weight must be positive, not {weight}")
        self.data, self.weight, self.variables = data, weight, data.variables

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Log marginal likelihood of the child's column given those of its parents."""
        levels = self.data.cardinalities
        rows = math.prod(levels[parent] for parent in parents)
        cells, totals = self._occupied((*parents, child)), self._occupied(parents)
        whole = _dirichlet(totals, self.weight / rows)
        return _dirichlet(cells, self.weight / (rows * levels[child])) - whole

    def _occupied(self, variables) -> np.ndarray:
        """Counts of the combinations that occur."""
        columns, sizes = self.data.codes.T, self.data.cardinalities
        own = [sizes[v] for v in variables]
        cells = counts.cell_numbers(columns[[*variables]], own, self.data.n)
        return np.unique(cells, return_counts=True)[1]


def _dirichlet(counts, prior) -> float:
    return float(gammaln(prior + counts).sum() - len(counts) * gammaln(prior))


GraphScore = BGe | BDeu
"""Larger is better, and graphs of one Markov class score the same."""
