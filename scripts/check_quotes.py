"""Hold what the book quotes from the four papers against copies of them, wherever they lie.

python scripts/check_quotes.py FOLDER     # of texts; pdftotext makes them of PDFs

Quoted are the anchors of book/coverage; what stands in quotation marks, three words or more, in a
paper's chapter and on the page of mistakes; and the numbers of printed tables, which are what is
assigned to variables called `printed`. Letters and digits are compared, so that hyphens at the ends
of lines, ligatures and signs do not matter.
"""

import re
import sys
import unicodedata
from pathlib import Path

import nbformat
import pages
from chapters import ROOT, chapters

NUMBER = re.compile(r"(?<![\w.])\d*\.?\d+")
TABLE = re.compile(r'\bprinted \|?= (?:"""(.*?)"""|([^\n]*))', re.IGNORECASE | re.DOTALL)
MISTAKES = ROOT / "book" / "what_the_papers_got_wrong.md"


def plain(text: str) -> str:
    """Letters and digits, in lower case; blanks around each number."""
    found = re.findall(r"\d+(?:\.\d+)*|[a-z]+", unicodedata.normalize("NFKC", text).lower())
    return "".join(f" {part} " if part[0].isdigit() else part for part in found)


def unknown(name: str, prose: str, copies) -> list[str]:
    """Quotes of three words or more that none of these papers has."""
    quotes = [q for q in re.findall(r'(?<![=\w])"([^"{}\n]+)"', prose) if len(q.split()) > 2]
    return [f"{name}: {q!r}" for q in quotes if not any(plain(q) in copy for copy in copies)]


def misprinted(name: str, source: str, copies) -> list[str]:
    """Numbers of a printed table in a cell that none of these papers has."""
    tables = " ".join(map("".join, TABLE.findall(source)))
    known = NUMBER.findall(" ".join(copies)) if tables else ()  # most cells print none
    return [f"{name}: {x:g}" for x in {*map(float, NUMBER.findall(tables))} - {*map(float, known)}]


CHECKS = {"code": misprinted, "markdown": unknown}


def missing(ledger: dict, texts: list[str]) -> list[str]:
    """One line for each anchor, quote and number that a paper does not have."""
    # others cite a title at their end
    copies = [text for text in texts if plain(ledger["title"]) in text[:2_000]]
    anchors = [row["anchor"] for row in ledger["items"]]
    lost = [f"{ledger['name']}: {a}" for a in anchors if not any(plain(a) in c for c in copies)]
    for path in chapters(ledger["chapters"]):
        for cell in nbformat.read(path, as_version=4).cells:
            lost += CHECKS[cell.cell_type](path.stem, cell.source, copies)
    return lost


def main(folder: str):
    texts = [plain(file.read_text()) for file in Path(folder).rglob("*.txt")]
    lost = unknown(MISTAKES.stem, MISTAKES.read_text(), texts)
    lost += [line for ledger in pages.ledgers() for line in missing(ledger, texts)]
    print(*lost, f"{len(lost)} quotes are not in the papers", sep="\n")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main(*sys.argv[1:])
