"""Contingency tables, fast: the hot path of every search."""

import copy
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from dpcgd.datasets.bit_columns import BitColumns, pack
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.packed_records import PackedRecords
from dpcgd.datasets.shared_counts import Counted, tables_in_turn

__all__ = ["Tables"]

MOST_KEPT_CELLS = 1 << 18
"""Counts kept for tables that are asked for again: by other tests of the same variables."""


class CountsAll(Protocol):
    """Data that counts many tables at once and keeps what they share."""

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """As for :class:`Tables`."""

    def count_all(self, asked: np.ndarray) -> Counted:
        """As for :class:`Tables`."""

    def forget(self) -> None:
        """Let go of what is kept."""


class _Asked:
    """Any other data: its tables are kept, for tests of the same variables share them."""

    def __init__(self, data: Counts):
        self._data, self._n, self._levels = data, data.n, data.cardinalities
        self.forget()

    def forget(self):
        self._known, self._cells = {}, 0

    def counts(self, variables) -> np.ndarray:
        return self._all([variables])[0]

    def count_all(self, asked) -> Counted:
        tables = self._all(asked.tolist())
        starts = np.cumsum([0, *(table.size for table in tables)])
        flat = np.concatenate([np.empty(0, np.int64), *(table.ravel() for table in tables)])
        return Counted(flat, starts, np.array(self._levels, np.int64)[asked])

    def _all(self, questions) -> list[np.ndarray]:
        """Those that are not known are asked for together."""
        sets = [tuple(sorted(asked)) for asked in questions]
        new = [at for at in dict.fromkeys(sets) if at not in self._known]
        found = {at: self._known[at] for at in sets if at in self._known}
        for at, table in zip(new, self._data.counts_many(new) if new else (), strict=True):
            found[at] = self._checked(at, np.array(table))
            self._keep(at, found[at])
        return [
            found[at].transpose([at.index(v) for v in asked])
            for at, asked in zip(sets, questions, strict=True)
        ]

    def _keep(self, at, table):
        if self._cells + table.size > MOST_KEPT_CELLS:
            self.forget()
        self._known[at] = table
        table.flags.writeable = False
        self._cells += table.size

    def _checked(self, at, table) -> np.ndarray:
        """Counts from elsewhere, unless they are no table of all records."""
        of = f"the table of variables {', '.join(map(str, at))}"
        shape = tuple(self._levels[v] for v in at)
        if table.shape != shape or table.dtype.kind not in "iu":
            raise ValueError(
                f"{of} must be integers of shape {shape}, not {table.dtype} of shape "
                f"{table.shape}; give one axis a variable, as long as its levels"
            )
        if table.min(initial=0) < 0 or table.sum() != self._n:
            raise ValueError(
                f"{of} does not hold {self._n} records, as n says; count all of them, and let none "
                "change while a run asks"
            )
        return table


class Tables:
    """Exact contingency counts, kept for tests of the same variables share them.

    The records of a data set are packed first: codes are kept as bit columns, 64 records a word,
    and a table follows from population counts of intersections of columns. Where the whole public
    domain has so few cells that their weights take no more memory than the codes, records are first
    collapsed to cells with weights, whose bits are columns too; a table then no longer costs more
    when n grows. Memory beyond the data set itself is at most that of its codes, one bit a record
    and some thirty megabytes of kept counts. Of any other data counts are asked for.

    Parameters
    ----------
    data : Dataset or Counts

    Examples
    --------
    >>> data = Dataset([[0, 1], [1, 1], [1, 1]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
    >>> Tables(data).counts([0, 1])
    array([[0, 1, 0],
           [0, 2, 0]])
    """

    def __init__(self, data: Counts):
        self.n, self.levels = data.n, data.cardinalities
        self._source = _source_of(data)

    def forget(self):
        """Let go of all kept counts."""
        self._source.forget()

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
        table = self._source.counts(variables)
        table.flags.writeable = False
        return table

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the records in each cell of several tables, in one pass over the records.

        Parameters
        ----------
        questions : iterable of sequences of int
            The variables of each table, as for :meth:`counts`.

        Returns
        -------
        list of integer arrays
        """
        return tables_in_turn(self._source.count_all, questions)

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count many tables of equally many variables, in one pass over the records.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            Column numbers, none twice in a row.

        Returns
        -------
        Counted
        """
        return self._source.count_all(asked)

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        """Public levels of these variables: the shape of their table."""
        return tuple([self.levels[v] for v in variables])

    def subsample(self, chosen: np.ndarray) -> "Tables":
        """Tables over some of the records only; no record is copied.

        Parameters
        ----------
        chosen : integer array, shape (m,)
            Distinct record numbers, 0 to n - 1. Numbers stand for records in some fixed order, not
            that of the file, so choose them uniformly at random.
        """
        if not isinstance(self._source, BitColumns):
            raise TypeError("a sub-sample needs records; see check_records")
        smaller = copy.copy(self)
        smaller._source = self._source.subsample(chosen)
        smaller.n = len(chosen)
        return smaller


def _source_of(data: Counts) -> CountsAll:
    """Bit columns, where there are records or bits of them; else whoever counts is asked."""
    if isinstance(data, PackedRecords):
        return data.columns
    if isinstance(data, Dataset):
        codes = list(data.codes.T)
        return pack([codes], data.cardinalities, data.n, most_bytes=data.codes.nbytes)
    return _Asked(data)
