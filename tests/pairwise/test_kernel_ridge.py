"""Ridge regression, what one training record can move of it, and of the scores that use it."""

import itertools
import math

import numpy as np
import pytest
from dpcgd_book.attacks.audit import empirical_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd.pairwise.dependence_scores import Hsic, Kendall, Spearman
from dpcgd.pairwise.kernel_ridge import GRID, GaussianRidge, Ridge
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import laplace
from dpcgd.privacy.noise import SeededNoise

seeded = settings(derandomize=True, deadline=None, max_examples=100)
KERNELS = {
    Ridge: lambda distance, width: np.exp(-np.abs(distance) / width),
    GaussianRidge: lambda distance, width: np.exp(-(distance**2) / (2 * width**2)),
}
EXPECTED = {
    "Ridge": [-0.456091554, 0.0001373297, 0.8624115926],
    "GaussianRidge": [-0.4484162881, -0.0155087269, 0.8579219787],
}
SETTINGS = [(1.0, 0.5), (0.1, 0.05), (1e-3, 2.0)]


def drawn(n, rng):
    x = np.round(rng.uniform(-1, 1, n) / GRID) * GRID
    x[: n // 5] = x[n // 5 : 2 * (n // 5)]  # ties
    return x, np.clip(np.sin(3 * x) + rng.normal(scale=0.2, size=n), -1, 1)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(("penalty", "width"), SETTINGS)
def test_predictions_are_those_of_the_kernel_matrix(kind, penalty, width):
    x, y = drawn(200, default_rng(0))
    kernel = KERNELS[kind]
    matrix = kernel(np.subtract.outer(x, x), width)
    weights = np.linalg.solve(matrix + 200 * penalty / 2 * np.eye(200), y)
    z = np.concatenate((x, np.linspace(-2, 2, 301)))
    expected = kernel(np.subtract.outer(z, x), width) @ weights
    assert kind(penalty, width).fit(x, y).predict(z) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kind", KERNELS)
def test_the_fit_minimises_what_it_says(kind):
    x, y = drawn(30, default_rng(1))
    matrix = KERNELS[kind](np.subtract.outer(x, x), 0.5)
    best = np.linalg.solve(matrix + 30 * 0.2 / 2 * np.eye(30), y)

    def loss(weights):
        return 0.1 * weights @ matrix @ weights + np.mean((matrix @ weights - y) ** 2)

    assert matrix @ best == pytest.approx(kind(0.2, 0.5).fit(x, y).predict(x), abs=1e-10)
    for direction in default_rng(2).normal(size=(50, 30)):
        assert loss(best + 1e-3 * direction) > loss(best)


def one_replaced(rng, n, reach):
    """Records in a few crowds, one of them replaced: labels at their ends."""
    crowds = rng.integers(1, 6)
    at = rng.choice(rng.uniform(-reach, reach, crowds), n)
    y = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], n)
    x, other_y = at.copy(), y.copy()
    x[0], other_y[0] = rng.choice([at[-1], rng.uniform(-reach, reach)]), -y[0]
    return (at, y), (x, other_y)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("n", [2, 5, 40, 400])
def test_one_record_moves_predictions_and_their_differences_by_no_more_than_proved(kind, n):
    rng, z = default_rng(n), np.linspace(-3, 3, 121)
    for _ in range(60):
        ridge = kind(10 ** rng.uniform(-4, 0), 10 ** rng.uniform(-2, 0.5))
        before, after = one_replaced(rng, n, 2.0)
        places = np.concatenate((z, before[0], after[0]))
        moved = ridge.fit(*before).predict(places) - ridge.fit(*after).predict(places)
        assert max(np.abs(moved).max(), np.ptp(moved)) <= ridge.change(n) * (1 + 1e-9)


@seeded
@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(0.01, 100))
def test_the_lemma_behind_the_bound(seed, records, strength):
    """Chapter 09: 0 <= G(z, x) <= G(x, x) = t, and beta^2 + t^2 <= 1."""
    rng = default_rng(seed)
    x, z = rng.uniform(-2, 2, records), rng.uniform(-3, 3, 50)
    kernel = KERNELS[Ridge]

    def green(a, b):
        solved = np.linalg.solve(
            kernel(np.subtract.outer(x, x), 1) + strength * np.eye(records),
            kernel(np.subtract.outer(x, b), 1),
        )
        both = kernel(np.subtract.outer(a, b), 1)
        return both - kernel(np.subtract.outer(a, x), 1) @ solved

    at = np.zeros(1)
    t, influence = green(at, at).item(), green(z, at)
    beta = green(at, x).sum() / strength
    assert influence.min() >= -1e-12
    assert influence.max() <= t + 1e-12
    assert beta**2 + t**2 <= 1 + 1e-9


