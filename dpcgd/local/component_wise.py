"""One local mechanism for each component of a record."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from dpcgd.local import channels
from dpcgd.local.channels import Mechanism
from dpcgd.local.geometric import ClippedGeometric, Geometric, UniformGeometric
from dpcgd.local.moments import Moments
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.privacy.budget import LEAST

__all__ = ["ComponentWise", "LocalMechanism"]

OnOneVariable = RandomizedResponse | Geometric | ClippedGeometric | UniformGeometric
"""The kinds of mechanisms for a component of a record."""


@dataclass(frozen=True)
class ComponentWise(Mechanism):
    """A mechanism that randomises each variable by a mechanism of its own.

    Parameters
    ----------
    mechanisms : sequence of mechanisms on one variable

    Privacy
    -------
    Epsilons add up. The level of d-privacy for norm 1 is the largest level of a variable.
    Probabilities of a right guess multiply. All three hold exactly. Chapter 10,
    :prf:ref:`thm-local-composition`.

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

    mechanisms: Sequence[OnOneVariable]
    levels: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))
        if not self.mechanisms or any(isinstance(m.levels, tuple) for m in self.mechanisms):
            raise ValueError("give one mechanism on one variable for each variable")
        object.__setattr__(self, "levels", tuple(m.shape[0] for m in self.mechanisms))

    @classmethod
    def from_epsilon(cls, kind: Any, levels: Sequence[int], epsilon: float) -> "ComponentWise":
        """The mechanism with this epsilon, shared in proportion to the numbers of levels.

        Parameters
        ----------
        kind : class
            :class:`~dpcgd.local.randomized_response.RandomizedResponse`,
            :class:`dpcgd.local.geometric.Geometric` or
            :class:`dpcgd.local.geometric.ClippedGeometric`.
        levels : sequence of int
        epsilon : float
            Epsilon of the whole record. Variable i gets epsilon levels[i] / sum(levels).
        """
        channels.check_nonnegative("epsilon", epsilon)
        levels, total = tuple(levels), sum(levels)
        return cls([kind.from_epsilon(k, epsilon * k / total) for k in levels])

    @classmethod
    def from_p_max(cls, kind: Any, levels: Sequence[int], p_max: float) -> "ComponentWise":
        """The mechanism with this attacker's success; shares as for :meth:`from_epsilon`."""
        channels.check_p_max(p_max, tuple(levels))

        def excess(epsilon):
            # of many variables the ratio may be too small a number
            return math.log(max(cls.from_epsilon(kind, levels, epsilon).p_max / p_max, LEAST))

        return cls.from_epsilon(kind, levels, channels.root_of_rising(excess))

    @property
    def epsilon(self) -> float:
        """Epsilon of a record: the sum over the variables."""
        return math.fsum(m.epsilon for m in self.mechanisms)

    @property
    def d_privacy(self) -> float:
        """The level of d-privacy for norm 1: the largest of the variables."""
        return max(m.d_privacy for m in self.mechanisms)

    @property
    def p_max(self) -> float:
        """The probability that an attacker guesses the record: the product over the variables."""
        return math.prod(m.p_max for m in self.mechanisms)

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        channels.check_dense(self.levels)
        return reduce(np.kron, (m.channel for m in self.mechanisms))

    def sample(
        self, codes: np.ndarray, *, rng: np.random.Generator | None = None, secure: bool = False
    ) -> np.ndarray:
        """Draw one report for each record."""
        columns = zip(self.mechanisms, channels.checked_codes(codes, self.levels).T, strict=True)
        return np.column_stack([m.sample(c, rng=rng, secure=secure) for m, c in columns])

    def of(self, variables: Sequence[int]) -> "ComponentWise":
        """The mechanism of some of the variables."""
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
        """The table whose expected reports are this table; it may have negative entries."""
        return self._along(reports, map(_inverse, self.mechanisms))

    def moments(self, reports: np.ndarray) -> Moments:
        """Unbiased moments of the records."""
        codes, d = channels.checked_codes(reports, self.levels), len(self.mechanisms)
        values, squares = np.empty((2, d, len(codes))).transpose(0, 2, 1)
        for v, mechanism in enumerate(self.mechanisms):
            powers = np.arange(self.levels[v])[:, None] ** [1, 2]
            values[:, v], squares[:, v] = (_inverse(mechanism) @ powers)[codes[:, v]].T
        return Moments(values, values, squares - values**2, np.zeros((d, d)))


LocalMechanism = OnOneVariable | ComponentWise
"""Any local mechanism."""


def _inverse(mechanism: OnOneVariable) -> np.ndarray:
    channels.check_informative(np.linalg.cond(mechanism.channel) <= 1e12)
    return np.linalg.inv(mechanism.channel)
