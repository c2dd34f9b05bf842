"""The PC algorithm: it asks an oracle, and learns of the data by its answers only."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, dropwhile, filterfalse, islice
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dpcgd.graphs.cpdag import CPDAG, meek
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.privacy.budget import BudgetSpent

__all__ = ["Ahead", "Answers", "Found", "GradingOracle", "Oracle", "Triple", "search"]

FIRST = 6
"""So many sets of each pair are looked at together at first."""

TOGETHER = 64
"""At most so many sets of a pair, and so many pairs, are looked at further together."""

Pair = tuple[int, int]

Set = tuple[int, ...]
"""The variables that a pair is tested given."""

Triple = tuple[int, int, int]
"""Two variables that are not joined, around a middle one that both are joined to."""

Test = tuple[int, ...]
"""x, y and the conditioning variables."""

_Result = TypeVar("_Result")


class Oracle(Protocol):
    """Answers the one question a search asks.

    It may have two more methods. ``begin_order(order, joined, to_test)`` is called before the tests
    given so many variables, so that the oracle may plan, look ahead, or raise BudgetSpent. Both
    arrays are boolean copies: `joined` is symmetric and holds the pairs still joined, `to_test`
    those of them with x < y that will be asked about.

    ``unconfirmed(joined)`` is called in the end. Of the pairs still joined, a symmetric boolean
    copy, it returns those whose edge no test has confirmed.
    """

    def separates(self, x: int, y: int, given: Set) -> bool | None:
        """Whether variables x and y are independent given these.

        None says that public facts do not allow the test: the pair stays joined, untested. May
        raise BudgetSpent.
        """


class GradingOracle(Oracle, Protocol):
    """An oracle that also tells how clearly sets separate, at no cost."""

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> Sequence[float | None]:
        """How near each x and y are to independence given a set; all sets are of one size.

        A p-value, or what is ordered as one. None as for ``separates``.
        """


@dataclass(frozen=True)
class Answers:
    """What a search asked test by test, and what it learned.

    Attributes
    ----------
    separating_sets : dict
        For each pair of variables that the oracle separated, the set that did it.
    untested : frozenset
        Pairs that no test has separated and none has confirmed: knowledge, public facts or the end
        of the budget decided. Where they are kept they are edges; where they are dropped they are
        no edges, but nothing has shown them to be apart.
    tests : int
        How often the oracle was asked.
    stopped_early : bool
        True if the oracle could no longer pay; the edges not yet removed were kept.
    """

    separating_sets: dict[frozenset[str], tuple[str, ...]]
    untested: frozenset[frozenset[str]]
    tests: int
    stopped_early: bool


@dataclass(frozen=True)
class Found(Answers):
    """What a search returns: its graph, and the attributes of :class:`Answers`."""

    graph: CPDAG

    @property
    def answers(self) -> Answers:
        """What a release holds of it beside the graph."""
        return Answers(self.separating_sets, self.untested, self.tests, self.stopped_early)


def search(
    oracle: Oracle,
    variables: Sequence[str],
    *,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
    grading: GradingOracle | None = None,
    untested: str = "keep",
) -> Found:
    """The PC algorithm in its order-independent form (PC-stable).

    Parameters
    ----------
    oracle : Oracle
    variables : sequence of str
        Their names; the oracle is asked by position.
    max_order : int
        Largest conditioning set.
    knowledge : Knowledge, optional
    grading : GradingOracle, optional
        Asked about every set of neighbours in the end: a middle variable is a collider if the set
        that separates its two neighbours most clearly is without it, and not, as usual, if the
        first one is. The graph then does not depend on the order of the variables. It takes more
        tests: for answers that cost nothing.
    untested : str
        Whether pairs that no test has confirmed are to "keep" their edge or to "drop" it; what
        knowledge requires stays.

    Returns
    -------
    Found

    Raises
    ------
    ValueError
        If `max_order` is negative, `untested` another word, or the knowledge names unknown
        variables.

    Privacy
    -------
    A function of the oracle's answers and of public facts only: orientation is post-processing.

    Notes
    -----
    Colombo and Maathuis (2014) for the skeleton, Ramsey (2016) for colliders by the clearest set,
    Meek (1995) for the rules. Two colliders that demand opposite arrowheads on one edge leave it
    undirected: their order does not matter; with grades the clearer one holds. An oracle that is
    right finds the class of the true graph: chapter 01, :prf:ref:`thm-pc-oracle`.

    Examples
    --------
    >>> class Collider:
    ...     def separates(self, x, y, given):
    ...         return {x, y} == {0, 1} and 2 not in given
    >>> print(search(Collider(), ["rain", "sprinkler", "wet"]).graph)
    rain -> wet
    sprinkler -> wet
    """
    if max_order < 0:
        raise ValueError(f"max_order must be 0 or more, not {max_order}")
    check_untested(untested)
    forbidden, required = (knowledge or Knowledge()).arrays(variables)
    skeleton, stopped_early = _Skeleton(forbidden, required), False
    try:
        for order in range(max_order + 1):
            if skeleton.joined.sum(axis=1).max() <= order:
                break
            skeleton.ask(oracle, order)
    except BudgetSpent:
        stopped_early = True
    unconfirmed = skeleton.unconfirmed(oracle)
    left_out = unconfirmed & skeleton.removable & (untested == "drop")
    first = {pair: [(given, 0.0)] for pair, given in skeleton.separated.items()}
    grades = _grades(grading, skeleton, max_order) if grading else first
    colliders = _colliders(skeleton, grades)
    arcs = _orient(skeleton.joined & ~left_out, colliders, forbidden, left_out)

    def names(columns):
        return tuple(variables[v] for v in columns)

    return Found(
        separating_sets={frozenset(names(p)): names(s) for p, s in skeleton.separated.items()},
        untested=frozenset(frozenset(names(p)) for p in np.argwhere(np.triu(unconfirmed)).tolist()),
        tests=skeleton.tests,
        stopped_early=stopped_early,
        graph=CPDAG(variables, arcs),
    )


def check_untested(untested: str) -> None:
    """Refuse what is no answer to what becomes of pairs that no test has confirmed.

    Raises
    ------
    ValueError
        If it is neither "keep" nor "drop".
    """
    if untested not in ("keep", "drop"):
        raise ValueError(f"untested must be 'keep' or 'drop', not {untested!r}")


class _Skeleton:
    """The pairs that are still joined, and the sets that separated the others."""

    def __init__(self, forbidden, required):
        self.joined = ~(forbidden & forbidden.T)
        np.fill_diagonal(self.joined, False)
        self.removable = self.joined & ~required & ~required.T
        self.tested = np.zeros_like(self.joined)
        self.separated: dict[Pair, Set] = {}
        self.tests = 0

    def ask(self, oracle, order):
        """Remove every edge that some set of this size separates.

        The sets are of neighbours at the beginning of the order. What was asked counts even if the
        budget ends in between.
        """
        neighbours = neighbours_of(self.joined)
        to_test = np.triu(self.joined & self.removable)
        if to_test.any() and hasattr(oracle, "begin_order"):
            oracle.begin_order(order, self.joined.copy(), to_test.copy())
        for x, y in np.argwhere(to_test).tolist():
            for given in conditioning_sets(x, y, neighbours, order):
                independent = oracle.separates(x, y, given)
                self.tests += 1
                if independent is not None:
                    self.tested[x, y] = True
                if independent:
                    self.joined[x, y] = self.joined[y, x] = False
                    self.separated[x, y] = given
                    break

    def unconfirmed(self, oracle) -> np.ndarray:
        """Pairs still joined that no test has confirmed."""
        never = self.joined & ~(self.tested | self.tested.T)
        if hasattr(oracle, "unconfirmed"):
            never |= self.joined & oracle.unconfirmed(self.joined.copy())
        return never

    def middles(self) -> dict[Pair, list[int]]:
        """For each pair that was separated the variables that both are joined to, if any."""
        both = {(x, y): self.joined[x] & self.joined[y] for x, y in self.separated}
        return {pair: np.flatnonzero(held).tolist() for pair, held in both.items() if held.any()}


def neighbours_of(joined: np.ndarray) -> list[list[int]]:
    """The neighbours of each variable."""
    return [np.flatnonzero(row).tolist() for row in joined]


def conditioning_sets(x, y, neighbours, order) -> Iterator[Set]:
    """Sets of this size among the neighbours of x, then those only among the neighbours of y."""
    near_x = [v for v in neighbours[x] if v != y]
    near_y = [v for v in neighbours[y] if v != x]
    yield from combinations(near_x, order)
    yield from filterfalse(set(near_x).issuperset, combinations(near_y, order))


@dataclass(eq=False)
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

    work: Callable[[Sequence[Test]], Sequence[_Result]]
    separates: Callable[[_Result], bool]

    def __post_init__(self):
        self.begin({})

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.Oracle` has it."""
        neighbours, pairs = neighbours_of(joined), np.argwhere(to_test).tolist()
        self.begin({(x, y): conditioning_sets(x, y, neighbours, order) for x, y in pairs})

    def begin(self, sets: dict[Test, Iterator[Test]]) -> None:
        """Note the sets that each pair will be asked about, one after the other."""
        self._known: dict[Test, _Result] = {}
        self._sets, self._many = sets, dict.fromkeys(sets, FIRST)
        self._likely_done: set[Test] = set()

    def of(self, test: Test) -> _Result:
        """What a test tells."""
        if test not in self._known:
            pairs = self._pairs_from(test[:2]) if self._known else [*self._sets]
            tests = [given for pair in pairs for given in self._next_of(pair)]
            if test not in tests:
                tests.append(test)
            self._known |= zip(tests, self.work(tests), strict=True)
            self._likely_done |= {t[:2] for t in tests if self.separates(self._known[t])}
        return self._known[test]

    def _pairs_from(self, pair) -> list[Test]:
        """The pair, and some after it that nothing has separated so far."""
        after = islice(dropwhile(pair.__ne__, self._sets), 1, TOGETHER)
        return [pair, *(other for other in after if other not in self._likely_done)]

    def _next_of(self, pair) -> list[Test]:
        """The next tests of a pair: each time twice as many as before."""
        many = self._many.get(pair, 0)
        self._many[pair] = min(2 * many, TOGETHER)
        return [(*pair, *given) for given in islice(self._sets.get(pair, ()), many)]


