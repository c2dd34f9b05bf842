"""Test statistics on contingency tables, each with its proved sensitivity beside it.

A table has an axis for x, one for y and one for each conditioning variable. Every stratum counts,
whatever it holds, and the proofs (chapter 04) use only the number of records and public levels.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

__all__ = [
    "KendallP",
    "KendallZ",
    "Statistic",
    "kendall_p",
    "kendall_z",
    "normal_tail",
    "pair_weight",
    "refusal",
]

RECORDS_PER_CELL = 5
"""A test is refused where the public table would hold fewer records a cell than this on average."""


class Statistic(Protocol):
    """A number of a table, larger for more dependence, and how far one person moves it."""

    name: str
    proved: bool
    """Whether its sensitivity is a theorem; a release says so."""
    critical: float
    """Where a test without noise draws the line: x and y count as dependent at or above it."""

    def value(self, table: np.ndarray) -> float:
        """The statistic of a table with axes x, y and the conditioning variables."""

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """The most that replacing one of n records can change it, from public facts only."""


def refusal(n: int, levels: tuple[int, ...]) -> str | None:
    """Say why a test on a table of these public levels is refused, or None if it is not.

    Parameters
    ----------
    n : int
        Number of records (public).
    levels : tuple of int
        Levels of x, y and each conditioning variable.

    Notes
    -----
    The rule must not look at the data: a test left out for a small count tells that it is small.

    Examples
    --------
    >>> refusal(1000, (2, 2, 2)) is None
    True
    >>> refusal(1000, (10, 10, 10))
    '1000 records for 1000 cells is fewer than 5 a cell'
    """
    cells = math.prod(levels)
    if n < RECORDS_PER_CELL * cells:
        return f"{n} records for {cells} cells is fewer than {RECORDS_PER_CELL} a cell"
    return None


def pair_weight(n):
    """Inverse null variance of a stratum's tau-a, 9 n (n - 1) / (2 (2 n + 5))."""
    return 4.5 * n * (n - 1) / (2 * n + 5)


def _concordance(table: np.ndarray) -> np.ndarray:
    """Concordant minus discordant pairs of records in each stratum; ties count 0."""
    above = np.zeros((table.shape[0] + 1, table.shape[1] + 1, table.shape[2]), np.int64)
    above[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    lower_left, lower = above[:-1, :-1], above[:-1, -1:]
    lower_right = lower - above[:-1, 1:]
    return (table * (lower_left - lower_right)).sum(axis=(0, 1))


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
        where no stratum has two records. Standard normal under independence without ties; with
        ties its deviation is below 1.

    Notes
    -----
    The weighted combination over blocks is that of Korn (1984) and Taylor (1987).

    Examples
    --------
    >>> round(kendall_z(np.diag([1, 1, 1])), 3)
    1.567
    """
    table = np.asarray(table, np.int64).reshape(*table.shape[:2], -1)
    size = table.sum(axis=(0, 1))
    total = pair_weight(size).sum()
    if total == 0:
        return 0.0
    return float((9 * _concordance(table) / (2 * size + 5)).sum() / math.sqrt(total))


def normal_tail(z: float) -> float:
    """P(Z > z) of a standard normal."""
    return 0.5 * math.erfc(z / math.sqrt(2))


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


def _z_change(n: int, levels: tuple[int, ...]) -> tuple[float, float]:
    """(a, b) with |z' - z| <= a + b min(|z|, |z'|) for all data sets that differ in one record."""
    if reason := refusal(n, levels):
        raise ValueError(f"no sensitivity for this test: {reason}")
    strata, fewest, most = math.prod(levels[2:]), min(levels[:2]), max(levels[:2])
    if strata == 1:
        turned = (n - 1) * (1 if most <= 2 else 2)
        return 9 * turned / (2 * n + 5) / math.sqrt(pair_weight(n)), 0.0
    least = strata * pair_weight(n / strata)
    return (9 if fewest <= 2 else 13.5) / math.sqrt(least), 1.125 / least


@dataclass(frozen=True)
class KendallZ:
    """Absolute conditional Kendall z, clipped at `reach` sqrt(n).

    Parameters
    ----------
    critical : float
        Pairs below it count as independent.
    reach : float
        The clip in units of sqrt(n); z itself reaches 1.5 sqrt(n).

    Privacy
    -------
    Replace-one sensitivity c / sqrt(W) + B 1.125 / W with B the clip, W = K w(n / K) over the K
    public strata, c = 9 if x or y has two levels and 13.5 otherwise: to leading order 6 / sqrt(n)
    and 9 / sqrt(n). For K = 1, 18 (n - 1) / (2 n + 5) / sqrt(w(n)), and half of that if both have
    two levels: 6 / sqrt(n) and 3 / sqrt(n). Proved in chapter 04.

    Examples
    --------
    >>> z = KendallZ()
    >>> round(z.value(np.diag([500, 500])), 3), round(z.sensitivity(1000, (2, 2)), 3)
    (15.811, 0.095)
    """

    critical: float = 3.0
    reach: float = 0.5
    name: ClassVar[str] = "Kendall z"
    proved: ClassVar[bool] = True

    def value(self, table: np.ndarray) -> float:
        """min(|z|, reach sqrt(n))."""
        return min(abs(kendall_z(table)), self.reach * math.sqrt(table.sum()))

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """Replace-one bound; raises ValueError for a test that `refusal` refuses."""
        a, b = _z_change(n, levels)
        return a + b * self.reach * math.sqrt(n)


@dataclass(frozen=True)
class KendallP:
    """Minus the one-sided p-value of conditional Kendall's z: 0 for dependent, -1/2 at z = 0.

    Parameters
    ----------
    alpha : float
        Pairs with a larger p-value count as independent.

    Privacy
    -------
    With |z' - z| <= a + b u, u = min(|z|, |z'|), the p-value moves by at most phi(u) (a + b u), phi
    the normal density; the bound is its largest value over u. Proved in chapter 04.

    Examples
    --------
    >>> p = KendallP()
    >>> p.value(np.ones((2, 2), int)), round(p.sensitivity(1000, (2, 2)), 4)
    (-0.5, 0.0378)
    """

    alpha: float = 0.1
    name: ClassVar[str] = "Kendall p"
    proved: ClassVar[bool] = True

    @property
    def critical(self) -> float:
        """Minus alpha."""
        return -self.alpha

    def value(self, table: np.ndarray) -> float:
        """Minus the p-value."""
        return -kendall_p(table)

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """Replace-one bound; raises ValueError for a test that `refusal` refuses."""
        a, b = _z_change(n, levels)
        u = 2 * b / (a + math.sqrt(a * a + 4 * b * b))
        return math.exp(-u * u / 2) / math.sqrt(2 * math.pi) * (a + b * u)
