import itertools
import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import Dataset, laplace_pc, priv_pc
from dpcgd.mechanisms import AboveThreshold, SeededNoise, gaussian, laplace
from dpcgd.privacy import (
    Budget,
    BudgetSpent,
    Filter,
    GaussianEvent,
    Ledger,
    Neighbours,
    Odometer,
    PureEvent,
    Spent,
    epsilon_of_rho,
    rho_of_budget,
    zcdp_rho,
)

REPLACE_ONE = privacy_accountant.NeighboringRelation.REPLACE_ONE

seeded = settings(derandomize=True, deadline=None)
budgets = st.builds(
    Budget,
    st.floats(math.log(1e-3), math.log(50)).map(math.exp),
    st.floats(math.log(1e-10), math.log(1e-2)).map(math.exp),
)
events = st.one_of(
    st.builds(PureEvent, st.just("pure"), st.floats(-9, 2).map(math.exp)),
    st.builds(GaussianEvent, st.just("Gaussian"), st.floats(-2, 9).map(math.exp)),
)


def their_event(event):
    """An event as dp-accounting has it: a pure one is randomised response, its worst case."""
    if isinstance(event, GaussianEvent):
        return dp_event.GaussianDpEvent(event.noise_multiplier)
    return dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(event.epsilon)), 2)


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


@pytest.mark.parametrize(
    "bad", [0, 0.0, -1, math.nan, math.inf, -math.inf, "1", None, 1 + 0j, [1.0]]
)
def test_a_budget_has_positive_finite_numbers(bad):
    with pytest.raises(ValueError, match="epsilon must be a positive finite number"):
        Budget(bad, 1e-6)
    with pytest.raises(ValueError, match="delta must be a positive finite number"):
        Budget(1.0, bad)


def test_delta_is_below_one():
    for bad in (1, 1.0, 2.0):
        with pytest.raises(ValueError, match="delta must be below 1"):
            Budget(1.0, bad)
    assert Budget(np.float64(2), math.nextafter(1, 0)).delta < 1


@pytest.mark.parametrize("number", [np.float32(1), np.int64(1)])
def test_a_budget_takes_numbers_of_numpy(number):
    assert Budget(number, 1e-6).epsilon == 1


def test_a_budget_warns_exactly_from_one_over_n_on():
    for delta in (0.01, math.nextafter(0.01, 1), 0.5):
        with pytest.warns(UserWarning, match="choose delta well below 1/n"):
            Budget(1.0, delta).warn_if_weak(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Budget(1.0, math.nextafter(0.01, 0)).warn_if_weak(100)
        Budget(1.0, 0.01).warn_if_weak(99)


def test_zcdp_costs_are_those_of_bun_and_steinke():
    assert zcdp_rho(PureEvent("p", 0.3)) == pytest.approx(0.045, rel=1e-15)
    assert zcdp_rho(GaussianEvent("g", 5.0)) == pytest.approx(0.02, rel=1e-15)


def test_events_of_unknown_cost_are_refused():
    for unknown in ("Laplace", 0.1, None, object(), dp_event.LaplaceDpEvent(1.0)):
        with pytest.raises(TypeError, match="no cost is known"):
            zcdp_rho(unknown)
        account = Filter(Budget(1.0, 1e-6))
        with pytest.raises(TypeError, match="no cost is known"):
            account.spend(unknown)


@settings(seeded, max_examples=60)
@given(
    st.floats(math.log(1e-6), math.log(100)).map(math.exp),
    st.floats(math.log(1e-12), math.log(1e-2)).map(math.exp),
)
def test_conversion_agrees_with_dp_accounting(rho, delta):
    ours = epsilon_of_rho(rho, delta)
    for event in (dp_event.ZCDpEvent(rho), dp_event.GaussianDpEvent(1 / math.sqrt(2 * rho))):
        theirs = renyi_epsilon([event], delta)
        # Below theirs by rounding only: their minimum is over some orders, ours over all. Where
        # delta^2 > 1 - e^-r they know by another theorem that epsilon is 0.
        if theirs > 0:
            assert theirs - 1e-7 * (theirs + math.sqrt(rho)) <= ours <= theirs * (1 + 1e-9)


def test_conversion_is_close_to_the_closed_form_that_is_known_to_be_valid():
    for rho in np.geomspace(1e-8, 1e3, 45):
        for delta in (1e-15, 1e-10, 1e-6, 1e-2):
            simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
            assert 0 <= epsilon_of_rho(rho, delta) <= simple
            if rho * math.log(1 / delta) > 1:
                assert epsilon_of_rho(rho, delta) > 0.5 * simple


def test_conversion_never_claims_less_than_the_exact_loss_of_gaussian_noise():
    # A Gaussian of multiplier s is (e, d)-private for the d below and no less (Balle, Wang 2018).
    def tail(x):
        return 0.5 * math.erfc(x / math.sqrt(2))

    for rho in np.geomspace(1e-4, 20, 25):
        mu = math.sqrt(2 * rho)
        for delta in (1e-10, 1e-6, 1e-2):
            epsilon = epsilon_of_rho(rho, delta)
            exact = tail(epsilon / mu - mu / 2) - math.exp(epsilon) * tail(epsilon / mu + mu / 2)
            assert exact <= delta


def test_conversion_grows_with_rho_and_falls_with_delta():
    rhos = np.geomspace(1e-12, 1e3, 400)
    for delta in (1e-12, 1e-6, 1e-2):
        epsilons = [epsilon_of_rho(rho, delta) for rho in rhos]
        assert epsilons[-1] > epsilons[0]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(epsilons))
        assert all(
            epsilon_of_rho(rho, delta / 2) >= e for rho, e in zip(rhos, epsilons, strict=True)
        )
    assert epsilon_of_rho(0.0, 1e-6) == 0


