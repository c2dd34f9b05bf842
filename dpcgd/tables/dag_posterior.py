"""A private graph of a few variables: their whole table, and graphs weighed by its likelihood."""

from typing import Unpack

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.moments.noisy_table import check_cells, measure_table
from dpcgd.privacy.conversions import squared
from dpcgd.privacy.doubles import ROOM
from dpcgd.privacy.filters import PureFilter
from dpcgd.privacy.run import open_run, takes_keywords
from dpcgd.privacy.settings import check_data
from dpcgd.reading.reader import Precision, check_precision, unlike_training
from dpcgd.reading.release import MarginalRelease
from dpcgd.tables.measured import Measured, read_first

__all__ = ["dag_posterior", "measure_all_cells"]


@takes_keywords
def dag_posterior(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> MarginalRelease:
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
    MarginalRelease

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
    measured = measure_all_cells(data, precision=precision, **shared)
    return read_first(measured, precision)


def measure_all_cells(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> Measured:
    """Measure what :func:`dag_posterior` reads; its settings are those of that."""
    check_data(data, coded=True)
    check_cells(data.cardinalities)
    by = ("dag_posterior", "thm-whole-table")
    run = open_run(data, account=PureFilter, by=by, precision=precision, **shared)
    whole = run.account.limit.epsilon * (1 - ROOM)
    table = measure_table(data, epsilon=whole, account=run.account, noise=run.noise)
    return Measured(
        run, table, data.levels, {}, unlike_training(data.d, data.n, squared(whole) / 2)
    )
