"""The audit of a release of moments, of one of two neighbouring data sets; measurements noted."""

from functools import partial

from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from numpy.random import default_rng

from dpcgd import Budget
from dpcgd.moments.interactions import exactly, paid
from dpcgd.privacy.filters import GaussianFilter


class Noted:
    """Measures, without noise unless told otherwise, and keeps what was answered."""

    def __init__(self, measure=exactly):
        self.measure, self.answers, self.sensitivities = measure, [], []

    def __call__(self, query, *, sensitivity, rho):
        self.answers.append(self.measure(query, sensitivity=sensitivity, rho=rho))
        self.sensitivities.append(sensitivity)
        return self.answers[-1]


def audited(release, *neighbours, epsilon, seed):
    """A release passes its audit, and with half the noise it fails.

    False alarm 1e-9. A large delta leaves little noise, and so much to see.
    """

    def mechanism(wrong):
        rng = default_rng(seed)

        def run(data):
            account = GaussianFilter(Budget(epsilon, 0.1))
            return release(data, account, paid(account, NarrowNoise(rng, wrong)))

        return run

    audit = partial(empirical_epsilon, delta=0.1, trials=4000)
    honest, narrow = (audit(mechanism(wrong), *neighbours) for wrong in (1.0, 0.5))
    assert honest <= epsilon < narrow
    return narrow
