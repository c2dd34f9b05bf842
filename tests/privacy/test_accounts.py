import contextlib
import copy
import dataclasses
import math
import sys
import time
from collections import Counter
from fractions import Fraction
from functools import partial
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import common, privacy_loss_distribution, privacy_loss_mechanism
from dp_accounting.rdp import RdpAccountant
from dpcgd_book.systems.as_published import Odometer, advanced_composition
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from people import refused
from scipy import integrate, special, stats

from dpcgd import Dataset, laplace_pc, priv_pc
from dpcgd.privacy.budget import Budget, BudgetSpent, Spent, delta_for
from dpcgd.privacy.conversions import epsilon_of_rho, gaussian_multiplier, rho_of_budget, zcdp_rho
from dpcgd.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    Neighbours,
    PureEvent,
)
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, PureFilter
from dpcgd.privacy.mechanisms import AboveThreshold
from dpcgd.privacy.noise import SeededNoise

REPLACE_ONE = privacy_accountant.NeighboringRelation.REPLACE_ONE

seeded = settings(derandomize=True)


def between(least, most):
    """Numbers that are drawn by their logarithms."""
    return st.floats(math.log(least), math.log(most)).map(math.exp)


budgets = st.builds(Budget, between(1e-3, 50), between(1e-10, 1e-2))
epsilons = st.floats(-9, 2).map(math.exp)
events = st.one_of(
    st.builds(PureEvent, st.just("pure"), epsilons),
    st.builds(BoundedRangeEvent, st.just("choice"), epsilons),
    st.builds(GaussianEvent, st.just("Gaussian"), st.floats(-2, 9).map(math.exp)),
)
failures = between(1e-12, 1e-3)
events_that_may_fail = st.builds(ApproximateEvent, st.just("tested"), epsilons, failures)
any_events = st.lists(st.one_of(events, events_that_may_fail), max_size=30)


def their_event(event):
    """An event as dp-accounting has it: a pure one is randomised response, its worst case.

    So is one of bounded range, its losses in the middle of the range: plus and minus half of it.
    """
    if isinstance(event, GaussianEvent):
        return dp_event.GaussianDpEvent(event.noise_multiplier)
    epsilon = event.epsilon / 2 if isinstance(event, BoundedRangeEvent) else event.epsilon
    return dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)


def renyi_epsilon(their_events, delta):
    """By orders ever closer around the best, so hardly above the minimum over all orders."""
    counts = Counter(their_events)
    orders = 1.011 + np.geomspace(1e-3, 1e9, 40)
    for width, size in ((2.5, 40), (1.05, 20), (1.005, 20), (1.0005, 20), (1, 1)):
        accountant = RdpAccountant(orders, REPLACE_ONE)
        for event, times in counts.items():
            accountant.compose(event, times)
        epsilon, best = accountant.get_epsilon_and_optimal_order(delta)
        orders = 1 + (best - 1) * np.geomspace(1 / width, width, size)
    return epsilon


def loss_distribution_epsilon(pure_events, delta, steps=1000):
    """Pessimistic: each event's epsilon is rounded up to the next of many steps."""
    counts = Counter(event.epsilon for event in pure_events)
    interval = min(counts) / steps
    total = privacy_loss_distribution.identity(interval)
    for epsilon, times in counts.items():
        parameters = common.DifferentialPrivacyParameters(epsilon, 0)
        one = privacy_loss_distribution.from_privacy_parameters(parameters, interval)
        total = total.compose(one.self_compose(times))
    return total.get_epsilon_for_delta(delta)


INFINITE = (math.inf, -math.inf, np.float32(math.inf))


@pytest.mark.parametrize("bad", [0, -1, math.nan, *INFINITE, "1", None, 1 + 0j, [1.0], 1])
def test_a_budget_has_positive_finite_numbers_and_a_delta_below_one(bad):
    refused("delta must be", Budget, 1.0, bad)
    refused("epsilon must be a positive finite number", Budget, 0.0 if bad == 1 else bad, 1e-6)
    assert Budget(np.float64(2), math.nextafter(1, 0)).delta < 1


def test_a_delta_is_refused_exactly_from_one_over_n_on():
    for delta in (0.01, math.nextafter(0.01, 1), 0.5):
        refused("choose delta well below 1/n", delta_for, 100, delta)
        assert delta_for(100, delta, allow_delta=True) == delta
    assert delta_for(100, math.nextafter(0.01, 0)) < 0.01
    assert delta_for(99, 0.01) == 0.01


