"""Balls: the cells of a product domain by their distance from one of them, counted and drawn."""

import math
from itertools import combinations_with_replacement, groupby, product

import numpy as np

from dpcgd.local.channels import Levels, shape_of
from dpcgd.local.draws import Draws

__all__ = ["BLOCK", "balls_of", "in_blocks"]

MOST_KINDS = 200_000
"""Largest number of kinds of inputs, up to symmetry, that an exact privacy level looks at."""


BLOCK = 256
"""So many inputs are tuned at once; their counts of cells take tens of megabytes."""


def in_blocks(rows: np.ndarray) -> list[np.ndarray]:
    """The rows, at most 256 at a time."""
    return np.array_split(rows, range(BLOCK, len(rows), BLOCK))


def balls_of(levels: Levels, norm: float) -> "_Sums | _Largest":
    """The balls of a domain for norm 1, 2 or infinity."""
    norm = norm if isinstance(levels, tuple) else 1  # on one variable all norms are the same
    return _Largest(levels) if norm == math.inf else _Sums(levels, norm)


class _Balls:
    """Cells by their distance from an input, counted and drawn without listing them.

    Inputs come in canonical form: variables sorted by their levels, each reflected into the lower
    half of its levels, equal variables in rising order.
    """

    def __init__(self, levels):
        self.given = np.array(shape_of(levels))
        self.levels = np.sort(self.given)

    def canonical(self, codes):
        """(places, order of the variables, which were reflected) of each record."""
        mirrored = 2 * codes > self.given - 1
        places = np.where(mirrored, self.given - 1 - codes, codes)
        order = np.argsort(self.given * (self.levels[-1] + 1) + places, axis=1, kind="stable")
        return np.take_along_axis(places, order, axis=1), order, mirrored

    def kinds(self) -> list[np.ndarray]:
        """All canonical inputs, a block at a time."""
        groups = [(k, len(list(same))) for k, same in groupby(self.levels.tolist())]
        if math.prod(math.comb(-(-k // 2) + m - 1, m) for k, m in groups) > MOST_KINDS:
            raise ValueError(f"more than {MOST_KINDS:,} kinds of inputs; use fewer bins")
        ways = (combinations_with_replacement(range(-(-k // 2)), m) for k, m in groups)
        return in_blocks(np.array([sum(parts, ()) for parts in product(*ways)]))

    def _within(self, rows, v) -> np.ndarray:
        """How many levels of variable v lie at each distance from its place."""
        steps = np.arange(self.levels[-1])
        below = steps <= rows[:, v, None]
        above = steps < self.levels[v] - rows[:, v, None]
        return np.where(steps > 0, below.astype(float) + above, 1.0)


class _Sums(_Balls):
    """Distances whose powers add up over the variables: norms 1 and 2."""

    def __init__(self, levels, norm):
        super().__init__(levels)
        self.norm = norm
        self.most = int(((self.levels - 1) ** norm).sum())
        self.distances = np.arange(self.most + 1) ** (1 / norm)

    def radius(self, rows) -> np.ndarray:
        """Distance of the farthest cell."""
        return ((self.levels - 1 - rows) ** float(self.norm)).sum(axis=1) ** (1 / self.norm)

    def counts(self, rows) -> list[np.ndarray]:
        """Cells at each summed power, over all variables from the v-th on, for every v."""
        counts = [np.eye(1, self.most + 1).repeat(len(rows), axis=0)]
        for v in reversed(range(len(self.levels))):
            reached = np.flatnonzero(counts[0].any(axis=0))
            before = counts[0][:, reached]
            counts.insert(0, np.zeros_like(counts[0]))
            for step, ways in enumerate(self._within(rows, v).T[: self.levels[v]]):
                counts[0][:, reached + step**self.norm] += ways[:, None] * before
        return counts

    def draw(self, rows, counts, row, total, draws: Draws) -> np.ndarray:
        """A uniform cell at the given total for each record, one variable after the other."""
        cells, left = np.empty((len(row), len(self.levels)), np.int64), total
        for v, k in enumerate(self.levels):
            rest = left[:, None] - np.abs(np.arange(k) - rows[row, v, None]) ** self.norm
            ways = counts[v + 1][row[:, None], np.maximum(rest, 0)]
            cells[:, v] = draws.each(np.where(rest >= 0, ways, 0.0))
            left = np.take_along_axis(rest, cells[:, v, None], axis=1)[:, 0]
        return cells


class _Largest(_Balls):
    """The largest distance over the variables: norm infinity."""

    def __init__(self, levels):
        super().__init__(levels)
        self.distances = np.arange(int(self.levels[-1])).astype(float)

    def radius(self, rows) -> np.ndarray:
        """Distance of the farthest cell."""
        return (self.levels - 1 - rows).max(axis=1).astype(float)

    def counts(self, rows) -> list[np.ndarray]:
        """Cells at each distance; then, for each variable, its levels within each distance."""
        inside = [self._within(rows, v).cumsum(axis=1) for v in range(len(self.levels))]
        return [np.diff(np.prod(inside, axis=0), prepend=0.0), *inside]

    def draw(self, rows, counts, row, total, draws: Draws) -> np.ndarray:
        """A uniform cell at the given distance: first which variable is the first that far."""
        within = np.array([inside[row, total] for inside in counts[1:]])
        nearer = np.array([inside[row, total - 1] for inside in counts[1:]]) * (total > 0)
        before = np.cumprod(np.vstack([np.ones(len(row)), nearer[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones(len(row)), within[:0:-1]]), axis=0)[::-1]
        first = draws.each((before * (within - nearer) * after).T)
        cells = np.empty((len(row), len(self.levels)), np.int64)
        for v, k in enumerate(self.levels):
            place, most = rows[row, v], total - (v < first)
            gap = np.abs(np.arange(k) - place[:, None])
            allowed = np.where((first == v)[:, None], gap == total[:, None], gap <= most[:, None])
            cells[:, v] = draws.each(allowed.astype(float))
        return cells
