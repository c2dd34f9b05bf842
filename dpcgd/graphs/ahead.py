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
        self._order, self._neighbours = 0, list[list[int]]()
        self._pairs: list[list[int]] = []  # whose first sets have not been looked at
        self._known: dict[Test, _Result] = {}
        self._left: dict[tuple[int, int], Iterator[Test]] = {}
        self._many: dict[tuple[int, int], int] = {}

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.OrderOracle` has it."""
        self._order, self._neighbours = order, neighbours_of(joined)
        self._pairs = np.argwhere(to_test).tolist()
        self._known, self._left, self._many = {}, {}, {}

    def of(self, test: Test) -> _Result:
        """What a test tells."""
        if (known := self._known.get(test)) is not None:
            return known
        tests = list(dict.fromkeys((test, *self._next(test[:2]))))
        self._known |= zip(tests, self._work(tests), strict=True)
        return self._known[test]

    def _next(self, pair) -> list[Test]:
        if self._pairs:
            pairs, self._pairs = self._pairs, []
            return [(x, y, *s) for x, y in pairs for s in islice(self._sets(x, y), self._first)]
        if pair not in self._left:
            self._left[pair] = islice(self._sets(*pair), self._first, None)
        self._many[pair] = many = min(2 * self._many.get(pair, self._first), MOST)
        return [(*pair, *given) for given in islice(self._left[pair], many)]

    def _sets(self, x, y) -> Iterator[Test]:
        if not self._neighbours:
            return iter(())
        return conditioning_sets(x, y, self._neighbours, self._order)
