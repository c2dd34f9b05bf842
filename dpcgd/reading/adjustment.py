"""Effects of a cause, adjusted for a set of variables, with the variance of their error.

Second moments are adjusted by a regression of the effect's entries on the entries of the cause and
of the adjustment variables. A whole table is adjusted by standardisation. In both cases the noise
is known, and the delta method gives the error that it causes.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpcgd.datasets.variable import PARTS
from dpcgd.moments.interactions import NoisyTable
from dpcgd.reading.second_moments import SecondMoments

__all__ = ["COVER", "UNKNOWN", "Adjusted", "of_known", "regressed", "standardised"]

COVER = 0.9
"""Probability with which an interval is meant to contain its estimand."""

MOST_NOISE = 0.5
"""The largest noise of the moments of causes, relative to these moments, for a regression."""

OF_NUMBERS, OF_BENT, OF_CATEGORIES = 0.1, 4.0, 1.25
"""Shares by which the correction for shortened records may be off: in a table of numbers the first,
and the second times their departure from a Gaussian copula, up to all of it; in a table with
categories the third. Chosen on random networks (benchmarks/README.md)."""

COPIED = 0.8
"""Two entries are alike if they explain more than this share of each other's variance."""

CLEAR = 5.0
"""A stratum is used if it holds more records than this, and more than this many deviations of their
noise."""

CLEAR_OF_ZERO = 3.0
"""A ratio is formed if both means are more than this many of their deviations above zero."""

LEAST_KNOWN = 0.01
"""The least share of records in which two numbers are both known."""

MOST_UNTOLD = 0.05
"""The largest share of the records that may lie in strata with too few records."""


class Adjusted(NamedTuple):
    """Means of the effect if the cause is set to either of two values.

    ``means`` has shape (2,). ``sampling`` and ``further`` are its covariances of shape (2, 2): the
    first from sampling, the second from noise and from other uncertainty.
    """

    means: np.ndarray
    sampling: np.ndarray
    further: np.ndarray

    @property
    def difference(self) -> float:
        """The second mean minus the first."""
        return float(self.means[1] - self.means[0])

    @property
    def deviation(self) -> float:
        """Deviation of the difference, from all sources of error."""
        return spread_of(self.sampling + self.further)

    @property
    def log_ratio(self) -> tuple[float, float] | None:
        """Logarithm of the second mean over the first, and its deviation.

        None unless both means are clearly above zero.
        """
        covariance = self.sampling + self.further
        if not (self.means > CLEAR_OF_ZERO * np.sqrt(np.diag(covariance))).all():
            return None
        relative = covariance / np.outer(self.means, self.means)
        return math.log(self.means[1] / self.means[0]), spread_of(relative)

    def robustness(self, size: float, n: int) -> float:
        """Share that a hidden common cause must explain to change the effect by this size.

        It is a share of the unexplained variance of the cause, and the same share of the
        unexplained variance of the effect.

        Notes
        -----
        Cinelli and Hazlett (2020): the share r solves r^2 / (1 - r) = f^2, where f is the size
        over its sampling deviation for one record.
        """
        deviation = spread_of(self.sampling)
        if size == 0 or deviation == 0:
            return 0.0 if size == 0 else 1.0
        f = (size / deviation) ** 2 / n
        return 2 * f / (math.sqrt(f * f + 4 * f) + f)


UNKNOWN = Adjusted(np.full(2, np.nan), np.zeros((2, 2)), np.diag([np.inf, np.inf]))
"""The result if nothing is known of an effect."""


def spread_of(covariance: np.ndarray) -> float:
    """Deviation of the difference of two numbers with this covariance."""
    return math.sqrt(max(0.0, np.trace(covariance) - covariance[0, 1] - covariance[1, 0]))


def regressed(
    moments: SecondMoments,
    causes: Sequence[int],
    effect: int,
    ends: np.ndarray,
    outcome: np.ndarray,
) -> Adjusted | None:
    """Adjust an effect by linear regression.

    Parameters
    ----------
    moments : SecondMoments
    causes : sequence of int
        The cause, and the adjustment variables.
    effect : int
    ends : array of shape (2, k)
        Entries of the cause at each of its two values.
    outcome : array of shape (m,)
        Weights of the effect's entries; the outcome is their weighted sum.

    Returns
    -------
    Adjusted or None
        Means are relative to the mean of all records. None if noise hides whether the causes are
        linearly independent.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    The coefficients solve A beta = b. To first order, noise E of A and e of b changes A^-1 b by
    A^-1 (e - E beta). The gains, A^-1 ends, turn this into a change of the means.
    """
    rows = [*dict.fromkeys(row for v in causes for row in moments.rows[v])]
    own = moments.rows[effect]
    among, across, width = np.ix_(rows, rows), np.ix_(rows, own), ends.shape[1]
    a, noise_a = moments.values[among], moments.deviations[among] ** 2
    b, noise_b = moments.values[across] @ outcome, moments.deviations[across] ** 2 @ outcome**2
    inverse = np.linalg.pinv(a, hermitian=True)
    wide = np.diag(inverse)
    if np.linalg.eigvalsh(a)[0] <= 0 or wide @ noise_a @ wide > MOST_NOISE**2:
        return None
    beta, gains = inverse @ b, inverse[:, :width] @ ends.T
    left = outcome @ moments.values[np.ix_(own, own)] @ outcome - beta @ a @ beta
    sampling = max(float(left), 0.0) / moments.n * (gains.T @ a @ gains)
    moved = gains[:, None] * beta[:, None] + gains[None] * beta[:, None, None]
    further = (gains.T * noise_b) @ gains + np.einsum("ij,ijk,ijl->kl", noise_a, moved, moved) / 2
    before = np.linalg.solve(moments.shortened[among], moments.shortened[across] @ outcome)
    lost = _doubt(moments, causes[0], effect) * ends @ (beta - before)[:width]
    return Adjusted(ends @ beta[:width], sampling, further + np.outer(lost, lost))


