"""Test statistics on contingency tables, each with its proved sensitivity beside it.

A table has an axis for x, one for y and one for each conditioning variable. Every stratum counts,
whatever it holds, and the proofs (chapter 03) use only the number of records and public levels.
"""

import math
import sys
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol

import numpy as np

__all__ = [
    "TABLE_L1",
    "TABLE_L2",
    "ChiSquared",
    "GTest",
    "KendallP",
    "KendallZ",
    "PartialCorrelation",
    "SpearmanP",
    "SpearmanZ",
    "Statistic",
    "chi_squared",
    "clipped_gram",
    "g_statistic",
    "gram_sensitivity",
    "in_sensitivities",
    "kendall_p",
    "kendall_z",
    "normal_tail",
    "pair_weight",
    "partial_correlation",
    "refusal",
    "second_moments",
    "second_moments_sensitivity",
    "spearman_z",
]

RECORDS_PER_CELL = 5
"""A test is refused where the public table would hold fewer records a cell than this on average."""

MOST_EXACT = 10**9
"""Products of larger counts are not exact: they might leave the 64-bit integers."""


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


def in_sensitivities(distance: float, sensitivity: float) -> float:
    """A distance in units of a sensitivity; a number in any case.

    A statistic of sensitivity 0 is the same for all data sets: it is as far as can be.

    Examples
    --------
    >>> in_sensitivities(1.0, 0.25), in_sensitivities(-1.0, 0.0) < -1e300
    (4.0, True)
    """
    most = sys.float_info.max
    if sensitivity == 0:
        return math.copysign(most, distance) if distance else 0.0
    with np.errstate(over="ignore"):
        return min(max(distance / sensitivity, -most), most)


def _check_critical(critical):
    if not math.isfinite(critical):
        raise ValueError(f"critical must be a finite number, not {critical!r}")


def check_level(alpha: float):
    """Refuse what is no level of a test."""
    if not sys.float_info.min <= alpha < 1:
        raise ValueError(f"alpha is a level above 0 and below 1, not {alpha!r}")


def pair_weight(n):
    """Inverse null variance of a stratum's tau-a, 9 n (n - 1) / (2 (2 n + 5))."""
    return 4.5 * n * (n - 1) / (2 * n + 5)


def _by_stratum(table: np.ndarray) -> np.ndarray:
    """The same counts with one axis for all strata."""
    table = np.asarray(table, np.int64).reshape(*np.shape(table)[:2], -1)
    return table if table.sum(dtype=float) <= MOST_EXACT else table.astype(float)


def _concordance(table: np.ndarray) -> np.ndarray:
    """Concordant minus discordant pairs of records in each stratum; ties count 0."""
    above = np.zeros((table.shape[0] + 1, table.shape[1] + 1, table.shape[2]), table.dtype)
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
    table = _by_stratum(table)
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


class _Proved:
    """What the statistics with a theorem share: a bound, of tests that are not refused."""

    proved: ClassVar[bool] = True

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """Replace-one bound; raises ValueError for a test that `refusal` refuses."""
        if reason := refusal(n, levels):
            raise ValueError(f"no sensitivity for this test: {reason}")
        return self._bound(n, levels)


