"""What the systems ask of data: counts of records over a public domain, wherever they lie."""

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
"""So many subsets of the variables of tables are worked out at once."""

BATCH = 1 << 12
"""Rows whose vectors are at hand at once, in whole words of bits."""

EXACT = 2.0**52
"""Doubles hold whole numbers up to twice this."""

Vectors = Sequence[np.ndarray]
"""Of each variable an array of shape (levels, width): a vector for each level."""

Rows = tuple[Sequence[np.ndarray], np.ndarray | None]
"""Codes of some rows, one array a variable, and how many records each stands for, if not one."""


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
    levels : mapping of str to sequence of str
        Every level each variable may take, public; its keys are the variables, in order. Of a
        number with a range they are the :class:`~dpcgd.datasets.variable.Parts` of it.
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
    def numbers(self) -> tuple[str, ...]:
        """Names of the variables that are numbers with a range."""
        return tuple(name for name, own in self.levels.items() if isinstance(own, Parts))

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
            v: Variable(v, levels, v in self.ordered, self.missing.get(v)).as_schema()
            for v, levels in self.levels.items()
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
    :func:`clipped_sums` works it out from batches of codes, and sums of parts may be added.

    Privacy
    -------
    Where the records lie changes neither what a run gives nor its guarantee: chapter 20,
    :prf:ref:`thm-counts-of-parts`.
    """

    def clipped_sums(self, vectors: Vectors, *, bound: float, n: int | None = None) -> np.ndarray:
        """Sum over records of u u^T, as the function :func:`clipped_sums` has it.

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


def clipped_sums(parts: Iterable[Rows], vectors: Vectors, *, bound: float, n: int) -> np.ndarray:
    """Sum over records of u u^T, where u holds the vectors of its levels, no longer than bound.

    Parameters
    ----------
    parts : iterable of Rows
        All records.
    vectors : sequence of array of shape (levels, width)
        Of each variable, a row for each level.
    bound : float
        A record whose vector is longer is scaled down to this norm.
    n : int
        Records in all, or more.

    Returns
    -------
    array of shape (D, D)
        D is the sum of the widths. Entries of u are cut to multiples of a power of two that leaves
        the sums exact, so that they do not depend on the order or the parts.

    Privacy
    -------
    A record adds u u^T with a norm of u of at most `bound`; what that moves is in
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
    """The least power of two in whose squares n times bound^2 is a whole number that is exact."""
    return 2.0 ** math.ceil(math.log2(bound) + math.log2(n / EXACT) / 2)


class Counted(NamedTuple):
    """Many tables, in C order one after the other.

    Attributes
    ----------
    counts : integer array
    starts : integer array
        Where each table begins, and where the last one ends.
    levels : integer array
        Its axes: a row for each table.
    """

    counts: np.ndarray
    starts: np.ndarray
    levels: np.ndarray

    @classmethod
    def joined(cls, tables: Sequence[np.ndarray], levels: np.ndarray) -> "Counted":
        """Tables that were counted one by one."""
        flat = np.concatenate([np.empty(0, np.int64), *(table.ravel() for table in tables)])
        return cls(flat, np.cumsum([0, *(table.size for table in tables)]), levels)

    def tables(self) -> Iterator[np.ndarray]:
        """One after the other."""
        for (start, end), shape in zip(pairwise(self.starts.tolist()), self.levels, strict=True):
            yield self.counts[start:end].reshape(shape)


def in_batches(asked: np.ndarray) -> Iterator[np.ndarray]:
    """Split questions, a row each, so that what is worked out for some at once stays small."""
    many = max(1, MOST_AT_ONCE >> asked.shape[1])
    for start in range(0, len(asked), many):
        yield asked[start : start + many]


class CountsTogether:
    """One table and several, from what counts many tables of equally many variables at once."""

    def count_all(self, asked: np.ndarray) -> Counted:
        """Count many tables of equally many variables, in one pass over the records.

        Parameters
        ----------
        asked : integer array, shape (tables, variables of each)
            Numbers of variables, none twice in a row.
        """
        raise NotImplementedError

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Count the records in each cell of the named variables.

        Parameters
        ----------
        variables : sequence of int
            Numbers of variables, none twice.

        Returns
        -------
        integer array
            One axis for each variable, in the order given, as long as its public levels. Read-only.
        """
        table = next(self.count_all(np.array([variables], np.int64)).tables())
        table.flags.writeable = False
        return table

    def counts_many(self, questions: Iterable[Sequence[int]]) -> list[np.ndarray]:
        """Count the records in each cell of several tables: the largest first, smaller are parts.

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
    """Whether what a class says of many was not left behind by a new definition for one.

    Parameters
    ----------
    kind : type
    single, many : str
        Names of what says the same of one and of many.

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
