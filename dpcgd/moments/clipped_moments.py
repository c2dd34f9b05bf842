"""Second moments of all levels at once, of records whose vectors are scaled and clipped.

After a first look at single variables, the levels of each become vectors that are longer the rarer
a level is. A record that is rare in many ways at once is scaled down, and so the noise need only
hide records that are rare in a few.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts, Records
from dpcgd.moments.interactions import (
    Marginals,
    MeasuredMarginals,
    Measurement,
    Moment,
    Subset,
    contrasts,
)
from dpcgd.privacy.conversions import multiplier_of_rho

__all__ = [
    "ClippedMoments",
    "clipped_sensitivity",
    "clips",
    "level_vectors",
    "longest_kept",
    "lengthening",
    "measure_moments",
    "share_of_singles",
    "vectors_of",
]

LEAST_SHARE, MOST_SHARE = 0.05, 0.2
"""The first look gets a share of the budget between these."""


FEW = 8
"""The pairs of so few variables are released as they are, for clipping gains nothing there."""


USUAL_NORM = 0.8
"""Records are scaled down at this many times the expected squared norm, or later."""


NOISE_OVER_SAMPLING = 0.5
"""Later, as long as the noise of an entry stays below so many deviations of sampling."""


LAST_NORM = 2.0
"""At so many deviations above the expected squared norm at the latest, if variables were
independent."""


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


def share_of_singles(levels) -> float:
    """Share of rho for the first look: with few variables single ones and pairs have noise alike.

    Examples
    --------
    >>> share_of_singles([2] * 10), share_of_singles([4] * 100)
    (0.2, 0.05)
    """
    size = sum(of - 1 for of in levels)
    varying = sum(of > 1 for of in levels)
    return min(MOST_SHARE, max(LEAST_SHARE, 2 * varying / max(1, size) ** 2))


def level_vectors(singles: Marginals) -> list[np.ndarray]:
    """A vector for each level of each variable: its contrasts, centred, times variance^(-1/4).

    Parameters
    ----------
    singles : Marginals
        With all single variables released.

    Returns
    -------
    list of array of shape (levels, levels - 1)
        Of one column of zeros for a variable of one level.

    Privacy
    -------
    Post-processing.
    """
    return [vectors_of(singles, v) for v in range(len(singles.levels))]


def vectors_of(singles: Marginals, v: int) -> np.ndarray:
    """The vectors of :func:`level_vectors` of one variable."""
    if singles.levels[v] == 1:
        return np.zeros((1, 1))
    return (contrasts(singles.levels[v]) - singles.moment(v).values) @ lengthening(singles, v)


def lengthening(singles: Marginals, v: int) -> np.ndarray:
    """Variance^(-1/4) of a variable's contrasts, as a matrix."""
    floor = singles.least_variance(v)
    values, turned = np.linalg.eigh(singles.variance(v))
    return (turned / np.maximum(values, floor) ** 0.25) @ turned.T  # whatever the vectors' signs


def longest_kept(singles: Marginals, vectors: list[np.ndarray], multiplier: float) -> float:
    """The norm from which on records are scaled down.

    Parameters
    ----------
    singles : Marginals
    vectors : list of array
        Of :func:`level_vectors`.
    multiplier : float
        Deviation of the noise over the sensitivity.

    Privacy
    -------
    Post-processing.
    """
    shares = [singles.table(v) for v in range(len(vectors))]
    squares = [(of**2).sum(axis=1) for of in vectors]
    means = [float(share @ of) for share, of in zip(shares, squares, strict=True)]
    second = sum(float(share @ of**2) for share, of in zip(shares, squares, strict=True))
    apart = math.sqrt(max(0.0, second - sum(mean**2 for mean in means)))
    expected, longest = sum(means), sum(float(of.max()) for of in squares)
    bearable = NOISE_OVER_SAMPLING * math.sqrt(singles.n) / multiplier
    least, last = USUAL_NORM * expected, expected + LAST_NORM * apart
    return math.sqrt(min(max(least, min(bearable, last)), longest))


class ClippedMoments(Marginals):
    """Single variables, and the second moments of all levels of records that were clipped.

    Parameters
    ----------
    n, levels, released
        As for :class:`~dpcgd.moments.interactions.Marginals`: the single variables.
    moments : array of shape (D, D)
        Mean products of the entries of :func:`level_vectors`.
    deviation : float
        Of the noise of each entry off the diagonal.

    Attributes
    ----------
    n, levels, released, moments, deviation

    Privacy
    -------
    All post-processing; it holds no data. Chapter 12, :prf:ref:`thm-clipped-moments`.
    """

    def __init__(
        self,
        n: int,
        levels,
        released: Mapping[Subset, Moment],
        moments: np.ndarray,
        deviation: float,
    ):
        super().__init__(n, levels, released)
        if not Moment(moments, deviation).measured:
            raise ValueError(
                "a clipped moment or the deviation of its noise is too large: that is noise only; "
                "measure it for a larger rho"
            )
        self.moments, self.deviation = moments, deviation

    def theorems(self, triples: str = "thm-triples") -> tuple[str, ...]:
        """Labels of the theorems that give the sensitivities of what has been released."""
        return ("thm-clipped-moments",)

    def _parts(self) -> list:
        return [*super()._parts(), self.moments, self.deviation]

    def to_receipt(self) -> dict[str, Any]:
        """What a receipt holds of it: single variables, and the upper triangle of the moments."""
        upper = [row[i:].tolist() for i, row in enumerate(self.moments)]
        clipped = {"moments": upper, "deviation": self.deviation}
        return {**super().to_receipt(), "clipped": clipped}


def clips(data: Counts) -> bool:
    """Whether clipped moments of this data can be had and are worth it, by public facts."""
    return data.d > FEW and isinstance(data, Records)


def measure_moments(data: Any, measure: Measurement, rho: float, *, clipped: bool) -> Marginals:
    """Release single variables and the moments of all pairs, for rho in all.

    Parameters
    ----------
    data : Dataset, Counts or Records
    measure : callable
        Who measures: :func:`~dpcgd.moments.interactions.paid` by an account, for instance.
    rho : float
    clipped : bool
        Whether the moments are :class:`ClippedMoments`, after a first look at single variables;
        else they are those of :class:`~dpcgd.moments.interactions.MeasuredMarginals`.

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
    :prf:ref:`thm-pairs`); or two, and vectors and bound of the second follow from the first
    (chapter 12, :prf:ref:`thm-clipped-moments`).
    """
    marginals = MeasuredMarginals(Tables(data), measure)
    if not clipped:
        marginals.measure_pairs(rho)
        return marginals.without_data()
    first = share_of_singles(marginals.levels) * rho
    marginals.measure_singles(first)
    return _measured(data, marginals.without_data(), measure, rho - first)


def _measured(data, singles, measure, rho) -> ClippedMoments:
    vectors = level_vectors(singles)
    bound = longest_kept(singles, vectors, multiplier_of_rho(rho))
    size = sum(of.shape[1] for of in vectors)
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
    return ClippedMoments(
        singles.n, singles.levels, singles.released, moments, deviation / singles.n
    )
