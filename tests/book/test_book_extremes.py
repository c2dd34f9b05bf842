"""Scores, p-values and weights of models at the ends of double precision."""

import math

import numpy as np
import pytest
from dpcgd_book.systems.as_published import optimal_rate
from dpcgd_book.systems.p_value_tests import FisherZ
from dpcgd_book.systems.scores import BGe
from extremes import MOST
from known_graphs import BIC
from numpy.random import default_rng

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    "covariance", [np.ones((3, 3)), np.eye(3), 1e100 * np.eye(3), np.diag([1e-100, 1, 1])]
)
def test_scores_of_singular_covariances_are_numbers(covariance):
    for score in (BIC(covariance, 100), BGe(covariance, 100), BGe(covariance, 10**9)):
        for parents in ((), (0,), (0, 1)):
            assert math.isfinite(score.local(2, parents))


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**600])
def test_correlations_and_scores_do_not_depend_on_the_unit(unit):
    values = default_rng(0).normal(size=(40, 3))
    values[:, 2] += values[:, 0]
    for kind, ask in ((FisherZ, lambda f: f.log_p(0, 2, (1,))), (BIC, lambda f: f.local(2, (0,)))):
        expected = pytest.approx(ask(kind.from_values(values)))
        assert ask(kind.from_values(values * unit)) == expected


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 1.0, 1e9, MOST])
def test_the_optimal_rate_is_a_rate(epsilon):
    assert 0.05 <= optimal_rate(epsilon) <= 1
