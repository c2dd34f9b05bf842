"""Repairs of a search: what contradicts itself comes back, what rests on nothing goes."""

from dataclasses import dataclass, field
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import search
from dpcgd.reading.repairs import repaired

NAMES = ["x", "y", "z", "w"]


@dataclass
class Told:
    """Answers by hand: which sets separate, how clearly, and what rests on nothing."""

    apart: dict
    largest: dict = field(default_factory=dict)
    strengths: dict = field(default_factory=dict)
    on_nothing: dict = field(default_factory=dict)
    explained: set = field(default_factory=set)

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


def skeleton_of(oracle, knowledge=None, repair=True, names=NAMES):
    found = search(oracle, names, max_order=2, knowledge=knowledge)
    if repair:
        found = repaired(found, oracle, max_order=2, knowledge=knowledge)
    return {"".join(sorted(pair)) for pair in found.graph.skeleton}, found


XY, XZ = frozenset((0, 1)), frozenset((0, 2))
W_APART = {frozenset((3, v)): [set()] for v in range(3)}
EACH_BY_THE_OTHER = {XY: [{2}], XZ: [{1}]}


def copies(of_xy=0.02, of_xz=0.5, **more):
    """y and z are copies of one another, and either takes x from the other; w is apart."""
    apart = {pair: [*sets] for pair, sets in (W_APART | EACH_BY_THE_OTHER).items()}
    return Told(apart, largest={(0, 1): of_xy, (0, 2): of_xz}, **more)


def test_of_two_removals_that_lean_on_each_other_the_less_clear_one_comes_back():
    assert skeleton_of(copies(), repair=False)[0] == {"yz"}
    joined, found = skeleton_of(copies())
    assert joined == {"xy", "yz"}
    assert frozenset("xy") not in found.separating_sets
    assert found.separating_sets[frozenset("xz")] == ("y",)
    assert skeleton_of(copies(of_xy=0.5, of_xz=0.02))[0] == {"xz", "yz"}
    assert skeleton_of(copies(of_xy=1.0, of_xz=1.0))[0] == {"yz"}, "both are as clear"


def test_a_pair_that_another_neighbour_separates_stays_apart():
    oracle = copies()
    oracle.apart[XY].append({3})
    assert skeleton_of(oracle)[0] == {"xy", "yz"}, "w is no neighbour"
    for v in (0, 1):
        del oracle.apart[frozenset((3, v))]
    assert skeleton_of(oracle, repair=False)[0] == {"wx", "wy", "yz"}
    assert "xy" not in skeleton_of(oracle)[0]


def test_a_pair_that_could_not_be_tested_does_not_come_back():
    assert skeleton_of(copies(explained={XY}))[0] == {"yz"}


def test_an_edge_that_rests_on_nothing_goes_the_weakest_first():
    for weak, strong in ((1, 2), (2, 1)):
        at = {frozenset((0, weak)): 0.1, frozenset((0, strong)): 0.2}
        joined, found = skeleton_of(Told(W_APART, strengths=at, on_nothing=EACH_BY_THE_OTHER))
        assert joined == {"yz", "x" + NAMES[strong]}
        assert found.separating_sets[frozenset(("x", NAMES[weak]))] == (NAMES[strong],)


def test_what_knowledge_requires_stays():
    oracle = Told(W_APART, on_nothing={XY: [{2}]})
    assert "xy" not in skeleton_of(oracle)[0]
    for pair in (("x", "y"), ("y", "x")):
        assert "xy" in skeleton_of(oracle, Knowledge(required=[pair]))[0]


class Right(Told):
    """Answers by d-separation, more or less clear ones."""

    def __init__(self, dag, rng):
        super().__init__({}, {pair: rng.random() for pair in combinations(sorted(dag), 2)})
        self.dag = dag

    def separates(self, x, y, given):
        return nx.is_d_separator(self.dag, {x}, {y}, set(given))


@settings(max_examples=300)
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
    rng, pairs = np.random.default_rng(seed), [*combinations(range(4), 2)]
    middles = [int(rng.choice([v for v in range(4) if v not in pair])) for pair in pairs]
    p_values = rng.uniform(0.02, 1, 6)
    found = set()
    for to in ([0, 1, 2, 3], *(rng.permutation(4).tolist() for _ in range(5))):
        moved = [tuple(sorted((to[x], to[y]))) for x, y in pairs]
        apart = {frozenset(p): [{to[z]}] for p, z in zip(moved, middles, strict=True)}
        oracle = Told(apart, dict(zip(moved, p_values, strict=True)))
        found.add(frozenset(skeleton_of(oracle, names=[NAMES[to.index(v)] for v in range(4)])[0]))
    assert len(found) == 1
