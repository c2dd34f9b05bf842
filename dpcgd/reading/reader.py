"""A reader of released pairs, trained on simulated networks: which pairs are edges.

It reads a release twice: the second time it knows which edges the first reading found likely. Where
there are triples, it reads a third time.
"""

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from dpcgd.datasets.arguments import is_real
from dpcgd.moments.blocks import blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.reading.dependence import LIKELY, copies_joined, dependence
from dpcgd.reading.pair_features import FEATURES, pair_features
from dpcgd.reading.second_reading import SECOND_FEATURES, second_features
from dpcgd.reading.third_reading import THIRD_FEATURES, holds_triples, third_features
from dpcgd.reading.trees import Trees, trained_on, trees_of

__all__ = [
    "LARGEST_F1",
    "Precision",
    "Reader",
    "ThirdReader",
    "best_count",
    "check_precision",
    "drawn_edges",
    "edge_probabilities",
    "first_reading",
    "most_likely_edges",
    "pairs_read",
    "third_reader",
    "trained_reader",
    "unlike_training",
]


LARGEST_F1 = "f1"
"""This choice of edges has the largest expected F1. The table of chapter 17 was made with it."""


DELTA_IN_TRAINING = 1e-6
"""The delta at which the smallest epsilon of training was converted."""


Precision = float | Literal["f1"] | None
"""What :func:`most_likely_edges` goes by."""


class Reader(NamedTuple):
    """Trees for the first reading and for the second one, and what they were trained on.

    Attributes
    ----------
    first : Trees
        Of `FEATURES`.
    second : Trees
        Of `FEATURES`, then `SECOND_FEATURES`.
    trained : dict
        How many networks and releases, smallest and largest of what is public.
    """

    first: Trees
    second: Trees
    trained: dict[str, Any]


@cache
def trained_reader() -> Reader:
    """The reader that comes with the package; ``make reader`` trains it.

    Raises
    ------
    ValueError
        If it was trained on other features than this package computes.
    """
    kept = trained_on("reader.json", FEATURES + SECOND_FEATURES)
    return Reader(trees_of(kept["first"]), trees_of(kept["second"]), kept["trained"])


class ThirdReader(NamedTuple):
    """Trees for the third reading, of `THIRD_FEATURES`, and what they were trained on.

    Attributes
    ----------
    third : Trees
    trained : dict
        How many networks, smallest and largest of what is public.
    """

    third: Trees
    trained: dict[str, Any]


@cache
def third_reader() -> ThirdReader:
    """The third reading that comes with the package; ``make third_reader`` trains it.

    Raises
    ------
    ValueError
        If it was trained on other features than this package computes.
    """
    kept = trained_on("third_reader.json", THIRD_FEATURES)
    return ThirdReader(trees_of(kept["third"]), kept["trained"])


def edge_probabilities(marginals: Marginals) -> np.ndarray:
    """Of an edge between any two variables, symmetric, shape (d, d).

    Parameters
    ----------
    marginals : Marginals
        With all pairs released; and all triples, for a third reading of as many variables as that
        was trained on.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    likely = pairs_read(marginals)
    fewest, most = third_reader().trained["variables"]
    varying = sum(of > 1 for of in marginals.levels)
    if not (fewest <= varying <= most and holds_triples(marginals)):
        return likely
    pairs, features = third_features(_as_in_training(marginals), likely)
    return _square(len(likely), pairs, third_reader().third.probabilities(features))


def pairs_read(marginals: Marginals) -> np.ndarray:
    """The same probabilities from the pairs alone, read twice.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.

    Returns
    -------
    array of shape (d, d)

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    if (d := len(marginals.levels)) < 2:
        return np.zeros((d, d))
    marginals = _as_in_training(marginals)
    found, (pairs, features) = first_reading(marginals), pair_features(marginals)
    again, more = second_features(blocks_of(marginals), found)
    row_of = _square(d, pairs, np.arange(len(pairs)))
    both = np.hstack([features[row_of[tuple(again.T)]], more])
    second = _square(d, again, trained_reader().second.probabilities(both))
    return np.where(second > 0, second, found)


def _as_in_training(marginals) -> Marginals:
    """The same moments as if of no more records than any network in training had.

    What is so faint that only more of them would show it is no edge to the reader.
    """
    most = int(trained_reader().trained["records"][1])
    if marginals.n <= most:
        return marginals
    return marginals.worked_out(("as of", most), lambda: marginals.as_of(most))


