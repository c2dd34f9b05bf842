"""Reports: one page for a reviewer, as HTML and as Markdown, and a guarantee in words."""

import html
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from dpcgd import Dataset, load, pc, priv_pc, table_pc
from dpcgd.graphs.texts import guessing, in_words
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import gaussian_delta

DATA = load("cancer", n=2000, rng=default_rng(0))


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
    release = priv_pc(DATA, epsilon=1.0, rng=default_rng(0), rows_per_person=2)
    budget, terms = release.ledger.budget, release.terms
    words = " ".join(in_words(release.guarantee, budget, terms))
    assert "(1, 1e-06)-differentially private for one person, of up to 2 records" in words
    assert "replace up to 2 records, all of one person" in words
    assert "2.718 times" in words
    assert "73.11%" in words
    assert "not proved; do not rely on it" in in_words("claimed, not proved", budget, terms)[0]
    assert "e^1e+06 times" in " ".join(in_words("proved", Budget(1e6, 1e-6), terms))
    page = pc(DATA).report()
    assert "Nothing is proved" in page
    assert "none promised" in page


# --- the page


def test_a_report_is_one_page_in_two_forms(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    release = table_pc(DATA, epsilon=1.0, rng=default_rng(0), rows_per_person=2)
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


def test_names_and_levels_with_marks_stay_text(tmp_path):
    levels = {"<b>|x": ["</td>", "`|`"], "[y](z)": ["<script>", "*"], "a\nb": ["0", "1"]}
    codes = default_rng(0).integers(0, 2, (3000, 3))
    codes[:, 1] = codes[:, 0]
    release = table_pc(Dataset(codes, levels), epsilon=2.0, rng=default_rng(0))
    page = release.report()
    assert not re.search(r"<b>|<script>|</td></td>", page)
    assert page.count("<td>") == page.count("</td>")
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
    data = Dataset.from_pandas(pd.DataFrame(table), rules)
    page = html.unescape(pc(data).report(tmp_path / f"report.{ending}"))
    assert "0 to 50, 50 to 80, unknown; a number outside is in the nearer end" in page
    assert "missing values and -9 are 'unknown'" in page
    assert "none, some, much; in this order; a missing value was refused" in page
    assert "a number outside was refused; missing values are 'none taken'" in page


def test_the_citation_is_that_of_the_citation_file():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    page = pc(DATA).report()
    assert cited["title"] in page
    assert cited["authors"][0]["name"] in page


@pytest.mark.parametrize("name", ["report.txt", "report", "report.pdf"])
def test_a_report_of_another_kind_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"a report ends in \.html or \.md, not in"):
        pc(DATA).report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_jinja_is_loaded_by_a_report_only():
    code = "import sys, dpcgd.graphs.release, dpcgd.graphs.drawing; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
