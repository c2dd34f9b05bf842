"""Draws for reports: what is drawn is exactly what the weights say, and as private as stated."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from known_distances import cells_of
from numpy.random import default_rng
from people import refused

from dpcgd import Dataset
from dpcgd.local import draws
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.draws import SLACK, as_integers, pick
from dpcgd.local.geometric import ClippedGeometric, Geometric, UniformGeometric
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report

MECHANISMS = [
    RandomizedResponse(4, 1.0),
    RandomizedResponse((2, 3), 30.0),
    RandomizedResponse(2, 0.0),
    RandomizedResponse(2, 600.0),  # in doubles the chance to keep a record would be 1
    ClippedGeometric(5, 0.7),
    ClippedGeometric(4, 150.0),
    UniformGeometric(4, 0.9),
    UniformGeometric(10, 7.9),
    Geometric(5, 0.5),
    Geometric(3, 1 - 1e-12),
    *(Geometric((2, 4, 2), 0.2, norm) for norm in (1, 2, math.inf)),
    ComponentWise([RandomizedResponse(2, 1.0), Geometric(3, 0.6)]),
]


@pytest.fixture
def law(monkeypatch):
    """The exact distribution of a record's secure report, by going through all draws."""

    def run(mechanism, record, script, chance=1):
        at, todo = itertools.count(), []

        def chosen(weights):
            nonlocal chance
            if (i := next(at)) == len(script):
                first, *others = [c for c, weight in enumerate(weights) if weight]
                todo.extend([*script, c] for c in others)
                script.append(first)
            chance *= Fraction(weights[script[i]], sum(weights))
            return script[i]

        monkeypatch.setattr(draws, "pick", chosen)
        monkeypatch.setattr(draws.secrets, "randbelow", lambda k: chosen([1] * k))
        (found,) = mechanism.sample(record[None], secure=True)
        return tuple(np.ravel(found).tolist()), chance, todo

    def through_all(mechanism, record):
        chances, scripts = Counter(), [[]]
        while scripts:
            found, chance, todo = run(mechanism, record, scripts.pop())
            chances[found] += chance
            scripts += todo
        return chances

    return through_all


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_what_is_drawn_is_the_channel_and_has_the_stated_epsilon(mechanism, law):
    cells = cells_of(mechanism)
    laws = [law(mechanism, record) for record in cells]
    assert all(sum(chances.values()) == 1 for chances in laws)
    places = [tuple(np.ravel(cell).tolist()) for cell in cells]
    drawn = [[float(chances[place]) for place in places] for chances in laws]
    assert np.array(drawn) == pytest.approx(mechanism.channel, rel=1e-9, abs=1e-15)
    columns = [[chances[place] for chances in laws] for place in places]
    worst = max(max(column) / min(column) for column in columns)
    level = math.log(worst.numerator) - math.log(worst.denominator)
    assert level <= mechanism.epsilon + SLACK
    assert level == pytest.approx(mechanism.epsilon, abs=1e-11)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=8))
def test_integers_have_exactly_the_proportions_of_the_doubles(weights):
    exact = as_integers(weights)
    assert len({Fraction(i) / Fraction(w) for i, w in zip(exact, weights, strict=True) if w}) <= 1
    assert [i == 0 for i in exact] == [w == 0 for w in weights]


@pytest.mark.parametrize("weights", [[1], [3, 0, 1, 4], [0, 0, 5], [0.375, 0.0, 2.0, 0.125]])
def test_every_integer_below_the_sum_picks_a_column_as_often_as_its_weight(weights, monkeypatch):
    exact = as_integers(weights)
    numbers = iter(range(sum(exact)))
    monkeypatch.setattr(draws.secrets, "randbelow", lambda total: next(numbers))
    picked = [pick(exact) for _ in range(sum(exact))]
    assert [picked.count(column) for column in range(len(weights))] == exact


GEOMETRIC = [
    Geometric((9, 8, 7), 0.07, 2),
    Geometric((9, 8, 7), 0.3, 1),
    Geometric((5, 5, 5, 5), 0.02, math.inf),
    Geometric(300, 0.01),
]


@pytest.mark.parametrize("mechanism", GEOMETRIC, ids=str)
def test_a_rate_is_the_same_to_the_last_bit_alone_and_beside_any_others(mechanism):
    cells, rng = cells_of(mechanism), default_rng(0)
    alone = np.array([mechanism.rates(cell[None])[0] for cell in cells])
    assert np.array_equal(mechanism.rates(cells), alone)
    for size in (2, 3, 50, 255, 256, 257, 1000):
        some = rng.integers(len(cells), size=size)
        assert np.array_equal(mechanism.rates(cells[some]), alone[some])


@pytest.mark.parametrize("settings", [{}, {"secure": True}], ids=["by default", "secure"])
def test_a_secure_report_knows_nothing_of_other_records(monkeypatch, settings):
    offered = []
    monkeypatch.setattr(draws, "pick", lambda weights: offered.append(weights) or 0)
    mechanism, others = GEOMETRIC[0], default_rng(0).integers(0, (9, 8, 7), (100, 3))
    for record in others:
        mechanism.sample(record[None], **settings)
    mechanism.sample(others, **settings)
    alone, together = offered[: len(offered) // 2], offered[len(offered) // 2 :]
    assert sorted(alone) == sorted(together)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_secure_reports_of_many_records_are_the_operating_systems(mechanism, monkeypatch):
    monkeypatch.setattr(draws.secrets, "randbelow", lambda k: k - 1)
    record = cells_of(mechanism)[:1]
    reports = mechanism.sample(np.repeat(record, 2000, axis=0))
    assert (reports == reports[0]).all()
    assert mechanism.sample(record[:0]).shape == record[:0].shape


PARTS = ComponentWise([RandomizedResponse(2, 1.0), ClippedGeometric(3, 1.0)])
ON_TWO = RandomizedResponse((2, 3), 1.0), Geometric((2, 3), 0.5), PARTS


@pytest.mark.parametrize("mechanism", ON_TWO, ids=str)
def test_no_source_is_a_secure_one_and_both_are_refused(mechanism):
    data = Dataset([[0, 2], [1, 1]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
    assert report(data, mechanism).n == data.n
    rng = default_rng(0)
    refused("say where the noise comes from", report, data, mechanism, rng=0)
    refused("leave out rng", report, data, mechanism, rng=rng, secure=True)
    assert rng.bit_generator.state == default_rng(0).bit_generator.state


REFUSED = [
    *(RandomizedResponse((4, 4), 701.0), ClippedGeometric(3, 2000.0), UniformGeometric(3, 2000.0)),
    *(Geometric(levels, 1 - 1e-9) for levels in (100, (100, 2))),
    *(Geometric((10,) * 16, 1e-6, norm) for norm in (1, 2, math.inf)),
    ComponentWise([RandomizedResponse(2, 1.0), RandomizedResponse(2, 701.0)]),
    ComponentWise([RandomizedResponse(2, 1.0), Geometric(100, 1 - 1e-9)]),
]


@pytest.mark.parametrize("mechanism", REFUSED, ids=str)
def test_without_a_seed_is_refused_whatever_is_refused_when_secure(mechanism):
    codes = np.zeros((2, *np.shape(mechanism.levels)), int)
    for settings in ({}, {"secure": True}):
        refused("to draw securely", mechanism.sample, codes, **settings)
    mechanism.sample(codes, rng=default_rng(0))
