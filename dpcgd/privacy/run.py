"""Opening and closing a private run."""

from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import Account
from dpcgd.privacy.noise import Noise, noise_source
from dpcgd.privacy.odometer import Odometer


def open_run(
    data, epsilon, delta, rng, secure, published=False, filter_kind=Filter
) -> tuple[Account, Noise]:
    """Everything that can be refused is refused here, before any data is touched."""
    if published and secure:
        raise ValueError("the published version is not proved; leave out secure=True or published")
    budget = Budget(epsilon, delta)
    noise = noise_source(rng, secure)
    budget.warn_if_weak(data.n)
    return (Odometer(delta) if published else filter_kind(budget)), noise
