"""The interface of data: counts of records over a public domain, stored anywhere."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import Parts, Variable

__all__ = ["Counted", "Counts", "CountsTogether", "Records", "cell_numbers", "clipped_sums"]

MOST_AT_ONCE = 1 << 17
"""Number of subsets of variables that are counted together."""

BATCH = 1 << 12
"""Number of rows whose vectors are in memory at once; a multiple of the bits of a word."""

EXACT = 2.0**52
"""Half of the largest number up to which doubles hold all whole numbers."""

Vectors = Sequence[np.ndarray]
"""For each variable an array of shape (levels, width): a vector for each level."""

Rows = tuple[Sequence[np.ndarray], np.ndarray | None]
"""Codes of some rows, one array a variable, and the weights of the rows unless all are one."""


def cell_numbers(columns: Iterable[np.ndarray], sizes: Sequence[int], rows: int) -> np.ndarray:
    """The index of each row's cell in a table of these columns, the last column fastest.

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
    """Any data that answer counts: records in memory, in files, on a cluster, in a database.

    A subclass must define ``levels``, ``n`` and :meth:`counts`; it inherits the rest.

    Attributes
    ----------
    levels : mapping of str to sequence of str
        Every level that each variable may take, public; its keys are the variables, in order. The
        levels of a number with a range are its :class:`~dpcgd.datasets.variable.Parts`.
    n : int
        Number of records (public).
    ordered : collection of str
        Variables whose levels are in order.
    missing : mapping of str to str
        The level of missing values, for variables that have one.
    schema : Schema or None
        The schema with which the records were read.

    Privacy
    -------
    The guarantee does not depend on where the records are stored, or in how many parts; nor does
    the result, if a system asks the same questions: chapter 20, :prf:ref:`thm-counts-of-parts`.
    Data without :meth:`Records.clipped_sums` are asked other questions by some systems.

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
    def numbers(self) -> tuple[str, ...]:
        """Names of the variables that are numbers with a range."""
        return tuple(name for name, own in self.levels.items() if isinstance(own, Parts))

    @property
    def d(self) -> int:
        """Number of variables."""
        return len(self.levels)

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """The public description of each variable, in the format of a schema; JSON can hold it."""
        if self.schema is not None:
            return self.schema.to_dict()
        return {
            v: Variable(v, levels, v in self.ordered, self.missing.get(v)).as_schema()
            for v, levels in self.levels.items()
        }

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables.

        Parameters
        ----------
        variables : sequence of int
            Numbers of variables, without repetition.

        Returns
        -------
        integer array
            One axis for each variable, in the order given, as long as its public levels.
        """
        ...

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the cells of several tables, in one pass over the records if that is faster."""
        return [self.counts(variables) for variables in questions]


@runtime_checkable
class Records(Counts, Protocol):
    """Data with a pass over all records: in memory, in files, on a cluster.

    Notes
    -----
    A subclass must define :meth:`clipped_sums`, and everything that :class:`Counts` needs. The
    function :func:`clipped_sums` computes it from batches of codes; sums of parts may be added.

    Privacy
    -------
    Neither the result of a run nor its guarantee depends on where the records are stored: chapter
    20, :prf:ref:`thm-counts-of-parts`.
    """

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T, as defined by the function :func:`clipped_sums`.

        Parameters
        ----------
        vectors : sequence of array of shape (levels, width)
            For each variable, a row for each level.
        bound : float
            Largest norm of u.
        n : int, optional
            Number of all records, if these are a part of them; then sums of parts are exact.

        Returns
        -------
        array of shape (D, D)
        """
        ...


