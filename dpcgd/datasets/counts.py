"""What the systems ask of data: counts of records over a public domain, wherever they lie."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpcgd.datasets.levels import REFUSE
from dpcgd.datasets.schema import Schema

__all__ = ["Counts", "Records", "cell_numbers"]


def cell_numbers(columns: Iterable[np.ndarray], sizes: Sequence[int], rows: int) -> np.ndarray:
    """Number the cell of each row in a table of these columns, the last one fastest.

    Examples
    --------
    >>> cell_numbers([np.array([0, 1, 1]), np.array([2, 0, 1])], (2, 3), 3)
    array([2, 3, 4])
    """
    numbers = np.zeros(rows, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        numbers *= size
        numbers += column
    return numbers


@runtime_checkable
class Counts(Protocol):
    """Whatever answers counts: records in memory, in files, on a cluster, in a database.

    A class of your own needs ``levels``, ``n`` and :meth:`counts`; the rest follows if it inherits
    from this one.

    Attributes
    ----------
    levels : mapping of str to tuple of str
        Every level each variable may take, public; its keys are the variables, in order.
    n : int
        Number of records (public).
    ordered : collection of str
        Variables whose levels are known to stand in order.
    missing : mapping of str to str
        Of variables that have one, the level of missing values.
    schema : Schema or None
        What the records were read with.

    Privacy
    -------
    Where the records lie, in one place or in parts, changes neither what a run gives nor its
    guarantee: chapter 20, :prf:ref:`thm-counts-of-parts`.

    Notes
    -----
    Counts must be exact and the records must not change while a system asks: sensitivities hold
    for tables of the same n records.

    Examples
    --------
    >>> class Coins(Counts):
    ...     levels = {"one": ("head", "tail"), "two": ("head", "tail")}
    ...     n = 40
    ...
    ...     def counts(self, variables):
    ...         return np.full([2] * len(variables), 40 // 2 ** len(variables))
    >>> coins = Coins()
    >>> coins.variables, coins.cardinalities, coins.d
    (('one', 'two'), (2, 2), 2)
    >>> coins.counts_many([[0], [1, 0]])
    [array([20, 20]), array([[10, 10],
           [10, 10]])]
    """

    levels: Mapping[str, Sequence[str]]
    n: int
    ordered: Collection[str] = frozenset()
    missing: Mapping[str, str] = MappingProxyType({})
    schema: Schema | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in order."""
        return tuple(self.levels)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of public levels of each variable, in order."""
        return tuple(len(levels) for levels in self.levels.values())

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.levels)

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """What is public about each variable, in the words of a schema; JSON can hold it."""
        if self.schema is not None:
            return self.schema.to_dict()
        return {
            name: {
                "levels": list(levels),
                "missing": self.missing.get(name, REFUSE),
                "ordered": name in self.ordered,
            }
            for name, levels in self.levels.items()
        }

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables.

        Parameters
        ----------
        variables : sequence of int
            Numbers of variables, none twice.

        Returns
        -------
        integer array
            One axis for each variable, in the order given, as long as its public levels.
        """
        ...

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables, in one pass over the records where that is faster."""
        return [self.counts(variables) for variables in questions]


@runtime_checkable
class Records(Counts, Protocol):
    """Data whose records can be gone through: in memory, in files, on a cluster.

    Notes
    -----
    A class of your own needs :meth:`clipped_sums` beside what :class:`Counts` needs;
    :func:`~dpcgd.datasets.clipped_sums.clipped_sums` works it out from batches of codes, and sums
    of parts may be added.

    Privacy
    -------
    Where the records lie changes neither what a run gives nor its guarantee: chapter 20,
    :prf:ref:`thm-counts-of-parts`.
    """

    def clipped_sums(
        self, vectors: Sequence[np.ndarray], *, bound: float, n: int | None = None
    ) -> np.ndarray:
        """Sum over records of u u^T, as :func:`~dpcgd.datasets.clipped_sums.clipped_sums` has it.

        Parameters
        ----------
        vectors : sequence of array of shape (levels, width)
            Of each variable, a row for each level.
        bound : float
            Largest norm of u.
        n : int, optional
            Records in all, if these are a part: then sums of parts are exact.

        Returns
        -------
        array of shape (D, D)
        """
        ...
