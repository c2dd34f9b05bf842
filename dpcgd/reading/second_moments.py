"""Second moments of all entries of all variables, with their noise, ready for a regression."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincc

from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of, vectors_of
from dpcgd.moments.interactions import Marginals, contrasts
from dpcgd.moments.scores import LENGTH, SECOND

__all__ = ["SecondMoments", "second_moments", "unshortened"]

STEPS, CLOSE, LEAST_KEPT = 100, 1e-12, 0.05
"""Of the search for eigenvalues: most steps, the change at which it ends, and the least share of an
eigenvalue that shortening is taken to keep."""

SQUARE = LENGTH * SECOND
"""Deviation of the entry of a number that is its score squared."""

FAINT, CLEAR = 0.05, 3.0
"""Squares are adjusted for where their noise is below this share; a departure from a Gaussian
copula counts if it is so many of its deviations."""

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
    rows : list of slice
        Where each variable's entries are.
    squares : dict
        The row of the squared score of each number.
    with_squares : bool
        Whether noise is small beside them, so that they are adjusted for.
    vectors : list of array
        Of each variable, the entries of its levels or of the parts of its range.
    n : int
        Records.
    """

    values: np.ndarray
    shortened: np.ndarray
    deviations: np.ndarray
    rows: list[slice]
    squares: dict[int, int]
    with_squares: bool
    vectors: list[np.ndarray]
    n: int

    def causes(self, variables: Iterable[int]) -> list[int]:
        """Rows of causes: all, but for squares of scores where their noise is large."""
        rows = [i for v in variables for i in range(self.rows[v].start, self.rows[v].stop)]
        return rows if self.with_squares else [i for i in rows if i not in self.squares.values()]

    def departure(self, x: int, y: int) -> float:
        """How far two numbers are from a Gaussian copula, in correlations, beyond noise.

        Under a Gaussian copula the square of one score has no correlation with the other score, and
        squares have that of the scores, squared. It is 0 where noise hides squares.
        """
        if not self.with_squares:
            return 0.0
        rows = [self.rows[v].start + k for v in (x, y) for k in range(2)]
        variances = np.maximum(np.diag(self.values)[rows], np.tile([LENGTH, SQUARE], 2) ** 2 / 2)
        lengths = np.sqrt(np.outer(variances[:2], variances[2:]))
        apart = self.values[np.ix_(rows[:2], rows[2:])] / lengths
        apart -= np.diag([apart[0, 0], apart[0, 0] ** 2])
        noise = self.deviations[rows[0], rows[2]] / lengths
        clear = np.abs(apart) > CLEAR * np.hypot(noise, 1 / math.sqrt(self.n))
        return float(np.max(np.abs(apart) * clear))


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

    def work():
        if isinstance(marginals, ClippedMoments):
            return _of_clipped(marginals, multiplier)
        return _of_pairs(marginals)

    return marginals.worked_out(("second moments", multiplier), work)


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
        new = 1 / np.clip(gammainc(shape, scaled) + beyond, LEAST_KEPT, 1.0)
        moved, longer = np.abs(new - longer).max(), new
        if moved < CLOSE:
            break
    return (turned * (shrunk * longer)) @ turned.T


def _of_clipped(clipped: ClippedMoments, multiplier: float) -> SecondMoments:
    blocks, values = blocks_of(clipped), clipped.moments
    if multiplier > 0:
        values = unshortened(values, clipped.deviation * clipped.n / multiplier)
    longer = max(1.0, np.trace(values) / np.trace(clipped.moments))
    return SecondMoments(
        values,
        clipped.moments,
        np.full_like(values, clipped.deviation * longer),
        blocks.rows,
        {v: blocks.rows[v].start + 1 for v in clipped.numbers},
        clipped.deviation < FAINT * SQUARE**2,
        [vectors_of(clipped, v) for v in range(len(clipped.levels))],
        clipped.n,
    )


def _of_pairs(marginals: Marginals) -> SecondMoments:
    blocks = blocks_of(marginals)
    values, rows = blocks.covariances, blocks.rows
    vectors, means, errors = [], np.zeros(len(values)), np.zeros(len(values))
    for own, levels, v in zip(rows, marginals.levels, itertools.count()):
        vectors.append(np.zeros((1, 1)))
        if levels > 1:
            means[own], errors[own] = marginals.moment(v)
            vectors[-1] = contrasts(levels) - means[own]
    product = np.outer(errors**2, means**2)
    variances = blocks.deviations**2 + product + product.T
    for own in rows:  # covariances of a variable's own contrasts follow from its levels
        variances[own, own] = errors[own] ** 2
    return SecondMoments(values, values, np.sqrt(variances), rows, {}, False, vectors, marginals.n)
