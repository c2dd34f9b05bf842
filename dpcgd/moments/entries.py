"""The number of entries of a category, and their values: by budget, order and shares of levels.

A category of L levels has L - 1 contrasts. Each contrast lengthens every record, and so adds to the
noise of all moments. If this noise would hide everything, a category gets fewer entries: the normal
score of the rank of a level, as levels are listed, and then one for each of its most common levels,
or, if it is ordered, the squared score.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpcgd.datasets.variable import Parts
from dpcgd.moments.interactions import contrasts
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = ["ENTRIES", "Entries", "category_columns", "entries_carried", "most_entries", "scores_of"]

ENTRIES = 2
"""Number of entries of a number or an ordered category: the score, and the score squared."""

MOST_NOISE = 0.05
"""Bound on the number of all entries times the noise multiplier, over n. The noise of a correlation
has a deviation of some seven times the entries over n epsilon. Chosen on random networks
(benchmarks/README.md)."""

MOST_ENTRIES = 1000
"""The largest number of entries of all variables, because time grows with its third power."""

FARTHEST = 3.0
"""Normal scores are cut off at this size."""

SQUARE, SCORE = 0.25, 0.5**0.5
"""Factors on the squared normal score of a category, and on the score: a contrast of two even
levels has a variance of one half."""


class Entries(NamedTuple):
    """The entries of a category that has fewer entries than contrasts.

    Attributes
    ----------
    width : int
        Number of entries.
    ordered : bool
        Whether the entries are the score and its square; otherwise they are the score and the most
        common levels.
    apart : int or None
        The level of missing values of an ordered category; it has an entry of its own.
    """

    width: int
    ordered: bool = False
    apart: int | None = None


def entries_carried(facts: Any, n: int, rho: float) -> dict[int, Entries]:
    """The entries of each category that has fewer entries than contrasts, by public facts.

    Parameters
    ----------
    facts : Counts or Schema
        Facts with levels, order and levels of missing values.
    n : int
        Number of records.
    rho : float
        Cost of all moments.

    Returns
    -------
    dict
        Map from the number of a variable to its entries.

    Examples
    --------
    >>> from dpcgd.datasets.schema import Schema
    >>> towns = {"levels": [f"town {i}" for i in range(12)]}
    >>> ages = {"levels": ["young", "grown", "old", "very old"], "ordered": True}
    >>> schema = Schema({"a": towns, "b": towns, "age": ages})
    >>> [entries_carried(schema, n, 0.02)[0].width for n in (1000, 2000)]
    [3, 8]
    >>> entries_carried(schema, 100_000, 0.02)
    {2: Entries(width=2, ordered=True, apart=None)}
    """
    kinds: dict[int, Entries] = {}
    whole, used = {}, 0
    for v, (name, levels) in enumerate(facts.levels.items()):
        missing = facts.missing.get(name)
        if isinstance(levels, Parts):
            used += ENTRIES + (levels.missing is not None)
            continue
        whole[v] = len(levels) - 1
        if name in facts.ordered:
            apart = None if missing is None else levels.index(missing)
            count = min(whole[v], ENTRIES + (apart is not None))
            kinds[v], used = Entries(count, True, apart), used + count
    open_ones = [size for v, size in whole.items() if v not in kinds]
    room = most_entries(n, rho) - used
    counts = range(max(open_ones, default=1), 1, -1)
    most = next((k for k in counts if sum(min(size, k) for size in open_ones) <= room), 1)
    kinds |= {v: Entries(min(size, most)) for v, size in whole.items() if v not in kinds}
    return {v: kinds[v] for v in sorted(kinds) if kinds[v].width < whole[v]}


def most_entries(n: int, rho: float) -> float:
    """The largest number of entries of all variables together, for so many records and rho."""
    return min(MOST_ENTRIES, MOST_NOISE * n / multiplier_of_rho(rho))


def scores_of(shares: np.ndarray) -> np.ndarray:
    """The normal scores of ordered levels or parts, from their shares of records.

    Examples
    --------
    >>> scores_of(np.full(4, 0.25)).round(2)
    array([-1.15, -0.32,  0.32,  1.15])
    """
    middle = np.clip(np.cumsum(shares) - shares / 2, 1e-12, 1 - 1e-12)
    return np.clip(ndtri(middle), -FARTHEST, FARTHEST)


def category_columns(shares: np.ndarray, entries: Entries | None) -> np.ndarray:
    """The entries of the levels of a category, before they are centred and scaled.

    Parameters
    ----------
    shares : array
        Share of the records in each level, from the first measurement.
    entries : Entries or None
        None stands for all contrasts.

    Returns
    -------
    array of shape (levels, entries)

    Privacy
    -------
    Post-processing.
    """
    if entries is None:
        return contrasts(len(shares))
    known = np.arange(len(shares)) != entries.apart
    columns = np.zeros((len(shares), entries.width))
    score = SCORE * scores_of(shares[known] / shares[known].sum())
    columns[known, 0] = score
    if not entries.ordered:
        common = np.argsort(-shares, kind="stable")[: entries.width - 1]
        columns[common, np.arange(1, entries.width)] = 1.0
        return columns
    if entries.width - (entries.apart is not None) == ENTRIES:
        columns[known, 1] = SQUARE * uncorrelated_square(score, shares[known])
    if entries.apart is not None:
        columns[entries.apart, -1] = 1.0
    return columns


def uncorrelated_square(score: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The square of a score minus its linear regression on the score."""
    weights = shares / shares.sum()
    score = score - weights @ score
    square = score**2 - weights @ score**2
    return square - score * (weights @ (square * score)) / max(weights @ score**2, 1e-6)
