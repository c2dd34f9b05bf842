"""Moments of all pairs: of records that were clipped, or one by one; and both as correlations.

After a first look at single variables, the levels of each become vectors that are longer the rarer
a level is. A record that is rare in many ways at once is scaled down, and so the noise need only
hide records that are rare in a few.
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

__all__ = [
    "Aim",
    "Blocks",
    "ClippedMoments",
    "blocks_of",
    "clipped_sensitivity",
    "clips",
    "level_vectors",
    "longest_kept",
    "measure_moments",
    "rows_of",
    "share_of_singles",
    "vectors_of",
]

LEAST_SHARE, MOST_SHARE = 0.05, 0.2
"""The first look gets a share of the budget between these."""

FEW = 8
"""The pairs of so few variables are released as they are, for clipping gains nothing there."""


LITTLE_NOISE = 0.2
"""So are those of more, where their noise is at most this many deviations of sampling."""


USUAL_NORM = 0.8
"""Records are scaled down at this many times the expected squared norm, or later."""


NOISE_OVER_SAMPLING = 0.5
"""Later, as long as the noise of an entry stays below so many deviations of sampling."""


LAST_NORM = 2.0
"""At so many deviations above the expected squared norm at the latest, if variables were
independent."""


LARGEST = 1e6
"""Larger correlations, covariances and deviations are nothing but noise, and are cut off here."""

HIDDEN = 0.25
"""A correlation whose noise has a larger variance tells nothing, and counts as zero."""

Aim = Literal["edges", "effects"]
"""What a release is for."""

LONGER: dict[str, float] = {"edges": 1.0, "effects": 2.5}
"""How much longer a squared norm may be by aim: edges want little noise, effects no bias."""


def clipped_sensitivity(bound: float) -> float:
    """Replace-one L2 sensitivity of clipped sums: their upper triangle, the diagonal over sqrt(2).

    Notes
    -----
    Half of the squared norm of u u^T - w w^T, which for vectors u and w no longer than the bound is
    at most bound^4. Chapter 12, :prf:ref:`thm-clipped-moments`.

    Examples
    --------
    >>> clipped_sensitivity(3.0)
    9.0
    """
    return bound * bound


def share_of_singles(widths: Sequence[int]) -> float:
    """Share of rho for the first look: with few variables single ones and pairs have noise alike.

    Parameters
    ----------
    widths : sequence of int
        Entries of each variable.

    Examples
    --------
    >>> share_of_singles([1] * 10), share_of_singles([3] * 100)
    (0.2, 0.05)
    """
    varying = sum(width > 0 for width in widths)
    return min(MOST_SHARE, max(LEAST_SHARE, 2 * varying / max(1, sum(widths)) ** 2))


def level_vectors(singles: Singles) -> list[np.ndarray]:
    """A vector for each level of each variable: its entries, centred, times variance^(-1/4).

    Parameters
    ----------
    singles : Marginals
        With all single variables released.

    Returns
    -------
    list of array of shape (levels, entries)
        Of one column of zeros for a variable of one level.

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
    """Variance^(-1/4) of a variable's entries, as a matrix; numbers have lengths of their own."""
    if v in singles.numbers:
        return np.eye(singles.widths[v])
    columns = singles.columns(v)
    values, turned = np.linalg.eigh((columns.T * singles.table(v)) @ columns)
    floor = singles.least_variance(v)
    return (turned / np.maximum(values, floor) ** 0.25) @ turned.T  # whatever the vectors' signs


def _blur(singles, v) -> np.ndarray:
    """Covariance of the noise in the means at which a variable's entries are centred.

    The largest directions of a block lean towards it, so that of categories is taken for wider.
    """
    deviation = singles.moment(v).deviation
    if v in singles.numbers:
        return np.diag(singles.numbers[v].errors(deviation) ** 2)
    columns = singles.columns(v)
    return columns.T @ columns * deviation**2 * math.sqrt(columns.shape[1])


def longest_kept(
    singles: Singles, vectors: list[np.ndarray], multiplier: float, aim: Aim = "edges"
) -> float:
    """The norm from which on records are scaled down.

    Parameters
    ----------
    singles : Marginals
    vectors : list of array
        Of :func:`level_vectors`.
    multiplier : float
        Deviation of the noise over the sensitivity.
    aim : {"edges", "effects"}
        What the moments are for.

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
    """Single variables, and the second moments of all levels of records that were clipped.

    Parameters
    ----------
    singles : Singles
    moments : array of shape (D, D)
        Mean products of the entries of :func:`level_vectors`.
    deviation : float
        Of the noise of each entry off the diagonal.

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
            raise ValueError(
                "a clipped moment or the deviation of its noise is too large: that is noise only; "
                "measure it for a larger rho"
            )
        self.moments, self.deviation = moments, deviation

    def theorems(self) -> tuple[str, ...]:
        """Labels of the theorems that give the sensitivities of what has been released."""
        return ("thm-clipped-moments", *super().theorems())

    def _parts(self) -> list:
        return [*super()._parts(), self.moments, self.deviation]

    def to_receipt(self) -> dict[str, Any]:
        """What a receipt holds of it: single variables, and the upper triangle of the moments."""
        upper = [row[i:].tolist() for i, row in enumerate(self.moments)]
        clipped = {"moments": upper, "deviation": self.deviation}
        return {**super().to_receipt(), "clipped": clipped}


