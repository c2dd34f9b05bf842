"""Scores, p-values and weights of models at the ends of double precision."""

import math

import numpy as np
import pytest
from dpcgd_book.data.linear_sems import LinearSEM
from dpcgd_book.systems.as_published import optimal_rate
from dpcgd_book.systems.p_value_tests import FisherZ
from dpcgd_book.systems.scores import BDeu, BGe
from extremes import MOST
from known_graphs import BIC
from numpy.random import default_rng

from dpcgd import load

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    "covariance", [np.ones((3, 3)), np.eye(3), 1e100 * np.eye(3), np.diag([1e-100, 1, 1])]
)
def test_scores_of_singular_covariances_are_numbers(covariance):
    for score in (BIC(covariance, 100), BGe(covariance, 100), BGe(covariance, 10**9)):
        for parents in ((), (0,), (0, 1)):
            assert math.isfinite(score.local(2, parents))


def test_covariances_and_weights_beyond_doubles_are_refused():
    data = load("survey", n=1000, rng=default_rng(0))
    for bad in (1e-200 * np.eye(2), 1e200 * np.eye(2)):
        with pytest.raises(ValueError, match="bring the variables to variance 1"):
            BIC(bad, 100)
    for weight in (1e-300, MOST, math.nan):
        with pytest.raises(ValueError, match="weight must be positive"):
            BDeu(data, weight)
    for weight in (1e-100, 1e100):
        assert math.isfinite(BDeu(data, weight).local(1, (0,)))


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**600])
def test_correlations_and_scores_do_not_depend_on_the_unit(unit):
    values = default_rng(0).normal(size=(40, 3))
    values[:, 2] += values[:, 0]
    for kind, ask in ((FisherZ, lambda f: f.log_p(0, 2, (1,))), (BIC, lambda f: f.local(2, (0,)))):
        expected = pytest.approx(ask(kind.from_values(values)))
        assert ask(kind.from_values(values * unit)) == expected


def test_weights_of_a_linear_model():
    huge = np.diag([1e80, 1e80, 1e80], 1)
    for bad in (huge, np.full((2, 2), np.nan), np.triu(np.full((3, 3), 1e300), 1)):
        with pytest.raises(ValueError, match="weight"):
            LinearSEM(bad)
    assert LinearSEM(np.triu(np.full((3, 3), 1e30), 1)).sample(5, rng=default_rng(0)).n == 5


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 1.0, 1e9, MOST])
def test_the_optimal_rate_is_a_rate(epsilon):
    assert 0.05 <= optimal_rate(epsilon) <= 1
