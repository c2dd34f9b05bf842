"""Two repairs of a search on released tables: of removals that contradict, of edges without a test.

Noise, and variables that are nearly copies of one another, make a search remove too much or too
little. What it has asked by then tells where.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import Found, conditioning_sets, neighbours_of
from dpcgd.moments.interactions import Subset

__all__ = ["repaired"]


def repaired(
    found: Found, oracle: Any, *, max_order: int, knowledge: Knowledge | None = None
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
    oracle : TableOracle
        What the search asked: ``largest`` has the largest p-value of each pair. Its answers cost
        nothing, and it tells what its tests rest on.
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
        self.oracle, self.sizes, self.asked = oracle, range(1, max_order + 1), 0
        self.names, self.joined = found.graph.variables, found.graph.arcs | found.graph.arcs.T
        number = self.names.index
        self.apart: dict[Subset, Subset] = {
            tuple(sorted(map(number, pair))): tuple(map(number, given))
            for pair, given in found.separating_sets.items()
        }
        self.p_values = defaultdict(float, oracle.largest)

    def bring_back(self):
        """Of two removals that lean on each other, the less clear one."""
        contradictions, near = self._contradictions(), neighbours_of(self.joined)
        self.oracle.begin({(x, y): self._sets(x, y, near) for (x, y), _ in contradictions})
        for (x, y), (a, z) in contradictions:
            open_still = not (self.joined[x, y] or self.joined[a, z])
            if open_still and self._stands(x, y, z):
                self.joined[x, y] = self.joined[y, x] = True
                del self.apart[x, y]

    def _contradictions(self) -> list[tuple[Subset, Subset]]:
        """The less clear of two removals and the other, the least clear first."""
        found, p_values = [], self.p_values
        for pair, given in self.apart.items():
            for z, (a, b) in product(given, (pair, pair[::-1])):
                other = min(a, z), max(a, z)
                if b in self.apart.get(other, ()) and p_values[pair] < p_values[other]:
                    found.append((p_values[pair], pair, (a, z)))
        return [(pair, other) for _, pair, other in sorted(found)]

    def _stands(self, x, y, without) -> bool:
        """Whether present neighbours, but for one, do not separate a pair."""
        if not self.oracle.unexplained(x, y, self.joined):
            return False
        joined = self.joined.copy()
        joined[:, without] = False
        sets = self._sets(x, y, neighbours_of(joined))
        return not any(self._asks(self.oracle.separates, x, y, given) for given in sets)

    def _sets(self, x, y, near) -> Iterator[Subset]:
        """Sets of neighbours of x, or of y, the smaller ones first."""
        return chain.from_iterable(conditioning_sets(x, y, near, size) for size in self.sizes)

    def take_out(self, required):
        """Edges that stayed for want of variance, the weakest first."""
        pairs = np.argwhere(np.triu(self.joined & ~required)).tolist()
        pairs.sort(key=lambda pair: self.oracle.strength(*pair))
        self.oracle.begin({(x, y): self._sets_of_both(x, y) for x, y in pairs})
        for x, y in pairs:
            for given in self._sets_of_both(x, y):
                if self._asks(self.oracle.rests_on_nothing, x, y, given):
                    self.joined[x, y] = self.joined[y, x] = False
                    self.apart[x, y] = given
                    break

    def _sets_of_both(self, x, y) -> Iterator[Subset]:
        """Sets of neighbours of both."""
        of_both = np.flatnonzero(self.joined[x] & self.joined[y]).tolist()
        return chain.from_iterable(combinations(of_both, size) for size in self.sizes)

    def _asks(self, what, x, y, given) -> bool:
        self.asked += 1
        return what(x, y, given)

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
