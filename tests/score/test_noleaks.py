"""NOTEARS from noisy gradients: bounds, budgets, and attacks on what is claimed."""

import math

import numpy as np
import pytest
from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.data.mixed_networks import random_sem
from dpcgd_book.systems.as_published import published_gradient
from extremes import extreme, positive
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import default_rng
from people import refused

import dpcgd.score.noleaks as module
from dpcgd import Budget, load
from dpcgd.privacy.conversions import gaussian_multiplier, zcdp_rho
from dpcgd.privacy.events import GaussianEvent
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.score.noleaks import clipped_gradient, descend, noleaks
from dpcgd.score.notears import acyclic_graph, fit, squared_loss
from dpcgd.score.schedules import additive, exponential, multiplicative, rising, uniform

seeded = settings(derandomize=True, max_examples=100)
SCHEDULES = [uniform, additive, exponential, multiplicative, rising]


def test_descend_with_exact_gradients_agrees_with_fit():
    gram = random_sem(6, 6, rng=default_rng(3)).covariance
    gram = gram / np.mean(np.diag(gram))
    steps = descend(lambda at: squared_loss(at, gram)[1], 6, steps=100)
    names = range(6)
    assert acyclic_graph(steps, 0.3, names).edges == acyclic_graph(fit(gram), 0.3, names).edges


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@seeded
@given(epsilon=st.floats(1e-3, 100), steps=st.integers(1, 300))
def test_no_schedule_overspends_or_is_refused(schedule, epsilon, steps):
    account = GaussianFilter(Budget(epsilon, 1e-6))
    shares = schedule(epsilon, steps)
    prices = [zcdp_rho(GaussianEvent("Gaussian", s)) for s in module._for_shares(0.9, shares)]
    assert np.asarray(prices) == pytest.approx(0.9 * shares**2 / (shares**2).sum(), rel=1e-6)
    for multiplier in module._for_shares(account.share(1), shares):
        account.spend(GaussianEvent("Gaussian", multiplier))
    assert account.ledger.spent <= (epsilon, 1e-6)
    assert account.remaining < 1e-6 * account.rho


def test_a_clipped_gradient_is_the_mean_over_records():
    rng = default_rng(0)
    rows, at = rng.normal(size=(30, 4)), rng.normal(size=(4, 4))
    total = np.zeros((4, 4))
    for x in rows:
        one = -np.outer(x, x - at.T @ x)
        np.fill_diagonal(one, 0)
        total += one * min(1, 2.0 / np.linalg.norm(one))
    assert clipped_gradient(rows, at, clip=2.0) == pytest.approx(total / 30, rel=1e-12)
    whole = squared_loss(at, rows.T @ rows / 30)[1]
    np.fill_diagonal(whole, 0)
    for gradient in (clipped_gradient, published_gradient):
        assert gradient(rows, at, clip=1e9) == pytest.approx(whole, rel=1e-12)


def test_equal_rows_may_be_told_once():
    data = load("sachs", n=3000, rng=default_rng(0))
    rows, times = module.distinct_rows(data)
    every = data.scaled
    assert len(rows) < times.sum() == 3000
    assert times @ rows == pytest.approx(every.sum(axis=0), rel=1e-12)
    at = default_rng(1).normal(size=(11, 11))
    collapsed = clipped_gradient(rows, at, clip=3.0, times=times)
    assert collapsed == pytest.approx(clipped_gradient(every, at, clip=3.0), rel=1e-9)


@seeded
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(0.01, 100))
def test_no_replaced_record_moves_a_clipped_gradient_further_than_its_bound(seed, d, clip):
    rng = default_rng(seed)
    rows, at = rng.normal(size=(5, d)) * 10 ** rng.uniform(-2, 2), rng.normal(size=(d, d))
    other = rows.copy()
    other[0] = rng.normal(size=d) * 10 ** rng.uniform(-2, 2)
    gradients = (clipped_gradient(data, at, clip=clip) for data in (rows, other))
    assert np.linalg.norm(np.subtract(*gradients)) <= 2 * clip / 5 * (1 + 1e-9)


