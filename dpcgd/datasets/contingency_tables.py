"""Fast contingency tables, on which every search spends most of its time."""

import copy
from collections.abc import Sequence

import numpy as np

from dpcgd.datasets.bit_columns import BitColumns, PackedRecords, pack
from dpcgd.datasets.counts import Counted, Counts, CountsTogether
from dpcgd.datasets.dataset import Dataset

__all__ = ["Tables"]

MOST_KEPT_CELLS = 1 << 18
"""The most counts that are kept, because other tests of the same variables use the same tables."""


class _Asked:
    """Counts from other data, kept because tests of the same variables share their tables."""

    def __init__(self, data):
        self._data, self._n, self._levels = data, data.n, data.cardinalities
        self.forget()

    def subsample(self, chosen) -> "_Asked":
        if not hasattr(self._data, "subsample"):
            raise TypeError("a sub-sample needs records; see check_records")
        return _Asked(self._data.subsample(chosen))

    def forget(self):
        self._known, self._cells = {}, 0

    def count_all(self, asked) -> Counted:
        """Count all unknown tables together."""
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
        """Check that counts from elsewhere are a table of all records."""
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
    """Exact contingency counts, kept because tests of the same variables share them.

    The records of a data set are packed first: codes become bit columns, 64 records a word, and a
    table follows from population counts of intersections of columns. If a weight for each cell of
    the public domain takes no more memory than the codes, records are collapsed to cells with
    weights; then the cost of a table does not grow with n. Memory beyond the data set is at most
    that of its codes, one bit a record and about thirty megabytes of kept counts. Other data are
    queried.

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
        """Drop all kept counts."""
        self._source.forget()

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count many tables of equally many variables, in one pass over the records.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            Column numbers, without repetition in a row.

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
            Distinct record numbers, 0 to n - 1. They follow a fixed order, which differs from the
            file's, so choose them uniformly at random.
        """
        smaller = copy.copy(self)
        smaller._source = self._source.subsample(chosen)
        smaller.n = len(chosen)
        return smaller
