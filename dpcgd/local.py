"""Local privacy: each person randomises their own record before anybody sees it.

One record makes one report. The guarantee holds for each report alone and needs no account: whoever
reports m times is protected by m times the epsilon. Chapter 10 has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpcgd.channels import (
    Levels,
    LocalMechanism,
    as_given,
    check_counted,
    check_dense,
    check_nonnegative,
    check_p_max,
    checked_codes,
    checked_levels,
    root_of_rising,
    shape_of,
)
from dpcgd.datasets import Dataset
from dpcgd.draws import draws_for
from dpcgd.moments import Moments
from dpcgd.privacy import LEAST

__all__ = ["ComponentWise", "RandomizedResponse", "report"]


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
    epsilon-local privacy for each report, exactly. Chapter 10.

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
        """Epsilon: neighbouring inputs, at distance 1, differ as much as any."""
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


@dataclass(frozen=True)
class ComponentWise:
    """Each variable through a mechanism of its own.

    Parameters
    ----------
    mechanisms : sequence of mechanisms on one variable

    Privacy
    -------
    The epsilons add up, as do the d-privacy levels' largest for norm 1; chances to guess multiply.
    All exactly. Chapter 10.

    Examples
    --------
    >>> from dpcgd.geometric import Geometric
    >>> both = ComponentWise([RandomizedResponse(2, 1.0), Geometric(5, 0.5)])
    >>> round(both.epsilon, 3), round(both.p_max, 3)
    (3.805, 0.366)
    >>> four = ComponentWise.from_p_max(RandomizedResponse, (10, 10, 5, 5), 0.1)
    >>> round(four.p_max, 12), [round(part.epsilon, 2) for part in four.mechanisms]
    (0.1, [2.75, 2.75, 1.38, 1.38])
    """

    mechanisms: Sequence[LocalMechanism]

    def __post_init__(self):
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))
        if not self.mechanisms or any(isinstance(m.levels, tuple) for m in self.mechanisms):
            raise ValueError("give one mechanism on one variable for each variable")

    @classmethod
    def from_epsilon(cls, kind: type, levels: Sequence[int], epsilon: float) -> "ComponentWise":
        """At this exact level of local privacy, shared in proportion to the levels.

        Parameters
        ----------
        kind : class
            :class:`RandomizedResponse`, :class:`dpcgd.geometric.Geometric` or
            :class:`dpcgd.geometric.ClippedGeometric`.
        levels : sequence of int
        epsilon : float
            Of the whole record. Variable i gets epsilon levels[i] / sum(levels).
        """
        levels, total = tuple(levels), sum(levels)
        return cls([kind.from_epsilon(k, epsilon * k / total) for k in levels])

    @classmethod
    def from_p_max(cls, kind: type, levels: Sequence[int], p_max: float) -> "ComponentWise":
        """With this attacker's success on the whole record; shares as for :meth:`from_epsilon`."""
        check_p_max(p_max, math.prod(checked_levels(tuple(levels))))

        def excess(epsilon):
            ratio = cls.from_epsilon(kind, levels, epsilon).p_max / p_max
            return math.log(max(ratio, LEAST))  # of many variables it may be too small a number

        return cls.from_epsilon(kind, levels, root_of_rising(excess))

    @property
    def levels(self) -> tuple[int, ...]:
        """Public levels of each variable."""
        return tuple(m.levels for m in self.mechanisms)

    @property
    def epsilon(self) -> float:
        """The sum over the variables."""
        return math.fsum(m.epsilon for m in self.mechanisms)

    @property
    def d_privacy(self) -> float:
        """The largest of the variables, for norm 1."""
        return max(m.d_privacy for m in self.mechanisms)

    @property
    def p_max(self) -> float:
        """The product over the variables: the chance to guess the whole record."""
        return math.prod(m.p_max for m in self.mechanisms)

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        check_dense(self.levels)
        whole = np.ones((1, 1))
        for mechanism in self.mechanisms:
            whole = np.kron(whole, mechanism.channel)
        return whole

    def sample(
        self, codes: np.ndarray, *, rng: np.random.Generator | None = None, secure: bool = False
    ) -> np.ndarray:
        """Draw one report for each record."""
        columns = zip(self.mechanisms, checked_codes(codes, self.levels).T, strict=True)
        return np.column_stack([m.sample(c, rng=rng, secure=secure) for m, c in columns])

    def of(self, variables: Sequence[int]) -> "ComponentWise":
        """What this does to some of the variables."""
        return ComponentWise([self.mechanisms[v] for v in variables])

    def _along(self, table, matrices) -> np.ndarray:
        """Multiply a table by one matrix for each axis."""
        for matrix in matrices:
            table = np.tensordot(table, matrix, axes=(0, 0))  # the new axis goes to the end
        return table

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return self._along(joint, (m.channel for m in self.mechanisms))

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return self._along(values, (m.channel.T for m in self.mechanisms))

    def inverse(self, reports: np.ndarray) -> np.ndarray:
        """The table whose reports would on average be this one; it may have negative entries."""
        return self._along(reports, map(_inverse, self.mechanisms))

    def moments(self, reports: np.ndarray) -> Moments:
        """Unbiased moments of the records."""
        columns = zip(self.mechanisms, checked_codes(reports, self.levels).T, strict=True)
        values, squares = np.empty((2, len(reports), len(self.mechanisms)))
        for v, (mechanism, column) in enumerate(columns):
            codes = np.arange(mechanism.levels)
            scores = _inverse(mechanism) @ np.column_stack([codes, codes**2])
            values[:, v], squares[:, v] = scores[column].T
        d = len(self.mechanisms)
        return Moments(values, values, squares - values**2, np.zeros((d, d)))


@lru_cache(maxsize=256)
def _inverse(mechanism: LocalMechanism) -> np.ndarray:
    if np.linalg.cond(mechanism.channel) > 1e12:
        raise ValueError("the reports do not depend on the records; raise epsilon or p_max")
    return np.linalg.inv(mechanism.channel)


def report(
    data: Dataset,
    mechanism: LocalMechanism,
    *,
    rng: np.random.Generator | None = None,
    secure: bool = False,
) -> Dataset:
    """What everybody in a data set would report.

    Parameters
    ----------
    data : Dataset
    mechanism : LocalMechanism
        Over the public levels of the data.
    rng : numpy.random.Generator
        Seeded reports, for experiments: in use each person draws their own randomness.
    secure : bool
        Exact draws from the operating system's randomness, without a seed, for real reports.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the mechanism is for other levels, or the source of randomness is unusable.

    Privacy
    -------
    ``mechanism.epsilon``-local privacy for everybody who reports once; m times that for m reports.
    For secure reports this holds of what is really drawn, to within :data:`dpcgd.draws.SLACK` (for
    each variable of a component-wise mechanism): :class:`dpcgd.draws.SecureDraws`.

    Examples
    --------
    >>> data = Dataset([[0, 2], [1, 1]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, data.cardinalities, 10.0)
    >>> report(data, mechanism, rng=np.random.default_rng(0)).codes.tolist()
    [[0, 2], [1, 1]]
    """
    if mechanism.levels != data.cardinalities:
        raise ValueError(
            f"the data have levels {data.cardinalities}, the mechanism {mechanism.levels}; "
            "make it from data.cardinalities"
        )
    codes = mechanism.sample(data.codes, rng=rng, secure=secure)
    return Dataset(codes, data.levels, data.truth, data.name)
