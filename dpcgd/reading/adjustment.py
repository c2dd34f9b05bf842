"""What an effect comes to, adjusted for a set of variables, and how far that may be off.

From second moments by a regression of the effect's entries on those of the cause and of the others;
from a whole table by standardisation. Either way the noise is known, and so is how it moves the
result: the delta method.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcgd.datasets.variable import PARTS
from dpcgd.moments.interactions import NoisyTable
from dpcgd.reading.second_moments import SecondMoments

__all__ = ["UNKNOWN", "Adjusted", "regressed", "standardised"]

MOST_NOISE = 0.5
"""Noise of the moments of causes, over these moments: beyond, no regression is made."""

SHORTENED = 0.7
"""The correction for shortened records may be off by this share of it, among numbers: it is that
of elliptical records. Chosen on 200 random networks (benchmarks/README.md)."""

COPIED = 0.8
"""Two numbers are missing together if their gaps explain this much of each other's variance."""

CLEAR = 5.0
"""A stratum tells something if it holds more records than this, and than so many deviations of
their noise."""

CLEAR_OF_ZERO = 3.0
"""A ratio is formed of means that are so many of their deviations above zero."""

MOST_UNTOLD = 0.05
"""Share of the records that may lie in strata that tell nothing."""


class Adjusted(NamedTuple):
    """Means of the effect if the cause is set to either of two values.

    ``means`` has shape (2,); ``sampling`` and ``further`` are their covariances, (2, 2), from
    sampling, and from noise and from what is not known otherwise.
    """

    means: np.ndarray
    sampling: np.ndarray
    further: np.ndarray

    @property
    def difference(self) -> float:
        """The second mean less the first."""
        return float(self.means[1] - self.means[0])

    @property
    def deviation(self) -> float:
        """Of the difference, from everything."""
        return spread_of(self.sampling + self.further)

    @property
    def log_ratio(self) -> tuple[float, float] | None:
        """Logarithm of the second mean over the first, and its deviation.

        None unless both means are clear of zero.
        """
        covariance = self.sampling + self.further
        if not (self.means > CLEAR_OF_ZERO * np.sqrt(np.diag(covariance))).all():
            return None
        relative = covariance / np.outer(self.means, self.means)
        return math.log(self.means[1] / self.means[0]), spread_of(relative)

    def robustness(self, size: float, n: int) -> float:
        """Share that a hidden common cause must explain to take so much away.

        Of what is left of the cause and of what is left of the effect, where it explains the same
        share of either.

        Notes
        -----
        Cinelli and Hazlett (2020): the share r solves r^2 / (1 - r) = f^2, with f the size over its
        sampling deviation for one record.
        """
        deviation = spread_of(self.sampling)
        if size == 0 or deviation == 0:
            return 0.0 if size == 0 else 1.0
        f = (size / deviation) ** 2 / n
        return 2 * f / (math.sqrt(f * f + 4 * f) + f)


UNKNOWN = Adjusted(np.full(2, np.nan), np.zeros((2, 2)), np.diag([np.inf, np.inf]))
"""Nothing is known."""


def spread_of(covariance: np.ndarray) -> float:
    """Deviation of a difference of two numbers with this covariance."""
    variance = np.trace(covariance) - covariance[0, 1] - covariance[1, 0]
    return math.sqrt(max(float(variance), 0.0))


def regressed(
    moments: SecondMoments,
    causes: Sequence[int],
    effect: int,
    ends: np.ndarray,
    outcome: np.ndarray,
) -> Adjusted | None:
    """Adjust by linear regression.

    Parameters
    ----------
    moments : SecondMoments
    causes : sequence of int
        The cause, and what is adjusted for.
    effect : int
    ends : array of shape (2, k)
        Entries of the cause at either value.
    outcome : array of shape (m,)
        What is made of the effect's entries: a number for each.

    Returns
    -------
    Adjusted or None
        Means are relative to the mean of all records. None where noise hides whether the causes are
        different from one another.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    The coefficients solve A beta = b. Noise E of A and e of b moves A^-1 b by A^-1 (e - E beta), to
    first order; the gains of the ends, A^-1 ends, say how that moves the means.
    """
    rows, own = _told_apart(moments, causes), moments.rows[effect]
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
    numbers = all(len(moments.vectors[v]) >= PARTS for v in (*causes, effect))
    lost = (SHORTENED if numbers else 1.0) * ends @ (beta - before)[:width]
    return Adjusted(ends @ beta[:width], sampling, further + np.outer(lost, lost))


def _told_apart(moments, causes) -> list[int]:
    """Rows of the causes' entries; numbers that are missing together share one such entry."""
    rows: list[int] = []
    for v in causes:
        *others, last = moments.rows[v]
        gaps = len(moments.vectors[v]) > PARTS and len(others) == 2
        most = COPIED * moments.values[last, last] * np.diag(moments.values)[rows]
        alike = gaps and (moments.values[last, rows] ** 2 > most).any()
        rows += others if alike else moments.rows[v]
    return rows


def standardised(
    table: NoisyTable, causes: Sequence[int], effect: int, ends: tuple[int, int], level: int
) -> Adjusted | None:
    """Adjust by standardisation: shares of a level of the effect, averaged over the strata.

    Parameters
    ----------
    table : NoisyTable
    causes : sequence of int
        The cause, and what is adjusted for.
    effect : int
    ends : tuple of int
        Levels of the cause.
    level : int
        Of the effect.

    Returns
    -------
    Adjusted or None
        None where too many records lie in strata that have hardly a record of either level.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Chapter 19, :prf:ref:`thm-parents`.

    For a stratum z the share is T[x, y, z] / T[x, z], its weight T[z] / n. Derivatives of the
    average by the cells of the table give its variance: that of noise, the same in all cells, and
    that of a multinomial table. Strata that tell nothing have the mean share, give or take half of
    their weight.
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
