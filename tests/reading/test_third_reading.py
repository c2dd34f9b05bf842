"""Releases with triples: when they are made, what they cost, and what a third reading sees."""

import math

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd import Budget, BudgetSpent, Dataset, graph_from_moments, load
from dpcgd.moments.interactions import (
    affords_triples,
    exactly,
    measure_triples,
    paid,
    pairs_sensitivity,
)
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.reader import (
    edge_probabilities,
    pairs_read,
    trained_reader,
)
from dpcgd.reading.third_reading import THIRD_FEATURES, holds_triples, third_features


def told_of(data):
    return measure_triples(data, exactly, 1.0)


def column(features, name):
    return features[:, THIRD_FEATURES.index(name)]


def common_cause_in_two(n=50_000, seed=0):
    """x and y follow whether a and b are both there: what a and b leave of them does not add up.

    Variables a, b, x, y and three that nothing depends on.
    """
    rng = default_rng(seed)
    codes = rng.integers(0, 2, (n, 7))
    both = codes[:, 0] & codes[:, 1]
    for v in (2, 3):
        codes[:, v] = np.where(rng.random(n) < 0.6, both, codes[:, v])
    return Dataset(codes, {name: ("no", "yes") for name in "abxycde"})


def test_public_facts_decide_on_triples():
    levels, n, rho = [2] * 8, 10_000, 0.02
    noise = pairs_sensitivity(levels) * multiplier_of_rho(rho) / math.sqrt(n)
    enough = n * (noise / 0.2) ** 2
    assert affords_triples(levels, math.ceil(1.01 * enough), rho)
    assert not affords_triples(levels, int(0.99 * enough), rho)
    plenty = 10**9
    for few in ([2] * 5, [2] * 5 + [1], [2] * 13, [2] * 7 + [9]):
        assert not affords_triples(few, plenty, rho)
    for some in ([2] * 6, [2] * 6 + [1], [8] * 12):
        assert affords_triples(some, plenty, rho)


def test_pairs_and_triples_take_the_whole_budget():
    data, account = load("asia", n=500, rng=default_rng(0)), GaussianFilter(Budget(1.0, 1e-6))
    measure = paid(account, SeededNoise(default_rng(1)))
    told = measure_triples(data, measure, account.rho)
    first, second = account.ledger.events
    assert first.noise_multiplier / second.noise_multiplier == pytest.approx(math.sqrt(1 / 3))
    assert account.remaining == pytest.approx(0, abs=1e-8 * account.rho)
    assert holds_triples(told)
    with pytest.raises(BudgetSpent):
        measure_triples(data, measure, account.rho)


def test_given_two_at_once_what_two_one_by_one_leave_is_gone():
    data = common_cause_in_two()
    told = told_of(data)
    pairs, features = third_features(told, np.zeros((7, 7)))
    row = pairs.tolist().index([2, 3])
    assert column(features, "least given one")[row] > 5
    assert column(features, "least given any two")[row] < 2
    assert column(features, "effect at the least given any two")[row] < 1e-3
    release = graph_from_moments(data, epsilon=3.0, rng=default_rng(1))
    assert holds_triples(release.marginals)
    assert release.probabilities[frozenset("xy")] < 0.2
    assert pairs_read(release.marginals)[2, 3] > 0.5


def test_where_others_determine_a_variable_they_tell_nothing_of_it():
    data = common_cause_in_two()
    codes = data.codes.copy()
    codes[:, 4] = codes[:, 0] & codes[:, 1]
    told = told_of(Dataset(codes, data.levels))
    pairs, features = third_features(told, np.zeros((7, 7)))
    lost = column(features, "sets that leave nothing open")
    assert lost[pairs.tolist().index([2, 3])] == 0
    assert lost[pairs.tolist().index([2, 4])] == 1


def test_sachs_is_read_better_with_triples():
    data = load("sachs", rng=default_rng(0))
    release = graph_from_moments(data, epsilon=1.0, rng=default_rng(1))
    assert holds_triples(release.marginals)
    assert release.graph.skeleton_f1(data.truth) > 0.95


def test_a_variable_of_one_level_is_read_past():
    data = load("asia", n=20_000, rng=default_rng(0))
    codes = np.insert(data.codes, 3, 0, axis=1)
    names = [*data.levels]
    levels = {name: data.levels[name] for name in names[:3]} | {"same": ("only",)}
    more = Dataset(codes, levels | {name: data.levels[name] for name in names[3:]})
    assert not edge_probabilities(told_of(more))[3].any()
    with_it, without = (
        third_features(told_of(of), np.zeros((of.d,) * 2))[1] for of in (more, data)
    )
    assert np.allclose(with_it, without, atol=1e-3)


def test_pairs_are_read_twice_where_triples_are_missing_or_variables_too_few():
    data = load("survey", n=5_000, rng=default_rng(0))
    whole = told_of(data)
    few = told_of(Dataset(data.codes[:, :5], dict([*data.levels.items()][:5])))
    assert not np.array_equal(edge_probabilities(whole), pairs_read(whole))
    assert np.array_equal(edge_probabilities(few), pairs_read(few))
    missing = {of: moment for of, moment in whole.released.items() if of != (0, 1, 2)}
    part = type(whole)(whole.n, whole.levels, missing)
    assert not holds_triples(part)
    assert np.array_equal(edge_probabilities(part), pairs_read(part))


def test_more_records_than_in_training_are_read_as_so_many():
    told = told_of(load("survey", n=5_000, rng=default_rng(0)))
    most = int(trained_reader().trained["records"][1])
    assert np.array_equal(
        edge_probabilities(told.as_of(1000 * most)), edge_probabilities(told.as_of(most))
    )


def test_the_order_of_the_variables_does_not_matter():
    data = load("asia", n=20_000, rng=default_rng(0))
    turned = Dataset(data.codes[:, ::-1], dict([*data.levels.items()][::-1]))
    (pairs, one), (_, other) = (
        third_features(told_of(of), np.zeros((8, 8))) for of in (data, turned)
    )
    row_of = {tuple(pair): row for row, pair in enumerate(pairs.tolist())}
    same = [row_of[7 - y, 7 - x] for x, y in pairs.tolist()]
    assert np.allclose(one, other[same], rtol=1e-3, atol=1e-3)
