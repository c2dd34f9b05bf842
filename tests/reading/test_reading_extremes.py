"""Readings of any moments: numbers, probabilities, errors."""

import math

import networkx as nx
import numpy as np
import pytest
from extremes import extreme
from hypothesis import given, settings, strategies as st
from known_tables import exact
from numpy.random import default_rng

from dpcgd import load, read, table_pc
from dpcgd.moments.interactions import Marginals, Moment, subsets_of
from dpcgd.reading.association import association
from dpcgd.reading.fit_network import fit_network

pytestmark = pytest.mark.filterwarnings("error")

RELEASE = table_pc(load("cancer", n=20_000, rng=default_rng(0)), epsilon=1.0, rng=default_rng(0))
any_moment = st.floats(-1, 1) | st.floats(-1e90, 1e90) | st.sampled_from([0.0, 1e-300, 1e90])
some_moments = st.lists(any_moment, min_size=1, max_size=8)
deviations = st.floats(0, 1) | st.sampled_from([0.0, 5e-324, 1e-200, 1e-30, 1e10, 1e90])


def marginals_of(values, deviation, levels, n=1000):
    """All subsets of up to three variables, their moments filled with given numbers."""
    released = {}
    for subset in [*subsets_of(tuple(range(len(levels))))][1:]:
        if len(subset) < 4:
            released[subset] = Moment(np.resize(values, [levels[v] - 1 for v in subset]), deviation)
            values = [*values[1:], values[0]]
    return Marginals(n, levels, released)


four_levels = st.lists(st.integers(1, 4), min_size=4, max_size=4)


@settings(extreme, max_examples=60)
@given(some_moments, deviations, four_levels, st.sampled_from([1, 1000, 10**18]))
def test_an_association_is_made_of_numbers(values, deviation, levels, n):
    marginals = marginals_of(values, deviation, levels, n)
    for given_these, interacting in (((), False), ((2,), False), ((2, 3), False), ((2, 3), True)):
        answer = association(marginals, 0, 1, given_these, interacting=interacting)
        assert 0 <= answer.p_value <= 1
        assert answer.freedom == (levels[0] - 1) * (levels[1] - 1)
        assert all(map(math.isfinite, (answer.statistic, answer.effect, answer.undetermined)))


def test_empty_strata_and_levels_nobody_has():
    table = np.zeros((3, 3, 2, 2), int)
    table[0, 0, 0, 0] = 1000
    for given_these in ((), (2,), (2, 3)):
        assert association(exact(table), 0, 1, given_these).p_value > 0.01
    table[1, 1, 1, 1] = 1000
    assert association(exact(table), 0, 1).p_value < 1e-6
    assert association(exact(table), 0, 1, (2, 3), interacting=True).undetermined < 0.1
    assert 0 <= association(exact(np.array([[1, 0], [0, 0]])), 0, 1).p_value <= 1


def release_with(values, deviation):
    marginals = marginals_of(values, deviation, RELEASE.marginals.levels)
    return type(RELEASE)(**{**vars(RELEASE), "marginals": marginals})


@settings(extreme, max_examples=15)
@given(some_moments, deviations)
def test_a_fit_has_probabilities_and_errors(values, deviation):
    names = RELEASE.graph.variables
    dag = nx.DiGraph([(names[0], names[2]), (names[1], names[2]), (names[2], names[3])])
    dag.add_node(names[4])
    fitted = fit_network(release_with(values, deviation), rng=default_rng(0), dag=dag, redraws=2)
    for name, table in fitted.network.tables.items():
        assert table.sum(axis=-1) == pytest.approx(np.ones(table.shape[:-1]))
        assert np.isfinite(fitted.errors[name]).all()


@settings(extreme, max_examples=8)
@given(some_moments, deviations)
def test_what_is_read_has_probabilities(values, deviation):
    certainty = read(release_with(values, deviation)).certainty
    for numbers in (certainty.edges, certainty.arrows):
        assert all(0 <= number <= 1 for number in numbers.values())


@pytest.mark.parametrize("number", [0, -1])
def test_without_redraws_nothing_can_be_said(number):
    with pytest.raises(ValueError, match="redraws must be a whole number, at least 1"):
        fit_network(RELEASE, rng=default_rng(0), redraws=number)
