"""Scores of discrete records, as searches over graphs ask for them."""

import functools
import math

import numpy as np
from scipy.special import gammaln

MOST_CELLS = 1 << 20
"""Of a table that is counted cell by cell; of a larger one only cells with a record are."""

AT_HAND = 16
"""Of so many sets of variables the cell of each record is kept: the next set often has one more."""


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
        self._cells = functools.lru_cache(AT_HAND)(self._numbered)
        self._fit = functools.cache(self._counted)
        self._known = functools.cache(self._score)

    def local_score(self, x, pa) -> float:
        """Of variable x with this set of parents."""
        return self._known(int(x), tuple(sorted(int(v) for v in pa)))

    def full_score(self, arcs) -> float:
        """Of a directed acyclic graph; arcs[a, b] where a is a parent of b."""
        return sum(self.local_score(x, np.flatnonzero(arcs[:, x])) for x in range(self.p))

    def _score(self, x, parents) -> float:
        gain = self._fit(tuple(sorted((*parents, x)))) - self._fit(parents)
        return gain - (self._levels[x] - 1) * self._size(parents) * math.log(self.n) / 2

    def _size(self, variables) -> int:
        return math.prod(self._levels[v] for v in variables)

    def _counted(self, variables) -> float:
        """Sum of c ln c over the counts c of the cells of these variables."""
        counts = self._counts(variables)
        return float(counts @ np.log(counts))

    def _counts(self, variables) -> np.ndarray:
        counts = np.bincount(self._cells(variables)[0])
        return counts[counts > 0]

    def _numbered(self, variables) -> tuple[np.ndarray, int]:
        """The cell of each record, and how many there may be."""
        if not variables:
            return np.zeros(self.n, np.int64), 1
        (cell, cells), v = self._cells(variables[:-1]), variables[-1]
        if cells * self._levels[v] > MOST_CELLS:
            seen, cell = np.unique(cell, return_inverse=True)
            cells = len(seen)
        return cell * self._levels[v] + self._codes[:, v], cells * self._levels[v]


class DiscreteBDeu(DiscreteBIC):
    """Log marginal likelihood of a variable given its parents, and the prior of these parents.

    The Dirichlet priors sum to one; each other variable is a parent with probability 1 / (p - 1).
    """

    def _score(self, x, parents) -> float:
        size, chance, without = self._size(parents), 1 / (self.p - 1), self.p - 1 - len(parents)
        joint = self._likelihood((*parents, x), 1 / size / self._levels[x])
        prior = len(parents) * math.log(chance) + without * math.log1p(-chance)
        return joint - self._likelihood(parents, 1 / size) + prior

    def _likelihood(self, variables, prior) -> float:
        cells = np.bincount(self._counts(variables))
        counts = np.flatnonzero(cells)
        return float(cells[counts] @ (gammaln(counts + prior) - gammaln(prior)))