ORDERS = [1, 1.001, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000]


def concentrated_cost(p, q):
    """The smallest rho for which all Renyi divergences are below rho times their order."""
    loss = np.log(p / q)
    costs = [p @ loss]
    for order in ORDERS[1:]:
        largest = (order - 1) * loss.max()  # taken out, for large orders
        moment = p @ np.exp((order - 1) * loss - largest)
        costs.append((math.log(moment) + largest) / (order - 1) / order)
    return max(costs)


scores_and_moves = st.lists(st.tuples(st.floats(-5, 5), st.floats(-1, 1)), min_size=2, max_size=6)


@seeded
@given(scores_and_moves, st.floats(0.01, 8))
def test_no_exponential_mechanism_costs_more_than_an_eighth_of_epsilon_squared(candidates, epsilon):
    scores, moves = np.array(candidates).T
    before, after = (special.softmax(epsilon / 2 * x) for x in (scores, scores + moves))
    assert concentrated_cost(before, after) <= epsilon**2 / 8 + 1e-12


@settings(seeded, max_examples=60)
@given(between(1e-6, 100), between(1e-12, 1e-2))
def test_conversion_agrees_with_dp_accounting(rho, delta):
    ours = epsilon_of_rho(rho, delta)
    for event in (dp_event.ZCDpEvent(rho), dp_event.GaussianDpEvent(1 / math.sqrt(2 * rho))):
        theirs = renyi_epsilon([event], delta)
        # Below theirs by rounding only: their minimum is over some orders, ours over all. Where
        # delta^2 > 1 - e^-r they know by another theorem that epsilon is 0.
        if theirs > 0:
            assert theirs - 1e-7 * (theirs + math.sqrt(rho)) <= ours <= theirs * (1 + 1e-9)


def their_gaussian_delta(multiplier, epsilon):
    return privacy_loss_mechanism.GaussianPrivacyLoss(multiplier).get_delta_for_epsilon(epsilon)


@pytest.mark.slow
@settings(seeded, max_examples=200)
@given(budgets, st.one_of(st.just(0.0), st.floats(0.01, 0.9)), any_events)
def test_a_filter_never_lets_more_through_than_its_budget(budget, share, wishes):
    account, accepted = Filter(budget, reserved=share * budget.delta), []
    rest, failed = budget.delta - account.reserved, 0.0
    assert account.rho == rho_of_budget(Budget(budget.epsilon, rest))
    assert account.reserved == pytest.approx(share * budget.delta, rel=2e-9)
    for event in wishes:
        before = account.remaining, account.ledger
        try:
            account.spend(event)
        except BudgetSpent:
            assert (account.remaining, account.ledger) == before
            too_dear = zcdp_rho(event) > account.remaining - 1e-12 * account.rho
            assert too_dear or failed + event.delta > account.reserved * (1 - 1e-12)
        else:
            failed += event.delta
            accepted.append(event)
    assert account.ledger.events == tuple(accepted)
    exact = sum(Fraction(zcdp_rho(event)) for event in accepted)
    assert exact <= Fraction(account.rho) * (1 + Fraction(1, 10**15))
    left = float(Fraction(account.rho) - exact)
    assert account.remaining == pytest.approx(left, abs=1e-13 * account.rho)
    assert account.remaining >= 0
    failing = sum(Fraction(event.delta) for event in accepted)
    assert failing <= Fraction(account.reserved) * (1 + Fraction(1, 10**14))
    assert account.ledger.spent <= (budget.epsilon, budget.delta)
    if accepted:
        expected = epsilon_of_rho(float(exact), rest)
        assert account.ledger.spent.epsilon == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert renyi_epsilon(map(their_event, accepted), rest) <= budget.epsilon * (1 + 1e-6)


