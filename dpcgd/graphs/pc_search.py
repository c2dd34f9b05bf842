"""The PC algorithm: it asks an oracle, and knows the data by the oracle's answers only."""

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
"""Number of conditioning sets of each pair that are tested together at first."""

TOGETHER = 64
"""Later at most this many sets of a pair, and this many pairs, are tested together."""

Pair = tuple[int, int]

Set = tuple[int, ...]
"""A conditioning set."""

Triple = tuple[int, int, int]
"""Two variables without an edge, and between them a neighbour of both."""

Test = tuple[int, ...]
"""A test: x, y and the conditioning variables."""

_Result = TypeVar("_Result")


class Oracle(Protocol):
    """Answers the question of a search: are two variables independent given others?

    An oracle may have two more methods. ``begin_order(order, joined, to_test)`` is called before
    the tests of each order, so that the oracle may plan, prepare, or raise BudgetSpent. Both arrays
    are boolean copies: `joined` is symmetric and holds the pairs still joined, `to_test` those of
    them with x < y that will be tested.

    ``unconfirmed(joined)`` is called at the end, with a symmetric boolean copy of the pairs still
    joined. It returns those whose edge no test has confirmed.
    """

    def separates(self, x: int, y: int, given: Set) -> bool | None:
        """Whether variables x and y are independent given these.

        None says that public facts do not allow the test: the pair stays joined, untested. May
        raise BudgetSpent.
        """


class GradingOracle(Oracle, Protocol):
    """An oracle that also grades how clearly sets separate a pair, at no cost."""

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> Sequence[float | None]:
        """Grades of how near x and y are to independence given each set; all sets have one size.

        A grade is a p-value, or a number with the same order. None as for ``separates``.
        """


