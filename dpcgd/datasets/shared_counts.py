"""Counts of subsets of variables, which many tables share: kept between tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from threading import RLock
from typing import NamedTuple

import numpy as np

from dpcgd.datasets._popcount import SPREAD, fill_tables, find_subsets

__all__ = ["Counted", "SharedCounts", "in_batches", "tables_in_turn"]

MOST_COUNTS = 1 << 21
MOST_SUBSETS = 1 << 19
"""So many are kept, at eight bytes a count and about thirty a subset; then all are let go."""

MOST_AT_ONCE = 1 << 17
"""So many subsets of tables are worked out at once."""

FIRST = 64
"""So much room there is at first: small data sets need little."""


Count = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
"""A function that adds the counts of subsets to an array."""


class Counted(NamedTuple):
    """Many tables, in C order one after the other.

    Attributes
    ----------
    counts : integer array
    starts : integer array
        Where each table begins, and where the last one ends.
    levels : integer array
        Its axes: a row for each table.
    """

    counts: np.ndarray
    starts: np.ndarray
    levels: np.ndarray

    def tables(self) -> Iterator[np.ndarray]:
        """One after the other."""
        for (start, end), shape in zip(pairwise(self.starts.tolist()), self.levels, strict=True):
            yield self.counts[start:end].reshape(shape)


def in_batches(asked: np.ndarray) -> Iterator[np.ndarray]:
    """Split questions, a row each, so that what is worked out for some at once stays small."""
    many = max(1, MOST_AT_ONCE >> asked.shape[1])
    for start in range(0, len(asked), many):
        yield asked[start : start + many]


def tables_in_turn(
    count_all: Callable[[np.ndarray], Counted], questions: Iterable[Sequence[int]]
) -> list[np.ndarray]:
    """Tables of any numbers of variables: the largest first, for smaller ones are parts of them."""
    questions = [tuple(asked) for asked in questions]
    found: dict[int, np.ndarray] = {}
    for size in sorted({len(asked) for asked in questions}, reverse=True):
        numbers = [i for i, asked in enumerate(questions) if len(asked) == size]
        asked = np.array([questions[i] for i in numbers], np.int64)
        tables = (table for few in in_batches(asked) for table in count_all(few).tables())
        found |= zip(numbers, tables, strict=True)
    return [found[i] for i in range(len(questions))]


class SharedCounts:
    """What tables are made of, found again by the subset of variables.

    Threads wait for each other. What is pickled remembers nothing.

    Parameters
    ----------
    levels : sequence of int
        Public levels of each variable.
    n : int
        Records.
    """

    def __init__(self, levels: Sequence[int], n: int):
        self.levels, self.n = np.array(levels, np.int64), n
        self._order = np.argsort(self.levels, kind="stable")  # those with few levels first
        self._lock = RLock()
        self.forget()

    def __reduce__(self):
        return SharedCounts, (self.levels, self.n)

    def forget(self):
        """Let go of all counts."""
        with self._lock:
            self._known = 1  # the empty subset
            self._ends, self._counts = np.array([0, 1]), np.array([self.n])
            self._keys, self._places = np.zeros(1, np.int64), np.zeros(1, np.int32)

    def tables(self, asked: np.ndarray, count: Count) -> Counted:
        """Tables of equally many variables each.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            None twice in a row.
        count : callable
            From subsets (a row each, then -1), where those begin that have all but their last
            variable in common, where the counts of each begin, and an array of zeros there, to
            which it adds them.
        """
        with self._lock:
            try:
                return self._tables(asked, count)
            except BaseException:
                self.forget()  # some subsets may be listed that nobody has counted
                raise

    def _tables(self, asked, count) -> Counted:
        levels = self.levels[asked]
        strides = np.ones_like(levels)
        strides[:, :-1] = np.cumprod(levels[:, :0:-1], axis=1)[:, ::-1]
        starts = np.zeros(len(asked) + 1, np.int64)
        np.cumsum(levels.prod(axis=1), out=starts[1:])
        self._make_room(len(asked) << asked.shape[1], starts[-1])
        axes = np.argsort(self._order.argsort()[asked], axis=1)
        ordered, shapes, strides = (
            np.take_along_axis(kind, axes, axis=1) for kind in (asked, levels, strides)
        )
        numbers = self._numbered(ordered, count)
        flat, cells = np.empty(starts[-1], np.int64), np.empty(np.diff(starts).max(initial=1), int)
        begins = np.empty(numbers.shape[1] + 1, np.int64)
        fill_tables(shapes, strides, numbers, self._ends, self._counts, starts, begins, cells, flat)
        return Counted(flat, starts, levels)

    def _numbered(self, ordered, count) -> np.ndarray:
        """Numbers of the subsets of each table's variables; those that are new are counted."""
        tables, depth = ordered.shape
        numbers = np.zeros((tables, 1 << depth), np.int32)
        origins, known = np.empty(numbers.size, np.int64), self._known
        self._known = find_subsets(
            ordered, self.levels, self._keys, self._places, self._ends, numbers, origins, known
        )
        sizes = np.diff(self._ends[known : self._known + 1])
        if len(new := np.flatnonzero(sizes)):
            new = new[np.argsort(self._keys[known + new], kind="stable")]
            table, subset = np.divmod(origins[new], 1 << depth)
            has = (subset[:, None] >> np.arange(depth) & 1).astype(bool)
            first = np.argsort(~has, axis=1, kind="stable")
            variables = np.take_along_axis(np.where(has, ordered[table], -1), first, axis=1)
            prefix = self._keys[known + new] // len(self.levels)
            groups = np.append(np.flatnonzero(np.diff(prefix, prepend=-1)), len(new))
            count(variables, groups, self._ends[known + new], self._counts)
        return numbers

    def _make_room(self, subsets, cells):
        if self._is_full(subsets, cells):
            self.forget()
        most = self._known + subsets
        if most >= len(self._keys):
            size = 2 * most + FIRST
            self._ends, self._keys = _longer(self._ends, size + 1), _longer(self._keys, size)
            self._places = _places_of(self._keys[: self._known], 2 << size.bit_length())
        if (most := int(self._ends[self._known]) + cells) > len(self._counts):
            self._counts = _longer(self._counts, 2 * most + FIRST)

    def _is_full(self, subsets, cells) -> bool:
        return self._known + subsets > MOST_SUBSETS or self._ends[self._known] + cells > MOST_COUNTS


def _places_of(keys, size) -> np.ndarray:
    """A hash table with the numbers of these keys, the first of which has none."""
    places, left = np.zeros(size, np.int32), np.arange(1, len(keys))
    place = keys[1:] * SPREAD >> 8 & (size - 1)
    while len(left):
        free = places[place] == 0
        places[place[free]] = left[free]
        lost = places[place] != left
        left, place = left[lost], (place[lost] + 1) & (size - 1)
    return places


def _longer(array, size) -> np.ndarray:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