@settings(seeded, max_examples=100)
@given(budgets)
def test_rho_of_a_budget_is_the_largest_that_stays_within_it(budget):
    rho = rho_of_budget(budget)
    assert epsilon_of_rho(rho, budget.delta) <= budget.epsilon
    assert epsilon_of_rho(rho * (1 + 1e-6), budget.delta) > budget.epsilon


def test_tiny_budgets_have_a_rho_too():
    for budget in (Budget(1e-9, 1e-300), Budget(1e-12, 1e-15)):
        rho = rho_of_budget(budget)
        assert 0 < rho < budget.epsilon
        assert epsilon_of_rho(rho, budget.delta) <= budget.epsilon


@settings(seeded, max_examples=100)
@given(budgets, st.lists(events, max_size=30))
def test_a_filter_never_lets_more_through_than_its_budget(budget, wishes):
    account, accepted = Filter(budget), []
    for event in wishes:
        before = account.remaining, account.ledger
        try:
            account.spend(event)
        except BudgetSpent:
            assert (account.remaining, account.ledger) == before
            assert zcdp_rho(event) > account.remaining - 1e-12 * account.rho
        else:
            accepted.append(event)
    assert account.ledger.events == tuple(accepted)
    exact = sum(Fraction(zcdp_rho(event)) for event in accepted)
    assert exact <= Fraction(account.rho) * (1 + Fraction(1, 10**15))
    left = float(Fraction(account.rho) - exact)
    assert account.remaining == pytest.approx(left, abs=1e-13 * account.rho)
    assert account.remaining >= 0
    assert account.ledger.spent <= (budget.epsilon, budget.delta)
    if accepted:
        their_epsilon = renyi_epsilon(map(their_event, accepted), budget.delta)
        assert their_epsilon <= budget.epsilon * (1 + 1e-6)


@settings(seeded, max_examples=60)
@given(budgets, st.lists(st.floats(0.01, 1.5), min_size=5, max_size=60), st.booleans())
def test_an_adaptive_spender_that_sees_what_remains_cannot_exceed_the_budget(budget, shares, pure):
    account = Filter(budget)
    for share in shares:
        if account.remaining < 1e-9 * account.rho:
            break
        rho = share * account.remaining
        if pure:
            event = PureEvent("p", math.sqrt(2 * rho))
        else:
            event = GaussianEvent("g", 1 / math.sqrt(2 * rho))
        try:
            account.spend(event)
        except BudgetSpent:
            assert share > 1 - 1e-6
        else:
            assert share < 1 + 1e-6
    spent = sum(Fraction(zcdp_rho(event)) for event in account.ledger.events)
    assert spent <= Fraction(rho_of_budget(budget)) * (1 + Fraction(1, 10**15))
    assert account.ledger.spent.epsilon <= budget.epsilon


def test_a_filter_can_be_emptied_to_the_last_bit_and_then_refuses_everything():
    account = Filter(Budget(1.0, 1e-6))
    account.spend(PureEvent("p", 0.2))
    account.rho -= account.remaining
    assert account.remaining == 0
    for event in (PureEvent("p", 0.2), PureEvent("p", 1e-6), GaussianEvent("g", 1e6)):
        with pytest.raises(BudgetSpent, match="would exceed epsilon = 1, delta = 1e-06"):
            account.spend(event)
    assert len(account.ledger.events) == 1


