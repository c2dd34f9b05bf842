"""Draws of graphs are those of the plain definition, arc for arc."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import logit

from dpcgd.graphs.cpdag import meek
from dpcgd.reading import orientation
from dpcgd.reading.orientation import open_triples


def some(seed, d=9):
    """A skeleton, what knowledge forbids (some of it both ways), and log odds of its triples."""
    rng = default_rng(seed)
    joined = np.triu(rng.random((d, d)) < rng.choice([0.2, 0.4, 0.7]), 1)
    joined |= joined.T
    joined[0, 1] = joined[1, 0] = True
    forbidden = rng.random((d, d)) < rng.choice([0.0, 0.05, 0.2])
    forbidden &= ~(joined & forbidden.T)  # one way at least stays possible
    forbidden |= ~joined & np.triu(rng.random((d, d)) < 0.2, 1)
    forbidden |= ~joined & forbidden.T
    odds = {triple: rng.normal(scale=3) for triple in open_triples(joined)}
    return joined, forbidden, odds


def is_ancestor(parents, a, b):
    graph = nx.from_numpy_array(parents.T, create_using=nx.DiGraph)
    return a != b and nx.has_path(graph, a, b)


def swept(parents, edges, chosen, needed, forbidden, odds):
    """One sweep by the definition."""
    parents = parents.copy()

    def collider(x, c):
        others = set(np.flatnonzero(parents[c]).tolist()) - {x}
        return sum(odds.get((min(x, y), c, max(x, y)), 0.0) for y in others)

    for (a, b), least in zip(edges[chosen].tolist(), needed.tolist(), strict=True):
        if not parents[b, a]:
            a, b = b, a
        if forbidden[b, a] or collider(b, a) - collider(a, b) < least:
            continue
        parents[b, a] = False
        back = is_ancestor(parents, a, b)
        parents[b, a], parents[a, b] = back, not back
    return parents


def with_colliders(parents, joined, forbidden):
    """The skeleton with the arrows into the colliders of a graph, and those that are known."""
    arcs, apart = joined & ~forbidden, ~(joined | (forbidden & forbidden.T))
    for c, row in enumerate(parents):
        for a, b in combinations(np.flatnonzero(row).tolist(), 2):
            if apart[a, b]:
                for v in (a, b):
                    arcs[c, v] &= not arcs[v, c]
    return arcs


@pytest.mark.parametrize("seed", range(40))
def test_sweeps_turn_the_arcs_that_the_definition_turns(seed, monkeypatch):
    joined, forbidden, odds = some(seed)
    for name, value in {"COOLING": 1, "APART": 1, "DRAWS": 5}.items():
        monkeypatch.setattr(orientation, name, value)
    rng, edges = default_rng(0), np.argwhere(np.triu(joined))
    expected = orientation._first(joined, forbidden)
    assert (expected | expected.T == joined).all()
    gain = orientation.by_colliders(odds)
    drawn = iter(orientation.drawn_graphs(joined, forbidden, gain))
    for heat in (1 + orientation.HOTTEST, 1, 1, 1, 1, 1):
        chosen = rng.integers(len(edges), size=len(edges))
        needed = heat * logit(rng.random(len(edges)))
        expected = swept(expected, edges, chosen, needed, forbidden, odds)
        if heat == 1:  # the first sweep cools down
            np.testing.assert_array_equal(next(drawn), expected)


@pytest.mark.parametrize("seed", range(20))
def test_paths_are_those_of_networkx(seed):
    joined, forbidden, _ = some(seed)
    parents = orientation._first(joined, forbidden)
    bits = orientation.bits_of(parents.T)
    for a, b in np.argwhere(~np.eye(len(joined), dtype=bool)).tolist():
        assert orientation.leads(bits, a, b) == is_ancestor(parents, a, b)


@pytest.mark.parametrize("seed", range(60))
def test_completed_forms_are_those_of_the_plain_rules(seed):
    joined, forbidden, odds = some(seed)
    graphs = orientation.drawn_graphs(joined, forbidden, orientation.by_colliders(odds))
    assert len(graphs) == orientation.DRAWS
    for parents, arcs in zip(graphs, orientation.completed(graphs, joined, forbidden), strict=True):
        plain = meek(with_colliders(parents, joined, forbidden), untested=forbidden & forbidden.T)
        np.testing.assert_array_equal(arcs, plain)
