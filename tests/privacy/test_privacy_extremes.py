"""Budgets, prices and noise at the ends of double precision."""

import math
from unittest import mock

import pytest
from extremes import LEAST, deltas, extreme, numbers, positive
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import BudgetSpent
from dpcgd.privacy import mechanisms
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import (
    epsilon_of_rho,
    gaussian_delta,
    gaussian_multiplier,
    multiplier_of_rho,
    rho_of_budget,
)
from dpcgd.privacy.events import GaussianEvent, PureEvent
from dpcgd.privacy.filters import Filter, GaussianFilter, Odometer
from dpcgd.privacy.mechanisms import amplified, before_amplification
from dpcgd.privacy.noise import SeededNoise

pytestmark = pytest.mark.filterwarnings("error")


@extreme
@given(st.one_of(positive, st.sampled_from([0.0, 5e-324, math.inf])), deltas)
def test_epsilon_of_rho_is_at_most_that_of_bun_and_steinke(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    looser = rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))
    assert 0 <= epsilon < math.inf or rho == math.inf
    assert epsilon <= looser * (1 + 1e-9) or rho < LEAST
    assert epsilon >= rho / 2 or rho <= 1e3  # beyond, delta hardly matters


@extreme
@given(positive, deltas)
def test_a_budget_is_kept_by_its_rho_and_its_multiplier(epsilon, delta):
    budget = Budget(epsilon, delta)
    rho, multiplier = rho_of_budget(budget), gaussian_multiplier(budget)
    assert 0 <= rho < math.inf
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert 0 < multiplier < math.inf
    assert 0 <= gaussian_delta(multiplier, epsilon) <= delta
    assert 0 <= gaussian_delta(epsilon, math.inf) <= gaussian_delta(epsilon, -epsilon) <= 1


@extreme
@given(numbers.map(abs), st.one_of(st.floats(LEAST, 1), st.floats(1e-9, 1)))
def test_amplification_is_total_and_has_an_inverse(epsilon, rate):
    assert 0 <= amplified(epsilon, rate) <= epsilon * (1 + 1e-15)
    more = before_amplification(epsilon, rate)
    assert epsilon * (1 - 1e-15) <= more < math.inf
    assert rate < 1e-9 or amplified(more, rate) == pytest.approx(epsilon, rel=1e-9)


@extreme
@given(positive, deltas, st.sampled_from([Filter, GaussianFilter]))
def test_a_filter_is_refused_or_pays_within_its_budget(epsilon, delta, kind):
    budget = Budget(epsilon, delta)
    multiplier = gaussian_multiplier(budget)
    largest = rho_of_budget(budget) if kind is Filter else 0.5 / multiplier / multiplier
    if largest < 0.9e-200:
        with pytest.raises(ValueError, match="too small a budget"):
            kind(budget)
        return
    account = kind(budget)
    account.spend(GaussianEvent("half", multiplier_of_rho(account.share(0.5))))
    assert 0 < account.remaining < account.rho < math.inf
    assert account.ledger.spent.epsilon <= epsilon
    assert "half" in str(account.ledger)


def test_a_share_of_next_to_nothing_is_refused():
    with pytest.raises(BudgetSpent, match="nothing is left"):
        Filter(Budget(1.0, 1e-6)).share(1e-320)


@extreme
@given(st.lists(positive, min_size=1, max_size=5))
def test_an_odometer_reads_whatever_ran(epsilons):
    account = Odometer(LEAST)
    account.spend(*(PureEvent("a", epsilon) for epsilon in epsilons))
    assert account.ledger.spent.epsilon >= 0
    assert "claimed" in str(account.ledger)


NO_NUMBERS = {
    epsilon_of_rho: [(-1.0, 1e-6), (math.nan, 1e-6), (1.0, -1.0), (1.0, math.nan), (1.0, 1.0)],
    gaussian_delta: [(-1.0, 1.0), (math.nan, 1.0), (0.0, 1.0), (1.0, math.nan)],
    multiplier_of_rho: [(-1.0,), (math.nan,), (0.0,)],
    amplified: [(-1.0, 0.5), (math.nan, 0.5), (1.0, -1.0), (1.0, math.nan)],
    before_amplification: [(1.0, 0.0)],
    Odometer: [(-1.0,), (math.nan,), (0.0,)],
    Budget: [(10**400, 1e-6)],
}


@pytest.mark.parametrize("call", NO_NUMBERS)
def test_what_is_no_number_of_its_kind_is_refused(call):
    for arguments in NO_NUMBERS[call]:
        with pytest.raises(ValueError, match=r"not|positive finite"):
            call(*arguments)


SCALED = {
    mechanisms.laplace: {"epsilon": 0.01},
    mechanisms.exponential: {"epsilon": 0.01},
    mechanisms.permute_and_flip: {"epsilon": 0.01},
    mechanisms.gaussian: {"noise_multiplier": 10.0},
}


@pytest.mark.parametrize("mechanism", SCALED)
@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf, 1e300])
def test_noise_without_a_scale_is_refused_before_it_is_paid(mechanism, sensitivity):
    account = Filter(Budget(1.0, 1e-6), reserved=1e-7)
    rest = {"account": account, "noise": SeededNoise(default_rng(0))}
    untouched = mock.Mock(side_effect=AssertionError("the data was looked at"))
    with pytest.raises(ValueError, match=r"no \w+ of noise"):
        mechanism(untouched, sensitivity=sensitivity, **SCALED[mechanism], **rest)
    rest["epsilon"] = 0.01
    with pytest.raises(ValueError, match="no scale of noise"):
        mechanisms.propose_test_release(
            untouched, untouched, proposed=sensitivity, delta=1e-8, **rest
        )
    with pytest.raises(ValueError, match="no scale of noise"):
        mechanisms.AboveThreshold(0.0, sensitivity=sensitivity, **rest)
    assert account.ledger.events == ()
