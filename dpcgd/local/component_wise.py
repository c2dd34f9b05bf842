"""One local mechanism for each component of a record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpcgd.local.channels import (
    LocalMechanism,
    check_dense,
    check_p_max,
    checked_codes,
    checked_levels,
    root_of_rising,
    shape_of,
)
from dpcgd.local.moments import Moments
from dpcgd.privacy.doubles import LEAST

__all__ = ["ComponentWise"]


@dataclass(frozen=True)
class ComponentWise:
    """Each variable through a mechanism of its own.

    Parameters
    ----------
    mechanisms : sequence of mechanisms on one variable

    Privacy
    -------
    The epsilons add up, as do the d-privacy levels' largest for norm 1; chances to guess multiply.
    All exactly. Chapter 10, :prf:ref:`thm-local-composition`.

    Examples
    --------
    >>> from dpcgd.local.geometric import Geometric
    >>> from dpcgd.local.randomized_response import RandomizedResponse
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
    def from_epsilon(
        cls, kind: type[Any], levels: Sequence[int], epsilon: float
    ) -> "ComponentWise":
        """At this exact level of local privacy, shared in proportion to the levels.

        Parameters
        ----------
        kind : class
            :class:`~dpcgd.local.randomized_response.RandomizedResponse`,
            :class:`dpcgd.local.geometric.Geometric` or
            :class:`dpcgd.local.geometric.ClippedGeometric`.
        levels : sequence of int
        epsilon : float
            Of the whole record. Variable i gets epsilon levels[i] / sum(levels).
        """
        levels, total = tuple(levels), sum(levels)
        return cls([kind.from_epsilon(k, epsilon * k / total) for k in levels])

    @classmethod
    def from_p_max(cls, kind: type[Any], levels: Sequence[int], p_max: float) -> "ComponentWise":
        """With this attacker's success on the whole record; shares as for :meth:`from_epsilon`."""
        check_p_max(p_max, math.prod(shape_of(checked_levels(tuple(levels)))))

        def excess(epsilon):
            ratio = cls.from_epsilon(kind, levels, epsilon).p_max / p_max
            return math.log(max(ratio, LEAST))  # of many variables it may be too small a number

        return cls.from_epsilon(kind, levels, root_of_rising(excess))

    @property
    def levels(self) -> tuple[int, ...]:
        """Public levels of each variable."""
        return tuple(shape_of(m.levels)[0] for m in self.mechanisms)

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
        """The product over the variables, the chance to guess the whole record."""
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
        values, squares = np.empty((2, len(self.mechanisms), len(reports))).transpose(0, 2, 1)
        for v, (mechanism, column) in enumerate(columns):
            codes = np.arange(self.levels[v])
            scores = _inverse(mechanism) @ np.column_stack([codes, codes**2])
            values[:, v], squares[:, v] = scores[column].T
        d = len(self.mechanisms)
        return Moments(values, values, squares - values**2, np.zeros((d, d)))


@lru_cache(maxsize=256)
def _inverse(mechanism: LocalMechanism) -> np.ndarray:
    if np.linalg.cond(mechanism.channel) > 1e12:
        raise ValueError("the reports do not depend on the records; raise epsilon or p_max")
    return np.linalg.inv(mechanism.channel)
