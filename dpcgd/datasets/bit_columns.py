"""Records as bit columns, 64 records a word, packed batch by batch and counted block by block.

Tables are computed from counts of subsets of their variables. Many tables share these.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from threading import RLock

import numpy as np

from dpcgd.datasets._popcount import BLOCK, SPREAD, count_subsets, fill_tables, find_subsets
from dpcgd.datasets.counts import (
    BATCH,
    Counted,
    Counts,
    CountsTogether,
    Vectors,
    cell_numbers,
    clipped_sums,
)
from dpcgd.datasets.schema import Schema

__all__ = ["CHANGED", "BitColumns", "PackedRecords", "pack", "packed_bytes", "zeros"]

CHUNK = 1 << 16
"""Number of rows of working memory beside the bits."""

MOST_CELLS = 1 << 14
"""Tables with more cells are counted record by record, which is faster for them."""

MOST_COUNTS = 1 << 21
MOST_SUBSETS = 1 << 19
"""The most counts and subsets that are kept, at eight bytes a count and about thirty a subset."""

FIRST = 64
"""Initial room for counts; small data sets need little."""

LINE = 8
"""Words of a line of the processor's cache; columns fill whole lines."""

CHANGED = "there are other records than at first; let nobody write while they are read, read again"
"""The message if the content of a file has changed."""


