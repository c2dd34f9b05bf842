"""The scores that any released graph gets, against the true one, and the papers' own score."""

import functools
import json
from pathlib import Path

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG

__all__ = ["SCORES", "arcs_f1", "reference_arcs", "scores"]

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
