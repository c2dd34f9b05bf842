"""Repairs of a search: what contradicts itself comes back, what rests on nothing goes."""

from dataclasses import dataclass, field
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import search
from dpcgd.reading.repairs import repaired

NAMES = ["x", "y", "z", "w"]


@dataclass
class Told:
    """Answers by hand: which sets separate, how clearly, and what rests on nothing."""

    apart: dict
    p_values: dict = field(default_factory=dict)
    strengths: dict = field(default_factory=dict)
    on_nothing: dict = field(default_factory=dict)
    explained: set = field(default_factory=set)

    @property
    def largest(self):
        return self.p_values

    def separates(self, x, y, given):
        return set(given) in self.apart.get(frozenset((x, y)), ())

    def begin(self, sets):
        pass

    def strength(self, x, y):
        return self.strengths.get(frozenset((x, y)), 1.0)

    def rests_on_nothing(self, x, y, given):
        return set(given) in self.on_nothing.get(frozenset((x, y)), ())

    def unexplained(self, x, y, joined):
        return frozenset((x, y)) not in self.explained


def skeleton_of(oracle, knowledge=None, repair=True):
    found = search(oracle, NAMES, max_order=2, knowledge=knowledge)
    if repair:
        found = repaired(found, oracle, max_order=2, knowledge=knowledge)
    return {"".join(sorted(pair)) for pair in found.graph.skeleton}, found


def copies(**more):
    """y and z are copies of one another, and either takes x from the other; w is apart."""
    away = {frozenset((3, v)): [set()] for v in range(3)}
    p_values = {(0, 1): 0.02, (0, 2): 0.5}
    return Told(
        away | {frozenset((0, 1)): [{2}], frozenset((0, 2)): [{1}]}, p_values=p_values, **more
    )


def test_of_two_removals_that_lean_on_each_other_the_less_clear_one_comes_back():
    assert skeleton_of(copies(), repair=False)[0] == {"yz"}
    joined, found = skeleton_of(copies())
    assert joined == {"xy", "yz"}
    assert frozenset("xy") not in found.separating_sets
    assert found.separating_sets[frozenset("xz")] == ("y",)
    clearer = copies()
    clearer.p_values = {(0, 1): 0.5, (0, 2): 0.02}
    assert skeleton_of(clearer)[0] == {"xz", "yz"}


def test_where_both_are_as_clear_neither_comes_back():
    oracle = copies()
    oracle.p_values = {(0, 1): 1.0, (0, 2): 1.0}
    assert skeleton_of(oracle)[0] == {"yz"}


def test_a_pair_that_another_neighbour_separates_stays_apart():
    oracle = copies()
    oracle.apart[frozenset((0, 1))].append({3})
    assert skeleton_of(oracle)[0] == {"xy", "yz"}, "w is no neighbour"
    for v in (0, 1):
        del oracle.apart[frozenset((3, v))]
    assert skeleton_of(oracle, repair=False)[0] == {"wx", "wy", "yz"}
    assert "xy" not in skeleton_of(oracle)[0]


def test_a_pair_that_could_not_be_tested_does_not_come_back():
    assert skeleton_of(copies(explained={frozenset((0, 1))}))[0] == {"yz"}


def test_an_edge_that_rests_on_nothing_goes_the_weakest_first():
    three = {frozenset((3, v)): [set()] for v in range(3)}
    nothing = {frozenset((0, 1)): [{2}], frozenset((0, 2)): [{1}]}
    for weak, strong in ((1, 2), (2, 1)):
        at = {frozenset((0, weak)): 0.1, frozenset((0, strong)): 0.2}
        joined, found = skeleton_of(Told(three, strengths=at, on_nothing=nothing))
        assert joined == {"yz", "x" + NAMES[strong]}
        assert found.separating_sets[frozenset(("x", NAMES[weak]))] == (NAMES[strong],)


def test_what_knowledge_requires_stays():
    three = {frozenset((3, v)): [set()] for v in range(3)}
    oracle = Told(three, on_nothing={frozenset((0, 1)): [{2}]})
    assert "xy" not in skeleton_of(oracle)[0]
    for pair in (("x", "y"), ("y", "x")):
        assert "xy" in skeleton_of(oracle, Knowledge(required=[pair]))[0]


class Right(Told):
    """Answers by d-separation, more or less clear ones."""

    def __init__(self, dag, rng):
        super().__init__({})
        self.dag = dag
        self.p_values = {pair: rng.random() for pair in combinations(sorted(dag), 2)}

    def separates(self, x, y, given):
        return nx.is_d_separator(self.dag, {x}, {y}, set(given))


@settings(max_examples=300, deadline=None)
@given(st.integers(3, 7), st.floats(0.2, 0.8), st.integers(0, 2**32 - 1))
def test_a_search_that_was_right_is_left_as_it_is(d, density, seed):
    rng = np.random.default_rng(seed)
    order, dag = rng.permutation(d).tolist(), nx.DiGraph()
    dag.add_nodes_from(range(d))
    dag.add_edges_from(pair for pair in combinations(order, 2) if rng.random() < density)
    names, oracle = [f"v{v}" for v in range(d)], Right(dag, rng)
    found = search(oracle, names, max_order=d)
    again = repaired(found, oracle, max_order=d)
    assert (again.graph.arcs == found.graph.arcs).all()
    assert again.separating_sets == found.separating_sets


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_variables_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    given_one = {
        frozenset(pair): [{int(rng.choice([v for v in range(4) if v not in pair]))}]
        for pair in combinations(range(4), 2)
    }
    p_values = dict(zip(combinations(range(4), 2), rng.uniform(0.02, 1, 6), strict=True))
    plain = skeleton_of(Told(given_one, p_values=p_values))[0]
    for _ in range(5):
        to = rng.permutation(4)
        moved = Told(
            {
                frozenset(int(to[v]) for v in p): [{int(to[v]) for v in s[0]}]
                for p, s in given_one.items()
            },
            p_values={tuple(sorted((int(to[x]), int(to[y])))): p for (x, y), p in p_values.items()},
        )
        names = [NAMES[int(np.flatnonzero(to == v)[0])] for v in range(4)]
        found = repaired(search(moved, names, max_order=2), moved, max_order=2)
        assert {"".join(sorted(pair)) for pair in found.graph.skeleton} == plain
