"""Records as bit columns, 64 records a word: packed batch after batch, counted block by block."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dpcgd.datasets._packing import pack_bytes
from dpcgd.datasets._popcount import count_cells

__all__ = ["BitColumns", "Batch", "pack", "packed_bytes"]

Batch = Sequence[np.ndarray]
"""Codes of some records, one array a variable."""

BLOCK = 4096
"""Words that are counted at a time when many tables are: some of every column fit a cache."""

CHANGED = "there are other records than at first; let nobody write while they are read, read again"


class BitColumns:
    """Rows of codes with weights, as columns of bits.

    Parameters
    ----------
    levels : tuple of int
        Public levels of each variable.
    bits : array of uint64, shape (sum of widths, words)
        Row by row the bits of each variable's codes, lowest first.
    weights : integer array, shape (rows,)
        How many records each row stands for.

    Attributes
    ----------
    n : int
        Records.
    """

    def __init__(self, levels: tuple[int, ...], bits: np.ndarray, weights: np.ndarray):
        self.levels, self.weights = levels, weights
        self.n = int(weights.sum(dtype=np.int64))
        self._width = widths(levels)
        self._first = np.cumsum(self._width) - self._width
        self._bits, self._planes = bits, _weight_planes(weights)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order."""
        return self._counted(variables, self._bits, self._planes)

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables in one pass over the bits."""
        questions = [list(variables) for variables in questions]
        tables = [np.zeros([self.levels[v] for v in asked], np.int64) for asked in questions]
        for start in range(0, self._bits.shape[1], BLOCK):
            block = np.s_[:, start : start + BLOCK]
            parts = [np.ascontiguousarray(rows[block]) for rows in (self._bits, self._planes)]
            for asked, table in zip(questions, tables, strict=True):
                table += self._counted(asked, *parts)
        return tables

    def _counted(self, variables, bits, planes) -> np.ndarray:
        at = list(variables)
        shape = tuple(self.levels[v] for v in at)
        sizes = np.array(shape, np.int64)
        return count_cells(bits, planes, self._first[at], self._width[at], sizes).reshape(shape)

    def subsample(self, chosen: np.ndarray) -> "BitColumns":
        """The same rows with weights of some of the records; no record is copied.

        Parameters
        ----------
        chosen : integer array, shape (m,)
            Distinct record numbers, 0 to n - 1, in some fixed order that is not that of the file.
        """
        taken = np.zeros(self.n, bool)
        taken[chosen] = True
        before = np.concatenate(([0], np.cumsum(taken)))
        weights = np.diff(before[np.concatenate(([0], np.cumsum(self.weights, dtype=np.int64)))])
        return BitColumns(self.levels, self._bits, _shrunk(weights))


def widths(levels: Sequence[int]) -> np.ndarray:
    """Bits of each variable's codes."""
    return np.array([int(k - 1).bit_length() for k in levels])


def packed_bytes(levels: Sequence[int], n: int) -> int:
    """Bytes that the bits of n records take."""
    return int(widths(levels).sum()) * _words(n) * 8


def pack(
    batches: Iterable[Batch],
    levels: tuple[int, ...],
    n: int,
    *,
    most_bytes: int,
    allocate: Callable[..., np.ndarray] = np.zeros,
) -> BitColumns:
    """Pack records batch after batch; each batch may be let go when the next one is asked for.

    Parameters
    ----------
    batches : iterable of Batch
        With n records in all.
    levels : tuple of int
    n : int
    most_bytes : int
        Records are collapsed to cells with weights where the counts of all cells of the public
        domain take no more than this.
    allocate : callable
        From a shape and a type to an array of zeros for the bits.

    Raises
    ------
    ValueError
        If there are not n records.
    """
    weights = np.broadcast_to(np.uint8(1), n)
    if math.prod(levels) * 8 <= most_bytes:
        rows, weights = _collapsed(batches, levels)
        if weights.sum(dtype=np.int64) != n:
            raise ValueError(CHANGED)
        batches, allocate = [rows], np.zeros
    width = widths(levels)
    bits = allocate((int(width.sum()), _words(len(weights))), np.uint64)
    columns, start = np.split(bits, np.cumsum(width)[:-1]), 0
    for batch in batches:
        if start + len(batch[0]) > len(weights):
            raise ValueError(CHANGED)
        for codes, column in zip(batch, columns, strict=True):
            _pack_codes(codes, start, column)
        start += len(batch[0])
    if start < len(weights):
        raise ValueError(CHANGED)
    return BitColumns(levels, bits, weights)


def _pack_codes(codes, start, columns):
    """Write bit j of every code to row j of `columns`, from bit `start` of the row on."""
    for plane in range(0, len(columns), 8):
        padded = np.zeros(64 * _words(len(codes)), np.uint8)
        padded[: len(codes)] = codes if plane == 0 else codes >> plane  # the lowest byte of each
        eights = padded.view("<u8").astype(np.uint64, copy=False)
        pack_bytes(eights, start, columns[plane : plane + 8])


def _words(n) -> int:
    return -(-n // 64)


def _collapsed(batches, levels, chunk=1 << 16):
    """The distinct rows and how often each occurs, through the index of each record's cell."""
    cells = np.zeros(math.prod(levels), np.int64)
    for batch in batches:
        for start in range(0, len(batch[0]), chunk):
            index = np.zeros(len(batch[0][start : start + chunk]), np.int64)
            for column, k in zip(batch, levels, strict=True):
                index *= k
                index += column[start : start + chunk]
            cells += np.bincount(index, minlength=len(cells))
    present = np.flatnonzero(cells)
    rows, rest = [present] * len(levels), present
    for v in reversed(range(len(levels))):
        rest, rows[v] = np.divmod(rest, levels[v])
    return rows, _shrunk(cells[present])


def _shrunk(weights) -> np.ndarray:
    return weights.astype(np.min_scalar_type(weights.max()))


def _weight_planes(weights) -> np.ndarray:
    """Bit j of the rows' weights in row j; zero where a row is only padding."""
    planes = max(1, int(weights.max()).bit_length())
    return np.array([_packed((weights >> bit) & 1) for bit in range(planes)])


def _packed(bits) -> np.ndarray:
    packed = np.packbits(bits, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8)).view("<u8").astype(np.uint64)
