"""Counts of subsets of variables, which many tables share: kept between tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from threading import RLock
from typing import NamedTuple

import numpy as np

from dpcgd.datasets._popcount import cells_of, enter_all, fill_tables, find_subsets

__all__ = ["Counted", "SharedCounts", "in_batches", "tables_in_turn"]

MOST_COUNTS = 1 << 21
MOST_SUBSETS = 1 << 19
"""Kept, at eight bytes a count and about thirty a subset; then all of them are let go."""

MOST_AT_ONCE = 1 << 17
"""Subsets of the tables that are counted at once."""

FIRST = 64
"""Places at first, so that small data sets need little."""


Count = Callable[[np.ndarray, np.ndarray, np.ndarray], None]
"""Adds the counts of subsets to an array."""


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
        self._lock = RLock()
        self.forget()

    def __reduce__(self):
        return SharedCounts, (self.levels, self.n)

    def forget(self):
        """Let go of all counts."""
        with self._lock:
            self._known = 1  # the empty subset
            self._ends, self._counts = np.array([0, 1]), np.array([self.n])
            self._keys, self._numbers = np.full(1, -1), np.zeros(1, np.int32)

    def tables(self, asked: np.ndarray, count: Count) -> Counted:
        """Tables of equally many variables each.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            None twice in a row.
        count : callable
            From subsets (a row each, then -1), where the counts of each begin and end, and an array
            of zeros there, to which it adds them.
        """
        with self._lock:
            try:
                return self._tables(asked, count)
            except BaseException:
                self.forget()  # some subsets may be listed that nobody has counted
                raise

    def _tables(self, asked, count) -> Counted:
        self._make_room(len(asked) << asked.shape[1], cells_of(asked, self.levels))
        ordered, numbers, new = find_subsets(
            asked, self.levels, self._keys, self._numbers, self._ends, self._known
        )
        if len(new):
            ends = self._ends[self._known : self._known + len(new) + 1]
            count(new, ends, self._counts)
            self._known += len(new)
        flat, starts = fill_tables(asked, self.levels, ordered, numbers, self._ends, self._counts)
        return Counted(flat, starts, self.levels[asked])

    def _make_room(self, subsets, cells):
        if self._is_full(subsets, cells):
            self.forget()
        most = self._known + subsets
        if most >= len(self._ends):
            self._ends = _longer(self._ends, 2 * most + FIRST)
            keys, numbers = self._keys, self._numbers
            self._keys = np.full(1 << (2 * most + FIRST).bit_length(), -1)
            self._numbers = np.zeros(len(self._keys), np.int32)
            enter_all(keys, numbers, self._keys, self._numbers)
        if (most := int(self._ends[self._known]) + cells) > len(self._counts):
            self._counts = _longer(self._counts, 2 * most + FIRST)

    def _is_full(self, subsets, cells) -> bool:
        return self._known + subsets > MOST_SUBSETS or self._ends[self._known] + cells > MOST_COUNTS


def _longer(array, size) -> np.ndarray:
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
