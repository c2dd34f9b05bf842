"""Dependence scores: their values, their sensitivities under attack, their releases."""

import itertools
import math

import numpy as np
import pytest
from dpcgd_book.attacks.audit import Recorder
from dpcgd_book.attacks.sensitivity_attack import every_neighbour, sensitivity_search
from extremes import MOST, extreme
from hypothesis import given, strategies as st
from numpy.random import default_rng
from people import refused
from scipy import stats
from scripted_noise import Silent

from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman, _reach, _spread
from dpcgd.privacy.budget import Budget, BudgetSpent
from dpcgd.privacy.filters import BasicFilter
from dpcgd.privacy.noise import SeededNoise

BOUNDED = [Spearman(), Kendall(), Hsic()]
every_bounded = pytest.mark.parametrize("score", BOUNDED, ids=lambda score: score.name)


def two_columns(m, seed=0):
    rng = default_rng(seed)
    x = rng.uniform(-1, 1, m)
    return x, np.clip(x**2 + rng.normal(scale=0.3, size=m), -2, 2)


def release(score, columns, *, epsilon=1.0, change=0.0, account=None):
    """A release of columns; none can be looked at where there are none."""
    account = account or BasicFilter(Budget(1.001 * epsilon, 1e-6))
    paid = {"epsilon": epsilon, "delta": 1e-6, "account": account}
    facts = {"m": len(columns[0]) if columns else 50, "change": change}
    noise = SeededNoise(default_rng(0))
    return score.release(lambda: (columns[0], columns[1]), noise=noise, **paid, **facts)


def test_spearman_is_scipys_without_ties():
    x, y = two_columns(60)
    assert Spearman().value(x, y) == pytest.approx(abs(stats.spearmanr(x, y).statistic))


def test_kendall_is_the_definition_with_ties_too():
    rng = default_rng(1)
    for levels in (2, 5, 1000):
        x, y = rng.integers(0, levels, (2, 40))
        signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
        assert Kendall().value(x, y) == pytest.approx(abs(signs.sum()) / (40 * 39), abs=1e-12)


@pytest.mark.parametrize("m", [2, 7, 100])
def test_hsic_is_the_definition(m):
    x, y = two_columns(m)
    k, l_ = (np.exp(-(np.subtract.outer(c, c) ** 2) / (2 * 0.3**2)) for c in (x, y))
    h = np.eye(m) - 1 / m
    assert Hsic().value(x, y) == pytest.approx(np.trace(k @ h @ l_ @ h) / (m - 1) ** 2, abs=1e-14)


def test_blocks_do_not_change_hsic(monkeypatch):
    x, y = two_columns(101)
    whole = Hsic().value(x, y)
    monkeypatch.setattr("dpcgd.pairwise.dependence_scores.BLOCK", 700)
    assert Hsic().value(x, y) == pytest.approx(whole, rel=1e-12)


@every_bounded
def test_constant_columns_and_ties_everywhere_score_nothing(score):
    x, y = two_columns(20)
    ties = np.array([[0.0, 0, 1, 1], [0.0, 1, 0, 1]])
    for pair in ((x, np.zeros(20)), (np.ones(20), y), (np.ones(20), np.zeros(20)), ties):
        assert 0 <= score.value(*pair) == pytest.approx(0, abs=1e-12)


# --- sensitivities -----------------------------------------------------------------------------


def columns_of(table):
    """Records of a table of counts, its levels spread over the range: clusters far apart."""
    x, y = np.unravel_index(np.repeat(np.arange(table.size), table.ravel()), table.shape)
    return 20.0 * x, 20.0 * y


def of_table(score):
    return lambda table: score.value(*columns_of(table))


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 4, 5])
@every_bounded
def test_no_neighbours_break_the_bound_exhaustively(score, m):
    for levels in ((2, 2), (3, 3)):
        assert every_neighbour(of_table(score), m, levels).change <= score.sensitivity(m) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("m", [5, 6])
@pytest.mark.parametrize("score", [Spearman(), Kendall()], ids=lambda score: score.name)
def test_rank_bounds_are_reached_without_the_absolute_value(score, m):
    """With it the two ends of the move cancel in part, so a signed copy is compared."""
    worst = 0.0
    for others in map(np.array, itertools.permutations(range(m - 1))):
        places = itertools.product(range(m), repeat=2)
        columns = (np.insert(others + (others >= j), i, j) for i, j in places)
        signed = [signed_value(score, np.arange(m), column) for column in columns]
        worst = max(worst, np.ptp(signed))
    assert worst == pytest.approx(score.sensitivity(m))


def signed_value(score, x, y):
    signs = {"Kendall": stats.kendalltau, "Spearman": stats.spearmanr}
    return math.copysign(score.value(x, y), signs[score.name](x, y).statistic)


@pytest.mark.slow
@pytest.mark.parametrize("m", [10, 50, 400])
@every_bounded
def test_hill_climbing_does_not_break_the_bound(score, m):
    found = sensitivity_search(of_table(score), m, (3, 3), pairs=3_000, rng=default_rng(m))
    assert 0.3 * score.sensitivity(m) < found.change <= score.sensitivity(m) + 1e-12


@every_bounded
def test_a_test_set_alone_needs_no_training_noise(score):
    assert score.residual_sensitivity(50, 0.0) == 0
    assert score.scale(50, 0.0, 0.5) == pytest.approx(score.sensitivity(50) / 0.5)
    assert score.scale(50, 10.0, 0.5) >= score.scale(50, 0.0, 0.5)


# --- IQR ---------------------------------------------------------------------------------------