def test_three_quarters_of_the_bound_are_reached():
    n, ridge = 20_000, Ridge(0.1, 0.5)
    x = np.zeros(n)
    y = np.resize([1.0, -1.0], n)
    far = np.linspace(50, 100, n - 1)  # nobody near the replaced record
    before, after = np.append(far, 0), np.append(far, 0)
    labels = y.copy()
    labels[-1] = -y[-1]
    moved = ridge.fit(before, y).predict(x[:1]) - ridge.fit(after, labels).predict(x[:1])
    assert np.abs(moved).item() / ridge.change(n) == pytest.approx(4 / math.sqrt(27), rel=2e-3)


@seeded
@given(st.integers(0, 2**32), st.floats(1e-4, 1), st.floats(0.01, 3))
def test_predictions_stay_within_the_range_of_y(seed, penalty, width):
    x, y = drawn(25, default_rng(seed))
    predicted = Ridge(penalty, width).fit(x, y).predict(np.linspace(-2, 2, 200))
    assert np.abs(predicted).max() <= np.abs(y).max() + 1e-9


def test_the_gaussian_kernel_overshoots_that_range():
    x = np.repeat([-0.5, 0.0, 0.5], 500)
    y = np.repeat([-1.0, 1.0, 1.0], 500)
    predicted = GaussianRidge(1e-4, 0.6).fit(x, y).predict(np.linspace(-1, 1, 200))
    assert np.abs(predicted).max() > 1.2


@pytest.mark.parametrize("kind", KERNELS)
def test_the_bound_is_below_the_published_one(kind):
    for penalty in np.logspace(-4, 0, 9):
        assert kind(penalty).change(1000) / math.sqrt(1 if kind is Ridge else 2) < (
            8 / (1000 * penalty**1.5)
        )
        assert kind(penalty).change(1000) == pytest.approx(kind(penalty).change(500) / 2)


def test_the_gaussian_pull_is_the_largest_over_angles():
    for penalty in np.logspace(-4, 0, 9):
        norm, overlap = 1 / math.sqrt(2 * penalty), np.linspace(0, 1, 200_001)
        pull = (norm * np.sqrt(1 - overlap**2) + np.sqrt(2 + 2 * overlap)).max()
        expected = math.sqrt(2) * 2 / (100 * penalty) * pull
        assert GaussianRidge(penalty).change(100) == pytest.approx(expected, rel=1e-8)


def test_inputs_outside_of_all_records_and_of_the_range_are_predicted_too():
    fitted = Ridge(0.01, 0.1).fit(np.array([0.0, 0.5]), np.array([1.0, 1.0]))
    near, far, infinitely_far = fitted.predict(np.array([0.6, 1e3, -1e300]))
    assert 0 < near < 1
    assert far == infinitely_far == 0


