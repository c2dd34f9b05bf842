"""A DAG that stands for a whole class of them."""

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG

__all__ = ["consistent_extension"]


def consistent_extension(graph: CPDAG) -> nx.DiGraph:
    """Direct all edges so that no cycle and no new collider arises, if that can be done.

    Parameters
    ----------
    graph : CPDAG

    Returns
    -------
    networkx.DiGraph
        Acyclic, with the same joined pairs, over the variables in their order. Where the graph is
        no DAG's class, as a search on finite data may return, as few arrows as the search below
        comes across are turned or put into new colliders.

    Notes
    -----
    Dor and Tarsi (1992): take away, again and again, a variable without arrows out of it whose
    undirected neighbours are joined to all its other neighbours, and point its edges at it. If
    there is none we take the one that offends least.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    >>> sorted(consistent_extension(CPDAG.from_dag(truth)).edges)
    [('a', 'c'), ('b', 'c'), ('c', 'd')]
    """
    arcs, left = graph.arcs.copy(), set(range(len(graph.variables)))
    dag = nx.DiGraph()
    dag.add_nodes_from(graph.variables)
    while left:
        last = min(sorted(left), key=lambda v: _offences(arcs, v))
        joined = np.flatnonzero(arcs[last] | arcs[:, last])
        dag.add_edges_from((graph.variables[v], graph.variables[last]) for v in joined.tolist())
        arcs[last] = arcs[:, last] = False
        left.remove(last)
    return dag


def _offences(arcs, v) -> tuple[int, int]:
    """Arrows out of v, and pairs of its neighbours that pointing at v makes a new collider."""
    joined, undirected = arcs[v] | arcs[:, v], arcs[v] & arcs[:, v]
    apart = ~(arcs | arcs.T)[np.ix_(undirected, joined)]
    return int((arcs[v] & ~arcs[:, v]).sum()), int(apart.sum() - undirected.sum())
