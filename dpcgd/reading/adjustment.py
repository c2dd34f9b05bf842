"""What an effect comes to, adjusted for a set of variables, and how far that may be off.

From second moments by a regression of the effect's entries on those of the cause and of the others;
from a whole table by standardisation. Either way the noise is known, and so is how it moves the
result: the delta method.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcgd.moments.interactions import NoisyTable
from dpcgd.reading.second_moments import SecondMoments

__all__ = ["Adjusted", "regressed", "standardised"]

MOST_NOISE = 0.5
"""Noise of the moments of causes, over these moments: beyond, no regression is made."""

CLEAR = 5.0
"""A stratum tells something if it holds more records than so many deviations of their noise."""

CLEAR_OF_ZERO = 3.0
"""A ratio is formed of means that are so many of their deviations above zero."""

LEAST_RECORDS = 5.0
"""And at least so many."""

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

    def moved(self, start: float, variance: float) -> "Adjusted":
        """The same from another start, which has an error of its own."""
        return self._replace(means=self.means + start, further=self.further + variance)

    @property
    def is_clear(self) -> bool:
        """Whether both means are clear of zero."""
        deviations = np.sqrt(np.diag(self.sampling + self.further))
        return bool((self.means > CLEAR_OF_ZERO * deviations).all())

    @property
    def log_ratio(self) -> tuple[float, float]:
        """Logarithm of the second mean over the first, and its deviation; of clear means only."""
        turned = np.array([-1, 1]) / self.means
        variance = float(turned @ (self.sampling + self.further) @ turned)
        return math.log(self.means[1] / self.means[0]), math.sqrt(max(variance, 0.0))

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


def spread_of(covariance: np.ndarray) -> float:
    """Deviation of a difference of two numbers with this covariance."""
    variance = covariance[0, 0] + covariance[1, 1] - covariance[0, 1] - covariance[1, 0]
    return math.sqrt(max(float(variance), 0.0))


def regressed(
    moments: SecondMoments,
    cause: int,
    effect: int,
    parents: Sequence[int],
    ends: np.ndarray,
    outcome: np.ndarray,
) -> Adjusted | None:
    """Adjust by linear regression.

    Parameters
    ----------
    moments : SecondMoments
    cause, effect : int
    parents : sequence of int
        What is adjusted for.
    ends : array of shape (2, k)
        Entries of the cause at either value.
    outcome : array
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
    rows, width = moments.causes((cause, *parents)), len(moments.causes([cause]))
    ends = ends[:, :width]
    own = moments.rows[effect]
    a, noise_a = moments.values[np.ix_(rows, rows)], moments.deviations[np.ix_(rows, rows)] ** 2
    if np.linalg.eigvalsh(a)[0] <= 0:
        return None
    inverse = np.linalg.inv(a)
    wide = np.diag(inverse)
    if wide @ noise_a @ wide > MOST_NOISE**2:
        return None
    gains = inverse[:, :width] @ ends.T
    beta = inverse @ moments.values[rows, own] @ outcome
    noise_b = moments.deviations[rows, own] ** 2 @ outcome**2
    means = gains.T @ moments.values[rows, own] @ outcome
    left = outcome @ moments.values[own, own] @ outcome - beta @ a @ beta
    sampling = max(float(left), 0.0) / moments.n * (gains.T @ a @ gains)
    moved = gains[:, None] * beta[:, None] + gains[None] * beta[:, None, None]
    further = (gains.T * noise_b) @ gains + np.einsum("ij,ijk,ijl->kl", noise_a, moved, moved) / 2
    shortened = moments.shortened[np.ix_(rows, rows)], moments.shortened[rows, own] @ outcome
    lost = means - ends @ np.linalg.solve(*shortened)[:width]
    return Adjusted(means, sampling, further + np.outer(lost, lost))


def standardised(
    table: NoisyTable,
    cause: int,
    effect: int,
    parents: Sequence[int],
    ends: tuple[int, int],
    level: int,
) -> Adjusted | None:
    """Adjust by standardisation: shares of a level of the effect, averaged over the strata.

    Parameters
    ----------
    table : NoisyTable
    cause, effect : int
    parents : sequence of int
        What is adjusted for.
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
    kept = [cause, effect, *parents]
    others = tuple(v for v in range(table.counts.ndim) if v not in kept)
    counts = np.transpose(table.counts.sum(axis=others), np.argsort(np.argsort(kept)))
    counts = counts.reshape(*counts.shape[:2], -1)
    noise = 2 * table.scale**2 * table.counts.size / counts.size
    least = max(CLEAR * math.sqrt(noise * counts.shape[1]), LEAST_RECORDS)
    strata = counts.sum(axis=(0, 1))
    slopes, means, missing = np.zeros((2, *counts.shape)), np.zeros(2), np.zeros(2)
    for k, end in enumerate(ends):
        held = counts[end].sum(axis=0)
        clear = held > least
        covered = strata[clear].sum()
        missing[k] = max(1 - covered / strata.sum(), 0.0) / 2
        if 2 * missing[k] > MOST_UNTOLD:
            return None
        held, weights = np.where(clear, held, 1.0), np.where(clear, strata, 0.0) / covered
        shares = np.where(clear, counts[end, level] / held, 0.0)
        means[k] = weights @ shares
        slopes[k] += np.where(clear, shares - means[k], 0.0) / covered
        slopes[k, end] -= shares * weights / held
        slopes[k, end, level] += weights / held
    slopes, expected = slopes.reshape(2, -1), np.maximum(counts, 0.0).ravel()
    centred = slopes - (slopes @ expected)[:, None] / expected.sum()
    further = noise * slopes @ slopes.T + np.diag(missing**2)
    return Adjusted(means, (centred * expected) @ centred.T, further)