@settings(seeded, max_examples=100)
@given(budgets, st.lists(st.floats(0.001, 0.7), max_size=30))
def test_a_gaussian_filter_never_lets_more_through_than_its_budget(budget, wishes):
    account, precision = GaussianFilter(budget), Fraction(0)
    for part in wishes:
        before = account.remaining, account.ledger
        event = GaussianEvent("Gaussian", math.sqrt(0.5 / (part * account.rho)))
        try:
            account.spend(event)
        except BudgetSpent:
            assert (account.remaining, account.ledger) == before
        else:
            precision += 1 / Fraction(event.noise_multiplier) ** 2
    assert account.ledger.spent <= (budget.epsilon, budget.delta)
    if precision:
        together = 1 / math.sqrt(precision)
        assert together > gaussian_multiplier(budget)
        assert their_gaussian_delta(together, budget.epsilon) <= budget.delta * (1 + 1e-7)
        told = their_gaussian_delta(together, account.ledger.spent.epsilon)
        assert told <= budget.delta * (1 + 1e-7)


@settings(seeded, max_examples=60)
@given(budgets)
def test_a_gaussian_filter_allows_all_that_is_safe_and_more_than_a_zcdp_filter(budget):
    rho = GaussianFilter(budget).rho
    assert Filter(budget).rho < rho
    assert their_gaussian_delta(math.sqrt(0.5 / (rho * (1 + 1e-6))), budget.epsilon) > budget.delta


def delta_of_adaptive_run(epsilon, first, second, narrow=1.0):
    """Exact delta of two answers, the rho of the second a function of the first.

    Answers are in units of the noise that is paid for; a narrow one has less of it.
    """

    def excess(y):
        moved = math.sqrt(2 * first) / narrow
        loss, rest = moved * y - moved**2 / 2, second(y)
        beyond = epsilon - loss
        if not rest:
            return stats.norm.pdf(y) * math.exp(loss) * max(0.0, -math.expm1(beyond))
        mu = math.sqrt(2 * rest) / narrow
        tails = stats.norm.cdf([mu / 2 - beyond / mu, -mu / 2 - beyond / mu])
        return stats.norm.pdf(y) * (math.exp(loss) * tails[0] - math.exp(epsilon) * tails[1])

    return integrate.quad(excess, -12, 18, limit=2000, epsabs=1e-14)[0]


