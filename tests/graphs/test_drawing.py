"""Where variables stand in a drawing, and what it says of edges that may be wrong."""

import itertools
import xml.etree.ElementTree as ET

import networkx as nx
import numpy as np
import pytest

from dpcgd import CPDAG
from dpcgd.graphs.cpdag import Certainty
from dpcgd.graphs.drawing import WIDEST, layered_positions, to_svg


def drawn(names, *arcs, certain=True, edge=0.9, caution=""):
    """A drawing of a graph with these arcs."""
    graph = nx.empty_graph(names, create_using=nx.DiGraph)
    graph.add_edges_from(arcs)
    pairs = dict.fromkeys(map(frozenset, itertools.combinations(names, 2)), edge)
    arrows = dict.fromkeys(itertools.permutations(names, 2), 0.875 * edge)
    certainty = Certainty(pairs, arrows, caution) if certain else None
    marks = CPDAG.from_networkx(graph)
    return ET.fromstring(to_svg(CPDAG(marks.variables, marks.arcs, certainty)))


def words_in(picture):
    return [element.text for element in picture.iter() if (element.text or "").strip()]


def dashed(picture):
    return [e for e in picture.iter() if e.get("stroke-dasharray")]


def test_many_variables_without_an_edge_make_no_wide_row():
    graph = nx.DiGraph([("a", "b")])
    graph.add_nodes_from(range(40 * WIDEST))
    places = layered_positions(graph)
    columns, layers = zip(*places.values(), strict=True)
    assert np.ptp(columns) < WIDEST
    assert len(set(places.values())) == len(places)
    assert places["a"][1] < places["b"][1] < min(places[v][1] for v in range(40 * WIDEST))
    assert max(layers) >= 40


@pytest.mark.parametrize("edge", [0.3, 0.6])
def test_a_drawing_shows_the_probability_of_edge_and_arrow_and_dashes_what_is_unlikely(edge):
    picture = drawn("abcd", "ab", "bc", "cb", edge=edge)
    labels = [word for word in words_in(picture) if word.startswith(".")]
    assert sorted(labels) == {0.3: [".30", ".30/.26"], 0.6: [".60", ".60/.53"]}[edge]
    assert len(dashed(picture)) == (2 if edge < 0.5 else 0)
    plain = drawn("abcd", "ab", certain=False)
    assert sorted(words_in(plain)) == ["The released graph", *"abcd"]
    assert not dashed(plain)


def test_a_drawing_says_where_little_is_told_to_those_who_see_and_those_who_hear():
    title, *words = words_in(drawn("ab", edge=0.1, caution="<odd>"))
    for text in (title, " ".join(words)):
        assert "no pair stands out" in text
        assert "<odd>" in text


def test_no_edge_leaves_a_drawing():
    """Bent edges ran out of the picture, and their labels would have been cut."""
    picture = drawn("abcdef", *itertools.combinations("abcdef", 2))
    left, top, wide, tall = map(float, picture.get("viewBox").split())
    lines = [e.get("points") for e in picture.iter() if e.tag.endswith("polyline")]
    points = np.array([list(map(float, p.split(","))) for line in lines for p in line.split()])
    assert (points >= (left, top)).all()
    assert (points <= (left + wide, top + tall)).all()


def test_labels_of_a_drawing_do_not_cover_each_other():
    """Both edges of a crossing have the same middle."""
    picture = drawn("abcd", "ac", "ad", "bc", "bd")
    labels = [e for e in picture.iter() if e.text == ".90/.79"]
    places = np.array([(float(e.get("x")), float(e.get("y"))) for e in labels])
    apart = np.abs(places[:, None] - places)
    assert len(labels) == 4
    assert ((apart > (32, 10)).any(axis=2) | np.eye(4, dtype=bool)).all()
