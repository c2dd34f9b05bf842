"""Scores of a variable's parents, whose sum over the variables scores a graph. Not private."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import networkx as nx
import numpy as np
from scipy.special import gammaln

from dpcgd.datasets.dataset import Dataset, check_records
from dpcgd.statistics.moment_matrices import checked_columns, correlations

__all__ = ["BIC", "BDeu", "BGe", "GraphScore", "graph_score"]

LARGEST = 1e100
"""Of a covariance, or of a prior's weight; the smallest is its inverse."""


MOST_FREEDOM = 1e12
"""Of a Wishart prior: more would be a prior that no records move."""


LEAST_LOG = -700.0
"""Of a variable's share in a logarithm of a determinant: for matrices that are singular."""


class GraphScore(Protocol):
    """Larger is better, and graphs of one Markov class score the same."""

    @property
    def variables(self) -> Sequence[str]:
        """Their names, in the order of their numbers."""

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Contribution of one variable with these parents."""


def graph_score(score: GraphScore, graph: nx.DiGraph) -> float:
    """Sum of the local scores of a DAG over the score's variables.

    Examples
    --------
    >>> score = BIC(np.array([[1, 0.8], [0.8, 1]]), 100, ["a", "b"])
    >>> forth, back = (graph_score(score, nx.DiGraph([arc])) for arc in [("a", "b"), ("b", "a")])
    >>> abs(forth - back) < 1e-9
    True
    """
    at = {name: i for i, name in enumerate(score.variables)}
    if set(graph) != set(at):
        raise ValueError("the graph and the score must be over the same variables")
    return sum(
        score.local(at[v], tuple(sorted(at[p] for p in graph.predecessors(v)))) for v in graph
    )


@dataclass(frozen=True, eq=False)
class _Gaussian:
    """A score of linear Gaussian models, from the covariance alone.

    Parameters
    ----------
    covariance : array, shape (d, d)
        Of the records, with divisor n.
    n : int
        Number of records.
    variables : sequence of str, optional
        ``x0, x1, ...`` unless given.
    """

    covariance: np.ndarray
    n: int
    variables: Sequence[str] = ()

    def __post_init__(self):
        covariance = np.array(self.covariance, float)
        names = self.variables or [f"x{i}" for i in range(len(covariance))]
        if covariance.shape != (len(names), len(names)):
            raise ValueError(f"{len(names)} variables need a square covariance matrix")
        if not (covariance.diagonal() > 0).all() or not np.isfinite(covariance).all():
            raise ValueError("a variance is not positive: is a column constant? Leave it out")
        if covariance.diagonal().min() < 1 / LARGEST or np.abs(covariance).max() > LARGEST:
            raise ValueError(
                f"variances must lie between {1 / LARGEST:g} and {LARGEST:g}, and covariances "
                "below that; bring the variables to variance 1"
            )
        if self.n < 1:
            raise ValueError(f"n must be at least 1, not {self.n}")
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "variables", tuple(names))

    @classmethod
    def from_values(cls, values: np.ndarray, variables=(), **settings):
        """The score of columns of reals or codes, shape (n, d), each brought to variance 1."""
        values = checked_columns(values)
        return cls(correlations(values), len(values), variables, **settings)

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.covariance)


@dataclass(frozen=True, eq=False)
class BGe(_Gaussian):
    """Bayesian Gaussian equivalent score: the log marginal likelihood of a linear Gaussian model.

    Parameters
    ----------
    covariance : array, shape (d, d)
        Of the records, with divisor n. The prior has the same scale for all variables, so bring
        them to variance 1 first, or use ``BGe.from_values``.
    n : int
        Number of records.
    variables : sequence of str, optional
    mean_weight : float
        How many records the prior of the mean is worth. It is centred at the mean of the records.
    freedom : float, optional
        Degrees of freedom of the Wishart prior, more than d + 1; d + 1 + `mean_weight` unless
        given.

    Raises
    ------
    ValueError
        If a setting is out of its range, a variable is constant or the shapes do not fit.

    Notes
    -----
    Geiger and Heckerman (2002) with the correction of Kuipers, Moffa and Heckerman (2014): a subset
    of l of the d variables keeps `freedom` - d + l degrees of freedom. The prior's matrix is t
    times the identity, t = mean_weight (freedom - d - 1) / (mean_weight + 1).

    Examples
    --------
    >>> score = BGe(np.array([[1, 0.8], [0.8, 1]]), 100)
    >>> score.local(1, (0,)) > score.local(1, ())
    True
    """

    mean_weight: float = 1.0
    freedom: float | None = None

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "freedom", self._freedom)
        if not self.mean_weight > 0 or not self._freedom > self.d + 1:
            raise ValueError(
                f"mean_weight must be positive and freedom above {self.d + 1}, not "
                f"{self.mean_weight} and {self.freedom}"
            )
        if not max(self.mean_weight, self._freedom) <= MOST_FREEDOM:
            raise ValueError(f"mean_weight and freedom must be at most {MOST_FREEDOM:g}")

    @property
    def _freedom(self) -> float:
        return self.d + 1 + self.mean_weight if self.freedom is None else self.freedom

    @cached_property
    def _prior_scale(self) -> float:
        return self.mean_weight * (self._freedom - self.d - 1) / (self.mean_weight + 1)

    @cached_property
    def _posterior(self) -> np.ndarray:
        return self._prior_scale * np.eye(self.d) + self.n * self.covariance

    @cached_property
    def _marginals(self) -> dict[tuple[int, ...], float]:
        return {}

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Log marginal likelihood of the child's column given those of its parents."""
        return self.marginal((child, *parents)) - self.marginal(parents)

    def marginal(self, variables: tuple[int, ...]) -> float:
        """Log marginal likelihood of these columns, with nothing assumed independent."""
        at = tuple(sorted(variables))
        if at not in self._marginals:
            self._marginals[at] = self._marginal(at)
        return self._marginals[at]

    def _marginal(self, at) -> float:
        size, freedom = len(at), self._freedom - self.d + len(at)
        ratio = sum(
            math.lgamma((self.n + freedom - i) / 2) - math.lgamma((freedom - i) / 2)
            for i in range(size)
        )
        _, determinant = np.linalg.slogdet(self._posterior[np.ix_(at, at)])
        determinant = max(determinant, LEAST_LOG * size)
        return (
            size / 2 * math.log(self.mean_weight / (self.n + self.mean_weight))
            - size * self.n / 2 * math.log(math.pi)
            + ratio
            + freedom / 2 * size * math.log(self._prior_scale)
            - (self.n + freedom) / 2 * float(determinant)
        )


