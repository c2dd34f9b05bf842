"""Boosted trees that were trained elsewhere: plain numbers in a file."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcgd.datasets.data_files import data_folder

__all__ = ["Trees", "trained_on", "trees_of"]


@dataclass(frozen=True)
class Trees:
    """Boosted trees: log odds are a sum of what the trees say.

    Parameters
    ----------
    bias : float
    roots : array of int
        The first node of each tree.
    feature : array of int
        What a node looks at, as a column of the features; -1 at a leaf.
    threshold : array of float
        Rows at or below it go left.
    left, right : array of int
    value : array of float
        Of a leaf.
    """

    bias: float
    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    def log_odds(self, features: np.ndarray) -> np.ndarray:
        """For each row of features, shape (k,)."""
        rows = np.arange(len(features))
        log_odds = np.full(len(features), self.bias)
        for root in self.roots:
            at = np.full(len(features), root)
            while (inner := self.feature[at] >= 0).any():
                goes_left = features[rows, self.feature[at]] <= self.threshold[at]
                at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
            log_odds += self.value[at]
        return log_odds

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """The same as probabilities."""
        return 1 / (1 + np.exp(-self.log_odds(features)))


def trained_on(name: str, features: tuple[str, ...]) -> dict[str, Any]:
    """What a file of the package's data holds, if it was trained on these features.

    Raises
    ------
    ValueError
        If it was trained on others than this package computes.
    """
    file = data_folder() / name
    kept = json.loads(file.read_text())
    if tuple(kept["features"]) != features:
        raise ValueError(
            f"{file} was trained on other features; train it anew with: make {file.stem}"
        )
    return kept


def trees_of(kept: dict[str, Any]) -> Trees:
    """Trees from the lists that a file holds."""
    arrays = {k: np.array(kept[k]) for k in ("roots", "feature", "left", "right")}
    arrays |= {k: np.array(kept[k], float) for k in ("threshold", "value")}
    return Trees(bias=kept["bias"], **arrays)
