"""Hold the built pages against what every page must be; make book runs it.

python scripts/check_pages.py [folder]
"""

import os
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from chapters import BUILD

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
LABELLED = ("aria-label", "aria-labelledby", "id", "title")
FOREIGN = {"_static", "_modules"}
"""Folders with pages that are the theme's, or source code."""
LARGEST = 6_000_000
"""Bytes of a page, its pictures in it."""


class Page(HTMLParser):
    """What a page holds: ids, links, pictures, headings, fields."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.ids, self.links, self.faults = path, [], [], []
        self._heading: list | None = None
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        if "id" in of:
            self.ids.append(of["id"])
        if tag in ("a", "link") and of.get("href"):
            self.links.append(of["href"])
        if tag in ("img", "script") and of.get("src"):
            self.links.append(of["src"])
        if tag == "img" and not of.get("alt"):
            self.faults.append(f"a picture without a text: {of.get('src', '')[:60]}")
        if tag == "input" and of.get("type") != "hidden" and not set(of) & set(LABELLED):
            self.faults.append(f"a field without a label: {of.get('name', of)}")
        if tag in HEADINGS:
            self._heading = [tag, ""]

    def handle_data(self, data):
        if self._heading:
            self._heading[1] += data

    def handle_endtag(self, tag):
        if self._heading and tag == self._heading[0]:
            if not self._heading[1].strip(" #¶\n"):
                self.faults.append("an empty heading")
            self._heading = None


def faults(folder: Path) -> dict[str, list[str]]:
    """From each page to what is wrong with it."""
    files = sorted(folder.resolve().rglob("*.html"))
    pages = {path: Page(path) for path in files if not FOREIGN & set(path.parts)}
    ids = {path: set(page.ids) for path, page in pages.items()}
    found = {}
    for path, page in pages.items():
        twice = [name for name, times in Counter(page.ids).items() if times > 1]
        of = [*page.faults, *(f"an id twice: {name}" for name in twice)]
        of += [f"leads nowhere: {link}" for link in page.links if not leads(link, path, ids)]
        if path.stat().st_size > LARGEST:
            of.append(f"{path.stat().st_size:,} bytes")
        if of:
            found[str(path.relative_to(folder.resolve()))] = of
    return found


def leads(link: str, page: Path, ids: dict[Path, set[str]]) -> bool:
    """Whether a local link has a file, and its fragment an element."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
    if target not in ids or not parts.fragment:
        return target.exists()
    return unquote(parts.fragment) in ids[target]


def told(folder: Path) -> int:
    """Print what is wrong with each page; how much that is."""
    found = faults(folder)
    for page, of in found.items():
        print(page, *of[:12], sep="\n    ", file=sys.stderr)
    return sum(map(len, found.values()))


def main(folder: str = ""):
    if count := told(Path(folder) if folder else BUILD / "html"):
        sys.exit(f"{count} faults")
    print("every link leads somewhere, every id is one, every picture has a text")


if __name__ == "__main__":
    main(*sys.argv[1:])