@dataclass(frozen=True, eq=False)
class BIC(_Gaussian):
    """Bayesian information criterion of a linear Gaussian model.

    Parameters
    ----------
    covariance : array, shape (d, d)
        Of the records, with divisor n.
    n : int
        Number of records.
    variables : sequence of str, optional
    discount : float
        Factor of the penalty: 1 is the criterion itself, more is sparser.

    Examples
    --------
    >>> score = BIC(np.array([[1, 0.8], [0.8, 1]]), 100)
    >>> round(score.local(1, (0,)) - score.local(1, ()), 2)
    48.78
    """

    discount: float = 1.0

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Log likelihood of the child's regression, less its penalty."""
        at = list(parents)
        across, among = self.covariance[child, at], self.covariance[np.ix_(at, at)]
        variance = self.covariance[child, child]
        left = variance - across @ np.linalg.lstsq(among, across)[0] if at else variance
        left = max(left, 1e-15 * variance)  # a child that its parents determine
        likelihood = -self.n / 2 * (math.log(2 * math.pi * left) + 1)
        return float(likelihood - self.discount / 2 * (len(at) + 1) * math.log(self.n))


@dataclass(frozen=True, eq=False)
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

    data: Dataset
    weight: float = 10.0

    def __post_init__(self):
        check_records(self.data, "this score")
        if not 1 / LARGEST <= self.weight <= LARGEST:
            raise ValueError(
                f"the prior's weight must be positive, not {self.weight}, and between "
                f"{1 / LARGEST:g} and {LARGEST:g}"
            )

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in column order."""
        return self.data.variables

    def local(self, child: int, parents: tuple[int, ...]) -> float:
        """Log marginal likelihood of the child's column given those of its parents."""
        levels = self.data.cardinalities
        rows = math.prod(levels[parent] for parent in parents)
        cells = self._occupied((*parents, child))
        totals = self._occupied(parents)
        return _dirichlet(cells, self.weight / (rows * levels[child])) - _dirichlet(
            totals, self.weight / rows
        )

    def _occupied(self, variables) -> np.ndarray:
        """Counts of the combinations that occur."""
        code = np.zeros(self.data.n, np.int64)
        for v in variables:
            code = np.unique(
                code * self.data.cardinalities[v] + self.data.codes[:, v], return_inverse=True
            )[1]
        return np.bincount(code)


def _dirichlet(counts, prior) -> float:
    return float(gammaln(prior + counts).sum() - len(counts) * gammaln(prior))
