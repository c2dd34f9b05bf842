"""A Bayesian network from what a run has released: no further budget, and with error bars."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_whole
from dpcgd.datasets.bayesian_networks import Network
from dpcgd.graphs.cpdag import consistent_extension
from dpcgd.graphs.release import Release
from dpcgd.reading.family_fit import LARGEST_VARIANCE, fit_family, unreleased
from dpcgd.reading.max_entropy import has_few_terms, pair_table
from dpcgd.reading.release import check_moments
from dpcgd.reading.unreleased import strength_of_interactions, unreleased_variance

__all__ = ["FittedNetwork", "fit_network"]

MOST_CELLS = 2**21
"""Of a variable with its parents."""


MOST_NAMES = 8
"""Of variables in a line of text."""


@dataclass(frozen=True)
class FittedNetwork:
    """A network, and how far its probabilities may be off.

    Attributes
    ----------
    network : Network
    errors : mapping of str to array
        Standard errors, shaped like ``network.tables``: from sampling, from privacy noise, and from
        interactions that have not been released. They are 0.5, the largest there is, where a table
        is not identified.
    identified : mapping of str to bool
        Whether the release tells a variable's probabilities, given its parents, up to these errors.
    assumed : frozenset of str
        Variables whose probabilities are the most even ones that fit the release. Their errors
        assume that interactions that have not been released are as strong as those that have.
    left_out : mapping of str to tuple of str
        Parents that a table of two million cells had no place for, and so the network has not.
    """

    network: Network
    errors: Mapping[str, np.ndarray] = field(repr=False)
    identified: Mapping[str, bool] = field(repr=False)
    assumed: frozenset[str] = field(repr=False)
    left_out: Mapping[str, tuple[str, ...]] = field(repr=False)

    def __repr__(self):
        cells = {v: table.size for v, table in self.network.tables.items()}
        unknown = [v for v, known in self.identified.items() if not known]
        share = f"{sum(cells[v] for v in unknown):,} probabilities of " if unknown else ""
        lines = [
            f"FittedNetwork({len(cells)} variables, {self.network.graph.number_of_edges()} arcs, "
            f"{sum(cells.values()):,} probabilities)",
            f"  not identified: {share}{_named(unknown)}",
            f"  errors rest on an assumption: {_named([v for v in cells if v in self.assumed])}",
            *(f"  parents left out of {v}: {_named(lost)}" for v, lost in self.left_out.items()),
        ]
        return "\n".join(lines)


def _named(variables) -> str:
    """The first few, and how many more there are."""
    more = len(variables) - MOST_NAMES
    return (", ".join(variables[:MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")


def fit_network(
    release: Release, *, rng: np.random.Generator, dag: nx.DiGraph | None = None, redraws: int = 50
) -> FittedNetwork:
    """Conditional probabilities of a DAG from released moments.

    Parameters
    ----------
    release : MarginalRelease
    rng : numpy.random.Generator
        Of the redraws that tell how far sampling and noise carry.
    dag : networkx.DiGraph, optional
        A consistent extension of the released graph unless given.
    redraws : int
        At least 1.

    Returns
    -------
    FittedNetwork

    Raises
    ------
    ValueError
        If the release holds no moments, the graph is no DAG of its variables, or there is to be no
        redraw.

    Privacy
    -------
    Post-processing of the release. Chapter 14, :prf:ref:`thm-table-pc`.

    Notes
    -----
    Where all interactions of a variable with its parents have been released, its probabilities are
    exact but for noise and sampling. Elsewhere they are those of largest entropy with the released
    interactions, and the errors rest on an assumption: the other interactions are as strong as
    released triples show, by their distance from the tables of largest entropy with their pairs. If
    no triple shows it, or the table has more than about a million cells times terms, the
    probabilities are marked as not identified. Where records were clipped, a fifth of the most that
    clipping can have taken from a moment counts as its deviation.

    On random networks bars of 1.96 errors cover about 95 % of the probabilities
    (benchmarks/fit_cover.py). A single interaction can be stronger than the others, and no release
    shows that.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.tables.table_pc import table_pc
    >>> data = load("cancer", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> fitted = fit_network(release, rng=np.random.default_rng(2), dag=data.truth)
    >>> fitted.network.tables["Smoker"].round(2), bool(fitted.errors["Smoker"].max() < 0.01)
    (array([0.3, 0.7]), True)
    >>> fitted
    FittedNetwork(5 variables, 4 arcs, 20 probabilities)
      not identified: none
      errors rest on an assumption: none
    """
    measured = check_moments(release)
    check_whole("redraws", redraws, 1)
    marginals, names = measured.marginals, list(measured.levels)
    wanted = _parents(names, consistent_extension(release.graph) if dag is None else dag)
    parents = {v: _that_fit(marginals, names, v, group) for v, group in wanted.items()}
    left_out = {v: tuple(u for u in group if u not in parents[v]) for v, group in wanted.items()}
    families = {v: tuple(map(names.index, (*group, v))) for v, group in parents.items()}
    fits = {v: fit_family(marginals, family, redraws, rng) for v, family in families.items()}
    strength = strength_of_interactions(marginals, families.values(), redraws, rng)
    partly = {v for v, family in families.items() if unreleased(marginals, family)}
    assumed = {v for v in partly if strength is not None and has_few_terms(marginals, families[v])}
    known = {v: not left_out[v] and (v in assumed or v not in partly) for v in names}
    return FittedNetwork(
        network=Network(
            "fitted", dict(measured.levels), parents, {v: fits[v].table for v in names}
        ),
        errors={v: _error(marginals, families[v], fits[v], known[v], strength) for v in names},
        identified=known,
        assumed=frozenset(v for v in assumed if known[v]),
        left_out={v: lost for v, lost in left_out.items() if lost},
    )


def _error(marginals, family, fit, known, strength) -> np.ndarray:
    variance = fit.variance if known else np.full(fit.table.shape, LARGEST_VARIANCE)
    if strength is not None:
        variance = variance + strength * unreleased_variance(marginals, family, fit)
    return np.sqrt(np.minimum(variance, LARGEST_VARIANCE))


def _parents(names, dag) -> dict[str, list[str]]:
    """Of each variable, in their order."""
    if set(dag) != set(names) or not nx.is_directed_acyclic_graph(dag):
        raise ValueError("dag must have the variables of the release and no cycle")
    return {v: sorted(dag.predecessors(v), key=names.index) for v in names}


def _that_fit(marginals, names, child, parents) -> tuple[str, ...]:
    """The parents, without those of least mutual information if there are too many."""
    kept, number = list(parents), names.index

    def information(v) -> float:
        joint = pair_table(marginals, number(v), number(child))
        independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        return float((joint * np.log(joint / independent)).sum())

    while math.prod(marginals.levels[number(v)] for v in (*kept, child)) > MOST_CELLS:
        kept.remove(min(kept, key=information))
    return tuple(kept)
