"""The scores that any released graph gets, against the true one."""

import networkx as nx

from dpcgd.graphs.cpdag import CPDAG

__all__ = ["SCORES", "scores"]

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
