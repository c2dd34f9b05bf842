"""Systems for cause or effect in the benchmark: who takes part, how one case is run and scored."""

import functools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpcgd.datasets.measurements import Measurements
from dpcgd.pairwise.anm import Direction, PairRelease
from dpcgd_book.data.cause_effect_pairs import (
    load_pair,
    pair_weights,
    steep_pair,
    synthetic_pair,
)
from dpcgd_book.systems.graph_systems import (
    DELTA,
    attempted,
    check_named,
    code_of,
    known_in,
    systems_folder,
)

__all__ = [
    "KINDS",
    "PairSystem",
    "noise_of",
    "on_pair",
    "pair_of",
    "pair_systems",
    "pair_systems_folder",
    "run_pair",
    "shares_of",
]

KINDS = ("sine", "steep", "real")
"""Kinds of pairs.

The first two are y = f(x) + e, with a sine of about two periods, and with a cube root and little
noise, where the inverse of f is the smoother regression.
"""

PROTECTS = ("everyone", "test half", "nobody")


@dataclass(frozen=True)
class PairSystem:
    """One that takes part, as a file in ``benchmarks/pair_systems`` names it.

    Parameters
    ----------
    name : str
        Without spaces: it is an argument of ``make pairs CASE=...``.
    family : str
        What it does, in a word or two.
    guarantee : str
        "proved", "claimed, not proved" or "none".
    run : callable
        Called as ``run(pair, epsilon=..., delta=..., rng=...)``; returns a
        :class:`~dpcgd.pairwise.anm.PairRelease`, a direction (cause, effect), or None for no
        answer. A ValueError is a refusal, and is kept as one.
    protects : str
        "everyone"; "test half": not those who fitted the regression; or "nobody".
    trust : str
        "central": somebody holds the records; "local": nobody does.
    really : str
        What its guarantee is worth where that is not what it says.

    Examples
    --------
    >>> from dpcgd.pairwise.anm import private_anm
    >>> PairSystem("my-scores", "noisy scores", "proved", private_anm).private
    True
    """

    name: str
    family: str
    guarantee: str
    run: Callable[..., PairRelease | Direction | None]
    protects: str = "everyone"
    trust: str = "central"
    really: str = ""

    def __post_init__(self):
        check_named(self.name, self.guarantee)
        if self.protects not in PROTECTS:
            raise ValueError(f"{self.name}: it protects one of {', '.join(PROTECTS)}")

    @property
    def private(self) -> bool:
        """Whether epsilon changes anything."""
        return self.guarantee != "none"


def pair_systems() -> dict[str, PairSystem]:
    """All of them by name, from the files of :func:`pair_systems_folder`.

    Examples
    --------
    >>> pair_systems()["histogram"].guarantee
    'proved'
    """
    return {name: system for name, (system, _) in known_in(pair_systems_folder()).items()}


def pair_systems_folder() -> Path:
    """``pair_systems`` beside the folder of systems for graphs."""
    return systems_folder().with_name("pair_systems")


def pair_of(kind: str, n: int, run: int, seed: int) -> Measurements:
    """The records of a run: the same ones for every system and epsilon.

    Parameters
    ----------
    kind : str
        One of `KINDS`. A real pair is drawn by its official weight among those with at least n
        records, so that a mean over runs is a weighted mean over pairs; then n of its records.
    n : int
    run, seed : int
        What all random numbers depend on.

    Returns
    -------
    Measurements
        x is the cause; the columns are in random order.

    Examples
    --------
    >>> pair_of("real", 1000, run=0, seed=0)
    Measurements('pair 61', n=1,000, d=2)
    """
    rng = np.random.default_rng([seed, run, n, zlib.crc32(kind.encode())])
    if kind == "sine":
        return synthetic_pair(n, rng=rng)
    if kind == "steep":
        return steep_pair(n, rng=rng)
    numbers, weights = _with_records(n)
    pair = load_pair(int(rng.choice(numbers, p=weights)), rng=rng)
    some = rng.choice(pair.n, n, replace=False)
    return Measurements(pair.values[some], pair.ranges, pair.truth, pair.name)


@functools.cache
def _with_records(n):
    weights = {k: w for k, w in pair_weights().items() if _size_of(k) >= n}
    return list(weights), np.array(list(weights.values())) / math.fsum(weights.values())


