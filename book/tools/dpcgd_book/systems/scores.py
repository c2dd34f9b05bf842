"""Scores of a variable's parents, whose sum over the variables scores a graph. Not private."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import gammaln, multigammaln

from dpcgd.datasets.counts import cell_numbers
from dpcgd.datasets.dataset import Dataset, check_records
from dpcgd_book.systems.direction_scores import checked_columns, rescaled

__all__ = ["BDeu", "BGe", "GraphScore"]

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
        cells = cell_numbers(columns[[*variables]], [sizes[v] for v in variables], self.data.n)
        return np.unique(cells, return_counts=True)[1]


def _dirichlet(counts, prior) -> float:
    return float(gammaln(prior + counts).sum() - len(counts) * gammaln(prior))


GraphScore = BGe | BDeu
"""Larger is better, and graphs of one Markov class score the same."""
