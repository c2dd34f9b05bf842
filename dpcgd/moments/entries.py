"""As many numbers a category as the budget carries: which ones, by its order and its first look.

A category of L levels is told by L - 1 contrasts. Each of them lengthens every record, and so adds
to the noise of all moments. Where that would hide everything, a category brings fewer: one for each
of its most common levels, or, if its levels stand in order, the normal score of their rank and its
square.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from dpcgd.datasets.variable import Parts
from dpcgd.moments.interactions import contrasts
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = ["ENTRIES", "Entries", "category_columns", "entries_carried", "most_entries", "scores_of"]

ENTRIES = 2
"""A number has so many, and an ordered category: the score, and the score squared."""

MOST_NOISE = 0.05
"""A correlation's noise deviates by some seven times the entries over n epsilon; there are as many
as keep a seventh of that, times the noise multiplier, below here. Chosen on random networks
(benchmarks/README.md)."""

MOST_ENTRIES = 1000
"""There are never more, for time grows with their third power."""

FARTHEST = 3.0
"""Scores are cut off here."""

SQUARE, SCORE = 0.25, 0.5**0.5
"""How much shorter the squared score is, and the score than a normal number: a contrast of two even
levels has a variance of one half."""


class Facts(Protocol):
    """What is public of a table: data, or a schema."""

    levels: Mapping[str, Sequence[str]]
    ordered: Collection[str]
    missing: Mapping[str, str]


class Entries(NamedTuple):
    """How a category is told by fewer numbers than it has contrasts.

    Attributes
    ----------
    width : int
        How many numbers.
    ordered : bool
        Whether they are the score and its square; otherwise each stands for a common level.
    apart : int or None
        Of an ordered category, the level of missing values, which has a number of its own.
    """

    width: int
    ordered: bool = False
    apart: int | None = None


def entries_carried(facts: Any, n: int, rho: float) -> dict[int, Entries]:
    """The entries of each category that has fewer than all its contrasts, by public facts.

    Parameters
    ----------
    facts : Counts or Schema
        With levels, order and levels of missing values.
    n : int
        Records.
    rho : float
        What all moments may cost.

    Returns
    -------
    dict
        From the number of a variable.

    Examples
    --------
    >>> from dpcgd.datasets.schema import Schema
    >>> towns = {"levels": [f"town {i}" for i in range(12)]}
    >>> ages = {"levels": ["young", "grown", "old", "very old"], "ordered": True}
    >>> schema = Schema({"a": towns, "b": towns, "age": ages})
    >>> [entries_carried(schema, n, 0.02)[0].width for n in (1000, 2000)]
    [1, 6]
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
    """Entries of all variables together that so many records carry."""
    return min(MOST_ENTRIES, MOST_NOISE * n / multiplier_of_rho(rho))


def scores_of(shares: np.ndarray) -> np.ndarray:
    """The normal score of each place in an order, from the shares of the records.

    Examples
    --------
    >>> scores_of(np.full(4, 0.25)).round(2)
    array([-1.15, -0.32,  0.32,  1.15])
    """
    middle = np.clip(np.cumsum(shares) - shares / 2, 1e-12, 1 - 1e-12)
    return np.clip(ndtri(middle), -FARTHEST, FARTHEST)


def category_columns(shares: np.ndarray, entries: Entries | None) -> np.ndarray:
    """Numbers that tell the levels of a category, before they are centred and scaled.

    Parameters
    ----------
    shares : array
        Of the records in each level, as a first look has them.
    entries : Entries or None
        None takes all contrasts.

    Returns
    -------
    array of shape (levels, entries)

    Privacy
    -------
    Post-processing.
    """
    if entries is None:
        return contrasts(len(shares))
    columns = np.zeros((len(shares), entries.width))
    if not entries.ordered:
        common = np.argsort(-shares, kind="stable")[: entries.width]
        columns[common, np.arange(entries.width)] = 1.0
        return columns
    known = np.arange(len(shares)) != entries.apart
    score = SCORE * scores_of(shares[known] / shares[known].sum())
    columns[known, 0] = score
    if entries.width - (entries.apart is not None) == ENTRIES:
        columns[known, 1] = SQUARE * uncorrelated_square(score, shares[known])
    if entries.apart is not None:
        columns[entries.apart, -1] = 1.0
    return columns


def uncorrelated_square(score: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The square of a score without what a line through the score explains."""
    weights = shares / shares.sum()
    score = score - weights @ score
    square = score**2 - weights @ score**2
    return square - score * (weights @ (square * score)) / max(weights @ score**2, 1e-6)
