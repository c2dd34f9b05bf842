"""Statistics of many tables at once; those of the package are compiled."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counted, agree, in_batches
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared
from dpcgd.statistics.statistic import MOST_EXACT, RECORDS_PER_CELL, Statistic, alone

__all__ = ["are_compiled", "are_determined"]
__all__ += ["nearnesses_of", "value_of", "values_of", "where_allowed"]

Results = Callable[[Statistic, Tables, np.ndarray], np.ndarray]
"""A function such as :func:`values_of`."""


_agree: Callable[[Any, str, str], bool] = cache(agree)


def values_of(
    statistic: Statistic, tables: Tables, asked: Sequence[Sequence[int]] | np.ndarray
) -> np.ndarray:
    """The statistic of each table of equally many variables.

    Parameters
    ----------
    statistic : Statistic
    tables : Tables
    asked : sequence of sequences of int, or integer array, shape (tables, variables)
        x, y and the conditioning variables of each table.

    Returns
    -------
    array, shape (tables,)
        ``statistic.value`` of each table, up to the last digits; 0 in place of what is no number.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.statistics.rank_statistics import KendallZ
    >>> tables = Tables(load("asia", n=1000, rng=np.random.default_rng(0)))
    >>> values_of(KendallZ(), tables, [[0, 1], [0, 2]]).round(2)
    array([0.01, 0.18])
    """
    asked = np.asarray(asked, np.int64)
    if values_of_many := _function_of_many(statistic):
        return _of_each(values_of_many, tables, asked)
    return np.nan_to_num([float(statistic.value(tables.counts(t))) for t in asked.tolist()])


def _of_each(results_of, tables, asked) -> np.ndarray:
    """The values of a function of many tables, counted together if possible."""
    counted = (alone(tables.counts(tested)) for tested in asked.tolist())
    if _counts_many(tables):
        counted = (tables.count_all(few) for few in in_batches(asked))
    return np.concatenate([np.empty(0), *map(results_of, counted)])


def value_of(statistic: Statistic, tables: Tables, tested: Sequence[int]) -> float:
    """The statistic of one table, as by :func:`values_of`."""
    return float(values_of(statistic, tables, [tested])[0])


def nearnesses_of(statistic: Statistic, tables: Tables, asked: np.ndarray) -> np.ndarray:
    """Grades of nearness to independence: p-values, or minus statistics of one scale.

    Parameters and result are as for :func:`values_of`.
    """
    if p_values := getattr(statistic, "p_values", None):
        return _of_each(p_values, tables, asked)
    return -values_of(statistic, tables, asked)


def where_allowed(results_of: Results, statistic: Statistic, tables: Tables, asked) -> np.ndarray:
    """The values of a function of many tests; infinite for tests that public facts do not allow.

    :func:`~dpcgd.statistics.statistic.refusal` decides which tests are allowed.
    """
    tested, results = np.array(asked, np.int64), np.full(len(asked), math.inf)
    levels = np.array(tables.shape(range(tested.max(initial=-1) + 1)), float)[tested]
    allowed = tables.n >= RECORDS_PER_CELL * levels.prod(axis=1)
    results[allowed] = results_of(statistic, tables, tested[allowed])
    return results


def are_determined(tables: Tables, asked: np.ndarray) -> np.ndarray:
    """The conditioning variables because of which a test has no degree of freedom.

    They determine x or y, or are determined by it. In each stratum of a copy of x, or of variables
    that determine x, x has one level only. The test then finds independence from x of any variable.

    Parameters are as for :func:`values_of`. The result is a boolean array with a column for each
    conditioning variable. It depends on the records.

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
    """Which tests have no degree of freedom, because x or y is constant in each stratum."""
    return _of_each(AdjustedChiSquared().freedoms, tables, asked) == 0


def are_compiled(statistic: Statistic, tables: Tables) -> bool:
    """Whether it is faster to count these tables together."""
    return _function_of_many(statistic) is not None and _counts_many(tables)


def _function_of_many(statistic: Any) -> Callable[[Counted], np.ndarray] | None:
    """A statistic's own function of many tables, if it agrees with the definition for one table."""
    kinds = type(statistic), type(getattr(statistic, "z", statistic))
    agreed = all(_agree(kind, "value", "values") for kind in kinds)
    return getattr(statistic, "values", None) if agreed else None


def _counts_many(tables) -> bool:
    able = hasattr(tables, "count_all") and _agree(type(tables), "counts", "count_all")
    return able and tables.n <= MOST_EXACT
