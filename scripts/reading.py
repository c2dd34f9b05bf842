"""How long each chapter is for its reader, and where its first picture stands.

python scripts/reading.py

Folds, exercises and what is off the page do not count. Screens are estimated, of 900 points at a
width of 1300, from the executed copy where there is one. Results are in
_build/results/reading.json: chapter -> {"words", "visible_cells", "visible_lines_per_cell",
"first_picture_screen", "screens", "minutes", "screens_between_pictures"}.

Pictures are figures, and figures and tables that code on the page shows. The widest gap counts the
way from the top to the first one and from the last one to the end too; of a copy without outputs
only figures in the prose are seen.
"""

import re
from pathlib import Path

import nbformat
import pandas as pd
from chapters import chapters, home, write_results

LIMITS = {
    "words": 3500,
    "visible_cells": 60,
    "visible_lines_per_cell": 6.0,
    "first_picture_screen": 1,
}
FOLDED = re.compile(
    r"^(`{3,}|:{3,})\{(prf:proof|exercise|solution|admonition|note|tip)\}.*?^\1 *$",
    re.DOTALL | re.MULTILINE,
)
FENCE = re.compile(r"^(?:[`:]{3,}.*|:\w+:.*|\(.*\)=)$", re.MULTILINE)
PICTURE = re.compile(r"\{glue:figure\}|\{figure\}|!\[")
PLOTS = {"image/png", "image/svg+xml"}
HIDDEN = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
SCREEN, LINE, CODE_LINE, MARGIN, FIGURE = 900, 27, 21, 45, 430
WORDS_A_LINE, WORDS_A_MINUTE = 13, 150


def unfolded(source: str) -> str:
    """Prose without what the reader may open, and without directives."""

    def kept(box):
        return "" if box[2] == "exercise" or ":class: dropdown" in box[0] else box[0]

    return FENCE.sub("", FOLDED.sub(kept, source))


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def kinds(output) -> set[str]:
    """What an output is shown as; none if it was glued, for then it stands elsewhere."""
    shown = set(output.get("data", {}))
    return set() if any("scrapbook" in kind for kind in shown) else shown


def prose_height(source: str) -> float:
    """Of Markdown on the page, roughly."""
    words, paragraphs = len(unfolded(source).split()), source.count("\n\n") + 1
    figures = len(PICTURE.findall(source))
    return words / WORDS_A_LINE * LINE + paragraphs * LINE / 2 + figures * FIGURE


def pictures(cell) -> list[float]:
    """Where figures and tables stand in a cell, in points below its top."""
    if cell.cell_type == "markdown":
        text = FOLDED.sub(lambda box: "" if "dropdown" in box[0] else box[0], cell.source)
        return [prose_height(text[: mark.start()]) for mark in PICTURE.finditer(text)]
    if tags(cell) & {"hide-cell", "remove-cell", "hide-output", "remove-output"}:
        return []
    shown = set().union(*map(kinds, cell.get("outputs", [])))
    if not shown & {*PLOTS, "text/html"}:
        return []
    return [0.0 if tags(cell) & HIDDEN else len(cell.source.splitlines()) * CODE_LINE]


def height(cell) -> float:
    """Of a cell on the page, roughly."""
    if cell.cell_type == "markdown":
        return prose_height(cell.source)
    if "remove-cell" in tags(cell):
        return 0.0
    lines = 0 if tags(cell) & HIDDEN else len(cell.source.splitlines())
    shown = 0 if "hide-cell" in tags(cell) else sum(map(_output, cell.get("outputs", [])))
    return lines * CODE_LINE + shown + MARGIN


def _output(output) -> float:
    if kinds(output) & PLOTS:
        return FIGURE
    text = output.get("text") or (kinds(output) and output["data"].get("text/plain")) or ""
    return len(text.splitlines()) * CODE_LINE


def measured(path: Path) -> dict:
    """What a reader meets; of a copy without outputs, screens without them."""
    book = nbformat.read(path, as_version=4)
    code = [c for c in book.cells if c.cell_type == "code" and not tags(c) & HIDDEN]
    words = sum(len(unfolded(c.source).split()) for c in book.cells if c.cell_type == "markdown")
    lines = sum(len(c.source.splitlines()) for c in code)
    at, seen, first, gaps = 0.0, 0.0, None, []
    for cell in book.cells:
        for place in pictures(cell):
            gaps.append(at + place - seen)
            seen = at + place
            first = seen if first is None and cell.cell_type == "markdown" else first
        at += height(cell)
    return {
        "words": words,
        "visible_cells": len(code),
        "visible_lines_per_cell": round(lines / max(1, len(code)), 1),
        "first_picture_screen": int((at if first is None else first) // SCREEN) + 1,
        "screens": round(at / SCREEN, 1),
        "minutes": round(words / WORDS_A_MINUTE + lines / 20),
        "screens_between_pictures": round(max(*gaps, at - seen, 0) / SCREEN, 1),
    }


def over(found: dict) -> list[str]:
    """Which limits a chapter is over."""
    return [name for name, limit in LIMITS.items() if found[name] > limit]


def main():
    copies = ((path, home("quick").copy(path)) for path in chapters())
    results = {path.stem: measured(copy if copy.exists() else path) for path, copy in copies}
    write_results("reading", results)
    starred = {
        chapter: {
            name: f"{size}{'*' if name in over(sizes) else ''}" for name, size in sizes.items()
        }
        for chapter, sizes in results.items()
    }
    print(pd.DataFrame(starred).T.to_string(), "* over the limit", sep="\n")


if __name__ == "__main__":
    main()
