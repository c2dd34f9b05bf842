"""Channels of local mechanisms: their domains, and their exact privacy from all entries."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.spatial.distance import cdist

from dpcgd.datasets.arguments import is_real, is_whole
from dpcgd.local.draws import Draws, draws_for

__all__ = ["Levels", "Mechanism", "privacy_loss"]

MOST_CHANNEL_CELLS = 4096
"""Largest domain for which a channel is written out as a matrix."""


MOST_COUNTED = 10**300
"""The largest number of cells; larger numbers cannot be stored as doubles."""


MOST_EPSILON = 1e9
"""The largest epsilon; with a larger one the probability of a right guess rounds to 1."""


Levels = int | tuple[int, ...]
"""Levels of one variable, or of each variable of a product domain."""


class Mechanism:
    """The base of all mechanisms: a public domain, and a channel between its cells.

    Subclasses override methods that are faster without the matrix of the channel.

    Attributes
    ----------
    levels : int, or tuple of int
        Public levels of one variable, or of each variable of a product domain.
    epsilon : float
        Exact level of local privacy, the largest log-ratio of any report's probabilities.
    d_privacy : float
        Exact level of d-privacy, the largest log-ratio per unit of distance between two inputs.
    p_max : float
        The probability that an attacker guesses the input, all inputs being equally likely.
    """

    levels: Levels
    _reports: Callable[[np.ndarray, Draws], np.ndarray]

    @property
    def channel(self) -> np.ndarray:
        """P[report | input], one row an input, product domains in the order of nested loops."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of each variable."""
        return shape_of(self.levels)

    @property
    def size(self) -> int:
        """Cells of the domain."""
        return math.prod(self.shape)

    def sample(
        self, codes: np.ndarray, *, rng: np.random.Generator | None = None, secure: bool = False
    ) -> np.ndarray:
        """Draw one report for each record, with `rng` for experiments or securely."""
        codes = checked_codes(codes, self.levels)
        reports = self._reports(codes, draws_for(self, rng, secure))
        return reports if isinstance(self.levels, tuple) else reports[:, 0]

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return (joint.ravel() @ self.channel).reshape(joint.shape)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return (self.channel @ values.ravel()).reshape(values.shape)


def privacy_loss(
    channel: np.ndarray, distances: np.ndarray | None = None, *, inputs: Sequence[int] | None = None
) -> float:
    """Worst log-ratio of a report's probabilities from two inputs, over all pairs of inputs.

    Parameters
    ----------
    channel : array, shape (k, m)
        P[report | input], one row an input.
    distances : array, shape (k, k), optional
        Distances between inputs. The result is then the level of d-privacy, per unit of distance.
    inputs : sequence of int, optional
        Each pair has one of these inputs; all inputs unless given.

    Returns
    -------
    float
        Infinite if a report is possible from one input only.

    Examples
    --------
    >>> round(privacy_loss(np.array([[0.75, 0.25], [0.25, 0.75]])), 3)
    1.099
    """
    worst = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(channel[:, channel.any(axis=0)])
    for x in range(len(logs)) if inputs is None else inputs:
        with np.errstate(invalid="ignore"):
            apart = np.abs(logs - logs[x])
        loss = np.nan_to_num(apart, nan=0.0, posinf=math.inf).max(axis=1)  # nan: impossible twice
        if distances is not None:
            loss = loss / np.where(distances[x] > 0, distances[x], 1)
        worst = max(worst, np.delete(loss, x).max())
    return float(worst)


def shape_of(levels: Levels) -> tuple[int, ...]:
    return tuple(levels) if isinstance(levels, Iterable) else (levels,)


def checked_levels(levels) -> Levels:
    shape = shape_of(levels)
    if not shape or any(not is_whole(k) or k < 2 for k in shape):
        raise ValueError(f"levels must be 2 or more, not {levels}; with one level, leave it out")
    shape = tuple(int(k) for k in shape)
    return shape if isinstance(levels, Iterable) else shape[0]


def checked_whole(levels: Levels) -> Levels:
    """Levels of a domain whose records are randomised as a whole."""
    if math.prod(shape_of(checked_levels(levels))) > MOST_COUNTED:
        raise ValueError("too many cells to randomise as a whole; use a component-wise mechanism")
    return checked_levels(levels)


def check_p_max(p_max: float, levels: Levels) -> int:
    """Refuse an unusable probability of a right guess; return the number of cells."""
    cells = math.prod(shape_of(checked_levels(levels)))
    if not 1 / cells <= p_max < 1:
        raise ValueError(f"p_max must be at least 1/{cells}, a guess, and below 1, not {p_max}")
    return cells


def check_nonnegative(name, value):
    if not (is_real(value) and value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a number that is not negative, not {value}")


def check_informative(informative):
    if not informative:
        raise ValueError("the reports do not depend on the records; raise epsilon or p_max")


def checked_codes(codes, levels) -> np.ndarray:
    """The codes as an integer array with one column for each variable."""
    codes, shape = np.asarray(codes), shape_of(levels)
    if codes.dtype.kind not in "iu":
        raise ValueError(f"codes must be integers, not {codes.dtype}; sort the values into bins")
    expected = (len(shape),) if isinstance(levels, tuple) else ()
    if codes.ndim == 0 or codes.shape[1:] != expected:
        raise ValueError(f"each record must have shape {expected}, not {codes.shape[1:]}")
    codes = codes.astype(np.int64).reshape(len(codes), len(shape))
    wrong = (codes < 0) | (codes >= shape)
    if wrong.any():
        record, v = np.argwhere(wrong)[0]
        raise ValueError(f"record {record} has no such level: {codes[record, v]}; correct it")
    return codes


def check_dense(levels):
    if math.prod(shape_of(levels)) > MOST_CHANNEL_CELLS:
        raise ValueError("this channel is too large to write out; use sample, epsilon and p_max")


def cells_of(levels) -> np.ndarray:
    """All inputs of a small domain, one row each."""
    check_dense(levels)
    shape = shape_of(levels)
    return np.indices(shape).reshape(len(shape), -1).T


def distances_between(levels, norm) -> np.ndarray:
    """Distances between all pairs of inputs, for norm 1, 2 or infinity."""
    return cdist(cells_of(levels), cells_of(levels), "minkowski", p=norm)


def root_of_rising(excess: Callable[[float], float]) -> float:
    """The root of an increasing function that is not positive at 0."""
    high = 1.0
    while excess(high) < 0:
        high *= 2
        if high > MOST_EPSILON:
            raise ValueError("p_max is too near to 1 for double precision; choose a smaller one")
    return brentq(excess, 0.0, high, xtol=1e-15, rtol=8.9e-16) if excess(0.0) < 0 else 0.0