def clips(data: Counts, rho: float) -> bool:
    """Whether moments of this data are to be clipped, by public facts; counts alone cannot be."""
    if not isinstance(data, Records):
        return False
    noise = pairs_sensitivity(data.cardinalities) * multiplier_of_rho(rho)
    little = data.d <= FEW or noise <= LITTLE_NOISE * math.sqrt(data.n)
    contrasts = sum(data.cardinalities) - data.d
    return bool(data.numbers) or not little or contrasts > most_entries(data.n, rho)


def measure_moments(
    data: Any, measure: Measurement, rho: float, *, clipped: bool, aim: Aim = "edges"
) -> Marginals:
    """Release single variables and the moments of all pairs, for rho in all.

    Parameters
    ----------
    data : Dataset, Counts or Records
    measure : callable
        Who measures: :func:`~dpcgd.moments.interactions.paid` by an account, for instance.
    rho : float
    clipped : bool
        Whether the moments are :class:`ClippedMoments`, after a first look at single variables,
        with as many entries a category as the budget carries; else they are those of
        :class:`~dpcgd.moments.interactions.MeasuredMarginals`.
    aim : {"edges", "effects"}
        What clipped moments are for.

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
    :prf:ref:`thm-clipped-moments`).
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
    """The moments of what single variables say of each level, for rho."""
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
    """Correlations of all scaled entries, (D, D), and the variance that noise gives each of them.

    Each variable's contrasts, or what entries it has, are turned and scaled so that their
    covariance is the identity; what is left of two variables is a block of correlations. A
    variable's block with itself is the identity. ``noise`` holds the noise of means too, and that
    of single records where few tell. ``covariances`` and the ``deviations`` of their noise are
    those of the entries as they were released. ``rows`` says where each variable's rows are.
    """

    correlations: np.ndarray
    noise: np.ndarray
    covariances: np.ndarray
    deviations: np.ndarray
    n: int
    rows: list[slice]

    @property
    def variances(self) -> np.ndarray:
        """Of each entry, from noise and from sampling independent variables."""
        return self.noise + 1 / self.n

    def sums(self, entries: np.ndarray) -> np.ndarray:
        """Sums over the blocks: from (D, D) to (d, d)."""
        starts = [rows.start for rows in self.rows]
        return np.add.reduceat(np.add.reduceat(entries, starts, 0), starts, 1)


def rows_of(widths: Sequence[int]) -> list[slice]:
    """Where the rows of each variable are, by its number of entries.

    A variable of one level has none; a constant stands in for it.

    Examples
    --------
    >>> rows_of([2, 0])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    ends = np.cumsum([0, *(max(1, width) for width in widths)]).tolist()
    return [slice(*ends_of_one) for ends_of_one in pairwise(ends)]


def blocks_of(marginals: Marginals) -> Blocks:
    """The released moments of all pairs as correlations, worked out once.

    Raises
    ------
    KeyError
        If a pair has not been released.
    """
    work = _turned if isinstance(marginals, ClippedMoments) else _gathered
    return marginals.worked_out(("blocks",), lambda: work(marginals))


def _gathered(marginals) -> Blocks:
    """The moments of pairs as correlations: each variable turned and scaled by its own levels."""
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
    correlations, noise, covariances, spread = (_limited(part + part.T) for part in parts)
    for v, own in enumerate(rows):
        correlations[own, own] = np.eye(own.stop - own.start)
        covariances[own, own] = marginals.variance(v) if v in varying else 1.0
    noise += _further_variance(wide, errors**2 * wide, scale @ means, n)
    return _seen(Blocks(correlations, noise, covariances, spread, n, rows))


def _seen(blocks: Blocks) -> Blocks:
    """Blocks without the correlations that are hidden by their noise."""
    noise = _limited(blocks.noise)
    for own in blocks.rows:
        noise[own, own] = 0.0
    correlations = np.where(noise <= HIDDEN, blocks.correlations, 0.0)
    return blocks._replace(correlations=correlations, noise=noise)


def _limited(entries) -> np.ndarray:
    return np.clip(entries, -LARGEST, LARGEST)


def _further_variance(wide, off, means, n) -> np.ndarray:
    """Variance of correlations from the noise of means, and from single records where few tell.

    Of the squared length of each scaled entry, in entries before they were scaled, the variance of
    the noise of its mean, and the means of scaled entries that were not centred before products
    were taken.

    A product of means with errors e and f is off by e m + f l + e f. The correlation of two rare
    levels is a Poisson count over the root of its mean, far from normal where that is below one;
    with the variance of one record more it is no larger than a normal number.
    """
    one_sided = np.outer(off, means**2)
    return one_sided + one_sided.T + np.outer(off, off) + np.outer(wide, wide) / n**2


def _turned(clipped) -> Blocks:
    """The moments as correlations: each variable turned and scaled by its own block.

    Vectors are centred at noisy means, so moments hold products of these errors.
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
            off[own] = np.einsum("ij,jk,ik->i", as_told, _blur(clipped, v), as_told)
    varying, wide = scale.any(axis=1), (scale**2).sum(axis=1)
    spread = np.where(free & np.outer(varying, varying), clipped.deviation, 0.0)
    noise = spread**2 * np.outer(wide, wide) + _further_variance(lengths, off, np.zeros(size), n)
    correlations = np.where(free, scale @ clipped.moments @ scale.T, unit)
    covariances = np.where(varying, clipped.moments, unit)
    correlations, noise, covariances, spread = map(
        _limited, (correlations, noise, covariances, spread)
    )
    return _seen(Blocks(correlations, noise, covariances, spread, n, rows))
