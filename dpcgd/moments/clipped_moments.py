"""Moments of all pairs, with or without clipping of records, and their correlations.

A first measurement of single variables gives each level a vector; rare levels have longer ones. A
record with many rare levels has a long vector. Such records are scaled down, so that less noise is
needed to hide one record.
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts, Records
from dpcgd.moments.entries import entries_carried, most_entries
from dpcgd.moments.interactions import (
    Marginals,
    MeasuredMarginals,
    Measurement,
    Moment,
    least_variance,
    pairs_sensitivity,
)
from dpcgd.moments.scores import Singles, measure_singles, share_of_look
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = ["Aim", "Blocks", "ClippedMoments", "blocks_of", "clipped_sensitivity", "clips"]
__all__ += ["level_vectors", "longest_kept", "measure_moments", "noise_of_means", "rows_of"]
__all__ += ["share_of_singles", "vectors_of"]

LEAST_SHARE, MOST_SHARE = 0.05, 0.2
"""Bounds on the share of the budget that the first measurement, of single variables, gets."""

FEW = 8
"""With at most so many variables, pairs are released without clipping, which gains nothing then."""


LITTLE_NOISE = 0.2
"""Pairs are released without clipping if their noise is at most so many sampling deviations."""


USUAL_NORM = 0.8
"""The least bound on squared norms, as a multiple of the expected squared norm."""


NOISE_OVER_SAMPLING = 0.5
"""The bound on norms is raised as long as an entry's noise is below so many sampling deviations."""


LAST_NORM = 2.0
"""The largest bound on squared norms is so many deviations above the expected squared norm, if
variables were independent."""


LARGEST = 1e6
"""Correlations, covariances and deviations are cut off here, because larger ones are only noise."""

HIDDEN = 0.25
"""A correlation counts as zero if the variance of its noise is larger than this."""

Aim = Literal["edges", "effects"]
"""The purpose of a release: to find edges, or to estimate effects."""

LONGER: dict[str, float] = {"edges": 1.0, "effects": 2.5}
"""Factor on the bound on squared norms, by aim: edges need little noise, effects little bias."""


def clipped_sensitivity(bound: float) -> float:
    """Replace-one L2 sensitivity of the upper triangle of clipped sums, the diagonal over sqrt(2).

    Notes
    -----
    The squared distance of two records u and w is half of the squared norm of u u^T - w w^T. It is
    at most bound^4 if both vectors are at most as long as the bound. Chapter 12,
    :prf:ref:`thm-clipped-moments`.

    Examples
    --------
    >>> clipped_sensitivity(3.0)
    9.0
    """
    return bound * bound


def share_of_singles(widths: Sequence[int]) -> float:
    """Share of rho for single variables; with few variables they have as much noise as pairs.

    Parameters
    ----------
    widths : sequence of int
        Number of entries of each variable.

    Examples
    --------
    >>> share_of_singles([1] * 10), share_of_singles([3] * 100)
    (0.2, 0.05)
    """
    varying = sum(width > 0 for width in widths)
    return min(MOST_SHARE, max(LEAST_SHARE, 2 * varying / max(1, sum(widths)) ** 2))


def level_vectors(singles: Singles) -> list[np.ndarray]:
    """The vectors of the levels of each variable: centred entries times variance^(-1/4).

    Parameters
    ----------
    singles : Marginals
        Marginals with all single variables released.

    Returns
    -------
    list of array of shape (levels, entries)
        One column of zeros for a variable of one level.

    Privacy
    -------
    Post-processing.
    """
    return [vectors_of(singles, v) for v in range(len(singles.levels))]


def vectors_of(singles: Singles, v: int) -> np.ndarray:
    """The vectors of :func:`level_vectors` of one variable."""
    if singles.levels[v] == 1:
        return np.zeros((1, 1))
    if v in singles.numbers:
        return singles.numbers[v].vectors
    return singles.columns(v) @ _lengthening(singles, v)


def _lengthening(singles: Singles, v: int) -> np.ndarray:
    """Variance^(-1/4) of a variable's entries, as a matrix; the identity for a number."""
    if v in singles.numbers:
        return np.eye(singles.widths[v])
    columns = singles.columns(v)
    values, turned = np.linalg.eigh((columns.T * singles.table(v)) @ columns)
    # whatever the signs of the vectors
    return (turned / np.maximum(values, singles.least_variance(v)) ** 0.25) @ turned.T