def first_reading(marginals: Marginals) -> np.ndarray:
    """The same probabilities before the release is read again.

    Parameters
    ----------
    marginals : Marginals
        With all pairs of two variables or more released.

    Returns
    -------
    array of shape (d, d)
        0 for a variable of one level, which the reader has never seen.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    pairs, features = pair_features(_as_in_training(marginals))
    varying = np.array(marginals.levels) > 1
    found = _square(len(varying), pairs, trained_reader().first.probabilities(features))
    return found * np.outer(varying, varying)


def _square(d, pairs, values) -> np.ndarray:
    """Values of pairs, both ways round; 0 elsewhere."""
    x, y = pairs.T
    found = np.zeros((d, d), values.dtype)
    found[x, y] = found[y, x] = values
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


def check_precision(precision: Precision) -> None:
    """Refuse what says nothing about the edges to draw.

    Raises
    ------
    ValueError
        With what it may be.
    """
    if precision is None or precision == LARGEST_F1:
        return
    if isinstance(precision, str) or not (is_real(precision) and 0 < precision <= 1):
        raise ValueError(
            f"precision must be above 0 and at most 1, or {LARGEST_F1!r}, not {precision!r}"
        )


def most_likely_edges(probabilities: np.ndarray, precision: Precision = None) -> np.ndarray:
    """The pairs that are likelier joined than not, or another choice by their probabilities.

    Parameters
    ----------
    probabilities : array of shape (d, d)
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" for the set of largest expected F1, which is never empty.

    Returns
    -------
    boolean array of shape (d, d)

    Notes
    -----
    Pairs with a probability of one half or more have the fewest expected errors. With probabilities
    p in falling order and S their sum, the k most likely pairs have an expected F1 of about
    2 (p_1 + ... + p_k) / (k + S), and an expected precision of their mean.

    Examples
    --------
    >>> p = np.array([[0, 0.9, 0.45], [0.9, 0, 0.1], [0.45, 0.1, 0]])
    >>> [int(most_likely_edges(p, rule).sum()) // 2 for rule in (None, "f1", 0.8)]
    [1, 2, 1]
    """
    if precision is None:
        return probabilities >= LIKELY
    upper = np.triu(probabilities, 1)
    falling = np.sort(upper[upper > 0])[::-1]
    if not len(falling):
        return np.zeros(probabilities.shape, bool)
    if isinstance(precision, str):
        count = best_count(falling)
    else:
        expected = np.cumsum(falling) / np.arange(1, len(falling) + 1)
        count = int(np.sum(expected >= precision))
    least = falling[count - 1] if count else np.inf
    return (probabilities >= least) & (probabilities > 0)


def drawn_edges(
    read: np.ndarray, marginals: Marginals, required: np.ndarray, precision: Precision
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities no larger than the data of a pair allow, and the edges that are drawn.

    Parameters
    ----------
    read : array of shape (d, d)
        Probabilities of edges, as a model trained on networks with edges has them.
    marginals : Marginals
        With all pairs released.
    required : boolean array of shape (d, d)
        Arcs that are known, whose edges have no such limit.
    precision : float or "f1", optional
        As for :func:`most_likely_edges`; "f1" goes by what was read, without the limit.

    Returns
    -------
    probabilities : array of shape (d, d)
    joined : boolean array of shape (d, d)

    Privacy
    -------
    Post-processing.
    """
    limit = np.where(required | required.T, 1.0, dependence(marginals))
    likely = copies_joined(marginals, np.minimum(read, limit))
    return likely, most_likely_edges(read if precision == LARGEST_F1 else likely, precision)


def unlike_training(d: int, n: int, rho: float) -> str:
    """Why probabilities may be off for a table, by its public facts, or an empty text.

    Parameters
    ----------
    d, n : int
        Variables and records.
    rho : float
        What the release costs.

    Examples
    --------
    >>> unlike_training(5, 100, 0.02)
    'the edge model was trained on tables of 1,000 records and more; its ... may be off here'
    >>> unlike_training(5, 100_000, 0.02)
    ''
    """
    trained = trained_reader().trained
    (fewest, most), records = trained["variables"], trained["records"][0]
    least = trained["epsilons"][0]
    limits = {
        f"{fewest:,} to {most:,} variables": fewest <= d <= most,
        f"tables of {records:,.0f} records and more": n >= records,
        f"less noise, up to that of epsilon = {least:g} with {records:,.0f} records": n**2 * rho
        >= records**2 * GaussianFilter(Budget(least, DELTA_IN_TRAINING)).rho,
    }
    unlike = [limit for limit, holds in limits.items() if not holds]
    if not unlike:
        return ""
    return f"the edge model was trained on {unlike[0]}; its probabilities may be off here"
