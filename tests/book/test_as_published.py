"""The papers' own versions: settings of the papers, claims, and what is wrong with them."""

import math
import sys

import numpy as np
import pytest
from dpcgd_book.systems import as_published as published
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from people import refused
from scipy import stats
from scripted_noise import Script

import dpcgd.privacy.run
from dpcgd import Budget, load
from dpcgd.constraint.curate_pc import concentrated
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.privacy.conversions import epsilon_of_rho, gaussian_multiplier
from dpcgd.privacy.events import PureEvent
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import GTest, g_statistic
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, kendall_p


@pytest.mark.parametrize("n", [100, 2_000, 100_000])
def test_the_published_sensitivity_is_nine_halves_over_root_n_near_zero(n):
    expected = 0.5 - stats.norm.sf(4.5 / math.sqrt(n))
    for levels in ((2, 2), (3, 3, 2), (2, 2, 2, 2)):
        claimed = published.PublishedKendallP().sensitivity(n, levels)
        assert claimed == pytest.approx(expected, rel=1e-9)
    assert expected < KendallP().sensitivity(n, (3, 3, 2))


def test_the_published_version_runs_with_the_settings_of_the_paper(monkeypatch):
    data, noise = load("asia", n=10_000, rng=default_rng(0)), Script([0.0, 1.0, -1.0, *[-1e9] * 9])
    monkeypatch.setattr(dpcgd.privacy.run, "noise_source", lambda rng, secure: noise)
    with pytest.raises(StopIteration):
        published.published_priv_pc(data, epsilon=1.0, rng=None)
    (threshold, scale), (sieved, sieve_scale), (examined, examination_scale), *_ = noise.calls
    rate = published.optimal_rate(0.5)
    assert rate < 0.2
    inner, m = math.log(1 + (math.exp(0.5) - 1) / rate), noise.chosen[0][1]
    assert abs(m - rate * 10_000) <= 1
    assert threshold == 0
    assert [scale, sieve_scale] == pytest.approx([2 / inner, 4 / inner], rel=1e-3)
    assert examination_scale == pytest.approx(1 / 0.5, rel=1e-12)
    # A pair passes the sieve at p >= 0.1 - 0.02 (algorithm 2, line 5) and the examination at 0.1.
    whole, delta = Tables(data), [0.5 - stats.norm.sf(4.5 / math.sqrt(n)) for n in (m, 10_000)]
    p_sample, p = (kendall_p(t.counts((0, 1))) for t in (whole.subsample(np.arange(m)), whole))
    assert examined == pytest.approx((p - 0.1) / delta[1], rel=1e-9)
    assert sieved == pytest.approx((p_sample - 0.1 + 0.02) / delta[0], rel=1e-9)


def test_the_optimal_rate_has_the_least_noise_of_all_allowed():
    rates = np.linspace(0.05, 1, 20_001)
    for epsilon in (0.01, 0.1, 0.5, 1.0, 1.5, 3.0):
        noise = np.sqrt(1 / rates) / np.log1p(np.expm1(epsilon) / rates)
        assert published.optimal_rate(epsilon) == pytest.approx(rates[noise.argmin()], abs=1e-4)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 1.0, 1e9, sys.float_info.max])
def test_the_optimal_rate_is_a_rate(epsilon):
    assert 0.05 <= published.optimal_rate(epsilon) <= 1


VERSIONS = [(name, {}) for name in ("svt_pc", "priv_pc", "em_pc", "curate_pc", "noleaks")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "statistic"), [*VERSIONS, ("svt_pc", {"statistic": KendallZ()})])
def test_a_published_version_claims_and_does_not_promise(name, statistic):
    data = load("earthquake", n=300, rng=default_rng(0))
    system = getattr(published, f"published_{name}")
    settings = {"epsilon": 1.0, "rng": default_rng(0)}
    release = system(data, **settings, **statistic)
    assert (release.guarantee, release.ledger.budget) == ("claimed, not proved", None)
    assert release.seconds > 0
    refused("enforces no budget", system, data, **settings, rows_per_person=2)


