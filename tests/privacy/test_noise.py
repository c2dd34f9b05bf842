"""The secure source: OpenDP's own price is asked first, and what it answers is what is released."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.mod import OpenDPException

from dpcgd.privacy.budget import Budget
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import (
    AboveThreshold,
    exponential,
    gaussian,
    laplace,
    permute_and_flip,
    propose_test_release,
)
from dpcgd.privacy.noise import SecureNoise

MAKERS = ["make_laplace", "make_gaussian", "make_noisy_max"]


class Watched:
    """A measurement of OpenDP whose calls are noted; it may be made to cost more, or to fail."""

    def __init__(self, measurement, costs=1.0, fails=False, drawn=None):
        self.measurement, self.costs, self.fails, self.drawn = measurement, costs, fails, drawn
        self.calls = []

    def map(self, d_in):
        return self.costs * self.measurement.map(d_in)

    def __call__(self, value):
        if self.fails:
            raise OpenDPException("FailedFunction", "no randomness")
        self.calls.append((value, (self.drawn or self.measurement)(value)))
        return self.calls[-1][1]


def watched(patch, *, wider=1.0, **how):
    """Watch the measurements of OpenDP; the list fills with those that are made."""
    made = []

    def making(make):
        def run(*space, scale, **rest):
            made.append(Watched(make(*space, scale=wider * scale, **rest), **how))
            return made[-1]

        return run

    for name in MAKERS:
        patch.setattr(dp.m, name, making(getattr(dp.m, name)))
    return made


@pytest.fixture
def watch(monkeypatch):
    return partial(watched, monkeypatch)


def untouchable():
    raise AssertionError("looked at the data")


def account():
    return Filter(Budget(50.0, 1e-2), reserved=1e-3)


def every_mechanism(paid, noise, query=untouchable, scores=untouchable):
    how = {"account": paid, "noise": noise}
    yield lambda: laplace(query, sensitivity=0.3, epsilon=0.7, **how)
    yield lambda: gaussian(query, sensitivity=0.3, noise_multiplier=3.3, **how)
    yield lambda: exponential(scores, sensitivity=0.3, epsilon=0.7, **how)
    yield lambda: permute_and_flip(scores, sensitivity=0.3, epsilon=0.7, **how)
    settings = {"proposed": 0.3, "epsilon": 0.7, "delta": 1e-4}
    yield lambda: propose_test_release(query, query, **settings, **how)
    yield lambda: AboveThreshold(1.0, sensitivity=0.3, epsilon=0.7, rate=0.5, **how)


ANSWERS = {
    "laplace": partial(laplace, epsilon=0.7),
    "gaussian": partial(gaussian, noise_multiplier=3.3),
}
SIZES = [(), (1,), (10,), (7, 3), (100_000,), (1_000_000,)]


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_released_is_what_opendp_answered_to_the_exact_value(kind, shape, watch):
    made = watch(drawn=lambda values: [x + math.sqrt(2 + i) for i, x in enumerate(values)])
    size = math.prod(shape)
    exact = np.reshape(2.0**24 + 1 + np.arange(size) / 3, shape) if shape else 2.0**24 + 1 / 3
    released = ANSWERS[kind](lambda: exact, sensitivity=0.3, account=account(), noise=SecureNoise())
    ((asked, answered),) = made[-1].calls
    assert asked == np.ravel(exact).tolist()
    assert np.shape(released) == shape
    assert np.ravel(released).tolist() == answered


@pytest.mark.parametrize("choice", [exponential, permute_and_flip])
@pytest.mark.parametrize("size", [1, 10, 100_000])
def test_what_is_chosen_is_what_opendp_chose_by_the_exact_scores(choice, size, watch):
    made = watch(drawn=lambda values: len(values) // 2)
    scores = 1 / np.arange(3.0, 3.0 + size)
    chosen = choice(
        lambda: scores, sensitivity=0.3, epsilon=0.7, account=account(), noise=SecureNoise()
    )
    assert made[-1].calls == [(scores.tolist(), size // 2)]
    assert chosen == size // 2


def test_an_error_of_opendp_is_an_error_of_every_mechanism(watch):
    watch(fails=True)
    for run in every_mechanism(account(), SecureNoise(), lambda: 1.0, lambda: np.ones(3)):
        with pytest.raises(OpenDPException):
            run()


@pytest.mark.parametrize("changed", [{"costs": 1 + 1e-12}, {"wider": 0.5}, {"wider": 1 - 1e-9}])
def test_noise_that_opendp_prices_higher_is_refused_before_anything_is_paid(watch, changed):
    watch(**changed)
    paid = account()
    for run in every_mechanism(paid, SecureNoise()):
        with pytest.raises(RuntimeError, match=r"OpenDP prices.*nothing was spent"):
            run()
    assert paid.ledger.events == ()


amounts = st.floats(1e-9, 1e9)


@settings(deadline=None)
@given(sensitivity=amounts, epsilon=st.floats(1e-6, 100.0), multiplier=st.floats(1e-2, 1e6))
def test_by_opendps_own_price_the_noise_is_worth_its_event_and_no_more(
    sensitivity, epsilon, multiplier
):
    noise = SecureNoise()
    draws = [
        (noise.laplace, PureEvent("Laplace", epsilon), epsilon),
        (noise.laplace, ApproximateEvent("tested release", epsilon, 1e-9), epsilon),
        (noise.gaussian, GaussianEvent("Gaussian", multiplier), 0.5 / multiplier**2),
        (noise.gumbel_max, BoundedRangeEvent("exponential", epsilon), epsilon**2 / 8),
        (noise.exponential_max, PureEvent("permute and flip", epsilon), epsilon),
    ]
    for draw, event, price in draws:
        with pytest.MonkeyPatch.context() as patch:
            made = watched(patch)
            draw(sensitivity, event)
        assert (1 - 1e-13) * price <= made[0].map(sensitivity) <= (1 + 1e-15) * price


@pytest.mark.parametrize("sensitivity", [0.0, 1e-300, 1e300])
def test_extreme_scales_are_drawn(sensitivity):
    noisy = SecureNoise().laplace(sensitivity, PureEvent("Laplace", 1.0))(1.0)
    assert (noisy == 1.0) == (sensitivity < 1)
    assert math.isfinite(noisy)


def test_a_scale_too_small_for_doubles_is_refused():
    with pytest.raises(RuntimeError, match="OpenDP prices"):
        SecureNoise().laplace(1e-320, PureEvent("Laplace", 1e10))


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_sum_with_noise_is_not_rounded_before_it_is_added(kind):
    # Noise that is drawn around zero and added to 1 in doubles is a multiple of 2^-54 where the
    # sum is small. OpenDP rounds the exact sum once: of a number below 2^-5 its last bit stands for
    # 2^-58 or less, so each is such a multiple with a chance of at most 1/16. All 30 are with a
    # chance below 1e-36; fewer than 30 of 30,000 are that small with one far below that.
    answer, paid = ANSWERS[kind], {"account": account(), "noise": SecureNoise()}
    sensitivity = {"laplace": 0.7, "gaussian": 1 / 3.3}[kind]  # noise of scale or deviation 1
    noisy = answer(lambda: np.ones(30_000), sensitivity=sensitivity, **paid)
    small = [Fraction(x) for x in noisy.tolist() if abs(x) < 2**-5]
    assert len(small) >= 30
    assert any((x * 2**54).denominator > 1 for x in small)
