"""A reader of released pairs, trained on simulated networks: which pairs are edges.

It reads a release twice: the second time it knows which edges the first reading found likely. Where
there are triples, it reads a third time.

An edge is no likelier than that two variables depend on each other at all. The reader was trained
on networks with edges; where nothing is to be found, or noise is all there is, this limit holds its
probabilities to what was seen.
"""

import json
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from typing import Any, Literal, NamedTuple

import networkx as nx
import numpy as np
from scipy.special import expit, logit

from dpcgd.datasets.arguments import data_folder, is_real
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.reading.pair_features import Columns, pair_features, second_features, third_features

__all__ = [
    "PRIOR",
    "Precision",
    "Trained",
    "Trees",
    "best_count",
    "check_precision",
    "dependence",
    "edge_probabilities",
    "first_reading",
    "holds_triples",
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


PRIOR = 0.09
"""Probability of an edge before anything is known, 2 e^-3 / (1 + 2 e^-3) as in a graph posterior
of two variables."""


PSEUDO_PAIRS = 1.1
"""Pairs that the prior is worth when the share of dependent pairs is estimated."""


EFFECTS = np.geomspace(0.01, 0.6, 8)
"""Deviations of a correlation where two variables depend on each other, all alike beforehand."""


LIKELY = 0.5
"""Edges of this probability are as likely as not."""


STEPS = 100
"""Of the estimate of that share; its error falls by a constant factor in each."""


COPIED = 0.9
"""Share of the variance of either, explained by the other, from which two variables are copies."""


LARGEST = 300.0
"""Log-likelihood ratios beyond are as good as certain; their exponential is a number."""


AT_ONCE = 4096
"""So many rows of as many trees are looked at together."""


class Trees(NamedTuple):
    """Boosted trees: log odds are a sum of what the trees say.

    Attributes
    ----------
    features : tuple of str
        Names of the columns that they read.
    target : str
        ``make`` trains them under this name.
    bias : float
    roots : array of int
        The first node of each tree.
    feature : array of int
        What a node looks at, as a number among the features; -1 at a leaf.
    threshold : array of float
        Rows at or below it go left.
    left, right : array of int
    value : array of float
        Of a leaf.
    """

    features: tuple[str, ...]
    target: str
    bias: float
    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    def log_odds(self, columns: Columns) -> np.ndarray:
        """For each row of the columns, shape (k,).

        Raises
        ------
        ValueError
            If a column is missing: they were trained on others than this package computes.
        """
        if missing := [name for name in self.features if name not in columns]:
            raise ValueError(
                f"the trees were trained on other features, such as {missing[0]!r}; train them "
                f"anew with: make {self.target}"
            )
        features = np.column_stack([columns[name] for name in self.features])
        rows = np.arange(len(features))
        log_odds = np.full((1, len(features)), self.bias)
        trees = 1 + AT_ONCE // (1 + len(rows))
        for roots in np.split(self.roots, range(trees, len(self.roots), trees)):
            node = np.broadcast_to(roots[:, None], (len(roots), len(rows)))
            while (inner := self.feature[node] >= 0).any():
                goes_left = features[rows, self.feature[node]] <= self.threshold[node]
                node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)
            log_odds = np.add.accumulate(np.vstack([log_odds, self.value[node]]))[-1:]
        return log_odds[0]

    def probabilities(self, columns: Columns) -> np.ndarray:
        """The same as probabilities."""
        return 1 / (1 + np.exp(-self.log_odds(columns)))


class Trained(NamedTuple):
    """Trees that were trained elsewhere, as plain numbers in a file, and on what.

    Attributes
    ----------
    trained : dict
        How many networks and releases, smallest and largest of what is public.
    trees : mapping of str to Trees
    """

    trained: dict[str, Any]
    trees: Mapping[str, Trees]


@cache
def trained_on(name: str) -> Trained:
    """What a file of the package's data holds.

    The trees of a reading need the names up to the last one that they look at: those of a second
    reading follow those of the first.
    """
    file = data_folder() / name
    kept = json.loads(file.read_text())
    features, trained = kept.pop("features"), kept.pop("trained")
    trees = {}
    for reading, parts in kept.items():
        needed = tuple(features[: max(parts["feature"]) + 1])
        arrays = (np.array(parts[part]) for part in Trees._fields[2:])
        trees[reading] = Trees._make([needed, file.stem, *arrays])
    return Trained(trained, trees)


def trained_reader() -> Trained:
    """The trees of the first and the second reading; ``make reader`` trains them.

    The second one goes by the features of the first, then its own.
    """
    return trained_on("reader.json")


def third_reader() -> Trained:
    """The trees of the third reading; ``make third_reader`` trains them."""
    return trained_on("third_reader.json")


