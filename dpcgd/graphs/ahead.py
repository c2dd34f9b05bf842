"""Answers to questions that a search asks one at a time, worked out some at a time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from dpcgd.graphs.pc_search import conditioning_sets, neighbours_of

__all__ = ["Ahead"]

MOST = 64
"""Sets of a pair that are looked at together at most."""

Test = tuple[int, ...]
"""x, y and the conditioning variables."""

_Result = TypeVar("_Result")


class Ahead(Generic[_Result]):
    """What tests tell, worked out together with what a search asks for next.

    The first sets of all pairs are looked at together; then, where a pair is asked about further,
    twice as many of its sets each time: little is worked out in vain.

    Parameters
    ----------
    work : callable
        From tests given equally many variables to what they tell.
    first : int
        Sets of each pair that are looked at together at first.

    Privacy
    -------
    None: where the work touches data, what asks must have been paid. What was worked out and is not
    asked for leaves no trace.

    Examples
    --------
    >>> squares = Ahead(lambda tests: [x * y for x, y, *_ in tests], 1)
    >>> squares.of((3, 4))
    12
    """

    def __init__(self, work: Callable[[Sequence[Test]], Sequence[_Result]], first: int):
        self._work, self._first = work, first
        self._known: dict[Test, _Result] = {}
        self._left: dict[tuple[int, int], Iterator[Test]] = {}
        self._many: dict[tuple[int, int], int] = {}

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.OrderOracle` has it."""
        neighbours = neighbours_of(joined)
        self._known, self._many = {}, {}
        self._left = {
            (x, y): _tests(x, y, neighbours, order) for x, y in np.argwhere(to_test).tolist()
        }

    def of(self, test: Test) -> _Result:
        """What a test tells."""
        if test not in self._known:
            tests = dict.fromkeys((test, *self._next(test[:2])))
            self._known |= zip(tests, self._work(list(tests)), strict=True)
        return self._known[test]

    def _next(self, pair) -> list[Test]:
        if not self._many:
            self._many = dict.fromkeys(self._left, self._first)
            return [test for left in self._left.values() for test in islice(left, self._first)]
        self._many[pair] = many = min(2 * self._many.get(pair, 1), MOST)
        return list(islice(self._left.get(pair, ()), many))


def _tests(x, y, neighbours, order) -> Iterator[Test]:
    return ((x, y, *given) for given in conditioning_sets(x, y, neighbours, order))
