"""Sources of noise: one gives the answers it was told to give, one adds nothing, one notes all."""

import numpy as np
from dpcgd_book.attacks.audit import Recorder

from dpcgd.privacy.noise import SeededNoise, laplace_scale


def noting() -> Recorder:
    """Seeded noise that notes its kinds and scales."""
    return Recorder(None, SeededNoise(np.random.default_rng(0)))


class Silent:
    """Adds no noise."""

    def laplace(self, sensitivity, event):
        return float

    gaussian = laplace

    def gumbel_max(self, sensitivity, event):
        return np.argmax

    exponential_max = gumbel_max


class Script:
    """Answers from a list whatever the value; notes values and scales."""

    def __init__(self, answers):
        self.answers, self.calls, self.chosen = iter(answers), [], []

    def laplace(self, sensitivity, event):
        def draw(value):
            self.calls.append((value, laplace_scale(sensitivity, event)))
            return next(self.answers)

        return draw

    def choose(self, n, m):
        self.chosen.append((n, m))
        return np.arange(m)
