"""Numbers as vectors: a noisy look at their histograms, and the normal scores that follow.

A number is kept as one of many equal parts of its public range. Counts of halves, quarters and so
on say where its records are, however wide the range is; from there the entries of a number are
those of its rank, whatever its unit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.interactions import Marginals, Measurement, Moment, contrasts
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = [
    "Histogram",
    "Singles",
    "depth_of_look",
    "dyadic_counts",
    "look_sensitivity",
    "measure_singles",
    "number_vectors",
    "shares_of_parts",
]

SHALLOWEST, DEEPEST = 8, 12
"""Halvings of a number's range that a look counts, by how much noise there is."""

CLEAR = 2.0
"""A node is split by its counts if it holds so many deviations of noise; else evenly."""

FARTHEST = 3.0
"""Scores are cut off here."""

LENGTH, SECOND = 0.84, 0.5
"""Deviation of a number's score in its vector, as of an even category of two levels. The entry that
sees shapes which are not monotone is shorter by the second factor, for its noise is everyone's."""


def look_sensitivity(categories: int, numbers: int, depth: int) -> float:
    """Replace-one L2 sensitivity of the counts of all levels, and of all nodes of numbers.

    Notes
    -----
    A record leaves one level of a category and enters another; of a number it leaves one node at
    each depth and enters another. Chapter 16, :prf:ref:`thm-look-at-numbers`.

    Examples
    --------
    >>> look_sensitivity(2, 1, 6)
    4.0
    """
    return math.sqrt(2 * categories + 2 * depth * numbers)


def depth_of_look(n: int, categories: int, numbers: int, multiplier: float) -> int:
    """Halvings that are worth their noise, by public facts.

    Parameters
    ----------
    n : int
        Records.
    categories, numbers : int
        Variables of either kind.
    multiplier : float
        Deviation of the noise over the sensitivity.

    Examples
    --------
    >>> [depth_of_look(n, 0, 46, 18.0) for n in (10**4, 10**5, 10**7)]
    [8, 11, 12]
    """
    deviation = multiplier * look_sensitivity(categories, numbers, DEEPEST)
    return min(DEEPEST, max(SHALLOWEST, math.floor(math.log2(n / deviation)) + 4))


def dyadic_counts(parts: np.ndarray, depth: int) -> np.ndarray:
    """Counts of the halves, quarters and so on of a range, one depth after the other.

    Parameters
    ----------
    parts : array of shape (2^k,)
        Counts of the smallest parts.
    depth : int
        At most k.

    Examples
    --------
    >>> dyadic_counts(np.array([1, 0, 2, 3]), 2)
    array([1, 5, 1, 0, 2, 3])
    """
    return np.concatenate([parts.reshape(2**level, -1).sum(1) for level in range(1, depth + 1)])


def shares_of_parts(noisy: np.ndarray, n: int, deviation: float, depth: int) -> np.ndarray:
    """Shares of the records in the smallest nodes, which agree with all depths from the top down.

    Parameters
    ----------
    noisy : array
        Of :func:`dyadic_counts`, with noise.
    n : int
        Records.
    deviation : float
        Of the noise of each count.
    depth : int

    Returns
    -------
    array of shape (2^depth,)
        Not negative; they sum to one.

    Privacy
    -------
    Post-processing.

    Examples
    --------
    >>> shares_of_parts(np.array([1.0, 5.0, 1.0, 0.0, 2.0, 3.0]), 6, 0.0, 2).round(3)
    array([0.167, 0.   , 0.333, 0.5  ])
    """
    shares = np.ones(1)
    for level in range(1, depth + 1):
        first = 2**level - 2
        left, right = noisy[first : first + 2**level].reshape(-1, 2).T / n
        clear = shares * n > CLEAR * deviation
        half = np.where(clear, np.clip((shares + left - right) / 2, 0, shares), shares / 2)
        shares = np.column_stack([half, shares - half]).ravel()
    return shares


