"""A release of moments, and the graphs that can be read from it, as often as wanted."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from dpcgd.graphs.cpdag import CPDAG, Certainty
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import Release
from dpcgd.moments.interactions import Marginals
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.reading.graph_posterior import GraphPosterior, shares_of
from dpcgd.reading.orientation import LEVEL, arrow_confidence, pointed
from dpcgd.reading.reader import (
    Precision,
    check_precision,
    drawn_edges,
    edge_probabilities,
    unlike_training,
)

__all__ = ["MarginalRelease", "WeighedGraphs", "read", "read_moments", "weigh_graphs"]

LEVEL_OF_WEIGHED = 0.5
"""An edge of a whole table gets an arrow that is likelier than this."""

WEIGHTS = (0.87, 0.32, 0.67)
"""The log odds of an edge are a constant, and weighted sums of those of the likely graphs and of
the edge model.

Fitted to 300 networks of :func:`~dpcgd.datasets.random_networks.any_network`, as
benchmarks/README.md says.
"""

LEAST_SHARE = 0.002
"""No posterior of an edge is taken to be nearer to 0 or 1 than this."""

SEED = 0
"""The walks among graphs start from this seed, so that one release has one answer."""


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MarginalRelease(Release):
    """A release of moments. Whatever is computed from them costs nothing.

    Attributes
    ----------
    marginals : Marginals
        What was measured: a whole table, pairs, perhaps with triples, or clipped moments.
    levels : mapping of str to tuple of str
        Public, those of the moments: where levels were joined, the new ones.
    joined_levels : dict
        From each variable whose levels were joined to what has become of each of them.
    """

    marginals: Marginals
    levels: Mapping[str, tuple[str, ...]]
    joined_levels: Mapping[str, Mapping[str, str]]

    @cached_property
    def certainty(self) -> Certainty:
        """How likely each edge and each arrow is: that of the graph, or of what :func:`read` gives.

        A graph that a search has found says nothing of that itself.
        """
        graph = self.graph if self.graph.certainty is not None else read(self)
        assert graph.certainty is not None
        return graph.certainty

    @property
    def probabilities(self) -> Mapping[frozenset[str], float]:
        """From each pair of variables to the probability that an edge joins it."""
        return self.certainty.edges

    @property
    def arrow_shares(self) -> Mapping[tuple[str, str], float]:
        """From (cause, effect), of each pair that is joined, to the probability of this arrow."""
        return self.certainty.arrows


def check_moments(release: Release) -> MarginalRelease:
    """Refuse a release that holds no moments, of a system that releases answers alone.

    Raises
    ------
    ValueError
        With what this release has.
    """
    if not isinstance(release, MarginalRelease):
        system = release.terms.system or "its system"
        raise ValueError(
            f"this release holds a graph and no moments, for {system} measured none; only what "
            "private_graph and table_pc release can be read further"
        )
    return release


def read(
    release: Release, *, precision: Precision = None, knowledge: Knowledge | None = None
) -> CPDAG:
    """Read another graph from a release of moments, at no cost.

    Parameters
    ----------
    release : MarginalRelease
        Of :func:`~dpcgd.tables.private_graph.private_graph` or another system that measures.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" for the edges of largest expected F1, which are never none. Otherwise an edge is drawn
        if it is likelier than not.
    knowledge : Knowledge, optional
        In place of the one that the run was given.

    Returns
    -------
    CPDAG
        With the probabilities of edges and arrows.

    Raises
    ------
    ValueError
        If the release holds no moments, or precision or knowledge is unusable.

    Privacy
    -------
    Post-processing of what has been released: which readings are made, and how many, costs
    nothing. Chapter 12, :prf:ref:`thm-learned-pc`, and chapter 15, :prf:ref:`thm-whole-table`.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=0.1, rng=np.random.default_rng(1))
    >>> [len(read(release, precision=share).skeleton) for share in (0.5, 0.99)]
    [12, 6]
    """
    measured = check_moments(release)
    check_precision(precision)
    if knowledge is None:
        knowledge = measured.terms.settings.get("knowledge")
    rho = sum(map(zcdp_rho, measured.ledger.events))
    caution = unlike_training(len(measured.levels), measured.terms.n, rho)
    return read_moments(measured.marginals, tuple(measured.levels), knowledge, precision, caution)


def read_moments(
    marginals: Marginals,
    names: tuple[str, ...],
    knowledge: Knowledge | None,
    precision: Precision,
    caution: str,
) -> CPDAG:
    """Edges and arrows that moments make likely.

    Parameters
    ----------
    marginals : Marginals
        A whole table is read by weighing graphs; others by the edge model.
    names : tuple of str
        Of the variables.
    knowledge, precision
        As for :func:`read`.
    caution : str
        A reason to doubt the probabilities, by public facts, or an empty text.

    Privacy
    -------
    Post-processing.
    """
    forbidden, required = (knowledge or Knowledge()).arrays(names)
    weighed = None
    if isinstance(marginals, NoisyTable):
        weighed = weigh_graphs(marginals, forbidden, required)
    model = edge_probabilities(marginals) if weighed is None else weighed.edges
    model[required | required.T] = 1.0
    model[forbidden & forbidden.T] = 0.0
    likely, joined = drawn_edges(model, marginals, required, precision)
    if weighed is None:
        arrows = arrow_confidence(marginals, joined, forbidden)
        arcs, arrows = pointed(arrows, joined, forbidden, LEVEL), arrows * likely
    else:
        arcs = pointed(weighed.arrows, joined, forbidden, LEVEL_OF_WEIGHED)
        arrows = weighed.arrows_of_edges * likely
    certainty = Certainty(
        {
            frozenset((names[x], names[y])): likely[x, y]
            for x, y in combinations(range(len(names)), 2)
        },
        {(names[a], names[b]): arrows[a, b] for a, b in np.argwhere(joined).tolist()},
        caution,
    )
    return CPDAG(names, arcs, certainty)


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