def removals(table, alpha):
    """The same greed, written on lists and with G computed anew each time."""
    critical = GTest(alpha).threshold(table.shape)
    count, cells = 0, np.eye(table.size, dtype=int).reshape(-1, *table.shape)
    dependent = g_statistic(table) >= critical
    while (g_statistic(table) >= critical) == dependent and table.sum():
        fewer = [table - cells[cell] for cell in np.flatnonzero(table)]
        table = (min if dependent else max)(fewer, key=g_statistic)
        count += 1
    return count if dependent else -count


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (2, 2, 2), (3, 3)])
def test_flips_are_the_greedy_removals(shape):
    rng, flips = default_rng(3), published.PublishedFlips(alpha=0.05)
    for _ in range(15):
        table = rng.multinomial(60, rng.dirichlet(np.full(math.prod(shape), 0.7))).reshape(shape)
        found = flips.value(table)
        # Ties between cells may be broken otherwise after rounding: a step more or less.
        assert abs(found - removals(table, 0.05)) <= 1
        assert (found > 0) == (g_statistic(table) >= GTest(0.05).threshold(shape))


@settings(derandomize=True, max_examples=60)
@given(st.integers(1, 10**6), st.floats(1e-4, 2), st.floats(1e-12, 1e-2))
def test_the_papers_price_of_one_order_covers_the_zcdp_one(tests, epsilon, delta):
    rho = concentrated(tests, epsilon)
    assert epsilon_of_rho(float(rho), delta) <= published.leakage(tests, epsilon, delta)


ANSWERS = (2.39, {True}), (3.61, {False}), (3.0, {True, False})


@pytest.mark.parametrize(("value", "below"), ANSWERS)
def test_the_coin_is_tossed_in_the_grey_zone_only(value, below):
    data, noise = load("cancer", n=1_000, rng=default_rng(0)), SeededNoise(default_rng(0))
    # The threshold is 3.
    coin = published.CoinOracle(Tables(data), KendallZ(), math.nan, 1.0, None, noise, plan=None)
    assert {coin._is_below(value, 1.0) for _ in range(64)} == below  # false alarm 2^-63


def test_the_papers_account_adds_the_orders_and_refunds_the_rest():
    account = published.CurateOdometer(Budget(5.0, 1e-3))
    for order, (tests, epsilon) in enumerate([(10, 0.1), (4, 0.05)]):
        for _ in range(tests):
            account.spend(PureEvent("Laplace", epsilon, label=f"order {order}"))
    read = float(published.leakage(10, 0.1, 1e-3) + published.leakage(4, 0.05, 1e-3))
    assert (*account.ledger.spent, account.remaining) == pytest.approx((read, 2e-3, 5.0 - read))
    assert "claimed" in account.ledger.accountant


@pytest.mark.parametrize("name", ["cancer", "survey", "asia"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_published_reading_stays_within_its_total(name, epsilon):
    data = load(name, n=10_000, rng=default_rng(0))
    budget, rng = {"epsilon": epsilon, "delta": 1e-12}, default_rng(0)
    run = published.published_curate_pc(data, **budget, rng=rng, max_order=9)
    assert (run.guarantee, run.ledger.budget) == ("claimed, not proved", None)
    assert run.ledger.spent.epsilon <= epsilon
    assert not run.answers.stopped_early


def test_the_published_sensitivity_is_formula_16_at_two_records():
    def formula(m, n):
        larger, smaller = 9 * m * (m + 1) / (2 * (2 * m + 7)), 9 * m * m / (2 * (2 * m + 5))
        return 2 / math.sqrt(n * math.pi) * (larger - smaller) / (m - 1)

    found = published.PublishedCurateP().sensitivity(10_000, (2, 2))
    assert found == pytest.approx(formula(2, 10_000))
    assert all(formula(m, 10_000) < found for m in range(3, 200))
    assert found / math.sqrt(2) == pytest.approx(0.3627 / 100, rel=1e-3)
    assert found < KendallP().sensitivity(10_000, (2, 2)) / 2


def test_one_record_moves_the_published_gradient_many_times_its_claim():
    n, d, clip = 1000, 5, 0.1
    both, start = np.zeros((2, n, d)), np.zeros((d, d))
    both[1, 0] = 100.0
    gradients = [published.published_gradient(rows, start, clip=clip) for rows in both]
    claimed = math.sqrt(d * (d - 1)) * clip / n
    assert np.linalg.norm(np.subtract(*gradients)) == pytest.approx(n * claimed, rel=1e-12)


def test_noleaks_as_published_adds_up_pairs():
    data = load("cancer", n=2000, rng=default_rng(0))
    release = published.published_noleaks(data, epsilon=2.0, steps=4, rng=default_rng(1))
    assert (release.guarantee, release.ledger.budget) == ("claimed, not proved", None)
    assert release.ledger.spent == pytest.approx((2.0, 1e-6), rel=1e-12)
    each = gaussian_multiplier(Budget(0.5, 1e-6 / 4))
    assert [event.noise_multiplier for event in release.ledger.events] == [each] * 4
