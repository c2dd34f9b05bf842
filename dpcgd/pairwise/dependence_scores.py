"""Scores of the dependence of residuals on their input, with their sensitivities."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import kendalltau, rankdata

from dpcgd.datasets.arguments import as_doubles
from dpcgd.pairwise.kernel_ridge import gaussian_kernel
from dpcgd.privacy.budget import ROOM
from dpcgd.privacy.mechanisms import laplace, propose_test_release

__all__ = ["Hsic", "Iqr", "Kendall", "DependenceScore", "Spearman"]

MOST_LOG = 710.0
"""A number above the logarithm of any finite range."""


BLOCK = 2**22
"""Number of entries of a kernel matrix that are in memory at once."""


class DependenceScore:
    """A score that is larger for more dependence of residual and input; most scores are bounded.

    One record moves a bounded score by a bounded amount, for any data. A score without a bound has
    a release method of its own.
    """

    name: ClassVar[str]
    theorems: ClassVar[tuple[str, ...]] = ()
    spends_delta: ClassVar[bool] = False
    value: Callable[[np.ndarray, np.ndarray], float]
    sensitivity: Callable[[int], float]
    residual_sensitivity: Callable[[int, float], float]

    def scale(self, m: int, change: float, epsilon: float) -> float:
        """Scale of the Laplace noise for m test records.

        Parameters
        ----------
        m : int
        change : float
            Bound on the change of any difference of two residuals by one training record; 0 if
            training records are not protected.
        epsilon : float
        """
        return self._moves(m, change) / epsilon

    def _moves(self, m: int, change: float) -> float:
        """The most that one record of either half moves the score."""
        return max(self.sensitivity(m), self.residual_sensitivity(m, change))

    def release(self, columns, *, m, change, epsilon, delta, account, noise) -> float | None:
        """The score with Laplace noise.

        Parameters
        ----------
        columns : callable
            Returns inputs and residuals of the m test records.
        m, change, epsilon
            As for :meth:`scale`.
        delta : float
            Not used.
        account, noise

        Raises
        ------
        BudgetSpent
            Before the columns are computed, if the account cannot pay.

        Privacy
        -------
        (epsilon, 0) for neighbours that differ in one test record or, with the `change` of the
        regression, in one training record. Chapters 08 and 09.
        """
        return laplace(
            lambda: self.value(*columns()),
            sensitivity=self._moves(m, change),
            epsilon=epsilon,
            account=account,
            noise=noise,
        )


class _Rank(DependenceScore):
    """A rank score; if all residuals move a little, every rank can change."""

    theorems: ClassVar[tuple[str, ...]] = ("thm-anm-ranks",)

    def residual_sensitivity(self, m: int, change: float) -> float:
        """Proved bound if every residual moves by at most `change`: the score's whole range."""
        return 1.0 if change > 0 else 0.0


@dataclass(frozen=True)
class Spearman(_Rank):
    """The absolute value of Spearman's rank correlation, without a correction for ties.

    Notes
    -----
    12 / (m^3 - m) times the sum of the products of centred mid-ranks. Spearman (1904).

    Examples
    --------
    >>> Spearman().value(np.arange(5), np.arange(5) ** 2)
    1.0
    >>> Spearman().sensitivity(99)
    0.06
    """

    name: ClassVar[str] = "Spearman"

    def value(self, x: np.ndarray, residual: np.ndarray) -> float:
        """Between 0 and 1; columns of one value give 0."""
        m = len(x)
        if m < 2:
            return 0.0
        x, residual = (rankdata(column) - (m + 1) / 2 for column in (x, residual))
        return abs(12 * float(x @ residual) / (m**3 - m))

    def sensitivity(self, m: int) -> float:
        """Proved bound if one of m >= 2 records is replaced; reached from m = 5 on.

        Chapters 03 and 08, :prf:ref:`thm-anm-ranks`.
        """
        return 6 / (m + 1)


