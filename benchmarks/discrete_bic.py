"""BIC of discrete records, as greedy equivalence search asks for it: for yardstick_worker.py."""

import functools
import math

import numpy as np

MOST_CELLS = 1 << 20
"""Of a table that is counted cell by cell; of a larger one only cells with a record are."""


class DiscreteBIC:
    """Log-likelihood of a variable given its parents, less ln(n) / 2 for each free probability.

    Parameters
    ----------
    codes : integer array, shape (n, p)
    levels : sequence of int
        How many each variable has, seen or not.
    """

    def __init__(self, codes, levels):
        self._codes, self._levels = np.asfortranarray(codes), [int(k) for k in levels]
        self.n, self.p = codes.shape
        self._fit = functools.cache(self._counted)

    def local_score(self, x, pa) -> float:
        """Of variable x with this set of parents."""
        parents = sorted(int(v) for v in pa)
        gain = self._fit(tuple(sorted((*parents, int(x))))) - self._fit(tuple(parents))
        free = (self._levels[x] - 1) * math.prod(self._levels[v] for v in parents)
        return gain - free * math.log(self.n) / 2

    def full_score(self, arcs) -> float:
        """Of a directed acyclic graph; arcs[a, b] where a is a parent of b."""
        return sum(self.local_score(x, np.flatnonzero(arcs[:, x])) for x in range(self.p))

    def _counted(self, variables) -> float:
        """Sum of c ln c over the counts c of the cells of these variables."""
        cell, cells = np.zeros(self.n, np.int64), 1
        for v in variables:
            if cells * self._levels[v] > MOST_CELLS:
                seen, cell = np.unique(cell, return_inverse=True)
                cells = len(seen)
            cell = cell * self._levels[v] + self._codes[:, v]
            cells *= self._levels[v]
        counts = np.bincount(cell)
        counts = counts[counts > 0]
        return float(counts @ np.log(counts))
