"""What a graph says of its own edges: probabilities, what is expected to be right, plain words."""

import json
import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd import (
    CPDAG,
    Dataset,
    Knowledge,
    dag_posterior,
    graph_from_moments,
    load,
    noleaks,
    priv_pc,
    read_release,
)
from dpcgd.graphs.cpdag import Certainty
from dpcgd.graphs.drawing import to_svg

NAMES = ("a", "b", "c", "d")
PAIRS = {"ab": 0.97, "bc": 0.625, "ac": 0.25, "ad": 0.125, "bd": 0.0625, "cd": 0.03125}
ARROWS = {("a", "b"): 0.88, ("b", "a"): 0.015625, ("b", "c"): 0.3125, ("c", "b"): 0.21875}
NOTHING = "at this noise no pair stands out"
FEW = "most of the edges drawn are expected to be wrong"


def sure(pairs=PAIRS, arrows=ARROWS, caution=""):
    return Certainty({frozenset(pair): p for pair, p in pairs.items()}, arrows, caution)


def weighed(certainty=None):
    """Edges a -> b and b - c."""
    arcs = np.zeros((4, 4), bool)
    arcs[0, 1] = arcs[1, 2] = arcs[2, 1] = True
    return CPDAG(NAMES, arcs, certainty or sure())


@cache
def released(system, **settings):
    data = load("survey", n=20_000, rng=default_rng(0))
    return system(data, epsilon=1.0, rng=default_rng(1), **settings)


@cache
def of_nothing(system, **settings):
    """Independent columns and hardly any budget."""
    codes = default_rng(0).integers(0, 2, (1_000, 4))
    data = Dataset(codes, dict.fromkeys(NAMES, ("no", "yes")))
    with warnings.catch_warnings(action="ignore"):
        return system(data, epsilon=0.01, rng=default_rng(1), **settings)


# --- graphs


def test_scores_and_equality_compare_marks_only():
    plain = CPDAG(NAMES, weighed().arcs)
    assert weighed() == plain
    assert weighed().shd(plain) == 0


def test_what_is_expected_to_be_right_is_a_sum_of_probabilities():
    assert weighed().expected_right_edges == pytest.approx(0.97 + 0.625)
    assert weighed().expected_right_arrows == pytest.approx(0.88)
    plain = CPDAG(NAMES, weighed().arcs)
    assert plain.expected_right_edges is plain.expected_right_arrows is None


def test_a_probability_that_was_not_fixed_beforehand_never_reads_as_one():
    certainty = sure(PAIRS | {"ab": 0.99999}, ARROWS | {("a", "b"): 1e-9})
    assert "edge >0.99, arrow <0.01" in str(weighed(certainty))


def exported(graph, tmp_path):
    nx.write_graphml(graph.to_networkx(), tmp_path / "graph.graphml")
    return {
        "networkx": graph.to_networkx(),
        "gml": nx.parse_gml(graph.to_gml()),
        "graphml": nx.read_graphml(tmp_path / "graph.graphml"),
    }


@pytest.mark.parametrize("form", ["networkx", "gml", "graphml"])
def test_exports_carry_every_probability_to_the_digit_and_are_read_back(form, tmp_path):
    graph = weighed(sure(caution="the model saw no such table"))
    written = exported(graph, tmp_path)[form]
    for a, b, data in written.edges(data=True):
        assert data["probability"] == PAIRS["".join(sorted(a + b))]
        assert data["arrow_probability"] == ARROWS[a, b]
        assert data["reverse_probability"] == ARROWS[b, a]
    assert written.graph["caution"] == "the model saw no such table"
    again = CPDAG.from_networkx(written)
    assert again == graph
    assert again.certainty.arrows == ARROWS
    assert again.certainty.edges == {frozenset("ab"): 0.97, frozenset("bc"): 0.625}
    assert again.remarks == graph.remarks


def test_a_frame_has_a_row_an_edge():
    frame = weighed(sure(caution="doubt")).to_frame()
    assert frame[["from", "to", "directed"]].values.tolist() == [
        ["a", "b", True],
        ["b", "c", False],
    ]
    assert frame.probability.tolist() == [0.97, 0.625]
    assert frame.arrow_probability.tolist() == [0.88, 0.3125]
    assert frame.attrs == {"caution": "doubt"}
    plain = CPDAG(NAMES, weighed().arcs).to_frame()
    assert list(plain.columns) == ["from", "to", "directed"]
    empty = CPDAG(NAMES, np.zeros((4, 4), bool), sure()).to_frame()
    assert len(empty) == 0


