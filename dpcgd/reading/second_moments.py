"""Second moments of all entries of all variables, with their noise, for use in regressions."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincc

from dpcgd.datasets.variable import PARTS
from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of, level_vectors, noise_of_means
from dpcgd.moments.interactions import NoisyTable, contrasts
from dpcgd.moments.scores import LENGTH, SECOND
from dpcgd.privacy.events import GaussianEvent
from dpcgd.reading.release import MarginalRelease

__all__ = ["SecondMoments", "moments_of", "unshortened"]

STEPS, LEAST_KEPT = 100, 0.05
"""Steps of the search for eigenvalues, and the least share of an eigenvalue after shortening."""

SQUARE = LENGTH * SECOND
"""Deviation of the squared score of a number."""

FAINT, CLEAR = 0.05, 3.0
"""Other entries of a number than its score are used if their noise is below this share of their
variance. A departure from a Gaussian copula counts if it exceeds this many of its deviations."""

OF_MEANS = 0.75
"""Errors of means at which entries are centred, relative to those expected from noise: shares that
are cut off at zero are less wrong. Measured on independent numbers (benchmarks/README.md)."""

LEAST = 1e-6
"""The least variance; a variance that noise made smaller is raised to it."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Covariances of the entries of all variables.

    Attributes
    ----------
    values : array of shape (D, D)
        Covariances corrected for the shortening of long records, as far as that is possible.
    shortened : array of shape (D, D)
        Covariances as they were released; equal to `values` if no record is shortened.
    deviations : array of shape (D, D)
        Deviations of the noise; on the diagonal, divided by the root of two. They include that of
        the means at which entries are centred. Within a variable of a release of pairs they are
        upper bounds.
    rows : list of list of int
        Rows of the entries of each variable. A number has its score; its squared score, and then
        whether it is missing, if noise does not hide them.
    vectors : list of array
        Entries of the levels of each variable, or of the parts of its range.
    n : int
        Number of records.
    """

    values: np.ndarray
    shortened: np.ndarray
    deviations: np.ndarray
    rows: list[list[int]]
    vectors: list[np.ndarray]
    n: int

    @property
    def numbers(self) -> list[int]:
        """The variables that are numbers."""
        return [v for v, own in enumerate(self.vectors) if len(own) >= PARTS]

    @cached_property
    def departures(self) -> np.ndarray:
        """Distances of numbers from a Gaussian copula, in correlations, beyond noise.

        Under a Gaussian copula the square of one score has no correlation with the other score, and
        two squares have the squared correlation of the scores. For a number and a category it is
        the largest correlation of the square with an entry of the category, which a line does not
        explain either. It is 0 if noise hides squares, and for two categories. It has shape (d, d),
        with zeros on its diagonal.
        """
        apart = np.zeros((len(self.rows),) * 2)
        clear = [(v, *self.rows[v][:2]) for v in self.numbers if len(self.rows[v]) > 1]
        shown, scores, squares = np.array(clear, int).reshape(-1, 3).T
        variances = np.maximum(np.diag(self.values), SQUARE**2 / 2)
        lengths = np.sqrt(np.outer(variances, variances))
        joint = (self.values / lengths)[np.ix_(scores, scores)] ** 2
        entries = [(v, row) for v in {*range(len(apart))} - {*self.numbers} for row in self.rows[v]]
        categories, plain = np.array(entries, int).reshape(-1, 2).T
        pairs = [(shown, scores, 0.0), (shown, squares, joint), (categories, plain, 0.0)]
        for own, left, normal in pairs:
            block = np.ix_(left, squares)
            noise = self.deviations[np.ix_(left, scores)] / lengths[block]
            off = np.abs(self.values[block] / lengths[block] - normal)
            off[off <= CLEAR * np.hypot(noise, 1 / math.sqrt(self.n))] = 0.0
            np.maximum.at(apart, (own[:, None], shown), off)
        np.fill_diagonal(apart, 0.0)
        return np.maximum(apart, apart.T)


def moments_of(release: MarginalRelease) -> SecondMoments | None:
    """Second moments of a release, computed once; None for a whole table, which needs none.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    marginals: Any = release.marginals
    if isinstance(marginals, NoisyTable):
        return None
    work = _of_clipped if isinstance(marginals, ClippedMoments) else _of_pairs
    return marginals.worked_out(("second moments",), lambda: work(marginals, release))


