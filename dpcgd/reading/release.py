"""A release of moments, and the graphs that can be read from it at no further cost."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import expit, logit

from dpcgd.graphs.cpdag import CPDAG, Certainty
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.receipt import read_receipt, release_fields
from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of
from dpcgd.moments.entries import Entries
from dpcgd.moments.interactions import Marginals, Moment, NoisyTable
from dpcgd.moments.scores import Histogram, Singles
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.run import check_settings
from dpcgd.reading import reader
from dpcgd.reading.graph_posterior import shares_of
from dpcgd.reading.likely_graphs import met_graphs
from dpcgd.reading.orientation import arrow_confidence, pointed
from dpcgd.reading.pair_features import PRIOR, dependence, interplay, least_noise

__all__ = ["MarginalRelease", "WeighedGraphs", "read", "read_moments", "read_release", "reread"]
__all__ += ["weigh_graphs"]

Reading = Literal["edges", "whole graphs", "likeliest graph"]
"""A kind of reading: edges one by one, or the posterior over whole graphs."""

EDGES, _, LIKELIEST = READINGS = get_args(Reading)

WEIGHTS = (0.87, 0.32, 0.67)
"""Three numbers: the log odds of an edge are the first, plus the second times those by likely
graphs, plus the third times those by the edge model.

Fitted to 300 networks of :func:`~dpcgd.datasets.random_networks.any_network`, as
benchmarks/README.md says.
"""

FADES = 2.0
"""These log odds give way to those of the prior by so many times the noise's variance."""

RARE = 6.0
"""Log odds against an interaction with a third variable that the pair itself does not show."""

LEAST_SHARE = 0.002
"""The least distance of an edge's posterior from 0 and from 1; it is clipped there."""

FAINT = 0.05
"""An edge that is less likely gets no direction. Where nothing shows, the edges of largest expected
F1 are thousands like this, and their directions would take hours."""


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class MarginalRelease(Release):
    """A release of moments. Whatever is computed from it costs no further budget.

    Attributes
    ----------
    marginals : Marginals
        The measured moments: a whole table, pairs, perhaps with triples, or clipped moments.
    levels : mapping of str to tuple of str
        Public levels of the moments, the new ones if levels were joined. A number has none.
    joined_levels : dict
        Map from each variable with joined levels to the new name of each old level.
    """

    marginals: Marginals
    levels: Mapping[str, tuple[str, ...]]
    joined_levels: Mapping[str, Mapping[str, str]]

    @cached_property
    def certainty(self) -> Certainty:
        """Probabilities of each edge and each arrow: those of the graph, or those of :func:`read`.

        A graph that a search has found has no probabilities of its own.
        """
        graph = self.graph if self.graph.certainty is not None else read(self)
        assert graph.certainty is not None
        return graph.certainty

    @property
    def probabilities(self) -> Mapping[frozenset[str], float]:
        """Map from each pair of variables to the probability that an edge joins it."""
        return self.certainty.edges

    @property
    def arrow_shares(self) -> Mapping[tuple[str, str], float]:
        """Map from (cause, effect) of each joined pair to the probability of this arrow."""
        return self.certainty.arrows


def check_moments(release: Release) -> MarginalRelease:
    """Refuse a release without moments, which is one of a system that releases only answers.

    Raises
    ------
    ValueError
        If there are no moments; the message says what the release holds.
    """
    if not isinstance(release, Release):
        raise ValueError("release must be a release; read_release(path) gives that of a receipt")
    if not isinstance(release, MarginalRelease):
        made = f"for {release.terms.system or 'its system'} measured none"
        cure = "only what private_graph and table_pc release can be read further"
        raise ValueError(f"this release holds a graph and no moments, {made}; {cure}")
    return release


