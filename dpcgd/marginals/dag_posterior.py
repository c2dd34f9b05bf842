"""A private graph of a few variables: their whole table, and graphs weighed by its likelihood."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit, logit

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import ReleaseWithProbabilities
from dpcgd.marginals.graph_posterior import GraphPosterior, shares_of
from dpcgd.marginals.noisy_table import NoisyTable, check_cells, measure_table
from dpcgd.marginals.orientation import pointed
from dpcgd.marginals.reader import check_precision, edge_probabilities, most_likely_edges
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.filters import PureFilter
from dpcgd.privacy.run import open_run
from dpcgd.privacy.settings import check_data

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


def dag_posterior(
    data: Counts,
    *,
    epsilon: float,
    delta: float | None = None,
    allow_delta: bool = False,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    precision: float | None = None,
    knowledge: Knowledge | None = None,
    rows_per_person: int = 1,
) -> PosteriorRelease:
    """The whole table of a few variables with noise, and a graph from those that are likely then.

    Walks look for graphs that are likely, given the noisy table. How likely a pair is joined by
    them, and what the reader of :func:`~dpcgd.marginals.learned_pc.learned_pc` says of the same
    table, make the probability of its edge.

    Parameters
    ----------
    data : Dataset or Counts
        Of at most eight variables whose table has at most 1,024 cells.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`. No delta is used.
    precision : float, optional
        Share of the edges that should be right; without it, the edges of largest expected F1.

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
    sure, arrows = _read(table, forbidden, required)
    joined = most_likely_edges(sure, precision)
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
        probabilities={frozenset((names[x], names[y])): float(sure[x, y]) for x, y in pairs},
        arrow_shares={(names[a], names[b]): float(arrows[a, b]) for a, b in both},
        caution="",
    )


def _read(table: NoisyTable, forbidden, required) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of edges, and shares of arrows."""
    posterior = GraphPosterior(table, forbidden, required)
    joined, arrows = shares_of(*posterior.met(np.random.default_rng(SEED)))
    constant, of_graphs, of_reader = WEIGHTS
    read = edge_probabilities(table.marginals())
    odds = [logit(np.clip(of, LEAST_SHARE, 1 - LEAST_SHARE)) for of in (joined, read)]
    sure = expit(constant + of_graphs * odds[0] + of_reader * odds[1])
    one_level = np.array(table.counts.shape) == 1
    sure[one_level] = sure[:, one_level] = 0.0
    sure[required | required.T] = 1.0
    sure[forbidden & forbidden.T] = 0.0
    np.fill_diagonal(sure, 0.0)
    return sure, arrows
