"""Randomized response over all cells of a record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcgd.local.channels import (
    Levels,
    as_given,
    check_counted,
    check_dense,
    check_nonnegative,
    check_p_max,
    checked_codes,
    checked_levels,
    shape_of,
)
from dpcgd.local.draws import draws_for
from dpcgd.local.moments import Moments

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True)
class RandomizedResponse:
    """k-ary randomised response: the value itself, or a uniform draw from all other values.

    Parameters
    ----------
    levels : int, or tuple of int
        A tuple is a product domain whose records are randomised as a whole ("combined").
    epsilon : float

    Raises
    ------
    ValueError
        If a variable has fewer than two levels, epsilon is negative or the domain too large.

    Privacy
    -------
    epsilon-local privacy for each report, exactly. Chapter 10, :prf:ref:`thm-local-krr`.

    Notes
    -----
    Warner (1965); for k levels Kairouz, Bonawitz and Ramage (2016).

    Examples
    --------
    >>> mechanism = RandomizedResponse.from_p_max(10, 0.5)
    >>> round(mechanism.epsilon, 3), round(mechanism.p_max, 3)
    (2.197, 0.5)
    >>> mechanism.sample(np.array([0, 0, 9, 9]), rng=np.random.default_rng(0))
    array([1, 0, 9, 9])
    """

    levels: Levels
    epsilon: float

    def __post_init__(self):
        object.__setattr__(self, "levels", checked_levels(self.levels))
        check_counted(self.levels)
        check_nonnegative("epsilon", self.epsilon)

    @classmethod
    def from_p_max(cls, levels: Levels, p_max: float) -> "RandomizedResponse":
        """With this chance of reporting the value itself."""
        cells = math.prod(shape_of(checked_levels(levels)))
        check_p_max(p_max, cells)
        return cls(levels, max(0.0, math.log(p_max) + math.log(cells - 1) - math.log1p(-p_max)))

    @classmethod
    def from_epsilon(cls, levels: Levels, epsilon: float) -> "RandomizedResponse":
        """At this exact level of local privacy."""
        return cls(levels, epsilon)

    @property
    def size(self) -> int:
        """Cells of the domain."""
        return math.prod(shape_of(self.levels))

    @property
    def p_max(self) -> float:
        """The chance of reporting the value itself."""
        return 1 / (1 + (self.size - 1) * math.exp(-self.epsilon))

    @property
    def d_privacy(self) -> float:
        """Epsilon, as neighbouring inputs, at distance 1, differ as much as any."""
        return self.epsilon

    @property
    def kept(self) -> float:
        """Chance that the record is kept, if all others are replaced by a uniform draw."""
        return self.p_max * -math.expm1(-self.epsilon)

    def _kept_exactly(self) -> Fraction:
        """The same, with one rounding: that of the ratio of any other report to the record."""
        ratio = Fraction(math.exp(-self.epsilon))
        return (1 - ratio) / (1 - ratio + self.size * ratio)

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        check_dense(self.levels)
        return self.kept * np.eye(self.size) + (1 - self.kept) / self.size

    def sample(
        self, codes: np.ndarray, *, rng: np.random.Generator | None = None, secure: bool = False
    ) -> np.ndarray:
        """Draw one report for each record."""
        codes, draws = checked_codes(codes, self.levels), draws_for(self, rng, secure)
        kept = draws.happens(self._kept_exactly(), len(codes))
        uniform = draws.uniform(shape_of(self.levels), len(codes))
        return as_given(np.where(kept[:, None], codes, uniform), self.levels)

    def of(self, variables: Sequence[int]) -> "RandomizedResponse":
        """What this does to some variables of a product domain: randomised response again."""
        levels = tuple(shape_of(self.levels)[v] for v in variables)
        size, kept = math.prod(levels), self.kept
        if kept == 1:  # but for rounding
            return RandomizedResponse(levels, self.epsilon + math.log(size) - math.log(self.size))
        return RandomizedResponse(levels, math.log1p(size * kept / (1 - kept)))

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return self.kept * joint + (1 - self.kept) / self.size * joint.sum()

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return self.forward(values)  # a symmetric channel

    def inverse(self, reports: np.ndarray) -> np.ndarray:
        """The table whose reports would on average be this one; it may have negative entries."""
        _check_told(self.kept)
        return (reports - (1 - self.kept) / self.size * reports.sum()) / self.kept

    def moments(self, reports: np.ndarray) -> Moments:
        """Unbiased moments of the records."""
        _check_told(self.kept)
        kept, codes = self.kept, checked_codes(reports, self.levels).astype(float)
        shape = np.array(shape_of(self.levels), float)
        mean, spread = (shape - 1) / 2, (shape**2 - 1) / 12  # of a uniform draw
        uniform = np.outer(mean, mean) + np.diag(spread)
        values = (codes - (1 - kept) * mean) / kept
        constant = -(1 - kept) / kept * uniform
        return Moments(values, codes / math.sqrt(kept), np.zeros_like(codes), constant)


def _check_told(kept):
    if kept < 1e-12:
        raise ValueError("the reports do not depend on the records; raise epsilon or p_max")