def unshortened(
    moments: np.ndarray, square: float, vectors: list[np.ndarray], shares: list[np.ndarray]
) -> np.ndarray:
    """Second moments of the original records, from those of shortened records.

    Parameters
    ----------
    moments : array of shape (D, D)
        Second moments of records whose squared norm is at most `square`.
    square : float
    vectors, shares : list of array
        Entries of the levels of each variable, and the shares of these levels.

    Returns
    -------
    array of shape (D, D)

    Privacy
    -------
    Post-processing.

    Notes
    -----
    As for elliptical records, eigenvectors are kept, and an eigenvalue l shrinks to
    E[l z^2 min(1, b / s)], with b the square and s the squared norm. Weighted by z^2, s is taken to
    have a gamma distribution; so each step needs two gamma integrals. Its mean and variance follow
    from the levels of each variable, up to a common scale. Lengths of normal scores and their
    squares vary much more than those of an ellipse. An eigenvalue that noise made negative stays
    negative.

    Examples
    --------
    >>> scores = np.linspace(-1.7, 1.7, 101)[:, None]
    >>> unshortened(np.eye(1) * 0.9, 1e9, [scores], [np.full(101, 1 / 101)]).round(6)
    array([[0.9]])
    """
    shrunk, turned = np.linalg.eigh(moments)
    norms = _norms(vectors, shares, turned)
    longer = np.ones(len(shrunk))
    for _ in range(STEPS):
        values = shrunk * longer
        own = np.clip(values, 0.0, norms.most)
        scale = max(values.sum(), LEAST) / max(norms.mean, LEAST)
        mean = scale * norms.mean + np.maximum(own * norms.means, -scale * norms.mean / 2)
        dependent = max(float(norms.slopes @ values), 0.0)
        variance = scale * (scale * norms.variance + dependent + own * norms.variances)
        shape = np.maximum(mean**2 / np.maximum(variance, LEAST), 1 + LEAST)
        scaled = square * shape / np.maximum(mean, LEAST)
        beyond = scaled / (shape - 1) * gammaincc(shape - 1, scaled)
        longer = 1 / np.clip(gammainc(shape, scaled) + beyond, LEAST_KEPT, 1.0)
    return (turned * (shrunk * longer)) @ turned.T


class _Norms(NamedTuple):
    """The distribution of squared norms, from the levels of each variable.

    ``variance`` is that which the entries leave; ``slopes`` are squared slopes by the coordinates
    along eigenvectors. Records that are weighted by the square of a coordinate have further
    ``means`` and ``variances``, for an eigenvalue of one. Each eigenvalue is at most ``most``, for
    no coordinate has a larger correlation with a variable than one.
    """

    mean: float
    variance: float
    slopes: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    most: np.ndarray


def _norms(vectors, shares, turned) -> _Norms:
    """`turned` has the eigenvectors as columns."""
    mean, variance, start = 0.0, 0.0, 0
    slopes, means, variances, largest = np.zeros((4, len(turned)))
    for entries, share in zip(vectors, shares, strict=True):
        lengths, own = (entries**2).sum(axis=1), turned[start : start + entries.shape[1]]
        apart = lengths - share @ lengths
        plain, by_length, by_square = (
            (entries.T * share * apart**power) @ entries for power in range(3)
        )
        inverse = np.linalg.pinv(plain, hermitian=True)
        slope, gains = inverse @ entries.T @ (share * apart), inverse @ own
        spread = share @ apart**2
        mean += float(share @ lengths)
        variance += float(spread - slope @ plain @ slope)
        slopes += slope @ own
        means += (gains * (by_length @ gains)).sum(axis=0)
        variances += (gains * ((by_square - spread * plain) @ gains)).sum(axis=0)
        largest = np.maximum(largest, (gains * (plain @ gains)).sum(axis=0))
        start += entries.shape[1]
    return _Norms(mean, variance, slopes**2, means, variances, 1 / np.maximum(largest, LEAST))


def _of_clipped(clipped, release) -> SecondMoments:
    """Second moments corrected for shortening; the ledger gives the bound on squared norms."""
    gaussian = [own for own in release.ledger.events if isinstance(own, GaussianEvent)]
    square = clipped.deviation * clipped.n / gaussian[-1].noise_multiplier
    vectors = level_vectors(clipped)
    variables = range(len(vectors))
    values = unshortened(clipped.moments, square, vectors, [clipped.shares(v) for v in variables])
    longer = max(1.0, np.trace(values) / np.trace(clipped.moments))
    off = np.concatenate([np.diag(noise_of_means(clipped, v)) for v in variables])
    deviations = np.hypot(clipped.deviation * longer, OF_MEANS**2 * np.sqrt(np.outer(off, off)))
    rows = [_clear_rows(clipped, v, own) for v, own in enumerate(blocks_of(clipped).rows)]
    return SecondMoments(values, clipped.moments, deviations, rows, vectors, clipped.n)


def _clear_rows(clipped, v, own) -> list[int]:
    """Rows of a variable's entries, up to the first of a number that noise hides."""
    rows = [*range(own.start, own.stop)]
    if v not in clipped.numbers:
        return rows
    variances = np.array([SQUARE**2, *np.diag(clipped.moments)[rows[2:]]])
    return rows[: 1 + [*(clipped.deviation >= FAINT * variances), True].index(True)]


def _of_pairs(marginals, release) -> SecondMoments:
    blocks = blocks_of(marginals)
    values, vectors = blocks.covariances, [np.zeros((1, 1))] * len(blocks.rows)
    means, errors = np.zeros((2, len(values)))
    for v, own in enumerate(blocks.rows):
        if marginals.levels[v] > 1:
            means[own], errors[own] = marginals.moment(v)
            vectors[v] = contrasts(marginals.levels[v]) - means[own]
    product = np.outer(errors**2, means**2)
    variances = blocks.deviations**2 + product + product.T
    for own in blocks.rows:  # covariances of a variable's own contrasts follow from its levels
        variances[own, own] = errors[own] ** 2
    rows = [[*range(own.start, own.stop)] for own in blocks.rows]
    return SecondMoments(values, values, np.sqrt(variances), rows, vectors, marginals.n)
