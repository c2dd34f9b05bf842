"""Every system of the benchmark table: who takes part, how one case is run and scored."""

import ast
import functools
import math
import os
import re
import runpy
import signal
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.random_networks import MORE_TABLES, SHAPES, TABLES, random_network
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.release import Release
from dpcgd_book.results.larger_networks import drawn

__all__ = [
    "DELTA",
    "HOME",
    "SCORES",
    "System",
    "attempted",
    "check_named",
    "code_of",
    "digest_of",
    "known_in",
    "on_many_levels",
    "on_random_network",
    "peak_of",
    "run_case",
    "scored",
    "scores",
    "systems",
    "systems_folder",
]

DELTA = 1e-6
"""Of every system in the table."""

HOME = "12_which_one_should_i_use"
"""The chapter that the table belongs to, and its folder in book/stored."""

FOLDER = "DPCGD_SYSTEMS"
"""An environment variable: another folder of systems than the checkout's benchmarks/systems."""

SCORES = ("F1", "arrowhead F1", "SHD", "edges", "precision", "recall")
"""What any graph has."""

GUARANTEES = ("proved", "claimed, not proved", "none")


@dataclass(frozen=True)
class System:
    """One that takes part, as a file in ``benchmarks/systems`` names it.

    Parameters
    ----------
    name : str
        Without spaces: it is an argument of ``make table CASE=...``.
    family : str
        What it does, in a word or two.
    guarantee : str
        "proved", "claimed, not proved" or "none".
    run : callable, optional
        Called as ``run(data, epsilon=..., delta=..., rng=...)``; returns a release or a graph. A
        ValueError is a refusal, and is kept as one. Without it the rows are those of `yardstick`.
    trust : str
        "central": somebody holds the records; "local": nobody does.
    yardstick : str
        Its name in ``book/stored/yardsticks/scores.csv``, where it is not run here.
    really : str
        What its guarantee is worth where that is not what it says.

    Examples
    --------
    >>> from dpcgd import table_pc
    >>> System("my-tables", "released tables", "proved", table_pc).private
    True
    """

    name: str
    family: str
    guarantee: str
    run: Callable[..., Release | CPDAG] | None = None
    trust: str = "central"
    yardstick: str = ""
    really: str = ""

    def __post_init__(self):
        check_named(self.name, self.guarantee)
        if (self.run is None) == (not self.yardstick):
            raise ValueError(f"{self.name}: give a callable, or the name of its yardstick")

    @property
    def private(self) -> bool:
        """Whether epsilon changes anything."""
        return self.guarantee != "none" and self.family != "no look"


def check_named(name: str, guarantee: str) -> None:
    """Raise a ValueError unless a command can take the name and the guarantee is one of three."""
    if " " in name or "," in name:
        raise ValueError(f"{name!r}: a name has no spaces or commas; use hyphens")
    if guarantee not in GUARANTEES:
        raise ValueError(f"{name}: a guarantee is one of {', '.join(GUARANTEES)}")


def systems() -> dict[str, System]:
    """All systems by name, from the files of ``benchmarks/systems``.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    return {name: system for name, (system, _) in known_in(systems_folder()).items()}


def code_of(name: str, folder: Path | None = None) -> str:
    """A digest of a system's file and of all of the package that it imports.

    Parameters
    ----------
    name : str
    folder : path, optional
        Of the files of systems; :func:`systems_folder` unless given.

    Examples
    --------
    >>> code_of("table_pc") == code_of("learned_pc")  # they stand in one file
    True
    """
    return digest_of(known_in(folder or systems_folder())[name][1])


def systems_folder() -> Path:
    """Where systems for graphs are; those for pairs are in the folder beside it.

    Raises
    ------
    ValueError
        If there is no checkout here, and the environment names no folder.
    """
    if folder := os.environ.get(FOLDER):
        return Path(folder)
    here = [Path(__file__).resolve(), Path.cwd() / "here"]
    folders = [p / "benchmarks" / "systems" for start in here for p in start.parents]
    found = [folder for folder in folders if folder.is_dir()]
    if not found:
        raise ValueError(f"no benchmarks/systems here; name a folder of systems in {FOLDER}")
    return found[0]


@functools.cache
def known_in(folder: Path) -> dict[str, tuple[Any, Path]]:
    """The systems that the files of a folder name, each with its file.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    known: dict[str, tuple[Any, Path]] = {}
    for file in sorted(folder.glob("*.py")):
        for system in runpy.run_path(str(file))["SYSTEMS"]:
            if system.name in known:
                raise ValueError(f"{file.name}: there is a system {system.name!r}; rename one")
            known[system.name] = system, file
    return known


