"""One call for a table of any size, and the two systems that it chooses from by public facts."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from dpcgd.datasets.counts import Counts, Records
from dpcgd.datasets.variable import Parts
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.graphs.pc_search import Answers
from dpcgd.moments.clipped_moments import LONGER, Aim, clips, measure_moments
from dpcgd.moments.interactions import Marginals, measure_table, paid
from dpcgd.moments.joined_levels import FIRST_LOOK, join_levels
from dpcgd.privacy.budget import ROOM, level_of_the_caller
from dpcgd.privacy.conversions import squared
from dpcgd.privacy.filters import GaussianFilter, PureFilter
from dpcgd.privacy.run import Run, check_data, open_run, takes_keywords
from dpcgd.reading.reader import Precision, check_precision, unlike_training
from dpcgd.reading.release import MarginalRelease, read_moments

__all__ = ["Measured", "dag_posterior", "graph_from_moments", "has_few_cells", "private_graph"]

MOST_VARIABLES, MOST_CELLS = 8, 1024
"""The largest table that is released as a whole; most cells of a larger one would be only noise."""


@takes_keywords
def private_graph(
    data: Counts,
    *,
    precision: Precision = None,
    aim: Aim = "edges",
    **shared: Unpack[SearchKeywords],
) -> MarginalRelease:
    """The best graph that this package can release for a table, whatever its size.

    A table of at most eight variables and 1,024 combinations of their levels is released as a whole
    by :func:`dag_posterior`. For a larger table :func:`graph_from_moments` releases moments.
    Chapter 17 has the figures behind this rule.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" asks for the edges of largest expected F1, of which there is always one: those of
        chapter 17's table. By default an edge is drawn if its probability is at least one half.
    aim : {"edges", "effects"}
        The purpose of the release. Long records are shortened so that less noise is needed, which
        is best for edges. For effects the bound is 2.5 times as large: shortening biases them.

    Returns
    -------
    MarginalRelease
        The release of the chosen system, which its receipt names; both have `probabilities`.

    Raises
    ------
    ValueError
        If the budget, the noise source, the knowledge, the precision or the aim is unusable;
        nothing has run then.
    ImportError
        If `rng` is left out and OpenDP is not installed.

    Warns
    -----
    UserWarning
        If moments are released, and the edge model was not trained on tables like this one, by its
        public facts. For a whole table only ``graph.certainty.caution`` says so.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours, as is either system: which
    one runs depends on the number of variables and on their public levels. Chapter 15,
    :prf:ref:`thm-whole-table`, chapter 12, :prf:ref:`thm-learned-pc`, and chapter 18,
    :prf:ref:`thm-joined-levels`, where levels are joined. A whole table costs no delta.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import load
    >>> rng = np.random.default_rng(0)
    >>> for name in ("survey", "sachs"):  # six variables and 144 cells; eleven variables
    ...     data = load(name, rng=rng)
    ...     release = private_graph(data, epsilon=1.0, rng=rng)
    ...     print(type(release).__name__, release.graph.skeleton_f1(data.truth) > 0.8)
    MarginalRelease True
    MarginalRelease True
    """
    check_aim(aim)
    if system_for(data) is dag_posterior:
        return dag_posterior(data, precision=precision, **shared)
    return graph_from_moments(data, precision=precision, aim=aim, **shared)


def system_for(data: Counts) -> Callable[..., MarginalRelease]:
    """The system that finds more in a table of this size, by public facts."""
    check_data(data, numbers=True)
    return dag_posterior if has_few_cells(data.cardinalities) else graph_from_moments


def has_few_cells(levels: Sequence[int]) -> bool:
    """Whether a whole table with these numbers of levels is released at once: a public fact.

    Examples
    --------
    >>> has_few_cells([2] * 8), has_few_cells([3] * 8), has_few_cells([1] * 9)
    (True, False, False)
    """
    return len(levels) <= MOST_VARIABLES and math.prod(levels) <= MOST_CELLS


class Measured(NamedTuple):
    """The measurements of a run.

    Attributes
    ----------
    run : Run
    marginals : Marginals
    levels : mapping of str to sequence of str
        Levels of the measured variables; the new ones if levels were joined.
    joined_levels : mapping
        Map from each variable with joined levels to the new name of each old level.
    caution : str
        A reason to doubt the edge model, by public facts, or an empty text.
    price : float
        Rho of each triple that a search may buy; 0 if it buys none.
    """

    run: Run
    marginals: Marginals
    levels: Mapping[str, Sequence[str]]
    joined_levels: Mapping[str, Mapping[str, str]]
    caution: str = ""
    price: float = 0.0

    def release(self, graph: CPDAG, answers: Answers | None = None) -> MarginalRelease:
        """Release the measurements with a graph that follows from them.

        Parameters
        ----------
        graph : CPDAG
        answers : Answers, optional
            Answers of the search that made the graph.
        """
        joined = ("thm-joined-levels",) if self.joined_levels else ()
        kept = self.levels.items()
        return MarginalRelease(
            graph,
            **self.run.receipt(*self.marginals.theorems(), *joined),
            answers=answers,
            marginals=self.marginals,
            levels={name: () if isinstance(own, Parts) else tuple(own) for name, own in kept},
            joined_levels=self.joined_levels,
        )

    def read(self, precision: Precision) -> MarginalRelease:
        """Release the measurements with the graph that is read from them."""
        knowledge, names = self.run.terms.settings.get("knowledge"), tuple(self.levels)
        return self.release(read_moments(self.marginals, names, knowledge, precision, self.caution))


@takes_keywords
def dag_posterior(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> MarginalRelease:
    """The noisy whole table of a few variables, and a graph from those that it makes likely.

    Random walks look for graphs that are likely, given the noisy table. The probability of an edge
    follows from the share of likely graphs that join its pair, and from the edge model of
    :func:`graph_from_moments` on the same table. That of an arrow is the probability of
    its edge, times the mean of two probabilities of the arrow given the edge: by these graphs, and
    by the method of :func:`graph_from_moments`.

    Parameters
    ----------
    data : Dataset or Counts
        At most eight variables, whose table has at most 1,024 cells.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`. No delta is used.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" asks for the edges of largest expected F1, of which there is always one: those of
        chapter 17's table. By default an edge is drawn if its probability is at least one half.

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
    once; the rest is post-processing. Chapter 15, :prf:ref:`thm-whole-table`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = dag_posterior(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 1.0
    (1.0, True)
    """
    check_precision(precision)
    return measure_all_cells(data, precision=precision, **shared).read(precision)


def measure_all_cells(
    data: Counts, *, precision: Precision = None, **shared: Unpack[SearchKeywords]
) -> Measured:
    """Measure the table that :func:`dag_posterior` reads; the arguments are the same."""
    by = ("dag_posterior", "thm-whole-table")
    run = open_run(data, account=PureFilter, by=by, precision=precision, **shared)
    if not has_few_cells(data.cardinalities):
        cells = f"{math.prod(data.cardinalities):,} cells of {data.d} variables"
        most = f"at most {MOST_CELLS:,} of {MOST_VARIABLES} are released at once"
        raise ValueError(f"the whole table has {cells}, and {most}; take private_graph")
    whole = run.account.limit.price * (1 - ROOM)
    table = measure_table(data, epsilon=whole, account=run.account, noise=run.noise)
    caution = unlike_training(data.d, data.n, squared(whole) / 2)
    return Measured(run, table, data.levels, {}, caution)


@takes_keywords
def graph_from_moments(
    data: Counts,
    *,
    precision: Precision = None,
    aim: Aim = "edges",
    **shared: Unpack[SearchKeywords],
) -> MarginalRelease:
    """Moments of all pairs, read by an edge model that was trained on simulated networks.

    They are read twice: the second reading uses the edge probabilities of the first. Moments are
    clipped, after a measurement of single variables that decides the weight of each level. A
    category of many levels has as many entries as the budget allows, at least one. With few
    variables, or if the noise is small beside the sampling error, the pairs are released without
    clipping. They are clipped all the same if a variable is a number, or if the levels have more
    contrasts than the budget allows.

    Parameters
    ----------
    data : Dataset or Counts
        If it only answers counts, and is not one of :class:`~dpcgd.datasets.counts.Records`, the
        moments are those of the pairs, whose noise is wider. If a variable has very many levels,
        a measurement before that decides which of them are joined.
    epsilon, delta, allow_delta, rng, secure, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" asks for the edges of largest expected F1, of which there is always one: those of
        chapter 17's table. By default an edge is drawn if its probability is at least one half.
    aim : {"edges", "effects"}
        The purpose of the release. Long records are shortened so that less noise is needed, which
        is best for edges. For effects the bound is 2.5 times as large: shortening biases them.

    Returns
    -------
    MarginalRelease

    Raises
    ------
    ValueError
        If the budget, the noise source, the knowledge, the precision or the aim is unusable;
        nothing has run then.

    Warns
    -----
    UserWarning
        If the edge model was not trained on tables of so many variables, of so few records, or with
        so much noise.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a Gaussian release of single
    variables and pairs, or one of single variables and then one of clipped moments; reading it is
    post-processing, whatever the reader was trained on. Chapter 11, :prf:ref:`thm-pairs`, chapter
    12, :prf:ref:`thm-clipped-moments` and :prf:ref:`thm-learned-pc`, chapter 16,
    :prf:ref:`thm-look-at-numbers`, and chapter 18, :prf:ref:`thm-joined-levels`, where levels are
    joined.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = graph_from_moments(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> release.graph.skeleton_f1(data.truth), release.ledger.spent.epsilon <= 1.0
    (1.0, True)
    """
    check_precision(precision)
    check_aim(aim)
    return measure_for_edges(data, precision=precision, aim=aim, **shared).read(precision)


def measure_for_edges(
    data: Counts,
    *,
    precision: Precision = None,
    aim: Aim = "edges",
    **shared: Unpack[SearchKeywords],
) -> Measured:
    """Measure the moments that :func:`graph_from_moments` reads; the arguments are the same."""
    by = ("graph_from_moments", "thm-learned-pc")
    settings: dict[str, Any] = {"precision": precision, "aim": aim}
    run = open_run(data, account=GaussianFilter, numbers=True, by=by, **settings, **shared)
    caution = unlike_training(data.d, data.n, run.account.rho)
    if caution:
        warnings.warn(caution, stacklevel=level_of_the_caller())
    if data.numbers and not isinstance(data, Records):
        problem = f"{data.numbers[0]!r} is a number, and {type(data).__name__} answers counts alone"
        raise ValueError(f"{problem}; read the records, or give it edges in the schema")
    measure, clipped = paid(run.account, run.noise), clips(data, run.account.remaining)
    joined_levels: Mapping[str, Mapping[str, str]] = {}
    if not isinstance(data, Records):
        data, joined_levels = join_levels(data, measure, FIRST_LOOK * run.account.rho)
    marginals = measure_moments(data, measure, run.account.remaining, clipped=clipped, aim=aim)
    return Measured(run, marginals, data.levels, joined_levels, caution)


def check_aim(aim: str) -> None:
    """Refuse an aim that no release can have."""
    if aim not in [*LONGER]:  # a list: what is asked for may have no hash
        raise ValueError(f"aim must be 'edges' or 'effects', not {aim!r}")
