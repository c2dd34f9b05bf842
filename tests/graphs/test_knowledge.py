"""What is no list of arcs, or of tiers, is refused, with the way to write one."""

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import search

FIELDS = ("forbidden", "required")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("arcs", ["ab", {"a": "b"}, {("a", "b"): 1}, None, 1])
def test_what_is_no_list_is_refused(field, arcs):
    cure = rf"{field} must hold arcs, .*; give a list of pairs \(cause, effect\), as in {field}=\["
    with pytest.raises(ValueError, match=cure):
        Knowledge(**{field: arcs})


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "arcs",
    [
        ["ab"],
        ("smoke", "lung"),
        ["smoke", "lung"],
        [("a",)],
        [("a", "b", "c")],
        [()],
        [("a", 1)],
        [(None, "b")],
        [(("a", "b"), ("b", "c"))],
        [frozenset("ab")],
        [("a", "b"), None],
        nx.DiGraph([("a", "b")]),
    ],
)
def test_what_is_no_pair_of_names_is_refused(field, arcs):
    cure = rf"{field} holds .*, which is no pair of names; give a list of pairs \(cause, effect\)"
    with pytest.raises(ValueError, match=cure) as error:
        Knowledge(**{field: arcs})
    assert "\n" not in str(error.value)


def test_an_arc_from_a_variable_to_itself_is_refused():
    with pytest.raises(ValueError, match="a -> a is no arc; take it out of forbidden"):
        Knowledge(forbidden=[("a", "b"), ("a", "a")])
    with pytest.raises(ValueError, match="required arcs form a cycle; take one of them out"):
        Knowledge(required=[("a", "b"), ("a", "a")])


@pytest.mark.parametrize(
    "arcs",
    [
        [("a", "b")],
        [["a", "b"]],
        {("a", "b")},
        iter([("a", "b")]),
        np.array([["a", "b"]]),
        nx.DiGraph([("a", "b")]).edges,
    ],
)
def test_pairs_may_come_in_any_way(arcs):
    assert Knowledge(required=arcs).required == (("a", "b"),)


def test_no_arcs_are_fine():
    assert Knowledge([], ()) == Knowledge()


NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def groups(draw):
    """Some of the names in tiers, as list of lists."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(0, 5))]
    cuts = sorted(draw(st.lists(st.integers(0, len(names)), max_size=3)))
    return [list(names[a:b]) for a, b in pairwise([0, *cuts, len(names)])]


@given(groups())
def test_an_arc_is_forbidden_exactly_if_it_leads_to_an_earlier_tier(tiers):
    forbidden, required = Knowledge(tiers=tiers).arrays(NAMES)
    tier_of = {name: k for k, tier in enumerate(tiers) for name in tier}
    for (i, a), (j, b) in product(enumerate(NAMES), repeat=2):
        assert forbidden[i, j] == (a in tier_of and b in tier_of and tier_of[a] > tier_of[b])
    assert not required.any()


def test_arcs_and_tiers_add_up():
    known = Knowledge(forbidden=[("a", "c")], required=[("a", "b")], tiers=[["a"], ["b", "c"]])
    forbidden, required = known.arrays(["a", "b", "c"])
    assert {*zip(*np.nonzero(forbidden), strict=True)} == {(0, 2), (1, 0), (2, 0)}
    assert {*zip(*np.nonzero(required), strict=True)} == {(0, 1)}
    assert known.forbidden == (("a", "c"),)


@given(st.integers(0, 2**32 - 1), st.permutations(range(4)), st.integers(1, 3))
def test_no_arrow_of_a_search_leads_to_an_earlier_tier(seed, order, cut):
    """Whatever the oracle says, and however much it contradicts itself and the tiers."""
    names, rng = NAMES[:4], np.random.default_rng(seed)
    tiers = [[names[v] for v in order[:cut]], [names[v] for v in order[cut:]]]
    graph = search(Coin(rng), names, knowledge=Knowledge(tiers=tiers)).graph
    assert not graph.arrows & set(product(tiers[1], tiers[0]))
    across = {frozenset(pair) for pair in product(*tiers)} & graph.skeleton
    assert across <= {frozenset(arc) for arc in graph.arrows}


class Coin:
    """An oracle that answers at random."""

    def __init__(self, rng):
        self.rng = rng

    def separates(self, x, y, given):
        return bool(self.rng.random() < 0.3)


@pytest.mark.parametrize("tiers", ["ab", {"a": "b"}, None, 1])
def test_tiers_that_are_no_list_are_refused(tiers):
    with pytest.raises(ValueError, match=r"tiers must hold groups .*; give a list of lists"):
        Knowledge(tiers=tiers)


@pytest.mark.parametrize("tiers", [["a", "b"], [["a"], "b"], [["a"], None], [{"a": 1}]])
def test_a_tier_that_is_no_list_of_names_is_refused(tiers):
    with pytest.raises(ValueError, match=r"tiers holds .*, which is no list of names; give a"):
        Knowledge(tiers=tiers)


def test_a_tier_of_something_else_than_names_is_refused():
    with pytest.raises(ValueError, match="tiers holds 1, which is no name; give a list of lists"):
        Knowledge(tiers=[["a"], [1]])


@pytest.mark.parametrize("tiers", [[["a"], ["a"]], [["a", "a"]]])
def test_a_variable_that_is_in_the_tiers_twice_is_refused(tiers):
    with pytest.raises(ValueError, match="'a' is in the tiers twice; name each variable once"):
        Knowledge(tiers=tiers)


def test_a_required_arc_to_an_earlier_tier_is_refused():
    with pytest.raises(ValueError, match="b -> a is required and leads to an earlier tier; drop"):
        Knowledge(required=[("b", "a")], tiers=[["a"], ["b"]])


def test_a_tier_of_a_variable_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no variable is called 'smok'; did you mean 'smoke'"):
        Knowledge(tiers=[["smok"], ["lung"]]).arrays(["smoke", "lung"])
