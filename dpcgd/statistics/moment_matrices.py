"""Matrices of moments, their sensitivities, and the partial correlation."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcgd.statistics.statistic import AgainstNumber

__all__ = [
    "PartialCorrelation",
    "clipped_gram",
    "gram_sensitivity",
    "partial_correlation",
    "second_moments",
    "second_moments_sensitivity",
]


def partial_correlation(table: np.ndarray) -> float:
    """Correlation of the level numbers of x and y, both regressed on those of the others.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        In [-1, 1]; 0 where nothing is left of x or y to correlate.

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
    Replace-one sensitivity 1, its whole range. One person can move it all the way: chapter 03,
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
        If the bound is not between 1e-100 and 1e100, whose squares are numbers.

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
        U^T U / n, where U is the rows behind a column of ones: its first row holds the means.

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
    (1 + d) / n because the columns lie in [-1, 1], reached for odd d; with rows no longer than
    `bound`, sqrt((1 + bound^2)^2 + bound^2) / n, whichever is less. Chapter 07,
    :prf:ref:`thm-second-moments`.

    Examples
    --------
    >>> second_moments_sensitivity(1000, 11, bound=4.0)
    0.012
    """
    longest = bound * bound
    return min(1 + d, math.sqrt((1 + longest) ** 2 + longest)) / n


def rescaled(values: np.ndarray) -> np.ndarray:
    """Columns in units in which their largest number is about one.

    Their squares are then numbers. Units change by powers of two, which changes no digit.
    """
    return np.ldexp(values, -np.frexp(np.abs(values).max(axis=0))[1])


def checked_columns(values: np.ndarray) -> np.ndarray:
    """Reals of shape (n, d) of which no column is constant; anything else is refused."""
    values = np.asarray(values, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"values must have one row a record, at least two, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a value is missing or infinite; drop or impute such records first")
    constant = np.flatnonzero(values.min(axis=0) == values.max(axis=0))
    if len(constant):
        raise ValueError(f"column {constant[0]} is constant; leave it out of the analysis")
    return values
