"""A DAG that represents its whole equivalence class."""

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG

__all__ = ["consistent_extension"]


def consistent_extension(graph: CPDAG) -> nx.DiGraph:
    """Direct all edges so that no cycle and no new collider arises, if that is possible.

    Parameters
    ----------
    graph : CPDAG

    Returns
    -------
    networkx.DiGraph
        It is acyclic, joins the same pairs, and keeps the order of the variables. A search on
        finite data may return a graph that is no DAG's class. Then some arrows are turned or form
        new colliders, as few as the search below finds.

    Notes
    -----
    Dor and Tarsi (1992) take away one variable after the other. Each has no arrow out of it, and
    its undirected neighbours are joined to all its other neighbours. Its edges then point at it.
    Where no variable is like that, we take the one that violates these conditions least.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    >>> sorted(consistent_extension(CPDAG.from_dag(truth)).edges)
    [('a', 'c'), ('b', 'c'), ('c', 'd')]
    """
    arcs, left = graph.arcs.copy(), set(range(len(graph.variables)))
    dag = nx.empty_graph(graph.variables, create_using=nx.DiGraph)
    while left:
        last = min(sorted(left), key=lambda v: _violations(arcs, v))
        joined = np.flatnonzero(arcs[last] | arcs[:, last])
        dag.add_edges_from((graph.variables[v], graph.variables[last]) for v in joined.tolist())
        arcs[last] = arcs[:, last] = False
        left.remove(last)
    return dag


def _violations(arcs, v) -> tuple[int, int]:
    """Arrows out of v, and pairs of its neighbours that pointing at v makes a new collider."""
    joined, undirected = arcs[v] | arcs[:, v], arcs[v] & arcs[:, v]
    apart = ~(arcs | arcs.T)[np.ix_(undirected, joined)]
    return int((arcs[v] & ~arcs[:, v]).sum()), int(apart.sum() - undirected.sum())
