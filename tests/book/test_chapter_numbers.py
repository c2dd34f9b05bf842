"""Chapters have the numbers of their files, and so have their figures."""

import pytest

pytest.importorskip("sphinx", reason="it is in the book extra")

from sphinx.application import Sphinx

FIGURE = "\n\n.. figure:: a.png\n   :name: {}\n\n   A caption\n"
PAGES = {
    "01_first": "First\n=====" + FIGURE.format("one"),
    "16_second": "Second\n======\n\nPart\n----" + FIGURE.format("two"),
    "12_third": "Third\n=====" + FIGURE.format("three"),
    "glossary": "Words\n=====\n",
}
INDEX = "Book\n====\n\n.. toctree::\n   :numbered: 1\n\n   "


def test_sections_and_figures_have_the_number_of_the_file(tmp_path, monkeypatch):
    from sphinx.environment.collectors.toctree import TocTreeCollector

    kept = TocTreeCollector.assign_figure_numbers
    monkeypatch.setattr(TocTreeCollector, "assign_figure_numbers", kept)  # put back in the end
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "index.rst").write_text(INDEX + "\n   ".join(PAGES))
    for name, text in PAGES.items():
        (tmp_path / f"{name}.rst").write_text(text)
    settings = {"extensions": ["dpcgd_book.results.chapter_numbers"], "numfig": True}
    settings |= {"numfig_secnum_depth": 1}
    folders = [tmp_path, None, tmp_path / "out", tmp_path / "trees"]
    app = Sphinx(*folders, "dummy", confoverrides=settings, status=None, warning=None)
    app.build()
    environment = app.env
    assert environment.titles["16_second"]["secnumber"] == [16]
    assert environment.toc_secnumbers["16_second"][""] == (16,)
    figures = [numbers["figure"] for numbers in environment.toc_fignumbers.values()]
    assert figures == [{"one": (1, 1)}, {"two": (16, 1)}, {"three": (12, 1)}]
    assert "secnumber" not in environment.titles["glossary"]
