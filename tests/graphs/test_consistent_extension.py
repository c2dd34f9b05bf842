import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import CPDAG
from dpcgd.graphs.consistent_extension import consistent_extension


def random_dag(seed):
    rng = default_rng(seed)
    d = int(rng.integers(1, 9))
    arcs = np.triu(rng.random((d, d)) < rng.uniform(0.1, 0.7), 1)
    dag = nx.DiGraph()
    dag.add_nodes_from(f"v{i}" for i in rng.permutation(d))
    dag.add_edges_from((f"v{a}", f"v{b}") for a, b in np.argwhere(arcs))
    return dag


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(0, 10**6))
def test_the_extension_of_a_class_is_one_of_its_dags(seed):
    whole = CPDAG.from_dag(random_dag(seed))
    dag = consistent_extension(whole)
    assert list(dag) == list(whole.variables)
    assert CPDAG.from_dag(dag) == whole


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 10**6))
def test_any_graph_gets_a_dag_with_its_skeleton(seed):
    rng = default_rng(seed)
    arcs = rng.random((6, 6)) < 0.4
    np.fill_diagonal(arcs, False)
    graph = CPDAG([f"v{i}" for i in range(6)], arcs)
    dag = consistent_extension(graph)
    assert nx.is_directed_acyclic_graph(dag)
    assert {frozenset(arc) for arc in dag.edges} == graph.skeleton


def test_a_cycle_loses_one_arrow():
    cycle = CPDAG("abc", np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool))
    kept = set(consistent_extension(cycle).edges) & {("a", "b"), ("b", "c"), ("c", "a")}
    assert len(kept) == 2
