"""Edges and arrows of a whole table: by likely graphs, together with the edge model."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.reading.graph_posterior import GraphPosterior, shares_of
from dpcgd.reading.reader import edge_probabilities

__all__ = ["WeighedGraphs", "weigh_graphs"]

WEIGHTS = (0.87, 0.32, 0.67)
"""The log odds of an edge are a constant, and weighted sums of those of the likely graphs and of
the edge model.

Fitted to 300 networks of :func:`~dpcgd.datasets.random_networks.any_network` by
benchmarks/choose_whole_table.py.
"""


LEAST_SHARE = 0.002
"""No posterior of an edge is taken to be nearer to 0 or 1 than this."""


SEED = 0
"""The walks among graphs start from this seed, so that one release has one answer."""


class WeighedGraphs(NamedTuple):
    """What the likely graphs and the edge model say of a whole table, each of shape (d, d).

    ``edges`` are probabilities by both. ``joined`` is the share of the likely graphs that join a
    pair, and ``arrows`` the share that has an arrow.
    """

    edges: np.ndarray
    joined: np.ndarray
    arrows: np.ndarray

    @property
    def arrows_of_edges(self) -> np.ndarray:
        """How likely an arrow is where its pair is joined."""
        return self.arrows / np.maximum(self.joined, LEAST_SHARE)


def weigh_graphs(table: NoisyTable, forbidden: np.ndarray, required: np.ndarray) -> WeighedGraphs:
    """Weigh graphs by the likelihood of a whole table.

    Parameters
    ----------
    table : NoisyTable
    forbidden, required : boolean array of shape (d, d)
        Arcs that no graph has, and arcs that every graph has.

    Privacy
    -------
    Post-processing.
    """
    posterior = GraphPosterior(table, forbidden, required)
    joined, arrows = shares_of(*posterior.met(np.random.default_rng(SEED)))
    constant, weight_of_graphs, weight_of_model = WEIGHTS
    by_graphs, by_model = (
        logit(np.clip(p, LEAST_SHARE, 1 - LEAST_SHARE)) for p in (joined, edge_probabilities(table))
    )
    edges = expit(constant + weight_of_graphs * by_graphs + weight_of_model * by_model)
    one_level = np.array(table.levels) == 1
    edges[one_level] = edges[:, one_level] = 0.0
    np.fill_diagonal(edges, 0.0)
    return WeighedGraphs(edges, joined, arrows)
