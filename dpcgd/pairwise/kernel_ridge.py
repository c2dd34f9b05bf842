"""Kernel ridge regression in one dimension, with proved bounds on the effect of one record."""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve

from dpcgd.datasets.arguments import as_doubles

__all__ = ["Fitted", "GaussianRidge", "Ridge"]

GRID = 2.0**-20
"""Training inputs are rounded to multiples of this number, so that no gap is tiny."""


LEAST_PENALTY = 1e-9
"""The least penalty; with a smaller one a kernel matrix may be singular in double precision."""


MOST_RECORDS = 5_000
"""Most records for which a kernel matrix is built."""


def gaussian_kernel(x: np.ndarray, z: np.ndarray, width: float) -> np.ndarray:
    """exp(-(x - z)^2 / (2 width^2)), a row for each x and a column for each z."""
    with np.errstate(over="ignore"):
        distances = np.subtract.outer(np.asarray(x, float), z) / width
        distances *= distances
    distances *= -0.5
    return np.exp(distances, out=distances)


@dataclass(frozen=True)
class Ridge:
    """Kernel ridge regression with the kernel ``exp(-|x - x'| / width)``.

    Fitting minimises ``penalty / 2 |w|^2 + mean (f(x_i) - y_i)^2`` over f(x) = <w, k(x, .)>.

    Parameters
    ----------
    penalty : float
        At least 1e-9, at most 1. Public.
    width : float
        Width of the kernel, on the scale of x. Public.

    Raises
    ------
    ValueError
        If either is out of range.

    Notes
    -----
    The kernel is Markov: the inverse of its matrix has three diagonals. So fitting takes a sort and
    a few passes over the records, and a prediction depends on the two nearest inputs only.
    Predictions stay within the range of y, unlike those of :class:`GaussianRidge`. Chapter 09.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 101)
    >>> fitted = Ridge(penalty=1e-4).fit(x, np.sin(3 * x))
    >>> bool(np.abs(fitted.predict(x) - np.sin(3 * x)).max() < 0.02)
    True
    >>> round(Ridge(penalty=0.1).change(1000), 4)
    0.052
    """

    penalty: float = 0.003
    width: float = 0.5

    def __post_init__(self):
        as_doubles(self, ["penalty", "width"])
        if not LEAST_PENALTY <= self.penalty <= 1:
            raise ValueError(f"penalty must be from {LEAST_PENALTY:g} to 1, not {self.penalty!r}")
        if not 0 < self.width < math.inf:
            raise ValueError(f"width must be positive and finite, not {self.width!r}")

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Fitted":
        """Fit y on x.

        Parameters
        ----------
        x, y : arrays of numbers, shape (n,)
            y in [-1, 1], as are the columns of `Dataset.scaled`.

        Raises
        ------
        ValueError
            If there are fewer than two records, lengths differ, a value is not finite or a y lies
            outside [-1, 1].
        """
        x, y = _checked(x, y)
        with np.errstate(over="ignore"):
            rounded = np.round(x / GRID) * GRID
            knots, knot = np.unique(np.where(np.isinf(rounded), x, rounded), return_inverse=True)
            gaps = np.clip(np.diff(knots) / self.width, 1e-250, 300)
        # a diagonal entry exceeds the rest of its row by this; their sum would round it away
        strength = len(x) * self.penalty / 2
        pulls = strength * np.tanh(gaps / 2) / 2
        excess = np.bincount(knot) + strength / 2 * np.eye(1, len(knots))[0]
        excess[-1] += strength / 2
        excess[:-1] += pulls
        excess[1:] += pulls
        values = np.bincount(knot, y)
        _eliminate(excess, strength / (2 * np.sinh(gaps)), values)
        return _Interpolant(knots, values, self.width)

    def change(self, n: int) -> float:
        """Largest change of a prediction, or of a difference of two, by one of n records.

        Privacy
        -------
        A proved bound, for any records, up to rounding: 3 sqrt(3) / (n penalty). Chapter 09,
        :prf:ref:`thm-markov-change`.
        """
        return 3 * math.sqrt(3) / (n * self.penalty)


