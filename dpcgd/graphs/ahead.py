"""Answers to questions that a search asks one at a time, worked out some at a time."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from dpcgd.graphs.pc_search import conditioning_sets, neighbours_of

__all__ = ["Ahead"]

FIRST = 6
"""Sets of each pair that are looked at together at first."""

MOST = 64
"""Sets of a pair that are looked at together at most."""

TOGETHER = 64
"""Pairs that are looked at further together."""

Test = tuple[int, ...]
"""x, y and the conditioning variables."""

_Result = TypeVar("_Result")


class Ahead(Generic[_Result]):
    """What tests tell, worked out together with what a search asks for next.

    The first sets of all pairs are looked at together. Where a pair is asked about further, twice
    as many of its sets are each time, and as many of some pairs after it, but of those that are
    likely to be separated by what has been found: little is worked out in vain.

    Parameters
    ----------
    work : callable
        From tests given equally many variables to what they tell.
    separates : callable
        Whether what a test tells is likely to end the questions about its pair.

    Privacy
    -------
    None: where the work touches data, what asks must have been paid. What was worked out and is not
    asked for leaves no trace.

    Examples
    --------
    >>> squares = Ahead(lambda tests: [x * y for x, y, *_ in tests], lambda result: result < 0)
    >>> squares.of((3, 4))
    12
    """

    def __init__(
        self,
        work: Callable[[Sequence[Test]], Sequence[_Result]],
        separates: Callable[[_Result], bool],
    ):
        self._work, self._separates = work, separates
        self._begin(0, [], [])

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.OrderOracle` has it."""
        self._begin(order, neighbours_of(joined), np.argwhere(to_test).tolist())

    def _begin(self, order, neighbours, pairs):
        self._known: dict[Test, _Result] = {}
        self._left = {(x, y): conditioning_sets(x, y, neighbours, order) for x, y in pairs}
        self._many = dict.fromkeys(self._left, FIRST)
        self._waiting, self._likely_done = deque(self._left), set[tuple[int, int]]()

    def of(self, test: Test) -> _Result:
        """What a test tells."""
        if (known := self._known.get(test)) is None:
            tests = self._next(test[:2]) if self._known else self._of(self._left)
            if test not in tests:
                tests.append(test)
            self._learn(tests)
            known = self._known[test]
        return known

    def _learn(self, tests):
        found = self._work(tests)
        self._known |= zip(tests, found, strict=True)
        separates = self._separates
        self._likely_done.update(
            (x, y) for (x, y, *_), result in zip(tests, found, strict=True) if separates(result)
        )

    def _next(self, pair) -> list[Test]:
        """More sets of a pair, and of some after it."""
        while self._waiting and self._waiting[0] != pair:
            self._waiting.popleft()
        some = islice(self._waiting, 1, TOGETHER)
        return self._of([pair, *(other for other in some if other not in self._likely_done)])

    def _of(self, pairs) -> list[Test]:
        tests = [
            (*pair, *given)
            for pair in pairs
            if pair in self._left
            for given in islice(self._left[pair], self._many[pair])
        ]
        self._many |= (
            (pair, min(2 * self._many[pair], MOST)) for pair in pairs if pair in self._many
        )
        return tests
