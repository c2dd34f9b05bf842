"""Graphs without cycles that a release makes likely, and how likely each of them is."""

from collections import Counter
from functools import cache

import numpy as np

from dpcgd.moments.interactions import Marginals, NoisyTable
from dpcgd.reading.graph_posterior import GraphPosterior
from dpcgd.reading.orientation import DRAWS, collider_log_odds, drawn_graphs

__all__ = ["Graphs", "likely_graphs", "met_graphs"]

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
    posterior = GraphPosterior(table, forbidden, required)
    key = ("met graphs", forbidden.tobytes(), required.tobytes())
    return table.worked_out(key, lambda: posterior.met(np.random.default_rng(SEED)))


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


def _drawn(marginals, edges, forbidden) -> Graphs:
    """Graphs of drawn skeletons, as many of each of them."""
    rng, counts = np.random.default_rng(SEED), Counter[tuple[int, ...]]()
    arrows = cache(lambda key: _arrows(marginals, edges.shape, key, forbidden))
    for _ in range(SKELETONS):
        upper = np.triu(rng.random(edges.shape) < edges, 1)
        counts.update(arrows((upper | upper.T).tobytes()))
    return {graph: count / counts.total() for graph, count in counts.items()}


def _arrows(marginals, shape, skeleton, forbidden) -> list[tuple[int, ...]]:
    joined = np.frombuffer(skeleton, bool).reshape(shape)
    if not joined.any():
        return [(0,) * len(joined)] * DRAWS
    odds = collider_log_odds(marginals, joined)
    return [tuple(parents) for parents in drawn_graphs(joined, forbidden, odds)]
