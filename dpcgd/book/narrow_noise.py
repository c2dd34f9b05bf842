"""Noise narrower than what was paid for: the planted bug that every audit has to find."""

from typing import Any

import numpy as np

from dpcgd.privacy.noise import SeededNoise

__all__ = ["NarrowNoise"]


class NarrowNoise(SeededNoise):
    """Seeded noise of a share of the scale that was paid for: half, unless told.

    An audit that passes shows something only if it can fail. So each has a twin: the same runs with
    this noise, which it must flag.

    Parameters
    ----------
    rng : numpy.random.Generator
    share : float
        Of the scale.

    Examples
    --------
    >>> rng = np.random.default_rng
    >>> NarrowNoise(rng(0)).laplace(0.0, 1.0) == SeededNoise(rng(0)).laplace(0.0, 0.5)
    True
    """

    def __init__(self, rng: np.random.Generator, share: float = 1 / 2):
        super().__init__(rng)
        self._share = share

    def laplace(self, value: Any, scale: float) -> Any:
        """`value` plus Laplace noise."""
        return super().laplace(value, self._share * scale)

    def gaussian(self, value: float | np.ndarray, scale: float) -> float | np.ndarray:
        """`value` plus Gaussian noise, drawn anew for each entry."""
        return super().gaussian(value, self._share * scale)

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus Gumbel noise are largest."""
        return super().gumbel_max(scores, self._share * scale)

    def exponential_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus exponential noise are largest."""
        return super().exponential_max(scores, self._share * scale)
