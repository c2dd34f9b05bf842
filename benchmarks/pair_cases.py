"""Systems for cause or effect in the benchmark: how one case is run and scored."""

import functools
import math
import zlib
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from dpcgd_book.data.cause_effect_pairs import load_pair, pair_weights, steep_pair, synthetic_pair

from benchmarks.entries import DELTA, Entry, attempted, code_of, entries_in
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.anm import PairRelease

KINDS = ("sine", "steep", "real")
"""Kinds of pairs.

The first two are y = f(x) + e, with a sine of about two periods, and with a cube root and little
noise, where the inverse of f is the smoother regression.
"""

PROTECTS = ("everyone", "test half", "nobody")


@dataclass(frozen=True)
class PairSystem(Entry):
    """One that takes part, as a file in ``benchmarks/pair_systems`` names it.

    `run` returns a :class:`~dpcgd.pairwise.anm.PairRelease`, a direction (cause, effect), or None
    for no answer. `protects` is "everyone"; "test half", which leaves out those who fitted the
    regression; or "nobody".
    """

    protects: str = "everyone"

    def __post_init__(self):
        super().__post_init__()
        if self.protects not in PROTECTS:
            raise ValueError(f"{self.name}: it protects one of {', '.join(PROTECTS)}")


pair_systems = functools.partial(entries_in, "pair_systems")


def pair_of(kind: str, n: int, run: int, seed: int) -> Dataset:
    """The records of a run, the same ones for every system and epsilon; x is the cause.

    A real pair is drawn by its official weight among those with at least n records, so that a mean
    over runs is a weighted mean over pairs; then n of its records. Columns are in random order.
    """
    rng = np.random.default_rng([seed, run, n, zlib.crc32(kind.encode())])
    if kind == "sine":
        return synthetic_pair(n, rng=rng)
    if kind == "steep":
        return steep_pair(n, rng=rng)
    numbers, weights = _with_records(n)
    pair = load_pair(int(rng.choice(numbers, p=weights)), rng=rng)
    return replace(pair, codes=pair.codes[rng.choice(pair.n, n, replace=False)])


@functools.cache
def _with_records(n):
    weights = {k: w for k, w in pair_weights().items() if _size_of(k) >= n}
    return list(weights), np.array(list(weights.values())) / math.fsum(weights.values())


@functools.cache
def _size_of(number):
    return load_pair(number).n


def run_pair(system: str, kind: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """One row of the table of pairs: as of :func:`on_pair`, with a digest of the code."""
    rng = noise_of(system, kind, n, epsilon, run, seed)
    row = on_pair(pair_systems()[system], _records(kind, n, run, seed), epsilon, rng)
    return row | {"code": code_of("pair_systems", system)}


_records = functools.lru_cache(maxsize=1)(pair_of)


def noise_of(system: str, kind: str, n: int, epsilon: float, run: int, seed: int):
    """The noise of a case, independent of that of any other case."""
    case = f"{system} {kind} {n} {epsilon:g}".encode()
    return np.random.default_rng([seed, run, zlib.crc32(case)])


def on_pair(system: PairSystem, pair: Dataset, epsilon: float, rng) -> dict:
    """What a system says of a pair whose cause is x.

    `right` is 1, 0, or 0.5 for no answer, as if by a coin. `margin` is of the released scores,
    positive if right. Beside them stand `read`, the epsilon of the ledger; `seconds` of processor
    time; and `why_not`, if public facts refused the run.
    """
    _warm(system)
    delta = min(DELTA, 0.1 / pair.n)
    answer, outcome = attempted(system.run, pair, epsilon=epsilon, delta=delta, rng=rng)
    margin = spent = right = None
    if isinstance(answer, PairRelease):
        spent, scores = answer.ledger.spent.epsilon, answer.scores
        if None not in scores.values():
            margin = scores["y", "x"] - scores["x", "y"]
        answer = answer.direction
    if not outcome["why_not"]:
        right = {("x", "y"): 1.0, ("y", "x"): 0.0, None: 0.5}[answer]
    return {"right": right, "margin": margin, "read": spent} | outcome


@functools.cache
def _warm(system):
    """A first call loads and compiles: no part of a run's seconds."""
    rng = np.random.default_rng(0)
    attempted(system.run, synthetic_pair(200, rng=rng), epsilon=10.0, delta=DELTA, rng=rng)


def shares_of(rows: pd.DataFrame, by=("system", "kind", "n", "epsilon")) -> pd.DataFrame:
    """Shares of right directions: a row for each cell of these columns.

    A run that was refused counts as one without an answer. Beside `right` stand its standard error,
    with two answers of each kind added, since a few equal ones do not say that it is never
    otherwise; `silent`, the share without an answer; mean `seconds`; and `runs`.
    """
    rows = rows.assign(right=rows.right.fillna(0.5))
    rows = rows.assign(silent=rows.right == 0.5)
    groups = rows.groupby(list(by), sort=False)
    cells = groups[["right", "silent", "seconds"]].mean()
    cells["runs"] = groups.size()
    near = (cells.right * cells.runs + 2) / (cells.runs + 4)
    cells["error"] = np.sqrt(near * (1 - near) / (cells.runs + 4))
    return cells.reset_index()[[*by, "right", "error", "silent", "seconds", "runs"]]
