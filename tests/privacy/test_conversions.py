"""Conversions, accounts and prices at the ends of what doubles hold, and against more digits."""

import math
from functools import partial

import pytest
from dpcgd_book.systems.as_published import Odometer, advanced_composition
from extremes import LEAST, deltas, extreme, numbers, positive
from hypothesis import given, strategies as st
from mpmath import mp, mpf
from people import refused

from dpcgd import BudgetSpent
from dpcgd.privacy import conversions
from dpcgd.privacy.budget import Budget, growth
from dpcgd.privacy.conversions import epsilon_of_rho, gaussian_delta, gaussian_multiplier
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.mechanisms import amplified, before_amplification

pytestmark = pytest.mark.filterwarnings("error")

LEAST_DELTA = 1e-300
DELTAS = [LEAST_DELTA, 1e-100, 1e-17, 1e-12, 1e-6, 0.1, 0.9]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(400):  # deltas of 1e-300 are differences of larger numbers
        yield


def exact_delta(multiplier, epsilon):
    """Of Gaussian noise, by its definition."""
    half, shift = 1 / (2 * mpf(multiplier)), mpf(epsilon) * mpf(multiplier)
    return mp.ncdf(half - shift) - mp.exp(mpf(epsilon)) * mp.ncdf(-half - shift)


def bound(rho, delta, excess):
    """Of epsilon, by the order 1 + excess of Renyi divergence."""
    a = 1 + excess
    return a * mpf(rho) + mp.log1p(-1 / a) - mp.log(a * mpf(delta)) / (a - 1)


def least_bound(rho, delta):
    """The least of them: there the derivative by the order, times excess^2, is zero."""

    def slope(excess):
        return mpf(rho) * excess**2 + mp.log((1 + excess) * mpf(delta))

    most = mp.sqrt(-mp.log(mpf(delta)) / mpf(rho))
    return bound(rho, delta, mp.findroot(slope, (0, most), solver="anderson"))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.02, 1.0, 30.0, 1e3, 1e6])
def test_an_epsilon_is_that_of_the_best_order_and_no_less(rho, delta):
    found, least = epsilon_of_rho(rho, delta), max(mpf(0), least_bound(rho, delta))
    room = mpf(10) ** -9
    assert least * (1 - room / 1000) - room / 10_000 <= found <= least * (1 + room) + room