def test_events_for_other_neighbours_are_refused_and_charge_nothing():
    other = Neighbours.ADD_OR_REMOVE_ONE
    for mine, theirs in [(Neighbours.REPLACE_ONE, other), (other, Neighbours.REPLACE_ONE)]:
        account = Filter(Budget(1.0, 1e-6), neighbours=mine)
        for event in (PureEvent("p", 0.1, theirs), GaussianEvent("g", 50.0, theirs)):
            with pytest.raises(ValueError, match=f"{theirs.value}, this run promises {mine.value}"):
                account.spend(event)
        assert account.remaining == account.rho
        account.spend(PureEvent("p", 0.1, mine))
        assert mine.value in account.ledger.accountant


@pytest.mark.parametrize(
    "event",
    [
        *(PureEvent("p", epsilon) for epsilon in (0.0, math.nan, math.inf, 1e-170)),
        *(GaussianEvent("g", multiplier) for multiplier in (0.0, math.nan, math.inf)),
    ],
    ids=str,
)
def test_events_that_cost_nothing_or_everything_are_refused(event):
    account = Filter(Budget(1.0, 1e-6))
    with pytest.raises((ValueError, BudgetSpent)):
        account.spend(event)
    assert account.remaining == account.rho
    assert account.ledger.events == ()


@pytest.mark.parametrize("event", [PureEvent("p", -0.1), GaussianEvent("g", -10.0)], ids=str)
def test_events_with_a_negative_parameter_are_refused(event):
    account = Filter(Budget(1.0, 1e-6))
    with pytest.raises(ValueError):
        account.spend(event)
    assert account.remaining == account.rho


def test_a_ledger_says_the_same_in_words_and_numbers():
    account = Filter(Budget(2.0, 1e-6))
    assert account.ledger.spent == Spent(0.0, 0.0)
    assert len(account.ledger.to_frame()) == 0
    for event in [
        *[PureEvent("Laplace", 0.1)] * 3,
        GaussianEvent("Gaussian", 8.0),
        PureEvent("Laplace", 0.05),
    ]:
        account.spend(event)
    ledger, frame = account.ledger, account.ledger.to_frame()
    rho = 3 * 0.1**2 / 2 + 1 / 128 + 0.05**2 / 2
    assert ledger.budget == Budget(2.0, 1e-6)
    assert ledger.spent.delta == 1e-6
    assert ledger.spent.epsilon == pytest.approx(epsilon_of_rho(rho, 1e-6), rel=1e-12)
    assert frame.columns.tolist() == ["mechanism", "times", "each", "rho in all"]
    assert frame.groupby("mechanism")["times"].sum().to_dict() == {"Laplace": 4, "Gaussian": 1}
    in_all = frame.groupby("mechanism")["rho in all"].sum()
    assert in_all["Laplace"] == pytest.approx(0.01625, rel=1e-12)
    assert in_all["Gaussian"] == pytest.approx(1 / 128, rel=1e-12)
    assert in_all.sum() == pytest.approx(account.rho - account.remaining, rel=1e-12)
    prices = " ".join(frame["each"])
    assert all(price in prices for price in ("epsilon = 0.", "0.05", "0.1", "noise multiplier = 8"))
    head, *rows, foot = str(ledger).splitlines()
    assert head.split() == ["mechanism", "times", "each", "rho", "in", "all"]
    for row, (mechanism, times, each, rho_in_all) in zip(
        rows, frame.itertuples(index=False, name=None), strict=True
    ):
        first, second, *price, last = row.split()
        assert (first, int(second), " ".join(price)) == (mechanism, times, each)
        assert float(last) == pytest.approx(rho_in_all, abs=1e-6)
    assert foot == (
        f"spent epsilon = {ledger.spent.epsilon:.4g} of 2 at delta = 1e-06 "
        "(zCDP filter, replace one record)"
    )


def test_a_ledger_cannot_be_changed():
    account = Filter(Budget(2.0, 1e-6))
    account.spend(PureEvent("Laplace", 0.1))
    ledger = account.ledger
    with pytest.raises(AttributeError):
        ledger.spent = Spent(0.0, 0.0)
    account.spend(PureEvent("Laplace", 0.1))
    assert len(ledger.events) == 1
    assert isinstance(ledger, Ledger)


