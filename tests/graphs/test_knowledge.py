"""Knowledge as arrays; what is no list of arcs or tiers is refused, with the way to write one."""

from functools import partial
from itertools import pairwise, product

import networkx as nx
import numpy as np
from hypothesis import given, strategies as st
from refusals import refusals

from dpcgd import Knowledge

NAMES = ["a", "b", "c", "d", "e"]
NO_LISTS = ["ab", {"a": "b"}, None, 1]
NO_ARCS = [
    *({("a", "b"): 1}, ["ab"], ("smoke", "lung"), [("a",)], [("a", "b", "c")], [()], [("a", 1)]),
    *([(None, "b")], [(("a", "b"), ("b", "c"))], [("a", "b"), None]),
    [frozenset("ab")],
    *(nx.DiGraph([("a", "b")]), [("a", "b"), ("a", "a")]),
]
NO_TIERS = [["a", "b"], [["a"], "b"], [["a"], None], [{"a": 1}], [["a"], [1]], [["a", "a"]]]


def test_pairs_may_come_in_any_way():
    pair, graph = ("a", "b"), nx.DiGraph(["ab"])
    for arcs in ([["a", "b"]], {pair}, iter([pair]), np.array([["a", "b"]]), graph.edges):
        assert Knowledge(required=arcs).required == (pair,)
    assert Knowledge([], ()) == Knowledge()


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
    known = Knowledge(forbidden=[("a", "c")], required=[("b", "c")], tiers=[["a"], ["b", "c"]])
    forbidden, required = known.arrays(["a", "b", "c"])
    assert {*zip(*np.nonzero(forbidden), strict=True)} == {(0, 2), (1, 0), (2, 0), (2, 1)}
    assert {*zip(*np.nonzero(required), strict=True)} == {(1, 2)}
    assert known.forbidden == (("a", "c"),)


@given(groups(), st.data())
def test_variables_that_no_tier_names_stand_in_the_rest_tier(tiers, data):
    rest = data.draw(st.integers(-len(tiers), len(tiers) - 1))
    written = [list(tier) for tier in tiers]
    written[rest] += [name for name in NAMES if not any(name in tier for tier in tiers)]
    forbidden, _ = Knowledge(tiers=tiers, rest=rest).arrays(NAMES)
    assert (forbidden == Knowledge(tiers=written).arrays(NAMES)[0]).all()


def test_no_arc_leads_to_a_variable_without_causes():
    forbidden, required = Knowledge(without_causes=["b", "d"], required=[("b", "c")]).arrays(NAMES)
    expected = np.isin(np.arange(5), [1, 3]) & ~np.eye(5, dtype=bool)
    expected[2, 1] = True
    assert (forbidden == expected).all()
    assert required.sum() == 1


PAIRS = "give a list of pairs (cause, effect), as in "
TIERS = "give a list of lists of names, as in "
BOTH = "a -> b is both forbidden and required; drop one"
NO_KNOWLEDGE = [
    *(({"forbidden": arcs}, f"{PAIRS}forbidden=[") for arcs in NO_LISTS + NO_ARCS),
    *(({"required": arcs}, f"{PAIRS}required=[") for arcs in NO_LISTS + NO_ARCS),
    *(({"tiers": tiers}, f"{TIERS}tiers=") for tiers in NO_LISTS + NO_TIERS),
    ({"tiers": [["a"], ["a"]]}, "'a' is in the tiers twice; name each variable once"),
    ({"tiers": [[*"gfedcb"], [*"bcdefg"]]}, "'g' is in the tiers twice"),
    ({"tiers": [["b"], ["a"]], "required": [("a", "b")]}, BOTH),
    ({"forbidden": [("a", "b")], "required": [("a", "b")]}, BOTH),
    ({"without_causes": ["b"], "required": [("a", "b")]}, BOTH),
    ({"tiers": [["b"], []], "rest": 1, "required": [("a", "b")]}, BOTH),
    ({"required": [("a", "b"), ("b", "c"), ("c", "a")]}, "take one of them out"),
    ({"rest": 0}, "rest must be the number of a tier"),
    ({"tiers": [["a"], ["b"]], "rest": 2}, "there are 2 tiers"),
    ({"tiers": [["a"], ["b"]], "rest": "last"}, "from 0, or -1 for the last"),
    ({"tiers": [["a"], ["b"]], "rest": True}, "rest must be the number of a tier"),
    ({"without_causes": "a"}, "give a list of names, as in without_causes="),
    ({"without_causes": ["a", "a"]}, "no different names"),
]
test_what_is_no_knowledge_or_contradicts_itself_is_refused = refusals(
    *((partial(Knowledge, **said), cure) for said, cure in NO_KNOWLEDGE),
    (lambda: Knowledge(tiers=[["smok"]]).arrays(["smoke", "lung"]), "did you mean 'smoke'"),
)