@dataclass(frozen=True)
class Answers:
    """The answers of a search that tests pair by pair.

    Attributes
    ----------
    separating_sets : dict
        The separating set of each pair of variables that the oracle separated.
    untested : frozenset
        Pairs that no test has separated or confirmed: knowledge, public facts or the end of the
        budget decided. If they are kept, they are edges. If they are dropped, they are no edges,
        but no test has separated them.
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
    """The result of a search: its graph, and the attributes of :class:`Answers`."""

    graph: CPDAG

    @property
    def answers(self) -> Answers:
        """The part of the result that a release holds beside the graph."""
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
        Names of the variables; the oracle gets their positions.
    max_order : int
        Largest conditioning set.
    knowledge : Knowledge, optional
    grading : GradingOracle, optional
        Asked about every set of neighbours at the end. A middle variable is a collider if the set
        that separates its two neighbours most clearly does not contain it; usually the first
        separating set decides. The graph then does not depend on the order of the variables. This
        takes more tests, so it is for oracles whose answers cost nothing.
    untested : str
        Whether pairs that no test has confirmed "keep" or "drop" their edge. Required edges are
        kept.

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
    undirected, so their order does not matter; with grades the clearer collider decides. A perfect
    oracle gives the CPDAG of the true graph: chapter 01, :prf:ref:`thm-pc-oracle`.

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
    arcs = _orient(skeleton.joined & ~left_out, _colliders(skeleton, grades), forbidden, left_out)

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
    """Refuse an unusable rule for pairs that no test has confirmed.

    Raises
    ------
    ValueError
        If it is neither "keep" nor "drop".
    """
    if untested not in ("keep", "drop"):
        raise ValueError(f"untested must be 'keep' or 'drop', not {untested!r}")


class _Skeleton:
    """The state of a search: the pairs still joined, and the separating sets of the others."""

    def __init__(self, forbidden, required):
        self.joined = ~(forbidden & forbidden.T)
        np.fill_diagonal(self.joined, False)
        self.removable = self.joined & ~required & ~required.T
        self.tested = np.zeros_like(self.joined)
        self.separated: dict[Pair, Set] = {}
        self.tests = 0

    def ask(self, oracle, order):
        """Remove every edge that some set of this size separates.

        The sets consist of neighbours at the beginning of the order. Answers count even if the
        budget ends within the order.
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
        """For each separated pair, the common neighbours, if any."""
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
    """Results of tests, computed together with tests that a search is likely to ask for next.

    The first sets of all pairs are tested together. If a pair needs more tests, twice as many of
    its sets are tested each time, and as many sets of some later pairs. Pairs that are likely to be
    separated by known results are left out, so few tests are wasted.

    Parameters
    ----------
    work : callable
        Function from tests to their results. Between calls of :meth:`begin_order` tests have
        equally many variables.
    separates : callable
        Function that says whether the result of a test is likely to separate its pair.

    Privacy
    -------
    No guarantee of its own: if the work uses data, the caller must have paid. Results that are
    never asked for leave no trace.

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
        """Record the tests to come; see :class:`~dpcgd.graphs.pc_search.Oracle`."""
        neighbours, pairs = neighbours_of(joined), np.argwhere(to_test).tolist()
        self.begin({(x, y): conditioning_sets(x, y, neighbours, order) for x, y in pairs})

    def begin(self, sets: dict[Test, Iterator[Test]]) -> None:
        """Record the conditioning sets of each pair, in order."""
        self._known: dict[Test, _Result] = {}
        self._sets, self._many = sets, dict.fromkeys(sets, FIRST)
        self._likely_done: set[Test] = set()

    def of(self, test: Test) -> _Result:
        """The result of a test."""
        if test not in self._known:
            pairs = self._pairs_from(test[:2]) if self._known else [*self._sets]
            tests = [given for pair in pairs for given in self._next_of(pair)]
            if test not in tests:
                tests.append(test)
            self._known |= zip(tests, self.work(tests), strict=True)
            self._likely_done |= {t[:2] for t in tests if self.separates(self._known[t])}
        return self._known[test]

    def _pairs_from(self, pair) -> list[Test]:
        """The pair, and some later pairs that are not separated so far."""
        after = islice(dropwhile(pair.__ne__, self._sets), 1, TOGETHER)
        return [pair, *(other for other in after if other not in self._likely_done)]

    def _next_of(self, pair) -> list[Test]:
        """The next tests of a pair, each time twice as many as before."""
        many = self._many.get(pair, 0)
        self._many[pair] = min(2 * many, TOGETHER)
        return [(*pair, *given) for given in islice(self._sets.get(pair, ()), many)]


class AsksAhead:
    """An oracle that computes likely tests together, before the search asks."""

    _ahead: Ahead[Any]

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Record the tests to come; see :class:`~dpcgd.graphs.pc_search.Oracle`."""
        self._ahead.begin_order(order, joined, to_test)


def _colliders(skeleton, grades) -> dict[Triple, float]:
    """Triples whose middle is not in the clearest separating set, with the grade of the collider.

    Nearly any set separates a weakly dependent pair, so the first separating set may take a chain
    for a collider. The clearest set does not: given its middle, the pair of a chain is nearest to
    independence. A collider is clear if the pair is far from independence given every set with the
    collider.
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
    """For each pair, the sets of neighbours of either variable, with their grades."""
    pairs, neighbours = skeleton.middles(), neighbours_of(skeleton.joined)
    grades: dict[Pair, list[tuple[Set, float]]] = {pair: [] for pair in pairs}
    for order in range(max_order + 1):
        tests = [(x, y, s) for x, y in pairs for s in conditioning_sets(x, y, neighbours, order)]
        for (x, y, given), near in zip(tests, grading.nearnesses(tests), strict=True):
            if near is not None:
                grades[x, y].append((given, near))
    return grades


def _orient(adjacent, colliders, forbidden, left_out) -> np.ndarray:
    """Direct the colliders, the clearest first, and then all edges that Meek's rules force."""
    arcs = adjacent & ~forbidden
    settled = np.zeros_like(arcs)
    for clarity in sorted(set(colliders.values()), reverse=True):
        heads = np.zeros_like(arcs)
        for (x, c, y), own in colliders.items():
            if own == clarity and (arcs[[x, y], c] & ~settled[c, [x, y]]).all():
                heads[x, c] = heads[y, c] = True
        settled |= heads & ~heads.T
    return meek(arcs & ~settled.T, untested=left_out | (forbidden & forbidden.T))
