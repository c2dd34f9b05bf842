"""The reader of released pairs: its trees, its edge sets, and what it was trained on."""

import itertools
import json

import numpy as np
import pytest
from exact_pairs import marginals_of

from dpcgd import load
from dpcgd.datasets.arguments import data_folder
from dpcgd.reading import reader
from dpcgd.reading.reader import Trees, edge_probabilities, most_likely_edges


def expected_f1(chosen, p):
    """By its definition, over all graphs that the probabilities allow."""
    total = 0.0
    for truth in itertools.product([0, 1], repeat=len(p)):
        chance = np.prod([q if t else 1 - q for q, t in zip(p, truth, strict=True)])
        right = sum(c and t for c, t in zip(chosen, truth, strict=True))
        sizes = sum(chosen) + sum(truth)
        total += chance * (2 * right / sizes if sizes else 1.0)
    return total


def of_four(values):
    p = np.zeros((4, 4))
    p[np.triu_indices(4, 1)] = values
    return p + p.T


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_edges_have_nearly_the_largest_expected_f1(seed):
    p = np.random.default_rng(seed).beta(0.5, 0.5, 6)
    chosen = most_likely_edges(of_four(p), "f1")
    assert (chosen == chosen.T).all()
    best = max(expected_f1(edges, p) for edges in itertools.product([0, 1], repeat=6))
    assert expected_f1(chosen[np.triu_indices(4, 1)], p) >= best - 0.05


def test_a_precision_keeps_as_many_edges_as_it_allows():
    p = of_four([0.99, 0.9, 0.8, 0.3, 0.2, 0.0])
    counts = [most_likely_edges(p, at).sum() // 2 for at in (1.0, 0.95, 0.89, 0.1)]
    assert counts == [0, 1, 3, 5]


def test_more_records_than_in_training_are_read_as_so_many():
    released = marginals_of(load("survey", n=5_000, rng=np.random.default_rng(0)))
    most = int(reader.trained_reader().trained["records"][1])
    many, as_many = (edge_probabilities(released.as_of(n)) for n in (1000 * most, most))
    assert np.array_equal(many, as_many)
    assert not np.array_equal(many, edge_probabilities(released))
    assert released.n == 5_000


NODES = {"feature": np.array([1, -1, -1, -1]), "number": np.array([0.5, -2.0, 3.0, 0.25])}
NODES |= {"right": np.array([2, 0, 0, 0]), "roots": np.array([0, 3])}
TWO_TREES = Trees(features=("never seen", "seen"), bias=-1.0, **NODES)


def test_the_log_odds_are_the_sum_of_the_leaves():
    columns = {"seen": np.array([0.5, 0.6]), "more": np.zeros(2), "never seen": np.full(2, 9.0)}
    found = TWO_TREES.probabilities(columns)
    assert np.allclose(np.log(found / (1 - found)), [-1 - 2 + 0.25, -1 + 3 + 0.25])


@pytest.mark.parametrize("name", ["reader", "colliders"])
def test_what_was_trained_on_other_features_is_refused(name, tmp_path, monkeypatch):
    kept = json.loads((data_folder() / f"{name}.json").read_text())
    columns = {feature: np.zeros(1) for feature in kept["features"]}
    kept["features"][0] = "something else"
    (tmp_path / f"{name}.json").write_text(json.dumps(kept))
    monkeypatch.setattr(reader, "data_folder", lambda: tmp_path)
    for trees in reader.trained_on.__wrapped__(f"{name}.json").trees.values():
        with pytest.raises(ValueError, match=r"'something else'.*with: make models"):
            trees.probabilities(columns)
