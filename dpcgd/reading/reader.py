"""An edge model, trained on simulated networks: probabilities of edges from released pairs.

It reads a release twice: the second reading uses the edge probabilities of the first.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import networkx as nx
import numpy as np

from dpcgd.datasets.arguments import data_folder, is_real
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.reading.pair_features import Columns, least_noise, pair_features, second_features

__all__ = ["Precision", "Trained", "Trees", "best_count", "check_precision", "copies_joined"]
__all__ += ["edge_probabilities", "first_reading", "most_likely_edges", "trained_reader"]
__all__ += ["unlike_training"]


LARGEST_F1 = "f1"
"""Name of the rule that draws the edges of largest expected F1. Chapter 17's table uses it."""


DELTA_IN_TRAINING = 1e-6
"""The delta at which the smallest epsilon of the training was converted."""


Precision = float | Literal["f1"] | None
"""The rule by which :func:`most_likely_edges` chooses edges."""


LIKELY = 0.5
"""The least probability of an edge that is drawn by default."""


COPIED = 0.9
"""Two variables are copies if either explains so much of the variance of the other."""


AT_ONCE = 4096
"""About so many pairs of a row and a tree are evaluated together."""


class Trees(NamedTuple):
    """Boosted trees: log odds are a sum of the values of their leaves.

    The nodes of a tree are stored one after another: an inner node, then the nodes of its left
    side, then those of its right side.

    Attributes
    ----------
    features : tuple of str
        Names of the columns that the trees read.
    bias : float
    roots : array of int
        The first node of each tree.
    feature : array of int
        The feature that a node compares, by number; -1 at a leaf.
    number : array of float
        Threshold of an inner node: rows at or below it go left. Value of a leaf.
    right : array of int
        Distance from an inner node to its right child; its left child is the next node.
    """

    features: tuple[str, ...]
    bias: float
    roots: np.ndarray
    feature: np.ndarray
    number: np.ndarray
    right: np.ndarray

    def log_odds(self, columns: Columns) -> np.ndarray:
        """Log odds of each row of the columns, shape (k,).

        Raises
        ------
        ValueError
            If a column is missing, because the trees were trained on other features.
        """
        if missing := [name for name in self.features if name not in columns]:
            problem = f"the trees were trained on other features, such as {missing[0]!r}"
            raise ValueError(f"{problem}; train them anew with: make models")
        features = np.column_stack([columns[name] for name in self.features])
        rows = np.arange(len(features))
        log_odds = np.full((1, len(features)), self.bias)
        trees = 1 + AT_ONCE // (1 + len(rows))
        for roots in np.split(self.roots, range(trees, len(self.roots), trees)):
            node = np.broadcast_to(roots[:, None], (len(roots), len(rows)))
            while (inner := self.feature[node] >= 0).any():
                goes_left = features[rows, self.feature[node]] <= self.number[node]
                node = node + np.where(goes_left, 1, self.right[node]) * inner
            log_odds = np.add.accumulate(np.vstack([log_odds, self.number[node]]))[-1:]
        return log_odds[0]

    def probabilities(self, columns: Columns) -> np.ndarray:
        """Probabilities of each row of the columns, shape (k,)."""
        return 1 / (1 + np.exp(-self.log_odds(columns)))


class Trained(NamedTuple):
    """Trained trees from a file, and facts about their training.

    Attributes
    ----------
    trained : dict
        Numbers of networks and releases, smallest and largest values of public facts.
    trees : mapping of str to Trees
    """

    trained: dict[str, Any]
    trees: Mapping[str, Trees]


@cache
def trained_on(name: str) -> Trained:
    """The trained trees in a file of the package's data.

    The trees of a reading need the features up to the last one that they use. Features of a second
    reading follow those of the first.
    """
    kept = json.loads((data_folder() / name).read_text())
    features, trained = kept.pop("features"), kept.pop("trained")
    trees = {}
    for reading, parts in kept.items():
        needed = tuple(features[: max(parts["feature"]) + 1])
        arrays = (np.array(parts[part]) for part in Trees._fields[1:])
        trees[reading] = Trees._make([needed, *arrays])
    return Trained(trained, trees)


def trained_reader() -> Trained:
    """The trees of the first and the second reading; ``make models`` trains them.

    The second reading uses the features of the first, and further ones.
    """
    return trained_on("reader.json")