def reachable(values, k):
    """Interquartile ranges that k replacements can make, by trying all."""
    m, found = len(values), []
    first = (m - 1) // 4
    for at in itertools.combinations(range(m), k):
        for new in itertools.product([-50.0, *range(5), 50.0], repeat=k):
            moved = values.copy()
            moved[list(at)] = new
            moved.sort()
            found.append(moved[m - 1 - first] - moved[first])
    return min(found), max(found)


@pytest.mark.parametrize("m", [4, 5, 6, 7])
def test_reach_is_exact(m):
    rng = default_rng(m)
    for _ in range(8):
        values = np.sort(rng.integers(0, 5, m)).astype(float)
        low, high = _reach(values, 0.0)
        for k in range(min(3, len(low))):
            least, most = reachable(values, k)
            assert low[k] == least
            assert high[k] == most or (high[k] == math.inf and most > 40)


@pytest.mark.slow
def test_the_distance_has_sensitivity_one_and_keeps_its_promise():
    rng, score = default_rng(5), Iqr(width=0.4)

    def spread(values):
        ordered, first = np.sort(values), (len(values) - 1) // 4
        return score._log(ordered[-1 - first] - ordered[first])

    seen = set()
    for _ in range(3000):
        values = rng.normal(size=rng.integers(8, 40)).round(1)
        other = values.copy()
        other[rng.integers(len(values))] = rng.choice([-9, 9, rng.normal()])
        distance = score.distance(values)
        seen.add(min(distance, 2))
        assert abs(distance - score.distance(other)) <= 1
        if distance >= 1:
            assert abs(spread(values) - spread(other)) < score.width + 1e-12
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("half", range(1, 13))
def test_a_range_at_the_edge_of_a_bin_is_as_far_as_that_of_a_neighbour(half):
    edge = math.exp(-half / 4)
    for upper in edge * (1 + np.arange(-4, 5) * 2.0**-53):
        values = np.repeat([0, 0.7 * edge, upper], [400, 200, 200])
        assert abs(Iqr().distance(values) - Iqr().distance(np.append(values[:-1], 0.7 * edge))) <= 1


@pytest.mark.slow
def test_training_moves_count_in_the_distance():
    x, _ = two_columns(400)
    far = Iqr().distance(x)
    assert Iqr().distance(x, change=1e-9) == far
    assert Iqr().distance(x, change=0.01) < far
    rng = default_rng(6)
    for _ in range(200):
        moved = x + 0.01 * rng.choice([-1, 1], 400)
        assert abs(Iqr().distance(x, change=0.01) - Iqr().distance(moved, change=0.01)) <= 1


@pytest.mark.slow
def test_a_large_sample_gets_an_answer_unless_training_records_move_all_residuals():
    answers = [release(Iqr(), two_columns(m), epsilon=2.0) for m in (20, 20_000)]
    assert answers[0] is release(Iqr(), two_columns(20_000), epsilon=2.0, change=0.5) is None
    assert abs(answers[1] - Iqr().value(*two_columns(20_000))) < 40  # 2e-9: noise of scale 2


def test_an_iqr_is_as_far_as_its_nearer_column_and_its_noise_is_that_of_two_bins():
    far, near, how = np.ones(1000), two_columns(1000)[0], {"m": 1000, "change": 0.0, "delta": 1e-6}
    for columns in ((far, near), (near, far), (far, far)):
        both = Recorder(BasicFilter(Budget(3.0, 1e-6)), Silent())
        Iqr().release(lambda c=columns: c, epsilon=2.0, account=both, noise=both, **how)
        assert both.steps[1].about == min(map(Iqr().distance, columns))
    assert both.steps[-1].scale == Iqr().scale(1000, 0.0, 2.0) == 1.0


@pytest.mark.parametrize("way", [-0.01, 0.01])
def test_quartiles_that_move_apart_are_within_reach(way):
    x = np.sort(two_columns(400)[0])
    moved, (low, high) = np.sort(x + way * np.sign(x - np.median(x))), _reach(x, 0.01)
    assert low[1] - 1e-12 <= _spread(moved) <= high[1] + 1e-12


def test_a_constant_column_has_an_iqr_too():
    score = Iqr()
    assert score.value(np.ones(9), np.ones(9)) == pytest.approx(2 * math.log(score.floor))
    assert score.distance(np.ones(1000)) > 200


# --- releases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [*BOUNDED, Iqr()], ids=lambda score: score.name)
def test_nothing_is_looked_at_before_it_is_paid(score):
    account = BasicFilter(Budget(0.5, 1e-6))
    refused("would exceed", release, score, None, kind=BudgetSpent, account=account)
    assert account.ledger.events == ()


@every_bounded
def test_releases_are_those_of_the_seed(score):
    x, y = two_columns(100)
    expected = score.value(x, y) + default_rng(0).laplace(scale=score.sensitivity(100))
    assert release(score, (x, y)) == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_impossible_parameters_are_refused(wrong):
    refused("width", Hsic, wrong)
    refused("width", Iqr, width=wrong)
    refused("floor", Iqr, floor=wrong)


@pytest.mark.filterwarnings("error")
@extreme
@given(st.lists(st.floats(-MOST, MOST), min_size=1, max_size=9))
def test_scores_of_any_columns_are_numbers(values):
    x, y = np.array(values), np.array(values[::-1])
    for score in (Hsic(), Hsic(5e-324), Hsic(MOST), Iqr(), Kendall(), Spearman()):
        assert math.isfinite(score.value(x, y))
    if len(x) > 1:
        assert Iqr(width=1e-9).distance(x) >= -1
        assert Iqr(width=1e9).distance(x, change=1e300) >= -1
