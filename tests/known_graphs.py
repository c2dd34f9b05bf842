"""All acyclic graphs of a few variables, and which of them data cannot tell apart."""

import itertools
from collections import defaultdict

import networkx as nx

NAMES = "abcd"


def all_dags(size):
    for way in itertools.product((None, 0, 1), repeat=size * (size - 1) // 2):
        dag = nx.DiGraph()
        dag.add_nodes_from(NAMES[:size])
        pairs = itertools.combinations(NAMES[:size], 2)
        dag.add_edges_from(p[:: 1 - 2 * w] for p, w in zip(pairs, way, strict=True) if w in (0, 1))
        if nx.is_directed_acyclic_graph(dag):
            yield dag


def colliders(dag):
    return frozenset(
        (frozenset((a, b)), c)
        for c in dag
        for a, b in itertools.combinations(dag.predecessors(c), 2)
        if not dag.has_edge(a, b) and not dag.has_edge(b, a)
    )


def equivalence_classes(size):
    classes = defaultdict(list)
    for dag in all_dags(size):
        skeleton = frozenset(map(frozenset, dag.edges))
        classes[skeleton, colliders(dag)].append(dag)
    return list(classes.values())
