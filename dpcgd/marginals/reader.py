"""A reader of released pairs, trained on simulated networks: which pairs are edges."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpcgd.datasets.data_files import data_folder
from dpcgd.marginals.interactions import Marginals
from dpcgd.marginals.pair_features import FEATURES, pair_features

__all__ = [
    "Reader",
    "best_count",
    "edge_probabilities",
    "log_odds",
    "most_likely_edges",
    "trained_reader",
    "with_verdict",
]


SUREST = 1e-4
"""Probabilities of an edge, or of none, are no smaller as log odds."""


SLOPE, VERDICT, BIAS = 0.89, 0.60, -0.29
"""Of the reader's log odds, and what a search that joins the pair adds; scripts/make_verdict.py."""


@dataclass(frozen=True)
class Reader:
    """Boosted trees: the log odds of an edge are a sum of what the trees say.

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
    trained : mapping
        On what: how many networks and releases, smallest and largest of what is public.
    """

    bias: float
    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    trained: dict[str, Any]

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Of an edge, for each row of features, shape (k,)."""
        rows = np.arange(len(features))
        log_odds = np.full(len(features), self.bias)
        for root in self.roots:
            at = np.full(len(features), root)
            while (inner := self.feature[at] >= 0).any():
                goes_left = features[rows, self.feature[at]] <= self.threshold[at]
                at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
            log_odds += self.value[at]
        return 1 / (1 + np.exp(-log_odds))


@cache
def trained_reader() -> Reader:
    """The reader that comes with the package; ``make reader`` trains it.

    Raises
    ------
    ValueError
        If it was trained on other features than this package computes.
    """
    file = data_folder() / "reader.json"
    kept = json.loads(file.read_text())
    if tuple(kept["features"]) != FEATURES:
        raise ValueError(f"{file} was trained on other features; train it anew with: make reader")
    arrays = {k: np.array(kept[k]) for k in ("roots", "feature", "left", "right")}
    arrays |= {k: np.array(kept[k], float) for k in ("threshold", "value")}
    return Reader(bias=kept["bias"], trained=kept["trained"], **arrays)


def edge_probabilities(marginals: Marginals) -> np.ndarray:
    """Of an edge between any two variables, symmetric, shape (d, d).

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    d = len(marginals.levels)
    found = np.zeros((d, d))
    if d > 1:
        pairs, features = pair_features(marginals)
        found[pairs[:, 0], pairs[:, 1]] = trained_reader().probabilities(features)
    return found + found.T


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Of probabilities, none beyond one in ten thousand.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5])).round(2)
    array([-9.21,  0.  ])
    """
    p = np.clip(probabilities, SUREST, 1 - SUREST)
    return np.log(p / (1 - p))


def with_verdict(probabilities: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Probabilities of edges, once a search of the same release has its say.

    Parameters
    ----------
    probabilities : array of shape (d, d)
        As the reader has them.
    joined : boolean array of shape (d, d)
        The pairs that the search joins.

    Returns
    -------
    array of shape (d, d)
        Zero where both say that there is no edge.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    The log odds of the reader, times a slope, and what a verdict is worth on top; both were fitted
    to simulated releases.

    Examples
    --------
    >>> p = np.array([[0, 0.6, 0.4], [0.6, 0, 0], [0.4, 0, 0]])
    >>> with_verdict(p, np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool)).round(2)
    array([[0.  , 0.52, 0.49],
           [0.52, 0.  , 0.  ],
           [0.49, 0.  , 0.  ]])
    """
    odds = SLOPE * log_odds(probabilities) + VERDICT * joined + BIAS
    found = np.where((probabilities > 0) | joined, 1 / (1 + np.exp(-odds)), 0.0)
    np.fill_diagonal(found, 0.0)
    return found


def best_count(falling: np.ndarray) -> int:
    """How many of these pairs, the most probable ones first, have the largest expected F1.

    Examples
    --------
    >>> best_count(np.array([0.9, 0.5, 0.1]))
    2
    """
    right, taken = np.cumsum(falling), np.arange(1, len(falling) + 1)
    return int(np.argmax(2 * right / (taken + right[-1]))) + 1


def most_likely_edges(probabilities: np.ndarray, precision: float | None = None) -> np.ndarray:
    """The edge set of largest expected F1, or the largest one that is expected to be so precise.

    Parameters
    ----------
    probabilities : array of shape (d, d)
    precision : float, optional
        Share of the edges that should be right.

    Returns
    -------
    boolean array of shape (d, d)

    Notes
    -----
    With probabilities p in falling order and S their sum, the k most likely pairs have an expected
    F1 of about 2 (p_1 + ... + p_k) / (k + S), and an expected precision of their mean.

    Examples
    --------
    >>> p = np.array([[0, 0.9, 0.5], [0.9, 0, 0.1], [0.5, 0.1, 0]])
    >>> int(most_likely_edges(p).sum()) // 2, int(most_likely_edges(p, 0.8).sum()) // 2
    (2, 1)
    """
    upper = np.triu(probabilities, 1)
    falling = np.sort(upper[upper > 0])[::-1]
    if not len(falling):
        return np.zeros(probabilities.shape, bool)
    if precision is None:
        count = best_count(falling)
    else:
        expected = np.cumsum(falling) / np.arange(1, len(falling) + 1)
        count = int(np.sum(expected >= precision))
    least = falling[count - 1] if count else np.inf
    return (probabilities >= least) & (probabilities > 0)
