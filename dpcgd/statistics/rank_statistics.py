"""Rank statistics with proved sensitivities: Kendall's z and Spearman's."""

import math
from typing import ClassVar

import numpy as np

from dpcgd.datasets.counts import Counted
from dpcgd.statistics._values import kendall_zs, spearman_zs
from dpcgd.statistics.statistic import AgainstNumber, UpperTail, alone, normal_tail

__all__ = ["TABLE_L1", "TABLE_L2", "KendallP", "KendallZ", "SpearmanP", "SpearmanZ"]
__all__ += ["kendall_p", "kendall_z", "pair_weight", "spearman_z"]


def pair_weight(n):
    """Inverse null variance of a stratum's tau-a, 9 n (n - 1) / (2 (2 n + 5))."""
    return 4.5 * n * (n - 1) / (2 * n + 5)


def kendall_z(table: np.ndarray) -> float:
    """Conditional Kendall's tau, standardised.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        sum_i 9 S_i / (2 n_i + 5) / sqrt(sum_i w(n_i)) over the strata i of the conditioning set,
        with S_i concordant minus discordant pairs (tau-a) and w(n) = 9 n (n - 1) / (2 (2 n + 5)); 0
        if no stratum has two records. It is standard normal under independence without ties; with
        ties its deviation is below 1.

    Notes
    -----
    The weighted sum over blocks is due to Korn (1984) and Taylor (1987).

    Examples
    --------
    >>> round(kendall_z(np.diag([1, 1, 1])), 3)
    1.567
    """
    return float(kendall_zs(*alone(table))[0])


def kendall_p(table: np.ndarray) -> float:
    """One-sided p-value of :func:`kendall_z`, the upper normal tail of its absolute value.

    Returns
    -------
    float
        In [0, 1/2]; 1/2 at z = 0.

    Examples
    --------
    >>> kendall_p(np.ones((2, 2), int))
    0.5
    """
    return normal_tail(abs(kendall_z(table)))


class KendallZ(AgainstNumber):
    """Absolute value of conditional Kendall's z.

    Parameters
    ----------
    critical : float
        Pairs below it count as independent.

    Privacy
    -------
    Replace-one sensitivity (27/2 - 9 / (2 M)) / sqrt(W), W = K w(n / K) over the K >= 2 public
    strata, M + 1 the fewer of the levels of x and y: 6 / sqrt(n) for two levels, 9 / sqrt(n) for
    many, to leading order. For K = 1, 18 (n - 1) / (2 n + 5) / sqrt(w(n)), and half of that if both
    have two levels: 6 / sqrt(n) and 3 / sqrt(n). Proved in chapter 03, :prf:ref:`thm-kendall-z`.

    Examples
    --------
    >>> z = KendallZ()
    >>> round(z.value(np.diag([500, 500])), 3), round(z.sensitivity(1000, (2, 2)), 3)
    (23.699, 0.095)
    """

    name: ClassVar[str] = "Kendall z"

    def values(self, tables: Counted) -> np.ndarray:
        """``|z|`` of each table."""
        return np.abs(kendall_zs(*tables))

    def _bound(self, n, levels):
        strata, fewest, most = math.prod(levels[2:]), min(levels[:2]), max(levels[:2])
        if strata == 1:
            return 9 * (n - 1) * (1 if most <= 2 else 2) / (2 * n + 5) / math.sqrt(pair_weight(n))
        return (13.5 - 4.5 / max(1, fewest - 1)) / math.sqrt(strata * pair_weight(n / strata))


class KendallP(UpperTail):
    """Minus the one-sided p-value of conditional Kendall's z: 0 for dependent, -1/2 at z = 0.

    Parameters
    ----------
    alpha : float
        Pairs with a larger p-value count as independent.

    Privacy
    -------
    With a the sensitivity of ``|z|``, Phi(a) - 1/2: the normal tail is steepest at 0. Chapter 03,
    :prf:ref:`cor-kendall-p`.

    Examples
    --------
    >>> p = KendallP()
    >>> p.value(np.ones((2, 2), int)), round(p.sensitivity(1000, (2, 2)), 4)
    (-0.5, 0.0377)
    """

    name: ClassVar[str] = "Kendall p"
    z: ClassVar[KendallZ] = KendallZ()


def spearman_z(table: np.ndarray) -> float:
    """Conditional Spearman's rho, standardised.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        sum_i (n_i - 1) rho_i / sqrt(sum_i (n_i - 1)) over the non-empty strata; 0 if no stratum has
        two records. Tied records share their mean rank, and rho_i is 12 / (n_i^3 - n_i) times the
        sum of products of centred ranks, with the denominator of ranks without ties.

    Notes
    -----
    With the deviations of the tied ranks as denominators, no sensitivity would shrink with n. The
    weighted sum over blocks is due to Taylor (1987).

    Examples
    --------
    >>> round(spearman_z(np.diag([1, 1, 1])), 3)
    1.414
    """
    return float(spearman_zs(*alone(table))[0])


class SpearmanZ(AgainstNumber):
    """Absolute value of conditional Spearman's z.

    Parameters
    ----------
    critical : float
        Pairs below it count as independent.

    Privacy
    -------
    Replace-one sensitivity 6 sqrt(g(x) g(y)) / sqrt(n - K) over the K >= 2 public strata, g(v) =
    5/3 - 2 / (3 (L - 1)^2) for a variable of L levels: 6 / sqrt(n) for two levels, 10 / sqrt(n) for
    many, to leading order. For K = 1, 6 sqrt(n - 1) / (n + 1), and half of that if both have two
    levels. Proved in chapter 03, :prf:ref:`thm-spearman-z`.

    Examples
    --------
    >>> z = SpearmanZ()
    >>> round(z.value(np.diag([500, 500])), 3), round(z.sensitivity(1000, (2, 2)), 3)
    (23.705, 0.095)
    """

    name: ClassVar[str] = "Spearman z"

    def values(self, tables: Counted) -> np.ndarray:
        """``|z|`` of each table."""
        return np.abs(spearman_zs(*tables))

    def _bound(self, n, levels):
        strata = math.prod(levels[2:])
        if strata == 1:
            return (3 if max(levels[:2]) <= 2 else 6) * math.sqrt(n - 1) / (n + 1)
        x, y = (5 / 3 - 2 / 3 / max(1, several - 1) ** 2 for several in levels[:2])
        return 6 * math.sqrt(x * y / (n - strata))


class SpearmanP(UpperTail):
    """Minus the one-sided p-value of conditional Spearman's z; otherwise like :class:`KendallP`.

    Privacy
    -------
    As for :class:`KendallP`, from the sensitivity of Spearman's z. Chapter 03,
    :prf:ref:`cor-kendall-p`.

    Examples
    --------
    >>> p = SpearmanP()
    >>> p.value(np.ones((2, 2), int)), round(p.sensitivity(1000, (2, 2)), 4)
    (-0.5, 0.0377)
    """

    name: ClassVar[str] = "Spearman p"
    z: ClassVar[SpearmanZ] = SpearmanZ()


TABLE_L1, TABLE_L2 = 2.0, math.sqrt(2)
"""Replace-one L1 and L2 sensitivities of a table of counts of any size: the record leaves one cell
and enters another. Chapter 03, :prf:ref:`thm-table-gram`."""
