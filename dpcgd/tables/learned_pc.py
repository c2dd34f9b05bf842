"""A private graph from the moments of all pairs, read by what was trained on simulations."""

import warnings
from typing import Unpack

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.moments.clipped_moments import clips, measure_moments
from dpcgd.moments.interactions import paid
from dpcgd.moments.joined_levels import FIRST_LOOK, join_levels
from dpcgd.moments.triples import affords_triples, measure_triples
from dpcgd.privacy.budget import level_of_the_caller
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.reading.reader import Precision, check_precision, unlike_training
from dpcgd.reading.release import MarginalRelease
from dpcgd.tables.measured import Measured, read_first

__all__ = ["learned_pc", "measure_for_edges"]


@takes_keywords
def learned_pc(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> MarginalRelease:
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
    MarginalRelease

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
    measured = measure_for_edges(data, precision=precision, **shared)
    return read_first(measured, precision)


def measure_for_edges(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> Measured:
    """Measure what :func:`learned_pc` reads; its settings are those of that."""
    by = ("learned_pc", "thm-learned-pc")
    run = open_run(data, account=GaussianFilter, by=by, precision=precision, **shared)
    caution = unlike_training(data.d, data.n, run.account.rho)
    if caution:
        warnings.warn(caution, stacklevel=level_of_the_caller())
    measure, clipped = paid(run.account, run.noise), clips(data)
    data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho)
    rho = run.account.remaining
    if affords_triples(data.cardinalities, data.n, rho):
        marginals = measure_triples(data, measure, rho)
    else:
        marginals = measure_moments(data, measure, rho, clipped=clipped)
    return Measured(run, marginals, data.levels, joined_levels, caution)
