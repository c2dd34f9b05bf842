"""The scores that any released graph gets, against the true one, and the papers' own score."""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from dpcgd.graphs.cpdag import CPDAG

__all__ = ["SCORES", "Paired", "arcs_f1", "paired", "reference_arcs", "scores", "with_errors"]

SCORES = ("F1", "arrowhead F1", "SHD", "edges", "precision", "recall")
"""The names of all scores."""


def scores(graph: CPDAG, truth: nx.DiGraph) -> dict[str, float]:
    """Score a graph against the true one; its directions against their equivalence class.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "b"), ("b", "c")])
    >>> graph = CPDAG.from_dag(nx.DiGraph([("a", "b"), ("a", "c")]))
    >>> scores(graph, truth)["recall"], scores(graph, truth)["SHD"]
    (0.5, 2)
    """
    true = {frozenset(edge) for edge in truth.edges}
    right = len(graph.skeleton & true)
    return {
        "F1": graph.skeleton_f1(truth),
        "arrowhead F1": graph.arrowhead_f1(truth),
        "SHD": graph.shd(truth),
        "edges": len(graph.skeleton),
        "precision": right / len(graph.skeleton) if graph.skeleton else 1.0,
        "recall": right / len(true),
    }


Arcs = frozenset[tuple[int, int]]
"""From and to, as column numbers; an edge without a direction is there both ways round."""


@functools.cache
def reference_arcs(network: str) -> Arcs:
    """The list of arcs that the code of Priv-PC and of CURATE measures F1 against.

    Columns are in the order of the network's file, which says where the list is from.

    Examples
    --------
    >>> sorted(reference_arcs("earthquake"))
    [(0, 2), (1, 2), (2, 3), (2, 4)]
    """
    lists = json.loads(Path(__file__).with_name("reference_arcs.json").read_text())["arcs"]
    pairs = (pair.split("-") for pair in lists[network].split())
    return frozenset((int(start), int(end)) for start, end in pairs)


def arcs_f1(graph: CPDAG, arcs: Arcs) -> float:
    """F1 of a graph's arcs (Priv-PC, footnote 4; CURATE, section IV): how its code scores.

    Notes
    -----
    An edge without a direction counts as two arcs. So a right edge with a wrong or missing
    direction costs, and a list that holds other edges than the network rewards these.

    Examples
    --------
    >>> graph = CPDAG(("a", "b", "c"), [[0, 1, 0], [1, 0, 1], [0, 0, 0]])
    >>> arcs_f1(graph, frozenset([(0, 1), (1, 2)]))
    0.8
    """
    own = set(zip(*map(np.ndarray.tolist, np.nonzero(graph.arcs)), strict=True))
    return 2 * len(own & arcs) / max(1, len(own) + len(arcs))


def over_networks(cells) -> tuple[Any, Any]:
    """The mean of all networks' means, and its standard error over runs, from rows by network."""
    return cells.mean().mean(), np.sqrt((cells.sem() ** 2).sum()) / max(1, cells.ngroups)


class Paired(NamedTuple):
    """A mean difference on the same records, its standard error, and on how many networks."""

    difference: float
    error: float
    ahead: int
    behind: int
    networks: int


def paired(
    rows: pd.DataFrame, first: object, second: object, by: str = "system", column: str = "F1"
) -> Paired:
    """What one of two systems scores more than the other, run by run, as a mean over the networks.

    Parameters
    ----------
    rows : DataFrame
        Columns ``network`` and ``run``, one row a run; runs of one number saw the same records.
    first, second : str or float
        What to compare: entries of the column `by`.
    by, column : str
        The column that holds the score is `column`.

    Returns
    -------
    Paired
        A network counts as ahead or behind if its mean differs by more than 0.005.

    Examples
    --------
    >>> rows = pd.DataFrame({"network": list("aabb"), "run": [0, 0, 0, 0], "system": list("xyxy")})
    >>> tuple(paired(rows.assign(F1=[0.9, 0.5, 0.3, 0.3]), "x", "y")[2:])
    (1, 0, 2)
    """
    scores = rows.pivot(index=["network", "run"], columns=by, values=column)
    scores = scores.reindex(columns=[first, second])
    gaps = (scores[first] - scores[second]).dropna().groupby("network")
    ahead, behind = (int((side * gaps.mean() > 0.005).sum()) for side in (1, -1))
    return Paired(*over_networks(gaps), ahead, behind, gaps.ngroups)


def with_errors(rows: pd.DataFrame, by: str = "system", column: str = "F1") -> pd.DataFrame:
    """The mean score on each network ± its standard error, in words.

    Parameters
    ----------
    rows : DataFrame
        One row a run; its network is in the column ``network``.
    by, column : str
        What has a column each in the table, and the column of the scores.

    Examples
    --------
    >>> with_errors(pd.DataFrame({"network": "a", "system": "x", "F1": [0.4, 0.6]})).loc["a", "x"]
    '0.50 ± 0.10'
    """
    runs = rows.groupby(["network", by], sort=False)[column]
    shown = runs.agg(lambda score: f"{score.mean():.2f} ± {score.sem():.2f}")
    return shown.unstack().rename_axis(index=None, columns=None)