ADVERSARIES = {
    "spend all": lambda left: lambda y: left,
    "go on after a hit": lambda left: lambda y: left if y > 1 else 0.0,
    "go on after a miss": lambda left: lambda y: left if y < 1 else 0.0,
    "more the higher": lambda left: lambda y: left * stats.norm.cdf(3 * y),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_whoever_chooses_on_the_way_gets_no_more_than_one_gaussian(adversary, epsilon):
    # With half of the noise every one of them breaks the promise.
    budget = Budget(epsilon, 1e-3)
    for part in (0.1, 0.5, 0.8):
        rho = GaussianFilter(budget).rho
        second = ADVERSARIES[adversary]((1 - part) * rho)
        delta = delta_of_adaptive_run(epsilon, part * rho, second)
        assert delta <= budget.delta * (1 + 1e-7)
        if adversary == "spend all":
            assert delta == pytest.approx(budget.delta, rel=1e-6)
        assert delta_of_adaptive_run(epsilon, part * rho, second, 0.5) > budget.delta


def test_an_event_that_may_fail_is_refused_unless_its_delta_is_reserved():
    event = ApproximateEvent("tested", 0.05, 1e-7)
    for reserved, allowed in [(0.0, 0), (0.9e-7, 0), (1e-7, 1), (1.9e-7, 1), (3e-7, 3)]:
        account = Filter(Budget(1.0, 1e-6), reserved=reserved)
        for _ in range(allowed):
            account.spend(event)
        left = account.remaining
        refused("reserved", account.spend, event, kind=BudgetSpent)
        assert account.remaining == left
        assert len(account.ledger.events) == allowed
        account.spend(PureEvent("p", 0.05))


def test_prices_of_narrow_types_and_tiny_deltas_add_up():
    for account, event in (
        (PureFilter(Budget(1.0, 1e-6)), PureEvent("p", np.float16(2e-4))),
        (GaussianFilter(Budget(1.0, 1e-6)), GaussianEvent("g", np.float16(400.0))),
    ):
        refused("would exceed", account.spend, *[event] * 10_000, kind=BudgetSpent)
    account = Filter(Budget(1.0, 1e-6), reserved=1e-7)
    account.spend(ApproximateEvent("tested", 0.05, 0.9e-7))
    used = account._used.delta
    account.spend(ApproximateEvent("tested", 0.05, 1e-30))
    assert account._used.delta > used


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_no_second_budget(copied):
    account, how = Filter(Budget(1.0, 1e-6)), {"sensitivity": 1.0, "epsilon": 0.1}
    sieve = AboveThreshold(0.0, account=account, noise=SeededNoise(default_rng(0)), **how)
    for original in (account, sieve):
        refused("each copy would be a budget of its own", copied, original, kind=TypeError)


def test_threads_do_not_use_one_budget_twice(monkeypatch):
    account, after = PureFilter(Budget(1.0, 1e-6)), PureFilter._after

    def slow(self, used, event):
        time.sleep(0.05)
        return after(self, used, event)

    def spend(_):
        with contextlib.suppress(BudgetSpent):
            account.spend(PureEvent("p", 0.6))

    monkeypatch.setattr(PureFilter, "_after", slow)
    with ThreadPool(4) as threads:
        threads.map(spend, range(4), chunksize=1)
    assert len(account.ledger.events) == 1


@pytest.mark.parametrize("kind", [Filter, BasicFilter])
def test_an_event_too_cheap_for_the_last_digit_is_not_free(kind):
    account = kind(Budget(1.0, 1e-6))
    account.spend(PureEvent("p", 0.2))
    used = account._used.price
    account.spend(PureEvent("p", 1e-30))
    assert account._used.price > used


@pytest.mark.parametrize("share", [-1.0, 1.0, math.nan])
def test_a_share_for_rounding_adds_nothing(share):
    refused("share must be at least 0 and below 1", Filter(Budget(1.0, 1e-6)).keep, share)


@pytest.mark.parametrize("bad", [-1e-9, 1e-6, 2e-6, math.nan, math.inf])
def test_reserved_is_a_part_of_delta(bad):
    refused("reserved must be at least 0 and below delta", Filter, Budget(1.0, 1e-6), reserved=bad)


OTHER = Neighbours.ADD_OR_REMOVE_ONE
NONE = (0.0, -0.1, math.nan, math.inf)
TINY = 1e-170
HUGE = (1e154, 1e160, 1e200, sys.float_info.max, np.float64(1e200))
FREE = [PureEvent("p", TINY), BoundedRangeEvent("b", TINY), ApproximateEvent("a", 0.1, 0.0)]
"""These cost next to nothing, which a sum of epsilons can count."""
REFUSED = [
    *(kind("any", 0.1, neighbours=OTHER) for kind in (PureEvent, BoundedRangeEvent)),
    GaussianEvent("any", 50.0, OTHER),
    ApproximateEvent("any", 0.1, 1e-9, OTHER),
    *(kind("p", value) for kind in (PureEvent, BoundedRangeEvent) for value in (*NONE, *HUGE)),
    *(GaussianEvent("g", multiplier) for multiplier in (*NONE, 1e-200, 1e200)),
    *(ApproximateEvent("a", epsilon, 1e-9) for epsilon in NONE),
    *(ApproximateEvent("a", 0.1, delta) for delta in (*NONE[1:], 1.0)),
    *("Laplace", 0.1, None, ..., dp_event.LaplaceDpEvent(1.0)),
]


@pytest.mark.parametrize("event", [*REFUSED, *FREE], ids=str)
def test_events_that_no_account_can_price_are_refused_and_charge_nothing(event):
    budget, cheap = Budget(1.0, 1e-6), GaussianEvent("g", 50.0)
    basic = BasicFilter(budget)
    for account in (Filter(budget, reserved=1e-7), GaussianFilter(budget), basic):
        events = [event] if account is basic else [cheap, event]
        if account is not basic or event not in FREE:
            with pytest.raises((ValueError, TypeError, BudgetSpent)):
                account.spend(*events)
        assert account.ledger.events == ()
        assert account.ledger.spent == (0.0, 0.0)


def test_a_ledger_says_the_same_in_words_and_numbers():
    account = Filter(Budget(2.0, 1e-6), reserved=1e-7)
    assert account.ledger.spent == Spent(0.0, 0.0)
    assert len(account.ledger.to_frame()) == 0
    account.spend(*[PureEvent("Laplace", 0.1)] * 3, GaussianEvent("Gaussian", 8.0))
    account.spend(PureEvent("Laplace", 0.05), ApproximateEvent("tested release", 0.1, 1e-8))
    ledger, frame = account.ledger, account.ledger.to_frame().set_index("mechanism")
    rho = {"Laplace": 0.01625, "Gaussian": 1 / 128, "tested release": 0.005}
    assert frame["times"].to_dict() == {"Laplace": 4, "Gaussian": 1, "tested release": 1}
    assert frame["rho in all"].to_dict() == pytest.approx(rho, rel=1e-12)
    assert sum(rho.values()) == pytest.approx(account.rho - account.remaining, rel=1e-12)
    exact = epsilon_of_rho(sum(rho.values()), 1e-6 - account.reserved)
    assert ledger.spent == (pytest.approx(exact, rel=1e-12), 1e-6)
    for said in ("epsilon = 0.05 to 0.1  ", "delta = 1e-08", "0.016250", "promised (2, 1e-06)"):
        assert said in str(ledger)
    assert "promised (" not in str(dataclasses.replace(ledger, budget=None))


@pytest.mark.parametrize(("sieve", "examination"), [(0.5, 0.5), (0.3, 0.1), (1e-300, 700.0)])
def test_an_odometer_reads_the_published_formula_without_an_unfinished_sieve(sieve, examination):
    account = Odometer(1e-3)
    for hits in range(15):
        kinds = (advanced_composition(own, hits, 1e-3 / 2) for own in (sieve, examination))
        expected = (pytest.approx(sum(kinds)), 1e-3)
        assert account.ledger.spent == expected
        account.spend(PureEvent("above threshold", sieve))
        assert account.ledger.spent == expected
        account.spend(PureEvent("Laplace", examination))
    assert len(account.ledger.events) == 30
    assert account.ledger.budget is None
    assert "claimed, not proved" in str(account.ledger)


@st.composite
def small_data(draw):
    n, d = draw(st.integers(20, 300)), draw(st.integers(2, 5))
    cardinalities = draw(st.lists(st.integers(1, 4), min_size=d, max_size=d))
    rng = default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(0, cardinalities, (n, d))
    for v in range(1, d):
        # Some columns copy their neighbour, so that edges survive.
        copied = rng.random(n) < rng.choice([0.0, 0.5, 1.0])
        codes[copied, v] = codes[copied, v - 1] % cardinalities[v]
    return Dataset(codes, {f"v{i}": range(k) for i, k in enumerate(cardinalities)})


@pytest.mark.slow
@settings(seeded, max_examples=100)
@given(small_data(), budgets, st.integers(0, 10**6), st.sampled_from([-1.0, 0.0, 1.0]), st.data())
def test_independent_accountants_see_no_run_exceed_its_budget(data, budget, seed, margin, draw):
    rates = [partial(priv_pc, rate=rate) for rate in (1.0, 0.5, 0.9)]
    tests = [partial(laplace_pc, planned_tests=tests) for tests in (None, 1, 3)]
    run = draw.draw(st.sampled_from([*rates, *tests]))
    promise = {"epsilon": budget.epsilon, "delta": budget.delta, "allow_delta": True}
    release = run(data, **promise, rng=default_rng(seed), margin=margin)
    ledger, allowed = release.ledger, budget.epsilon * (1 + 1e-6)
    assert release.guarantee == "proved"
    assert ledger.budget == budget
    assert ledger.spent <= (budget.epsilon, budget.delta)
    if not ledger.events:
        assert ledger.spent == (0, 0)
        return
    assert renyi_epsilon([their_event(event) for event in ledger.events], budget.delta) <= allowed
    costs = [dp_event.ZCDpEvent(event.epsilon**2 / 2) for event in ledger.events]
    assert renyi_epsilon(costs, budget.delta) <= ledger.spent.epsilon + 1e-6 * budget.epsilon
    assert loss_distribution_epsilon(ledger.events, budget.delta) <= allowed


def test_the_independent_accountants_notice_an_overspent_ledger():
    epsilon = math.sqrt(2 * rho_of_budget(Budget(1.0, 1e-6)) / 20)
    honest = [PureEvent("Laplace", epsilon)] * 20
    overspent = [PureEvent("Laplace", 1.5 * epsilon)] * 20
    for count in (
        lambda events: renyi_epsilon(map(their_event, events), 1e-6),
        lambda events: loss_distribution_epsilon(events, 1e-6),
    ):
        assert 0.7 < count(honest) <= 1.0
        assert count(overspent) > 1.0
