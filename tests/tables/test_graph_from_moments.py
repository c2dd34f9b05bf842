"""Graphs read from moments of pairs: what runs, what it costs, and what it is made of."""

import math
import warnings

import numpy as np
import pytest

import dpcgd
from dpcgd import Budget, Dataset, graph_from_moments, load
from dpcgd.datasets.random_networks import SHAPES, random_network
from dpcgd.graphs.cpdag import CPDAG


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("name", "releases"), [("asia", 1), ("sachs", 2)])
def test_the_whole_budget_is_spent(name, releases):
    data = load(name, n=10_000, rng=rng())
    release = graph_from_moments(data, epsilon=0.5, delta=1e-7, rng=rng(1))
    assert len(release.ledger.events) == releases
    assert release.guarantee == "proved"
    assert 0.499 < release.ledger.spent.epsilon <= 0.5
    assert release.ledger.budget == Budget(0.5, 1e-7)
    assert len(release.probabilities) == math.comb(data.d, 2)
    assert all(0 <= p <= 1 for p in release.probabilities.values())


def test_a_table_unlike_what_it_was_trained_on_is_told_by_public_facts():
    codes = rng().integers(0, 7, (200, 2))
    data = Dataset(codes, {name: tuple("abcdefg") for name in "xy"})
    told = "trained on 3 to 200 variables; its probabilities may be off here"
    with pytest.warns(UserWarning, match=told) as caught:
        graph_from_moments(data, epsilon=1.0, delta=1e-3, rng=rng())
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("n", "epsilon", "told"),
    [
        (999, 1.0, "tables of 1,000 records and more"),
        (1000, 0.049, "less noise, up to that of epsilon = 0.05 with 1,000 records"),
        (2000, 0.02, "less noise, up to that of epsilon = 0.05 with 1,000 records"),
        (1000, 0.05, None),
        (2000, 0.03, None),
    ],
)
def test_fewer_records_or_more_noise_than_in_training_are_told(n, epsilon, told):
    data = load("survey", n=n, rng=rng())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph_from_moments(data, epsilon=epsilon, rng=rng())
    expected = [f"the edge model was trained on {told}; its probabilities may be off here"]
    assert [str(of.message) for of in caught] == (expected if told else [])


def test_very_many_levels_are_joined_and_paid_for():
    codes = rng().integers(0, (9, 2, 40, 3, 2), (5000, 5))
    levels = {f"v{i}": [str(k) for k in range(of)] for i, of in enumerate((9, 2, 40, 3, 2))}
    release = graph_from_moments(Dataset(codes, levels), epsilon=1.0, rng=rng())
    assert release.marginals.levels == (9, 2, 16, 3, 2)
    assert set(release.joined_levels) == {"v2"}
    assert len(release.ledger.events) == 2
    assert release.ledger.spent.epsilon <= 1.0


def test_an_arrow_is_no_surer_than_its_edge():
    release = graph_from_moments(load("child", n=20_000, rng=rng()), epsilon=1.0, rng=rng(1))
    sure = release.arrow_shares
    assert {frozenset(arrow) for arrow in sure} == release.graph.skeleton
    for (a, b), of in sure.items():
        assert of + sure[b, a] <= release.probabilities[frozenset((a, b))] + 1e-12
    drawn = [sure[arrow] for arrow in release.graph.arrows]
    others = [of for arrow, of in sure.items() if arrow not in release.graph.arrows]
    assert np.mean(drawn) > 0.6 > 0.2 > np.mean(others)


@pytest.mark.slow
def test_on_fresh_networks_probabilities_are_right_as_often_as_they_say():
    """Seeds that the reader was not trained on; 6 deviations of a sum of independent pairs."""
    said, right, sure, points = [], [], [], []
    for k, shape in enumerate(SHAPES * 3):
        r = rng([7, k])
        data = random_network(shape, "mixed", int(r.integers(8, 25)), r).sample(30_000, rng=r)
        release = graph_from_moments(data, epsilon=1.0, rng=r)
        true = {frozenset(edge) for edge in data.truth.edges}
        for pair, p in release.probabilities.items():
            said.append(p)
            right.append(pair in true)
        arrows = CPDAG.from_dag(data.truth).arrows
        for arrow, p in release.arrow_shares.items():
            sure.append(p)
            points.append(arrow in arrows)
    said, right = np.array(said), np.array(right)
    for low, high in ((0.05, 0.35), (0.35, 0.65), (0.65, 0.95), (0.95, 1.0)):
        of = (said > low) & (said <= high)
        expected, found = said[of].mean(), right[of].mean()
        # pairs of one network share its noise: a deviation is taken four times as wide
        assert abs(found - expected) < 0.02 + 4 * np.sqrt(expected * (1 - expected) / of.sum()), low
    sure, points = np.array(sure), np.array(points)
    for low, high in ((0.0, 0.35), (0.35, 0.7), (0.7, 1.0)):
        of = (sure > low) & (sure <= high)
        expected, found = sure[of].mean(), points[of].mean()
        # measured: off by .07 at most; arrows of one network hang together as its pairs do
        assert abs(found - expected) < 0.07 + 4 * np.sqrt(expected * (1 - expected) / of.sum()), low


def test_the_old_name_warns_and_gives_the_same():
    data = load("survey", n=2000, rng=rng())
    with pytest.warns(DeprecationWarning, match="graph_from_moments"):
        old = dpcgd.learned_pc(data, epsilon=1.0, rng=rng(1))
    assert old == graph_from_moments(data, epsilon=1.0, rng=rng(1))
    assert old.terms.system == "graph_from_moments"
