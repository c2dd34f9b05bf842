"""Hold the built pages against what every page must be; make book runs it.

python scripts/check_pages.py [folder]
"""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from chapters import BUILD

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
LABELLED = {"aria-label", "aria-labelledby", "id", "title"}
FOREIGN = {"_static", "_modules"}
"""Folders with pages that are the theme's, or source code."""
LARGEST = 6_000_000
"""Bytes of a page, its pictures in it."""


class Page(NamedTuple):
    """What a page holds: ids, links, and what is wrong with its pictures, fields and headings."""

    ids: list[str]
    links: list[str]
    faults: list[str]


def page_of(path: Path) -> Page:
    soup = BeautifulSoup(path.read_text(), "html.parser")
    links = [*soup.select("a[href], link[href]"), *soup.select("img[src], script[src]")]
    pictures = soup.select('img:not([alt]), img[alt=""]')
    faults = [f"a picture without a text: {tag.get('src', '')[:60]}" for tag in pictures]
    fields = [t for t in soup.select("input:not([type=hidden])") if not t.attrs.keys() & LABELLED]
    faults += [f"a field without a label: {tag.get('name', tag.attrs)}" for tag in fields]
    titles = (tag.get_text() for tag in soup.find_all(HEADINGS))
    faults += ["an empty heading" for title in titles if not title.strip(" #¶\n")]
    addresses = (tag.get("href") or tag.get("src") for tag in links)
    return Page([tag["id"] for tag in soup.select("[id]")], [*filter(None, addresses)], faults)


def faults(folder: Path) -> dict[str, list[str]]:
    """From each page to what is wrong with it."""
    files = sorted(folder.resolve().rglob("*.html"))
    pages = {path: page_of(path) for path in files if not FOREIGN & set(path.parts)}
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
