"""Statistics of tests that are asked for one at a time, worked out some at a time."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import conditioning_sets, neighbours_of
from dpcgd.statistics.many_tables import are_allowed, are_compiled, value_of, values_of
from dpcgd.statistics.statistic import Statistic

__all__ = ["ValuesAhead"]

MOST_AHEAD = 64
"""Tests worked out together at most, and first tests of pairs."""


class ValuesAhead:
    """Values of a statistic, worked out together with those that a search asks for next.

    The first question about a pair looks at nothing else, the next one at two, then at four: little
    is worked out in vain. At order 0 pairs have one question each, and are looked at together.

    Parameters
    ----------
    statistic : Statistic
    tables : Tables

    Privacy
    -------
    None: it touches the data, and is for queries that have been paid. What has been worked out and
    was not asked for leaves no trace.
    """

    def __init__(self, statistic: Statistic, tables: Tables):
        self._statistic, self._tables = statistic, tables
        self._compiled = are_compiled(statistic, tables)
        self._known: dict[tuple[int, ...], float] = {}
        self._left: Iterator[tuple[int, ...]] = iter(())
        self._pair: tuple[int, ...] | None = None

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """What will be asked, by public facts and by what has been released."""
        self._order, self._neighbours = order, neighbours_of(joined)
        self._pairs = np.argwhere(to_test).tolist() if order == 0 else []
        self._pair, self._known = None, {}

    def of(self, tested: tuple[int, ...]) -> float:
        """The value of a test: x, y and the conditioning variables."""
        if not (self._compiled and hasattr(self, "_order")):
            return value_of(self._statistic, self._tables, tested)
        if tested not in self._known:
            self._look(tested)
        return self._known[tested]

    def _look(self, tested):
        asked = [tested, *(test for test in self._next(tested) if test != tested)]
        asked = np.array(asked, np.int64)
        asked = asked[are_allowed(self._tables, asked) | (np.arange(len(asked)) == 0)]
        values = values_of(self._statistic, self._tables, asked).tolist()
        self._known |= zip(map(tuple, asked.tolist()), values, strict=True)

    def _next(self, tested) -> Iterator[tuple[int, ...]]:
        """What may be asked after this one."""
        x, y = pair = tested[:2]
        if self._order == 0:
            self._left = self._left if self._pair else map(tuple, self._pairs)
            self._pair, many = pair, MOST_AHEAD
        elif pair != self._pair:
            sets = conditioning_sets(x, y, self._neighbours, self._order)
            self._left, self._pair = ((x, y, *given) for given in sets), pair
            self._known, self._many = {}, 1
            many = 1
        else:
            many = self._many = min(2 * self._many, MOST_AHEAD)
        return islice(self._left, many)
