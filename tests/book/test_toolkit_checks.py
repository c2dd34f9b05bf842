"""The checks of chapters 02 and 25 refuse what is wrong."""

import math

import numpy as np
import pytest
from dpcgd_book.attacks import toolkit_checks as checks
from numpy.random import default_rng
from scipy.special import softmax


def with_one_more(data, top, proposed):
    """One too far wherever the median can be broken at all."""
    return 1 if max(data) < top else math.inf


def probability_of_yes(data, m, inner):
    return math.exp(inner) / (1 + math.exp(inner)) if any(data) else 0.5


PLANTED = {
    "flip": lambda: checks.check_flip(softmax, np.array([0.0, 1.0, 2.0])),
    "order": lambda: checks.check_selection_order(softmax, lambda x: softmax(-x), default_rng(0)),
    "distance": lambda: checks.check_distance(with_one_more, 3, 2, 1),
    "amplification": lambda: checks.check_amplification(probability_of_yes, [1, 0], [0, 0]),
    "grid": lambda: checks.check_grid(lambda x: x + default_rng(0).normal(), 1.0, 2.0**-10),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(name):
    with pytest.raises(AssertionError):
        PLANTED[name]()


def test_draws_agree_only_with_the_same_noise():
    def package(value, *, account, noise):
        return value + noise._rng.laplace()

    def plain(value, *, width, rng):
        return value + rng.laplace(scale=width)

    assert checks.same_draws(plain, package, 0.0, 1, width=1.0) == 200
    assert checks.same_draws(plain, package, 0.0, 1, width=2.0) == 0
    assert checks.p_value_of_draws(iter([0, 1, 2] * 100).__next__, np.full(3, 1 / 3), 300) == 1.0


def test_losses_of_known_mechanisms():
    assert math.isclose(checks.released_value_loss(3), 3 / 4, rel_tol=1e-6)
    fixed, free = (checks.delta_at_the_reading([1.0] * 2, 1.0, free=f) for f in (False, True))
    assert 0 < fixed <= free