def number_vectors(shares: np.ndarray, parts: int) -> np.ndarray:
    """The vector of each part of a number's range: its normal score, and that score squared.

    Parameters
    ----------
    shares : array
        Of :func:`shares_of_parts`: of 2^depth nodes.
    parts : int
        A multiple of so many.

    Returns
    -------
    array of shape (parts, 2)
        Of mean zero under these shares.

    Privacy
    -------
    Post-processing.
    """
    each = np.repeat(shares, parts // len(shares)) * len(shares) / parts
    middle = np.clip(np.cumsum(each) - each / 2, 1e-12, 1 - 1e-12)
    score = np.clip(ndtri(middle), -FARTHEST, FARTHEST)
    entries = np.column_stack([score, score**2])
    entries -= each @ entries
    entries[:, 1] -= entries[:, 0] * (each @ entries.prod(axis=1)) / (each @ entries[:, 0] ** 2)
    return entries / np.sqrt(each @ entries**2) * (LENGTH, LENGTH * SECOND)


@dataclass(frozen=True, eq=False)
class Histogram:
    """What was released of one number: counts of the nodes of its range, and how noisy they are.

    Attributes
    ----------
    counts : array
        Of :func:`dyadic_counts`, then of records where it is missing, if that has a level.
    deviation : float
        Of the noise of each count.
    n : int
    """

    counts: np.ndarray
    deviation: float
    n: int

    @property
    def depth(self) -> int:
        """Halvings of the range."""
        return (len(self.counts) + 2).bit_length() - 2

    @cached_property
    def shares(self) -> np.ndarray:
        """Of the records in each part of the range, and of those where it is missing."""
        nodes = 2 ** (self.depth + 1) - 2
        least = max(1.0, self.deviation) / self.n
        missing = np.clip(self.counts[nodes:] / self.n, least, 0.5)
        shares = shares_of_parts(self.counts[:nodes], self.n, self.deviation, self.depth)
        parts = np.repeat(shares, PARTS >> self.depth) * 2**self.depth / PARTS
        return np.concatenate([parts * (1 - missing.sum()), missing])

    @cached_property
    def vectors(self) -> np.ndarray:
        """A vector for each part; a missing value has mean scores and an entry of its own."""
        vectors = number_vectors(self.shares[:PARTS] / self.shares[:PARTS].sum(), PARTS)
        if len(self.shares) == PARTS:
            return vectors
        share = self.shares[-1]
        apart = np.append(np.full(PARTS, -share), 1 - share) / (share * (1 - share)) ** 0.25
        return np.column_stack([np.vstack([vectors, np.zeros(2)]), apart])


class Singles(Marginals):
    """Single variables: categories by their levels, numbers by histograms of their ranges.

    Parameters
    ----------
    n, levels, released
        As for :class:`~dpcgd.moments.interactions.Marginals`. A number with k entries stands as a
        variable of k + 1 levels that are alike.
    numbers : mapping of int to Histogram
    """

    def __init__(self, n: int, levels, released, numbers: Mapping[int, Histogram] | None = None):
        super().__init__(n, levels, released)
        self.numbers = dict(numbers or {})

    def shares(self, v: int) -> np.ndarray:
        """Of the records in each level of a category, or each part of a number's range."""
        return self.numbers[v].shares if v in self.numbers else self.table(v)


def measure_singles(data: Any, measure: Measurement, rho: float) -> Singles:
    """Release every single variable, categories and numbers, with one noise.

    Privacy
    -------
    rho-zCDP for replace-one neighbours: one Gaussian release. Chapter 16,
    :prf:ref:`thm-look-at-numbers`.
    """
    ranges = [isinstance(levels, Parts) for levels in data.levels.values()]
    numbers = sum(ranges)
    depth = depth_of_look(data.n, len(ranges) - numbers, numbers, multiplier_of_rho(rho))

    def counted() -> list[np.ndarray]:
        tables = (data.counts([v]) for v in range(len(ranges)))
        return [
            np.concatenate([dyadic_counts(table[:PARTS], depth), table[PARTS:]])
            if is_number
            else table
            for table, is_number in zip(tables, ranges, strict=True)
        ]

    sizes = [
        2 ** (depth + 1) - 2 + size - PARTS if is_number else size
        for size, is_number in zip(data.cardinalities, ranges, strict=True)
    ]
    noisy, deviation = measure(
        lambda: np.concatenate(counted()).astype(float),
        sensitivity=look_sensitivity(len(ranges) - numbers, numbers, depth),
        rho=rho,
    )
    levels, released, histograms = [], {}, {}
    for v, counts in enumerate(np.split(noisy, np.cumsum(sizes)[:-1])):
        if ranges[v]:
            levels.append(3 + data.cardinalities[v] - PARTS)
            moment = np.zeros(levels[v] - 1)
            histograms[v] = Histogram(counts, deviation, data.n)
        else:
            levels.append(len(counts))
            moment = contrasts(len(counts)).T @ counts / data.n
        released[(v,)] = Moment(moment, deviation / data.n)
    return Singles(data.n, levels, released, histograms)
