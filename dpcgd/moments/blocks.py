"""The released moments of all pairs as one matrix of correlations, with the noise of each entry.

Each variable's contrasts are turned and scaled so that their covariance is the identity; what is
left of two variables is a block of correlations, and the variance of each entry is known.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcgd.moments.clipped_moments import ClippedMoments, lengthening
from dpcgd.moments.interactions import Marginals

__all__ = ["Blocks", "blocks_from", "blocks_of", "further_variance", "rows_of"]

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
    def arrays(self) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
        """What compiled loops take; a variable's rows end where the next one's begin."""
        starts = np.append(self.starts, len(self.correlations))
        return self.correlations, self.noise, self.n, starts

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


def _gathered(marginals) -> Blocks:
    d, (widths, at) = len(marginals.levels), rows_of(marginals.levels)
    products, deviations = np.zeros((sum(widths),) * 2), np.zeros((d, d))
    for x, y in combinations(range(d), 2):
        if marginals.levels[x] > 1 and marginals.levels[y] > 1:
            pair = marginals.moment(x, y)
            products[at[x], at[y]], deviations[x, y] = pair.values, pair.deviation
    return blocks_from(marginals, products, deviations)


def blocks_from(singles: Marginals, products: np.ndarray, deviations: np.ndarray) -> Blocks:
    """Blocks of moments that are at hand as a matrix.

    Parameters
    ----------
    singles : Marginals
        With all single variables released.
    products : array of shape (D, D)
        Mean products of contrasts of two variables, above the diagonal blocks.
    deviations : array of shape (d, d)
        Of the noise of each pair's entries, above the diagonal.
    """
    levels = singles.levels
    widths, at = rows_of(levels)
    varying = np.repeat(np.array(levels) > 1, widths)
    means, scale = np.zeros(len(products)), np.zeros(products.shape)
    errors = np.zeros(len(products))
    for v, of in enumerate(at):
        if levels[v] > 1:
            means[of], scale[of, of] = singles.moment(v).values, _scale(singles, v)
            errors[of] = singles.moment(v).deviation
    above = np.triu(np.ones((len(levels),) * 2, bool), 1).repeat(widths, 0).repeat(widths, 1)
    above &= np.outer(varying, varying)
    covariances = np.where(above, products - np.outer(means, means), 0.0)
    spread = np.where(above, deviations.repeat(widths, 0).repeat(widths, 1), 0.0)
    wide = (scale**2).sum(axis=1)
    parts = (scale @ covariances @ scale.T, spread**2 * np.outer(wide, wide), covariances, spread)
    both = [np.clip(entries + entries.T, -LARGEST, LARGEST) for entries in parts]
    both.append(further_variance(wide, errors, scale @ means, singles.n))
    for v, of in enumerate(at):
        both[0][of, of] = np.eye(widths[v])
        both[2][of, of] = singles.variance(v) if levels[v] > 1 else 1.0
    names = ("correlations", "noise", "covariances", "deviations", "further")
    starts = np.array([of.start for of in at])
    return Blocks(**dict(zip(names, both, strict=True)), n=singles.n, starts=starts)


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


def _scale(marginals, v) -> np.ndarray:
    """Turns a variable's contrasts into uncorrelated ones of variance one, one a row."""
    floor = max(3 * marginals.moment(v).deviation, 1 / marginals.n)
    return marginals.uncorrelated(v, floor).T


def _turned(clipped: ClippedMoments) -> Blocks:
    """The moments as correlations: each variable turned and scaled by its own block.

    Vectors are centred at noisy means, so moments hold products of these errors. The largest
    directions of a block lean towards them: their errors are taken for wider than others are.
    """
    widths, at = rows_of(clipped.levels)
    size = len(clipped.moments)
    scale, own = np.zeros((size, size)), np.zeros((size, size), bool)
    lengths, errors = np.zeros(size), np.zeros(size)
    for v, of in enumerate(at):
        own[of, of] = True
        if clipped.levels[v] > 1:
            floor = max(3 * clipped.deviation, 1 / clipped.n)
            values, turned = np.linalg.eigh(clipped.moments[of, of])
            scale[of, of] = (turned / np.sqrt(np.maximum(values, floor))).T
            lengths[of] = ((scale[of, of] @ lengthening(clipped, v)) ** 2).sum(axis=1)
            errors[of] = clipped.moment(v).deviation * widths[v] ** 0.25
    varying = np.repeat(np.array(clipped.levels) > 1, widths)
    free = np.outer(varying, varying) & ~own
    wide = (scale**2).sum(axis=1)
    spread = np.where(free, clipped.deviation, 0.0)
    parts = {
        "correlations": np.where(own, np.eye(size), scale @ clipped.moments @ scale.T),
        "noise": spread**2 * np.outer(wide, wide),
        "covariances": np.where(varying, clipped.moments, np.eye(size)),
        "deviations": spread,
        "further": SHORTENED**2 + further_variance(lengths, errors, np.zeros(size), clipped.n),
    }
    limited = {name: np.clip(part, -LARGEST, LARGEST) for name, part in parts.items()}
    return Blocks(**limited, n=clipped.n, starts=np.array([of.start for of in at]))