@dataclass(frozen=True)
class KendallZ(_Proved):
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
    have two levels: 6 / sqrt(n) and 3 / sqrt(n). Proved in chapter 03.

    Examples
    --------
    >>> z = KendallZ()
    >>> round(z.value(np.diag([500, 500])), 3), round(z.sensitivity(1000, (2, 2)), 3)
    (23.699, 0.095)
    """

    critical: float = 3.0
    name: ClassVar[str] = "Kendall z"

    def __post_init__(self):
        _check_critical(self.critical)

    def value(self, table: np.ndarray) -> float:
        """|z|."""
        return abs(kendall_z(table))

    def _bound(self, n, levels):
        strata, fewest, most = math.prod(levels[2:]), min(levels[:2]), max(levels[:2])
        if strata == 1:
            turned = (n - 1) * (1 if most <= 2 else 2)
            return 9 * turned / (2 * n + 5) / math.sqrt(pair_weight(n))
        moved = 13.5 - 4.5 / max(1, fewest - 1)
        return moved / math.sqrt(strata * pair_weight(n / strata))


@dataclass(frozen=True)
class _UpperTail(_Proved):
    """Minus the one-sided p-value of a z statistic: what the p-value classes share."""

    alpha: float = 0.1

    def __post_init__(self):
        check_level(self.alpha)

    @property
    def critical(self) -> float:
        """Minus alpha."""
        return -self.alpha

    def value(self, table: np.ndarray) -> float:
        """Minus the p-value."""
        return -normal_tail(self.z.value(table))

    def _bound(self, n, levels):
        return 0.5 - normal_tail(self.z.sensitivity(n, levels))


class KendallP(_UpperTail):
    """Minus the one-sided p-value of conditional Kendall's z: 0 for dependent, -1/2 at z = 0.

    Parameters
    ----------
    alpha : float
        Pairs with a larger p-value count as independent.

    Privacy
    -------
    With a the sensitivity of |z|, Phi(a) - 1/2: the normal tail is steepest at 0. Chapter 03.

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
        sum_i (n_i - 1) rho_i / sqrt(sum_i (n_i - 1)) over the strata that somebody is in; 0 where
        no stratum has two records. Tied records share their mean rank, and rho_i is 12 / (n_i^3 -
        n_i) times the sum of products of centred ranks, its denominator that of ranks without ties.

    Notes
    -----
    Dividing by the deviations of the tied ranks instead would leave no sensitivity that shrinks
    with n. The weighted combination over blocks is that of Taylor (1987).

    Examples
    --------
    >>> round(spearman_z(np.diag([1, 1, 1])), 3)
    1.414
    """
    table = _by_stratum(table)
    size = table.sum(axis=(0, 1))
    total = (size - 1)[size > 0].sum()
    if total == 0:
        return 0.0
    x, y = _centred_ranks(table.sum(axis=1)), _centred_ranks(table.sum(axis=0))
    products = np.einsum("xys,xs,ys->s", table, x, y)
    safe = np.maximum(size, 1)
    return float((3 * products / safe / (safe + 1)).sum() / math.sqrt(total))


def _centred_ranks(counts: np.ndarray) -> np.ndarray:
    """Twice the mean rank of each level in each stratum, less its average: below minus above."""
    below = counts.cumsum(axis=0) - counts
    return (2.0 * below + counts) - counts.sum(axis=0)


@dataclass(frozen=True)
class SpearmanZ(_Proved):
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
    levels. Proved in chapter 03.

    Examples
    --------
    >>> z = SpearmanZ()
    >>> round(z.value(np.diag([500, 500])), 3), round(z.sensitivity(1000, (2, 2)), 3)
    (23.705, 0.095)
    """

    critical: float = 3.0
    name: ClassVar[str] = "Spearman z"

    def __post_init__(self):
        _check_critical(self.critical)

    def value(self, table: np.ndarray) -> float:
        """|z|."""
        return abs(spearman_z(table))

    def _bound(self, n, levels):
        strata = math.prod(levels[2:])
        if strata == 1:
            return (3 if max(levels[:2]) <= 2 else 6) * math.sqrt(n - 1) / (n + 1)
        x, y = (5 / 3 - 2 / 3 / max(1, several - 1) ** 2 for several in levels[:2])
        return 6 * math.sqrt(x * y / (n - strata))


class SpearmanP(_UpperTail):
    """Minus the one-sided p-value of conditional Spearman's z, otherwise as :class:`KendallP`.

    Examples
    --------
    >>> p = SpearmanP()
    >>> p.value(np.ones((2, 2), int)), round(p.sensitivity(1000, (2, 2)), 4)
    (-0.5, 0.0377)
    """

    name: ClassVar[str] = "Spearman p"
    z: ClassVar[SpearmanZ] = SpearmanZ()


def g_statistic(table: np.ndarray) -> float:
    """Likelihood ratio statistic of conditional independence, 2 n times the mutual information.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Returns
    -------
    float
        At least 0; under independence close to chi-squared where no expected count is small.

    Examples
    --------
    >>> round(g_statistic(np.diag([500, 500])), 1)
    1386.3
    """
    table = _by_stratum(table)
    parts = table, table.sum(axis=1), table.sum(axis=0), table.sum(axis=(0, 1))
    cells, x, y, size = (_entropy_sum(part) for part in parts)
    return max(0.0, 2 * (cells - x - y + size))


def _entropy_sum(counts: np.ndarray) -> float:
    """Sum of t ln t over the counts."""
    counts = counts[counts > 0].astype(float)
    return float(counts @ np.log(counts))


