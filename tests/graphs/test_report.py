"""What a release says of itself, on one page as HTML or Markdown, in words and in its receipt."""

import html
import json
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from people import read_back

import dpcgd
from dpcgd import Budget
from dpcgd.graphs.cpdag import Certainty, two_digits
from dpcgd.graphs.texts import guessing, in_words
from dpcgd.privacy.conversions import gaussian_delta

DATA = dpcgd.load("cancer", n=2000, rng=default_rng(0))


# --- the guarantee in words


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0, 50.0, 1e5])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_an_attacker_is_right_at_most_as_often_as_is_said(epsilon, delta):
    """Reached by the worst mechanism of this guarantee, and not by Gaussian noise."""
    said = guessing(Budget(epsilon, delta))
    assert said == pytest.approx(delta + (1 - delta) / (1 + math.exp(-epsilon)), rel=1e-12)
    assert 0.5 < said <= 1
    multiplier = next(m for m in np.geomspace(1e-4, 1e4, 200) if gaussian_delta(m, epsilon) < delta)
    assert 0.5 + gaussian_delta(multiplier, 0.0) / 2 <= said


def test_the_words_have_the_numbers_of_the_promise():
    release = dpcgd.priv_pc(DATA, epsilon=1.0, rng=default_rng(0), rows_per_person=2)
    budget, terms = release.ledger.budget, release.terms
    words = " ".join(in_words(release.guarantee, budget, terms))
    assert "(1, 1e-06)-differentially private for one person, of up to 2 records" in words
    for said in ("replace up to 2 records, all of one person", "2.718 times", "73.11%"):
        assert said in words
    assert "not proved; do not rely on it" in in_words("claimed, not proved", budget, terms)[0]
    assert "e^1e+06 times" in " ".join(in_words("proved", Budget(1e6, 1e-6), terms))
    page = dpcgd.pc(DATA).report()
    assert "Nothing is proved" in page
    assert "none promised" in page


# --- the page


def test_a_report_is_one_page_in_two_forms(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    release = dpcgd.table_pc(DATA, epsilon=1.0, rng=default_rng(0), rows_per_person=2)
    page, markdown = (release.report(tmp_path / f"report.{ending}") for ending in ("html", "md"))
    assert (tmp_path / "report.html").read_text() == page == release.report()
    assert (tmp_path / "report.md").read_text() == markdown
    assert page._repr_mimebundle_() == {"text/html": page}
    assert markdown._repr_mimebundle_() == {"text/markdown": markdown}
    assert not re.search(r"(src|href)=|url\((?!#)", page), "it needs nothing else"
    sections = re.findall(r"<h2>(.*?)</h2>", page)
    assert len(sections) == 7
    assert sections == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    text = re.sub(r"<head>.*?</head>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    shown = re.sub(r"!\[.*?\)|````text|\\", "", markdown)
    assert re.findall(r"\w+", html.unescape(text)) == re.findall(r"\w+", shown)
    for word, times in Counter(release.pair_status().values()).items():
        assert f"<tr><td>{word}</td><td>{times}</td>" in page
    picture = re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]
    names = re.findall(r"<text[^>]*>(.*?)</text>", picture)
    assert sorted(names) == sorted(release.graph.variables)
    assert picture.count("<polyline") == len(release.graph.skeleton)
    assert picture.count("marker-end") == len(release.graph.arrows)


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_has_a_section_on_effects_if_there_are_some(ending, tmp_path):
    release = dpcgd.private_graph(DATA, epsilon=1.0, rng=default_rng(0))
    found = dpcgd.effects(release, [("Smoker", "Cancer"), ("Cancer", "Xray")])
    page = release.report(tmp_path / f"report.{ending}", effects=found)
    assert "How strong the effects are" in page
    assert "How strong the effects are" not in release.report()
    for own in found:
        shown = f"{own.estimate:.3g}" if own.identified else "not identified"
        assert shown in page.replace("\\", "")
        assert html.escape(own.estimand) in page or ending == "md"
    assert "lack of memory" in release.report(effects=lambda: bytearray(2**62))
    bent = [replace(own, marked="it is bent") for own in found]
    assert release.report(tmp_path / f"report.{ending}", effects=bent).count("it is bent") == 1


def test_a_graph_of_a_search_has_the_probabilities_of_its_moments_beside_it():
    release = dpcgd.table_pc(DATA, epsilon=1.0, rng=default_rng(0))
    assert release.graph.certainty is None
    rows = re.findall(r"<tr><td>(\w+) -- (\w+)</td><td>(.*?)</td>", release.report())
    assert {frozenset(row[:2]) for row in rows} == release.graph.skeleton
    for a, b, shown in rows:
        assert html.unescape(shown) == two_digits(release.probabilities[frozenset((a, b))])
    asked = dpcgd.priv_pc(DATA, epsilon=1.0, rng=default_rng(0))
    assert "gives no probabilities" not in asked.report()


def test_names_and_levels_of_any_language_and_with_marks_stay_text(tmp_path):
    levels = {'<b>|"x"': ["</td>", "`|`"], "[y](z)": ["<script>", "*"], "größe\n年龄": ["0", "1"]}
    codes = default_rng(0).integers(0, 2, (3000, 3))
    codes[:, 1] = codes[:, 0]
    release = dpcgd.table_pc(dpcgd.Dataset(codes, levels), epsilon=2.0, rng=default_rng(0))
    page = release.report()
    assert not re.search(r"<b>|<script>|</td></td>", page)
    assert page.count("<td>") == page.count("</td>")
    again = read_back(release, tmp_path / "receipt.json")
    assert (again, again.graph.to_gml()) == (release, release.graph.to_gml())
    text = re.sub(r"````.*?````", "", release.report(tmp_path / "report.md"), flags=re.DOTALL)
    assert not re.search(r"(?<!\\)[<`*]|(?<!\\)\[y", text)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_says_what_became_of_odd_and_missing_values(ending, tmp_path):
    rules = {
        "age": {"edges": [0, 50, 80], "outside": "clip", "missing": ["unknown", "-9"]},
        "pain": {"levels": ["none", "some", "much"], "ordered": True},
        "dose": {"edges": [0, 1, 2], "outside": "refuse", "missing": "none taken"},
    }
    table = {"age": [119, -9, 20], "pain": ["none", "much", "some"], "dose": [0.5, 1.5, None]}
    data = dpcgd.Dataset.from_pandas(pd.DataFrame(table), rules)
    page = html.unescape(dpcgd.pc(data).report(tmp_path / f"report.{ending}"))
    assert "0 to 50, 50 to 80, unknown; a number outside is in the nearer end" in page
    assert "missing values and -9 are 'unknown'" in page
    assert "none, some, much; in this order; a missing value was refused" in page
    assert "a number outside was refused; missing values are 'none taken'" in page


def test_the_citation_is_that_of_the_citation_file():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    page = dpcgd.pc(DATA).report()
    assert cited["title"] in page
    assert cited["authors"][0]["name"] in page


@pytest.mark.parametrize("name", ["report.txt", "report", "report.pdf"])
def test_a_report_of_another_kind_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"a report ends in \.html or \.md, not in"):
        dpcgd.pc(DATA).report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# --- probabilities of edges

