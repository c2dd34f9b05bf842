"""Graphs without cycles that a release makes likely, and their probabilities."""

from collections import Counter, defaultdict

import numpy as np

from dpcgd.moments.interactions import Marginals, NoisyTable
from dpcgd.reading.graph_posterior import GraphPosterior
from dpcgd.reading.orientation import bits_of, by_colliders, collider_log_odds, drawn_graphs, leads

__all__ = ["Graphs", "likely_graphs", "met_graphs", "shares_of_sets"]

SKELETONS = 40
"""Number of skeletons that are drawn; equal skeletons get their arrows together."""

SEED = 0
"""Seed of random walks and draws, so that a release always has the same answer."""

Graphs = dict[tuple[int, ...], float]
"""Map from the parents of each variable, as bits, to the probability of this graph."""


def met_graphs(
    table: NoisyTable, forbidden: np.ndarray, required: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The likely graphs of a whole table and their posterior, computed once.

    See :meth:`~dpcgd.reading.graph_posterior.GraphPosterior.met`.
    """

    def work():
        return GraphPosterior(table, forbidden, required).met(np.random.default_rng(SEED))

    return table.worked_out(("met graphs", forbidden.tobytes(), required.tobytes()), work)


def likely_graphs(
    marginals: Marginals, edges: np.ndarray, forbidden: np.ndarray, required: np.ndarray
) -> Graphs:
    """Likely graphs and their probabilities, which sum to one.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.
    edges : array of shape (d, d)
        Probability that each pair is joined.
    forbidden, required : boolean array of shape (d, d)
        Arcs that no graph has, and arcs that every graph has.

    Privacy
    -------
    Post-processing. What is drawn has a seed of its own: one release, one answer.

    Notes
    -----
    Skeletons are drawn by the probabilities of edges, and the arrows of each skeleton by the odds
    of its colliders. For a whole table these graphs have one half of the weight. The other half
    belongs to graphs that random walks visit, by their posterior. That posterior alone is too sure
    of itself if effects are weak.

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
    """Probability of each set to adjust for, and the probability that x comes before y.

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
    """Graphs of drawn skeletons, equally many for each skeleton."""
    upper = np.triu(np.random.default_rng(SEED).random((SKELETONS, *edges.shape)) < edges, 1)
    counts = Counter[tuple[int, ...]]()
    for skeleton, times in Counter(own.tobytes() for own in upper | upper.swapaxes(1, 2)).items():
        joined = np.frombuffer(skeleton, bool).reshape(edges.shape)
        odds = collider_log_odds(marginals, joined) if joined.any() else {}
        for parents in drawn_graphs(joined, forbidden, by_colliders(odds)):
            counts[tuple(bits_of(parents.T))] += times
    return {graph: count / counts.total() for graph, count in counts.items()}