@functools.cache
def digest_of(file: Path) -> str:
    """A digest of a file and, by their import statements, of the package's files behind it."""
    package = Path(__file__).resolve().parents[1]
    left, seen = [file], {}
    while left:
        if (path := left.pop()) not in seen and "book" not in path.parent.parts[-1:]:
            seen[path] = path.read_bytes()
            left += [p for p in _imported(seen[path], package) if p.is_file()]
    parts = [text for path, text in sorted(seen.items())]
    return f"c{zlib.crc32(b''.join(parts)):08x}"  # never to be read as a number


def _imported(text: bytes, package: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpcgd."):
            inside = package.joinpath(*(node.module or "").split(".")[1:])
            yield inside.with_suffix(".py")
            yield from (inside / f"{name.name}.py" for name in node.names)


def scores(graph: CPDAG, truth: nx.DiGraph) -> dict[str, float]:
    """Of a graph against the true one; its directions against their equivalence class.

    Examples
    --------
    >>> truth = nx.DiGraph([("a", "b"), ("b", "c")])
    >>> found = CPDAG.from_dag(nx.DiGraph([("a", "b"), ("a", "c")]))
    >>> scores(found, truth)["recall"], scores(found, truth)["SHD"]
    (0.5, 2)
    """
    true = {frozenset(edge) for edge in truth.edges}
    right = len(graph.skeleton & true)
    return {
        "F1": graph.skeleton_f1(truth),
        "arrowhead F1": graph.arrowhead_f1(truth),
        "SHD": graph.shd(truth),
        "edges": len(graph.skeleton),
        "precision": right / len(graph.skeleton) if graph.skeleton else 1.0,
        "recall": right / len(true),
    }


PATIENCE = 60.0
"""Seconds of processor time for one run."""

MISSING = dict.fromkeys(SCORES)


def run_case(system: str, network: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """One row of the table: the system on the records of this network, size and run.

    Parameters
    ----------
    system, network : str
    n : int
        Records; the same ones for every system and epsilon.
    epsilon : float
        Infinite for a system without privacy.
    run, seed : int
        What all random numbers depend on.

    Returns
    -------
    dict
        Scores, tests, the epsilon that its ledger reads, seconds of processor time, `why_not` if it
        has no graph, and a digest of the code.
    """
    return scored(systems()[system], _records(network, run, n, seed), epsilon, run, seed) | {
        "code": code_of(system)
    }


def scored(system: System, data: Dataset, epsilon: float, run: int, seed: int) -> dict:
    """What a system finds in these records, or why it finds nothing."""
    if system.run is None:
        raise ValueError(f"{system.name} runs elsewhere: python benchmarks/yardsticks.py")
    _warm(system)
    assert data.truth is not None
    rng = np.random.default_rng([seed, run, zlib.crc32(system.name.encode())])
    private = {"epsilon": epsilon, "delta": min(DELTA, 0.1 / data.n), "rng": rng}
    told: dict[str, float | None] = {"tests": None, "read": None}
    found, how = attempted(functools.partial(system.run, data, **private))
    if isinstance(found, Release):
        told = {
            "tests": (found.answers and found.answers.tests) or None,
            "read": found.ledger.spent.epsilon,
        }
        found = found.graph
    return (MISSING if how["why_not"] else scores(found, data.truth)) | told | how


def attempted(run: Callable[[], Any]) -> tuple[Any, dict]:
    """What a run finds, with its seconds of processor time, or why it finds nothing.

    Parameters
    ----------
    run : callable
        A ValueError is a refusal. After a minute of processor time it is given up.

    Returns
    -------
    found, how
        None if there is nothing; `seconds` and `why_not`, one of which is None.

    Examples
    --------
    >>> attempted(lambda: int("x"))
    (None, {'seconds': None, 'why_not': 'refused: invalid literal for int() with base ...'})
    """
    started = time.process_time()
    try:
        with _patience(PATIENCE), warnings.catch_warnings(action="ignore"):
            found = run()
    except (ValueError, TimeoutError) as error:
        return None, {"seconds": None, "why_not": _reason(error)}
    return found, {"seconds": round(time.process_time() - started, 3), "why_not": None}


def peak_of(system: str, network: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """How much memory a system takes beside the records, at its peak.

    Parameters
    ----------
    system, network : str
    n : int
        Records.
    epsilon : float
    run, seed : int
        What all random numbers depend on.

    Returns
    -------
    dict
        `megabytes` as Python's ``tracemalloc`` counts them: arrays and objects, and not what
        compiled code takes for itself. Or `why_not`.
    """
    of, data = systems()[system], _records(network, run, n, seed)
    _warm(of)
    tracemalloc.start()
    try:
        why_not = scored(of, data, epsilon, run, seed)["why_not"]
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    return {"megabytes": None if why_not else round(peak, 1), "why_not": why_not}


_records = functools.lru_cache(maxsize=1)(drawn)


def on_random_network(system: str, d: int, n: int, epsilon: float, run: int, seed: int) -> dict:
    """A system on records of a random network: a point of the map of who wins where.

    Parameters
    ----------
    system : str
    d, n : int
        Variables and records; a network is the same for every n.
    epsilon : float
    run, seed : int
        What all random numbers depend on. Runs take the shapes of
        ``dpcgd.datasets.random_networks.SHAPES`` in turn; tables are of every kind.

    Returns
    -------
    dict
        F1 and SHD, those of the complete and of the empty graph, and `why_not`.
    """
    data = _random_records(d, n, run, seed)
    found = scored(systems()[system], data, epsilon, run // len(SHAPES), seed)
    true, all_pairs = data.truth.number_of_edges(), ~np.eye(d, dtype=bool)
    return {key: found[key] for key in ("F1", "SHD", "why_not")} | {
        "complete F1": 2 * true / (true + d * (d - 1) // 2),
        "complete SHD": CPDAG(data.variables, all_pairs).shd(data.truth),
        "empty SHD": true,
    }


@functools.lru_cache(maxsize=1)
def _random_records(d, n, run, seed):
    draw, shape = divmod(run, len(SHAPES))
    rng = np.random.default_rng([seed, draw, shape, d])
    return random_network(SHAPES[shape], "mixed", d, rng).sample(n, rng=rng)


def on_many_levels(system: str, d: int, n: int, epsilon: float, run: int, seed: int) -> dict:
    """A system on records of a random network of which a fifth of the variables have many levels.

    Parameters
    ----------
    system : str
    d, n : int
        Variables and records.
    epsilon : float
    run, seed : int
        What all random numbers depend on; shapes and kinds of tables are drawn.

    Returns
    -------
    dict
        The kind of the tables, the most levels of a variable, F1, precision, edges, and `why_not`.
    """
    rng = np.random.default_rng([seed, run, d, 7])
    many = np.exp(rng.uniform(math.log(7), math.log(100), size=d)).round().astype(int)
    sizes = np.where(rng.random(d) < 0.2, many, rng.integers(2, 7, size=d)).tolist()
    levels = {f"v{i}": tuple(str(level) for level in range(of)) for i, of in enumerate(sizes)}
    shape, tables = str(rng.choice(SHAPES)), str(rng.choice(TABLES + MORE_TABLES))
    data = random_network(shape, tables, d, rng, levels=levels).sample(n, rng=rng)
    found = scored(systems()[system], data, epsilon, run, seed)
    told = {key: found[key] for key in ("F1", "precision", "edges", "why_not")}
    return {"tables": tables, "levels": max(sizes)} | told


@functools.cache
def _warm(system):
    """A first call loads and compiles: no part of a run's seconds."""
    data, rng = drawn("cancer", 0, 20_000, 0), np.random.default_rng(0)
    with _patience(PATIENCE):
        system.run(data, epsilon=10.0, delta=DELTA, rng=rng)


def _reason(error) -> str:
    if isinstance(error, TimeoutError):
        return str(error)
    return "refused: " + re.sub(r"[\d.,]+", "...", re.split("[:;]", str(error))[0])


@contextmanager
def _patience(seconds: float):
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
