"""A test of independence that gives a p-value, and scores of a variable's parents. Not private.

They are for columns of reals or codes. The sum of the scores over the variables scores a graph.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import gammaincc, gammaln, multigammaln

from dpcgd.datasets import contingency_tables, counts
from dpcgd.datasets.dataset import Dataset, check_records
from dpcgd.statistics import categorical_statistics, statistic
from dpcgd_book.systems.direction_scores import checked_columns, rescaled

__all__ = ["BDeu", "BGe", "GSquare", "GraphScore"]


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


class BGe:
    """Bayesian Gaussian equivalent score: the log marginal likelihood of a linear Gaussian model.

    Parameters
    ----------
    values : array, shape (n, d)
        Columns of reals or codes. The prior has the same scale for all variables, so each is
        brought to variance 1.
    variables : sequence of str, optional
        ``x0, x1, ...`` unless given.

    Raises
    ------
    ValueError
        If a variable is constant or not finite, or there is not one name for each column.

    Notes
    -----
    Geiger and Heckerman (2002) with the correction of Kuipers, Moffa and Heckerman (2014): a subset
    of l of the d variables keeps l + 2 of the d + 2 degrees of freedom of the Wishart prior. The
    prior's matrix is half the identity. Its mean is that of the records and counts as one record.

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> score = BGe(np.column_stack([x, x**2]))
    >>> score.local(1, (0,)) > score.local(1, ())
    True
    """

    def __init__(self, values: np.ndarray, variables: Sequence[str] = ()):
        values = checked_columns(values)
        self.n, d = values.shape
        self.variables = tuple(variables or [f"x{i}" for i in range(d)])
        if len(self.variables) != d:
            raise ValueError(f"{d} columns need {d} names, not {len(self.variables)}")
        self.covariance = np.corrcoef(rescaled(values).T)
        self._posterior = 0.5 * np.eye(d) + self.n * self.covariance
        self._known = cache(self._marginal)

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
