"""Statistics of many tables at once: compiled where they are the package's own."""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import agree, in_batches
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared
from dpcgd.statistics.statistic import MOST_EXACT, RECORDS_PER_CELL, AgainstQuantile, Statistic

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
    return _of_each(statistic, tables, np.asarray(asked, np.int64), "value")


def _of_each(statistic, tables, asked, name) -> np.ndarray:
    """What a method of a statistic says of each table: all at once where that is compiled."""
    if not are_compiled(statistic, tables):
        method = getattr(statistic, name)
        return np.array([method(tables.counts(tested)) for tested in asked.tolist()], float)
    method = getattr(statistic, PLURALS[name])
    parts = [method(tables.count_all(few)) for few in in_batches(asked)]
    return np.concatenate([np.empty(0), *parts])


def value_of(statistic: Statistic, tables: Tables, tested: Sequence[int]) -> float:
    """The statistic of one table, as :func:`values_of` has it."""
    return float(values_of(statistic, tables, [tested])[0])


def nearnesses_of(statistic: Statistic, tables: Tables, asked: np.ndarray) -> np.ndarray:
    """How near each is to independence: the p-value, or minus what is of one scale for all tables.

    Parameters and value are those of :func:`values_of`.
    """
    if isinstance(statistic, AgainstQuantile):
        return _of_each(statistic, tables, asked, "p_value")
    return -values_of(statistic, tables, asked)


def are_allowed(tables: Tables, asked: np.ndarray) -> np.ndarray:
    """Whether public facts allow each test: what :func:`~dpcgd.statistics.statistic.refusal` says.

    Parameters are those of :func:`values_of`; value a boolean array.
    """
    return tables.n >= RECORDS_PER_CELL * _levels(tables, asked).astype(float).prod(axis=1)


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
    determined = np.zeros((len(asked), asked.shape[1] - 2), bool)
    constant = np.flatnonzero(_are_constant(tables, asked))
    for i in range(determined.shape[1]):
        for turned in ((0, 1, 2 + i), (2 + i, 1, 0), (0, 2 + i, 1)):
            determined[constant, i] |= _are_constant(tables, asked[constant][:, turned])
    return determined


def _are_constant(tables, asked) -> np.ndarray:
    """Which tests have no degree of freedom, as x or y is constant in each stratum."""
    return _of_each(AdjustedChiSquared(), tables, asked, "freedom") == 0


def sensitivities_of(statistic: Statistic, tables: Tables, asked: np.ndarray) -> np.ndarray:
    """The statistic's sensitivity for each table; asked once for tables of the same levels.

    Parameters and value are those of :func:`values_of`.
    """
    sensitivity = cache(partial(statistic.sensitivity, tables.n))
    shapes = map(tuple, _levels(tables, asked).tolist())
    return np.array([sensitivity(shape) for shape in shapes], float)


def are_compiled(statistic: Statistic, tables: Tables) -> bool:
    """Whether many tables at once are faster than one after the other."""
    asked: tuple[object, ...] = statistic, getattr(statistic, "z", statistic), tables
    able = hasattr(statistic, "values") and hasattr(tables, "count_all")
    return able and all(map(_agrees, map(type, asked))) and tables.n <= MOST_EXACT


def _levels(tables, asked) -> np.ndarray:
    """Public levels of the variables of each test."""
    return np.array(tables.shape(range(asked.max(initial=-1) + 1)), np.int64)[asked]


@cache
def _agrees(kind) -> bool:
    return all(agree(kind, one, many) for one, many in PLURALS.items())