def holds_triples(marginals: Marginals) -> bool:
    """Whether every triple has been released, and there is one.

    Examples
    --------
    >>> holds_triples(Marginals(10, (2, 2, 2)))
    False
    """
    triples = [*combinations(range(len(marginals.levels)), 3)]
    return bool(triples) and marginals.released.keys() >= set(triples)


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
    varying = sum(levels > 1 for levels in marginals.levels)
    if not (fewest <= varying <= most and holds_triples(marginals)):
        return likely
    pairs, features = third_features(_as_in_training(marginals), likely)
    return _square(len(likely), pairs, third_reader().trees["third"].probabilities(features))


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
    first, (pairs, features) = first_reading(marginals), pair_features(marginals)
    open_pairs, more = second_features(blocks_of(marginals), first)
    row_of = _square(d, pairs, np.arange(len(pairs)))
    rows = row_of[tuple(open_pairs.T)]
    both = {name: column[rows] for name, column in features.items()} | more
    second = _square(d, open_pairs, trained_reader().trees["second"].probabilities(both))
    return np.where(second > 0, second, first)


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
    first = _square(len(varying), pairs, trained_reader().trees["first"].probabilities(features))
    return first * np.outer(varying, varying)


def _square(d, pairs, values) -> np.ndarray:
    """Values of pairs, both ways round; 0 elsewhere."""
    x, y = pairs.T
    square = np.zeros((d, d), values.dtype)
    square[x, y] = square[y, x] = values
    return square


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
    named = precision is None or precision == LARGEST_F1
    if not (named or (is_real(precision) and 0 < precision <= 1)):  # type: ignore[operator]
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


def dependence(marginals: Marginals) -> np.ndarray:
    """Probability that two variables depend on each other, as far as their pair was released.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.

    Returns
    -------
    array of shape (d, d)
        Symmetric. The prior where the noise hides everything, near zero where the release shows
        that there is nothing, near one where it shows an association.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Empirical Bayes: the share of dependent pairs is the likeliest for this release, and at most the
    prior. Chapter 12.
    """
    ratios = _log_ratios(marginals)
    pairs = np.triu_indices(len(ratios), 1)
    share = PRIOR
    for _ in range(STEPS):
        likely = expit(logit(share) + ratios)
        share = (PRIOR * PSEUDO_PAIRS + likely[pairs].sum()) / (PSEUDO_PAIRS + len(pairs[0]))
    return expit(logit(min(share, PRIOR)) + ratios)


def _log_ratios(marginals) -> np.ndarray:
    """Log-likelihood of each pair if it is dependent, less that if it is not; symmetric.

    An effect is in all entries of the pair's block alike, or in one of them.
    """
    blocks = blocks_of(marginals)
    variance = blocks.variances + blocks.further
    entries = blocks.sums(np.ones_like(variance))
    total = np.full(entries.shape, -np.inf)
    for effect in EFFECTS:
        signal = effect**2 / (variance + effect**2)
        entry = (blocks.correlations**2 / variance * signal + np.log1p(-signal)) / 2
        together = blocks.sums(entry)
        alone = np.log(blocks.sums(np.exp(np.minimum(entry, LARGEST))) / entries)
        total = np.logaddexp.reduce([total, together, alone])
    upper = np.triu(total - np.log(2 * len(EFFECTS)), 1)
    return upper + upper.T  # the last digits of the blocks may differ


def copies_joined(marginals: Marginals, probabilities: np.ndarray) -> np.ndarray:
    """Probabilities that leave variables which are copies of each other connected.

    Given a third copy nothing is left of two others, so an edge model sees no reason for any of
    their edges. Yet a graph that explains copies connects them: the likeliest edges that do so get
    a probability of one half or more.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    probabilities : array of shape (d, d)

    Returns
    -------
    array of shape (d, d)

    Privacy
    -------
    Post-processing.

    Examples
    --------
    >>> from dpcgd.moments.interactions import Moment
    >>> means = {(v,): Moment(np.zeros(1), 0.0) for v in range(3)}
    >>> pairs = {pair: Moment(np.full((1, 1), 0.5), 0.0) for pair in ((0, 1), (0, 2), (1, 2))}
    >>> copies_joined(Marginals(1000, (2, 2, 2), means | pairs), np.full((3, 3), 0.2))
    array([[0.2, 0.5, 0.5],
           [0.5, 0.2, 0.2],
           [0.5, 0.2, 0.2]])
    """
    blocks = blocks_of(marginals)
    explained = blocks.sums(blocks.correlations**2 - blocks.variances)
    blurred = blocks.sums(blocks.variances + blocks.further)
    free = np.array(marginals.levels) - 1
    whole = np.maximum(np.maximum.outer(free, free), 1)
    alike = (explained >= COPIED * whole) & (blurred <= (1 - COPIED) * whole)
    alike &= probabilities > 0  # what knowledge rules out stays so
    graph = nx.from_numpy_array(np.where(np.triu(alike, 1), 1.0 + probabilities, 0.0))
    joined = probabilities.copy()
    for a, b in nx.maximum_spanning_tree(graph).edges:
        joined[a, b] = joined[b, a] = max(probabilities[a, b], LIKELY)
    return joined


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
    unlike = next((limit for limit, holds in limits.items() if not holds), None)
    reason = f"the edge model was trained on {unlike}; its probabilities may be off here"
    return reason if unlike else ""
