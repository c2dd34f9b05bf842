"""A score of a variable given its parents, from released pairs alone."""

import math
from functools import lru_cache
from itertools import chain

import numpy as np

from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import Marginals

__all__ = ["PairScore"]


class PairScore:
    """Gaussian log-likelihood of a variable's contrasts given its parents', minus a penalty.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.

    Notes
    -----
    The score is -n/2 ln det of the covariance that the parents do not explain, minus a penalty. The
    penalty is ln(n)/2 for each coefficient (Schwarz 1978), times the ratio of sampling and privacy
    variance together to sampling variance alone. Noise raises the chance gain of a useless
    coefficient by this ratio. Chapter 14.
    """

    def __init__(self, marginals: Marginals):
        blocks = blocks_of(marginals)
        self.n, self._covariance = blocks.n, blocks.covariances
        spans = zip(blocks.rows, marginals.levels, strict=True)
        every = range(len(blocks.covariances))  # a variable of one level has no contrasts
        self._rows = [every[rows] if levels > 1 else every[:0] for rows, levels in spans]
        self._deviation = float(blocks.deviations.max())
        self._floor = max(self._deviation, 1 / self.n)
        self.family = lru_cache(None)(self._family)
        self.log_odds = lru_cache(None)(self._log_odds)

    def _log_odds(self, child: int, parents: frozenset[int]) -> float:
        """Log odds of these parents against none, for as many records as noise leaves."""
        more = self.family(child, parents) - self.family(child, frozenset())
        return more / self._inflated(child, sorted(parents)) if parents else 0.0

    def _inflated(self, child, parents) -> float:
        """Ratio of sampling and privacy variance together to sampling variance alone."""
        effect, cause = self._rows[child], [*chain(*(self._rows[p] for p in parents))]
        spread = self._covariance.diagonal()
        sampling = spread[effect].sum() * spread[cause].sum() / max(1, len(effect) * len(cause))
        return float(1 + self.n * self._deviation**2 / max(sampling, self._floor**2))

    def _family(self, child: int, parents: frozenset[int]) -> float:
        """Score of one variable with these parents."""
        effect, cause = self._rows[child], [*chain(*(self._rows[p] for p in sorted(parents)))]
        own, theirs = self._part(effect, effect), self._part(cause, cause)
        values, vectors = np.linalg.eigh(theirs)
        along = self._part(effect, cause) @ vectors
        explained = (along / np.maximum(values, self._floor)) @ along.T
        left = np.maximum(np.linalg.eigvalsh(own - explained), self._floor)
        coefficients = len(effect) * len(cause)
        inflated = self._inflated(child, sorted(parents)) if coefficients else 1.0
        return -(self.n * np.log(left).sum() + math.log(self.n) * coefficients * inflated) / 2

    def _part(self, rows, columns) -> np.ndarray:
        return self._covariance[np.ix_(rows, columns)]