def read(
    release: Release,
    *,
    precision: reader.Precision = None,
    knowledge: Knowledge | None = None,
    reading: Reading = "edges",
) -> CPDAG:
    """Read another graph from a release of moments, at no cost.

    :func:`reread` gives a release with that graph, to be published.

    Parameters
    ----------
    release : MarginalRelease
        A release of :func:`~dpcgd.tables.private_graph.private_graph` or of another system that
        measures moments.
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" asks for the edges of largest expected F1; there is always at least one. By default an
        edge is drawn if its probability is at least one half.
    knowledge : Knowledge, optional
        Knowledge in place of that of the run.
    reading : {"edges", "whole graphs", "likeliest graph"}
        "edges" weighs each pair by the edge model and each arrow by its triples, for a whole table
        both by likely graphs, too, and draws the arrows of these. The others need a whole table,
        and use the posterior over graphs alone: "whole graphs" gives each edge and arrow the share
        of the graphs that have it, "likeliest graph" draws the graph of largest posterior. Both use
        graphs of two random walks, which may miss a likelier one.

    Returns
    -------
    CPDAG
        The graph, with the probabilities of its edges and arrows.

    Raises
    ------
    ValueError
        If the release holds no moments, or no whole table although graphs are to be weighed; or if
        precision, knowledge or reading is invalid.

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
    return reread(release, precision=precision, knowledge=knowledge, reading=reading).graph


def reread(
    release: Release,
    *,
    precision: reader.Precision = None,
    knowledge: Knowledge | None = None,
    reading: Reading = "edges",
) -> MarginalRelease:
    """The same release with another graph; its receipt and its report name the new reading.

    Parameters
    ----------
    release : MarginalRelease
    precision, knowledge, reading
        As for :func:`read`.

    Returns
    -------
    MarginalRelease
        Moments and costs are those of the given release. Answers to tests are left out, because
        the graph does not follow from them.

    Raises
    ------
    ValueError
        As for :func:`read`.

    Privacy
    -------
    Post-processing of what has been released; no further cost.

    Examples
    --------
    >>> from dpcgd import load, private_graph
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> sure = reread(release, precision=0.99)
    >>> sure.ledger is release.ledger, sure.reading["precision"]
    (True, 0.99)
    """
    measured, names = check_moments(release), release.graph.variables
    reader.check_precision(precision)
    _check_reading(measured, reading, precision)
    check_settings(release.graph, knowledge=knowledge)
    knowledge = measured.knowledge if knowledge is None else knowledge
    rho = sum(map(zcdp_rho, measured.ledger.events))
    caution = reader.unlike_training(len(names), measured.terms.n, rho)
    graph = read_moments(measured.marginals, names, knowledge, precision, caution, reading)
    said = {"precision": precision, "knowledge": knowledge, "reading": reading}
    return replace(measured, graph=graph, answers=None, reading=said)


def _check_reading(release: MarginalRelease, reading: Reading, precision: reader.Precision) -> None:
    """Refuse a reading that this release does not allow."""
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}; {reading!r} is none")
    if reading != EDGES and not isinstance(release.marginals, NoisyTable):
        problem = f"{reading!r} weighs graphs by a whole table, and this release holds moments"
        raise ValueError(f"{problem}; read its edges, or call climb for a graph by a score")
    if reading == LIKELIEST and precision is not None:
        raise ValueError("the likeliest graph has the edges it has; leave precision out")


def read_moments(
    marginals: Marginals,
    names: Sequence[str],
    knowledge: Knowledge | None,
    precision: reader.Precision,
    caution: str,
    reading: Reading = "edges",
) -> CPDAG:
    """The graph of the edges and arrows that moments make likely.

    Parameters
    ----------
    marginals : Marginals
        A whole table is read by weighing graphs and, for "edges", by the edge model too; other
        moments are read by the edge model alone.
    names : sequence of str
        Names of the variables.
    knowledge, precision, reading
        As for :func:`read`.
    caution : str
        A reason to doubt the probabilities, by public facts, or an empty text.

    Privacy
    -------
    Post-processing.
    """
    forbidden, required = (knowledge or Knowledge()).arrays(names)
    fixed, apart = required | required.T, forbidden & forbidden.T
    whole = None
    if isinstance(marginals, NoisyTable):
        whole = weigh_graphs(marginals, forbidden, required)
        likely = _edges(marginals, whole, reading)
    else:
        likely = reader.edge_probabilities(marginals)
    likely[fixed], likely[apart] = 1.0, 0.0
    joined = reader.most_likely_edges(likely, precision)
    directed = joined & (likely >= FAINT)
    missed = likely[~directed].sum() / likely.sum() if directed.any() else 0.0
    shares = whole.shares if whole else arrow_confidence(marginals, directed, forbidden, missed)
    arcs = pointed(shares, joined, forbidden)
    if whole and reading == LIKELIEST:
        arcs = whole.likeliest
    if whole and reading == EDGES:  # likely graphs point well, and are too sure of it
        shares = (shares + arrow_confidence(marginals, directed, forbidden, missed)) / 2
    arrows = shares * likely
    pairs = combinations(range(len(names)), 2)
    edges = {frozenset((names[x], names[y])): likely[x, y] for x, y in pairs}
    shown = {(names[a], names[b]): arrows[a, b] for a, b in np.argwhere(arcs | arcs.T).tolist()}
    return CPDAG(names, arcs, Certainty(edges, shown, caution))


def _edges(table: NoisyTable, whole: "WeighedGraphs", reading: Reading) -> np.ndarray:
    """Probabilities of edges by weighted graphs, or by these and the edge model.

    Graphs fit the noise of empty cells. So by both, no edge is likelier than what is seen of it
    would be with a prior of one half: the pair's dependence, or an interaction with a third
    variable. The edge model sees pairs only; it counts less where it doubts an edge of the likely
    graphs and only such an interaction shows.
    """
    edges = np.clip(whole.joined, LEAST_SHARE, 1 - LEAST_SHARE)
    if reading == EDGES:
        by_model = np.clip(reader.edge_probabilities(table), LEAST_SHARE, 1 - LEAST_SHARE)
        constant, weight, weight_of_model = WEIGHTS
        paired, in_threes = logit(dependence(table)) - logit(PRIOR), interplay(table) - RARE
        unseen = expit(-paired) * expit(in_threes) * (by_model < edges)
        odds = constant + weight * logit(edges) + weight_of_model * (1 - unseen) * logit(by_model)
        kept = 1 / (1 + FADES * least_noise(blocks_of(table)))
        most = np.logaddexp(paired, in_threes)
        edges = expit(np.minimum(kept * odds + (1 - kept) * logit(PRIOR), most))
    one_level = np.array(table.levels) == 1
    edges[one_level] = edges[:, one_level] = 0.0
    np.fill_diagonal(edges, 0.0)
    return edges


class WeighedGraphs(NamedTuple):
    """Probabilities of edges and arrows from the likely graphs of a whole table.

    Attributes
    ----------
    joined : array of shape (d, d)
        The share of the graphs in which each pair is joined.
    arrows : array of shape (d, d)
        The share of the graphs whose CPDAG has each arrow.
    likeliest : boolean array of shape (d, d)
        Arcs of the CPDAG of the likeliest graph.
    """

    joined: np.ndarray
    arrows: np.ndarray
    likeliest: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """The probability of each arrow if its pair is joined."""
        return self.arrows / np.maximum(self.joined, LEAST_SHARE)


def weigh_graphs(table: NoisyTable, forbidden: np.ndarray, required: np.ndarray) -> WeighedGraphs:
    """Weigh graphs by the likelihood of a whole table.

    Parameters
    ----------
    table : NoisyTable
    forbidden, required : boolean array of shape (d, d)
        Arcs that no graph has, and arcs that every graph has.

    Returns
    -------
    WeighedGraphs

    Privacy
    -------
    Post-processing.
    """
    graphs, weights = met_graphs(table, forbidden, required)
    best, known = shares_of(graphs[[weights.argmax()]], np.ones(1), forbidden)
    return WeighedGraphs(*shares_of(graphs, weights, forbidden), (best > 0) & ~(known.T > 0))


def read_release(path: str | os.PathLike) -> Release:
    """Read a release back from the receipt that :meth:`~dpcgd.graphs.release.Release.save` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    Release
        A release of the kind that was saved, with everything but its running time.

    Raises
    ------
    ValueError
        If there is no such file, or its content is not what was written. The digest in the file
        shows accidents and edits by hand; it is not a signature.

    Privacy
    -------
    What has been released.

    Examples
    --------
    >>> import tempfile
    >>> from dpcgd import load, table_pc
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=0.3, rng=np.random.default_rng(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(f"{folder}/receipt.json")
    ...     read_release(f"{folder}/receipt.json") == release
    True
    """
    content = read_receipt(path)
    try:
        kind = {kind.__name__: kind for kind in (Release, MarginalRelease)}[content["release"]]
        return kind(**release_fields(content, _marginals))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        problem = f"{path} holds no release that this version can read ({reason})"
        raise ValueError(f"{problem}; read it with the version that wrote it") from None


def _marginals(content) -> Marginals:
    n = content["n"]
    if "counts" in content:
        return NoisyTable(n, np.array(content["counts"]), content["scale"])
    levels, released = tuple(content["levels"]), {}
    for moment in content["moments"]:
        subset = tuple(moment["variables"])
        values = np.array(moment["values"], float)
        shape = [levels[v] - 1 for v in subset]
        released[subset] = Moment(values.reshape(shape), moment["deviation"])
    if "clipped" not in content:
        return Marginals(n, levels, released)
    upper, deviation = content["clipped"]["moments"], content["clipped"]["deviation"]
    moments = np.zeros((len(upper),) * 2)
    moments[np.triu_indices(len(upper))] = [value for row in upper for value in row]
    moments += np.triu(moments, 1).T
    numbers = {own["variable"]: Histogram.of_receipt(own) for own in content.get("numbers", ())}
    entries = {}
    for own in content.get("entries", ()):
        entries[own["variable"]] = Entries(*(own[name] for name in Entries._fields))
    return ClippedMoments(Singles(n, levels, released, numbers, entries), moments, deviation)