def odometer_reading(sieve, examination, hits, delta):
    """Total of the published code: advanced composition of each kind at half of delta."""
    return sum(
        math.sqrt(2 * hits * math.log(2 / delta)) * e + hits * e * (math.exp(e) - 1)
        for e in (sieve, examination)
    )


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize(("sieve", "examination"), [(0.5, 0.5), (0.3, 0.1)])
def test_an_odometer_reads_the_published_formula_without_an_unfinished_sieve(
    sieve, examination, unfinished
):
    account = Odometer(1e-3)
    for hits in range(1, 15):
        account.spend(PureEvent("above threshold", sieve))
        account.spend(PureEvent("Laplace", examination))
        if unfinished:
            ahead = Odometer(1e-3)
            for event in (*account.ledger.events, PureEvent("above threshold", sieve)):
                ahead.spend(event)
        ledger = ahead.ledger if unfinished else account.ledger
        assert len(ledger.events) == 2 * hits + unfinished
        expected = odometer_reading(sieve, examination, hits, 1e-3)
        assert ledger.spent == (pytest.approx(expected, rel=1e-12), 1e-3)
        assert ledger.budget is None
        assert "claimed, not proved" in str(ledger)


def test_an_odometer_reads_nothing_before_the_first_hit():
    account = Odometer(1e-3)
    assert account.ledger.spent.epsilon == 0
    account.spend(PureEvent("above threshold", 0.5))
    assert account.ledger.spent.epsilon == 0
    assert len(account.ledger.events) == 1


@pytest.mark.parametrize("run", ["laplace", "gaussian", "above"])
def test_a_spend_is_refused_before_the_query_is_taken(run):
    taken, account, noise = [], Filter(Budget(1.0, 1e-6)), SeededNoise(default_rng(0))

    def query():
        taken.append(1)
        return 0.0

    def once():
        if run == "laplace":
            laplace(query, sensitivity=1, epsilon=0.12, account=account, noise=noise)
        elif run == "gaussian":
            gaussian(query, sensitivity=1, noise_multiplier=8.4, account=account, noise=noise)
        else:
            sieve = AboveThreshold(0.0, sensitivity=1, epsilon=0.12, account=account, noise=noise)
            sieve.above(query)

    for answers in range(1, 4):
        once()
        assert len(taken) == len(account.ledger.events) == answers
    with pytest.raises(BudgetSpent):
        once()
    assert len(taken) == len(account.ledger.events) == 3


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


@settings(seeded, max_examples=100)
@given(small_data(), budgets, st.integers(0, 10**6), st.sampled_from([-1.0, 0.0, 1.0]), st.data())
def test_no_run_exceeds_its_budget_in_the_books_of_an_independent_accountant(
    data, budget, seed, margin, draw
):
    run = draw.draw(st.sampled_from([priv_pc, laplace_pc]))
    if run is priv_pc:
        extra = {"rate": draw.draw(st.sampled_from([1.0, 0.5, 0.9]))}
    else:
        extra = {"planned_tests": draw.draw(st.sampled_from([None, 1, 3]))}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "delta = ", UserWarning)
        release = run(
            data,
            epsilon=budget.epsilon,
            delta=budget.delta,
            rng=default_rng(seed),
            margin=margin,
            **extra,
        )
    ledger, allowed = release.ledger, budget.epsilon * (1 + 1e-6)
    assert release.guarantee == "proved"
    assert ledger.budget == budget
    assert ledger.spent <= (budget.epsilon, budget.delta)
    if not ledger.events:
        assert ledger.spent == (0, 0)
        return
    their_events = [their_event(event) for event in ledger.events]
    assert renyi_epsilon(their_events, budget.delta) <= allowed
    costs = [dp_event.ZCDpEvent(event.epsilon**2 / 2) for event in ledger.events]
    assert renyi_epsilon(costs, budget.delta) <= ledger.spent.epsilon + 1e-6 * budget.epsilon
    assert loss_distribution_epsilon(ledger.events, budget.delta) <= allowed


def test_the_independent_accountants_notice_an_overspent_ledger():
    budget = Budget(1.0, 1e-6)
    epsilon = math.sqrt(2 * rho_of_budget(budget) / 20)
    honest = [PureEvent("Laplace", epsilon)] * 20
    overspent = [PureEvent("Laplace", 1.5 * epsilon)] * 20
    for count in (
        lambda events: renyi_epsilon(map(their_event, events), 1e-6),
        lambda events: loss_distribution_epsilon(events, 1e-6),
    ):
        assert 0.7 < count(honest) <= 1.0
        assert count(overspent) > 1.0
