"""Contingency tables, fast: the hot path of every search."""

import copy
from collections.abc import Iterable, Sequence

import numpy as np

from dpcgd.datasets.bit_columns import BitColumns, pack
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.packed_records import PackedRecords

__all__ = ["Tables"]

MOST_KEPT_CELLS = 1 << 18
"""Counts kept for tables that are asked for again: by other tests of the same variables."""


class Tables:
    """Exact contingency counts, kept for tests of the same variables share them.

    The records of a data set are packed first: codes are kept as bit columns, 64 records a word,
    and a cell is the population count of an intersection of columns. Where the whole public domain
    has so few cells that their weights take no more memory than the codes, records are first
    collapsed to cells with weights, whose bits are columns too; a table then no longer costs more
    when n grows. Memory beyond the data set itself is at most that of its codes, one bit a record
    and two megabytes of kept counts. Of any other data counts are asked for.

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
        at = self._order(variables)
        table = self._known.get(at)
        if table is None:
            table = self._keep(at, self._source.counts(at))
        return table.transpose([at.index(v) for v in variables])

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
        asked = [(tuple(variables), self._order(variables)) for variables in questions]
        new = list(dict.fromkeys(at for _, at in asked if at not in self._known))
        tables = {at: self._known[at] for _, at in asked if at in self._known}
        for at, table in zip(new, self._source.counts_many(new), strict=True):
            tables[at] = self._keep(at, table)
        return [tables[at].transpose([at.index(v) for v in given]) for given, at in asked]

    def _order(self, variables) -> tuple[int, ...]:
        """Few levels first is faster."""
        return tuple(sorted(variables, key=lambda v: (self.levels[v], v)))

    def _keep(self, at, table) -> np.ndarray:
        if not isinstance(self._source, BitColumns):
            table = self._checked(at, np.array(table))
        if self._cells + table.size > MOST_KEPT_CELLS:
            self.forget()
        self._known[at] = table
        table.flags.writeable = False
        self._cells += table.size
        return table

    def _checked(self, at, table) -> np.ndarray:
        """Counts from elsewhere, unless they are no table of all records."""
        of = f"the table of variables {', '.join(map(str, at))}"
        if table.shape != self.shape(at) or table.dtype.kind not in "iu":
            raise ValueError(
                f"{of} must be integers of shape {self.shape(at)}, not {table.dtype} of shape "
                f"{table.shape}; give one axis a variable, as long as its levels"
            )
        if table.min(initial=0) < 0 or table.sum() != self.n:
            raise ValueError(
                f"{of} does not hold {self.n} records, as n says; count all of them, and let none "
                "change while a run asks"
            )
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
        if not isinstance(self._source, BitColumns):
            raise TypeError("a sub-sample needs records; see check_records")
        smaller = copy.copy(self)
        smaller._source = self._source.subsample(chosen)
        smaller.n = len(chosen)
        smaller.forget()
        return smaller


def _source_of(data: Counts) -> BitColumns | Counts:
    """Bit columns, where there are records or bits of them; else whoever counts."""
    if isinstance(data, PackedRecords):
        return data.columns
    if not isinstance(data, Dataset):
        return data
    return pack([list(data.codes.T)], data.cardinalities, data.n, most_bytes=data.codes.nbytes)