@pytest.mark.parametrize("multiplier", [1e-3, 0.1, 1.0, 30.0, 9e3, 1.1e4, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("tail", [-1.0, 0.0, 2.0, 8.0, 20.0, 36.0])
def test_a_delta_of_gaussian_noise_has_its_digits_down_to_the_least(multiplier, tail):
    epsilon = max(0.0, (0.5 / multiplier + tail) / multiplier)
    exact = exact_delta(multiplier, epsilon)
    assert gaussian_delta(multiplier, epsilon) == pytest.approx(float(exact), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("multiplier", [0.1, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("epsilon", [-1e-9, -0.1, -1.0, -30.0, -800.0])
def test_a_delta_at_an_epsilon_below_zero(multiplier, epsilon):
    exact = float(exact_delta(multiplier, epsilon))
    assert gaussian_delta(multiplier, epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0, 1e4])
def test_a_budget_buys_noise_that_keeps_it(epsilon, delta):
    budget = Budget(epsilon, delta)
    multiplier, rho = gaussian_multiplier(budget), conversions.rho_of_budget(budget)
    room = 1 + mpf(10) ** -6
    assert exact_delta(multiplier, epsilon) <= delta * room
    assert exact_delta(multiplier * (1 - 1e-4), epsilon) > delta / room or multiplier < 1e-9
    assert least_bound(rho, delta) <= epsilon
    assert exact_delta(multiplier, conversions.gaussian_epsilon(multiplier, delta)) <= delta * room


@pytest.mark.parametrize("rho", [1e-200, 1e-12, 0.3, 1e9, 1e200])
def test_noise_for_a_rho_costs_no_more_to_the_last_digit(rho):
    multiplier = conversions.multiplier_of_rho(rho)
    assert mpf(rho) * (1 - mpf(10) ** -8) <= 1 / (2 * mpf(multiplier) ** 2) <= mpf(rho)


@pytest.mark.parametrize("value", [1e-100, 1 / 3, 1.1, 1e9 + 1 / 3])
def test_a_price_is_that_of_its_theorem_to_the_last_digits(value):
    exact = {PureEvent: mpf(value) ** 2 / 2, BoundedRangeEvent: mpf(value) ** 2 / 8}
    exact[GaussianEvent] = 1 / (2 * mpf(value) ** 2)
    exact[partial(ApproximateEvent, delta=1e-7)] = exact[PureEvent]
    for kind, price in exact.items():
        assert conversions.zcdp_rho(kind("any", value)) == pytest.approx(float(price), rel=1e-15)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 71.0, 300.0, 708.0])
def test_growth_is_an_exponential_without_one_up_to_where_doubles_end(epsilon):
    assert growth(epsilon) == pytest.approx(float(mp.expm1(mpf(epsilon))), rel=1e-12)
    assert growth(800.0) == math.inf


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 60.0, 700.0, 720.0, 5000.0])
def test_amplification_is_its_formula_at_any_epsilon(epsilon, rate):
    exact = mp.log1p(mpf(rate) * mp.expm1(mpf(epsilon)))
    assert amplified(epsilon, rate) == pytest.approx(float(exact), rel=1e-9)
    before = mp.log1p(mp.expm1(mpf(epsilon)) / mpf(rate))
    assert before_amplification(epsilon, rate) == pytest.approx(float(before), rel=1e-9)


@pytest.mark.parametrize("delta", [LEAST_DELTA, 1e-17, 1e-6])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 5.0])
def test_advanced_composition_is_its_formula(epsilon, delta):
    exact = mp.sqrt(2 * 50 * mp.log(1 / mpf(delta))) * epsilon + 50 * epsilon * mp.expm1(epsilon)
    assert advanced_composition(epsilon, 50, delta) == pytest.approx(float(exact), rel=1e-9)


# --- any numbers at all


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
    rho, multiplier = conversions.rho_of_budget(budget), gaussian_multiplier(budget)
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
    largest = conversions.rho_of_budget(budget) if kind is Filter else 0.5 / multiplier / multiplier
    if largest < 0.9e-200:
        refused("too small a budget", kind, budget)
        return
    account = kind(budget)
    account.spend(GaussianEvent("half", conversions.multiplier_of_rho(account.share(0.5))))
    assert 0 < account.remaining < account.rho < math.inf
    assert account.ledger.spent.epsilon <= epsilon
    assert "half" in str(account.ledger)


def test_a_share_of_next_to_nothing_is_refused():
    refused("nothing is left", Filter(Budget(1.0, 1e-6)).share, 1e-320, kind=BudgetSpent)


NO_NUMBERS = {
    epsilon_of_rho: [(-1.0, 1e-6), (math.nan, 1e-6), (1.0, -1.0), (1.0, math.nan), (1.0, 1.0)],
    gaussian_delta: [(-1.0, 1.0), (math.nan, 1.0), (0.0, 1.0), (1.0, math.nan)],
    conversions.multiplier_of_rho: [(-1.0,), (math.nan,), (0.0,)],
    amplified: [(-1.0, 0.5), (math.nan, 0.5), (1.0, -1.0), (1.0, math.nan)],
    before_amplification: [(1.0, 0.0)],
    Odometer: [(-1.0,), (math.nan,), (0.0,)],
    Budget: [(10**400, 1e-6)],
}


@pytest.mark.parametrize("call", NO_NUMBERS)
def test_what_is_no_number_of_its_kind_is_refused(call):
    for arguments in NO_NUMBERS[call]:
        refused(r"not|positive finite", call, *arguments)
