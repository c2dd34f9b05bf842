"""One PC search. It asks an oracle and knows nothing of privacy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from dpcgd.graphs.cpdag import CPDAG, meek
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.privacy.budget import BudgetSpent

__all__ = ["Found", "Oracle", "search"]


class Oracle(Protocol):
    """Answers the one question a search asks."""

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Are variables x and y independent given these? May raise BudgetSpent.

        An oracle that decides about several pairs at once may have a second method,
        ``prepare(x, questions)``. The search calls it before it asks about the pairs of x at an
        order, with the conditioning sets it will ask about for each partner y.
        """


@dataclass(frozen=True)
class Found:
    """What a search returns.

    Attributes
    ----------
    graph : CPDAG
    separating_sets : dict
        For each pair of variables that the oracle separated, the set that did it.
    tests : int
        How often the oracle was asked.
    stopped_early : bool
        True if the oracle could no longer pay; the edges not yet removed were kept.
    """

    graph: CPDAG
    separating_sets: dict[frozenset[str], tuple[str, ...]]
    tests: int
    stopped_early: bool


def search(
    oracle: Oracle,
    variables: Sequence[str],
    *,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
    majority: bool = False,
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
    majority : bool
        Ask about every set of the size at which a pair is first separated, and let most of those
        that separate it decide whether a middle variable is a collider. The graph then does not
        depend on the order of the variables. It takes more tests: for answers that cost nothing.

    Returns
    -------
    Found

    Raises
    ------
    ValueError
        If `max_order` is negative or the knowledge names unknown variables.

    Privacy
    -------
    A function of the oracle's answers and of public facts only: orientation is post-processing.

    Notes
    -----
    Colombo and Maathuis (2014) for skeleton and majority, Meek (1995) for the rules. Two colliders
    that demand opposite arrowheads on one edge leave it undirected: their order does not matter.

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
    forbidden, required = (knowledge or Knowledge()).arrays(variables)
    adjacent, separated, tests, stopped_early = _skeleton(
        oracle, forbidden, required, max_order, majority
    )
    arcs = _orient(adjacent, separated, forbidden)
    names = {
        frozenset((variables[x], variables[y])): tuple(variables[s] for s in sets[0])
        for (x, y), sets in separated.items()
    }
    return Found(CPDAG(variables, arcs), names, tests, stopped_early)


def _skeleton(oracle, forbidden, required, max_order, majority):
    """Remove every edge that some set of neighbours separates, smallest sets first."""
    adjacent = ~(forbidden & forbidden.T)
    np.fill_diagonal(adjacent, False)
    open_to_test = np.triu(adjacent & ~required & ~required.T)
    separated, tests = {}, 0
    try:
        for order in range(max_order + 1):
            neighbours = [np.flatnonzero(row).tolist() for row in adjacent]
            if max(map(len, neighbours)) <= order:
                break
            for x, y in _pairs(oracle, adjacent & open_to_test, neighbours, order):
                for given in _conditioning_sets(x, y, neighbours, order):
                    independent = oracle.separates(x, y, given)
                    tests += 1
                    if independent:
                        adjacent[x, y] = adjacent[y, x] = False
                        separated.setdefault((x, y), []).append(given)
                        if not majority:
                            break
    except BudgetSpent:
        return adjacent, separated, tests, True
    return adjacent, separated, tests, False


def _pairs(oracle, to_test, neighbours, order) -> Iterator[tuple[int, int]]:
    """The pairs to ask about, after an oracle that wants to has looked at those of one variable."""
    prepare = getattr(oracle, "prepare", None)
    for x, row in enumerate(to_test):
        partners = np.flatnonzero(row).tolist()
        if prepare and partners:
            prepare(x, {y: list(_conditioning_sets(x, y, neighbours, order)) for y in partners})
        yield from ((x, y) for y in partners)


def _conditioning_sets(x, y, neighbours, order) -> Iterator[tuple[int, ...]]:
    """Sets of this size among the neighbours of x, then those only among the neighbours of y."""
    of_x = [v for v in neighbours[x] if v != y]
    of_y = [v for v in neighbours[y] if v != x]
    yield from combinations(of_x, order)
    for given in combinations(of_y, order):
        if not set(given) <= set(of_x):
            yield given


def _orient(adjacent, separated, forbidden) -> np.ndarray:
    """Colliders first, then all that knowledge and Meek's rules force."""
    arcs = adjacent & ~forbidden
    arrowheads = np.zeros_like(arcs)
    for (x, y), sets in separated.items():
        for c in np.flatnonzero(adjacent[x] & adjacent[y]):
            collider = 2 * sum(c in given for given in sets) < len(sets)
            if collider and arcs[x, c] and arcs[y, c]:
                arrowheads[x, c] = arrowheads[y, c] = True
    settled = arrowheads & ~arrowheads.T
    return meek(arcs & ~settled.T, untested=forbidden & forbidden.T)
