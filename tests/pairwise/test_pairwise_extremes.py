"""Regressions, scores and private directions at the ends of double precision."""

import math

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from extremes import MOST, extreme, numbers, positive
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import private_anm
from dpcgd.datasets.measurements import Measurements
from dpcgd.pairwise.anm import confidence, histogram_anm
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman
from dpcgd.pairwise.direction_scores import cds, igci, reci
from dpcgd.pairwise.kernel_ridge import GaussianRidge, Ridge

pytestmark = pytest.mark.filterwarnings("error")

PAIR = synthetic_pair(60, rng=default_rng(0))
inputs = st.one_of(
    st.floats(-1, 1),
    st.sampled_from([-1.0, 0.0, 1e-300, 2.0**-20, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
penalties = st.floats(math.log(1e-9), 0).map(lambda x: max(1e-9, math.exp(x)))
widths = st.one_of(positive, st.sampled_from([5e-324, 1e-320]))
records = st.lists(st.tuples(inputs, st.floats(-1, 1)), min_size=2, max_size=12)


@settings(extreme, max_examples=60)
@given(records, penalties, widths, st.sampled_from([Ridge, GaussianRidge]))
def test_every_fit_predicts_numbers(records, penalty, width, kind):
    x, y = np.array(records).T
    ridge = kind(penalty, width)
    predicted = ridge.fit(x, y).predict(np.concatenate([x, np.linspace(-2, 2, 9)]))
    assert np.isfinite(predicted).all()
    assert 0 < ridge.change(len(x)) < math.inf
    assert kind is GaussianRidge or np.abs(predicted).max() <= 1 + 1e-6


@pytest.mark.parametrize("width", [1e9, 1e100, 1e300, MOST])
def test_a_wide_kernel_fits_a_constant(width):
    x, y = default_rng(1).uniform(-1, 1, (2, 500))
    # all of x at one place: minimise penalty / 2 f^2 + mean (f - y)^2
    expected = pytest.approx(np.full(500, y.mean() / 1.05), abs=1e-6)
    assert Ridge(0.1, width).fit(x, y).predict(x) == expected


def test_crowds_at_near_places_do_not_divide_by_zero():
    x = np.repeat(np.arange(50) * 2.0**-20, 1000)
    assert Ridge(1.0, 1e6).fit(x, np.ones(len(x))).predict(x) == pytest.approx(2 / 3, abs=1e-6)
    x, y = np.zeros(2000), np.ones(2000)  # the smallest penalty does for a matrix of ones
    assert np.isfinite(GaussianRidge(1e-9).fit(x, y).predict(x)).all()


@pytest.mark.parametrize("kind", [Ridge, GaussianRidge])
@pytest.mark.parametrize("penalty", [0.0, 5e-324, 1e-300, 1e-10])
def test_a_penalty_that_rounding_swallows_is_refused(kind, penalty):
    with pytest.raises(ValueError, match="at 1e-09 or more"):
        kind(penalty)


@pytest.mark.parametrize("epsilon", [1e-290, 1e6, MOST])
@pytest.mark.parametrize("protects", ["everyone", "test set"])
@pytest.mark.parametrize("score", [Hsic(), Hsic(width=1e300), Kendall(), Spearman(), Iqr()])
def test_a_direction_and_a_confidence_at_any_epsilon(epsilon, protects, score):
    release = private_anm(PAIR, epsilon=epsilon, score=score, protects=protects, rng=default_rng(0))
    assert release.confidence is None or 0.5 <= release.confidence <= 1
    assert release.ledger.spent <= (epsilon, 1e-6)


@pytest.mark.parametrize("epsilon", [1e-90, 1e6, MOST])
def test_histograms_at_any_epsilon(epsilon):
    release = histogram_anm(PAIR, epsilon=epsilon, delta=1e-100, rng=default_rng(0))
    assert release.ledger.spent <= (epsilon, 1e-100)


@pytest.mark.parametrize("ridge", [Ridge(1e-9, 1e300), Ridge(1.0, MOST), GaussianRidge(1e-9)])
def test_neighbours_do_not_differ_in_whether_a_fit_fails(ridge):
    for data in (PAIR, Measurements(np.zeros((60, 2)), PAIR.ranges)):
        assert private_anm(data, epsilon=1.0, ridge=ridge, rng=default_rng(0)).direction


def test_noise_and_widths_that_are_no_numbers_are_refused_first():
    with pytest.raises(ValueError, match="no scale of noise"):
        private_anm(PAIR, epsilon=1.0, score=Hsic(width=1e-320), rng=default_rng(0))
    for width in (1e-320, 1e300):
        with pytest.raises(ValueError, match="width must lie between"):
            Iqr(width=width)


@extreme
@given(numbers.map(abs), numbers.map(abs))
def test_confidence_is_a_probability(margin, scale):
    assert 0.5 <= confidence(margin, scale) <= 1


@pytest.mark.parametrize("bad", [(-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)])
def test_confidence_in_less_than_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="0 or more"):
        confidence(*bad)


@extreme
@given(st.lists(st.floats(-MOST, MOST), min_size=1, max_size=9))
def test_scores_of_any_columns_are_numbers(values):
    x, y = np.array(values), np.array(values[::-1])
    for score in (Hsic(), Hsic(5e-324), Hsic(MOST), Iqr(), Kendall(), Spearman()):
        assert math.isfinite(score.value(x, y))
    if len(x) > 1:
        assert Iqr(width=1e-9).distance(x) >= -1
        assert Iqr(width=1e9).distance(x, change=1e300) >= -1


@pytest.mark.parametrize("score", [reci, igci, cds])
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-400, 2.0**400, 2.0**1020])
def test_directions_do_not_depend_on_the_unit(score, unit):
    x = default_rng(0).uniform(-1, 1, 200)
    y = x**3 + default_rng(1).uniform(-0.1, 0.1, 200)
    assert score(x * unit, y * unit) == pytest.approx(score(x, y), rel=1e-9)
