"""Named results of the chapters, on file for tests, tables and other chapters."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat
import numpy as np
from myst_nb import glue

from dpcgd.privacy.sealed_file import write_whole

__all__ = ["checkout", "glue_all", "record", "results_folder", "verdicts_of"]


def results_folder() -> Path:
    """Where results go: $DPCGD_RESULTS, or _build/results of the surrounding checkout."""
    folder = os.environ.get("DPCGD_RESULTS")
    return Path(folder) if folder else checkout(Path.cwd()) / "_build" / "results"


def checkout(*places: Path) -> Path:
    """The checkout of the book around the first of these places that is in one."""
    folders = [folder for place in places for folder in (place, *place.parents)]
    return next((f for f in folders if (f / "_toc.yml").is_file()), Path.cwd())


def record(chapter: str, **results) -> None:
    """Add results to a chapter's file, ``<folder>/<chapter>.json``.

    Parameters
    ----------
    chapter : str
        The notebook's name without its ending.
    **results
        Numbers, strings, lists and mappings of them; numpy values are converted.

    Examples
    --------
    >>> import tempfile
    >>> os.environ["DPCGD_RESULTS"] = tempfile.mkdtemp()
    >>> record("00_example", answer=42)
    >>> record("00_example", more=[1.5])
    >>> json.loads((results_folder() / "00_example.json").read_text())
    {'answer': 42, 'more': [1.5]}
    >>> del os.environ["DPCGD_RESULTS"]
    """
    file = results_folder() / f"{chapter}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    text = json.dumps(known | results, indent=1, default=lambda value: value.tolist())
    write_whole(file, text + "\n")


def glue_all(**values) -> None:
    """Let a chapter's prose use numbers and figures by name, as ``{glue:text}`name:.2f```.

    Parameters
    ----------
    **values
        Numbers (numpy scalars are converted, so that formats apply) and figures, which make lab
        shows where they are drawn, too. A tuple is a number and its error, ``name_error``; entries
        of a mapping or Series are ``name_key``. Signs in names become underscores.
    """
    for name, value in values.items():
        if isinstance(value, tuple):
            glue_all(**{name: value[0], f"{name}_error": value[1]})
        elif hasattr(value, "items"):
            glue_all(**{f"{name}_{key}": entry for key, entry in value.items()})
        else:
            shown = "DPCGD_LAB" in os.environ and hasattr(value, "savefig")
            value = value.item() if isinstance(value, np.generic) else value
            glue(re.sub(r"\W+", "_", name), value, display=shown)


def verdicts_of(chapter: str, why: Mapping[str, str], **glued: str) -> list[dict[str, str]]:
    """The verdicts of a chapter as it records them, each with its reason.

    Parameters
    ----------
    chapter : str
        The notebook's name without its ending. What an item of its paper shows, the verdict and the
        section stand in a table of its text.
    why : mapping of str to str
        From each item of that table to the reason.
    **glued
        Verdicts that the table has from the code, by name.

    Examples
    --------
    >>> [row] = verdicts_of("22_curate_rerun", {"Figure 1": "it has no data"})
    >>> row["shows"], row["verdict"], row["section"]
    ('how PC removes edges, order by order', 'illustration', '22-figure-1')
    """
    page = checkout(Path(__file__).resolve(), Path.cwd()) / "notebooks" / f"{chapter}.ipynb"
    text = "\n".join(cell.source for cell in nbformat.read(page, as_version=4).cells)
    rows = []
    for item, reason in why.items():
        starts = f"| {item} |", f"| [{item}]("
        row = next(line for line in text.splitlines() if line.startswith(starts))
        section = re.findall(r"\(#([\w-]+)\)", row)[0]
        shows, verdict = row.split(" | ")[1:3]
        verdict = re.sub(r"\{glue:text\}|[*`]", "", verdict)
        facts = {"item": item, "shows": shows, "verdict": glued.get(verdict, verdict)}
        rows.append({**facts, "why": reason, "section": section})
    return rows
