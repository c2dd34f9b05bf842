"""Trained trees: what they say, and that they are of the features that the package computes."""

import json

import numpy as np
import pytest

from dpcgd.datasets import data_files
from dpcgd.reading import trees
from dpcgd.reading.orientation import collider_trees
from dpcgd.reading.reader import third_reader, trained_reader
from dpcgd.reading.trees import Trees

TWO_TREES = Trees(
    bias=-1.0,
    roots=np.array([0, 3]),
    feature=np.array([1, -1, -1, -1]),
    threshold=np.array([0.5, 0, 0, 0]),
    left=np.array([1, 1, 2, 3]),
    right=np.array([2, 1, 2, 3]),
    value=np.array([0, -2.0, 3.0, 0.25]),
)


def test_the_log_odds_are_the_sum_of_the_leaves():
    found = TWO_TREES.probabilities(np.array([[9.0, 0.5], [9.0, 0.6]]))
    assert np.allclose(np.log(found / (1 - found)), [-1 - 2 + 0.25, -1 + 3 + 0.25])


@pytest.mark.parametrize(
    ("name", "load"),
    [("reader", trained_reader), ("third_reader", third_reader), ("colliders", collider_trees)],
)
def test_what_was_trained_on_other_features_is_refused(name, load, tmp_path, monkeypatch):
    kept = json.loads((data_files.data_folder() / f"{name}.json").read_text())
    (tmp_path / f"{name}.json").write_text(json.dumps(kept | {"features": ["something else"]}))
    monkeypatch.setattr(trees, "data_folder", lambda: tmp_path)
    load.cache_clear()
    with pytest.raises(ValueError, match=f"train it anew with: make {name}"):
        load()
    load.cache_clear()
