"""Estimated moments of unseen records, and an independence test based on them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcgd.statistics.statistic import normal_tail

__all__ = ["CorrelationOracle", "Moments"]

LARGEST = 1e70
"""The largest value; its fourth power is still finite."""


BLOCK = 8192
"""Number of reports that a test processes together; they fit in the processor's cache."""


LEAST_EIGENVALUE = 0.01
"""The least eigenvalue of an estimated correlation matrix, which noise could make singular."""


class Moments(NamedTuple):
    """Unbiased estimates of the records' means and mean products, from their reports.

    The mean of ``values`` over the reports estimates the records' means. The mean of ``roots[a] *
    roots[b]``, plus ``squares`` on the diagonal, plus ``constant``, estimates their mean products.
    """

    values: np.ndarray
    roots: np.ndarray
    squares: np.ndarray
    constant: np.ndarray

    @classmethod
    def of_records(cls, values: np.ndarray) -> "Moments":
        """Moments of records themselves: data without noise, or reports in a naive analysis.

        Raises
        ------
        ValueError
            If there is no record, or a value is not finite or is larger than 1e70.
        """
        values = np.asarray(values, float)
        if not len(values) or not (np.abs(values) <= LARGEST).all():
            raise ValueError(f"no record, or a value above {LARGEST:g}; measure in other units")
        d = values.shape[1]
        return cls(values, values, np.zeros_like(values), np.zeros((d, d)))

    def without_bins(self) -> "Moments":
        """Moments of values before binning, in units of a bin's width: Sheppard's correction.

        Notes
        -----
        If the density is smooth, a code has 1/12 more variance than its value. The reports cannot
        show whether it is smooth: it is an assumption.
        """
        return self._replace(constant=self.constant - np.eye(len(self.constant)) / 12)

    @property
    def mean(self) -> np.ndarray:
        """Estimated means of the records."""
        return self.values.mean(axis=0)

    @property
    def covariance(self) -> np.ndarray:
        """Estimated covariance of the records; with much noise it may have negative eigenvalues."""
        mean = self.mean
        products = self.roots.T @ self.roots / len(self.values) + np.diag(self.squares.mean(axis=0))
        return products + self.constant - np.outer(mean, mean)


@dataclass(frozen=True, eq=False)
class CorrelationOracle:
    """A test of a zero partial correlation of the records, from moments of their reports.

    Parameters
    ----------
    moments : Moments
        ``mechanism.moments(reports)``, which corrects for the channel, or
        ``Moments.of_records(reports)``, which treats reports as records.
    alpha : float
        Significance level of the two-sided test.

    Notes
    -----
    The statistic is the partial covariance of x and y over its standard error, which is computed as
    that of a mean over reports (delta method). For large n its null distribution is standard
    normal, for any channel. Chapter 10, :prf:ref:`thm-local-test`. For normal records a partial
    correlation of 0 is equivalent to independence; binned records are only close to normal.

    Examples
    --------
    >>> from dpcgd.local.component_wise import ComponentWise
    >>> from dpcgd.local.randomized_response import RandomizedResponse
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 5, 5000)
    >>> records = np.column_stack([x, x, rng.integers(0, 5, 5000)])
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, (5, 5, 5), 6.0)
    >>> oracle = CorrelationOracle(mechanism.moments(mechanism.sample(records, rng=rng)))
    >>> oracle.separates(0, 1, ()), oracle.separates(0, 2, ())
    (False, True)
    """

    moments: Moments
    alpha: float = 0.05

    @cached_property
    def _summary(self):
        """Mean and covariance, then values, roots and squares of each variable in turn."""
        columns = [np.ascontiguousarray(part.T) for part in self.moments[:3]]
        return self.moments.mean, self.moments.covariance, columns

    def statistic(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """The statistic; close to standard normal if the partial correlation of x and y is 0."""
        mean, covariance, (values, roots, squares) = self._summary
        tested, rest = [x, y, *given], [*given]
        within = _lifted(covariance[np.ix_(rest, rest)])
        a, b = np.vstack([np.eye(2), -np.linalg.solve(within, covariance[np.ix_(rest, [x, y])])]).T
        partial = a @ covariance[np.ix_(tested, tested)] @ b
        # what each report adds to the partial covariance; the slopes' own errors cancel
        mean_a, mean_b = a @ mean[tested], b @ mean[tested]
        along, both = a * mean_b + b * mean_a, np.stack([a, b])
        added = np.empty(values.shape[1])
        for start in range(0, len(added), BLOCK):
            some = slice(start, start + BLOCK)
            root_a, root_b = both @ roots[tested, some]
            products = root_a * root_b + (a * b) @ squares[tested, some]
            added[some] = products - along @ values[tested, some]
        # numbers that are all the same deviate by their rounding
        deviation = max(float(added.std()), 1e-12 * float(np.abs(added).max()), 1e-300)
        with np.errstate(over="ignore"):  # infinite where nothing varies: certain
            return math.sqrt(len(added)) * partial / deviation

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Whether the p-value is above the significance level."""
        return 2 * normal_tail(abs(self.statistic(x, y, given))) > self.alpha


def _lifted(covariance) -> np.ndarray:
    """A covariance matrix with the same variances (tiny ones raised) and positive eigenvalues."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-6))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    lifted = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    return lifted * np.outer(deviation, deviation)
