"""Named results of the chapters, on file for tests, tables and other chapters."""

import json
import os
from pathlib import Path

import numpy as np
from myst_nb import glue

__all__ = ["checkout", "glue_all", "record", "results_folder"]


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
    whole = file.with_suffix(".part")
    whole.write_text(text + "\n")
    whole.replace(file)


def glue_all(**values) -> None:
    """Let a chapter's prose use numbers and figures by name, as ``{glue:text}`name:.2f```.

    Parameters
    ----------
    **values
        Numbers (numpy scalars are converted, so that formats apply) and figures, which make lab
        shows where they are drawn, too.
    """
    for name, value in values.items():
        shown = "DPCGD_LAB" in os.environ and hasattr(value, "savefig")
        glue(name, value.item() if isinstance(value, np.generic) else value, display=shown)
