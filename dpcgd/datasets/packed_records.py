"""Records that have been packed to bits and let go."""

from collections.abc import Iterable, Sequence

import numpy as np

from dpcgd.datasets.bit_columns import BitColumns
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.schema import Schema

__all__ = ["PackedRecords"]


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
    >>> from dpcgd.datasets.bit_columns import pack
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
