"""Attacks on sensitivities: the neighbours between which a statistic moves most.

Nothing here is private. It takes data apart that was made up for the purpose.
"""

import math
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from dpcgd.statistics.statistic import Statistic

__all__ = ["Worst", "every_neighbour", "sensitivity_search"]

Value = Callable[[np.ndarray], float]


PATIENCE = 150
"""A search starts again from a random table after this many steps without progress."""


EQUAL = 1e-8
"""Changes this close, in parts of themselves, are equal: their last digits differ by machine."""


class Worst(NamedTuple):
    """The neighbouring tables between which a statistic was found to change most.

    Attributes
    ----------
    change : float
        Of the statistic.
    table, neighbour : integer arrays
        They differ in one record.
    pairs : int
        How many pairs of neighbours were compared.
    """

    change: float
    table: np.ndarray
    neighbour: np.ndarray
    pairs: int


def _beats(new: Worst, best: Worst) -> bool:
    """Whether it is worse by more than rounding; of equals the first stays."""
    return new.change > best.change * (1 + EQUAL)


def _worst(candidates: Iterable[Worst]) -> Worst:
    return reduce(lambda best, new: new if _beats(new, best) else best, candidates)


def _over_one_record(statistic: Statistic | Value, others: np.ndarray) -> Worst:
    """The worst pair among all tables that add one record to these."""
    value: Any = getattr(statistic, "value", statistic)
    tables = others + np.eye(others.size, dtype=int).reshape(-1, *others.shape)
    values = np.array([value(table) for table in tables])
    near = EQUAL * np.ptp(values)
    largest, smallest = values >= values.max() - near, values <= values.min() + near
    high, low = np.flatnonzero(largest)[-1], np.flatnonzero(smallest)[0]
    change = float(values[high] - values[low])
    return Worst(change, tables[high], tables[low], math.comb(others.size, 2))


def every_neighbour(statistic: Statistic | Value, n: int, levels: tuple[int, ...]) -> Worst:
    """The worst pair of all tables of n records, by trying them all.

    Parameters
    ----------
    statistic : Statistic or callable
        A statistic, or any function from a table of counts to a number.
    n : int
        Records. There are C(n + cells - 2, n - 1) tables to try.
    levels : tuple of int
        Shape of the table.

    Examples
    --------
    >>> from dpcgd.statistics.categorical_statistics import chi_squared
    >>> worst = every_neighbour(chi_squared, 5, (2, 2))
    >>> round(worst.change, 9), worst.pairs
    (5.0, 210)
    """
    cells = math.prod(levels)
    crowds = combinations_with_replacement(range(cells), n - 1)
    tables = (np.bincount(crowd, minlength=cells).reshape(levels) for crowd in crowds)
    worst = _worst(_over_one_record(statistic, others) for others in tables)
    return worst._replace(pairs=worst.pairs * math.comb(n + cells - 2, n - 1))


def sensitivity_search(
    statistic: Statistic | Value, n: int, levels: tuple[int, ...], *, pairs: int, rng: Generator
) -> Worst:
    """The worst pair of tables of n records that hill climbing finds.

    Parameters
    ----------
    statistic : Statistic or callable
        A statistic, or any function from a table of counts to a number.
    n : int
        Records.
    levels : tuple of int
        Shape of the table.
    pairs : int
        Stop when this many pairs of neighbours have been compared.
    rng : numpy.random.Generator

    Returns
    -------
    Worst
        A lower bound of the sensitivity: what is proved must be at least this.

    Notes
    -----
    It starts from records that are spread over cells in very uneven shares. A step moves a crowd of
    records from one cell to another and keeps what makes the worst replaced record worse, or as
    bad. All places of one record are tried at once, so a step compares C(cells, 2) pairs at the
    price of as many tables as there are cells. Changes that differ by rounding alone count as
    equal, so that a seed climbs the same way on every machine.

    Examples
    --------
    >>> from dpcgd.statistics.rank_statistics import KendallZ
    >>> kendall = KendallZ()
    >>> worst = sensitivity_search(kendall, 1000, (2, 2, 2), pairs=20_000,
    ...                            rng=np.random.default_rng(0))
    >>> 0.9 < worst.change / kendall.sensitivity(1000, (2, 2, 2)) <= 1
    True
    """
    climbed, seen, cells = [], 0, math.prod(levels)
    while seen < pairs:
        uneven = rng.dirichlet(np.full(cells, rng.choice([0.05, 0.3, 1.0])))
        others = rng.multinomial(n - 1, uneven).reshape(levels)
        top = _over_one_record(statistic, others)
        seen, stuck = seen + top.pairs, 0
        while stuck < PATIENCE and seen < pairs:
            moved = _move_a_crowd(others, rng)
            new = _over_one_record(statistic, moved)
            seen, stuck = seen + new.pairs, stuck + 1
            if not _beats(top, new):
                others = moved
            if _beats(new, top):
                top, stuck = new, 0
        climbed.append(top)
    return _worst(climbed)._replace(pairs=seen)


def _move_a_crowd(table: np.ndarray, rng: Generator) -> np.ndarray:
    """The same records, but some of one cell are now in another."""
    table = table.copy()
    source = rng.choice(np.flatnonzero(table))
    size = table.flat[source]
    crowd = rng.choice([1, size, rng.integers(1, size + 1), max(1, size // 2), max(1, size // 16)])
    table.flat[source] -= crowd
    table.flat[rng.integers(table.size)] += crowd
    return table
