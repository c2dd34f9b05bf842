"""Faster steps of greedy equivalence search: the answers are those of the plain definitions."""

import itertools

import networkx as nx
import numpy as np
from hypothesis import given, strategies as st

from benchmarks import ges_steps as steps


def random_graph(rng, d):
    arcs = (rng.random((d, d)) < rng.choice([0.2, 0.4, 0.7])).astype(float)
    np.fill_diagonal(arcs, 0)
    return arcs


def neighbours_of(y, graph):
    return [v for v in range(len(graph)) if graph[v, y] and graph[y, v]]


def common(y, x, graph):
    return [v for v in neighbours_of(y, graph) if graph[v, x] or graph[x, v]]


def by_cliques(x, y, graph, score):
    """Every way to add x -> y that the rule about cliques allows: gain, graph, x, y, nodes."""
    free = [v for v in neighbours_of(y, graph) if v not in common(y, x, graph)]
    for k in range(len(free) + 1):
        for of in itertools.combinations(free, k):
            all_of = [*common(y, x, graph), *of]
            if all(graph[a, b] or graph[b, a] for a, b in itertools.combinations(all_of, 2)):
                before = {v for v in range(len(graph)) if graph[v, y] and not graph[y, v]}
                parents = frozenset({*before, *all_of})
                yield score(y, parents | {x}) - score(y, parents), None, x, y, of


def added(x, y, of, graph):
    graph = graph.copy()
    graph[x, y] = 1
    graph[y, list(of)] = 0
    return graph


def plain_step(graph, score):
    """Every way that both rules allow; of the largest gain, the first."""
    d, found, arcs = len(graph), [], nx.from_numpy_array(graph, create_using=nx.DiGraph)
    for x, y in itertools.permutations(range(d), 2):
        if not graph[x, y] and not graph[y, x]:
            for gain, _, _, _, of in by_cliques(x, y, graph, score):
                through = {*common(y, x, graph), *of}
                if all(through.intersection(path) for path in nx.all_simple_paths(arcs, y, x)):
                    found.append((gain, x, y, of))
    return max(found, key=lambda way: way[0]) if found else None


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_steps_add_the_edges_of_largest_gain_that_both_rules_allow(seed, d):
    """From one graph to the next, now and then with another entry changed, as completing does."""
    rng, gains = np.random.default_rng(seed), {}

    def score(x, parents):
        return gains.setdefault((x, parents), rng.integers(0, 9))

    forward = steps.ForwardSteps(by_cliques, added)
    graph = random_graph(rng, d) * (rng.random((d, d)) < 0.5)
    for _ in range(6):
        gain, following = forward(graph, score)
        if (expected := plain_step(graph, score)) is None:
            assert gain == 0
            assert following is graph
            break
        assert gain == expected[0]
        np.testing.assert_array_equal(following, added(*expected[1:], graph))
        graph = following
        if rng.integers(2):
            a, b = rng.choice(d, 2, replace=False)
            graph[b, a] = graph[a, b]
