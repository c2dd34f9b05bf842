"""What a test statistic is: a value, a critical value and a proved sensitivity."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import chdtrc, chdtri, erfc

from dpcgd.datasets.counts import Counted
from dpcgd.privacy.budget import MOST
from dpcgd.privacy.run import check_level

__all__ = ["Statistic", "alone", "in_sensitivities", "normal_tail", "refusal"]

RECORDS_PER_CELL = 5
"""A test is refused where the public table would hold fewer records a cell than this on average."""


MOST_EXACT = 10**9
"""Products of larger counts are not exact: they might leave the 64-bit integers."""


class Statistic(Protocol):
    """A number of a table, larger for more dependence, and how far one person moves it."""

    @property
    def name(self) -> str:
        """How it is called in messages and tables."""

    @property
    def proved(self) -> bool:
        """Whether its sensitivity is a theorem; a release says so."""

    @property
    def critical(self) -> float:
        """Where a test without noise draws the line; x and y count as dependent at or above it."""

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
    if sensitivity == 0:
        return math.copysign(MOST, distance) if distance else 0.0
    units = float(distance) / float(sensitivity)
    return min(max(units, -MOST), MOST)


def normal_tail(z: float) -> float:
    """P(Z > z) of a standard normal."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def alone(table: np.ndarray) -> Counted:
    """One table, as functions of many tables take it; counts too large to be exact are floats."""
    table = np.asarray(table, np.int64)
    kind = np.int64 if table.sum(dtype=float) <= MOST_EXACT else float
    levels = np.array([table.shape], np.int64)
    return Counted(table.ravel().astype(kind), np.array([0, table.size]), levels)


class Proved:
    """What the statistics with a theorem share: a bound, of tests that are not refused."""

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
        return self._bound(n, levels)


@dataclass(frozen=True)
class AgainstNumber(Proved):
    """What the statistics share that are compared with a number."""

    critical: float = 3.0

    def __post_init__(self):
        if not math.isfinite(self.critical):
            raise ValueError(f"critical must be a finite number, not {self.critical!r}")


@dataclass(frozen=True)
class UpperTail(Proved):
    """What the p-value classes share: minus the one-sided p-value of a z statistic."""

    alpha: float = 0.1
    z: ClassVar[Any]

    def __post_init__(self):
        check_level(self.alpha)

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
    """What the chi-squared tests share: where they draw the line at level alpha."""

    alpha: float = 1e-3
    critical: ClassVar[float] = 0.0
    raws: ClassVar[Callable[..., np.ndarray]]

    def __post_init__(self):
        check_level(self.alpha)

    def values(self, tables: Counted) -> np.ndarray:
        """The statistic of each table less its critical value."""
        return self.raws(tables) - chdtri(np.maximum(1, self.freedoms(tables)), self.alpha)

    def p_values(self, tables: Counted) -> np.ndarray:
        """Chance of so large a statistic under independence, of each table."""
        return chdtrc(np.maximum(1, self.freedoms(tables)), self.raws(tables))

    def freedoms(self, tables: Counted) -> np.ndarray:
        """Degrees of freedom of each table: those of its public levels."""
        return _freedom(tables.levels.T)

    def threshold(self, levels: tuple[int, ...]) -> float:
        """Upper quantile of chi-squared with the degrees of freedom of the public table."""
        return float(chdtri(max(1, _freedom(levels)), self.alpha))


def _freedom(levels):
    return (levels[0] - 1) * (levels[1] - 1) * math.prod(levels[2:])
