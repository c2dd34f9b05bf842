"""A Bayesian network from what a run has released: no further budget, and with error bars."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import check_whole
from dpcgd.datasets.bayesian_networks import Network
from dpcgd.graphs.consistent_extension import consistent_extension
from dpcgd.marginals.interactions import Marginals
from dpcgd.marginals.table_pc import TableRelease, check_tables

__all__ = ["FittedNetwork", "fit_network"]

MOST_FAMILY_CELLS = 100_000
"""Of a variable with its parents."""


@dataclass(frozen=True)
class FittedNetwork:
    """A network, and how far its probabilities may be off.

    Attributes
    ----------
    network : Network
    errors : mapping of str to array
        Standard errors from sampling and privacy noise together, shaped like ``network.tables``.
    """

    network: Network
    errors: Mapping[str, np.ndarray] = field(repr=False)


def fit_network(
    release: TableRelease,
    *,
    rng: np.random.Generator,
    dag: nx.DiGraph | None = None,
    redraws: int = 50,
) -> FittedNetwork:
    """Conditional probabilities of a DAG from the released tables.

    Parameters
    ----------
    release : TableRelease
    rng : numpy.random.Generator
        Of the redraws that tell how far privacy noise carries.
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
        If the release holds no tables, a variable has too many parents for a table, or there is to
        be no redraw.

    Privacy
    -------
    Post-processing of the release. Chapter 16, :prf:ref:`thm-table-pc`.

    Notes
    -----
    With two parents at most a family's table is exact but for noise, if its triple has been
    released; interactions that have not been released count as zero.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.marginals.table_pc import table_pc
    >>> data = load("cancer", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> fitted = fit_network(release, rng=np.random.default_rng(2), dag=data.truth)
    >>> fitted.network.tables["Smoker"].round(2), bool(fitted.errors["Smoker"].max() < 0.01)
    (array([0.3, 0.7]), True)
    """
    check_tables(release)
    check_whole("redraws", redraws, 1)
    names = list(release.graph.variables)
    dag = consistent_extension(release.graph) if dag is None else dag
    parents = {v: tuple(sorted(dag.predecessors(v), key=names.index)) for v in names}
    families = {v: tuple(names.index(u) for u in (*parents[v], v)) for v in names}
    for v, family in families.items():
        if (cells := math.prod(release.marginals.levels[u] for u in family)) > MOST_FAMILY_CELLS:
            raise ValueError(
                f"{v} with its parents has {cells:,} cells; give a dag with fewer parents for it"
            )
    drawn = [release.marginals.redrawn(rng) for _ in range(redraws)]
    tables = {v: _conditional(release.marginals, family) for v, family in families.items()}
    errors = {v: _error(release.marginals, drawn, families[v], tables[v]) for v in names}
    return FittedNetwork(Network("fitted", dict(release.levels), parents, tables), errors)


def _conditional(marginals: Marginals, family) -> np.ndarray:
    table = marginals.table(*family)
    return table / table.sum(axis=-1, keepdims=True)


def _error(marginals, drawn, family, table) -> np.ndarray:
    """Sampling error, and how far fresh noise moves the table, together."""
    records = marginals.n * marginals.table(*family).sum(axis=-1, keepdims=True)
    moved = [(_conditional(other, family) - table) ** 2 for other in drawn]
    return np.sqrt(table * (1 - table) / records + np.mean(moved, axis=0))