def test_edges_without_a_probability_and_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="a and b are joined without a probability"):
        weighed(sure({"bc": 0.5}))
    with pytest.raises(ValueError, match="a and b are joined without a probability"):
        weighed(sure(arrows={}))
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 1"):
            sure({"ab": wrong})
        with pytest.raises(ValueError, match="between 0 and 1"):
            sure(arrows={("a", "b"): wrong})


@pytest.mark.parametrize(
    ("pairs", "joined", "words"),
    [
        ({"ab": 0.5, "ac": 0.1}, ["ab"], []),
        ({"ab": 0.49, "ac": 0.1}, [], [NOTHING]),
        ({"ab": 0.49, "ac": 0.1}, ["ab"], [NOTHING, FEW]),
        ({"ab": 0.8, "ac": 0.1, "bc": 0.1}, ["ab", "ac", "bc"], [FEW]),
        ({"ab": 1, "ac": 0.1, "bc": 0.1}, ["ab"], [NOTHING]),  # what knowledge says is no news
        ({"ab": 1, "ac": 0.4}, ["ab", "ac"], [NOTHING, FEW]),
        ({"ab": 1}, ["ab"], []),
        ({}, [], []),
    ],
)
def test_a_plain_word_stands_where_little_is_told(pairs, joined, words):
    assert sure(pairs).verdict(list(map(frozenset, joined))) == "; ".join(words)


# --- drawings


def words_in(picture):
    return [element.text for element in ET.fromstring(picture).iter() if element.text]


def test_a_drawing_shows_the_probability_of_edge_and_arrow():
    words = words_in(to_svg(weighed()))
    assert ".97/.88" in words
    assert ".62" in words
    plain = words_in(to_svg(CPDAG(NAMES, weighed().arcs)))
    assert sorted(word for word in plain if word.strip()) == ["The released graph", *NAMES]


def test_a_drawing_dashes_what_is_less_likely_than_not_and_says_so():
    weak = weighed(sure(PAIRS | {"bc": 0.3}))
    assert to_svg(weak).count("stroke-dasharray") == 1
    assert "stroke-dasharray" not in to_svg(weighed())
    none = to_svg(CPDAG(NAMES, np.zeros((4, 4), bool), sure({"ab": 0.1}, caution="<odd>")))
    title, *_ = (word for word in words_in(none) if word.strip())
    assert NOTHING in title
    assert "<odd>" in title
    assert " ".join(words_in(none)).count(NOTHING) == 2  # for those who see, and those who hear


def test_no_edge_leaves_a_drawing():
    """Bent edges ran out of the picture, and their labels would have been cut."""
    arcs = np.triu(np.ones((6, 6), bool), 1)
    names = "abcdef"
    pairs = {frozenset((a, b)): 0.9 for a in names for b in names if a < b}
    arrows = {(a, b): 0.9 for a in names for b in names if a != b}
    picture = ET.fromstring(to_svg(CPDAG(names, arcs, Certainty(pairs, arrows))))
    left, top, wide, tall = map(float, picture.get("viewBox").split())
    lines = [e.get("points") for e in picture.iter() if e.tag.endswith("polyline")]
    points = np.array([list(map(float, p.split(","))) for line in lines for p in line.split()])
    assert (points >= (left, top)).all()
    assert (points <= (left + wide, top + tall)).all()


def test_labels_of_a_drawing_do_not_cover_each_other():
    """Both edges of a crossing have the same middle."""
    arcs = np.zeros((4, 4), bool)
    arcs[0, 2] = arcs[0, 3] = arcs[1, 2] = arcs[1, 3] = True
    pairs = {frozenset((a, b)): 0.9 for a in "ab" for b in "cd"}
    arrows = {(a, b): 0.9 for a in NAMES for b in NAMES if a != b}
    picture = ET.fromstring(to_svg(CPDAG(NAMES, arcs, Certainty(pairs, arrows))))
    labels = [e for e in picture.iter() if e.text == ".90/.90"]
    places = np.array([(float(e.get("x")), float(e.get("y"))) for e in labels])
    apart = np.abs(places[:, None] - places)
    assert len(labels) == 4
    assert ((apart > (32, 10)).any(axis=2) | np.eye(4, dtype=bool)).all()


