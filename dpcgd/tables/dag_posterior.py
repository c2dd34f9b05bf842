"""A private graph of a few variables: their whole table, and graphs weighed by its likelihood."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, logit

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import ReleaseWithProbabilities
from dpcgd.moments.interactions import Marginals
from dpcgd.moments.noisy_table import NoisyTable, check_cells, measure_table
from dpcgd.privacy.conversions import squared
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.filters import PureFilter
from dpcgd.privacy.run import open_run
from dpcgd.privacy.settings import check_data
from dpcgd.reading.graph_posterior import GraphPosterior, shares_of
from dpcgd.reading.orientation import pointed
from dpcgd.reading.reader import (
    Precision,
    check_precision,
    drawn_edges,
    edge_probabilities,
    unlike_training,
)

__all__ = ["PosteriorRelease", "dag_posterior"]

WEIGHTS = (0.87, 0.32, 0.67)
"""Log odds of an edge: a constant, and weights of those of the likely graphs and of the reader.

Fitted to 300 networks of :func:`~dpcgd.datasets.random_networks.any_network` by
benchmarks/choose_whole_table.py.
"""


LEAST_SHARE = 0.002
"""No posterior of an edge is taken to be nearer to 0 or 1 than this."""


LEVEL = 0.5
"""An edge gets an arrow that is likelier than this."""


SEED = 0
"""Of the walks among graphs: one release, one answer."""


@dataclass(frozen=True, repr=False, eq=False)
class PosteriorRelease(ReleaseWithProbabilities):
    """A release that also holds the table it was read from.

    Attributes
    ----------
    counts : array
        Of every combination of levels, with noise; an axis a variable. Whatever is computed from it
        is post-processing.
    scale : float
        Of the Laplace noise in each cell.
    """

    counts: np.ndarray
    scale: float

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Public, those of the table."""
        return self.terms.domain

    @property
    def marginals(self) -> Marginals:
        """All interactions of the table."""
        return NoisyTable(self.terms.n, self.counts, self.scale).marginals(self.counts.ndim)


def dag_posterior(
    data: Counts,
    *,
    epsilon: float,
    delta: float | None = None,
    allow_delta: bool = False,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    precision: Precision = None,
    knowledge: Knowledge | None = None,
    rows_per_person: int = 1,
) -> PosteriorRelease:
    """The whole table of a few variables with noise, and a graph from those that are likely then.

    Walks look for graphs that are likely, given the noisy table. How likely a pair is joined by
    them, and what the reader of :func:`~dpcgd.tables.learned_pc.learned_pc` says of the same
    table, make the probability of its edge.

    Parameters
    ----------
    data : Dataset or Counts
        Of at most eight variables whose table has at most 1,024 cells.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`. No delta is used.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" for the edges of largest expected F1, which are never none: those of chapter 12's
        table. Otherwise an edge is drawn if it is likelier than not.

    Returns
    -------
    PosteriorRelease

    Raises
    ------
    ValueError
        If the table is too large, or the budget, the noise source, the knowledge or the precision
        is unusable; nothing has run then.

    Privacy
    -------
    (epsilon, 0)-differentially private for replace-one neighbours: Laplace noise on all cells at
    once; the rest is post-processing. Chapter 17, :prf:ref:`thm-whole-table`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = dag_posterior(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 1.0
    (1.0, True)
    """
    check_precision(precision)
    check_data(data, coded=True)
    check_cells(data.cardinalities)
    how: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rng": rng, "secure": secure}
    how |= {"account": PureFilter, "by": ("dag_posterior", "thm-whole-table")}
    how |= {"allow_delta": allow_delta, "rows_per_person": rows_per_person}
    run = open_run(data, **how, precision=precision, knowledge=knowledge)
    whole = run.account.limit.epsilon * (1 - ROOM)
    table = measure_table(data, epsilon=whole, account=run.account, noise=run.noise)
    forbidden, required = (knowledge or Knowledge()).arrays(data.variables)
    marginals = table.marginals()
    by_graphs, arrows = _posterior(table, forbidden, required)
    read = _read(by_graphs, marginals)
    read[required | required.T] = 1.0
    read[forbidden & forbidden.T] = 0.0
    probabilities, joined = drawn_edges(read, marginals, required, precision)
    shares = probabilities * arrows / np.maximum(by_graphs, LEAST_SHARE)
    names = data.variables
    pairs = [*combinations(range(data.d), 2)]
    both = [(a, b) for a, b in np.argwhere(joined).tolist()]
    return PosteriorRelease(
        graph=CPDAG(names, pointed(arrows, joined, forbidden, LEVEL)),
        separating_sets={},
        untested=frozenset(),
        tests=0,
        stopped_early=False,
        **run.receipt(),
        counts=table.counts,
        scale=table.scale,
        probabilities={
            frozenset((names[x], names[y])): float(probabilities[x, y]) for x, y in pairs
        },
        arrow_shares={(names[a], names[b]): float(shares[a, b]) for a, b in both},
        caution=unlike_training(data.d, data.n, squared(whole) / 2),
    )


def _posterior(table: NoisyTable, forbidden, required) -> tuple[np.ndarray, np.ndarray]:
    """Share of the likely graphs that join each pair, and that have each arrow."""
    posterior = GraphPosterior(table, forbidden, required)
    return shares_of(*posterior.met(np.random.default_rng(SEED)))


def _read(by_graphs: np.ndarray, marginals: Marginals) -> np.ndarray:
    """Probability of each edge, from the likely graphs and the edge model together."""
    constant, weight_of_graphs, weight_of_model = WEIGHTS
    by_model = edge_probabilities(marginals)
    odds = [logit(np.clip(p, LEAST_SHARE, 1 - LEAST_SHARE)) for p in (by_graphs, by_model)]
    read = expit(constant + weight_of_graphs * odds[0] + weight_of_model * odds[1])
    one_level = np.array(marginals.levels) == 1
    read[one_level] = read[:, one_level] = 0.0
    np.fill_diagonal(read, 0.0)
    return read
