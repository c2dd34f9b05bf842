"""The released moments of all pairs as one matrix of correlations, with the noise of each entry.

Each variable's contrasts are turned and scaled so that their covariance is the identity; what is
left of two variables is a block of correlations, and the variance of each entry is known.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcgd.moments.clipped_moments import ClippedMoments, lengthening
from dpcgd.moments.interactions import Marginals, least_variance

__all__ = ["Blocks", "blocks_of", "further_variance", "rows_of"]

LARGEST = 1e6
"""Larger correlations, covariances and deviations are nothing but noise, and are cut off here."""

SHORTENED = 0.003
"""Shortening long records gives independent variables a correlation of this size at most, nearly:
that of skewed variables at a million records, where it was measured."""


class Blocks(NamedTuple):
    """Correlations of all scaled contrasts, (D, D), and the variance that noise gives each entry.

    A variable's block with itself is the identity. ``covariances`` and the ``deviations`` of their
    noise are those of the contrasts as they were released. ``further`` is variance that the edge
    model leaves out of ``noise``: see :func:`further_variance`. ``starts`` says where each
    variable's rows begin.
    """

    correlations: np.ndarray
    noise: np.ndarray
    covariances: np.ndarray
    deviations: np.ndarray
    further: np.ndarray
    n: int
    starts: np.ndarray

    @property
    def variances(self) -> np.ndarray:
        """Of each entry, from noise and from sampling independent variables."""
        return self.noise + 1 / self.n

    def sums(self, entries: np.ndarray) -> np.ndarray:
        """Sums over the blocks: from (D, D) to (d, d)."""
        return np.add.reduceat(np.add.reduceat(entries, self.starts, 0), self.starts, 1)


def rows_of(levels) -> tuple[np.ndarray, list[slice]]:
    """How many rows each variable has, and where.

    A variable of one level has no contrasts; a constant stands in for it.
    """
    widths = np.maximum(1, np.array(levels, int) - 1)
    ends = np.cumsum(widths)
    return widths, [slice(end - w, end) for end, w in zip(ends, widths, strict=True)]


def blocks_of(marginals: Marginals) -> Blocks:
    """The released moments as correlations, worked out once.

    Raises
    ------
    KeyError
        If a pair has not been released.
    """
    if isinstance(marginals, ClippedMoments):
        return marginals.worked_out(("blocks",), partial(_turned, marginals))
    return marginals.worked_out(("blocks",), partial(_gathered, marginals))


def _gathered(marginals: Marginals) -> Blocks:
    """The moments of pairs as correlations: each variable turned and scaled by its own levels."""
    widths, at = rows_of(marginals.levels)
    size = sum(widths)
    scale, products, spread = np.zeros((3, size, size))
    means, errors, above = np.zeros(size), np.zeros(size), np.zeros((size, size), bool)
    varying = [v for v, levels in enumerate(marginals.levels) if levels > 1]
    for v in varying:
        means[at[v]], errors[at[v]] = marginals.moment(v)
        scale[at[v], at[v]] = marginals.uncorrelated(v, marginals.least_variance(v)).T
    for x, y in combinations(varying, 2):
        block = at[x], at[y]
        (products[block], spread[block]), above[block] = marginals.moment(x, y), True
    covariances = np.where(above, products - np.outer(means, means), 0.0)
    wide = (scale**2).sum(axis=1)
    parts = (scale @ covariances @ scale.T, spread**2 * np.outer(wide, wide), covariances, spread)
    both = [np.clip(entries + entries.T, -LARGEST, LARGEST) for entries in parts]
    for v, rows in enumerate(at):
        both[0][rows, rows] = np.eye(widths[v])
        both[2][rows, rows] = marginals.variance(v) if v in varying else 1.0
    further = further_variance(wide, errors, scale @ means, marginals.n)
    starts = np.array([rows.start for rows in at])
    return Blocks._make([*both, further, marginals.n, starts])


def further_variance(wide: np.ndarray, errors: np.ndarray, means: np.ndarray, n: int) -> np.ndarray:
    """Variance of correlations from the noise of means, and from single records where few tell.

    Parameters
    ----------
    wide : array of shape (D,)
        Squared length of each scaled contrast, in contrasts as they were released.
    errors : array of shape (D,)
        Deviation of the noise of each contrast's mean.
    means : array of shape (D,)
        Of the scaled contrasts, where they were not centred before products were taken.
    n : int
        Records.

    Returns
    -------
    array of shape (D, D)

    Notes
    -----
    A product of means with errors e and f is off by e m + f l + e f. The correlation of two rare
    levels is a Poisson count over the root of its mean, far from normal where that is below one;
    with the variance of one record more it is no larger than a normal number.
    """
    off = errors**2 * wide
    one_sided = np.outer(off, means**2)
    total = one_sided + one_sided.T + np.outer(off, off) + np.outer(wide, wide) / n**2
    return np.minimum(total, LARGEST)


def _turned(clipped: ClippedMoments) -> Blocks:
    """The moments as correlations: each variable turned and scaled by its own block.

    Vectors are centred at noisy means, so moments hold products of these errors. The largest
    directions of a block lean towards them: their errors are taken for wider than others are.
    """
    widths, at = rows_of(clipped.levels)
    size = len(clipped.moments)
    scale, own = np.zeros((size, size)), np.zeros((size, size), bool)
    lengths, errors = np.zeros(size), np.zeros(size)
    for v, rows in enumerate(at):
        own[rows, rows] = True
        if clipped.levels[v] > 1:
            floor = least_variance(clipped.deviation, clipped.n)
            values, turned = np.linalg.eigh(clipped.moments[rows, rows])
            scale[rows, rows] = (turned / np.sqrt(np.maximum(values, floor))).T
            lengths[rows] = ((scale[rows, rows] @ lengthening(clipped, v)) ** 2).sum(axis=1)
            errors[rows] = clipped.moment(v).deviation * widths[v] ** 0.25
    varying = np.repeat(np.array(clipped.levels) > 1, widths)
    free = np.outer(varying, varying) & ~own
    wide = (scale**2).sum(axis=1)
    spread = np.where(free, clipped.deviation, 0.0)
    parts = (
        np.where(own, np.eye(size), scale @ clipped.moments @ scale.T),
        spread**2 * np.outer(wide, wide),
        np.where(varying, clipped.moments, np.eye(size)),
        spread,
        SHORTENED**2 + further_variance(lengths, errors, np.zeros(size), clipped.n),
    )
    limited = (np.clip(part, -LARGEST, LARGEST) for part in parts)
    return Blocks._make([*limited, clipped.n, np.array([rows.start for rows in at])])
