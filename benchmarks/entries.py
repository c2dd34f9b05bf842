"""Who takes part in a benchmark: an entry is named by a file, tried with patience, and timed."""

import functools
import os
import re
import runpy
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any

from dpcgd_book.results.digests import PACKAGE, TOOLS, digest_of_files

from dpcgd.datasets.arguments import data_folder

HOME = "17_which_one_should_i_use"
"""The chapter that the tables belong to, and its folder in book/stored."""

DELTA = 1e-6
"""The delta of every system in the tables."""

LARGER = ("insurance", "water", "hailfinder", "win95pts", "hepar2")
"""Networks of the tables that are larger than the papers'."""

FOLDER = "DPCGD_SYSTEMS"
"""An environment variable: another folder of graph systems; pair systems are in one beside it."""

GUARANTEES = ("proved", "claimed, not proved", "none")
PATIENCE = 60.0
"""Seconds of processor time for one run."""


@dataclass(frozen=True)
class Entry:
    """A system that takes part.

    `name` is without spaces, for it is an argument of a command; `family` says what the system
    does, in a word or two; `run` is called with the data, epsilon, delta and rng, and a ValueError
    from it is a refusal. `trust` is "central" if somebody holds the records, else "local". `really`
    says what the guarantee is worth where that is not what it says.
    """

    name: str
    family: str
    guarantee: str
    run: Callable[..., Any] | None = None
    trust: str = "central"
    really: str = ""

    def __post_init__(self):
        if " " in self.name or "," in self.name:
            raise ValueError(f"{self.name!r}: a name has no spaces or commas; use hyphens")
        if self.guarantee not in GUARANTEES:
            raise ValueError(f"{self.name}: a guarantee is one of {', '.join(GUARANTEES)}")

    @property
    def private(self) -> bool:
        """Whether epsilon changes anything."""
        return self.guarantee != "none" and self.family != "no look"

    @property
    def limit(self) -> float:
        """Seconds of processor time for a run: without privacy many, for the best there is."""
        return PATIENCE * (30 if self.guarantee == "none" else 1)


def entries_in(kind: str) -> dict[str, Entry]:
    """The entries of one kind by name: "systems" for graphs, or "pair_systems"."""
    return {name: entry for name, (entry, _) in _files_of(folder_of(kind)).items()}


def folder_of(kind: str) -> Path:
    """The folder whose files name the entries."""
    graphs = Path(os.environ.get(FOLDER) or Path(__file__).parent / "systems")
    return graphs if kind == "systems" else graphs.with_name(kind)


@functools.cache
def _files_of(folder: Path) -> dict[str, tuple[Entry, Path]]:
    known: dict[str, tuple[Entry, Path]] = {}
    for file in sorted(folder.glob("*.py")):
        for entry in runpy.run_path(str(file))["SYSTEMS"]:
            if entry.name in known:
                raise ValueError(f"{file.name}: there is a system {entry.name!r}; rename one")
            known[entry.name] = entry, file
    return known


def code_of(kind: str, name: str) -> str:
    """A digest of an entry's file and of all of this project that it imports."""
    return _digest(_files_of(folder_of(kind))[name][1])


@functools.cache
def _digest(file: Path) -> str:
    finder = ModuleFinder([str(PACKAGE.parent), str(TOOLS.parent)])
    finder.run_script(str(file))
    files = sorted(module.__file__ for module in finder.modules.values() if module.__file__)
    if "dpcgd.reading.reader" in finder.modules:
        files += sorted(map(str, data_folder().glob("*.json")))  # its trained models
    return f"c{digest_of_files(files, root=PACKAGE.parent)[:8]}"  # never to be read as a number


def attempted(run: Callable, *given, limit: float = 0.0, **settings) -> tuple[Any, dict]:
    """What a run returns, with its seconds of processor time; or None, and why there is nothing.

    A ValueError is a refusal. After `limit` seconds of processor time, a minute by default, the run
    is given up.
    """
    started = time.process_time()
    try:
        with patience(limit or PATIENCE), warnings.catch_warnings(action="ignore"):
            answer = run(*given, **settings)
    except (ValueError, TimeoutError) as error:
        return None, {"seconds": None, "why_not": _reason(error)}
    return answer, {"seconds": round(time.process_time() - started, 3), "why_not": None}


def _reason(error) -> str:
    refused = "refused: " + re.sub(r"[\d.,]+", "...", re.split("[:;]", str(error))[0])
    return str(error) if isinstance(error, TimeoutError) else refused


@contextmanager
def patience(seconds: float):
    """A TimeoutError after so much processor time; without a limit outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def too_long(*_):
        raise TimeoutError(f"over {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
