"""Linear structural equation models with Gaussian noise: continuous data with a known graph."""

from collections.abc import Sequence

import networkx as nx
import numpy as np

from dpcgd_book.data.mixed_networks import GaussianNetwork

__all__ = ["LinearSEM", "random_sem"]

DEVIATIONS = 4
"""A sampled variable's public range ends this many of its standard deviations from its mean."""


class LinearSEM(GaussianNetwork):
    """Variables that are linear in their parents, plus independent standard Gaussian noise.

    Parameters
    ----------
    weights : array, shape (d, d)
        ``weights[a, b]`` is the effect of a on b; 0 where there is no arc.
    variables : sequence of str, optional
        ``x0, x1, ...`` unless given.

    Attributes
    ----------
    graph : networkx.DiGraph
        The causal graph.
    covariance : array, shape (d, d)
        Of the variables, exactly.

    Raises
    ------
    ValueError
        If the weights are not square, not finite or have a cycle.

    Examples
    --------
    >>> chain = LinearSEM(np.array([[0, 2.0], [0, 0]]), ["dose", "response"])
    >>> chain.covariance
    array([[1., 2.],
           [2., 5.]])
    """

    def __init__(self, weights: np.ndarray, variables: Sequence[str] = ()):
        weights = np.array(weights, float)
        names = [*variables] or [f"x{i}" for i in range(len(weights))]
        if weights.shape != (len(names), len(names)) or not np.isfinite(weights).all():
            raise ValueError(f"{len(names)} variables need a square array of finite weights")
        dag = nx.from_numpy_array(weights, create_using=nx.DiGraph, edge_attr=None, nodelist=names)
        if not nx.is_directed_acyclic_graph(dag):
            raise ValueError("the weights have a cycle; an acyclic model has none")
        super().__init__("linear SEM", nx.freeze(dag), weights, np.ones(len(weights)))
        self.variables = tuple(names)
        self.ends = (DEVIATIONS * np.sqrt(np.diag(self.covariance))).tolist()


def random_sem(d: int, arcs: int, *, rng: np.random.Generator) -> LinearSEM:
    """Draw a model over a random graph with so many arcs.

    Parameters
    ----------
    d : int
        Variables.
    arcs : int
        Arcs, placed uniformly among the pairs and directed along a random order.
    rng : numpy.random.Generator

    Returns
    -------
    LinearSEM
        Weights uniform in [-2, -0.5] and [0.5, 2], as in Zheng et al. (2018).

    Raises
    ------
    ValueError
        If so many arcs do not fit.

    Examples
    --------
    >>> random_sem(10, 20, rng=np.random.default_rng(0)).graph.number_of_edges()
    20
    """
    first, second = np.triu_indices(d, 1)
    if arcs > len(first):
        raise ValueError(f"{d} variables have at most {len(first)} arcs, not {arcs}")
    chosen = rng.choice(len(first), arcs, replace=False)
    weights = np.zeros((d, d))
    weights[first[chosen], second[chosen]] = rng.uniform(0.5, 2, arcs) * rng.choice([-1, 1], arcs)
    order = rng.permutation(d)
    return LinearSEM(weights[np.ix_(order, order)])
