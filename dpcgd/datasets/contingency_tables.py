"""Contingency tables, fast: the hot path of every search."""

import math
from collections.abc import Sequence

import numpy as np

from dpcgd.datasets._popcount import count_cells
from dpcgd.datasets.dataset import Dataset

__all__ = ["Tables"]

MOST_KEPT_CELLS = 1 << 18
"""Counts kept for tables that are asked for again: by other tests of the same variables."""


class Tables:
    """Exact contingency counts over the records of a data set.

    Codes are kept as bit columns, 64 records a word: a cell is the population count of an
    intersection of columns. Where the whole public domain has so few cells that their weights take
    no more memory than the codes, records are first collapsed to cells with weights, whose bits
    are columns too; a table then no longer costs more when n grows. Counts are kept, for tests of
    the same variables share them. Memory beyond the data set itself is at most that of its codes,
    one bit a record and two megabytes of kept counts.

    Parameters
    ----------
    data : Dataset

    Examples
    --------
    >>> data = Dataset([[0, 1], [1, 1], [1, 1]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
    >>> Tables(data).counts([0, 1])
    array([[0, 1, 0],
           [0, 2, 0]])
    """

    def __init__(self, data: Dataset):
        levels = data.cardinalities
        collapses = math.prod(levels) * 8 <= data.codes.nbytes
        if collapses:
            rows, weights = _collapsed(data.codes, levels)
        else:
            rows, weights = data.codes, np.broadcast_to(np.uint8(1), data.n)
        width = np.array([int(k - 1).bit_length() for k in levels])
        self.n = data.n
        self.levels = levels
        self._width = width
        self._first = np.cumsum(width) - width
        self._bits = _pack_columns(rows, width)
        self._weights = weights
        self._planes = _pack_weights(weights)
        self.forget()

    def forget(self):
        """Let go of all kept counts."""
        self._known, self._cells = {}, 0

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables.

        Parameters
        ----------
        variables : sequence of int
            Column numbers, none twice.

        Returns
        -------
        integer array
            One axis for each variable, in the order given, as long as its public levels. Read-only.
        """
        at = sorted(variables, key=lambda v: (self.levels[v], v))  # few levels first is faster
        table = self._known.get(tuple(at))
        if table is None:
            table = self._count(at)
        return table.transpose([at.index(v) for v in variables])

    def _count(self, at) -> np.ndarray:
        shape = self.shape(at)
        flat = count_cells(
            self._bits, self._planes, self._first[at], self._width[at], np.array(shape, np.int64)
        )
        if self._cells + len(flat) > MOST_KEPT_CELLS:
            self.forget()
        table = self._known[tuple(at)] = flat.reshape(shape)
        table.flags.writeable = False
        self._cells += len(flat)
        return table

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        """Public levels of these variables: the shape of their table."""
        return tuple(self.levels[v] for v in variables)

    def subsample(self, chosen: np.ndarray) -> "Tables":
        """Tables over some of the records only; no record is copied.

        Parameters
        ----------
        chosen : integer array, shape (m,)
            Distinct record numbers, 0 to n - 1. Numbers stand for records in some fixed order, not
            that of the file, so choose them uniformly at random.
        """
        smaller = object.__new__(Tables)
        smaller.__dict__.update(self.__dict__)
        taken = np.zeros(self.n, bool)
        taken[chosen] = True
        before = np.concatenate(([0], np.cumsum(taken)))
        weights = np.diff(before[np.concatenate(([0], np.cumsum(self._weights, dtype=np.int64)))])
        smaller.n = len(chosen)
        smaller.forget()
        smaller._weights = _shrunk(weights)
        smaller._planes = _pack_weights(smaller._weights)
        return smaller


def _collapsed(codes, levels, chunk=1 << 16):
    """The distinct rows and how often each occurs, through the index of each record's cell."""
    cells = np.zeros(math.prod(levels), np.int64)
    for start in range(0, len(codes), chunk):
        index = np.zeros(len(codes[start : start + chunk]), np.int64)
        for column, k in zip(codes[start : start + chunk].T, levels, strict=True):
            index = index * k + column
        cells += np.bincount(index, minlength=len(cells))
    present = np.flatnonzero(cells)
    rows, rest = np.empty((len(present), len(levels)), codes.dtype, order="F"), present
    for v in reversed(range(len(levels))):
        rest, rows[:, v] = np.divmod(rest, levels[v])
    return rows, _shrunk(cells[present])


def _shrunk(weights) -> np.ndarray:
    return weights.astype(np.min_scalar_type(weights.max()))


def _pack(bits) -> np.ndarray:
    packed = np.packbits(bits)
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def _pack_columns(rows, width) -> np.ndarray:
    words = -(-len(rows) // 64)
    columns = np.empty((int(width.sum()), words), np.uint64)
    numbered = ((v, bit) for v in range(len(width)) for bit in range(width[v]))
    for i, (v, bit) in enumerate(numbered):
        columns[i] = _pack((rows[:, v] >> bit) & 1)
    return columns


def _pack_weights(weights) -> np.ndarray:
    planes = max(1, int(weights.max()).bit_length())
    return np.array([_pack((weights >> bit) & 1) for bit in range(planes)])
