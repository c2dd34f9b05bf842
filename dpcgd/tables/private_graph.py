"""One call for a table of any size: the system that finds most in it, chosen by public facts."""

from collections.abc import Callable
from typing import Unpack

from dpcgd.datasets.counts import Counts
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.moments.noisy_table import has_few_cells
from dpcgd.privacy.run import takes_keywords
from dpcgd.privacy.settings import check_data
from dpcgd.reading.reader import Precision
from dpcgd.reading.release import MarginalRelease
from dpcgd.tables.dag_posterior import dag_posterior
from dpcgd.tables.learned_pc import learned_pc

__all__ = ["private_graph", "system_for"]


@takes_keywords
def private_graph(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> MarginalRelease:
    """The best graph that this package has for a table, whatever its size.

    Of at most eight variables and 1,024 combinations of their levels
    :func:`~dpcgd.tables.dag_posterior.dag_posterior` releases the whole table; of more,
    :func:`~dpcgd.tables.learned_pc.learned_pc` releases moments. Chapter 12 has the figures
    behind this rule.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" for the edges of largest expected F1, which are never none: those of chapter 12's
        table. Otherwise an edge is drawn if it is likelier than not.

    Returns
    -------
    MarginalRelease
        Of the system that was chosen, which its receipt names; both have `probabilities` of edges.

    Raises
    ------
    ValueError
        If the budget, the noise source, the knowledge or the precision is unusable; nothing has
        run then.

    Warns
    -----
    UserWarning
        If the reader was trained on nothing like this table, by its public facts.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours, as is either system: which
    one runs depends on the number of variables and on their public levels. Chapter 17,
    :prf:ref:`thm-whole-table`, and chapter 15, :prf:ref:`thm-learned-pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> rng = np.random.default_rng(0)
    >>> for name in ("survey", "sachs"):  # six variables and 144 cells; eleven variables
    ...     data = load(name, rng=rng)
    ...     release = private_graph(data, epsilon=1.0, rng=rng)
    ...     print(type(release).__name__, release.graph.skeleton_f1(data.truth) > 0.9)
    MarginalRelease True
    MarginalRelease True
    """
    return system_for(data)(data, precision=precision, **shared)


def system_for(data: Counts) -> Callable[..., MarginalRelease]:
    """The system that finds most in a table of this size, by public facts."""
    check_data(data, coded=True)
    return dag_posterior if has_few_cells(data.cardinalities) else learned_pc