def _doubt(moments, cause, effect) -> float:
    """The share by which the correction for shortened records may be off."""
    if len(moments.numbers) < len(moments.rows):
        return OF_CATEGORIES
    return min(1.0, OF_NUMBERS + OF_BENT * float(moments.departures[cause, effect]))


def of_known(moments: SecondMoments) -> tuple[SecondMoments, np.ndarray]:
    """Moments of the records in which both values are known, and the shares of these records.

    Parameters
    ----------
    moments : SecondMoments
        With mean scores in place of missing numbers.

    Returns
    -------
    SecondMoments
        Numbers that are missing together share the entry of the first one for that.
    array of shape (D, D)

    Privacy
    -------
    Post-processing.
    """
    values, rows = moments.values, [[*own] for own in moments.rows]
    known, scale, gaps = np.ones(len(values)), np.zeros(len(values)), np.full(len(values), -1)
    shown = [row for own in rows for row in own]
    for own, vectors in zip(rows, moments.vectors, strict=True):
        if vectors.shape == (PARTS + 1, 3):
            scores, gap = slice(own[0], own[0] + 2), own[0] + 2
            scale[scores], gaps[scores] = 1 / np.ptp(vectors[:, 2]), gap
            known[scores] = vectors[PARTS, 2] * scale[own[0]]
            alike = values[gap, shown] ** 2 > COPIED * values[gap, gap] * np.diag(values)[shown]
            own[2:] = [shown[alike.argmax()]] * len(own[2:])
    both = np.outer(known, known) + np.outer(scale, scale) * values[np.ix_(gaps, gaps)]
    both = np.where(gaps[:, None] == gaps, known, both).clip(LEAST_KNOWN, 1.0)
    parts = {name: getattr(moments, name) / both for name in ("values", "shortened", "deviations")}
    return replace(moments, rows=rows, **parts), both


def standardised(
    table: NoisyTable, causes: Sequence[int], effect: int, ends: tuple[int, int], level: int
) -> Adjusted | None:
    """Adjust an effect by standardisation: average the shares of one of its levels over strata.

    Parameters
    ----------
    table : NoisyTable
    causes : sequence of int
        The cause, and the adjustment variables.
    effect : int
    ends : tuple of int
        Two levels of the cause.
    level : int
        A level of the effect.

    Returns
    -------
    Adjusted or None
        None if too many records lie in strata with almost no record of one of the two levels.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Chapter 19, :prf:ref:`thm-parents`.

    For a stratum z the share is T[x, y, z] / T[x, z], and its weight is T[z] over their sum. The
    derivatives of the average by the cells of the table give its variance: from noise, which is the
    same in all cells, and from sampling of a multinomial table. Strata with too few records have
    the mean share, with an error of half their weight.
    """
    counts = np.einsum(table.counts, [*range(table.counts.ndim)], [*causes, effect])
    counts = counts.reshape(len(counts), -1, counts.shape[-1])
    noise = 2 * table.scale**2 * table.counts.size / counts.size
    least = CLEAR * max(math.sqrt(noise * counts.shape[2]), 1.0)
    strata, held = counts.sum(axis=(0, 2)), counts[[*ends]].sum(axis=2)
    clear = held > least
    covered = (clear @ strata)[:, None]
    missing = np.maximum(1 - covered[:, 0] / strata.sum(), 0.0) / 2
    if 2 * missing.max() > MOST_UNTOLD:
        return None
    held, weights = np.where(clear, held, 1.0), np.where(clear, strata / covered, 0.0)
    shares = np.where(clear, counts[[*ends], :, level] / held, 0.0)
    means, slopes = (weights * shares).sum(axis=1), np.zeros((2, *counts.shape))
    slopes += (np.where(clear, shares - means[:, None], 0.0) / covered)[:, None, :, None]
    slopes[[0, 1], ends] -= (shares * weights / held)[:, :, None]
    slopes[[0, 1], ends, :, level] += weights / held
    slopes, expected = slopes.reshape(2, -1), np.maximum(counts, 0.0).ravel()
    centred = slopes - (slopes @ expected)[:, None] / expected.sum()
    further = noise * slopes @ slopes.T + np.diag(missing**2)
    return Adjusted(means, (centred * expected) @ centred.T, further)
