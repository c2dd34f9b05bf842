"""Draws that make reports: seeded for experiments, exact and without a seed for real reports."""

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
"""Above it the smallest probabilities of a mechanism are too small for doubles."""


class SeededDraws:
    """Reproducible draws, for experiments: whoever knows the seed can take the noise off."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def happens(self, chance: Fraction, n: int) -> np.ndarray:
        """n answers, each true with this chance."""
        return self._rng.random(n) < float(chance)

    def uniform(self, levels: Sequence[int], n: int) -> np.ndarray:
        """n uniform cells of a domain, one row each."""
        return self._rng.integers(0, levels, (n, len(levels)))

    def each(self, weights: np.ndarray) -> np.ndarray:
        """A column for each row, with probability proportional to its weight."""
        edges = weights.cumsum(axis=1)
        places = self._rng.random(len(weights)) * edges[:, -1]
        return (edges <= places[:, None]).sum(axis=1)

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
    A double is an integer over a power of two. Stored weights are thus integers but for a common
    factor, and a uniform integer below their sum picks each column with a chance of exactly weight
    over sum: after the weights nothing is rounded. The weights themselves are. If rounding moves
    none by more than a factor of e^t, up or down, then none moves by more than e^2t once they are
    divided by their sum, and no log-ratio by more than 4 t. An exponential of up to 700 has a t
    below 1e-12. A solved rate adds less than 1e-14 times the largest distance, and that is below
    500,000 wherever epsilon can be computed. With t for the rounding of epsilon itself: 5 t.
    """

    def happens(self, chance: Fraction, n: int) -> np.ndarray:
        """n answers, each true with this chance."""
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
"""Where the randomness of reports comes from."""


def as_integers(weights: Iterable[float]) -> list[int]:
    """Integers in exactly the same proportions.

    Examples
    --------
    >>> as_integers([0.5, 0.125, 3.0, 0.0])
    [4, 1, 24, 0]
    """
    ratios = [weight.as_integer_ratio() for weight in weights]
    common = max(below for _, below in ratios)  # all are powers of two
    return [above * (common // below) for above, below in ratios]


def pick(weights: Sequence[int]) -> int:
    """An index with a chance of exactly weight / sum, from the operating system's randomness."""
    edges = list(accumulate(weights))
    return bisect_right(edges, secrets.randbelow(edges[-1]))


def draws_for(mechanism: Any, rng: np.random.Generator | None, secure: bool) -> Draws:
    """Secure draws for real reports, or seeded ones for experiments if a seed is asked for.

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