SYSTEMS = [dpcgd.dag_posterior, dpcgd.graph_from_moments]


@cache
def released(system, **settings):
    data = dpcgd.load("survey", n=20_000, rng=default_rng(0))
    return system(data, epsilon=1.0, rng=default_rng(1), **settings)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_lists_every_edge_with_its_probabilities(system, ending, tmp_path):
    release = released(system)
    page = release.report(tmp_path / f"report{ending}").replace("&gt;", ">").replace("\\", "")
    right, edges = release.graph.expected_right_edges, len(release.graph.skeleton)
    assert f"Expected number of right edges: {right:.1f} of {edges}" in page
    cell = r"(?:<td>|\| )([A-Z]) -[->] ([A-Z])(?:</td><td>| \| )([>.\d]+)(?=[ <])"
    rows = [(frozenset(row[:2]), float(row[2].strip(">"))) for row in re.findall(cell, page)]
    assert dict(rows).keys() == release.graph.skeleton
    numbers = [release.probabilities[pair] for pair, _ in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert [shown for _, shown in rows] == pytest.approx(numbers, abs=0.0100001)


@pytest.mark.parametrize("system", [*SYSTEMS, dpcgd.noleaks])
def test_confirmed_is_said_of_tests_only(system, tmp_path):
    release = released(system)
    release.save(tmp_path / "receipt.json")
    receipt = (tmp_path / "receipt.json").read_text()
    words = {pair["status"] for pair in json.loads(receipt)["pairs"]}
    assert words <= {"likely", "unlikely", "joined", "apart"}
    for text in (release.report(), receipt, repr(release)):
        assert "onfirmed" not in text
        assert "test that was made" not in text
    assert "confirmed" in released(dpcgd.priv_pc).pair_status().values()


NOTHING = ("at this noise no pair stands out", "most of the edges drawn are expected to be wrong")
CAUTION = "the edge model was trained on nothing like this"


DOUBTS = [(0.1, "", NOTHING), (0.9, CAUTION, [CAUTION])]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("level", "caution", "words"), DOUBTS)
def test_a_release_that_tells_little_says_so_everywhere(system, level, caution, words, tmp_path):
    usual = released(system)
    pairs = dict.fromkeys(usual.probabilities, level)
    arrows = dict.fromkeys(usual.arrow_shares, level / 2)
    graph = replace(usual.graph, certainty=Certainty(pairs, arrows, caution))
    release = replace(usual, graph=graph)
    for each in (release, read_back(release, tmp_path / "receipt.json")):
        graph, markdown = each.graph, each.report(tmp_path / "report.md")
        texts = (repr(each), str(graph), each.report(), markdown, graph.to_dot(), graph.to_gml())
        assert all(word in text for word in words for text in texts)
        assert f"![The released graph: {words[0]}" in markdown
    assert not any(word in repr(usual) for word in words)
