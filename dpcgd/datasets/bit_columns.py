"""Records as bit columns, 64 records a word: packed batch after batch, counted block by block."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from dpcgd.datasets._popcount import count_subsets
from dpcgd.datasets.clipped_sums import BATCH, Rows, clipped_sums
from dpcgd.datasets.counts import Counts, cell_numbers
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.shared_counts import Counted, SharedCounts, tables_in_turn

__all__ = ["CHANGED", "BitColumns", "PackedRecords", "pack", "packed_bytes", "zeros"]

Batch = Sequence[np.ndarray]
"""A batch holds the codes of some records, one array a variable."""

CHUNK = 1 << 16
"""There is room for this many rows beside the bits."""

MOST_CELLS = 1 << 14
"""A table with more cells is counted by a look at every record, which is faster then."""

LINE = 8
"""Words of a line of the processor's cache: columns fill whole lines, which are read at once."""

CHANGED = "there are other records than at first; let nobody write while they are read, read again"
"""This is said where a file does not hold what it held before."""


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
        width = widths(levels)
        self._first = np.cumsum(width) - width
        self._bits, self._planes = bits, _weight_planes(weights)
        self._shared = SharedCounts(levels, self.n)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order."""
        counted = self.count_all(np.array([variables], np.int64))
        return counted.counts.reshape(tuple(self.levels[v] for v in variables))

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables in one pass over the bits."""
        return tables_in_turn(self.count_all, questions)

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count the cells of many tables of equally many variables in one pass over the bits.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            None twice in a row.
        """
        if max(self.levels) ** asked.shape[1] > MOST_CELLS:
            cells = np.prod(self._shared.levels[asked], axis=1)
            if cells.max(initial=0) > MOST_CELLS:
                return self._with_wide_ones(asked, cells)
        return self._shared.tables(asked, self._count)

    def _with_wide_ones(self, asked, cells) -> Counted:
        """Where some tables have so many cells that their records are looked at instead."""
        few = cells <= MOST_CELLS
        by_bits = self._shared.tables(asked[few], self._count).tables()
        tables = [
            next(by_bits).ravel() if is_few else self._by_index(row)
            for row, is_few in zip(asked, few, strict=True)
        ]
        starts = np.cumsum([0, *cells.tolist()])
        return Counted(np.concatenate(tables), starts, self._shared.levels[asked])

    def _by_index(self, variables) -> np.ndarray:
        """The cells of one table, through the cell of every row."""
        sizes = [self.levels[v] for v in variables]
        cells = np.zeros(math.prod(sizes), np.int64)
        for first in range(0, len(self.weights), CHUNK):
            weights = self.weights[first : first + CHUNK].astype(np.int64)
            codes = [self._codes(v, first, len(weights)) for v in variables]
            np.add.at(cells, cell_numbers(codes, sizes, len(weights)), weights)
        return cells

    def clipped_sums(
        self, vectors: Sequence[np.ndarray], *, bound: float, n: int | None = None
    ) -> np.ndarray:
        """Sum over records of u u^T: :func:`~dpcgd.datasets.clipped_sums.clipped_sums`."""
        return clipped_sums(self._rows(), vectors, bound=bound, n=n or self.n)

    def _rows(self) -> Iterator[Rows]:
        for first in range(0, len(self.weights), BATCH):
            weights = self.weights[first : first + BATCH]
            yield [self._codes(v, first, len(weights)) for v in range(len(self.levels))], weights

    def _codes(self, v, first, rows) -> np.ndarray:
        """Of some rows, the first of which begins a word."""
        words = slice(first // 64, first // 64 + -(-rows // 64))
        codes = np.zeros(rows, np.int64)
        for j in range(int(self.levels[v] - 1).bit_length()):
            eights = self._bits[self._first[v] + j, words].astype("<u8").view(np.uint8)
            codes |= np.unpackbits(eights, count=rows, bitorder="little").astype(np.int64) << j
        return codes

    @cached_property
    def digest(self) -> bytes:
        """Some bytes that other records do not have."""
        digest = hashlib.blake2b(self._bits.data)
        digest.update(np.ascontiguousarray(self.weights, "<i8").data)
        return digest.digest()

    def forget(self):
        """Let go of all counts that are kept for other tables."""
        self._shared.forget()

    def _count(self, *subsets):
        words, levels = self._bits.shape[1], self._shared.levels
        count_subsets(self._bits, self._planes, self._first, levels, 0, words, *subsets)

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
    return int(widths(levels).sum()) * _whole_lines(n) * 8


def zeros(shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Zeros, words of eight bytes, that begin with a line of the processor's cache."""
    room: np.ndarray = np.zeros(shape[0] * shape[1] + LINE, dtype)
    first = -room.ctypes.data // 8 % LINE
    return room[first : first + shape[0] * shape[1]].reshape(shape)


