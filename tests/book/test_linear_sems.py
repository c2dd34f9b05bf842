"""Linear models draw what they say, at any size of their weights."""

import numpy as np
import pytest
from dpcgd_book.data.linear_sems import LinearSEM, random_sem
from numpy.random import default_rng


def test_a_sample_has_the_covariance_of_its_model():
    model = random_sem(6, 8, rng=default_rng(0))
    data = model.sample(200_000, rng=default_rng(1))
    errors = np.cov(data.values.T) - model.covariance
    scale = np.sqrt(np.diag(model.covariance))
    # a correlation-scaled entry has a deviation of at most sqrt(2 / n) = 0.0032; clipping at four
    # deviations changes it by less than 0.001
    assert np.abs(errors / np.outer(scale, scale)).max() < 7 * 0.0032


@pytest.mark.parametrize(
    ("make", "cure"),
    [
        (lambda: random_sem(3, 4, rng=default_rng(0)), "at most 3 arcs"),
        (lambda: random_sem(3.0, 2, rng=default_rng(0)), "d must be a whole number, at least 1"),
        (lambda: random_sem(3, -1, rng=default_rng(0)), "arcs must be at least 0, not -1"),
        (lambda: random_sem(3, 2, rng=default_rng(0)).sample(0, rng=default_rng(0)), "at least 1"),
        (lambda: LinearSEM(np.ones((2, 2))), "cycle"),
        (lambda: LinearSEM(np.zeros((2, 2)), ["a"]), "square"),
        (lambda: LinearSEM(np.full((2, 2), np.nan)), "weight"),
    ],
)
def test_impossible_models_are_refused(make, cure):
    with pytest.raises(ValueError, match=cure):
        make()
