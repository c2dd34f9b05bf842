"""A private graph from the moments of all pairs, read by what was trained on simulations."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.release import ReleaseWithProbabilities
from dpcgd.marginals.clipped_moments import clips, measure_moments
from dpcgd.marginals.interactions import Marginals, paid
from dpcgd.marginals.joined_levels import FIRST_LOOK, join_levels
from dpcgd.marginals.orientation import LEVEL, arrow_confidence, pointed
from dpcgd.marginals.reader import (
    check_precision,
    edge_probabilities,
    most_likely_edges,
    trained_reader,
)
from dpcgd.marginals.theorems import theorems_of
from dpcgd.marginals.triples import affords_triples, measure_triples
from dpcgd.privacy.budget import Budget, level_of_the_caller
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.run import open_run

__all__ = ["LearnedRelease", "learned_pc"]

DELTA_IN_TRAINING = 1e-6
"""At which the smallest epsilon of training was converted."""


@dataclass(frozen=True, repr=False, eq=False)
class LearnedRelease(ReleaseWithProbabilities):
    """A release that also holds the moments it was read from.

    Attributes
    ----------
    marginals : Marginals
        Clipped moments, or pairs, perhaps with triples. Whatever is computed from it is
        post-processing.
    levels : mapping of str to tuple of str
        Public, those of the moments: where levels were joined, the new ones.
    joined_levels : dict
        From each variable whose levels were joined to what has become of each of them.
    """

    marginals: Marginals
    levels: Mapping[str, tuple[str, ...]]
    joined_levels: dict[str, dict[str, str]]

    def arrow_confidence(self) -> dict[tuple[str, str], float]:
        """How likely each arrow is: that its edge is there, and that it points this way.

        Returns
        -------
        dict
            From (cause, effect), both ways round for each pair that the graph joins. What the two
            lack to the probability of the edge is the chance that it has no direction.

        Privacy
        -------
        Post-processing of what has been released.

        Notes
        -----
        :func:`~dpcgd.marginals.orientation.arrow_confidence` times the probability of the edge.
        """
        return dict(self.arrow_shares)


def learned_pc(
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
) -> LearnedRelease:
    """Moments of all pairs, read by a model that was trained on simulated networks.

    They are read twice: the second model knows which edges the first one found likely. Of more than
    eight variables the moments are clipped, after a first look at single variables that decides how
    much each level weighs. Of six to twelve, where the noise is small beside what sampling does,
    pairs and triples are released instead, and read a third time. Where a variable has very many
    levels, a look before all this decides which of them are joined.

    Parameters
    ----------
    data : Dataset or Counts
        Where it only answers counts, and is not one of :class:`~dpcgd.datasets.records.Records`,
        the moments are those of the pairs, whose noise is wider.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    precision : float, optional
        Share of the edges that should be right; without it, the edges of largest expected F1.

    Returns
    -------
    LearnedRelease

    Raises
    ------
    ValueError
        If the budget, the noise source, the knowledge or the precision is unusable; nothing has
        run then.

    Warns
    -----
    UserWarning
        If the reader was trained on no table of so many variables, of so few records, or with so
        much noise.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a Gaussian release of single
    variables and pairs, perhaps one of triples, or one of single variables and then one of clipped
    moments; reading it is post-processing, whatever the reader was trained on. Chapter 11,
    :prf:ref:`thm-pairs`, chapter 15, :prf:ref:`thm-clipped-moments`, :prf:ref:`thm-triples` and
    :prf:ref:`thm-learned-pc`, and chapter 13, :prf:ref:`thm-joined-levels`, where levels are
    joined.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = learned_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 1.0
    (1.0, True)
    """
    check_precision(precision)
    how: dict[str, Any] = {"account": GaussianFilter, "knowledge": knowledge}
    how |= {
        "rows_per_person": rows_per_person,
        "by": ("learned_pc", "thm-learned-pc"),
        "precision": precision,
    }
    run = open_run(
        data, epsilon=epsilon, delta=delta, allow_delta=allow_delta, rng=rng, secure=secure, **how
    )
    forbidden, required = (knowledge or Knowledge()).arrays(data.variables)
    caution = ""
    if seen := _never_seen(data.d, data.n, run.account.rho):
        caution = f"the reader was trained on {seen}; its probabilities may be off here"
        warnings.warn(caution, stacklevel=level_of_the_caller())
    measure, clipped = paid(run.account, run.noise), clips(data)
    data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho)
    rho = run.account.remaining
    if affords_triples(data.cardinalities, data.n, rho):
        told = measure_triples(data, measure, rho)
    else:
        told = measure_moments(data, measure, rho, clipped=clipped)
    probabilities = edge_probabilities(told)
    probabilities[required | required.T] = 1.0
    probabilities[forbidden & forbidden.T] = 0.0
    joined = most_likely_edges(probabilities, precision)
    sure = arrow_confidence(told, joined, forbidden)
    names = data.variables
    pairs = {frozenset((names[x], names[y])): (x, y) for x, y in combinations(range(data.d), 2)}
    return LearnedRelease(
        graph=CPDAG(names, pointed(sure, joined, forbidden, LEVEL)),
        separating_sets={},
        untested=frozenset(),
        tests=0,
        stopped_early=False,
        **run.receipt(*theorems_of(told, joined_levels)),
        marginals=told,
        levels={name: tuple(levels) for name, levels in data.levels.items()},
        joined_levels=joined_levels,
        probabilities={pair: float(probabilities[at]) for pair, at in pairs.items()},
        arrow_shares={
            (names[a], names[b]): float(sure[a, b] * probabilities[a, b])
            for a, b in np.argwhere(joined).tolist()
        },
        caution=caution,
    )


def _never_seen(d: int, n: int, rho: float) -> str:
    """What the reader was trained on, where a table is unlike it by public facts; or nothing."""
    trained = trained_reader().trained
    fewest, most = trained["variables"]
    if not fewest <= d <= most:
        return f"{fewest:,} to {most:,} variables"
    records, least = trained["records"][0], trained["epsilons"][0]
    if n < records:
        return f"tables of {records:,.0f} records and more"
    if n**2 * rho < records**2 * GaussianFilter(Budget(least, DELTA_IN_TRAINING)).rho:
        return f"less noise, up to that of epsilon = {least:g} with {records:,.0f} records"
    return ""
