"""One PC search. It asks an oracle and knows nothing of privacy."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, filterfalse
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from dpcgd.datasets.plurals import agree
from dpcgd.graphs.answers import Answers
from dpcgd.graphs.cpdag import CPDAG, meek
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.privacy.budget import BudgetSpent

__all__ = [
    "Answer",
    "ConfirmingOracle",
    "Found",
    "GradesMany",
    "GradingOracle",
    "ManyOracle",
    "Oracle",
    "OrderOracle",
    "Triple",
    "search",
]


MOST_CHOICES = 64
"""Numbers of neighbours whose combinations are kept."""

Pair = tuple[int, int]

Set = tuple[int, ...]
"""What a pair is tested given."""

Triple = tuple[int, int, int]
"""Two variables that are not joined, around a middle one that both are joined to."""


class Oracle(Protocol):
    """Answers the one question a search asks."""

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool | None:
        """Whether variables x and y are independent given these.

        None says that public facts do not allow the test: the pair stays joined, untested. May
        raise BudgetSpent.
        """


@runtime_checkable
class OrderOracle(Protocol):
    """An oracle that is told when an order begins, so that it may plan or decide ahead."""

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Conditioning sets have this size from now on. May raise BudgetSpent.

        `joined` is symmetric and holds the pairs still joined, `to_test` those of them with x < y
        that will be asked about, as boolean arrays. They are copies.
        """


@runtime_checkable
class ConfirmingOracle(Protocol):
    """An oracle that says in the end which pairs are joined for want of a test."""

    def unconfirmed(self, joined: np.ndarray) -> np.ndarray:
        """Those of the pairs still joined whose edge no test has confirmed.

        Both are symmetric boolean arrays; `joined` is a copy.
        """


class GradingOracle(Oracle, Protocol):
    """An oracle that also tells how clearly a set separates, at no cost."""

    def nearness(self, x: int, y: int, given: tuple[int, ...]) -> float | None:
        """How near x and y are to independence given these: a p-value, or what is ordered as one.

        None as for ``separates``.
        """


class Answer(NamedTuple):
    """What an oracle found about a pair.

    Attributes
    ----------
    by : tuple of int or None
        The first set that separates it.
    asked : int
        Sets up to that one, or all there are.
    tested : bool
        Whether public facts allowed any of these tests.
    """

    by: tuple[int, ...] | None
    asked: int
    tested: bool


@runtime_checkable
class ManyOracle(Protocol):
    """An oracle that may look at many tests together."""

    def answers(self, sets: Mapping[Pair, Iterable[Set]]) -> Iterable[tuple[Pair, Answer]]:
        """For each pair in turn, what is found by asking about its sets until one separates.

        All sets are of one size. May raise BudgetSpent, after the answers that were paid.
        """


@runtime_checkable
class GradesMany(Protocol):
    """A grading oracle that looks at many sets together."""

    def nearnesses(self, tests: Sequence[tuple[int, int, Set]]) -> Sequence[float | None]:
        """What ``nearness`` says of each of these, whose sets are of one size."""