# --- releases

SYSTEMS = [dag_posterior, graph_from_moments]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_release_and_its_receipt_put_the_probabilities_into_the_graph(system, tmp_path):
    release = released(system)
    assert release.graph.certainty.edges == release.probabilities
    assert release.graph.certainty.arrows == release.arrow_shares
    release.save(tmp_path / "receipt.json")
    again = read_release(tmp_path / "receipt.json")
    assert str(again.graph) == str(release.graph)
    assert again.report() == release.report()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_lists_every_edge_with_its_probabilities(system, ending, tmp_path):
    release = released(system)
    page = release.report(tmp_path / f"report{ending}").replace("&gt;", ">").replace("\\", "")
    right = sum(release.probabilities[pair] for pair in release.graph.skeleton)
    edges = len(release.graph.skeleton)
    assert f"Expected number of right edges: {right:.1f} of {edges}" in page
    cell = r"(?:<td>|\| )([A-Z]) -[->] ([A-Z])(?:</td><td>| \| )([>.\d]+)(?=[ <])"
    rows = re.findall(cell, page)
    assert {frozenset(row[:2]) for row in rows} == release.graph.skeleton
    numbers = [release.probabilities[frozenset(row[:2])] for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    for (*_, shown), number in zip(rows, numbers, strict=True):
        assert float(shown.strip(">")) == pytest.approx(number, abs=0.0100001)


@pytest.mark.parametrize("system", [*SYSTEMS, noleaks])
def test_confirmed_is_said_of_tests_only(system, tmp_path):
    release = released(system)
    release.save(tmp_path / "receipt.json")
    words = {
        pair["status"] for pair in json.loads((tmp_path / "receipt.json").read_text())["pairs"]
    }
    assert words <= {"likely", "unlikely"} | {"joined", "apart"}
    for text in (release.report(), (tmp_path / "receipt.json").read_text(), repr(release)):
        assert "onfirmed" not in text
        assert "test that was made" not in text
    assert "confirmed" in released(priv_pc).pair_status().values()


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_knowledge_decided_is_neither_likely_nor_unlikely(system):
    known = Knowledge(required=[("A", "S")], forbidden=[("O", "T"), ("T", "O")])
    status = released(system, knowledge=known).pair_status()
    assert status[frozenset("AS")] == status[frozenset("OT")] == "known"
    assert status[frozenset("AE")] == "likely"


def test_a_drawn_edge_is_called_likely_only_if_it_is():
    release = of_nothing(dag_posterior, precision=0.01)
    for pair, word in release.pair_status().items():
        assert word == ("likely" if release.probabilities[pair] >= 0.5 else "unlikely")


def made_of(release, level, caution=""):
    """The same release with all its probabilities this low."""
    pairs = dict.fromkeys(release.probabilities, level)
    arrows = dict.fromkeys(release.arrow_shares, level / 2)
    certainty = Certainty(pairs, arrows, caution)
    return replace(release, graph=replace(release.graph, certainty=certainty))


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_release_that_tells_little_says_so_everywhere(system, tmp_path):
    release = made_of(released(system), 0.1)
    markdown = release.report(tmp_path / "report.md")
    for text in (repr(release), str(release.graph), release.report(), markdown):
        assert NOTHING in text
        assert FEW in text
    assert f"![The released graph: {NOTHING}" in markdown


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_probability_outside_the_experience_of_its_model_is_never_shown_alone(system, tmp_path):
    caution = "the edge model was trained on nothing like this"
    release = made_of(released(system), 0.9, caution)
    release.save(tmp_path / "receipt.json")
    read = read_release(tmp_path / "receipt.json")
    for each in (release, read):
        for text in (repr(each), str(each.graph), each.report(), each.graph.to_dot()):
            assert caution in text
        assert caution in each.graph.to_gml()
        assert caution in to_svg(each.graph)
    assert caution not in repr(released(system))