def noise_of_means(singles: Singles, v: int) -> np.ndarray:
    """Covariance of the noise in the means at which a variable's entries are centred.

    The leading eigenvectors of a block lean towards this noise, so it is enlarged for categories.
    """
    if singles.levels[v] == 1:
        return np.zeros((1, 1))
    deviation = singles.moment(v).deviation
    if v in singles.numbers:
        return np.diag(singles.numbers[v].errors(deviation) ** 2)
    columns = singles.columns(v)
    return columns.T @ columns * deviation**2 * math.sqrt(columns.shape[1])


def longest_kept(
    singles: Singles, vectors: list[np.ndarray], multiplier: float, aim: Aim = "edges"
) -> float:
    """The norm above which records are scaled down.

    Parameters
    ----------
    singles : Marginals
    vectors : list of array
        The vectors of :func:`level_vectors`.
    multiplier : float
        Deviation of the noise over the sensitivity.
    aim : {"edges", "effects"}
        The purpose of the moments.

    Privacy
    -------
    Post-processing.
    """
    shares = [singles.shares(v) for v in range(len(vectors))]
    squares = [(own**2).sum(axis=1) for own in vectors]
    means = [float(share @ own) for share, own in zip(shares, squares, strict=True)]
    second = sum(float(share @ own**2) for share, own in zip(shares, squares, strict=True))
    apart = math.sqrt(max(0.0, second - sum(mean**2 for mean in means)))
    expected, longest = sum(means), sum(float(own.max()) for own in squares)
    bearable = NOISE_OVER_SAMPLING * math.sqrt(singles.n) / multiplier
    least, last = USUAL_NORM * expected, expected + LAST_NORM * apart
    return math.sqrt(min(max(least, min(bearable, last)) * LONGER[aim], longest))


class ClippedMoments(Singles):
    """Single variables, and the second moments of all levels of clipped records.

    Parameters
    ----------
    singles : Singles
    moments : array of shape (D, D)
        Mean products of the entries of :func:`level_vectors`.
    deviation : float
        Deviation of the noise of each entry off the diagonal.

    Attributes
    ----------
    n, levels, released, numbers, entries, moments, deviation

    Privacy
    -------
    All post-processing; it holds no data. Chapter 12, :prf:ref:`thm-clipped-moments`.
    """

    def __init__(self, singles: Singles, moments: np.ndarray, deviation: float):
        kept = singles.levels, singles.released, singles.numbers, singles.entries
        super().__init__(singles.n, *kept)
        if not Moment(moments, deviation).measured:
            problem = "a clipped moment or the deviation of its noise is too large"
            raise ValueError(f"{problem}: that is noise only; measure it for a larger rho")
        self.moments, self.deviation = moments, deviation

    def theorems(self) -> tuple[str, ...]:
        """Labels of the theorems behind the sensitivities of the released moments."""
        return ("thm-clipped-moments", *super().theorems())

    def _parts(self) -> list:
        return [*super()._parts(), self.moments, self.deviation]

    def to_receipt(self) -> dict[str, Any]:
        """The content for a receipt: single variables, and the upper triangle of the moments."""
        upper = [row[i:].tolist() for i, row in enumerate(self.moments)]
        return super().to_receipt() | {"clipped": {"moments": upper, "deviation": self.deviation}}


def clips(data: Counts, rho: float) -> bool:
    """Whether public facts decide for clipping; data that only answers counts is never clipped."""
    if not isinstance(data, Records):
        return False
    noise = pairs_sensitivity(data.cardinalities) * multiplier_of_rho(rho)
    little = data.d <= FEW or noise <= LITTLE_NOISE * math.sqrt(data.n)
    contrasts = sum(data.cardinalities) - data.d
    return bool(data.numbers) or not little or contrasts > most_entries(data.n, rho)


