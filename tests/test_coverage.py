"""Every item of the papers has a status, a source, and a place that is there."""

import re

import pytest

nbformat = pytest.importorskip("nbformat", reason="it is in the book extra")

import chapters  # noqa: E402
import check_quotes  # noqa: E402
import pages  # noqa: E402

ROWS = [(paper["name"], row) for paper in pages.ledgers() for row in paper["items"]]


def anchors(path):
    """Slugs of headings, as the pages of the book have them: letters, digits and hyphens."""
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    bare = (re.sub(r"\$[^$]*\$", "", line) for line in re.findall(r"^#{1,3} (.+)$", prose, re.M))
    return {re.sub(r"[^\w-]", "", line.lower().replace(" ", "-")) for line in bare}


PLACES = {f"{p.stem}#{name}" for p in chapters.chapters() for name in anchors(p)}


def test_no_item_is_without_status_place_anchor_and_source():
    for paper, row in ROWS:
        assert row["status"] in pages.STATUSES, (paper, row)
        assert row["place"] in PLACES, (paper, row)
        assert row["source"], (paper, row)
        assert len(check_quotes.plain(row["anchor"])) >= 5, (paper, row)
        assert len(row["anchor"].split()) <= 12, (paper, row)


def test_at_most_one_item_in_twenty_is_not_done_and_each_says_why():
    left = [row for _, row in ROWS if row["status"] == "not done"]
    assert all(len(row["note"].split()) > 2 for row in left)
    assert len(left) <= 0.05 * len(ROWS)


def test_items_are_told_apart_and_figures_that_share_a_line_are_counted():
    assert len({(paper, row["item"]) for paper, row in ROWS}) == len(ROWS)
    for _, row in ROWS:
        if span := re.match(r"Figures (\d+) to (\d+)", row["item"]):
            assert row["count"] == int(span[2]) - int(span[1]) + 1
    assert sum(pages.covered()["Priv-PC"].values()) == sum(p == "Priv-PC" for p, _ in ROWS)


def test_the_page_has_a_line_for_every_item():
    assert len(re.findall(r"^\| .*\.ipynb#", pages.with_coverage(""), re.M)) == len(ROWS)


def test_a_quote_is_found_across_line_ends_and_a_wrong_number_is_not():
    copy = check_quotes.plain("The signi\ufb01cant loss\nis 10.61 to 293.87, in 5 100 runs.")
    assert check_quotes.unknown("x", 'It says "the significant loss is 10.61".', [copy]) == []
    (lost,) = check_quotes.unknown("x", 'It says "the significant loss is 0.61".', [copy])
    assert "0.61" in lost
    assert check_quotes.misprinted("x", 'printed = """a,10.61,5"""', [copy]) == []
    assert check_quotes.misprinted("x", 'printed = """a,10.6,5"""', [copy]) == ["x: 10.6"]
