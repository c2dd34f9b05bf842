"""Two repairs of a search on released tables: contradictory removals, and edges without a test.

Noise, and variables that are nearly copies of one another, make a search remove too many or too few
edges. The answers to its tests show where.
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
    result: Found, oracle: Any, *, max_order: int, knowledge: Knowledge | None = None
) -> Found:
    """Apply both repairs to the result of a search; edges that come back have no direction.

    **Contradictory removals.** x and y are separated by a set that contains z, and x and z by a set
    that contains y. Each removal relies on the other edge. After both removals nothing links x to y
    or z. The removal with the smaller p-value is the less clear one, and its edge comes back. It
    stays removed if a set of its present neighbours, without the other variable, separates the pair
    as well. If all answers are right, there is always such a set: chapter 14,
    :prf:ref:`thm-leaning`.

    **Edges without a test.** Given common neighbours of both ends, almost no variance of one end is
    left. So the test could not separate the pair, although it saw no dependence. Such edges are
    removed, the weakest first.

    Parameters
    ----------
    result : Found
    oracle : TableOracle
        The oracle that the search asked. ``largest`` holds the largest p-value of each pair. Its
        answers cost nothing, and it knows which tests had no variance left.
    max_order, knowledge
        The arguments of the search.

    Returns
    -------
    Found

    Privacy
    -------
    Post-processing of what has been released. Chapter 14, :prf:ref:`thm-table-pc`.
    """
    work = _Repair(result, oracle, max_order)
    work.bring_back()
    _, required = (knowledge or Knowledge()).arrays(result.graph.variables)
    work.take_out(required | required.T)
    return work.found(result)


class _Repair:
    """The joined pairs, and the sets that separate the other pairs, by number."""

    def __init__(self, result, oracle, max_order):
        self.oracle, self.sizes, self.asked = oracle, range(1, max_order + 1), 0
        self.names, self.joined = result.graph.variables, result.graph.arcs | result.graph.arcs.T
        number = self.names.index
        self.apart: dict[Subset, Subset] = {
            tuple(sorted(map(number, pair))): tuple(map(number, given))
            for pair, given in result.separating_sets.items()
        }
        self.p_values = defaultdict(float, oracle.largest)

    def bring_back(self):
        """Restore the less clear one of two removals that contradict each other."""
        contradictions, near = self._contradictions(), neighbours_of(self.joined)
        self.oracle.begin({(x, y): self._sets(x, y, near) for (x, y), _ in contradictions})
        for (x, y), (a, z) in contradictions:
            if not (self.joined[x, y] or self.joined[a, z]) and self._stands(x, y, z):
                self.joined[x, y] = self.joined[y, x] = True
                del self.apart[x, y]

    def _contradictions(self) -> list[tuple[Subset, Subset]]:
        """Pairs of contradictory removals, the less clear one first; sorted by its p-value."""
        pairs, p_values = [], self.p_values
        for pair, given in self.apart.items():
            for z, (a, b) in product(given, (pair, pair[::-1])):
                other = min(a, z), max(a, z)
                if b in self.apart.get(other, ()) and p_values[pair] < p_values[other]:
                    pairs.append((p_values[pair], pair, (a, z)))
        return [(pair, other) for _, pair, other in sorted(pairs)]

    def _stands(self, x, y, without) -> bool:
        """Whether present neighbours, without one variable, fail to separate a pair."""
        if not self.oracle.unexplained(x, y, self.joined):
            return False
        joined = self.joined.copy()
        joined[:, without] = False
        sets = self._sets(x, y, neighbours_of(joined))
        return not any(self._asks(self.oracle.separates, x, y, given) for given in sets)

    def _sets(self, x, y, near) -> Iterator[Subset]:
        """Sets of neighbours of x, or of y, the smaller sets first."""
        return chain.from_iterable(conditioning_sets(x, y, near, size) for size in self.sizes)

    def take_out(self, required):
        """Remove edges that stayed only because no variance was left, the weakest first."""
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
        """Sets of common neighbours of x and y."""
        of_both = np.flatnonzero(self.joined[x] & self.joined[y]).tolist()
        return chain.from_iterable(combinations(of_both, size) for size in self.sizes)

    def _asks(self, what, x, y, given) -> bool:
        self.asked += 1
        return what(x, y, given)

    def found(self, before) -> Found:
        """The repaired result; edges that stay keep their arrows from the search."""
        were = before.graph.arcs | before.graph.arcs.T
        arcs = np.where(were, before.graph.arcs, True) & self.joined

        def names(columns):
            return tuple(self.names[v] for v in columns)

        sets = {frozenset(names(pair)): names(given) for pair, given in self.apart.items()}
        graph, tests = CPDAG(self.names, arcs), before.tests + self.asked
        return replace(before, graph=graph, separating_sets=sets, tests=tests)
