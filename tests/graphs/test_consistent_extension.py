import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import CPDAG
from dpcgd.graphs.cpdag import consistent_extension

seeded = settings(derandomize=True, deadline=None, max_examples=200)


@seeded
@given(st.integers(0, 10**6))
def test_the_extension_of_a_class_is_one_of_its_dags(seed):
    rng = default_rng(seed)
    size = int(rng.integers(1, 9))
    arcs = np.triu(rng.random((size, size)) < rng.uniform(0.1, 0.7), 1)
    order = rng.permutation(size)
    whole = CPDAG.from_dag(nx.from_numpy_array(arcs[order][:, order], create_using=nx.DiGraph))
    dag = consistent_extension(whole)
    assert tuple(dag) == whole.variables
    assert CPDAG.from_dag(dag) == whole


@seeded
@given(st.integers(0, 10**6))
def test_any_graph_gets_a_dag_with_its_skeleton(seed):
    arcs = default_rng(seed).random((6, 6)) < 0.4
    np.fill_diagonal(arcs, False)
    graph = CPDAG("abcdef", arcs)
    dag = consistent_extension(graph)
    assert nx.is_directed_acyclic_graph(dag)
    assert {frozenset(arc) for arc in dag.edges} == graph.skeleton


def test_a_cycle_loses_one_arrow():
    cycle = CPDAG("abc", np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool))
    kept = set(consistent_extension(cycle).edges) & {("a", "b"), ("b", "c"), ("c", "a")}
    assert len(kept) == 2