@dataclass(frozen=True)
class Kendall(_Rank):
    """The absolute value of Kendall's tau-a: ties count as neither concordant nor discordant.

    Notes
    -----
    Kendall (1938).

    Examples
    --------
    >>> Kendall().value(np.arange(5), np.array([0, 1, 2, 4, 3]))
    0.8
    >>> Kendall().sensitivity(100)
    0.04
    """

    name: ClassVar[str] = "Kendall"

    def value(self, x: np.ndarray, residual: np.ndarray) -> float:
        """Between 0 and 1; columns of one value give 0."""
        fewest = min(len(np.unique(column)) for column in (x, residual))
        if fewest < 2:
            return 0.0
        tau_c = kendalltau(x, residual, variant="c").statistic
        return abs(round(tau_c * len(x) ** 2 * (fewest - 1) / fewest / 2)) / math.comb(len(x), 2)

    def sensitivity(self, m: int) -> float:
        """Proved bound if one of m >= 2 records is replaced; reached from m = 5 on.

        Chapters 03 and 08, :prf:ref:`thm-anm-ranks`.
        """
        return 4 / m


@dataclass(frozen=True)
class Hsic(DependenceScore):
    """The Hilbert-Schmidt independence criterion with Gaussian kernels of a fixed width.

    Parameters
    ----------
    width : float
        Width of both kernels, in units of the public half-ranges. A width from the data, such as
        the usual median of distances, would leak, because no mechanism would cover it.

    Raises
    ------
    ValueError
        If the width is not positive and finite.

    Notes
    -----
    trace(K H L H) / (m - 1)^2, Gretton et al. (2005). Kernel matrices are made block by block, in
    constant memory and in time of order m^2; that has no effect on the guarantee.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 50)
    >>> Hsic().value(x, x) > 3 * Hsic().value(x, np.sin(20 * x))
    True
    >>> Hsic().sensitivity(100)
    0.0204
    """

    width: float = 0.3
    name: ClassVar[str] = "HSIC"
    theorems: ClassVar[tuple[str, ...]] = ("thm-hsic-test",)

    def __post_init__(self):
        as_doubles(self, ["width"])
        if not 0 < self.width < math.inf:
            raise ValueError(f"width must be positive and finite, not {self.width!r}")

    def value(self, x: np.ndarray, residual: np.ndarray) -> float:
        """At least 0; columns of one value give 0."""
        m, product, sums = len(x), 0.0, []
        if m < 2:
            return 0.0
        rows = max(1, BLOCK // m)
        for start in range(0, m, rows):
            some = slice(start, start + rows)
            ours, theirs = (gaussian_kernel(c[some], c, self.width) for c in (x, residual))
            product += float(np.einsum("ij,ij->", ours, theirs))
            sums.append((ours.sum(axis=1), theirs.sum(axis=1)))
        ours, theirs = map(np.concatenate, zip(*sums, strict=True))
        trace = product - 2 / m * float(ours @ theirs) + float(ours.sum() * theirs.sum()) / m**2
        return max(0.0, trace) / (m - 1) ** 2

    def sensitivity(self, m: int) -> float:
        """Proved bound if one of m >= 2 records is replaced.

        Chapter 08, :prf:ref:`thm-hsic-test`.
        """
        return 2 / m + 4 / m**2

    def residual_sensitivity(self, m: int, change: float) -> float:
        """Proved bound if differences of residuals move by at most `change`.

        Chapter 09, :prf:ref:`thm-hsic-training`.
        """
        return math.exp(-0.5) / self.width * change * m / (2 * (m - 1))


@dataclass(frozen=True)
class Iqr(DependenceScore):
    """Log interquartile range of the input plus that of the residual.

    One record can move this score without limit, so it is released by propose-test-release.

    Parameters
    ----------
    width : float
        Width of the bins of a log interquartile range. The proposed change of the sum is twice
        that.
    floor : float
        The least interquartile range, in units of the public half-range; smaller ones become it.

    Raises
    ------
    ValueError
        If either is not positive and finite, or the width not between 1e-9 and 1e9.

    Notes
    -----
    Kusner et al. (2016); Dwork and Lei (2009) for the bins and their two grids.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 101)
    >>> round(Iqr().value(x, x), 9), Iqr().distance(x)
    (0.0, 11)
    """

    width: float = 0.5
    floor: float = 2.0**-10
    name: ClassVar[str] = "IQR"
    theorems: ClassVar[tuple[str, ...]] = ("thm-iqr-distance", "thm-tested-release")
    spends_delta: ClassVar[bool] = True

    def __post_init__(self):
        as_doubles(self, ["width", "floor"])
        if not 1e-9 <= self.width <= 1e9:
            raise ValueError(f"width must lie between 1e-9 and 1e9, not {self.width!r}")
        if not 0 < self.floor < math.inf:
            raise ValueError(f"floor must be positive and finite, not {self.floor!r}")

    def value(self, x: np.ndarray, residual: np.ndarray) -> float:
        """The score, at least twice log(floor); one record can move it without limit."""
        logs = (self._log(_spread(np.sort(column))) for column in (x, residual))
        return float(sum(min(log, MOST_LOG) for log in logs))

    def _log(self, spread):
        return np.log(np.maximum(spread, self.floor))

    def distance(self, values: np.ndarray, *, change: float = 0.0) -> int:
        """Replacements until one more could move a log interquartile range by a bin's width.

        Parameters
        ----------
        values : array of numbers, shape (m,)
        change : float
            Change of every value by one replaced training record; a test record replaces a value.

        Returns
        -------
        int
            A lower bound. It has sensitivity 1.

        Notes
        -----
        In each of two grids of bins, shifted by half a width, count the records that must be
        replaced to leave the bin; the larger count, less one. Chapter 08,
        :prf:ref:`thm-iqr-distance`.
        """
        low, high = _reach(np.sort(values), change * (1 + ROOM))
        low, high = np.minimum(self._log(low), MOST_LOG), self._log(high)
        counts = []
        for shift in (0.0, 0.5):
            first, last = (np.floor(logs / self.width - shift) for logs in (low, high))
            outside = (first < first[0]) | (last > first[0])
            counts.append(int(outside.argmax()) if outside.any() else len(low))
        return max(counts) - 1

    def scale(self, m: int, change: float, epsilon: float) -> float:
        """Scale of the Laplace noise: half of epsilon pays for it."""
        return 2 * self.width / (epsilon / 2)

    def release(self, columns, *, m, change, epsilon, delta, account, noise) -> float | None:
        """The score with Laplace noise, or None if one record may move it too far.

        Parameters, result and errors are as for other scores.

        Privacy
        -------
        (epsilon, delta), as :func:`~dpcgd.privacy.mechanisms.propose_test_release` with half of
        epsilon for the test and half for the release. Chapter 08, :prf:ref:`thm-iqr-distance`.
        """

        def distance():
            x, residual = columns()
            return min(self.distance(x), self.distance(residual, change=change))

        return propose_test_release(
            lambda: self.value(*columns()),
            distance,
            proposed=2 * self.width,
            epsilon=epsilon / 2,
            delta=delta,
            account=account,
            noise=noise,
        )


def _spread(values: np.ndarray) -> float:
    """Interquartile range of sorted values."""
    first = (len(values) - 1) // 4
    with np.errstate(over="ignore"):
        return values[-1 - first] - values[first]


def _reach(values: np.ndarray, change: float) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest interquartile range after k replacements, k = 0, 1, ..."""
    first = (len(values) - 1) // 4
    third = len(values) - 1 - first
    outward = np.pad(values, (1, 1), constant_values=(-np.inf, np.inf))
    low, high = [_spread(values)], [_spread(values)]
    for k in range(1, third - first + 2):
        up = np.arange(k + 1)  # so many ranks at the third quartile, the others at the first
        wider = outward[np.minimum(third + up + 1, len(values) + 1)]
        narrower = values[third - np.minimum(up, third)]
        with np.errstate(over="ignore"):
            wider = wider - outward[np.maximum(first - (k - up) + 1, 0)]
            narrower = narrower - values[np.minimum(first + k - up, len(values) - 1)]
            high.append(max(wider.max(), high[-1] + 2 * change))
            low.append(max(0.0, min(narrower.min(), low[-1] - 2 * change)))
    return np.array(low), np.array(high)
