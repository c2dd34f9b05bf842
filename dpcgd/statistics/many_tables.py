"""Statistics of many tables at once: compiled where they are the package's own."""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.plurals import agree
from dpcgd.datasets.shared_counts import in_batches
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared
from dpcgd.statistics.statistic import (
    MOST_EXACT,
    RECORDS_PER_CELL,
    AgainstQuantile,
    Statistic,
    StatisticOfMany,
)

__all__ = [
    "are_allowed",
    "are_compiled",
    "are_determined",
    "nearnesses_of",
    "sensitivities_of",
    "value_of",
    "values_of",
]

PLURALS = {
    "value": "values",
    "raw": "raws",
    "freedom": "freedoms",
    "p_value": "p_values",
    "counts": "count_all",
}
"""What is defined for one table, and the same for many."""


def values_of(
    statistic: Statistic, tables: Tables, asked: Sequence[Sequence[int]] | np.ndarray
) -> np.ndarray:
    """The statistic of each table of equally many variables.

    Parameters
    ----------
    statistic : Statistic
    tables : Tables
    asked : sequence of sequences of int, or integer array, shape (tables, variables)
        x, y and the conditioning variables of each.

    Returns
    -------
    array, shape (tables,)
        ``statistic.value`` of each, to the last digits.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.statistics.rank_statistics import KendallZ
    >>> tables = Tables(load("asia", n=1000, rng=np.random.default_rng(0)))
    >>> values_of(KendallZ(), tables, [[0, 1], [0, 2]]).round(2)
    array([0.01, 0.18])
    """
    asked = np.asarray(asked, np.int64)
    if are_compiled(statistic, tables):
        parts = [statistic.values(tables.count_all(few)) for few in in_batches(asked)]
        return np.concatenate([np.empty(0), *parts])
    return np.array([statistic.value(tables.counts(of)) for of in asked.tolist()], float)


def value_of(statistic: Statistic, tables: Tables, tested: Sequence[int]) -> float:
    """The statistic of one table, as :func:`values_of` has it."""
    return float(values_of(statistic, tables, [tested])[0])


def nearnesses_of(statistic: Statistic, tables: Tables, asked: np.ndarray) -> np.ndarray:
    """How near each is to independence: the p-value, or minus what is of one scale for all tables.

    Parameters and value are those of :func:`values_of`.
    """
    compiled = are_compiled(statistic, tables)
    if not isinstance(statistic, AgainstQuantile):
        return -values_of(statistic, tables, asked)
    if compiled:
        parts = [statistic.p_values(tables.count_all(few)) for few in in_batches(asked)]
        return np.concatenate([np.empty(0), *parts])
    return np.array([statistic.p_value(tables.counts(of)) for of in asked.tolist()], float)


def are_allowed(tables: Tables, asked: np.ndarray) -> np.ndarray:
    """Whether public facts allow each test: what :func:`~dpcgd.statistics.statistic.refusal` says.

    Parameters are those of :func:`values_of`; value a boolean array.
    """
    levels = _levels(tables, asked)
    if tables.n >= RECORDS_PER_CELL * float(levels.max(initial=1)) ** asked.shape[1]:
        return np.ones(len(asked), bool)
    return tables.n >= RECORDS_PER_CELL * levels.astype(float).prod(axis=1)


def are_determined(tables: Tables, asked: np.ndarray) -> np.ndarray:
    """Which conditioning variables share with x or y what leaves a test no degree of freedom.

    They determine x or y, or are determined by it, and all together leave nothing to test. In each
    stratum of a copy of x, or of what determines x, there is one level of x: the test finds
    independence whatever depends on x.

    Parameters are those of :func:`values_of`; value a boolean array with a column for each
    conditioning variable. It looks at the records.

    Examples
    --------
    >>> from dpcgd import Dataset
    >>> data = Dataset([[0, 0, 0], [1, 1, 1]] * 20, {name: ["no", "yes"] for name in "abc"})
    >>> are_determined(Tables(data), np.array([[0, 1, 2]]))  # a and b given c, a copy
    array([[ True]])
    """
    found = np.zeros((len(asked), asked.shape[1] - 2), bool)
    if not found.size:
        return found
    constant = np.flatnonzero(_freedoms(tables, asked) == 0)
    for at in range(found.shape[1]):
        for turned in ((0, 1, 2 + at), (2 + at, 1, 0), (0, 2 + at, 1)):
            found[constant, at] |= _freedoms(tables, asked[constant][:, turned]) == 0
    return found


def _freedoms(tables, asked) -> np.ndarray:
    adjusted = AdjustedChiSquared()
    if are_compiled(adjusted, tables):
        parts = [adjusted.freedoms(tables.count_all(few)) for few in in_batches(asked)]
        return np.concatenate([np.empty(0), *parts])
    return np.array([adjusted.freedom(tables.counts(of)) for of in asked.tolist()], float)


def sensitivities_of(statistic: Statistic, tables: Tables, asked: np.ndarray) -> np.ndarray:
    """The statistic's sensitivity for each table; asked once for tables of the same levels.

    Parameters and value are those of :func:`values_of`.
    """
    levels = _levels(tables, asked)
    kind = _kinds(levels)
    example = np.zeros(kind.max(initial=-1) + 1, np.intp)
    example[kind] = np.arange(len(levels))
    shapes = map(tuple, levels[example].tolist())
    return np.array([statistic.sensitivity(tables.n, shape) for shape in shapes], float)[kind]


def are_compiled(statistic: Statistic, tables: Tables) -> TypeGuard[StatisticOfMany]:
    """Whether many tables at once are faster than one after the other."""
    asked: Any = getattr(statistic, "z", statistic)  # by a p-value
    kinds: tuple[Any, ...] = type(statistic), type(asked), type(tables)
    able = hasattr(statistic, "values") and hasattr(tables, "count_all")
    return able and all(map(_agrees, kinds)) and tables.n <= MOST_EXACT


def _levels(tables, asked) -> np.ndarray:
    """Public levels of the variables of each test."""
    return np.array(tables.shape(range(asked.max(initial=-1) + 1)), np.int64)[asked]


def _kinds(levels) -> np.ndarray:
    """A number for each row, the same for equal rows, with none left out.

    As ``np.unique`` of rows would give, which takes up to sixty times as long.
    """
    kind = np.zeros(len(levels), np.intp)
    for column in levels.T:
        kind = kind * (column.max(initial=0) + 1) + column
        kind = (np.cumsum(np.bincount(kind) > 0) - 1)[kind]
    return kind


@cache
def _agrees(kind) -> bool:
    return all(agree(kind, one, many) for one, many in PLURALS.items())
