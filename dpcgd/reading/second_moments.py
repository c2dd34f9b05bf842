"""Second moments of all entries of all variables, with their noise, ready for a regression."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincc

from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of, vectors_of
from dpcgd.moments.interactions import Marginals, contrasts

__all__ = ["SecondMoments", "second_moments", "unshortened"]

STEPS, CLOSE, LEAST_KEPT = 100, 1e-12, 0.05
"""Of the search for eigenvalues: most steps, the change at which it ends, and the least share of an
eigenvalue that shortening is taken to keep."""

LEAST = 1e-6
"""An eigenvalue that noise made smaller is taken for this."""


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
        Of their noise; on the diagonal over the root of two.
    rows : list of slice
        Where each variable's entries are.
    vectors : list of array
        Of each variable, the entries of its levels or of the parts of its range.
    n : int
        Records.
    """

    values: np.ndarray
    shortened: np.ndarray
    deviations: np.ndarray
    rows: list[slice]
    vectors: list[np.ndarray]
    n: int


def second_moments(marginals: Marginals, multiplier: float) -> SecondMoments:
    """The released second moments, worked out once.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    multiplier : float
        Deviation of the noise of clipped moments over their sensitivity.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    work = _of_clipped if isinstance(marginals, ClippedMoments) else _of_pairs
    return marginals.worked_out(("second moments", multiplier), lambda: work(marginals, multiplier))


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
    sum of two more squares of that length; so each step is two gamma integrals.

    Examples
    --------
    >>> unshortened(np.eye(2) * 0.9, 1e9).round(6)
    array([[0.9, 0. ],
           [0. , 0.9]])
    """
    shrunk, turned = np.linalg.eigh(moments)
    shrunk = np.maximum(shrunk, LEAST)
    values = shrunk
    for _ in range(STEPS):
        mean, variance = values.sum() + 2 * values, 2 * (values**2).sum() + 4 * values**2
        shape, scaled = mean**2 / variance, square * mean / variance
        beyond = scaled / (shape - 1) * gammaincc(shape - 1, scaled)
        new = shrunk / np.maximum(gammainc(shape, scaled) + beyond, LEAST_KEPT)
        moved, values = np.abs(new - values).max(), new
        if moved < CLOSE:
            break
    return (turned * values) @ turned.T


def _of_clipped(clipped: ClippedMoments, multiplier: float) -> SecondMoments:
    blocks = blocks_of(clipped)
    square = clipped.deviation * clipped.n / multiplier if multiplier else np.inf
    moments = blocks.covariances
    values = unshortened(moments, square) if np.isfinite(square) else moments
    deviation = clipped.deviation * max(1.0, np.trace(values) / np.trace(moments))
    vectors = [vectors_of(clipped, v) for v in range(len(clipped.levels))]
    deviations = np.full_like(moments, deviation)
    return SecondMoments(values, moments, deviations, blocks.rows, vectors, clipped.n)


def _of_pairs(marginals: Marginals, _: float) -> SecondMoments:
    blocks = blocks_of(marginals)
    means, errors = np.zeros((2, len(blocks.covariances)))
    for v, own in enumerate(blocks.rows):
        if marginals.levels[v] > 1:
            means[own], errors[own] = marginals.moment(v)
    product = np.outer(errors**2, means**2)
    variances = blocks.deviations**2 + product + product.T
    for v, own in enumerate(blocks.rows):
        if marginals.levels[v] > 1:
            variances[own, own] = _own_variance(marginals, v)
    vectors = [
        contrasts(size) - marginals.moment(v).values if size > 1 else np.zeros((1, 1))
        for v, size in enumerate(marginals.levels)
    ]
    values = blocks.covariances
    return SecondMoments(values, values, np.sqrt(variances), blocks.rows, vectors, marginals.n)


def _own_variance(marginals, v) -> np.ndarray:
    """Variance of the noise in the covariances of a variable's own contrasts; half on the diagonal."""
    columns, (mean, deviation) = contrasts(marginals.levels[v]), marginals.moment(v)
    moved = np.einsum("li,lj,lk->ijk", columns, columns, columns)
    unit = np.eye(len(mean))
    moved -= mean[:, None, None] * unit[None] + mean[None, :, None] * unit[:, None]
    return deviation**2 * (moved**2).sum(axis=2) / (1 + unit)
