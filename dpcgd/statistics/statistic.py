"""Test statistics: each has a value, a critical value and a proved sensitivity."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import chdtrc, chdtri, erfc

from dpcgd.datasets.counts import Counted
from dpcgd.privacy.budget import MOST
from dpcgd.privacy.run import check_settings

__all__ = ["Statistic", "alone", "distance_below", "in_sensitivities", "normal_tail", "refusal"]

RECORDS_PER_CELL = 5
"""The fewest records a cell on average, by public facts; tests with fewer are refused."""


FAR = 100
"""Thresholds are cut off at so many times what a statistic and its noise reach."""


MOST_EXACT = 10**9
"""The largest count whose products are exact in 64-bit integers."""


class Statistic(Protocol):
    """A statistic of a table, larger for more dependence, with its sensitivity."""

    @property
    def name(self) -> str:
        """Its name in messages and tables."""

    @property
    def proved(self) -> bool:
        """Whether its sensitivity is a theorem; a release says so."""

    @property
    def critical(self) -> float:
        """The critical value of a test without noise; x and y count as dependent at or above it."""

    def value(self, table: np.ndarray) -> float:
        """The statistic of a table with axes x, y and the conditioning variables.

        It is a finite number for every table, also for one with empty strata; what is no number
        counts as 0. A threshold that depends on the levels is subtracted here.
        """

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """The most that replacing one of n records changes it; finite, from public facts only."""


def refusal(n: int, levels: tuple[int, ...]) -> str | None:
    """The reason why a test on a table of these public levels is refused, or None.

    Parameters
    ----------
    n : int
        Number of records (public).
    levels : tuple of int
        Levels of x, y and each conditioning variable.

    Notes
    -----
    The rule must not use the data: leaving out a test for a small count reveals that count.

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
    """A distance in units of a sensitivity; always a finite number.

    If the sensitivity is 0, all data have the same value, and the distance is the largest.

    Examples
    --------
    >>> in_sensitivities(1.0, 0.25), in_sensitivities(-1.0, 0.0) < -1e300
    (4.0, True)
    """
    if sensitivity == 0:
        return math.copysign(MOST, distance) if distance else 0.0
    return min(max(float(distance) / float(sensitivity), -MOST), MOST)


def distance_below(
    critical: float, value: float, sensitivity: float, margin: float, reach: float
) -> float:
    """How far a statistic is below its threshold, in units of its sensitivity.

    Parameters
    ----------
    critical, margin : float
        The threshold is the critical value, and so many sensitivities more. It is public, and cut
        off far beyond the reach: a larger one would round the digits of the value away.
    value, sensitivity : float
        Of the statistic.
    reach : float
        What the value and its noise reach, in sensitivities.

    Examples
    --------
    >>> distance_below(3.0, 1.0, 0.5, 1.0, 100.0), distance_below(1e30, 1.0, 0.5, 0.0, 100.0)
    (5.0, 9998.0)
    """
    if sensitivity == 0:
        return in_sensitivities(critical - value, sensitivity) + margin
    threshold = in_sensitivities(critical, sensitivity) + margin
    return min(max(threshold, -FAR * reach), FAR * reach) - in_sensitivities(value, sensitivity)


def normal_tail(z: float) -> float:
    """P(Z > z) for a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def alone(table: np.ndarray) -> Counted:
    """One table in the form for functions of many tables; large counts become floats."""
    table = np.asarray(table, np.int64)
    kind = np.int64 if table.sum(dtype=float) <= MOST_EXACT else float
    levels = np.array([table.shape], np.int64)
    return Counted(table.ravel().astype(kind), np.array([0, table.size]), levels)


class Proved:
    """The base of statistics with a theorem: a bound for all tests that are not refused."""

    proved: ClassVar[bool] = True
    values: Callable[[Counted], np.ndarray]
    _bound: Callable[[int, tuple[int, ...]], float]

    def value(self, table: np.ndarray) -> float:
        """The statistic of one table."""
        return float(self.values(alone(table))[0])

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """Replace-one bound; raises ValueError for a test that `refusal` refuses."""
        if reason := refusal(n, levels):
            raise ValueError(f"no sensitivity for this test: {reason}")
        return self._bound(int(n), levels)


@dataclass(frozen=True)
class AgainstNumber(Proved):
    """The base of statistics that are compared with a number."""

    critical: float = 3.0

    def __post_init__(self):
        if not math.isfinite(self.critical):
            raise ValueError(f"critical must be a finite number, not {self.critical!r}")


@dataclass(frozen=True)
class UpperTail(Proved):
    """The base of p-value classes: minus the one-sided p-value of a z statistic."""

    alpha: float = 0.1
    z: ClassVar[Any]

    def __post_init__(self):
        check_settings(None, alpha=self.alpha)

    @property
    def critical(self) -> float:
        """Minus alpha."""
        return -self.alpha

    def values(self, tables: Counted) -> np.ndarray:
        """Minus the p-value of each table."""
        return -0.5 * erfc(self.z.values(tables) / math.sqrt(2))

    def _bound(self, n, levels):
        return 0.5 - normal_tail(self.z.sensitivity(n, levels))


@dataclass(frozen=True)
class AgainstQuantile(Proved):
    """The base of chi-squared tests: the critical value at significance level alpha."""

    alpha: float = 1e-3
    critical: ClassVar[float] = 0.0
    raws: ClassVar[Callable[..., np.ndarray]]

    def __post_init__(self):
        check_settings(None, alpha=self.alpha)

    def values(self, tables: Counted) -> np.ndarray:
        """The statistic of each table minus its critical value."""
        return self.raws(tables) - chdtri(np.maximum(1, self.freedoms(tables)), self.alpha)

    def p_values(self, tables: Counted) -> np.ndarray:
        """The p-value of each table."""
        return chdtrc(np.maximum(1, self.freedoms(tables)), self.raws(tables))

    def freedoms(self, tables: Counted) -> np.ndarray:
        """Degrees of freedom of each table, by its public levels."""
        return _freedom(tables.levels.T)

    def threshold(self, levels: tuple[int, ...]) -> float:
        """Upper quantile of chi-squared with the degrees of freedom of the public table."""
        return float(chdtri(max(1, _freedom(levels)), self.alpha))


def _freedom(levels):
    return (levels[0] - 1) * (levels[1] - 1) * math.prod(levels[2:])
