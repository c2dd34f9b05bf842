"""Statistics for unordered levels: the G-test and Pearson's chi-squared."""

import math
from typing import ClassVar

import numpy as np

from dpcgd.datasets.counts import Counted
from dpcgd.statistics._values import chi_squareds, g_statistics
from dpcgd.statistics.statistic import AgainstQuantile, alone

__all__ = ["AdjustedChiSquared", "ChiSquared", "GTest", "chi_squared", "g_statistic"]


def g_statistic(table: np.ndarray) -> float:
    """Likelihood ratio statistic of conditional independence, 2 n times the mutual information.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        At least 0; under independence close to chi-squared if no expected count is small.

    Examples
    --------
    >>> round(g_statistic(np.diag([500, 500])), 1)
    1386.3
    """
    return float(g_statistics(*alone(table))[0])


def chi_squared(table: np.ndarray) -> float:
    """Pearson's statistic of conditional independence; levels that a stratum lacks add 0.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Examples
    --------
    >>> chi_squared(np.diag([500, 500]))
    1000.0
    """
    return float(chi_squareds(*alone(table))[0][0])


class GTest(AgainstQuantile):
    """G-test: the likelihood ratio statistic less its critical value at level alpha.

    Parameters
    ----------
    alpha : float
        Significance level; degrees of freedom are those of the public table.

    Privacy
    -------
    Replace-one sensitivity 4 ((t + 1) ln(t + 1) - t ln t) with t = (n - 1) / 2, which is below 4 (1
    + ln((n + 1) / 2)): finite, and it grows with n. Proved in chapter 03, :prf:ref:`thm-g`.

    Examples
    --------
    >>> g = GTest()
    >>> g.value(np.diag([500, 500])) > g.critical, round(g.sensitivity(1000, (2, 2)), 1)
    (True, 28.9)
    """

    name: ClassVar[str] = "G"

    def raws(self, tables: Counted) -> np.ndarray:
        """G of each table."""
        return g_statistics(*tables)

    def _bound(self, n, levels):
        half = (n - 1) / 2
        return 4 * (math.log(half + 1) + half * math.log1p(1 / half))


class ChiSquared(AgainstQuantile):
    """Chi-squared test: Pearson's statistic less its critical value at level alpha.

    Parameters
    ----------
    alpha : float
        Significance level; degrees of freedom are those of the public table.

    Privacy
    -------
    The replace-one sensitivity is n times one less than the smaller number of levels, of x or of y:
    the whole range of the statistic. With two levels one record can move it over this range:
    chapter 03, :prf:ref:`thm-chi-squared`.

    Examples
    --------
    >>> ChiSquared().sensitivity(1000, (2, 2))
    1000
    """

    name: ClassVar[str] = "chi squared"

    def raws(self, tables: Counted) -> np.ndarray:
        """Pearson's statistic of each table."""
        return chi_squareds(*tables)[0]

    def _bound(self, n, levels):
        return n * (min(levels[:2]) - 1)


class AdjustedChiSquared(ChiSquared):
    """Chi-squared test with the degrees of freedom of the levels that occur in the data.

    This is the usual choice of packages without privacy; it has more power if many levels are rare.

    Parameters
    ----------
    alpha : float
        Significance level of the test. Each stratum adds (a - 1)(b - 1) degrees of freedom, with a
        and b the numbers of levels of x and y that occur in it.

    Privacy
    -------
    The value is at least minus the quantile of the public table, and at most the range of
    :class:`ChiSquared`: the sum of both is the sensitivity. It is too large to be useful.

    Examples
    --------
    >>> table = np.zeros((9, 9, 2), int)
    >>> table[:2, :2, 0] = [[50, 40], [40, 55]]
    >>> adjusted, public = AdjustedChiSquared(0.1), ChiSquared(0.1)
    >>> round(adjusted.value(table), 1), round(public.value(table), 1)
    (0.6, -145.5)
    """

    name: ClassVar[str] = "chi squared, adjusted"

    def freedoms(self, tables: Counted) -> np.ndarray:
        """Degrees of freedom of each table, by the levels that occur in each stratum."""
        return chi_squareds(*tables)[1]

    def _bound(self, n, levels):
        return super()._bound(n, levels) + self.threshold(levels)
