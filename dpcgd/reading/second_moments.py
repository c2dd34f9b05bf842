"""Second moments of all entries of all variables, with their noise, ready for a regression."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammainc, gammaincc

from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of, level_vectors
from dpcgd.moments.interactions import NoisyTable, contrasts
from dpcgd.moments.scores import LENGTH, SECOND
from dpcgd.privacy.events import GaussianEvent
from dpcgd.reading.release import MarginalRelease

__all__ = ["SecondMoments", "moments_of", "unshortened"]

STEPS, LEAST_KEPT = 100, 0.05
"""Of the search for eigenvalues, and the least share of one that shortening is taken to keep."""

SQUARE = LENGTH * SECOND
"""Deviation of the entry of a number that is its score squared."""

FAINT, CLEAR = 0.05, 3.0
"""Other entries of a number than its score are used if their noise is below this share of their
variance. A departure from a Gaussian copula counts if it exceeds this many of its deviations."""

LEAST = 1e-6
"""A variance that noise made smaller is taken for this."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Covariances of the entries of all variables.

    Attributes
    ----------
    values : array of shape (D, D)
        Without what shortening of long records did, as far as that can be told.
    shortened : array of shape (D, D)
        As they were released; the same where no record is shortened.
    deviations : array of shape (D, D)
        Of their noise; on the diagonal over the root of two. Within a variable of a release of
        pairs an upper bound.
    rows : list of list of int
        Rows of the entries of each variable. A number has its score; its squared score, and then
        whether it is missing, if noise does not hide them.
    vectors : list of array
        Of each variable, the entries of its levels or of the parts of its range.
    n : int
        Records.
    """

    values: np.ndarray
    shortened: np.ndarray
    deviations: np.ndarray
    rows: list[list[int]]
    vectors: list[np.ndarray]
    n: int

    def departure(self, x: int, y: int) -> float:
        """How far two numbers are from a Gaussian copula, in correlations, beyond noise.

        Under a Gaussian copula the square of one score has no correlation with the other score, and
        squares have that of the scores, squared. It is 0 where noise hides squares.
        """
        both = min(2, len(self.rows[x]), len(self.rows[y]))  # a third is for missing values
        of_x, of_y = self.rows[x][:both], self.rows[y][:both]
        variances = np.maximum(np.diag(self.values), SQUARE**2 / 2)
        lengths = np.sqrt(np.outer(variances[of_x], variances[of_y]))
        apart = self.values[np.ix_(of_x, of_y)] / lengths
        apart -= np.diag([apart[0, 0], apart[0, 0] ** 2])[:both, :both]
        noise = self.deviations[of_x[0], of_y[0]] / lengths
        clear = np.abs(apart) > CLEAR * np.hypot(noise, 1 / math.sqrt(self.n))
        return float(np.max(np.abs(apart) * clear))


def moments_of(release: MarginalRelease) -> SecondMoments | None:
    """Second moments of a release, worked out once; None of a whole table, which needs none.

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


def unshortened(moments: np.ndarray, square: float) -> np.ndarray:
    """Second moments of records as they were, from those of records that were shortened.

    Parameters
    ----------
    moments : array of shape (D, D)
        Of records whose squared norm is at most `square`.
    square : float

    Returns
    -------
    array of shape (D, D)
        Exact for elliptical records, but for one approximation: that a sum of squares has a gamma
        distribution.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Shortening keeps the eigenvectors of elliptical records. An eigenvalue l shrinks to
    E[l z^2 min(1, b / s)] with b the square and s the squared norm. To weigh by z^2 adds to s the
    sum of two more squares of that length; so each step is two gamma integrals. An eigenvalue that
    noise made negative stays so.

    Examples
    --------
    >>> unshortened(np.eye(2) * 0.9, 1e9).round(6)
    array([[0.9, 0. ],
           [0. , 0.9]])
    """
    shrunk, turned = np.linalg.eigh(moments)
    longer = np.ones(len(shrunk))
    for _ in range(STEPS):
        values = shrunk * longer
        own, total = np.maximum(values, 0.0), max(values.sum(), LEAST)
        mean, variance = total + 2 * own, 2 * (values**2).sum() + 4 * own**2
        shape, scaled = mean**2 / variance, square * mean / variance
        shape = np.maximum(shape, 1 + LEAST)
        beyond = scaled / (shape - 1) * gammaincc(shape - 1, scaled)
        longer = 1 / np.clip(gammainc(shape, scaled) + beyond, LEAST_KEPT, 1.0)
    return (turned * (shrunk * longer)) @ turned.T


def _of_clipped(clipped, release) -> SecondMoments:
    """Without what shortening did, as far as the square that records were shortened to tells."""
    gaussian = [own for own in release.ledger.events if isinstance(own, GaussianEvent)]
    square = clipped.deviation * clipped.n / gaussian[-1].noise_multiplier
    values = unshortened(clipped.moments, square)
    longer = max(1.0, np.trace(values) / np.trace(clipped.moments))
    deviations = np.full_like(values, clipped.deviation * longer)
    rows = [_clear_rows(clipped, v, own) for v, own in enumerate(blocks_of(clipped).rows)]
    vectors = level_vectors(clipped)
    return SecondMoments(values, clipped.moments, deviations, rows, vectors, clipped.n)


def _clear_rows(clipped, v, own) -> list[int]:
    """Rows of a variable's entries, up to the first of a number that noise hides."""
    rows = [*range(own.start, own.stop)]
    if v not in clipped.numbers:
        return rows
    variances = np.array([SQUARE**2, *np.diag(clipped.moments)[rows[2:]]])
    hidden = clipped.deviation >= FAINT * variances
    return rows[: 1 + [*hidden, True].index(True)]


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
