"""Chapters for JupyterLab, as copies in _build/lab: make lab, or make lab CHAPTER=04

A copy has the numbers and figures of the last quick run; folds are collapsed. It is never replaced.
"""

import re
import sys

import nbformat
import reading
from chapters import BUILD, chapters, execute_all, home
from myst_nb.core.variables import format_plain_text

LAB, KIND = BUILD / "lab", "application/papermill.record/"
NUMBER = re.compile(r"\{glue:text\}`([^`:]+):?([^`]*)`")
ROLE = re.compile(r"\{(py:\w+|cite(?::\w)?|prf:ref|numref)\}`(?:~?[\w.]*\.)?([^`]*)`")


def glued(path) -> dict[str, dict[str, str]]:
    """What the cells of a chapter handed to its text in the last quick run, by name."""
    copy = home("quick").copy(path)
    cells = nbformat.read(copy, as_version=4).cells if copy.exists() else []
    kept = [o for c in cells for o in c.get("outputs", []) if "scrapbook" in o.get("metadata", {})]
    return {output.metadata.scrapbook.name: output.data for output in kept}


def settle(cells, values: dict) -> None:
    """Write numbers into the text, an ellipsis where none is known, and collapse the folds."""

    def written(mark) -> str:
        text = values.get(mark[1], {}).get(f"{KIND}text/plain")
        return format_plain_text(text, mark[2] or "s") if text else "…"

    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = NUMBER.sub(written, cell.source)
        elif reading.tags(cell) & reading.HIDDEN:
            cell.metadata["jupyter"] = {"source_hidden": True}


def write_copy(path) -> None:
    """A chapter in which figures are files, and words stand for references that lead out of it."""
    executed, values = home("quick").copy(path), glued(path)
    book = nbformat.read(executed if executed.exists() else path, as_version=4)
    settle(book.cells, values)
    folder = LAB / "figures" / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in values.items():
        if picture := data.get(f"{KIND}image/svg+xml"):
            (folder / f"{name}.svg").write_text(picture)
    prose = [cell for cell in book.cells if cell.cell_type == "markdown"]
    labels = set(re.findall(r"^:(?:name|label): (\S+)", "\n".join(c.source for c in prose), re.M))
    shown = rf"{{figure}} figures/{path.stem}/\1.svg"
    for cell in prose:
        text = re.sub(r"\{glue:figure\} (\S+)", shown, cell.source)
        cell.source = ROLE.sub(lambda role: role[0] if role[2] in labels else f"`{role[2]}`", text)
    nbformat.write(book, LAB / path.name)


def main(names: str = ""):
    print(*execute_all(home("quick"), "quick", chapters(names) if names else []), sep="\n")
    for path in (path for path in chapters(names) if not (LAB / path.name).exists()):
        write_copy(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
