"""What audits of whole runs share: two neighbours far apart, and noise that is too narrow.

An audit that passes shows something only if it can fail. So each has a twin: the same runs with
less noise than was paid for, which it must flag.
"""

import numpy as np

from dpcgd import Dataset
from dpcgd.mechanisms import SeededNoise


class Halved(SeededNoise):
    """Seeded noise of a share of the scale that was paid for: half, unless told."""

    def __init__(self, rng: np.random.Generator, share: float = 1 / 2):
        super().__init__(rng)
        self._share = share

    def laplace(self, value, scale):
        return super().laplace(value, self._share * scale)

    def gaussian(self, value, scale):
        return super().gaussian(value, self._share * scale)

    def gumbel_max(self, scores, scale):
        return super().gumbel_max(scores, self._share * scale)

    def exponential_max(self, scores, scale):
        return super().exponential_max(scores, self._share * scale)


def alone_and_joined(n: int) -> tuple[Dataset, Dataset]:
    """One record against a crowd that agrees on both variables, and the same in the crowd.

    Between them Kendall's z falls by its whole sensitivity, to 0.
    """
    levels = {"x": ["no", "yes"], "y": ["no", "yes"]}
    crowd = np.ones((n - 1, 2), int)
    return tuple(Dataset(np.vstack([first, crowd]), levels) for first in ([0, 0], [1, 1]))
