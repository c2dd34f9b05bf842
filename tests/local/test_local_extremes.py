"""Channels and moments of reports at the ends of double precision."""

import numpy as np
import pytest
from extremes import extreme, numbers
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import ClippedGeometric, Geometric, UniformGeometric
from dpcgd.local.moments import CorrelationOracle, Moments
from dpcgd.local.randomized_response import RandomizedResponse

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    "kind", [RandomizedResponse, ClippedGeometric, UniformGeometric, Geometric.from_epsilon]
)
@extreme
@given(numbers.map(abs), st.integers(2, 6))
def test_any_epsilon_makes_a_channel(kind, epsilon, levels):
    mechanism = kind(levels, epsilon)
    assert mechanism.channel.sum(axis=1) == pytest.approx(np.ones(levels))
    assert (mechanism.channel >= 0).all()
    assert mechanism.epsilon >= 0
    assert set(mechanism.sample(np.zeros(3, int), rng=default_rng(0))) <= set(range(levels))


@pytest.mark.parametrize("epsilon", [30.0, 50.0, 1e3, 1e300])
def test_some_variables_of_a_record_that_is_hardly_ever_replaced(epsilon):
    part = RandomizedResponse((2, 3), epsilon).of([0])
    assert part.channel == pytest.approx(np.eye(2), abs=1e-9)
    assert part.epsilon <= epsilon


def test_a_chance_of_a_guess_makes_every_mechanism_say_nothing():
    rates = [ClippedGeometric.from_p_max(levels, 1 / levels).rate for levels in range(2, 400)]
    assert max(rates) < 1e-12


@pytest.mark.parametrize("kind", [RandomizedResponse, Geometric, ClippedGeometric])
def test_p_max_next_to_one_is_reached(kind):
    mechanism = ComponentWise.from_p_max(kind, (3, 4), 1 - 1e-12)
    assert mechanism.p_max == pytest.approx(1 - 1e-12, abs=1e-13)


def test_a_p_max_that_no_epsilon_reaches_is_refused():
    with pytest.raises(ValueError, match="too near to 1"):
        ComponentWise.from_p_max(Geometric, (3, 4), 1 - 2**-53)


def test_four_hundred_variables():
    levels = (10,) * 400
    mechanism = ComponentWise.from_p_max(RandomizedResponse, levels, 0.1)
    assert mechanism.p_max == pytest.approx(0.1)
    for whole in (RandomizedResponse, Geometric):
        with pytest.raises(ValueError, match="use a component-wise mechanism"):
            whole(levels, 0.5)


def test_correlations_of_constant_and_of_huge_columns():
    values = np.column_stack([np.full(50, 0.1), default_rng(0).normal(size=(50, 2)) * 1e60])
    oracle = CorrelationOracle(Moments.of_records(values))
    for question in ((0, 1, ()), (0, 1, (2,)), (1, 2, ())):
        assert oracle.separates(*question)
    same = CorrelationOracle(Moments.of_records(np.tile([[0, 0], [1, 1]], (25, 1))))
    assert not same.separates(0, 1, ())


@pytest.mark.parametrize("bad", [np.full((3, 2), 1e200), np.full((3, 2), np.nan), np.zeros((0, 2))])
def test_values_without_moments_are_refused(bad):
    with pytest.raises(ValueError, match="measure in other units"):
        Moments.of_records(bad)