@njit(cache=True, nogil=True, error_model="numpy")
def _eliminate(pivots, beside, values):
    """Solve equations of three diagonals in place; no two positive numbers are subtracted.

    A diagonal entry is what is `beside` it in its row, and `pivots` on top of that.
    """
    parts = np.empty(len(beside))
    for i, link in enumerate(beside):
        parts[i] = link / (pivots[i] + link)
        pivots[i + 1] += parts[i] * pivots[i]
        pivots[i] += link
        values[i + 1] += parts[i] * values[i]
    values[-1] /= pivots[-1]
    for i in range(len(beside) - 1, -1, -1):
        values[i] = values[i] / pivots[i] + parts[i] * values[i + 1]


@dataclass(frozen=True)
class _Interpolant:
    """A function that solves f'' = f / width^2 between knots, and decays outside of them."""

    knots: np.ndarray
    values: np.ndarray
    width: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, float)
        knots = np.concatenate(([-np.inf], self.knots, [np.inf]))
        values = np.concatenate(([0.0], self.values, [0.0]))
        right = np.searchsorted(knots[1:-1], x) + 1
        with np.errstate(over="ignore"):
            before, after = (x - knots[right - 1]) / self.width, (knots[right] - x) / self.width
            whole = np.expm1(-2 * (before + after))
            from_left = np.exp(-before) * np.expm1(-2 * after) / whole
            from_right = np.exp(-after) * np.expm1(-2 * before) / whole
        return from_left * values[right - 1] + from_right * values[right]


@dataclass(frozen=True)
class GaussianRidge(Ridge):
    """Kernel ridge regression with the kernel exp(-(x - x')^2 / (2 width^2)), for comparison.

    Parameters, methods and errors are those of :class:`Ridge`; at most 5,000 records.

    Examples
    --------
    >>> round(GaussianRidge(penalty=0.1).change(1000), 4)
    0.106
    """

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Fitted":
        """Fit y on x; see :meth:`Ridge.fit`.

        Raises
        ------
        ValueError
            As for :meth:`Ridge.fit`, and for more than 5,000 records.
        """
        x, y = _checked(x, y)
        self.check_size(len(x))
        matrix = gaussian_kernel(x, x, self.width)
        matrix.flat[:: len(x) + 1] += len(x) * self.penalty / 2
        solved = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return _Expansion(self.width, x, cho_solve(solved, y, check_finite=False))

    def check_size(self, n: int) -> None:
        """Refuse more than 5,000 records, for their kernel matrix would be too large."""
        if n > MOST_RECORDS:
            raise ValueError(f"{n:,} records; choose {MOST_RECORDS:,} of them at random")

    def change(self, n: int) -> float:
        """Largest change of a prediction, or of a difference of two, by one of n records.

        Privacy
        -------
        A proved bound, for any records. It grows as penalty^(-3/2). Chapter 09,
        :prf:ref:`thm-ridge-change`.
        """
        norm = 1 / math.sqrt(2 * self.penalty)  # the largest norm of the weights
        sine = (math.sqrt(1 + 8 * norm**2) - 1) / (4 * norm)
        pull = 2 * math.sqrt(1 - sine**2) * (1 + norm * sine)
        return math.sqrt(2) * 2 * pull / (n * self.penalty)


@dataclass(frozen=True)
class _Expansion:
    """A sum of kernels at the training inputs."""

    width: float
    inputs: np.ndarray
    weights: np.ndarray

    def predict(self, x: np.ndarray) -> np.ndarray:
        return gaussian_kernel(x, self.inputs, self.width) @ self.weights


Fitted = _Interpolant | _Expansion
"""A fitted regression; ``predict(x)`` gives its values."""


def _checked(x, y) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError(f"x and y must have equal length, at least 2, not {x.shape}, {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a value is missing or infinite; drop or impute such records first")
    if np.abs(y).max() > 1:
        raise ValueError("y must lie in [-1, 1]; use the columns of Dataset.scaled")
    return x, y
