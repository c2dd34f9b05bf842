"""The reader of released pairs: its edge sets, and what it was trained on."""

import itertools

import numpy as np
import pytest

from dpcgd import load
from dpcgd.moments.clipped_moments import measure_moments
from dpcgd.moments.interactions import exactly
from dpcgd.reading.reader import edge_probabilities, most_likely_edges, trained_reader


def expected_f1(chosen, p):
    """By its definition, over all graphs that the probabilities allow."""
    total = 0.0
    for truth in itertools.product([0, 1], repeat=len(p)):
        chance = np.prod([q if t else 1 - q for q, t in zip(p, truth, strict=True)])
        right = sum(c and t for c, t in zip(chosen, truth, strict=True))
        sizes = sum(chosen) + sum(truth)
        total += chance * (2 * right / sizes if sizes else 1.0)
    return total


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_edges_have_nearly_the_largest_expected_f1(seed):
    rng = np.random.default_rng(seed)
    p = np.zeros((4, 4))
    p[np.triu_indices(4, 1)] = of = rng.beta(0.5, 0.5, 6)
    chosen = most_likely_edges(p + p.T, "f1")[np.triu_indices(4, 1)]
    best = max(expected_f1(set_, of) for set_ in itertools.product([0, 1], repeat=6))
    assert expected_f1(chosen, of) >= best - 0.05
    assert (most_likely_edges(p + p.T, "f1") == most_likely_edges(p + p.T, "f1").T).all()


def test_a_precision_keeps_as_many_edges_as_it_allows():
    p = np.zeros((4, 4))
    p[np.triu_indices(4, 1)] = [0.99, 0.9, 0.8, 0.3, 0.2, 0.0]
    counts = [most_likely_edges(p + p.T, at).sum() // 2 for at in (1.0, 0.95, 0.89, 0.1)]
    assert counts == [0, 1, 3, 5]


def test_more_records_than_in_training_are_read_as_so_many():
    data = load("survey", n=5_000, rng=np.random.default_rng(0))
    told = measure_moments(data, exactly, 1.0, clipped=False)
    most = int(trained_reader().trained["records"][1])
    many, as_many = told.as_of(1000 * most), told.as_of(most)
    assert np.array_equal(edge_probabilities(many), edge_probabilities(as_many))
    assert not np.array_equal(edge_probabilities(as_many), edge_probabilities(told))
    assert told.n == 5_000