def measure_moments(
    data: Any, measure: Measurement, rho: float, *, clipped: bool, aim: Aim = "edges"
) -> Marginals:
    """Release single variables and the moments of all pairs, for rho in total.

    Parameters
    ----------
    data : Dataset, Counts or Records
    measure : callable
        The measurement, for instance :func:`~dpcgd.moments.interactions.paid` by an account.
    rho : float
    clipped : bool
        Whether the moments are :class:`ClippedMoments`, after a measurement of single variables;
        a category then has as many entries as the budget allows. Otherwise the moments are those
        of :class:`~dpcgd.moments.interactions.MeasuredMarginals`.
    aim : {"edges", "effects"}
        The purpose of clipped moments.

    Returns
    -------
    Marginals

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.

    Privacy
    -------
    rho-zCDP for replace-one neighbours: one Gaussian release of all pairs (chapter 11,
    :prf:ref:`thm-pairs`); or of single variables and then of clipped moments, whose vectors and
    bound follow from public facts and the first release (chapter 12,
    :prf:ref:`thm-clipped-moments`). With numbers, single variables take several releases (chapter
    16, :prf:ref:`thm-look-at-numbers`).
    """
    if not clipped:
        marginals = MeasuredMarginals(Tables(data), measure)
        marginals.measure_pairs(rho)
        return marginals.without_data()
    entries, numbers = entries_carried(data, data.n, rho), len(data.numbers)
    first = share_of_look(data.n, data.d - numbers, numbers, rho)
    if not numbers:
        widths = (own - 1 for own in data.cardinalities)
        kept = [entries[v].width if v in entries else own for v, own in enumerate(widths)]
        first = share_of_singles(kept)
    singles, used = measure_singles(data, measure, first * rho, entries)
    return _measured(data, singles, measure, rho - used, aim)


def _measured(data, singles, measure, rho, aim: Aim = "edges") -> ClippedMoments:
    """Measure the clipped moments, for rho; single variables give the vectors of the levels."""
    vectors = level_vectors(singles)
    bound = longest_kept(singles, vectors, multiplier_of_rho(rho), aim)
    size = sum(own.shape[1] for own in vectors)
    upper = np.triu_indices(size)
    halves = np.where(upper[0] == upper[1], math.sqrt(0.5), 1.0)
    values, deviation = np.zeros(len(halves)), 0.0
    if bound > 0:
        values, deviation = measure(
            lambda: data.clipped_sums(vectors, bound=bound)[upper] * halves,
            sensitivity=clipped_sensitivity(bound),
            rho=rho,
        )
    moments = np.zeros((size, size))
    moments[upper] = values / halves / singles.n
    moments += np.triu(moments, 1).T
    return ClippedMoments(singles, moments, deviation / singles.n)


class Blocks(NamedTuple):
    """Correlations of all scaled entries, (D, D), and the variance of their noise.

    The entries of each variable are rotated and scaled so that their covariance is the identity.
    The correlations of two variables form a block. A variable's block with itself is the identity.
    ``noise`` includes the noise of means, and the variance of one record for counts of few records.
    ``covariances`` and the ``deviations`` of their noise belong to the entries as they were
    released. ``rows`` holds the rows of each variable.
    """

    correlations: np.ndarray
    noise: np.ndarray
    covariances: np.ndarray
    deviations: np.ndarray
    n: int
    rows: list[slice]

    @property
    def variances(self) -> np.ndarray:
        """Variance of each entry, from noise and from sampling independent variables."""
        return self.noise + 1 / self.n

    def sums(self, entries: np.ndarray) -> np.ndarray:
        """Sums over the blocks: from (D, D) to (d, d)."""
        starts = [rows.start for rows in self.rows]
        return np.add.reduceat(np.add.reduceat(entries, starts, 0), starts, 1)