class BitColumns(CountsTogether):
    """Rows of codes with weights, as columns of bits, with the counts of subsets of variables.

    Threads that count wait for each other. A pickled object holds no counts.

    Parameters
    ----------
    levels : tuple of int
        Public levels of each variable.
    bits : array of uint64, shape (sum of widths, words)
        The bits of each variable's codes, a row for each bit, the lowest first.
    weights : integer array, shape (rows,)
        Number of records that each row represents.

    Attributes
    ----------
    n : int
        Records.
    """

    def __init__(self, levels: tuple[int, ...], bits: np.ndarray, weights: np.ndarray):
        self.levels, self.weights = levels, weights
        self.n = int(weights.sum(dtype=np.int64))
        self._sizes = np.array(levels, np.int64)
        self._order = np.argsort(np.argsort(self._sizes, kind="stable"))  # few levels come first
        width = widths(levels)
        self._first = np.cumsum(width) - width
        self._bits, self._planes = bits, _weight_planes(weights)
        self._lock = RLock()
        self.forget()

    def __reduce__(self):
        return BitColumns, (self.levels, self._bits, self.weights)

    def forget(self):
        """Drop all kept counts."""
        with self._lock:
            self._known = 1  # the empty subset
            self._ends, self._counts = np.array([0, 1]), np.array([self.n])
            self._keys, self._places = np.zeros(1, np.int64), np.zeros(1, np.int32)

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count the cells of many tables of equally many variables in one pass over the bits."""
        is_small = self._sizes[asked].prod(axis=1) <= MOST_CELLS
        if is_small.all():
            return self._by_bits(asked)
        small = self._by_bits(asked[is_small]).tables()
        pairs = zip(asked, is_small, strict=True)
        tables = [next(small) if by_bits else self._by_index(row) for row, by_bits in pairs]
        return Counted.joined(tables, self._sizes[asked])

    def _by_index(self, variables) -> np.ndarray:
        """The counts of one table, from the cell of every row."""
        sizes = [self.levels[v] for v in variables]
        cells = np.zeros(math.prod(sizes), np.int64)
        for codes, weights in self._rows(variables, CHUNK):
            np.add.at(cells, cell_numbers(codes, sizes, len(weights)), weights.astype(np.int64))
        return cells

    def _by_bits(self, asked) -> Counted:
        with self._lock:
            try:
                return self._filled(asked)
            except BaseException:
                self.forget()  # some subsets may be listed that nobody has counted
                raise

    def _filled(self, asked) -> Counted:
        """Fill tables from the counts of the subsets of their variables."""
        levels = self._sizes[asked]
        strides = np.ones_like(levels)
        strides[:, :-1] = np.cumprod(levels[:, :0:-1], axis=1)[:, ::-1]
        starts = np.zeros(len(asked) + 1, np.int64)
        np.cumsum(levels.prod(axis=1), out=starts[1:])
        self._make_room(len(asked) << asked.shape[1], starts[-1])
        axes = np.argsort(self._order[asked], axis=1)
        arrays = (asked, levels, strides)
        ordered, shapes, strides = (np.take_along_axis(array, axes, axis=1) for array in arrays)
        numbers = self._numbered(ordered)
        flat, cells = np.empty(starts[-1], np.int64), np.empty(np.diff(starts).max(initial=1), int)
        begins = np.empty(numbers.shape[1] + 1, np.int64)
        fill_tables(shapes, strides, numbers, self._ends, self._counts, starts, begins, cells, flat)
        return Counted(flat, starts, levels)

    def _numbered(self, ordered) -> np.ndarray:
        """Numbers of the subsets of each table's variables; new subsets are counted."""
        tables, depth = ordered.shape
        numbers = np.zeros((tables, 1 << depth), np.int32)
        origins, known = np.empty(numbers.size, np.int64), self._known
        kept = self._keys, self._places, self._ends
        self._known = find_subsets(ordered, self._sizes, *kept, numbers, origins, known)
        if len(new := np.flatnonzero(np.diff(self._ends[known : self._known + 1]))):
            new = new[np.argsort(self._keys[known + new], kind="stable")]
            table, subset = np.divmod(origins[new], 1 << depth)
            has = (subset[:, None] >> np.arange(depth) & 1).astype(bool)
            first = np.argsort(~has, axis=1, kind="stable")
            variables = np.take_along_axis(np.where(has, ordered[table], -1), first, axis=1)
            prefix = self._keys[known + new] // len(self.levels)
            groups = np.append(np.flatnonzero(np.diff(prefix, prepend=-1)), len(new))
            starts = self._ends[known + new]
            masks, codes = np.empty((depth + 1, BLOCK), np.uint64), np.ones(depth, np.int64)
            columns = self._bits, self._planes, self._first, self._sizes
            count_subsets(*columns, variables, groups, starts, self._counts, masks, codes)
        return numbers

    def _make_room(self, subsets, cells):
        if self._known + subsets > MOST_SUBSETS or self._ends[self._known] + cells > MOST_COUNTS:
            self.forget()
        most = self._known + subsets
        if most >= len(self._keys):
            size = 2 * most + FIRST
            self._ends, self._keys = _longer(self._ends, size + 1), _longer(self._keys, size)
            self._places = _places_of(self._keys[: self._known], 2 << size.bit_length())
        if (most := int(self._ends[self._known]) + cells) > len(self._counts):
            self._counts = _longer(self._counts, 2 * most + FIRST)

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T: :func:`~dpcgd.datasets.counts.clipped_sums`."""
        rows = self._rows(range(len(self.levels)), BATCH)
        return clipped_sums(rows, vectors, bound=bound, n=n or self.n)

    def _rows(self, variables, many) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        """Codes and weights of the rows, in batches of whole words."""
        for first in range(0, len(self.weights), many):
            weights = self.weights[first : first + many]
            yield [self._codes(v, first // 64, len(weights)) for v in variables], weights

    def _codes(self, v, word, rows) -> np.ndarray:
        """Codes of a variable in a number of rows from a word on."""
        codes = np.zeros(rows, np.int64)
        for j in range(int(self.levels[v] - 1).bit_length()):
            words = self._bits[self._first[v] + j, word : word + -(-rows // 64)]
            bits = np.unpackbits(words.astype("<u8").view(np.uint8), count=rows, bitorder="little")
            codes |= bits.astype(np.int64) << j
        return codes

    @cached_property
    def digest(self) -> bytes:
        """A digest of the records."""
        digest = hashlib.blake2b(self._bits.data)
        digest.update(np.ascontiguousarray(self.weights, "<i8").data)
        return digest.digest()

    def subsample(self, chosen: np.ndarray) -> "BitColumns":
        """The rows with weights for some of the records only; no record is copied.

        Parameters
        ----------
        chosen : integer array, shape (m,)
            Distinct record numbers, 0 to n - 1. Their fixed order differs from the file's.
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
    """Size of the bits of n records, in bytes."""
    return int(widths(levels).sum()) * _whole_lines(n) * 8