class AsksAhead:
    """An oracle that works out together what it will be asked."""

    _ahead: Ahead[Any]

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Note what will be asked, as :class:`~dpcgd.graphs.pc_search.Oracle` has it."""
        self._ahead.begin_order(order, joined, to_test)


def _colliders(skeleton, grades) -> dict[Triple, float]:
    """Middles that are not in the set that separates their neighbours most clearly, and how clear.

    A pair that hangs together weakly is separated by nearly any set, and a chain passes for a
    collider; given its middle it is nearest to independence. A collider is clear if the pair is far
    from independence given every set that holds it.
    """
    colliders = {}
    for (x, y), between in skeleton.middles().items():
        for c in between:
            with_c = max((near for s, near in grades[x, y] if c in s), default=-math.inf)
            without = max((near for s, near in grades[x, y] if c not in s), default=-math.inf)
            if without > with_c:
                colliders[x, c, y] = -with_c
    return colliders


def _grades(grading, skeleton, max_order) -> dict[Pair, list[tuple[Set, float]]]:
    """For each pair the sets of neighbours of either, and how near to independence it is then."""
    pairs, neighbours = skeleton.middles(), neighbours_of(skeleton.joined)
    grades: dict[Pair, list[tuple[Set, float]]] = {pair: [] for pair in pairs}
    for order in range(max_order + 1):
        tests = [(x, y, s) for x, y in pairs for s in conditioning_sets(x, y, neighbours, order)]
        for (x, y, given), near in zip(tests, grading.nearnesses(tests), strict=True):
            if near is not None:
                grades[x, y].append((given, near))
    return grades


def _orient(adjacent, colliders, forbidden, left_out) -> np.ndarray:
    """Colliders first, the clearest before the others, then all that Meek's rules force."""
    arcs = adjacent & ~forbidden
    settled = np.zeros_like(arcs)
    for clarity in sorted(set(colliders.values()), reverse=True):
        heads = np.zeros_like(arcs)
        for (x, c, y), own in colliders.items():
            if own == clarity and (arcs[[x, y], c] & ~settled[c, [x, y]]).all():
                heads[x, c] = heads[y, c] = True
        settled |= heads & ~heads.T
    return meek(arcs & ~settled.T, untested=left_out | (forbidden & forbidden.T))
