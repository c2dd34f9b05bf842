"""Releases with triples: when they are made, what they cost, and what a third reading sees."""

import math

import numpy as np
import pandas as pd
import pytest
from exact_pairs import marginals_of
from numpy.random import default_rng

from dpcgd import Budget, BudgetSpent, Dataset, graph_from_moments, load
from dpcgd.moments.interactions import affords_triples, measure_triples, paid, pairs_sensitivity
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.pair_features import third_features
from dpcgd.reading.reader import edge_probabilities, holds_triples, pairs_read

ASIA = load("asia", n=20_000, rng=default_rng(0))


def third(data):
    """The number of the row of each pair, and the features."""
    pairs, columns = third_features(marginals_of(data, triples=True), np.zeros((data.d, data.d)))
    return {tuple(pair): row for row, pair in enumerate(pairs.tolist())}, pd.DataFrame(columns)


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
    released = measure_triples(data, measure, account.rho)
    first, second = account.ledger.events
    assert first.noise_multiplier / second.noise_multiplier == pytest.approx(math.sqrt(1 / 3))
    assert account.remaining == pytest.approx(0, abs=1e-8 * account.rho)
    assert holds_triples(released)
    with pytest.raises(BudgetSpent):
        measure_triples(data, measure, account.rho)


def test_given_two_at_once_what_two_one_by_one_leave_is_gone():
    data = common_cause_in_two()
    rows, features = third(data)
    found = features.loc[rows[2, 3]]
    assert found["least given one"] > 5
    assert found["least given any two"] < 2
    assert found["effect at the least given any two"] < 1e-3
    release = graph_from_moments(data, epsilon=3.0, rng=default_rng(1))
    assert holds_triples(release.marginals)
    assert release.probabilities[frozenset("xy")] < 0.2
    assert pairs_read(release.marginals)[2, 3] > 0.5


def test_where_others_determine_a_variable_they_tell_nothing_of_it():
    data = common_cause_in_two()
    codes = data.codes.copy()
    codes[:, 4] = codes[:, 0] & codes[:, 1]
    rows, features = third(Dataset(codes, data.levels))
    lost = features["sets that leave nothing open"]
    assert (lost[rows[2, 3]], lost[rows[2, 4]]) == (0, 1)


def test_a_variable_of_one_level_is_read_past():
    names = [*ASIA.levels]
    levels = {name: ASIA.levels[name] for name in names[:3]} | {"same": ("only",)}
    more = Dataset(np.insert(ASIA.codes, 3, 0, axis=1), levels | ASIA.levels)
    assert more.variables.index("same") == 3
    assert not edge_probabilities(marginals_of(more, triples=True))[3].any()
    assert np.allclose(third(more)[1], third(ASIA)[1], atol=1e-3)


def test_pairs_are_read_twice_where_triples_are_missing_or_variables_too_few():
    data = load("survey", n=5_000, rng=default_rng(0))
    whole = marginals_of(data, triples=True)
    few = Dataset(data.codes[:, :5], dict([*data.levels.items()][:5]))
    missing = {of: moment for of, moment in whole.released.items() if of != (0, 1, 2)}
    part = type(whole)(whole.n, whole.levels, missing)
    assert not holds_triples(part)
    assert not np.array_equal(edge_probabilities(whole), pairs_read(whole))
    for marginals in (marginals_of(few, triples=True), part):
        assert np.array_equal(edge_probabilities(marginals), pairs_read(marginals))


def test_the_order_of_the_variables_does_not_matter():
    turned = Dataset(ASIA.codes[:, ::-1], dict([*ASIA.levels.items()][::-1]))
    (rows, plain), (moved, other) = third(ASIA), third(turned)
    same = [moved[7 - y, 7 - x] for x, y in rows]
    assert np.allclose(plain, other.loc[same], rtol=1e-3, atol=1e-3)
