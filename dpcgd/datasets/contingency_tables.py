"""Contingency tables, fast: the hot path of every search."""

import copy
from collections.abc import Sequence

import numpy as np

from dpcgd.datasets.bit_columns import BitColumns, PackedRecords, pack
from dpcgd.datasets.counts import Counted, Counts, CountsTogether
from dpcgd.datasets.dataset import Dataset

__all__ = ["Tables"]

MOST_KEPT_CELLS = 1 << 18
"""So many counts are kept for tables that other tests of the same variables ask for again."""


class _Asked:
    """Any other data: its tables are kept, for tests of the same variables share them."""

    def __init__(self, data: Counts):
        self._data, self._n, self._levels = data, data.n, data.cardinalities
        self.forget()

    def forget(self):
        self._known, self._cells = {}, 0

    def count_all(self, asked) -> Counted:
        """Tables that are not known are asked for together."""
        sets = [tuple(sorted(variables)) for variables in asked.tolist()]
        tables = {key: self._known[key] for key in sets if key in self._known}
        new = [variables for variables in dict.fromkeys(sets) if variables not in tables]
        answers = self._data.counts_many(new) if new else ()
        for variables, table in zip(new, answers, strict=True):
            table = self._checked(variables, np.array(table))
            if self._cells + table.size > MOST_KEPT_CELLS:
                self.forget()
            tables[variables] = self._known[variables] = table
            self._cells += table.size
        axes = np.argsort(np.argsort(asked, axis=1), axis=1)
        turned = [tables[key].transpose(turn) for key, turn in zip(sets, axes, strict=True)]
        return Counted.joined(turned, np.array(self._levels)[asked])

    def _checked(self, variables, table) -> np.ndarray:
        """Counts from elsewhere, unless they are no table of all records."""
        subject = f"the table of variables {', '.join(map(str, variables))}"
        shape = tuple(self._levels[v] for v in variables)
        if table.shape != shape or table.dtype.kind not in "iu":
            given = f"{table.dtype} of shape {table.shape}; give one axis a variable"
            raise ValueError(f"{subject} must be integers of shape {shape}, not {given}")
        if table.min(initial=0) < 0 or table.sum() != self._n:
            problem = f"{subject} does not hold {self._n} records, as n says"
            raise ValueError(f"{problem}; count all of them, and let none change while a run asks")
        return table


class Tables(CountsTogether):
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
        self._source: BitColumns | _Asked
        if isinstance(data, PackedRecords):
            self._source = data.columns
        elif isinstance(data, Dataset):
            codes = [list(data.codes.T)]
            self._source = pack(codes, self.levels, self.n, most_bytes=data.codes.nbytes)
        else:
            self._source = _Asked(data)

    def forget(self):
        """Let go of all kept counts."""
        self._source.forget()

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
