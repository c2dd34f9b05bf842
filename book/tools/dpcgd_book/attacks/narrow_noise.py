"""Noise narrower than what was paid for: the planted bug that every audit has to find."""

import numpy as np

from dpcgd.privacy.noise import Draw, SeededNoise

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
    >>> from dpcgd.privacy.events import PureEvent
    >>> rng, event = np.random.default_rng, PureEvent("Laplace", 1.0)
    >>> honest = SeededNoise(rng(0)).laplace(1.0, event)(0.0)
    >>> NarrowNoise(rng(0)).laplace(1.0, event)(0.0) == honest / 2
    True
    """

    def __init__(self, rng: np.random.Generator, share: float = 1 / 2):
        super().__init__(rng)
        self._share = share

    def laplace(self, sensitivity, event) -> Draw:
        """Adds Laplace noise."""
        return super().laplace(self._share * sensitivity, event)

    def gaussian(self, sensitivity, event) -> Draw:
        """Adds Gaussian noise, drawn anew for each entry."""
        return super().gaussian(self._share * sensitivity, event)

    def gumbel_max(self, sensitivity, event) -> Draw:
        """Tells where scores plus Gumbel noise are largest."""
        return super().gumbel_max(self._share * sensitivity, event)

    def exponential_max(self, sensitivity, event) -> Draw:
        """Tells where scores plus exponential noise are largest."""
        return super().exponential_max(self._share * sensitivity, event)
