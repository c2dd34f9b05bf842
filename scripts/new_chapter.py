"""A chapter of your own, as a copy of another: make chapter FROM=04 NAME=26_my_question

The copy has labels of its own, so that the strict build passes, and stands in the table of
contents. Theorems keep their label where they were: the copy's text refers to those. Numbers in its
text and golden values are those it was copied with; make golden takes new ones.
"""

import re
import shutil
import sys

import golden
import lab
import nbformat
from chapters import NOTEBOOKS, ROOT, chapters, execute_all, home
from reference import BOX

TOC, STORED = ROOT / "_toc.yml", ROOT / "book" / "stored"
PART = "  - caption: Your chapters\n    numbered: 1\n    chapters:\n"
NEXT = "  - caption: What became of the papers\n"
HANDED = re.compile(
    r"^glue_all\((?!.*(?:fig|[( ]\*\*)).*\)\n?|^glue_all\(\n(?:    (?! |fig|\*).*\n)+\)\n?", re.M
)
"""Calls that hand the text nothing but numbers: a copy has them in its text."""


def copied(cells, old: str, new: str) -> None:
    """Give figures, exercises and anchors labels of the new chapter; theorems lose theirs."""
    prose = [cell for cell in cells if cell.cell_type == "markdown"]
    for cell in prose:
        cell.source = BOX.sub(lambda box: re.sub(r"(?m)^:label: .*\n", "", box[0]), cell.source)
    text = "\n".join(cell.source for cell in prose)
    own = re.findall(r"^:(?:name|label): (\S+)$", text, re.MULTILINE)
    anchor = re.compile(rf"(#|^\(){old[:2]}-", re.MULTILINE)
    labels = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, own)) or '(?!)'})(?![\w-])")
    for cell in prose:
        cell.source = labels.sub(rf"\1-{new[:2]}", anchor.sub(rf"\g<1>{new[:2]}-", cell.source))
    for cell in cells:
        if cell.cell_type == "code":
            cell.source = HANDED.sub("", cell.source.replace(f'"{old}"', f'"{new}"')).strip("\n")


def register(name: str, title: str) -> None:
    """Put a chapter into the table of contents, in a part of its own."""
    toc = TOC.read_text()
    if PART not in toc:
        toc = toc.replace(NEXT, PART + NEXT)
    entry = f"      - file: notebooks/{name}\n        title: {title}\n"
    TOC.write_text(toc.replace(NEXT, entry + NEXT))


def main(source: str = "", name: str = ""):
    if not (source and re.fullmatch(r"\d\d_[a-z0-9_]+", name)):
        sys.exit("say what to copy and what to call it: make chapter FROM=04 NAME=26_my_question")
    (old,) = chapters(source)[:1]
    new = NOTEBOOKS / f"{name}.ipynb"
    if list(NOTEBOOKS.glob(f"{name[:2]}_*.ipynb")):
        sys.exit(f"there is a chapter {name[:2]} already; choose another number")
    (outcome,) = execute_all(home("quick"), "quick", [old])
    if outcome.error:
        sys.exit(outcome.error)
    book = nbformat.read(old, as_version=4)
    copied(book.cells, old.stem, name)
    lab.settle(book.cells, lab.glued(old))
    book.cells = [cell for cell in book.cells if cell.source]
    title = name[3:].replace("_", " ").capitalize()
    said = f"# {title}\n\n*The numbers in this text are those of chapter {old.stem[:2]}.*"
    book.cells[0].source = re.sub(r"^# .*", said, book.cells[0].source, count=1)
    nbformat.write(book, new)
    if (STORED / old.stem).exists():
        shutil.copytree(STORED / old.stem, STORED / name)
    shutil.copy(golden.GOLDEN / f"{old.stem}.json", golden.GOLDEN / f"{name}.json")
    register(name, title)
    print(f"{new}\nChange it, then: make book CHAPTER={name[:2]}, or make lab")


if __name__ == "__main__":
    main(*sys.argv[1:])
