"""Two repairs of a search on released tables: of removals that contradict, of edges without a test.

Noise, and variables that are nearly copies of one another, make a search remove too much or too
little. What it has asked by then tells where.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any, Protocol

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Found, Oracle, conditioning_sets, neighbours_of
from dpcgd.moments.interactions import Subset

__all__ = ["RepairOracle", "repaired"]


class RepairOracle(Oracle, Protocol):
    """An oracle whose answers cost nothing, and that tells what its tests rest on."""

    largest: dict[Subset, float]

    def begin(self, sets: dict[Subset, Iterator[Subset]]) -> None:
        """Note the sets that each pair may be asked about, in this order."""

    def strength(self, x: int, y: int) -> float:
        """How dependent two variables are, given none."""

    def rests_on_nothing(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether a test would separate these two, but that next to no variance is left to it."""

    def unexplained(self, x: int, y: int, joined: np.ndarray) -> bool:
        """Whether no neighbour of both may explain the pair without a test that counts."""


def repaired(
    found: Found, oracle: RepairOracle, *, max_order: int, knowledge: Knowledge | None = None
) -> Found:
    """What a search found, with both repairs; which way new edges point is left open.

    **Removals that contradict.** x and y are separated by a set with z in it, x and z by one with y
    in it. Each leans on the other, and once both are gone nothing links x to the two. The one that
    was separated less clearly, with the smaller p-value, comes back, unless a set of its present
    neighbours, without the other, separates it as well. Where all answers are right, such a set
    there always is: chapter 14, :prf:ref:`thm-leaning`.

    **Edges without a test.** Given neighbours of both its ends, next to no variance of one end is
    left, so the test could not separate, though it saw nothing. Such an edge goes, the weakest
    first.

    Parameters
    ----------
    found : Found
    oracle : RepairOracle
        What the search asked, with the largest p-value of each pair.
    max_order, knowledge
        Of the search.

    Returns
    -------
    Found

    Privacy
    -------
    Post-processing of what has been released. Chapter 14, :prf:ref:`thm-table-pc`.
    """
    work = _Repair(found, oracle, max_order)
    work.bring_back()
    _, required = (knowledge or Knowledge()).arrays(found.graph.variables)
    work.take_out(required | required.T)
    return work.found(found)


class _Repair:
    """The pairs joined, and what separates the others, by number."""

    def __init__(self, found, oracle, max_order):
        self.oracle, self.max_order = oracle, max_order
        self.names = found.graph.variables
        self.joined = found.graph.arcs | found.graph.arcs.T
        at = {name: i for i, name in enumerate(self.names)}
        self.apart: dict[Subset, Subset] = {
            tuple(sorted(at[name] for name in pair)): tuple(at[name] for name in given)
            for pair, given in found.separating_sets.items()
        }
        self.p_values, self.asked = dict(oracle.largest), 0

    def bring_back(self):
        """Of two removals that lean on each other, the less clear one."""
        contradictions, near = self._contradictions(), neighbours_of(self.joined)
        self.oracle.begin({(x, y): self._sets(x, y, near) for (x, y), _ in contradictions})
        for (x, y), (a, z) in contradictions:
            open_still = not (self.joined[x, y] or self.joined[a, z])
            if open_still and self._stands(x, y, z):
                self._join(x, y, True)
                del self.apart[x, y]

    def _contradictions(self) -> list[tuple[Subset, Subset]]:
        """The less clear of two removals and the other, the least clear first."""
        found = []
        for pair, given in self.apart.items():
            for z in given:
                for a, b in (pair, pair[::-1]):
                    other = min(a, z), max(a, z)
                    if b in self.apart.get(other, ()) and self._p(pair) < self._p(other):
                        found.append((self._p(pair), pair, (a, z)))
        return [(pair, other) for _, pair, other in sorted(found)]

    def _p(self, pair) -> float:
        return self.p_values.get(pair, 0.0)

    def _stands(self, x, y, without) -> bool:
        """Whether present neighbours, but for one, do not separate a pair."""
        if not self.oracle.unexplained(x, y, self.joined):
            return False
        joined = self.joined[[x, y]]
        joined[:, without] = False
        near = dict(zip((x, y), neighbours_of(joined), strict=True))
        sets = self._sets(x, y, near)
        return not any(self._asks(self.oracle.separates, x, y, given) for given in sets)

    def _sets(self, x, y, near) -> Iterator[Subset]:
        """Sets of neighbours of x, or of y, the smaller ones first."""
        orders = range(1, self.max_order + 1)
        return chain.from_iterable(conditioning_sets(x, y, near, order) for order in orders)

    def take_out(self, required):
        """Edges that stayed for want of variance, the weakest first."""
        pairs = np.argwhere(np.triu(self.joined & ~required)).tolist()
        pairs.sort(key=lambda pair: self.oracle.strength(*pair))
        self.oracle.begin({(x, y): self._sets_of_both(x, y) for x, y in pairs})
        for x, y in pairs:
            sets, rests = self._sets_of_both(x, y), self.oracle.rests_on_nothing
            given = next((s for s in sets if self._asks(rests, x, y, s)), None)
            if given is not None:
                self._join(x, y, False)
                self.apart[x, y] = given

    def _sets_of_both(self, x, y) -> Iterator[Subset]:
        """Sets of neighbours of both."""
        of_both = np.flatnonzero(self.joined[x] & self.joined[y]).tolist()
        sizes = range(1, self.max_order + 1)
        return chain.from_iterable(combinations(of_both, size) for size in sizes)

    def _asks(self, what, x, y, given) -> Any:
        self.asked += 1
        return what(x, y, given)

    def _join(self, x, y, value):
        self.joined[x, y] = self.joined[y, x] = value

    def found(self, before) -> Found:
        """The repaired result; arrows of the search stay where their edges do."""
        were = before.graph.arcs | before.graph.arcs.T
        arcs = np.where(were, before.graph.arcs, True) & self.joined
        sets = {
            frozenset(self.names[v] for v in pair): tuple(self.names[v] for v in given)
            for pair, given in self.apart.items()
        }
        graph, tests = CPDAG(self.names, arcs), before.tests + self.asked
        return replace(before, graph=graph, separating_sets=sets, tests=tests)
