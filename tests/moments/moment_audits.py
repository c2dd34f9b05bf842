"""The audit of a release of moments, of one of two neighbouring data sets."""

from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from numpy.random import default_rng

from dpcgd import Budget
from dpcgd.moments.interactions import paid
from dpcgd.privacy.filters import GaussianFilter


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

    honest, narrow = (
        empirical_epsilon(mechanism(wrong), *neighbours, delta=0.1, trials=4000)
        for wrong in (1.0, 0.5)
    )
    assert honest <= epsilon < narrow
    return narrow
