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
from dpcgd.moments.clipped_moments import clips, measure_moments
from dpcgd.moments.interactions import Marginals, paid
from dpcgd.moments.joined_levels import FIRST_LOOK, join_levels
from dpcgd.moments.theorems import theorems_of
from dpcgd.moments.triples import affords_triples, measure_triples
from dpcgd.privacy.budget import level_of_the_caller
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.run import open_run
from dpcgd.reading.orientation import LEVEL, arrow_confidence, pointed
from dpcgd.reading.reader import (
    Precision,
    check_precision,
    drawn_edges,
    edge_probabilities,
    unlike_training,
)

__all__ = ["LearnedRelease", "learned_pc"]


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
        :func:`~dpcgd.reading.orientation.arrow_confidence` times the probability of the edge.
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
    precision: Precision = None,
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
        Where it only answers counts, and is not one of :class:`~dpcgd.datasets.counts.Records`,
        the moments are those of the pairs, whose noise is wider.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" for the edges of largest expected F1, which are never none: those of chapter 12's
        table. Otherwise an edge is drawn if it is likelier than not.

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
    if caution := unlike_training(data.d, data.n, run.account.rho):
        warnings.warn(caution, stacklevel=level_of_the_caller())
    measure, clipped = paid(run.account, run.noise), clips(data)
    data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho)
    rho = run.account.remaining
    if affords_triples(data.cardinalities, data.n, rho):
        told = measure_triples(data, measure, rho)
    else:
        told = measure_moments(data, measure, rho, clipped=clipped)
    read = edge_probabilities(told)
    read[required | required.T] = 1.0
    read[forbidden & forbidden.T] = 0.0
    probabilities, joined = drawn_edges(read, told, required, precision)
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