def clipped_sums(parts: Iterable[Rows], vectors: Vectors, *, bound: float, n: int) -> np.ndarray:
    """Sum over records of u u^T; u joins the vectors of the record's levels, clipped to a norm.

    Parameters
    ----------
    parts : iterable of Rows
        All records.
    vectors : sequence of array of shape (levels, width)
        For each variable, a row for each level.
    bound : float
        The largest norm of u; longer vectors are scaled down to it.
    n : int
        The number of records, or a larger number.

    Returns
    -------
    array of shape (D, D)
        D is the sum of the widths. Entries of u are rounded to multiples of a power of two for
        which the sums are exact, so that the result does not depend on the order or the parts.

    Privacy
    -------
    A record adds u u^T, where the norm of u is at most `bound`. The sensitivity is in
    :func:`dpcgd.moments.clipped_moments.clipped_sensitivity`. Chapter 12,
    :prf:ref:`thm-clipped-moments`.

    Examples
    --------
    >>> vectors = [np.array([[0.0], [3.0]]), np.array([[0.0], [4.0]])]
    >>> codes = np.array([1, 1, 0]), np.array([1, 0, 0])
    >>> clipped_sums([(codes, None)], vectors, bound=3.0, n=3).round(3)
    array([[12.24,  4.32],
           [ 4.32,  5.76]])
    """
    size = sum(levels.shape[1] for levels in vectors)
    total = np.zeros((size, size))
    if not bound > 0:
        return total
    step = _step(bound, n)
    squares = [(levels**2).sum(axis=1) for levels in vectors]
    for codes, weights in parts:
        norm = np.sqrt(sum(square[code] for square, code in zip(squares, codes, strict=True)))
        shrunk = bound / np.maximum(norm, bound) / step
        rows = np.hstack([levels[code] for levels, code in zip(vectors, codes, strict=True)])
        rows *= shrunk[:, None]
        np.trunc(rows, out=rows)
        total += (rows if weights is None else rows * weights[:, None]).T @ rows
    return total * step**2


def _step(bound, n) -> float:
    """The least power of two s for which n (bound / s)^2 is at most EXACT."""
    return 2.0 ** math.ceil(math.log2(bound) + math.log2(n / EXACT) / 2)


class Counted(NamedTuple):
    """Many tables in one array, one after the other, each in C order.

    Attributes
    ----------
    counts : integer array
    starts : integer array
        The start of each table, and the end of the last one.
    levels : integer array
        The lengths of the axes, a row for each table.
    """

    counts: np.ndarray
    starts: np.ndarray
    levels: np.ndarray

    @classmethod
    def joined(cls, tables: Sequence[np.ndarray], levels: np.ndarray) -> "Counted":
        """Make an array of tables that were counted one by one."""
        flat = np.concatenate([np.empty(0, np.int64), *(table.ravel() for table in tables)])
        return cls(flat, np.cumsum([0, *(table.size for table in tables)]), levels)

    def tables(self) -> Iterator[np.ndarray]:
        """The tables, one after the other."""
        for (start, end), shape in zip(pairwise(self.starts.tolist()), self.levels, strict=True):
            yield self.counts[start:end].reshape(shape)


def in_batches(asked: np.ndarray) -> Iterator[np.ndarray]:
    """Split the rows of `asked` so that the memory for one part stays small."""
    many = max(1, MOST_AT_ONCE >> asked.shape[1])
    for start in range(0, len(asked), many):
        yield asked[start : start + many]


class CountsTogether:
    """One or several tables, from a method that counts many tables of one size together."""

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count many tables of equally many variables, in one pass over the records.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            Numbers of variables, without repetition in a row.
        """
        raise NotImplementedError

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables.

        Parameters
        ----------
        variables : sequence of int
            Numbers of variables, without repetition.

        Returns
        -------
        integer array
            One axis for each variable, in the order given, as long as its public levels. Read-only.
        """
        table = next(self.count_all(np.array([variables], np.int64)).tables())
        table.flags.writeable = False
        return table

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the records in each cell of several tables; smaller tables are sums of larger ones.

        Parameters
        ----------
        questions : iterable of sequences of int
            The variables of each table, as for :meth:`counts`.

        Returns
        -------
        list of integer arrays
        """
        questions = [tuple(variables) for variables in questions]
        tables: dict[int, np.ndarray] = {}
        for size in sorted({len(variables) for variables in questions}, reverse=True):
            numbers = [i for i, variables in enumerate(questions) if len(variables) == size]
            asked = np.array([questions[i] for i in numbers], np.int64)
            counted = (t for few in in_batches(asked) for t in self.count_all(few).tables())
            tables |= zip(numbers, counted, strict=True)
        return [tables[i] for i in range(len(questions))]


def agree(kind: type, single: str, many: str) -> bool:
    """Whether the most derived class that defines `single` or `many` defines `many`.

    Parameters
    ----------
    kind : type
    single, many : str
        Names of the methods for one and for many.

    Examples
    --------
    >>> class Both:
    ...     def value(self, x): ...
    ...     def values(self, xs): ...
    >>> class OneAnew(Both):
    ...     def value(self, x): ...
    >>> agree(Both, "value", "values"), agree(OneAnew, "value", "values")
    (True, False)
    """
    defining = (vars(base) for base in kind.__mro__ if {single, many} & vars(base).keys())
    return many in next(defining, {many})
