"""What the systems of one kind are checked on: made-up records, neighbours, and what to watch."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from dpcgd_book.data.cause_effect_pairs import synthetic_pair

from benchmarks.entries import Entry
from benchmarks.pair_cases import PairSystem
from dpcgd import Dataset, Release
from dpcgd.datasets.variable import PARTS
from dpcgd.pairwise.anm import PairRelease
from dpcgd.privacy.noise import SeededNoise

Couple = tuple[Any, Any]
"""Two neighbours; what differs is the first record."""


@dataclass(frozen=True)
class Probe:
    """How systems of one kind are checked.

    Parameters
    ----------
    release : type
        What a run has to return.
    n : int
        Records of a data set to replay on.
    records : tuple of callables
        Each from a generator, and from who is protected, as a mask of shape (n,), to a data set;
        all with the same public facts.
    replaced : callable
        From a data set, the number of a record and a generator to a neighbour.
    couples : callable
        From a generator to pairs of neighbours that differ in the first record, few enough records
        for one to matter.
    answer : callable
        From a release to the one number that an audit watches.
    protects : str
        As a release says it: "everyone", or "test set".
    """

    release: type[Any]
    n: int
    records: tuple[Callable[[np.random.Generator, np.ndarray], Any], ...]
    replaced: Callable[[Any, int, np.random.Generator], Any]
    couples: Callable[[np.random.Generator], list[Couple]]
    answer: Callable[[Any], float]
    protects: str = "everyone"

    def protected(self, n: int, seed: int) -> np.ndarray:
        """Whose records may differ between neighbours, in a run from this seed, as a mask.

        Of a test set those that the run's noise draws first, as
        :func:`~dpcgd.pairwise.anm.private_anm` does: without a look at the data, so that they are
        the same for every data set.
        """
        if self.protects != "test set":
            return np.ones(n, bool)
        first = SeededNoise(np.random.default_rng(seed)).choose(n, n - n // 2)
        return np.isin(np.arange(n), first)


def probe_of(system: Entry) -> Probe:
    """The probe of a system: that of graphs, or that of pairs with those whom it protects."""
    if not isinstance(system, PairSystem):
        return OF_GRAPHS
    return replace(OF_PAIRS, protects=system.protects.replace("test half", "test set"))


# --- graphs -----------------------------------------------------------------------------------

LEVELS = {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"], "d": ["0", "1", "2"]}


def _chain(rng, who, like=0.6) -> Dataset:
    """Variables each like the one before it, with this chance, or drawn anew."""
    sizes = [len(of) for of in LEVELS.values()]
    codes = rng.integers(0, sizes, size=(len(who), len(sizes)))
    for v in range(1, len(sizes)):
        same = rng.random(len(who)) < like
        codes[same, v] = codes[same, v - 1] % sizes[v]
    return Dataset(codes, LEVELS)


def _recoded(data, who, rng) -> Dataset:
    codes = data.codes.copy()
    codes[who] = rng.integers(0, data.cardinalities)
    return Dataset(codes, data.levels)


def _two_variables(agree) -> Couple:
    """Sixty records of which so many agree, and the same with one more that does not."""
    codes = np.repeat([[0, 0], [1, 1]], 30, axis=0)
    codes[agree:, 1] = 0
    other = codes.copy()
    other[0, 1] = 1
    levels = {name: ["0", "1"] for name in "ab"}
    return Dataset(codes, levels), Dataset(other, levels)


OF_GRAPHS = Probe(
    release=Release,
    n=3000,
    records=(_chain, partial(_chain, like=0.0)),
    replaced=_recoded,
    couples=lambda rng: [_two_variables(agree) for agree in range(30, 60, 3)],
    answer=lambda release: bool(release.graph.skeleton),
)


# --- pairs ------------------------------------------------------------------------------------

RANGES = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}
FEW = 6, 16, 40


def _numbers(values) -> Dataset:
    return Dataset.of_numbers(values, RANGES)


def _model(rng, who) -> Dataset:
    """An additive noise model."""
    return _numbers(synthetic_pair(len(who), rng=rng).scaled)


def _close(rng, who) -> Dataset:
    """Equal columns, a part of the range apart: no regression sees it, and residuals rise."""
    places = rng.permutation(len(who)) - len(who) // 2
    return _numbers(np.repeat(2 * places[:, None] / PARTS, 2, axis=1))


def _corners(rng, who) -> Dataset:
    """Four crowds, one in each corner of the ranges."""
    return _numbers(np.sign(rng.uniform(-1, 1, (len(who), 2))))


def _few_inputs(rng, who) -> Dataset:
    """Three inputs, next to no effect: who fits the regression moves many residuals."""
    inputs = rng.integers(-1, 2, len(who))
    return _numbers(np.column_stack([inputs, rng.uniform(-1e-3, 1e-3, len(who))]))


def _two_crowds(rng, who) -> Dataset:
    """In two corners, a quarter in one; whoever is not protected is in between, where all is 0."""
    crowd = np.where(rng.random(len(who)) < 0.25, -1.0, 1.0) * who
    return _numbers(np.column_stack([crowd, crowd]))


KINDS = (_model, _close, _corners, _few_inputs, _two_crowds)


def _moved(data, who, rng) -> Dataset:
    """One record elsewhere, mostly in a corner of the ranges."""
    values, to = data.scaled, rng.uniform(-1, 1, 2)
    values[who] = np.sign(to) if rng.integers(3) else to
    return _numbers(values)


def _turned(data) -> Couple:
    """The first record in a corner where the columns have opposite signs."""
    values = data.scaled
    values[0] = np.sign(values[0, 0]) * np.array([1, -1])
    return data, _numbers(values)


OF_PAIRS = Probe(
    release=PairRelease,
    n=300,
    records=KINDS,
    replaced=_moved,
    couples=lambda rng: [_turned(make(rng, np.ones(n, bool))) for n in FEW for make in KINDS],
    answer=lambda release: next(iter(release.scores.values())) or 0.0,  # 0 without an answer
)
