"""Graphs weighed by the likelihood of a noisy table, and how often they have each edge and arrow.

A count is Poisson about n times the probability that a graph gives its cell, and what has been
released is that count with Laplace noise. So each graph has a likelihood, found by expectation
maximization. Walks look for graphs that are likely, and each of these has its weight.
"""

import math
from typing import Any

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.reading import _likelihoods

__all__ = ["GraphPosterior", "best_graph", "bits_of", "shares_of"]

compiled: Any = _likelihoods
"""Whose types, numba's own, know no arguments."""


PRIOR, EDGE = 3.0, -3.0
"""Records that the prior of a graph's probabilities is worth, and log odds of an edge before
anything is known: chosen on random networks (benchmarks/README.md)."""


COOLING, STEADY, HOTTEST = 100, 250, 10.0
"""Sweeps that cool down, sweeps after that, and the temperature at first."""


UNLIKELY = 9.0
"""Graphs whose log posterior is so far below the best one's are left out."""


GAIN = 0.01
"""Of a log-likelihood: less is no better graph."""


class GraphPosterior:
    """Graphs without cycles over the variables of a table, and how likely they are.

    Parameters
    ----------
    table : NoisyTable
    forbidden, required : boolean array of shape (d, d), optional
        Arcs that no graph has, and arcs that every graph has.
    prior : float
        Records that the prior of a graph's probabilities is worth.

    Privacy
    -------
    Post-processing of what has been released.

    Notes
    -----
    A graph's parents are whole numbers, one a variable, with a bit for each parent. Its conditional
    probabilities have a Dirichlet prior (BDeu) and are averaged over, on as many records as tell
    about them: of a cell with mean m and noise of variance s, m^2 / (m + s) do. Graphs of one
    equivalence class have the same score. Chapter 15.
    """

    def __init__(
        self,
        table: NoisyTable,
        forbidden: np.ndarray | None = None,
        required: np.ndarray | None = None,
        prior: float = PRIOR,
    ):
        self.shape, released = table.counts.shape, table.counts.ravel()
        nothing = np.zeros((len(self.shape),) * 2, bool)
        self.needed = bits_of(nothing if required is None else required)
        self.forbidden = bits_of(nothing if forbidden is None else forbidden)
        start = np.maximum(released, 0.0) + 1e-9
        start *= table.n / start.sum()
        codes = np.array([*np.ndindex(*self.shape)], np.int64)
        levels = np.array(self.shape, np.int64)
        self._start = start
        self._about = released, table.scale, float(table.n), codes, levels, start, prior

    def score(self, parents: np.ndarray) -> float:
        """Log posterior of a graph, but for its prior and a constant."""
        return compiled.fitted(self._about, parents)[0]

    def met(
        self, rng: np.random.Generator, sweeps: int = STEADY, edge: float = EDGE
    ) -> tuple[np.ndarray, np.ndarray]:
        """The likely graphs among all that walks have met, and the posterior of each.

        Parameters
        ----------
        rng : numpy.random.Generator
        sweeps : int
            Of each walk, when it has cooled down.
        edge : float
            Log odds of an edge beforehand.

        Returns
        -------
        graphs : array of shape (k, d)
            Parents of each variable.
        posterior : array of shape (k,)
            Its sum is 1: what no walk has met is left out.
        """
        known: dict[int, float] = {}
        rules = self.needed, self.forbidden, edge, rng
        for graph in (self._best(self._start), self.needed):
            score, parents = self._climbed(graph)
            while True:
                how = COOLING, HOTTEST, known
                better, found = self._climbed(compiled.walk(self._about, parents, *rules, *how))
                if not better > score + GAIN:
                    break
                score, parents = better, found
            compiled.walk(self._about, parents, *rules, sweeps, 1.0, known)
        return self._likely(known, edge)

    def _likely(self, known, edge) -> tuple[np.ndarray, np.ndarray]:
        d = len(self.shape)
        keys = np.array([*known.keys()], np.int64)
        graphs = np.stack([keys >> d * (d - 1 - v) & (1 << d) - 1 for v in range(d)], axis=1)
        odds = np.array([*known.values()]) + edge * np.bitwise_count(graphs).sum(axis=1)
        likely = odds > odds.max() - UNLIKELY
        weights = np.exp(odds[likely] - odds.max())
        return graphs[likely], weights / weights.sum()

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


def shares_of(graphs: np.ndarray, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How likely each pair is joined, and how likely the completed form has each arrow.

    Parameters
    ----------
    graphs : array of shape (k, d)
        Parents of each variable, as bits.
    posterior : array of shape (k,)

    Returns
    -------
    joined : array of shape (d, d)
        Symmetric.
    arrows : array of shape (d, d)
        Of a -> b at [a, b].

    Examples
    --------
    >>> joined, arrows = shares_of(np.array([[0, 0, 3], [0, 1, 0]]), np.array([0.5, 0.5]))
    >>> float(joined[0, 2]), float(arrows[0, 2]), float(arrows[0, 1])
    (0.5, 0.5, 0.0)
    """
    d = graphs.shape[1]
    joined, arrows = np.zeros((d, d)), np.zeros((d, d))
    names = [str(v) for v in range(d)]
    for parents, share in zip(graphs, posterior, strict=True):
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((u, v) for v in names for u in names if parents[int(v)] >> int(u) & 1)
        arcs = CPDAG.from_dag(graph).arcs
        joined += share * (arcs | arcs.T)
        arrows += share * (arcs & ~arcs.T)
    return joined, arrows