def zeros(shape: tuple[int, int], dtype: type) -> np.ndarray:
    """An array of zeros, words of eight bytes, aligned to a line of the processor's cache."""
    room: np.ndarray = np.zeros(shape[0] * shape[1] + LINE, dtype)
    first = -room.ctypes.data // 8 % LINE
    return room[first : first + shape[0] * shape[1]].reshape(shape)


def pack(
    batches: Iterable[Sequence[np.ndarray]],
    levels: tuple[int, ...],
    n: int,
    *,
    most_bytes: int,
    allocate: Callable[..., np.ndarray] = zeros,
) -> BitColumns:
    """Pack records batch by batch; a batch may be deleted when the next one is requested.

    Parameters
    ----------
    batches : iterable of sequences of arrays
        The codes of n records in all; each batch has one array a variable.
    levels : tuple of int
    n : int
    most_bytes : int
        Records are collapsed to cells with weights if the weights of all public cells fit in this.
    allocate : callable
        Function from a shape and a type to an array of zeros for the bits.

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
    """Write bit j of every code to row j of `columns`, beginning at bit `start` of the row."""
    padded = np.zeros(-(-(start % 64 + len(codes)) // 64) * 64, codes.dtype)
    padded[start % 64 : start % 64 + len(codes)] = codes
    words = slice(start // 64, start // 64 + len(padded) // 64)
    for j, column in enumerate(columns):
        column[words] |= np.packbits((padded >> j & 1).astype(bool), bitorder="little").view("<u8")


def _whole_lines(n) -> int:
    """Number of words, in whole cache lines, for the bits of n rows."""
    return -(-n // (64 * LINE)) * LINE


def _collapsed(batches, levels):
    """The distinct rows and their frequencies, by the index of each record's cell."""
    cells = np.zeros(math.prod(levels), np.int64)
    for batch in batches:
        for start in range(0, len(batch[0]), CHUNK):
            some = [column[start : start + CHUNK] for column in batch]
            cells += np.bincount(cell_numbers(some, levels, len(some[0])), minlength=len(cells))
    present = np.flatnonzero(cells)
    rows, rest = [present] * len(levels), present
    for v in reversed(range(len(levels))):  # numpy itself takes 64 variables at most
        rest, rows[v] = np.divmod(rest, levels[v])
    return rows, _shrunk(cells[present])


def _shrunk(weights) -> np.ndarray:
    return weights.astype(np.min_scalar_type(weights.max()))


def _weight_planes(weights) -> np.ndarray:
    """Bit j of the rows' weights in row j; zero for rows that are only padding."""
    planes = zeros((max(1, int(weights.max()).bit_length()), _whole_lines(len(weights))), np.uint64)
    for start in range(0, len(weights), CHUNK):
        _pack_codes(weights[start : start + CHUNK], start, planes)
    return planes


def _places_of(keys, size) -> np.ndarray:
    """A hash table with the numbers of these keys, without the first key."""
    places, left = np.zeros(size, np.int32), np.arange(1, len(keys))
    place = keys[1:] * SPREAD >> 8 & (size - 1)
    while len(left):
        free = places[place] == 0
        places[place[free]] = left[free]
        lost = places[place] != left
        left, place = left[lost], (place[lost] + 1) & (size - 1)
    return places


def _longer(array, size) -> np.ndarray:
    return np.pad(array, (0, size - len(array)))


class PackedRecords(CountsTogether, Counts):
    """Counts of records that are stored as bits only, in memory or in a temporary file.

    Parameters
    ----------
    columns : BitColumns
    schema : Schema
        The schema of the variables.
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

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count the cells of many tables of equally many variables in one pass over the bits."""
        return self.columns.count_all(asked)

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T: :func:`~dpcgd.datasets.counts.clipped_sums`."""
        return self.columns.clipped_sums(vectors, bound=bound, n=n)

    def __repr__(self):
        return f"PackedRecords({self.name!r}, n={self.n:,}, d={self.d})"