def edge_probabilities(marginals: Marginals) -> np.ndarray:
    """Probability of an edge between any two variables, after two readings.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.

    Returns
    -------
    array of shape (d, d)
        Symmetric.

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
    rows = _square(d, pairs, np.arange(len(pairs)))[tuple(open_pairs.T)]
    both = {name: column[rows] for name, column in features.items()} | more
    second = _square(d, open_pairs, trained_reader().trees["second"].probabilities(both))
    return copies_joined(marginals, np.where(second > 0, second, first))


def copies_joined(marginals: Marginals, probabilities: np.ndarray) -> np.ndarray:
    """Probabilities under which variables that are copies of each other are connected.

    Any of the edges between several copies may be missing, so none of them is likely. Yet a graph
    that explains copies connects them: the likeliest edges that do get a probability of one half.

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
    whole = np.maximum.outer(*[np.maximum(marginals.widths, 1)] * 2)
    alike = (explained >= COPIED * whole) & (least_noise(blocks) <= 1 - COPIED)
    graph = nx.from_numpy_array(np.where(np.triu(alike, 1), 1.0 + probabilities, 0.0))
    joined = probabilities.copy()
    for a, b in nx.maximum_spanning_tree(graph).edges:
        joined[a, b] = joined[b, a] = max(probabilities[a, b], LIKELY)
    return joined


def _as_in_training(marginals) -> Marginals:
    """The same moments, treated as moments of no more records than the training had.

    A dependence so weak that only more records would show it is no edge to the model.
    """
    most = int(trained_reader().trained["records"][1])
    if marginals.n <= most:
        return marginals
    return marginals.worked_out(("as of", most), lambda: marginals.as_of(most))


def first_reading(marginals: Marginals) -> np.ndarray:
    """Probability of an edge between any two variables, after the first reading alone.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs of two variables or more released.

    Returns
    -------
    array of shape (d, d)
        It is 0 for a variable of one level, because the training had none.

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
    """A symmetric array of the values of pairs; 0 for other pairs."""
    x, y = pairs.T
    square = np.zeros((d, d), values.dtype)
    square[x, y] = square[y, x] = values
    return square


def best_count(falling: np.ndarray) -> int:
    """The number of most probable pairs that has the largest expected F1.

    Examples
    --------
    >>> best_count(np.array([0.9, 0.5, 0.1]))
    2
    """
    right, taken = np.cumsum(falling), np.arange(1, len(falling) + 1)
    return int(np.argmax(2 * right / (taken + right[-1]))) + 1


def check_precision(precision: Precision) -> None:
    """Refuse a precision that is no rule for choosing edges.

    Raises
    ------
    ValueError
        If it is none; the message says which values are allowed.
    """
    named = precision is None or precision == LARGEST_F1
    if not (named or (is_real(precision) and 0 < precision <= 1)):  # type: ignore[operator]
        rule = f"above 0 and at most 1, or {LARGEST_F1!r}"
        raise ValueError(f"precision must be {rule}, not {precision!r}")


def most_likely_edges(probabilities: np.ndarray, precision: Precision = None) -> np.ndarray:
    """The pairs that are at least as likely joined as not, or those of another rule.

    Parameters
    ----------
    probabilities : array of shape (d, d)
    precision : float or "f1", optional
        A number asks for the largest set of edges of which that share is expected to be right;
        "f1" asks for the set of largest expected F1, which is never empty.

    Returns
    -------
    boolean array of shape (d, d)

    Notes
    -----
    The pairs with a probability of one half or more have the fewest expected errors. Let p be the
    probabilities in falling order and S their sum. Then the k most likely pairs have an expected F1
    of about 2 (p_1 + ... + p_k) / (k + S), and their mean p is the expected precision.

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
    return (probabilities >= (falling[count - 1] if count else np.inf)) & (probabilities > 0)


def unlike_training(d: int, n: int, rho: float) -> str:
    """A reason why probabilities may be off for a table, by its public facts, or an empty text.

    Parameters
    ----------
    d, n : int
        Numbers of variables and records.
    rho : float
        Cost of the release.

    Examples
    --------
    >>> unlike_training(5, 20, 0.02)
    'the edge model was trained on tables of 30 records and more; its ... may be off here'
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
