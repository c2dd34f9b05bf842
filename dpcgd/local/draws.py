"""Random draws of reports: seeded for experiments, exact and without a seed for real reports."""

import secrets
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from dpcgd.privacy.noise import check_source

__all__ = ["SLACK", "Draws", "SecureDraws", "SeededDraws", "as_integers", "draws_for", "pick"]

SLACK = 1e-7
"""The most by which the local privacy of secure draws exceeds a mechanism's epsilon."""


MOST_EPSILON = 700
"""The largest epsilon of secure draws; beyond it probabilities can be too small for doubles."""


class SeededDraws:
    """Reproducible draws, for experiments: whoever knows the seed can remove the noise."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def happens(self, chance: Fraction, n: int) -> np.ndarray:
        """n booleans, each true with this probability."""
        return self._rng.random(n) < float(chance)

    def uniform(self, levels: Sequence[int], n: int) -> np.ndarray:
        """n uniform cells of a domain, one row each."""
        return self._rng.integers(0, levels, (n, len(levels)))

    def each(self, weights: np.ndarray) -> np.ndarray:
        """A column for each row, with probability proportional to its weight."""
        edges = weights.cumsum(axis=1)
        return (edges <= (self._rng.random(len(weights)) * edges[:, -1])[:, None]).sum(axis=1)

    def from_rows(self, weights: np.ndarray, row: np.ndarray) -> np.ndarray:
        """A column for each entry of `row`, with probability proportional to that row's weights."""
        edges = weights.cumsum(axis=1)
        edges /= edges[:, -1:]
        edges += np.arange(len(weights))[:, None]  # one rising sequence: a search, not a copy each
        places = row + self._rng.random(len(row)) * (1 - 1e-12)
        return np.searchsorted(edges.ravel(), places, side="right") - row * weights.shape[1]


class SecureDraws:
    """Exact draws from the operating system's randomness; they have no seed.

    Privacy
    -------
    A mechanism's reports are (epsilon + :data:`SLACK`)-locally private. Not covered: how long a
    draw takes, and an operating system whose randomness can be guessed.

    Notes
    -----
    A double is an integer over a power of two. So stored weights are integers up to a common
    factor, and a uniform integer below their sum chooses each column with probability exactly
    weight over sum: only the weights are rounded. If rounding changes every weight by a factor of
    at most e^t, then weights divided by their sum change by at most e^2t, and log-ratios by at most
    4 t. An exponential of up to 700 has a t below 1e-12. A solved rate adds less than 1e-14 times
    the largest distance, which is below 500,000 if epsilon can be computed. With t for the rounding
    of epsilon itself, the total is 5 t.
    """

    def happens(self, chance: Fraction, n: int) -> np.ndarray:
        """n booleans, each true with this probability."""
        weights = [chance.denominator - chance.numerator, chance.numerator]
        return np.array([pick(weights) for _ in range(n)], bool)

    def uniform(self, levels: Sequence[int], n: int) -> np.ndarray:
        """n uniform cells of a domain, one row each."""
        cells = [[secrets.randbelow(k) for k in levels] for _ in range(n)]
        return np.array(cells, np.int64).reshape(n, len(levels))

    def each(self, weights: np.ndarray) -> np.ndarray:
        """A column for each row, with probability proportional to its weight."""
        return self.from_rows(weights, np.arange(len(weights)))

    def from_rows(self, weights: np.ndarray, row: np.ndarray) -> np.ndarray:
        """A column for each entry of `row`, with probability proportional to that row's weights."""
        exact = [as_integers(of_row) for of_row in weights.tolist()]
        return np.array([pick(exact[r]) for r in row], np.int64)


Draws = SeededDraws | SecureDraws
"""A source of randomness for reports."""


def as_integers(weights: Iterable[float]) -> list[int]:
    """The weights as integers in exactly the same proportions.

    Examples
    --------
    >>> as_integers([0.5, 0.125, 3.0, 0.0])
    [4, 1, 24, 0]
    """
    ratios = [weight.as_integer_ratio() for weight in weights]
    common = max(below for _, below in ratios)  # all are powers of two
    return [above * (common // below) for above, below in ratios]


def pick(weights: Sequence[int]) -> int:
    """An index with probability exactly weight / sum, from the operating system's randomness."""
    edges = list(accumulate(weights))
    return bisect_right(edges, secrets.randbelow(edges[-1]))


def draws_for(mechanism: Any, rng: np.random.Generator | None, secure: bool) -> Draws:
    """Secure draws for real reports, or seeded draws for experiments if a seed is given.

    Raises
    ------
    ValueError
        If both are asked for, `rng` is not a Generator, or secure draws are asked for at an epsilon
        above 700.
    """
    check_source(rng, secure)
    if rng is not None:
        return SeededDraws(rng)
    if not mechanism.epsilon <= MOST_EPSILON:
        raise ValueError(f"chances too small to draw securely; lower epsilon to {MOST_EPSILON}")
    return SecureDraws()
