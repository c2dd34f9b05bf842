"""What is no list of arcs is refused, with the way to write one."""

import networkx as nx
import numpy as np
import pytest

from dpcgd.graphs.knowledge import Knowledge

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