def test_a_wide_gap_and_a_tiny_one_are_no_trouble():
    x = np.array([-1.0, -1.0 + 1e-15, 0.0, 1e-6, 1.0])
    for width in (1e-5, 1e5):
        predicted = Ridge(0.1, width).fit(x, np.ones(5)).predict(np.linspace(-1, 1, 101))
        assert np.isfinite(predicted).all()
        assert np.abs(predicted).max() <= 1


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(
    ("penalty", "width", "message"),
    [
        (0.0, 0.5, "penalty must lie above 0"),
        (-1.0, 0.5, "penalty must lie above 0"),
        (1.5, 0.5, "at most 1"),
        (math.nan, 0.5, "penalty"),
        (0.1, 0.0, "width must be positive"),
        (0.1, math.inf, "width must be positive and finite"),
    ],
)
def test_settings_out_of_range_are_refused(kind, penalty, width, message):
    with pytest.raises(ValueError, match=message):
        kind(penalty, width)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([0.0], [0.0], "at least 2"),
        ([0.0, 1.0], [0.0], "equal length"),
        ([[0.0, 1.0]], [[0.0, 1.0]], "two columns"),
        ([0.0, math.nan], [0.0, 0.0], "missing or infinite"),
        ([0.0, 1.0], [0.0, math.inf], "missing or infinite"),
        ([0.0, 1.0], [0.0, 1.1], "Measurements.scaled"),
    ],
)
def test_unusable_records_are_refused(kind, x, y, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(x, y)


def test_a_matrix_that_is_too_large_is_refused_by_n_alone():
    with pytest.raises(ValueError, match=r"5,001 records.*5,000 of them at random"):
        GaussianRidge().fit(np.zeros(5001), np.zeros(5001))


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7])
def test_hsic_moves_by_no_more_than_proved_when_all_residuals_move(m):
    """Clusters, and every way to shift each residual by nothing or by `change`."""
    rng, score, worst = default_rng(m), Hsic(0.5), 0.0
    for _ in range(40):
        x, residual = (rng.choice(rng.uniform(-1, 1, 3), m) for _ in "xr")
        change = rng.choice([0.01, 0.1, 0.5])
        start = score.value(x, residual)
        for shift in itertools.product((0, 1), repeat=m):
            moved = score.value(x, residual + change * np.array(shift))
            worst = max(worst, abs(moved - start) / score.residual_sensitivity(m, change))
    assert 0.1 < worst <= 1


@pytest.mark.parametrize("m", [2, 10, 1000])
def test_two_distant_crowds_reach_half_of_the_hsic_bound(m):
    """Two far inputs, residuals of each where the kernel is steepest."""
    score, change = Hsic(0.2), 1e-4
    x = np.resize([-1e3, 1e3], m)
    residual = np.where(x > 0, 0.2, 0.0)
    moved = score.value(x, residual + change * (x > 0)) - score.value(x, residual)
    proved = score.residual_sensitivity(m, change)
    assert moved / proved == pytest.approx(0.5 * m / (m - 1), rel=2e-3)


@pytest.mark.parametrize("score", [Spearman(), Kendall()])
def test_ranks_can_turn_over_completely(score):
    x, residual = np.arange(20.0), 1e-9 * np.arange(20.0)
    turned = np.where(np.arange(20) % 2, 1e-6, 0.0)
    assert score.residual_sensitivity(20, 0.0) == 0
    assert score.residual_sensitivity(20, 1e-6) == 1
    assert score.value(x, residual) - score.value(x, residual + turned) > 0.4


def score_of_a_training_half(label):
    """HSIC of two crowds, one of them where a single training record stands."""
    n, ridge = 400, Ridge(0.1, 0.01)
    x, y = np.append(np.zeros(n - 1), 1.0), np.append(np.zeros(n - 1), label)
    test = np.resize([-1.0, 1.0], 40)
    residual = np.where(test > 0, 0.3, 0.0) - ridge.fit(x, y).predict(test)
    score, change = Hsic(), ridge.change(n)
    return score.value(test, residual), score.residual_sensitivity(40, change)


@pytest.mark.parametrize(("share", "honest"), [(1.0, True), (0.05, False)])
def test_an_audit_of_a_score_with_noise_for_the_training_half(share, honest):
    """A false alarm has a chance below 1e-9; a twentieth of the noise is found out."""
    noise = SeededNoise(default_rng(7))

    def release(data):
        value, sensitivity = data
        return laplace(
            lambda: value,
            sensitivity=share * sensitivity,
            epsilon=1.0,
            account=Filter(Budget(100.0, 1e-6)),
            noise=noise,
        )

    pair = score_of_a_training_half(1.0), score_of_a_training_half(-1.0)
    found = empirical_epsilon(release, *pair, trials=2000)
    assert (found <= 1) == honest


def test_the_fit_of_a_seeded_sample():
    x, y = drawn(500, default_rng(8))
    z = np.array([-0.9, 0.0, 0.4])
    assert Ridge().fit(x, y).predict(z) == pytest.approx(EXPECTED["Ridge"], abs=1e-9)
    assert GaussianRidge().fit(x, y).predict(z) == pytest.approx(
        EXPECTED["GaussianRidge"], abs=1e-9
    )
