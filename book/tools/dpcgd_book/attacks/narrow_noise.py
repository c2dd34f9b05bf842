"""Noise narrower than what was paid for: the planted bug that every audit has to find."""

import numpy as np

from dpcgd.privacy.noise import SeededNoise

__all__ = ["NarrowNoise"]


class NarrowNoise:
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
        self._noise, self._share = SeededNoise(rng), share

    def __getattr__(self, name):
        drawn = getattr(self._noise, name)
        if name == "choose":
            return drawn
        return lambda sensitivity, event: drawn(self._share * sensitivity, event)