def chi_squared(table: np.ndarray) -> float:
    """Pearson's statistic of conditional independence; levels nobody has in a stratum add 0.

    Parameters
    ----------
    table : integer array
        Axes x, y and the conditioning variables.

    Examples
    --------
    >>> chi_squared(np.diag([500, 500]))
    1000.0
    """
    table = _by_stratum(table)
    x, y, size = table.sum(axis=1), table.sum(axis=0), table.sum(axis=(0, 1))
    expected = x[:, None] * y[None] / np.maximum(size, 1)
    difference = (table - expected)[expected > 0]
    return float((difference**2 / expected[expected > 0]).sum())


@dataclass(frozen=True)
class _AgainstQuantile(_Proved):
    """What the chi-squared tests share: where they draw the line at level alpha."""

    alpha: float = 1e-3
    critical: ClassVar[float] = 0.0

    def __post_init__(self):
        check_level(self.alpha)

    def threshold(self, levels: tuple[int, ...]) -> float:
        """Upper quantile of chi-squared with the degrees of freedom of the public table."""
        return _quantile(self.alpha, (levels[0] - 1) * (levels[1] - 1) * math.prod(levels[2:]))


@cache
def _quantile(alpha: float, freedom: int) -> float:
    from scipy.special import chdtri  # heavy, and only needed here

    return float(chdtri(max(1, freedom), alpha))


class GTest(_AgainstQuantile):
    """G-test: the likelihood ratio statistic less its critical value at level alpha.

    Parameters
    ----------
    alpha : float
        Level of the test; degrees of freedom are those of the public table.

    Privacy
    -------
    Replace-one sensitivity 4 ((t + 1) ln(t + 1) - t ln t) with t = (n - 1) / 2, which is below 4 (1
    + ln((n + 1) / 2)): finite, and it grows with n. Proved in chapter 03.

    Examples
    --------
    >>> g = GTest()
    >>> g.value(np.diag([500, 500])) > g.critical, round(g.sensitivity(1000, (2, 2)), 1)
    (True, 28.9)
    """

    name: ClassVar[str] = "G"

    def value(self, table: np.ndarray) -> float:
        """G minus its critical value."""
        return g_statistic(table) - self.threshold(np.shape(table))

    def _bound(self, n, levels):
        half = (n - 1) / 2
        return 4 * (math.log(half + 1) + half * math.log1p(1 / half))


class ChiSquared(_AgainstQuantile):
    """Chi-squared test: Pearson's statistic less its critical value at level alpha.

    Parameters
    ----------
    alpha : float
        Level of the test; degrees of freedom are those of the public table.

    Privacy
    -------
    Replace-one sensitivity n times one less than the fewer of the levels of x and y, which is the
    statistic's whole range. With two levels one person can move it all the way: chapter 03.

    Examples
    --------
    >>> ChiSquared().sensitivity(1000, (2, 2))
    1000
    """

    name: ClassVar[str] = "chi squared"

    def value(self, table: np.ndarray) -> float:
        """Chi-squared minus its critical value."""
        return chi_squared(table) - self.threshold(np.shape(table))

    def _bound(self, n, levels):
        return n * (min(levels[:2]) - 1)


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
class PartialCorrelation(_Proved):
    """Absolute partial correlation of the level numbers.

    Parameters
    ----------
    critical : float
        Pairs below it count as independent.

    Privacy
    -------
    Replace-one sensitivity 1, its whole range. One person can move it all the way: chapter 03.

    Examples
    --------
    >>> PartialCorrelation().sensitivity(1000, (2, 2))
    1.0
    """

    critical: float = 0.02
    name: ClassVar[str] = "partial correlation"

    def __post_init__(self):
        _check_critical(self.critical)

    def value(self, table: np.ndarray) -> float:
        """|r|."""
        return abs(partial_correlation(table))

    def _bound(self, n, levels):
        return 1.0


TABLE_L1, TABLE_L2 = 2.0, math.sqrt(2)
"""How far replacing one record moves a table of counts, of any size: one cell loses a record and
another gains it (chapter 03)."""


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
    Replace-one L2 sensitivity: :func:`gram_sensitivity`.

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
    sqrt(2) bound^2 / n, reached by two orthogonal rows of full norm (chapter 03).

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
    Replace-one L2 sensitivity of the upper triangle: :func:`second_moments_sensitivity`.

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
    `bound`, sqrt((1 + bound^2)^2 + bound^2) / n, whichever is less. Chapter 07.

    Examples
    --------
    >>> second_moments_sensitivity(1000, 11, bound=4.0)
    0.012
    """
    longest = bound * bound
    return min(1 + d, math.sqrt((1 + longest) ** 2 + longest)) / n
