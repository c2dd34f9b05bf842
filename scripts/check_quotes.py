"""Hold what the book quotes from the four papers against copies of them, wherever they lie.

python scripts/check_quotes.py FOLDER     # texts, or PDFs where pdftotext is installed
python scripts/check_quotes.py            # only counts the items of the ledgers

Quoted are the anchors of book/coverage; what stands in quotation marks, three words or more, in a
paper's chapters and on the page of mistakes; and the numbers of printed tables, which are the
constants of variables called `printed`. Letters and digits are compared, so that hyphens at the
ends of lines, ligatures and signs do not matter. Counts are in _build/results/coverage.json.
"""

import ast
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import nbformat
import pages
from chapters import ROOT, chapters, write_results

QUOTED = re.compile(r'(?<![=\w])"([^"{}\n]+)"')
MISTAKES = ROOT / "book" / "what_the_papers_got_wrong.md"
TOP = 2_000
"""A paper's title stands among so many of its first letters; others cite it at their end."""


def plain(text: str) -> str:
    """Letters and digits, in lower case; a blank between two numbers."""
    found = re.findall(r"\d+(?:\.\d+)*|[a-z]+", unicodedata.normalize("NFKC", text).lower())
    return re.sub(r"(?<=\d) (?=\D)|(?<=\D) ", "", " ".join(found))


def holds(copy: str, quoted: str) -> bool:
    """Whether it stands there, and is no part of a longer number."""
    quoted = plain(quoted)
    before = r"(?<![\d.])" if quoted[:1].isdigit() else ""
    after = r"(?![\d.])" if quoted[-1:].isdigit() else ""
    return bool(re.search(before + re.escape(quoted) + after, copy))


def numbers_of(copy: str) -> set[float]:
    return {float(number) for number in re.findall(r"\d+(?:\.\d+)?", copy)}


def copy_of(title: str, folder: Path) -> str:
    """A paper's text as letters and digits."""
    for file in sorted(f for f in folder.rglob("*") if f.suffix in (".txt", ".md", ".pdf")):
        command = ["pdftotext", file, "-"] if file.suffix == ".pdf" else ["cat", file]
        copy = plain(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if plain(title) in copy[:TOP]:
            return copy
    sys.exit(f"no file below {folder} begins with the title {title!r}; put a copy there")


def printed(source: str) -> list[float]:
    """The numbers that are assigned to variables called `printed`."""
    kinds = (ast.Assign, ast.AugAssign)
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, kinds)]
    named = [n.value for n in nodes if "printed" in ast.dump(n).split("value=")[0].lower()]
    told = [c.value for n in named for c in ast.walk(n) if isinstance(c, ast.Constant)]
    return [float(x) for text in told for x in re.findall(r"(?<![\w.])\d*\.?\d+", str(text))]


def missing(ledger: dict, copies: dict[str, str]) -> list[str]:
    """One line for each anchor, quote and number that its paper does not have."""
    copy, lost = copies[ledger["title"]], []
    lost += [f"{r['item']}: {r['anchor']}" for r in ledger["items"] if not holds(copy, r["anchor"])]
    for path in chapters(ledger["chapters"]):
        cells = nbformat.read(path, as_version=4).cells
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        lost += unknown(path.stem, prose, [copy])
        found = [x for cell in cells if cell.cell_type == "code" for x in printed(cell.source)]
        lost += [f"{path.stem}: {x:g}" for x in sorted(set(found) - numbers_of(copy))]
        print(f"{path.stem}: {len(found)} printed numbers")
    return lost


def unknown(name: str, prose: str, copies) -> list[str]:
    """Quotes of three words or more that none of these papers has."""
    quotes = [quote for quote in QUOTED.findall(prose) if len(quote.split()) > 2]
    return [f"{name}: {q!r}" for q in quotes if not any(holds(copy, q) for copy in copies)]


def main(folder: str = ""):
    ledgers = pages.ledgers()
    print(write_results("coverage", pages.covered(ledgers)).read_text())
    if not folder:
        return
    copies = {ledger["title"]: copy_of(ledger["title"], Path(folder)) for ledger in ledgers}
    lost = [line for ledger in ledgers for line in missing(ledger, copies)]
    lost += unknown(MISTAKES.stem, MISTAKES.read_text(), copies.values())
    anchors = sum(len(ledger["items"]) for ledger in ledgers)
    print(*lost, f"{anchors} anchors; {len(lost)} quotes are not in the papers", sep="\n")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main(*sys.argv[1:])
