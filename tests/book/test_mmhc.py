"""Max-min hill climbing against known graphs and the best of all DAGs."""

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.systems.dag_searches import hill_climb, max_min_neighbours, mmhc
from dpcgd_book.systems.tests_and_scores import BDeu, GSquare
from known_graphs import BIC, NAMES, all_dags, graph_score
from people import refused

from dpcgd import CPDAG, load


class Separation:
    """A perfect test: d-separation in a known graph."""

    def __init__(self, graph):
        self.graph, self.variables, self.d = graph, list(graph), len(graph)

    def log_p(self, x, y, given):
        x, y, *given = (self.variables[v] for v in (x, y, *given))
        return 0.0 if nx.is_d_separator(self.graph, {x}, {y}, set(given)) else -100.0


@pytest.mark.parametrize("dag", [*all_dags(4)][::7])
def test_neighbours_of_a_known_graph_are_found_by_a_perfect_test(dag):
    true = nx.to_numpy_array(dag.to_undirected(), nodelist=NAMES) > 0
    near = max_min_neighbours(Separation(dag), alpha=0.05, max_order=2)
    np.testing.assert_array_equal(near, true)


@pytest.mark.slow
def test_climbing_finds_most_of_the_best_graphs():
    dags, found = list(all_dags(4)), 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        score = BIC(rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)), NAMES)
        arcs = hill_climb(score, ~np.eye(4, dtype=bool))
        graph = nx.from_numpy_array(arcs, create_using=nx.DiGraph, nodelist=[*NAMES])
        best, mine = max(graph_score(score, dag) for dag in dags), graph_score(score, graph)
        assert nx.is_directed_acyclic_graph(graph)
        assert mine <= best + 1e-9
        found += mine >= best - 1e-9
    assert found >= 24  # 27; a climb that stops at its first hill finds 14


def test_climbing_uses_allowed_arcs_only():
    rng = np.random.default_rng(0)
    score = BIC(rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)))
    for allowed in (np.triu(np.ones((5, 5), bool), 1), np.zeros((5, 5), bool)):
        assert not (hill_climb(score, allowed) & ~allowed).any()


def test_a_published_network_is_found_at_large_n():
    data = load("cancer", 200_000, rng=np.random.default_rng(0))
    assert mmhc(BDeu(data), GSquare(data), alpha=0.001) == CPDAG.from_dag(data.truth)


def test_bad_input_is_refused_with_its_cure():
    cancer, asia = (load(name, 100, rng=np.random.default_rng(0)) for name in ("cancer", "asia"))
    refused("make both from the same data", mmhc, BDeu(asia), GSquare(cancer))
    refused("below 1, not 1", max_min_neighbours, GSquare(cancer), alpha=1)
