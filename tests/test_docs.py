"""The examples in the prose print what the prose says they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = re.compile(r"```python\n(.*?)```\s+```text\n(.*?)```", re.DOTALL)
ENTRY = re.compile(r"^@\w+{(\S+),\n(.*?)^}", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"^  (doi|url) += {(.*)},?$", re.MULTILINE)
UNLINKED = {"korn1984", "taylor1987"}  # no DOI of these two could be confirmed


PAGES = ["README.md", "book/intro.md", "book/fork.md", "book/your_table.md"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_example_prints_what_stands_below_it(page):
    ((code, printed),) = EXAMPLE.findall((ROOT / page).read_text())
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(code, page, "exec"), {"__name__": page})
    assert shown.getvalue() == printed


def test_every_source_has_a_plain_doi_or_url():
    entries = ENTRY.findall((ROOT / "book" / "references.bib").read_text())
    links = {key: LINK.findall(fields) for key, fields in entries}
    assert {key for key, urls in links.items() if not urls} == UNLINKED
    plain = {"doi": r"10\.\d{4,9}/\S+", "url": r"https://\S+"}
    for key, urls in links.items():
        assert all(re.fullmatch(plain[kind], url) for kind, url in urls), key


FOLDERS = ROOT, ROOT / "book", ROOT / "data"
MARKDOWN = sorted(page for folder in FOLDERS for page in folder.glob("*.md"))
TARGET = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.name)
def test_links_of_a_page_lead_to_files(page):
    links = [link for link in TARGET.findall(page.read_text()) if not link.startswith("http")]
    assert [link for link in links if not (page.parent / link).exists()] == []
