"""Randomised response over all cells of a record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcgd.local import channels
from dpcgd.local.channels import Levels, Mechanism
from dpcgd.local.draws import Draws
from dpcgd.local.moments import Moments

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
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
    Each report has exactly epsilon-local privacy. Chapter 10, :prf:ref:`thm-local-krr`.

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
        object.__setattr__(self, "levels", channels.checked_whole(self.levels))
        channels.check_nonnegative("epsilon", self.epsilon)

    @classmethod
    def from_p_max(cls, levels: Levels, p_max: float) -> "RandomizedResponse":
        """The mechanism with this probability of reporting the value itself."""
        cells = channels.check_p_max(p_max, levels)
        return cls(levels, max(0.0, math.log(p_max) + math.log(cells - 1) - math.log1p(-p_max)))

    @classmethod
    def from_epsilon(cls, levels: Levels, epsilon: float) -> "RandomizedResponse":
        """The mechanism with this exact epsilon."""
        return cls(levels, epsilon)

    @property
    def p_max(self) -> float:
        """The probability of reporting the value itself."""
        return 1 / (1 + (self.size - 1) * math.exp(-self.epsilon))

    @property
    def d_privacy(self) -> float:
        """The level of d-privacy: epsilon, because inputs at distance 1 differ as much as any."""
        return self.epsilon

    @property
    def kept(self) -> float:
        """The probability of keeping the record, if a uniform draw replaces it otherwise."""
        return self.p_max * -math.expm1(-self.epsilon)

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        channels.check_dense(self.levels)
        return self.kept * np.eye(self.size) + (1 - self.kept) / self.size

    def _reports(self, codes, draws: Draws) -> np.ndarray:
        # the only rounding is that of the ratio of any other report to the record
        ratio = Fraction(math.exp(-self.epsilon))
        kept = draws.happens((1 - ratio) / (1 - ratio + self.size * ratio), len(codes))
        return np.where(kept[:, None], codes, draws.uniform(self.shape, len(codes)))

    def of(self, variables: Sequence[int]) -> "RandomizedResponse":
        """The mechanism on some variables of a product domain: again randomised response."""
        levels = tuple(self.shape[v] for v in variables)
        size, kept = math.prod(levels), self.kept
        if kept == 1:  # rounded up
            return RandomizedResponse(levels, self.epsilon + math.log(size) - math.log(self.size))
        return RandomizedResponse(levels, math.log1p(size * kept / (1 - kept)))

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return self.kept * joint + (1 - self.kept) / self.size * joint.sum()

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return self.forward(values)  # a symmetric channel

    def inverse(self, reports: np.ndarray) -> np.ndarray:
        """The table whose expected reports are this table; it may have negative entries."""
        channels.check_informative(self.kept >= 1e-12)
        return (reports - (1 - self.kept) / self.size * reports.sum()) / self.kept

    def moments(self, reports: np.ndarray) -> Moments:
        """Unbiased moments of the records."""
        channels.check_informative(self.kept >= 1e-12)
        kept, codes = self.kept, channels.checked_codes(reports, self.levels).astype(float)
        shape = np.array(self.shape, float)
        mean, spread = (shape - 1) / 2, (shape**2 - 1) / 12  # of a uniform draw
        uniform = np.outer(mean, mean) + np.diag(spread)
        values = (codes - (1 - kept) * mean) / kept
        constant = -(1 - kept) / kept * uniform
        return Moments(values, codes / math.sqrt(kept), np.zeros_like(codes), constant)
