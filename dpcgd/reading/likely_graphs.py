"""Graphs without cycles that a release makes likely, and how likely each of them is."""

from collections import Counter, defaultdict

import numpy as np

from dpcgd.moments.interactions import Marginals, NoisyTable
from dpcgd.reading.graph_posterior import GraphPosterior
from dpcgd.reading.orientation import collider_log_odds, drawn_graphs, leads

__all__ = ["Graphs", "likely_graphs", "met_graphs", "shares_of_sets"]

SKELETONS = 40
"""So many are drawn; those that are the same are given arrows once."""

SEED = 0
"""Walks and draws start from this seed, so that one release has one answer."""

Graphs = dict[tuple[int, ...], float]
"""From the parents of each variable, as bits, to the probability of this graph."""


def met_graphs(
    table: NoisyTable, forbidden: np.ndarray, required: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The likely graphs of a whole table and their posterior, worked out once.

    As :meth:`~dpcgd.reading.graph_posterior.GraphPosterior.met`.
    """

    def work():
        return GraphPosterior(table, forbidden, required).met(np.random.default_rng(SEED))

    return table.worked_out(("met graphs", forbidden.tobytes(), required.tobytes()), work)


def likely_graphs(
    marginals: Marginals, edges: np.ndarray, forbidden: np.ndarray, required: np.ndarray
) -> Graphs:
    """Graphs and their probabilities, which sum to one.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    edges : array of shape (d, d)
        How likely each pair is joined.
    forbidden, required : boolean array of shape (d, d)
        Arcs that no graph has, and arcs that every graph has.

    Privacy
    -------
    Post-processing. What is drawn has a seed of its own: one release, one answer.

    Notes
    -----
    Skeletons are drawn by the probabilities of edges, and arrows for each by the odds of its
    colliders. Of a whole table they are one half; the other half are graphs that walks have met, by
    their posterior, which alone is too sure of itself where effects are weak.

    Examples
    --------
    >>> from dpcgd.moments.interactions import NoisyTable
    >>> nothing = np.zeros((2, 2), bool)
    >>> table = NoisyTable(800, np.array([[200.0, 201.0], [199.0, 200.0]]), 1.0)
    >>> graphs = likely_graphs(table, np.zeros((2, 2)), nothing, nothing)
    >>> max(graphs, key=graphs.get)
    (0, 0)
    """
    key = ("drawn graphs", edges.tobytes(), forbidden.tobytes(), required.tobytes())
    drawn = marginals.worked_out(key, lambda: _drawn(marginals, edges, forbidden))
    if not isinstance(marginals, NoisyTable):
        return drawn
    met, posterior = met_graphs(marginals, forbidden, required)
    shares = {tuple(graph): share for graph, share in zip(met.tolist(), posterior, strict=True)}
    every = {**drawn, **shares}
    return {graph: (drawn.get(graph, 0) + float(shares.get(graph, 0))) / 2 for graph in every}


def shares_of_sets(graphs: Graphs, x: int, y: int) -> tuple[dict[tuple[int, ...], float], float]:
    """How likely each set is to adjust for, and how likely x comes before y.

    Graphs in which y comes before x have no such set.
    """
    sets, before = defaultdict[tuple[int, ...], float](float), 0.0
    for graph, share in graphs.items():
        parents = [*graph]
        before += share * leads(parents, x, y)
        if not leads(parents, y, x):
            sets[tuple(v for v in range(len(graph)) if graph[x] >> v & 1)] += share
    return dict(sorted(sets.items(), key=lambda item: (-item[1], item[0]))), before


def _drawn(marginals, edges, forbidden) -> Graphs:
    """Graphs of drawn skeletons, as many of each of them."""
    upper = np.triu(np.random.default_rng(SEED).random((SKELETONS, *edges.shape)) < edges, 1)
    counts = Counter[tuple[int, ...]]()
    skeletons = Counter(own.tobytes() for own in upper | upper.swapaxes(1, 2))
    for skeleton, times in skeletons.items():
        joined = np.frombuffer(skeleton, bool).reshape(edges.shape)
        for parents in drawn_graphs(joined, forbidden, collider_log_odds(marginals, joined)):
            counts[tuple(parents)] += times
    return {graph: count / counts.total() for graph, count in counts.items()}
