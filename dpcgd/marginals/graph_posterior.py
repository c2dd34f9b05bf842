"""Graphs weighed by the likelihood of a noisy table, and how often they have each edge and arrow.

A count is Poisson about n times the probability that a graph gives its cell, and what has been
released is that count with Laplace noise. So each graph has a likelihood, found by expectation
maximization. Graphs are then drawn by it.
"""

import math
from typing import Any

import networkx as nx
import numpy as np
from numba import types
from numba.typed import Dict

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.marginals import _likelihoods
from dpcgd.marginals.noisy_table import NoisyTable

__all__ = ["GraphPosterior", "best_graph", "bits_of", "shares_of"]

compiled: Any = _likelihoods
"""Whose types, numba's own, know no arguments."""


EDGE = -1.5
"""Log odds of an edge before anything is known."""


COOLING, DRAWS, HOTTEST = 100, 250, 10.0
"""Sweeps that cool down, sweeps that count, and the temperature at first."""


GAIN = 0.01
"""Of a log-likelihood: less is no better graph."""


class GraphPosterior:
    """Graphs without cycles over the variables of a table, and how likely they are.

    Parameters
    ----------
    table : NoisyTable
    forbidden, required : boolean array of shape (d, d), optional
        Arcs that no graph has, and arcs that every graph has.

    Privacy
    -------
    Post-processing of what has been released.

    Notes
    -----
    A graph's parents are whole numbers, one a variable, with a bit for each parent. A parameter
    costs half the logarithm of how many records tell about it: of a cell with mean m and noise of
    variance s, m^2 / (m + s) do. Chapter 17.
    """

    def __init__(
        self,
        table: NoisyTable,
        forbidden: np.ndarray | None = None,
        required: np.ndarray | None = None,
    ):
        self.shape, released = table.counts.shape, table.counts.ravel()
        nothing = np.zeros((len(self.shape),) * 2, bool)
        self.needed = bits_of(nothing if required is None else required)
        self.forbidden = bits_of(nothing if forbidden is None else forbidden)
        start = np.maximum(released, 0.0) + 1e-9
        start *= table.n / start.sum()
        codes = np.array([*np.ndindex(*self.shape)], np.int64)
        levels = np.array(self.shape, np.int64)
        self._about = released, table.scale, float(table.n), codes, levels, start

    def score(self, parents: np.ndarray) -> float:
        """Log posterior of a graph, but for its prior and a constant."""
        return compiled.fitted(self._about, parents)[0]

    def drawn(self, rng: np.random.Generator, draws: int = DRAWS, edge: float = EDGE) -> np.ndarray:
        """Graphs drawn from the posterior, one after the other.

        Parameters
        ----------
        rng : numpy.random.Generator
        draws : int
        edge : float
            Log odds of an edge beforehand.

        Returns
        -------
        array of shape (draws, d)
            Parents of each variable.
        """
        known = Dict.empty(types.int64, types.float64)
        rules = self.needed, self.forbidden, edge, rng

        def run(parents, *how):
            return compiled.draw(self._about, parents.copy(), *rules, *how, known)

        starts = [self._climbed(self._best(self._about[-1])), self._climbed(self.needed)]
        score, parents = max(starts, key=lambda of: of[0])
        while True:
            better, found = self._climbed(run(parents, COOLING, 1, HOTTEST)[1])
            if not better > score + GAIN:
                return run(parents, 0, draws, 1.0)[0]
            score, parents = better, found

    def _climbed(self, parents) -> tuple[float, np.ndarray]:
        """The best graph of the counts that a graph makes of the table, as long as that helps."""
        score, counts = compiled.fitted(self._about, parents)
        while True:
            new = self._best(counts)
            new_score, new_counts = compiled.fitted(self._about, new)
            if not new_score > score + GAIN:
                return score, parents
            parents, score, counts = new, new_score, new_counts

    def _best(self, counts) -> np.ndarray:
        return best_graph(counts.reshape(self.shape), self.needed, self.forbidden)


def bits_of(arcs: np.ndarray) -> np.ndarray:
    """Parents as bits, from arcs as a boolean array.

    Examples
    --------
    >>> bits_of(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], bool))
    array([0, 0, 3])
    """
    return arcs.T @ (1 << np.arange(len(arcs), dtype=np.int64))


def best_graph(
    counts: np.ndarray, needed: np.ndarray | None = None, forbidden: np.ndarray | None = None
) -> np.ndarray:
    """The graph of largest BIC for these counts, by dynamic programming over sets of variables.

    Parameters
    ----------
    counts : array
        An axis a variable.
    needed, forbidden : array of shape (d,), optional
        Parents of each variable, as bits.

    Returns
    -------
    array of shape (d,)
        Parents of each variable, as bits.

    Notes
    -----
    Silander and Myllymaki (2006).
    """
    d, levels, everyone = counts.ndim, counts.shape, range(1 << counts.ndim)
    none = np.zeros(d, np.int64)
    needed, forbidden = (none if of is None else of for of in (needed, forbidden))
    members = [[v for v in range(d) if of >> v & 1] for of in everyone]
    margins = [counts.sum(axis=tuple(v for v in range(d) if not of >> v & 1)) for of in everyone]
    fits = [float((m * np.log(np.maximum(m, 1e-12))).sum()) for m in margins]
    price = 0.5 * math.log(counts.sum())

    def choices(v) -> list[tuple[float, int]]:
        """For each set without v, the score of the best parents in it, and these."""
        best: list[tuple[float, int]] = []
        for of in everyone:
            options = [best[of ^ 1 << u] for u in members[of] if u != v]
            if not (of & (forbidden[v] | 1 << v) or needed[v] & ~of):
                rows = math.prod(levels[u] for u in members[of])
                options.append((fits[of | 1 << v] - fits[of] - price * (levels[v] - 1) * rows, of))
            best.append(max(options, default=(-math.inf, 0)))
        return best

    within = [choices(v) for v in range(d)]
    totals: list[tuple[float, int]] = [(0.0, 0)]
    for of in everyone[1:]:
        left = [of ^ 1 << v for v in members[of]]
        ends = zip(left, members[of], strict=True)
        totals.append(max((totals[rest][0] + within[v][rest][0], v) for rest, v in ends))
    graph, of = none.copy(), (1 << d) - 1
    while of:
        v = totals[of][1]
        of ^= 1 << v
        graph[v] = within[v][of][1]
    return graph


def shares_of(graphs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each pair is joined, and how often completed forms have each arrow.

    Parameters
    ----------
    graphs : array of shape (draws, d)
        Parents of each variable, as bits.

    Returns
    -------
    joined : array of shape (d, d)
        Symmetric.
    arrows : array of shape (d, d)
        Of a -> b at [a, b].

    Examples
    --------
    >>> joined, arrows = shares_of(np.array([[0, 0, 3], [0, 1, 0]]))
    >>> float(joined[0, 2]), float(arrows[0, 2]), float(arrows[0, 1])
    (0.5, 0.5, 0.0)
    """
    d = graphs.shape[1]
    joined, arrows = np.zeros((d, d)), np.zeros((d, d))
    names = [str(v) for v in range(d)]
    for parents, times in zip(*np.unique(graphs, axis=0, return_counts=True), strict=True):
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((u, v) for v in names for u in names if parents[int(v)] >> int(u) & 1)
        arcs = CPDAG.from_dag(graph).arcs
        joined += times * (arcs | arcs.T)
        arrows += times * (arcs & ~arcs.T)
    return joined / len(graphs), arrows / len(graphs)
