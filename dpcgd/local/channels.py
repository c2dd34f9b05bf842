"""Channels of local mechanisms: their domains, and their privacy by looking at every entry."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

__all__ = ["Levels", "LocalMechanism", "privacy_loss"]

MOST_CHANNEL_CELLS = 4096
"""Largest domain for which a channel is written out as a matrix."""


MOST_COUNTED = 10**300
"""Larger numbers of cells are no doubles."""


MOST_EPSILON = 1e9
"""No mechanism here needs as much for any chance to guess that a double can tell from 1."""


Levels = int | tuple[int, ...]
"""Levels of one variable, or of each variable of a product domain."""


class LocalMechanism(Protocol):
    """What all mechanisms here have in common."""

    @property
    def levels(self) -> Levels:
        """Public levels, a number for one variable, a tuple of them for a product domain."""

    @property
    def epsilon(self) -> float:
        """Exact level of local privacy, the largest log-ratio of any report's probabilities."""

    @property
    def d_privacy(self) -> float:
        """The same per unit of distance between the two inputs."""

    @property
    def p_max(self) -> float:
        """An attacker's chance to guess the input from the report, all inputs equally likely."""

    @property
    def channel(self) -> np.ndarray:
        """P[report | input], one row an input, product domains in the order of nested loops."""

    def __hash__(self) -> int:
        """Mechanisms are values: what is worked out for one is kept."""

    def sample(
        self, codes: np.ndarray, *, rng: np.random.Generator | None = None, secure: bool = False
    ) -> np.ndarray:
        """Draw one report for each record, with `rng` for experiments or securely."""

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""


class ThroughChannel:
    """What reports look like and what they say, by the matrix: for domains that it can be made of.

    Mechanisms that know how to do without have methods of their own.
    """

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        raise NotImplementedError

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return (joint.ravel() @ self.channel).reshape(joint.shape)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return (self.channel @ values.ravel()).reshape(values.shape)


def privacy_loss(
    channel: np.ndarray, distances: np.ndarray | None = None, *, inputs: Sequence[int] | None = None
) -> float:
    """Worst log-ratio of a report's probabilities from two inputs, by looking at all of them.

    Parameters
    ----------
    channel : array, shape (k, m)
        P[report | input], one row an input.
    distances : array, shape (k, k), optional
        Between inputs. The ratio is then taken per unit of distance: the level of d-privacy.
    inputs : sequence of int, optional
        One input of each pair is among these; all unless given.

    Returns
    -------
    float
        Infinite if a report is possible from one input only.

    Examples
    --------
    >>> round(privacy_loss(np.array([[0.75, 0.25], [0.25, 0.75]])), 3)
    1.099
    """
    channel = channel[:, channel.any(axis=0)]
    with np.errstate(divide="ignore"):
        logs = np.log(channel)
    worst = 0.0
    for x in range(len(logs)) if inputs is None else inputs:
        with np.errstate(invalid="ignore"):
            apart = np.abs(logs - logs[x])
        loss = np.nan_to_num(apart, nan=0.0, posinf=math.inf).max(axis=1)  # nan: impossible twice
        loss = np.delete(loss if distances is None else _per_unit(loss, distances[x]), x)
        worst = max(worst, loss.max())
    return float(worst)


def _per_unit(loss, distance):
    return loss / np.where(distance > 0, distance, 1)


def shape_of(levels: Levels) -> tuple[int, ...]:
    return (levels,) if isinstance(levels, int | np.integer) else tuple(levels)


def checked_levels(levels) -> Levels:
    shape = shape_of(levels)
    if not shape or any(int(k) != k or k < 2 for k in shape):
        raise ValueError(
            f"every variable needs at least 2 levels, not {levels}; "
            "a variable with one level has nothing to hide: leave it out"
        )
    shape = tuple(int(k) for k in shape)
    return shape[0] if isinstance(levels, int | np.integer) else shape


def check_counted(levels: Levels):
    """Refuse a domain whose number of cells is no double."""
    if math.prod(shape_of(levels)) > MOST_COUNTED:
        raise ValueError(
            f"a domain of {len(shape_of(levels))} variables has too many cells to randomise as a "
            "whole; use a component-wise mechanism"
        )


def check_p_max(p_max, cells):
    if not 1 / cells <= p_max < 1:
        raise ValueError(
            f"p_max must be at least 1/{cells} = {1 / cells:.4g}, the chance of a guess without a "
            f"report, and below 1, not {p_max}; raise it or use fewer levels"
        )


def check_nonnegative(name, value):
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a number that is not negative, not {value}")


def checked_codes(codes, levels) -> np.ndarray:
    """As an integer array with one column for each variable."""
    codes, shape = np.asarray(codes), shape_of(levels)
    if codes.dtype.kind not in "iu":
        raise ValueError(f"codes must be integers, not {codes.dtype}; sort the values into bins")
    single = not isinstance(levels, tuple)
    if codes.ndim != 2 - single or (not single and codes.shape[1] != len(shape)):
        asked = "one code a record" if single else f"{len(shape)} codes a record"
        raise ValueError(f"this mechanism takes {asked}, not an array of shape {codes.shape}")
    codes = codes.astype(np.int64).reshape(len(codes), len(shape))
    wrong = (codes < 0) | (codes >= shape)
    if wrong.any():
        record, v = np.argwhere(wrong)[0]
        raise ValueError(
            f"record {record} has the value {codes[record, v]} outside the domain 0 to "
            f"{shape[v] - 1}; correct it or add the level to the domain"
        )
    return codes


def as_given(codes, levels) -> np.ndarray:
    return codes if isinstance(levels, tuple) else codes[:, 0]


def check_dense(levels):
    cells = math.prod(shape_of(levels))
    if cells > MOST_CHANNEL_CELLS:
        raise ValueError(
            f"the channel of a domain of {cells:,} cells is too large to write out (the limit is "
            f"{MOST_CHANNEL_CELLS:,}); use sample, epsilon and p_max, which do not need it, fewer "
            "bins, or a component-wise mechanism"
        )


def cells_of(levels) -> np.ndarray:
    """All inputs of the domain, one row each."""
    shape = shape_of(levels)
    return np.indices(shape).reshape(len(shape), -1).T


def distances_between(levels, norm) -> np.ndarray:
    """Between all pairs of inputs."""
    cells = cells_of(levels)
    apart = np.zeros((len(cells), len(cells)))
    for column in cells.T:
        gap = np.abs(column[:, None] - column).astype(float)
        apart = np.maximum(apart, gap) if norm == math.inf else apart + gap**norm
    return apart if norm == math.inf else apart ** (1 / norm)


def root_of_rising(excess: Callable[[float], float]) -> float:
    """The root of a rising function that is not positive at 0."""
    high = 1.0
    while excess(high) < 0:
        high *= 2
        if high > MOST_EPSILON:
            raise ValueError("p_max is too near to 1 for double precision; choose a smaller one")
    return brentq(excess, 0.0, high, xtol=1e-15, rtol=8.9e-16) if excess(0.0) < 0 else 0.0