def pack(
    batches: Iterable[Batch],
    levels: tuple[int, ...],
    n: int,
    *,
    most_bytes: int,
    allocate: Callable[..., np.ndarray] = zeros,
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
        batches, allocate = [rows], zeros
    width = widths(levels)
    bits = allocate((int(width.sum()), _whole_lines(len(weights))), np.uint64)
    columns, start = np.split(bits, np.cumsum(width)[:-1]), 0
    for batch in batches:
        end = start + len(batch[0])
        if end > len(weights):
            raise ValueError(CHANGED)
        for codes, column in zip(batch, columns, strict=True):
            _pack_codes(codes, start, column)
        start = end
    if start < len(weights):
        raise ValueError(CHANGED)
    return BitColumns(levels, bits, weights)


def _pack_codes(codes, start, columns):
    """Write bit j of every code to row j of `columns`, from bit `start` of the row on."""
    padded = np.zeros(-(-(start % 64 + len(codes)) // 64) * 64, codes.dtype)
    padded[start % 64 : start % 64 + len(codes)] = codes
    words = slice(start // 64, start // 64 + len(padded) // 64)
    for j, column in enumerate(columns):
        column[words] |= np.packbits((padded >> j & 1).astype(bool), bitorder="little").view("<u8")


def _whole_lines(n) -> int:
    """Words of whole lines of the cache for the bits of n rows."""
    return -(-n // (64 * LINE)) * LINE


def _collapsed(batches, levels):
    """The distinct rows and how often each occurs, through the index of each record's cell."""
    cells = np.zeros(math.prod(levels), np.int64)
    for batch in batches:
        for start in range(0, len(batch[0]), CHUNK):
            some = [column[start : start + CHUNK] for column in batch]
            numbers = cell_numbers(some, levels, len(some[0]))
            cells += np.bincount(numbers, minlength=len(cells))
    present = np.flatnonzero(cells)
    rows, rest = [present] * len(levels), present
    for v in reversed(range(len(levels))):
        rest, rows[v] = np.divmod(rest, levels[v])
    return rows, _shrunk(cells[present])


def _shrunk(weights) -> np.ndarray:
    return weights.astype(np.min_scalar_type(weights.max()))


def _weight_planes(weights) -> np.ndarray:
    """Bit j of the rows' weights in row j; zero where a row is only padding."""
    planes = zeros((max(1, int(weights.max()).bit_length()), _whole_lines(len(weights))), np.uint64)
    for start in range(0, len(weights), CHUNK):
        _pack_codes(weights[start : start + CHUNK], start, planes)
    return planes


class PackedRecords(Counts):
    """Counts of records of which only their bits are kept, in memory or in a temporary file.

    Parameters
    ----------
    columns : BitColumns
    schema : Schema
        Of its variables.
    name : str

    Attributes
    ----------
    columns, schema, name

    Examples
    --------
    >>> one, two = np.array([0, 1, 1]), np.array([1, 1, 2])
    >>> columns = pack([[one, two]], (2, 3), 3, most_bytes=0)
    >>> records = PackedRecords(columns, Schema({"a": ["0", "1"], "b": ["0", "1", "2"]}))
    >>> records
    PackedRecords('data', n=3, d=2)
    >>> records.counts([0, 1])
    array([[0, 1, 0],
           [0, 1, 1]])
    """

    def __init__(self, columns: BitColumns, schema: Schema, name: str = "data"):
        self.columns, self.schema, self.name = columns, schema, name
        self.levels, self.n = schema.levels, columns.n
        self.ordered, self.missing = schema.ordered, schema.missing

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables, axes in this order."""
        return self.columns.counts(variables)

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables, in one pass over the bits."""
        return self.columns.counts_many(questions)

    def clipped_sums(
        self, vectors: Sequence[np.ndarray], *, bound: float, n: int | None = None
    ) -> np.ndarray:
        """Sum over records of u u^T: :func:`~dpcgd.datasets.clipped_sums.clipped_sums`."""
        return self.columns.clipped_sums(vectors, bound=bound, n=n)

    def __repr__(self):
        return f"PackedRecords({self.name!r}, n={self.n:,}, d={self.d})"
