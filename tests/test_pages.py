"""What is made of the chapters for the pages, and how the pages are checked."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpcgd import load

nbformat = pytest.importorskip("nbformat", reason="it is in the book extra")

import chapters  # noqa: E402
import check_pages  # noqa: E402
import golden  # noqa: E402
import home_picture  # noqa: E402
import lab  # noqa: E402
import new_chapter  # noqa: E402
import pages  # noqa: E402
import reading  # noqa: E402


def markdown(text):
    return SimpleNamespace(cell_type="markdown", source=text, metadata={})


def test_the_home_page_shows_the_stored_results():
    stored = json.loads(home_picture.STORED.read_text())
    assert home_picture.PAGE.read_text() == home_picture.drawn(stored, home_picture.rows_of_table())
    assert {"made_by", "date", "versions", "settings"} <= set(stored)


@pytest.mark.slow
def test_a_stored_release_of_the_home_page_comes_out_again():
    kept = json.loads(home_picture.STORED.read_text())["graphs"][home_picture.EPSILONS.index(1.0)]
    data = load(home_picture.NETWORK, n=home_picture.N, rng=np.random.default_rng(0))
    again = home_picture.released(data, 1.0)
    *drawn, likely = zip(*kept["edges"], strict=True)
    *redrawn, also = zip(*again["edges"], strict=True)
    assert (redrawn, again["F1"]) == (drawn, kept["F1"])
    assert also == pytest.approx(likely, abs=0.02)


def test_the_first_use_of_a_term_in_prose_leads_to_the_glossary():
    cells = [
        markdown("# A filter\n\nThe `filter` in $filter$ and [a filter](x.md) are not it."),
        markdown("An *audit* is stressed. Audits find what a Filter missed; the filter again."),
    ]
    pages.link_first_uses(cells)
    assert "{term}" not in cells[0].source
    linked = "{term}`Audits <audit>` find what a {term}`Filter <filter>` missed; the filter again."
    assert cells[1].source == f"An *audit* is stressed. {linked}"


def test_links_to_the_glossary_leave_the_rest_of_a_chapter_as_it_is(name):
    path = chapters.NOTEBOOKS / f"{name}.ipynb"
    before, after = nbformat.read(path, as_version=4), pages.finished(path)
    for old, new in zip(before.cells, after.cells, strict=True):
        unlinked = re.sub(r"\{term\}`([^<`]*) <[^`]*>`", r"\1", new.source)
        minutes = r"\n\n\*About \d+ minutes; \d+ with the proofs\.\*\n"
        assert re.sub(minutes, "\n", unlinked) == old.source


def test_a_copy_of_a_chapter_has_labels_of_its_own(name):
    book = nbformat.read(chapters.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    labels = [labels_of(book)]
    new_chapter.copied(book.cells, name, "99_my_question")
    labels.append(labels_of(book))
    assert len(labels[0]) == len(set(labels[0]))
    assert not set(labels[0]) & set(labels[1])
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    assert '"99_my_question"' in code
    assert f'"{name}"' not in code


def test_a_copy_has_numbers_in_its_text_and_its_folds_are_collapsed():
    code = [nbformat.v4.new_code_cell("1", metadata={"tags": t}) for t in ([], ["hide-cell"])]
    cells = [markdown("F1 {glue:text}`f1:.2f`, {glue:text}`name`, {glue:text}`new:.1f`."), *code]
    values = {"f1": "0.834", "name": "'sachs'"}
    lab.settle(cells, {name: {f"{lab.KIND}text/plain": text} for name, text in values.items()})
    assert cells[0].source == "F1 0.83, sachs, …."
    assert [cell.metadata.get("jupyter") for cell in code] == [None, {"source_hidden": True}]


def test_a_copy_hands_its_text_no_numbers_but_keeps_its_figures():
    source = "glue_all(n=n, m=len(a))\nx = 1\nglue_all(\n    k=k,\n)\nglue_all(fig_a=figure)\n"
    assert new_chapter.HANDED.sub("", source) == "x = 1\nglue_all(fig_a=figure)\n"


def labels_of(book):
    prose = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    return re.findall(r"^:(?:name|label): (\S+)|^\((\S+)\)=$", prose, re.MULTILINE)


def test_a_page_is_held_against_its_links_ids_pictures_and_headings(tmp_path):
    (tmp_path / "good.html").write_text('<h1 id="a">A</h1><a href="#a">a</a><img alt="b" src="">')
    assert check_pages.faults(tmp_path) == {}
    (tmp_path / "bad.html").write_text(
        '<h1 id="a"> </h1><p id="a"></p><a href="good.html#b">b</a><a href="no.html">n</a>'
        '<img src=""><input name="q">'
    )
    faults = sorted(fault.split(":")[0] for fault in check_pages.faults(tmp_path)["bad.html"])
    wrong = ["a field without a label", "a picture without a text", "an empty heading"]
    assert faults == [*wrong, "an id twice", "leads nowhere", "leads nowhere"]


def test_folds_and_what_is_off_the_page_do_not_count_as_read():
    cell = markdown("One two.\n\n```{prf:proof}\n:class: dropdown\nthree\n```\n\nfour")
    assert reading.unfolded(cell.source).split() == ["One", "two.", "four"]
    kept = markdown("```{prf:theorem}\n:label: thm-x\nfive six\n```")
    assert reading.unfolded(kept.source).split() == ["five", "six"]


def test_pictures_have_texts():
    text = "".join(p.read_text() for p in Path(chapters.ROOT / "book").glob("*.md"))
    assert text.count("{figure}") == text.count(":alt:")
    for path in chapters.chapters():
        prose = path.read_text()
        assert prose.count("{glue:figure}") == prose.count(":alt:"), path.stem


PRINTED = {
    "21_priv_pc_rerun": {"Table": 3, "Figure": 1},
    "22_curate_rerun": {"Figure": 7},
    "23_additive_noise_rerun": {"Table": 2, "Figure": 2},
    "24_local_privacy_rerun": {"Table": 2, "Figure": 175},
}
"""How many tables and figures each paper has."""


@pytest.mark.parametrize("name", PRINTED)
def test_every_table_and_figure_of_a_paper_has_a_verdict_and_a_section(name):
    verdicts = golden.of(name)["verdicts"]["value"]
    source = (chapters.NOTEBOOKS / f"{name}.ipynb").read_text()
    assert {row["verdict"] for row in verdicts} <= set(pages.KINDS)
    for row in verdicts:
        assert f"({row['section']})=" in source, row
        assert "|" not in row["shows"] + row["why"]
    for kind, most in PRINTED[name].items():
        items = [row["item"] for row in verdicts if row["item"].startswith(kind)]
        assert {k for item in items for k in numbered(item)} == set(range(1, most + 1))


def numbered(item):
    """Figures 9 to 21, 30 and 33 -> 9, ..., 21, 30, 33"""
    spans = re.findall(r"(\d+)(?: to (\d+))?", item)
    return [k for first, last in spans for k in range(int(first), int(last or first) + 1)]


def test_the_page_of_verdicts_lists_what_the_chapters_recorded(tmp_path):
    home = chapters.Home(tmp_path)
    home.results.mkdir()
    path, other = chapters.chapters("21,01")[::-1]
    home.result(other).write_text(json.dumps({"score": 1}))
    row = {"item": "Figure 1", "shows": "F1", "verdict": "fails", "why": ".1, not .9"}
    home.result(path).write_text(json.dumps({"verdicts": [{**row, "section": "21-figure-1"}]}))
    text = pages.with_verdicts(f"before {pages.VERDICTS}", home, [other, path])
    assert text.startswith("before 1 entries: 1 **fails**.")
    assert "| [Figure 1](#21-figure-1) | F1 | **fails** | .1, not .9 |" in text
