"""Answers to questions that a search asks one at a time, worked out some at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from dpcgd.graphs.pc_search import conditioning_sets, neighbours_of

__all__ = ["Ahead"]

FIRST = 6
"""So many sets of each pair are looked at together at first."""

MOST = 64
"""At most so many sets of a pair are looked at together."""

TOGETHER = 64
"""So many pairs are looked at further together."""

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
        From tests to what they tell. After :meth:`begin_order` all have equally many variables.
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
        self.begin({})

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.Oracle` has it."""
        neighbours, pairs = neighbours_of(joined), np.argwhere(to_test).tolist()
        self.begin({(x, y): conditioning_sets(x, y, neighbours, order) for x, y in pairs})

    def begin(self, sets: dict[Test, Iterator[Test]]) -> None:
        """Note the sets that each pair will be asked about, one after the other."""
        self._known: dict[Test, _Result] = {}
        self._sets = sets
        self._many = dict.fromkeys(self._sets, FIRST)
        self._waiting, self._likely_done = deque(self._sets), set[tuple[int, ...]]()

    def of(self, test: Test) -> _Result:
        """What a test tells."""
        if test not in self._known:
            pairs = self._pairs_from(test[:2]) if self._known else [*self._sets]
            tests = [given for pair in pairs for given in self._next_of(pair)]
            if test not in tests:
                tests.append(test)
            results = self._work(tests)
            self._known |= zip(tests, results, strict=True)
            ending = (t for t in tests if self._separates(self._known[t]))
            self._likely_done.update(t[:2] for t in ending)
        return self._known[test]

    def _pairs_from(self, pair) -> list[Test]:
        """The pair, and some after it that nothing has separated so far."""
        while self._waiting and self._waiting[0] != pair:
            self._waiting.popleft()
        after = islice(self._waiting, 1, TOGETHER)
        return [pair, *(other for other in after if other not in self._likely_done)]

    def _next_of(self, pair) -> list[Test]:
        """The next tests of a pair: each time twice as many as before."""
        many = self._many.get(pair, 0)
        self._many[pair] = min(2 * many, MOST)
        return [(*pair, *given) for given in islice(self._sets.get(pair, ()), many)]