def rows_of(widths: Sequence[int]) -> list[slice]:
    """The rows of each variable in a matrix of all entries, from the numbers of entries.

    A variable of one level has no entries; it gets one row for a constant.

    Examples
    --------
    >>> rows_of([2, 0])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    ends = np.cumsum([0, *(max(1, width) for width in widths)]).tolist()
    return [slice(*ends_of_one) for ends_of_one in pairwise(ends)]


def blocks_of(marginals: Marginals) -> Blocks:
    """The released moments of all pairs as correlations, computed once.

    Raises
    ------
    KeyError
        If a pair has not been released.
    """
    work = _turned if isinstance(marginals, ClippedMoments) else _gathered
    return marginals.worked_out(("blocks",), lambda: work(marginals))


def _gathered(marginals) -> Blocks:
    """Correlations from moments of pairs: each variable is rotated and scaled by its own levels."""
    rows, n = rows_of(marginals.widths), marginals.n
    size = rows[-1].stop
    scale, covariances, spread = np.zeros((3, size, size))
    means, errors = np.zeros((2, size))
    varying = [v for v, levels in enumerate(marginals.levels) if levels > 1]
    for v in varying:
        means[rows[v]], errors[rows[v]] = marginals.moment(v)
        scale[rows[v], rows[v]] = marginals.uncorrelated(v, marginals.least_variance(v)).T
    for x, y in combinations(varying, 2):
        block = rows[x], rows[y]
        products, spread[block] = marginals.moment(x, y)
        covariances[block] = products - np.outer(means[rows[x]], means[rows[y]])
    wide = (scale**2).sum(axis=1)
    noise = spread**2 * np.outer(wide, wide)
    parts = (scale @ covariances @ scale.T, noise, covariances, spread)
    correlations, noise, covariances, spread = (part + part.T for part in parts)
    for v, own in enumerate(rows):
        correlations[own, own] = np.eye(own.stop - own.start)
        covariances[own, own] = marginals.variance(v) if v in varying else 1.0
    noise += _further_variance(wide, errors**2 * wide, scale @ means, n)
    return _seen(correlations, noise, covariances, spread, n, rows)


def _seen(correlations, noise, covariances, spread, n, rows) -> Blocks:
    """Blocks of limited entries, in which correlations that their noise hides are zero."""
    parts = (correlations, noise, covariances, spread)
    correlations, noise, covariances, spread = (np.clip(p, -LARGEST, LARGEST) for p in parts)
    for own in rows:
        noise[own, own] = 0.0
    correlations = np.where(noise <= HIDDEN, correlations, 0.0)
    return Blocks(correlations, noise, covariances, spread, n, rows)


def _further_variance(wide, off, means, n) -> np.ndarray:
    """Variance of correlations from the noise of means, and from counts of few records.

    `wide` is the squared length of each scaled entry, in entries before scaling. `off` is the
    variance of the noise of its mean. `means` are those of scaled entries that were not centred
    before products were taken.

    A product of means l and m with errors e and f is off by e m + f l + e f. The correlation of two
    rare levels is a Poisson count over the root of its mean. It is far from normal if the mean is
    below one; with the variance of one more record it is no larger than a normal number.
    """
    one_sided = np.outer(off, means**2)
    return one_sided + one_sided.T + np.outer(off, off) + np.outer(wide, wide) / n**2


def _turned(clipped) -> Blocks:
    """Correlations from clipped moments: each variable is rotated and scaled by its own block.

    Vectors are centred at noisy means, so moments contain products of the errors of these means.
    """
    rows, n = rows_of(clipped.widths), clipped.n
    size = rows[-1].stop
    scale, free, unit = np.zeros((size, size)), np.ones((size, size), bool), np.eye(size)
    lengths, off = np.zeros((2, size))
    for v, own in enumerate(rows):
        free[own, own] = False
        if clipped.levels[v] > 1:
            values, turned = np.linalg.eigh(clipped.moments[own, own])
            floor = least_variance(clipped.deviation, n)
            scale[own, own] = (turned / np.sqrt(np.maximum(values, floor))).T
            as_told = scale[own, own] @ _lengthening(clipped, v)
            lengths[own] = (as_told**2).sum(axis=1)
            off[own] = np.einsum("ij,jk,ik->i", as_told, noise_of_means(clipped, v), as_told)
    varying, wide = scale.any(axis=1), (scale**2).sum(axis=1)
    spread = np.where(free & np.outer(varying, varying), clipped.deviation, 0.0)
    noise = spread**2 * np.outer(wide, wide) + _further_variance(lengths, off, np.zeros(size), n)
    correlations = np.where(free, scale @ clipped.moments @ scale.T, unit)
    return _seen(correlations, noise, np.where(varying, clipped.moments, unit), spread, n, rows)