@functools.cache
def _size_of(number):
    return load_pair(number).n


def run_pair(system: str, kind: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """One row of the table of pairs.

    Parameters
    ----------
    system, kind : str
    n : int
        Records.
    epsilon : float
        Infinite for a system without privacy.
    run, seed : int
        What all random numbers depend on.

    Returns
    -------
    dict
        As of :func:`on_pair`, with a digest of the code.
    """
    rng = noise_of(system, kind, n, epsilon, run, seed)
    found = on_pair(pair_systems()[system], _records(kind, n, run, seed), epsilon, rng)
    return found | {"code": code_of(system, pair_systems_folder())}


_records = functools.lru_cache(maxsize=1)(pair_of)


def noise_of(
    system: str, kind: str, n: int, epsilon: float, run: int, seed: int
) -> np.random.Generator:
    """The noise of a case, independent of that of any other case."""
    return np.random.default_rng(
        [seed, run, zlib.crc32(f"{system} {kind} {n} {epsilon:g}".encode())]
    )


def on_pair(
    system: PairSystem, pair: Measurements, epsilon: float, rng: np.random.Generator
) -> dict:
    """What a system says of a pair whose cause is x.

    Parameters
    ----------
    system : PairSystem
    pair : Measurements
    epsilon : float
    rng : numpy.random.Generator
        Draws its noise.

    Returns
    -------
    dict
        `right`: 1, 0, or 0.5 for no answer, as if by a coin. `margin`, of the released
        scores, positive if right. `read`, the epsilon of the ledger; `seconds` of processor time;
        `why_not`, if public facts refused the run.
    """
    _warm(system)
    how = {"epsilon": epsilon, "delta": min(DELTA, 0.1 / pair.n), "rng": rng}
    found, told = attempted(functools.partial(system.run, pair, **how))
    if told["why_not"]:
        return {"right": None, "margin": None, "read": None} | told
    margin = read = None
    if isinstance(found, PairRelease):
        read, margin = found.ledger.spent.epsilon, _margin(found)
        found = found.direction
    worth = {("x", "y"): 1.0, ("y", "x"): 0.0, None: 0.5}
    return {"right": worth[found], "margin": margin, "read": read} | told


def _margin(release: PairRelease) -> float | None:
    right, wrong = (release.scores[way] for way in (("x", "y"), ("y", "x")))
    return None if right is None or wrong is None else wrong - right


@functools.cache
def _warm(system):
    """A first call loads and compiles: no part of a run's seconds."""
    rng = np.random.default_rng(0)
    pair = synthetic_pair(200, rng=rng)
    attempted(functools.partial(system.run, pair, epsilon=10.0, delta=DELTA, rng=rng))


def shares_of(rows: pd.DataFrame, by: Any = ("system", "kind", "n", "epsilon")) -> pd.DataFrame:
    """Shares of right directions.

    Parameters
    ----------
    rows : DataFrame
        Of runs, as ``make pairs`` keeps them. A run that was refused counts as one without an
        answer.
    by : sequence of str
        What makes a cell.

    Returns
    -------
    DataFrame
        A row for each cell: `right`; its standard error, with two answers of each kind added, since
        a few equal ones do not say that it is never otherwise; `silent`, the share without an
        answer; mean `seconds`; `runs`.

    Examples
    --------
    >>> rows = pd.DataFrame({"system": "s", "right": [1, 1, 0.5, 1], "seconds": 0.1})
    >>> shares_of(rows, ["system"]).round(3)
      system  right  error  silent  seconds  runs
    0      s  0.875  0.164    0.25      0.1     4
    """
    rows = rows.assign(right=rows.right.fillna(0.5))
    rows = rows.assign(silent=rows.right == 0.5)
    of = rows.groupby(list(by), sort=False)
    cells = of[["right", "silent", "seconds"]].mean()
    cells["runs"] = of.size()
    near = (cells.right * cells.runs + 2) / (cells.runs + 4)
    cells["error"] = np.sqrt(near * (1 - near) / (cells.runs + 4))
    return cells.reset_index()[[*by, "right", "error", "silent", "seconds", "runs"]]