@dataclass(frozen=True)
class Found:
    """What a search returns.

    Attributes
    ----------
    graph : CPDAG
    separating_sets : dict
        For each pair of variables that the oracle separated, the set that did it.
    untested : frozenset
        Pairs that no test has separated and none has confirmed, for there was none or, by the
        oracle, none that counts. They are edges if they are known or kept, else they are left out.
    tests : int
        How often the oracle was asked.
    stopped_early : bool
        True if the oracle could no longer pay; the edges not yet removed were kept.
    """

    graph: CPDAG
    separating_sets: dict[frozenset[str], tuple[str, ...]]
    untested: frozenset[frozenset[str]]
    tests: int
    stopped_early: bool

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
    done = _Skeleton(forbidden, required)
    try:
        for order in range(max_order + 1):
            if done.joined.sum(axis=1).max() <= order:
                break
            done.ask(oracle, order)
        stopped_early = False
    except BudgetSpent:
        stopped_early = True
    unconfirmed = done.unconfirmed(oracle)
    left_out = unconfirmed & done.may_go if untested == "drop" else np.zeros_like(unconfirmed)

    colliders = _graded(done, grading, max_order) if grading else _first_found(done)

    def names(x, y):
        return frozenset((variables[x], variables[y]))

    arcs = _orient(done.joined & ~left_out, colliders, forbidden, left_out)
    return Found(
        graph=CPDAG(variables, arcs),
        separating_sets={
            names(x, y): tuple(variables[s] for s in given)
            for (x, y), given in done.separated.items()
        },
        untested=frozenset(names(x, y) for x, y in np.argwhere(np.triu(unconfirmed)).tolist()),
        tests=done.tests,
        stopped_early=stopped_early,
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
    """What is known so far, and how an order of tests adds to it."""

    def __init__(self, forbidden, required):
        self.joined = ~(forbidden & forbidden.T)
        np.fill_diagonal(self.joined, False)
        self.may_go = self.joined & ~required & ~required.T
        self.tested = np.zeros_like(self.joined)
        self.separated: dict[tuple[int, int], tuple[int, ...]] = {}
        self.tests = 0

    def ask(self, oracle, order):
        """Remove every edge that some set of this size separates, in an order of its own."""
        neighbours = neighbours_of(self.joined)
        to_test = np.triu(self.joined & self.may_go)
        if to_test.any() and isinstance(oracle, OrderOracle):
            oracle.begin_order(order, self.joined.copy(), to_test.copy())
        sets = (
            ((x, y), conditioning_sets(x, y, neighbours, order))
            for x, y in np.argwhere(to_test).tolist()
        )
        if isinstance(oracle, ManyOracle) and agree(type(oracle), "separates", "answers"):
            for pair, answer in oracle.answers(dict(sets)):
                self._note(pair, answer)
        else:
            for pair, those in sets:
                self._note(pair, self._in_turn(oracle, pair, those))

    def _in_turn(self, oracle, pair, sets) -> Answer:
        """One set after the other; what was asked counts even if the budget ends in between."""
        for given in sets:
            independent = oracle.separates(*pair, given)
            self.tests += 1
            if independent is not None:
                self.tested[pair] = True
            if independent:
                return Answer(given, 0, True)
        return Answer(None, 0, False)

    def _note(self, pair, answer):
        self.tests += answer.asked
        self.tested[pair] |= answer.tested
        if answer.by is not None:
            self.joined[pair] = self.joined[pair[::-1]] = False
            self.separated[pair] = answer.by

    def unconfirmed(self, oracle) -> np.ndarray:
        """Pairs still joined that no test has confirmed."""
        never = self.joined & ~(self.tested | self.tested.T)
        if isinstance(oracle, ConfirmingOracle):
            never |= self.joined & oracle.unconfirmed(self.joined.copy())
        return never


def neighbours_of(joined: np.ndarray) -> list[list[int]]:
    """The neighbours of each variable."""
    return [np.flatnonzero(row).tolist() for row in joined]


def conditioning_sets(x, y, neighbours, order) -> Iterator[tuple[int, ...]]:
    """Sets of this size among the neighbours of x, then those only among the neighbours of y."""
    of_x = _without(neighbours[x], y)
    yield from combinations(of_x, order)
    of_y = combinations(_without(neighbours[y], x), order)
    yield from filterfalse(set(of_x).issuperset, of_y)


def _without(near, v) -> list[int]:
    if v not in near:
        return near
    at = near.index(v)
    return near[:at] + near[at + 1 :]


def conditioning_array(x, y, joined, order) -> np.ndarray:
    """The same sets in the same order, a row each: faster where there are many."""
    is_of_x, is_of_y = joined[x].copy(), joined[y].copy()
    is_of_x[y] = is_of_y[x] = False
    of_x, of_y = is_of_x.nonzero()[0], is_of_y.nonzero()[0]
    sets_of_y = of_y[_choices(len(of_y), order)]
    new = ~is_of_x[sets_of_y].all(axis=1)
    return np.concatenate((of_x[_choices(len(of_x), order)], sets_of_y[new]))


@lru_cache(MOST_CHOICES)
def _choices(several, order) -> np.ndarray:
    chosen = np.array([*combinations(range(several), order)], np.int64)
    return chosen.reshape(math.comb(several, order), order)


def _first_found(done) -> dict[Triple, float]:
    """Middles that are not in the set that separated their neighbours; none is clearer."""
    return {
        (x, c, y): 0.0
        for (x, y), given in done.separated.items()
        for c in np.flatnonzero(done.joined[x] & done.joined[y]).tolist()
        if c not in given
    }


def _graded(done, grading, max_order) -> dict[Triple, float]:
    """Middles that are not in the set that separates their neighbours most clearly, and how clear.

    A pair that hangs together weakly is separated by nearly any set, and a chain passes for a
    collider; given its middle it is nearest to independence. A collider is clear if the pair is far
    from independence given every set that holds it.
    """
    middles = {
        (x, y): between
        for x, y in done.separated
        if (between := np.flatnonzero(done.joined[x] & done.joined[y]).tolist())
    }
    grades, found = _grades(grading, middles, neighbours_of(done.joined), max_order), {}
    for (x, y), between in middles.items():
        for c in between:
            with_c, without = (
                max(
                    (grade for given, grade in grades[x, y] if (c in given) is held),
                    default=-math.inf,
                )
                for held in (True, False)
            )
            if without > with_c:
                found[x, c, y] = -with_c
    return found


def _grades(grading, pairs, neighbours, max_order) -> dict[Pair, list[tuple[Set, float]]]:
    """For each pair the sets of neighbours of either, and how near to independence it is then."""
    found: dict[Pair, list[tuple[Set, float]]] = {pair: [] for pair in pairs}
    for order in range(max_order + 1):
        tests = [(x, y, s) for x, y in pairs for s in conditioning_sets(x, y, neighbours, order)]
        if isinstance(grading, GradesMany) and agree(type(grading), "nearness", "nearnesses"):
            grades = grading.nearnesses(tests)
        else:
            grades = [grading.nearness(*test) for test in tests]
        for (x, y, given), grade in zip(tests, grades, strict=True):
            if grade is not None:
                found[x, y].append((given, grade))
    return found


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