@seeded
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(1e-9, 1e9))
def test_no_row_is_longer_than_the_clip_however_unequal_its_entries(seed, d, clip):
    """A norm computed as a difference made this 1.4e7 times too long."""
    row = 10 ** default_rng(seed).uniform(-12, 12, (1, d))
    assert np.linalg.norm(clipped_gradient(row, np.zeros((d, d)), clip=clip)) <= clip * (1 + 1e-12)
    steep = clipped_gradient(np.array([[1e8, 1.0]]), np.zeros((2, 2)), clip=10.0)
    assert np.linalg.norm(steep) == pytest.approx(10, rel=1e-12)


def test_opposite_records_reach_the_bound():
    rows = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    other = np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]])
    gradients = [clipped_gradient(r, np.zeros((2, 2)), clip=0.5) for r in (rows, other)]
    assert np.linalg.norm(np.subtract(*gradients)) == pytest.approx(2 * 0.5 / 3, rel=1e-12)


@seeded
@given(arrays(float, (2, 4), elements=st.floats(-1, 1)))
def test_means_and_squares_move_by_at_most_2_root_d(pair):
    moves = [module.means_of(row[None], np.ones(1)) for row in pair]
    assert np.linalg.norm(np.subtract(*moves)) <= 2 * math.sqrt(4) * (1 + 1e-12)


@pytest.mark.slow
def test_a_clipped_step_is_as_private_as_it_says_and_not_with_half_the_noise_or_as_published():
    """A large delta leaves little noise, and so much to see; false alarms below 1e-9."""
    n, one, at = 200, Budget(1.0, 0.01), np.zeros((2, 2))
    rows, other = np.zeros((2, n, 2))
    rows[0], other[0] = (5.0, 5.0), (5.0, -5.0)

    def shown(mean, moves):
        rng, deviation = default_rng(0), gaussian_multiplier(one) * moves

        def step(rows):
            noisy = mean(rows, at, clip=1.0) + rng.normal(scale=deviation, size=(2, 2))
            return noisy[0, 1] + noisy[1, 0]

        return empirical_epsilon(step, rows, other, delta=one.delta, trials=20_000)

    assert shown(clipped_gradient, 2 / n) <= 1.0
    assert shown(clipped_gradient, 2 / n / 2) > 1.0
    assert shown(published_gradient, math.sqrt(2) / n) > 1.0


@pytest.mark.parametrize("shares", [np.zeros(30), np.ones(2), np.full(30, math.nan)])
def test_a_schedule_that_pays_for_no_step_is_refused(shares):
    data = load("cancer", n=500, rng=default_rng(0))
    settings = {"schedule": lambda total, steps: shares, "rng": default_rng(0)}
    refused("each of the 30 steps an epsilon", noleaks, data, epsilon=1.0, **settings)


# --- schedules


@seeded
@given(total=st.floats(1e-3, 100), steps=st.integers(2, 100))
def test_which_schedules_rise(total, steps):
    for schedule in (additive, exponential, rising):
        assert (np.diff(schedule(total, steps)) >= 0).all()
    shares = multiplicative(total, steps)
    assert (np.diff(shares) <= 0).all() if shares[0] < 1 else (np.diff(shares) >= 0).all()


def test_schedules_follow_their_formulas():
    k = np.arange(8) / 8
    for schedule, growing in ((additive, 1 + k), (exponential, np.exp(k))):
        assert schedule(1.0, 8) == pytest.approx(schedule(1.0, 8)[0] * growing, rel=1e-12)
    assert multiplicative(1.0, 8) == pytest.approx(multiplicative(1.0, 8)[0] ** (1 + k), rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("schedule", SCHEDULES)
@extreme
@given(positive, st.integers(1, 12))
def test_schedules_share_any_total(schedule, total, steps):
    shares = schedule(total, steps)
    assert (shares.shape, (shares >= 0).all()) == ((steps,), True)
    assert math.fsum(shares / total) == pytest.approx(1)
    for bad in ((0.0, 3), (math.inf, 3), (math.nan, 3), (-1.0, 3), (1.0, 0)):
        refused("total must be positive", schedule, *bad)


@pytest.mark.parametrize("total", [1e-6, 1e6])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_both_units_of_a_schedule_agree(total, steps):
    for near in (np.nextafter(total, 0), np.nextafter(total, math.inf)):
        assert multiplicative(total, steps) == pytest.approx(multiplicative(near, steps), rel=1e-9)
