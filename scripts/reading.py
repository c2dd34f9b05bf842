"""How long each chapter is for its reader, and where its first picture stands.

python scripts/reading.py

Folds, exercises and what is off the page do not count. Screens are estimated, of 900 points at a
width of 1300, from the executed copy where there is one. Results are in
_build/results/reading.json: chapter -> {"words", "visible_cells", "visible_lines_per_cell",
"first_picture_screen", "screens", "minutes", "minutes_with_proofs", "screens_between_pictures",
"code_lines", "visible_share", "removed_share", "sections_a_test", "undefined_names"}. Lines of
code hold code. A name is undefined if a visible cell uses it and no visible cell before defines or
imports it. Sections are divided by the exercises that name a test.

Pictures are figures, and figures and tables that code on the page shows. The widest gap counts the
way from the top to the first one and from the last one to the end too; of a copy without outputs
only figures in the prose are seen.
"""

import ast
import builtins
import re
import symtable
from pathlib import Path

import nbformat
import pandas as pd
from chapters import ROOT, chapters, home, write_results
from house import lines_in, lines_of_code

LIMITS = {
    "words": 2800,
    "visible_cells": 60,
    "visible_lines_per_cell": 6.0,
    "first_picture_screen": 1,
}
AIMS = LIMITS | {
    "screens_between_pictures": 4.0,
    "removed_share": 0.1,
    "sections_a_test": 2.0,
    "undefined_names": 0,
}
"""What is over these has a star, and fails no test."""
LEAST_VISIBLE, WITHOUT_SHARES = 0.5, ("17", "20", "21", "22", "23", "24")
MOST_CODE_LINES = {"chapters": 9_000, "elsewhere": 36_000}
FOLDED = re.compile(
    r"^(`{3,}|:{3,})\{(prf:proof|exercise|solution|admonition|note|tip)\}.*?^\1 *$",
    re.DOTALL | re.MULTILINE,
)
SECTION = re.compile(r"^## (?!What (you will|breaks|to take)|Fork|Exerc)", re.MULTILINE)
FENCE = re.compile(r"^(?:[`:]{3,}.*|:\w+:.*|\(.*\)=)$", re.MULTILINE)
PICTURE = re.compile(r"\{glue:figure\}|\{figure\}|!\[")
PLOTS = {"image/png", "image/svg+xml"}
REMOVED = {"remove-cell", "remove-input"}
HIDDEN = {"hide-cell", "hide-input", *REMOVED}
SCREEN, LINE, CODE_LINE, MARGIN, FIGURE = 900, 27, 21, 45, 430
WORDS_A_LINE, WORDS_A_MINUTE, WORDS_OF_PROOF_A_MINUTE = 13, 150, 75


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


def scopes(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """A scope and all scopes within it."""
    return [table, *(inner for child in table.get_children() for inner in scopes(child))]


def undefined(sources: list[str]) -> list[str]:
    """Names that code uses before it defines or imports them, were it run in this order."""
    known, missing = {*dir(builtins), "display"}, set()
    for statement in (node for source in sources for node in ast.parse(source).body):
        top, *inner = scopes(symtable.symtable(ast.unparse(statement), "cell", "exec"))
        bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
        used = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
        for scope in inner:
            used |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
        used |= bound if isinstance(statement, ast.AugAssign) else set()
        own = set() if isinstance(statement, ast.Assign | ast.AugAssign) else bound
        missing |= used - known - own
        known |= bound
    return sorted(missing)


def measured(path: Path) -> dict:
    """What a reader meets; of a copy without outputs, screens without them."""
    book = nbformat.read(path, as_version=4)
    cells = [c for c in book.cells if c.cell_type == "code"]
    code = [c for c in cells if not tags(c) & HIDDEN]
    removed = [c for c in cells if tags(c) & REMOVED]
    held, shown, gone = (sum(lines_of_code(c.source) for c in of) for of in (cells, code, removed))
    prose = [c.source for c in book.cells if c.cell_type == "markdown"]
    boxes = [box for source in prose for box in FOLDED.finditer(source)]
    proofs = sum(len(box[0].split()) for box in boxes if box[2] == "prf:proof")
    words = sum(len(unfolded(source).split()) for source in prose)
    sections = sum(len(SECTION.findall(source)) for source in prose)
    tests = sum(box[2] == "exercise" and "check_" in box[0] for box in boxes)
    lines = sum(len(c.source.splitlines()) for c in code)
    minutes = words / WORDS_A_MINUTE + lines / 20
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
        "minutes": round(minutes),
        "minutes_with_proofs": round(minutes + proofs / WORDS_OF_PROOF_A_MINUTE),
        "screens_between_pictures": round(max(*gaps, at - seen, 0) / SCREEN, 1),
        "code_lines": held,
        "visible_share": shown * 100 // max(1, held) / 100,
        "removed_share": round(gone / max(1, held), 2),
        "sections_a_test": round(sections / max(1, tests), 1),
        "undefined_names": undefined([c.source for c in code]),
    }


def over(found: dict) -> list[str]:
    """Which limits a chapter is over."""
    return [name for name, limit in LIMITS.items() if found[name] > limit]


def starred(chapter: str, found: dict) -> dict[str, str]:
    """What is to be printed of a chapter, with a star at what misses its aim."""
    sizes = found | {"undefined_names": len(found["undefined_names"])}
    missed = {name for name, aim in AIMS.items() if sizes[name] > aim}
    missed |= {"visible_share"} if found["visible_share"] < LEAST_VISIBLE else set()
    if chapter.startswith(WITHOUT_SHARES):
        missed -= {"visible_share", "removed_share"}
    return {name: f"{size}{'*' if name in missed else ''}" for name, size in sizes.items()}


def main():
    copies = ((path, home("quick").copy(path)) for path in chapters())
    results = {path.stem: measured(copy if copy.exists() else path) for path, copy in copies}
    write_results("reading", results)
    table = {chapter: starred(chapter, found) for chapter, found in results.items()}
    print(pd.DataFrame(table).T.to_string(), "* misses its aim", "", sep="\n")
    for chapter, found in results.items():
        if names := found["undefined_names"]:
            print(f"{chapter[:2]} does not define: {', '.join(names)}")
    python = {file.relative_to(ROOT).parts[0] for file in ROOT.glob("[!._]*/**/*.py")}
    sums = sum(found["code_lines"] for found in results.values()), lines_in(*python)
    for (part, most), lines in zip(MOST_CODE_LINES.items(), sums, strict=True):
        print(f"{part:<12}{lines:>7,} lines of code of {most:,}{'*' if lines > most else ''}")


if __name__ == "__main__":
    main()
