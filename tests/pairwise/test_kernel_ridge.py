"""Ridge regression, what one training record can move of it, and of the scores that use it."""

import itertools
import math
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from extremes import MOST, extreme, positive
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from refusals import refusals

from dpcgd.pairwise.dependence_scores import Hsic, Kendall, Spearman
from dpcgd.pairwise.kernel_ridge import GRID, GaussianRidge, Ridge

KERNELS = {
    Ridge: lambda distance, width: np.exp(-np.abs(distance) / width),
    GaussianRidge: lambda distance, width: np.exp(-(distance**2) / (2 * width**2)),
}


def drawn(n, rng):
    x = np.round(rng.uniform(-1, 1, n) / GRID) * GRID
    x[: n // 5] = x[n // 5 : 2 * (n // 5)]  # ties
    return x, np.clip(np.sin(3 * x) + rng.normal(scale=0.2, size=n), -1, 1)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize(("penalty", "width"), [(1.0, 0.5), (0.1, 0.05), (1e-3, 2.0)])
def test_predictions_are_those_of_the_kernel_matrix(kind, penalty, width):
    x, y = drawn(200, default_rng(0))
    kernel = KERNELS[kind]
    matrix = kernel(np.subtract.outer(x, x), width)
    weights = np.linalg.solve(matrix + 200 * penalty / 2 * np.eye(200), y)
    z = np.concatenate((x, np.linspace(-2, 2, 301)))
    expected = kernel(np.subtract.outer(z, x), width) @ weights
    assert kind(penalty, width).fit(x, y).predict(z) == pytest.approx(expected, abs=1e-10)


def test_rounding_is_less_than_accounts_keep_for_it():
    """With a large penalty, for then a record moves predictions least; against forty digits."""
    n = 20_000
    x, y = default_rng(0).uniform(-1, 1, (2, n))
    knots, knot = np.unique(np.round(x / GRID) * GRID, return_inverse=True)
    with localcontext() as digits:
        digits.prec = 40
        falls = [(-2 * Decimal(gap)).exp() for gap in np.diff(knots)]
        odds = [0, *(r * r / (1 - r * r) for r in falls), 0]
        pivots = [n * (1 + a + b) / 2 for a, b in itertools.pairwise(odds)] + np.bincount(knot)
        beside = [-n * r / (1 - r * r) / 2 for r in falls]
        values = [*map(Decimal, np.bincount(knot, y))]
        for i, link in enumerate(beside):
            pivots[i + 1] -= link * link / pivots[i]
            values[i + 1] -= link / pivots[i] * values[i]
        values[-1] /= pivots[-1]
        for i in reversed(range(len(beside))):
            values[i] = (values[i] - beside[i] * values[i + 1]) / pivots[i]
    off = np.abs(Ridge(1.0, 0.5).fit(x, y).values - np.array(values, float)).max()
    assert off <= n * 2.0**-49 * Ridge(1.0, 0.5).change(n)


def one_replaced(rng, n, reach):
    """Records in a few crowds, one of them replaced: labels at their ends."""
    at = rng.choice(rng.uniform(-reach, reach, rng.integers(1, 6)), n)
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


def test_three_quarters_of_the_bound_are_reached():
    n, ridge = 20_000, Ridge(0.1, 0.5)
    x = np.append(np.linspace(50, 100, n - 1), 0)  # nobody near the replaced record
    y = np.resize([1.0, -1.0], n)
    labels = np.append(y[:-1], -y[-1])
    before, after = (ridge.fit(x, each).predict(np.zeros(1)).item() for each in (y, labels))
    assert abs(before - after) / ridge.change(n) == pytest.approx(4 / math.sqrt(27), rel=2e-3)


def test_the_gaussian_pull_is_the_largest_over_angles():
    for penalty in np.logspace(-4, 0, 9):
        norm, overlap = 1 / math.sqrt(2 * penalty), np.linspace(0, 1, 200_001)
        pull = (norm * np.sqrt(1 - overlap**2) + np.sqrt(2 + 2 * overlap)).max()
        expected = math.sqrt(2) * 2 / (100 * penalty) * pull
        assert GaussianRidge(penalty).change(100) == pytest.approx(expected, rel=1e-8)


NAN, INF = math.nan, math.inf
BAD_PENALTIES = 0.0, -1.0, 1.5, NAN, 5e-324, 1e-300, 1e-10
BAD_RECORDS = [
    *((xy, "equal length, at least 2") for xy in (([0], [0]), ([0, 1], [0]), ([[0, 1]], [[0, 1]]))),
    *((xy, "drop or impute") for xy in (([0, NAN], [0, 0]), ([0, 1], [0, INF]))),
    (([0, 1], [0, 1.1]), "Dataset.scaled"),
]
test_bad_settings_and_records_are_refused = refusals(
    *((partial(kind, bad, 0.5), "penalty must") for kind in KERNELS for bad in BAD_PENALTIES),
    *((partial(kind, 0.1, bad), "width must be") for kind in KERNELS for bad in (0.0, INF)),
    *((partial(kind().fit, *xy), words) for kind in KERNELS for xy, words in BAD_RECORDS),
    (partial(GaussianRidge().fit, *np.zeros((2, 5001))), "at random"),
)


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
    assert [score.residual_sensitivity(20, change) for change in (0.0, 1e-6)] == [0, 1]
    assert score.value(x, residual) - score.value(x, residual + turned) > 0.4


# --- the ends of double precision

few = st.sampled_from([-1.0, 0.0, 1e-300, 2.0**-20, 1.0])
inputs = st.floats(-1, 1) | few | st.floats(allow_nan=False, allow_infinity=False)


penalties = st.floats(math.log(1e-9), 0).map(lambda x: max(1e-9, math.exp(x)))

widths = st.one_of(positive, st.sampled_from([5e-324, 1e-320]))

records = st.lists(st.tuples(inputs, st.floats(-1, 1)), min_size=2, max_size=12)


@pytest.mark.filterwarnings("error")
@settings(extreme, max_examples=60)
@given(records, penalties, widths, st.sampled_from([Ridge, GaussianRidge]))
def test_every_fit_predicts_numbers(records, penalty, width, kind):
    x, y = np.array(records).T
    ridge = kind(penalty, width)
    predicted = ridge.fit(x, y).predict(np.concatenate([x, np.linspace(-2, 2, 9)]))
    assert np.isfinite(predicted).all()
    assert 0 < ridge.change(len(x)) < math.inf
    assert kind is GaussianRidge or np.abs(predicted).max() <= 1 + 1e-6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [1e9, 1e100, 1e300, MOST])
def test_a_wide_kernel_fits_a_constant(width):
    x, y = default_rng(1).uniform(-1, 1, (2, 500))
    # all of x at one place: minimise penalty / 2 f^2 + mean (f - y)^2
    expected = pytest.approx(np.full(500, y.mean() / 1.05), abs=1e-6)
    assert Ridge(0.1, width).fit(x, y).predict(x) == expected


@pytest.mark.filterwarnings("error")
def test_crowds_at_near_places_do_not_divide_by_zero():
    x = np.repeat(np.arange(50) * 2.0**-20, 1000)
    assert Ridge(1.0, 1e6).fit(x, np.ones(len(x))).predict(x) == pytest.approx(2 / 3, abs=1e-6)
    x, y = np.zeros(2000), np.ones(2000)  # the smallest penalty does for a matrix of ones
    assert np.isfinite(GaussianRidge(1e-9).fit(x, y).predict(x)).all()
