"""Matrices of moments, their sensitivities, and the partial correlation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from dpcgd.privacy.run import check_settings
from dpcgd.statistics.statistic import AgainstNumber

__all__ = ["FisherZ", "PartialCorrelation", "fisher_z", "partial_correlation"]
__all__ += ["clipped_gram", "gram_sensitivity", "second_moments", "second_moments_sensitivity"]


def partial_correlation(table: np.ndarray) -> float:
    """Partial correlation of the level numbers of x and y, given those of the other variables.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        In [-1, 1]; 0 if the others determine x or y linearly.

    Examples
    --------
    >>> round(partial_correlation(np.array([[3, 1], [1, 3]])), 3)
    0.5
    """
    table = np.asarray(table)
    if not table.any():
        return 0.0
    scores = np.indices(table.shape).reshape(table.ndim, -1)
    covariance = np.cov(scores, fweights=table.ravel(), bias=True)
    with_rest, rest = covariance[:2, 2:], covariance[2:, 2:]
    left = covariance[:2, :2] - with_rest @ np.linalg.pinv(rest, hermitian=True) @ with_rest.T
    if (np.diag(left) <= 1e-12 * np.diag(covariance)[:2]).any():
        return 0.0
    return float(np.clip(left[0, 1] / math.sqrt(left[0, 0] * left[1, 1]), -1, 1))


@dataclass(frozen=True)
class PartialCorrelation(AgainstNumber):
    """Absolute partial correlation of the level numbers.

    Parameters
    ----------
    critical : float
        Pairs below it count as independent.

    Privacy
    -------
    The replace-one sensitivity is 1, the whole range; one record can move it this far: chapter 03,
    :prf:ref:`thm-chi-squared`.

    Examples
    --------
    >>> PartialCorrelation().sensitivity(1000, (2, 2))
    1.0
    """

    critical: float = 0.02
    name: ClassVar[str] = "partial correlation"

    def value(self, table: np.ndarray) -> float:
        """``|r|``."""
        return abs(partial_correlation(table))

    def _bound(self, n, levels):
        return 1.0


def fisher_z(correlations: np.ndarray, n: int, tests: Sequence[Sequence[int]]) -> np.ndarray:
    """Logarithms of two-sided p-values of partial correlations, by Fisher's z.

    Parameters
    ----------
    correlations : array of shape (d, d)
    n : int
        Records behind them.
    tests : sequence of sequence of int
        x, y and the conditioning variables of each test; all of one length.

    Raises
    ------
    ValueError
        If there are too few records for this number of conditioning variables.

    Notes
    -----
    Exact in the limit for Gaussian records.

    Examples
    --------
    >>> round(math.exp(fisher_z(np.array([[1, 0.5], [0.5, 1]]), 28, [(0, 1)])[0]), 4)
    0.006
    """
    tested = np.array(tests, int)
    given = tested.shape[1] - 2
    if n - given <= 3:
        raise ValueError(f"{n} records cannot condition on {given} variables; lower max_order")
    precision = np.linalg.pinv(correlations[tested[:, :, None], tested[:, None, :]], hermitian=True)
    with np.errstate(over="ignore"):
        scale = np.sqrt(np.maximum(precision[:, 0, 0] * precision[:, 1, 1], 0.0))
    partial = -precision[:, 0, 1] / np.where(scale > 0, scale, np.inf)
    z = np.arctanh(np.clip(partial, -1 + 1e-15, 1 - 1e-15))
    return np.minimum(0.0, math.log(2) + log_ndtr(-math.sqrt(n - given - 3) * np.abs(z)))


@dataclass(frozen=True)
class FisherZ:
    """Fisher's z test of the partial correlations of numbers, for PC without privacy.

    Parameters
    ----------
    alpha : float
        Level of each test.

    Privacy
    -------
    None: one record can move a partial correlation over its whole range, and no smaller sensitivity
    is known. Chapter 16, :prf:ref:`thm-no-partial-correlation`.
    """

    alpha: float = 0.01
    name: ClassVar[str] = "Fisher's z"
    proved: ClassVar[bool] = False

    def __post_init__(self):
        check_settings(None, alpha=self.alpha)

    @property
    def critical(self) -> float:
        """The logarithm of alpha."""
        return math.log(self.alpha)

    def value(self, correlations: np.ndarray, n: int, test: Sequence[int]) -> float:
        """Logarithm of the p-value of one test."""
        return float(fisher_z(correlations, n, [test])[0])


def clipped_gram(rows: np.ndarray, *, bound: float) -> np.ndarray:
    """X^T X / n of rows that are scaled down to a norm of at most `bound`.

    Parameters
    ----------
    rows : array of shape (n, d)
    bound : float
        Public.

    Returns
    -------
    array of shape (d, d)

    Raises
    ------
    ValueError
        If the bound is not between 1e-100 and 1e100, so that its square is a finite number.

    Privacy
    -------
    Replace-one L2 sensitivity: :func:`gram_sensitivity`. Chapter 03, :prf:ref:`thm-table-gram`.

    Examples
    --------
    >>> clipped_gram(np.array([[3.0, 4.0], [0.0, 1.0]]), bound=1.0)
    array([[0.18, 0.24],
           [0.24, 0.82]])
    """
    rows = _shortened(rows, bound)
    return rows.T @ rows / len(rows)


def _shortened(rows, bound) -> np.ndarray:
    if not 1e-100 <= bound <= 1e100:
        raise ValueError(f"bound must lie between 1e-100 and 1e100, not {bound!r}")
    with np.errstate(over="ignore"):  # a row whose norm is too large a number counts as zero
        norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * (bound / np.maximum(norm, bound))


def gram_sensitivity(n: int, *, bound: float) -> float:
    """Replace-one L2 sensitivity of :func:`clipped_gram`, of the matrix or its upper triangle.

    Notes
    -----
    sqrt(2) bound^2 / n, reached by two orthogonal rows of full norm. Chapter 03,
    :prf:ref:`thm-table-gram`.

    Examples
    --------
    >>> round(gram_sensitivity(1000, bound=3.0), 6)
    0.012728
    """
    return math.sqrt(2) * bound * bound / n


def second_moments(rows: np.ndarray, *, bound: float) -> np.ndarray:
    """Means and mean products of columns in [-1, 1], of rows scaled down to a norm of `bound`.

    Parameters
    ----------
    rows : array of shape (n, d), in [-1, 1]
    bound : float
        Public; with sqrt(d) no row is scaled.

    Returns
    -------
    array of shape (d + 1, d + 1)
        U^T U / n, where U is a column of ones followed by the rows. Its first row holds the means.

    Privacy
    -------
    Replace-one L2 sensitivity of the upper triangle: :func:`second_moments_sensitivity`. Chapter
    07, :prf:ref:`thm-second-moments`.

    Examples
    --------
    >>> second_moments(np.array([[1.0, -1.0], [1.0, 1.0]]), bound=2.0)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    rows = np.column_stack([np.ones(len(rows)), _shortened(rows, bound)])
    return rows.T @ rows / len(rows)


def second_moments_sensitivity(n: int, d: int, *, bound: float) -> float:
    """Replace-one L2 sensitivity of the upper triangle of :func:`second_moments`.

    Notes
    -----
    It is the smaller of two bounds. (1 + d) / n holds because the columns are in [-1, 1], and is
    reached for odd d. sqrt((1 + bound^2)^2 + bound^2) / n holds for rows of norm at most `bound`.
    Chapter 07, :prf:ref:`thm-second-moments`.

    Examples
    --------
    >>> second_moments_sensitivity(1000, 11, bound=4.0)
    0.012
    """
    longest = bound * bound
    return min(1 + d, math.sqrt((1 + longest) ** 2 + longest)) / n
