"""Local privacy: each person randomises their own record before anybody sees it.

One record makes one report. The guarantee holds for each report alone and needs no account: whoever
reports m times is protected by m times the epsilon. Chapter 10 has the proofs.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, groupby, product
from typing import NamedTuple, Protocol

import numpy as np

from dpcgd.datasets import Dataset
from dpcgd.statistics import normal_tail

__all__ = [
    "ClippedGeometric",
    "ComponentWise",
    "CorrectedTables",
    "CorrelationOracle",
    "Geometric",
    "LocalMechanism",
    "Moments",
    "RandomizedResponse",
    "Reconstruction",
    "UniformGeometric",
    "privacy_loss",
    "reconstruct",
    "report",
]

MOST_CELLS = 4096
"""Largest domain for which a channel is written out as a matrix."""
MOST_COUNTS = 1 << 20
"""Largest domain over which a joint distribution is reconstructed."""
MOST_KINDS = 200_000
"""Largest number of kinds of inputs, up to symmetry, that an exact privacy level looks at."""
BLOCK = 256
"""Inputs that are tuned at once: their counts of cells by distance take tens of megabytes."""

Levels = int | tuple[int, ...]


class LocalMechanism(Protocol):
    """What all mechanisms here have in common."""

    levels: Levels
    """Public levels: a number for one variable, a tuple of them for a product domain."""
    epsilon: float
    """Exact level of local privacy: the largest log-ratio of the probabilities of any report."""
    d_privacy: float
    """The same per unit of distance between the two inputs."""
    p_max: float
    """An attacker's chance to guess the input from the report, all inputs being equally likely."""
    channel: np.ndarray
    """P[report | input], one row an input, product domains in the order of nested loops."""

    def sample(self, codes: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one report for each record."""


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


def _shape(levels: Levels) -> tuple[int, ...]:
    return (levels,) if isinstance(levels, int | np.integer) else tuple(levels)


def _checked_levels(levels) -> Levels:
    shape = _shape(levels)
    if not shape or any(int(k) != k or k < 2 for k in shape):
        raise ValueError(
            f"every variable needs at least 2 levels, not {levels}; "
            "a variable with one level has nothing to hide: leave it out"
        )
    shape = tuple(int(k) for k in shape)
    return shape[0] if isinstance(levels, int | np.integer) else shape


def _check_p_max(p_max, cells):
    if not 1 / cells <= p_max < 1:
        raise ValueError(
            f"p_max must be at least 1/{cells} = {1 / cells:.4g}, the chance of a guess without a "
            f"report, and below 1, not {p_max}; raise it or use fewer levels"
        )


def _check_nonnegative(name, value):
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a number that is not negative, not {value}")


def _checked_codes(codes, levels) -> np.ndarray:
    """As an integer array with one column for each variable."""
    codes, shape = np.asarray(codes), _shape(levels)
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


def _as_given(codes, levels) -> np.ndarray:
    return codes if isinstance(levels, tuple) else codes[:, 0]


def _check_dense(levels):
    cells = math.prod(_shape(levels))
    if cells > MOST_CELLS:
        raise ValueError(
            f"the channel of a domain of {cells:,} cells is too large to write out (the limit is "
            f"{MOST_CELLS:,}); use sample, epsilon and p_max, which do not need it, fewer bins, or "
            "a component-wise mechanism"
        )


def _cells(levels) -> np.ndarray:
    """All inputs of the domain, one row each."""
    shape = _shape(levels)
    return np.indices(shape).reshape(len(shape), -1).T


def _distances(levels, norm) -> np.ndarray:
    """Between all pairs of inputs."""
    cells = _cells(levels)
    apart = np.zeros((len(cells), len(cells)))
    for column in cells.T:
        gap = np.abs(column[:, None] - column).astype(float)
        apart = np.maximum(apart, gap) if norm == math.inf else apart + gap**norm
    return apart if norm == math.inf else apart ** (1 / norm)


def _draw(weights, rng) -> np.ndarray:
    """A column for each row, with probability proportional to its weight."""
    edges = weights.cumsum(axis=1)
    at = rng.random(len(weights)) * edges[:, -1]
    return (edges <= at[:, None]).sum(axis=1)


def _draw_from(weights, row, rng) -> np.ndarray:
    """A column for each entry of `row`, with probability proportional to that row's weights."""
    edges = weights.cumsum(axis=1)
    edges /= edges[:, -1:]
    edges += np.arange(len(weights))[:, None]  # one rising sequence: a search, not a copy a record
    at = row + rng.random(len(row)) * (1 - 1e-12)
    return np.searchsorted(edges.ravel(), at, side="right") - row * weights.shape[1]


class Moments(NamedTuple):
    """What reports say about means and mean products of the records, without bias.

    The mean over the reports of ``values`` estimates the records' means, that of ``roots[a] *
    roots[b]`` plus ``squares`` on the diagonal plus ``constant`` their mean products.
    """

    values: np.ndarray
    roots: np.ndarray
    squares: np.ndarray
    constant: np.ndarray

    @classmethod
    def of_records(cls, values: np.ndarray) -> "Moments":
        """Of records as they are: reports for a naive analysis, or data without noise."""
        values = np.asarray(values, float)
        d = values.shape[1]
        return cls(values, values, np.zeros_like(values), np.zeros((d, d)))

    def without_bins(self) -> "Moments":
        """Of the values that were sorted into bins, in units of their width: Sheppard's correction.

        Notes
        -----
        A smooth density gives a code 1/12 more variance than the value has. Whether the density is
        smooth, the reports do not say: it is an assumption.
        """
        return self._replace(constant=self.constant - np.eye(len(self.constant)) / 12)

    @property
    def covariance(self) -> np.ndarray:
        """Estimated covariance of the records; with much noise it may have negative eigenvalues."""
        n, mean = len(self.values), self.values.mean(axis=0)
        products = self.roots.T @ self.roots / n + np.diag(self.squares.mean(axis=0))
        return products + self.constant - np.outer(mean, mean)


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
        If a variable has fewer than two levels or epsilon is negative.

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
        object.__setattr__(self, "levels", _checked_levels(self.levels))
        _check_nonnegative("epsilon", self.epsilon)

    @classmethod
    def from_p_max(cls, levels: Levels, p_max: float) -> "RandomizedResponse":
        """With this chance of reporting the value itself."""
        cells = math.prod(_shape(_checked_levels(levels)))
        _check_p_max(p_max, cells)
        return cls(levels, max(0.0, math.log(p_max) + math.log(cells - 1) - math.log1p(-p_max)))

    @classmethod
    def from_epsilon(cls, levels: Levels, epsilon: float) -> "RandomizedResponse":
        """At this exact level of local privacy."""
        return cls(levels, epsilon)

    @property
    def size(self) -> int:
        """Cells of the domain."""
        return math.prod(_shape(self.levels))

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

    @property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        _check_dense(self.levels)
        return self.kept * np.eye(self.size) + (1 - self.kept) / self.size

    def sample(self, codes: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one report for each record."""
        codes = _checked_codes(codes, self.levels)
        kept = rng.random(len(codes)) < self.kept
        uniform = rng.integers(0, _shape(self.levels), codes.shape)
        return _as_given(np.where(kept[:, None], codes, uniform), self.levels)

    def of(self, variables: Sequence[int]) -> "RandomizedResponse":
        """What this does to some variables of a product domain: randomised response again."""
        levels = tuple(_shape(self.levels)[v] for v in variables)
        size, kept = math.prod(levels), self.kept
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
        kept, codes = self.kept, _checked_codes(reports, self.levels).astype(float)
        shape = np.array(_shape(self.levels), float)
        mean, spread = (shape - 1) / 2, (shape**2 - 1) / 12  # of a uniform draw
        uniform = np.outer(mean, mean) + np.diag(spread)
        values = (codes - (1 - kept) * mean) / kept
        constant = -(1 - kept) / kept * uniform
        return Moments(values, codes / math.sqrt(kept), np.zeros_like(codes), constant)


def _check_told(kept):
    if kept < 1e-12:
        raise ValueError("the reports do not depend on the records; raise epsilon or p_max")


@dataclass(frozen=True)
class _OneVariable:
    """What the mechanisms on one variable share that is read off their channel."""

    levels: int
    rate: float

    def __post_init__(self):
        object.__setattr__(self, "levels", _checked_levels(self.levels))
        _check_nonnegative("rate", self.rate)

    @property
    def d_privacy(self) -> float:
        """Worst log-ratio for each unit of distance."""
        return privacy_loss(self.channel, _distances(self.levels, 1))

    @property
    def epsilon(self) -> float:
        """Worst log-ratio."""
        return privacy_loss(self.channel)

    @property
    def p_max(self) -> float:
        """An attacker's chance under a uniform prior: the mean of the columns' largest entries."""
        return float(self.channel.max(axis=0).sum() / self.levels)

    def sample(self, codes: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one report for each record."""
        codes = _checked_codes(codes, self.levels)[:, 0]
        return _draw(self.channel[codes], rng)


class ClippedGeometric(_OneVariable):
    """Two-sided geometric noise; what falls outside the domain moves to its nearer end.

    Parameters
    ----------
    levels : int
    rate : float
        Log-ratio for each step of the noise.

    Privacy
    -------
    Exactly `rate` times distance, hence (levels - 1) times `rate` of local privacy. Chapter 10.

    Notes
    -----
    The truncated geometric mechanism of Ghosh, Roughgarden and Sundararajan (2012).

    Examples
    --------
    >>> mechanism = ClippedGeometric.from_p_max(10, 0.5)
    >>> round(mechanism.rate, 3), round(mechanism.epsilon, 3), round(mechanism.p_max, 3)
    (0.956, 8.6, 0.5)
    """

    @classmethod
    def from_p_max(cls, levels: int, p_max: float) -> "ClippedGeometric":
        """With this attacker's success."""
        _check_p_max(p_max, _checked_levels(levels))
        return cls(levels, math.log((p_max * levels + levels - 2) / (levels * (1 - p_max))))

    @classmethod
    def from_epsilon(cls, levels: int, epsilon: float) -> "ClippedGeometric":
        """At this exact level of local privacy."""
        return cls(levels, epsilon / (_checked_levels(levels) - 1))

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        _check_dense(self.levels)
        one_step = math.exp(-self.rate)
        channel = one_step ** _distances(self.levels, 1) / (1 + one_step)
        channel[:, 1:-1] *= 1 - one_step
        return channel


class UniformGeometric(_OneVariable):
    """Two-sided geometric noise; what falls outside the domain is replaced by a uniform draw.

    Parameters
    ----------
    levels : int
    rate : float
        Log-ratio for each step of the noise.

    Examples
    --------
    >>> round(UniformGeometric.from_p_max(10, 0.5).p_max, 12)
    0.5
    """

    @classmethod
    def from_p_max(cls, levels: int, p_max: float) -> "UniformGeometric":
        """With this attacker's success."""
        _check_p_max(p_max, _checked_levels(levels))
        return cls(levels, _rising(lambda rate: cls(levels, rate).p_max - p_max))

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        _check_dense(self.levels)
        one_step = math.exp(-self.rate)
        inside = one_step ** _distances(self.levels, 1) * math.tanh(self.rate / 2)
        return inside + (1 - inside.sum(axis=1, keepdims=True)) / self.levels


def _rising(excess: Callable[[float], float]) -> float:
    """The root of a rising function that is not positive at 0."""
    from scipy.optimize import brentq  # heavy, and only needed here

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return brentq(excess, 0.0, high, xtol=1e-15, rtol=8.9e-16) if excess(0.0) < 0 else 0.0


@dataclass(frozen=True)
class Geometric:
    """The bounded geometric mechanism: P[y | x] = p_max exp(-rate(x) |y - x|) inside the domain.

    Parameters
    ----------
    levels : int, or tuple of int
        A tuple is a product domain whose records are randomised as a whole ("combined").
    p_max : float
        The chance of reporting the record itself, the same for every record.
    norm : 1, 2 or math.inf
        Which distance, on a product domain.

    Raises
    ------
    ValueError
        If a variable has fewer than two levels, the norm is another, or p_max is below the chance
        of a guess without a report.

    Privacy
    -------
    The largest rate(x) times distance over all x and reports, exactly: :attr:`epsilon`. The level
    of d-privacy exceeds every rate(x) where rates differ: :attr:`d_privacy`. Chapter 10.

    Notes
    -----
    Binkyte et al. (2024): geometric noise, drawn anew until it is in the domain, at a fixed p_max.
    Rates, privacy and samples come from counts of cells by distance, never from a list of cells: a
    domain of 10^11 cells takes a second. Inputs that a reflection or an exchange of equal variables
    maps to each other share one rate.

    Examples
    --------
    >>> mechanism = Geometric(10, 0.5)
    >>> round(mechanism.epsilon, 2), round(mechanism.d_privacy, 2)
    (7.7, 1.47)
    >>> mechanism.channel[0, :3].round(3)
    array([0.5  , 0.25 , 0.125])
    >>> whole = Geometric((10,) * 11, 0.05, norm=2)
    >>> whole.sample(np.full((1, 11), 5), rng=np.random.default_rng(0))
    array([[6, 6, 7, 4, 4, 5, 5, 5, 4, 5, 5]])
    """

    levels: Levels
    p_max: float
    norm: float = 2

    def __post_init__(self):
        object.__setattr__(self, "levels", _checked_levels(self.levels))
        _check_p_max(self.p_max, math.prod(_shape(self.levels)))
        if self.norm not in (1, 2, math.inf):
            raise ValueError(f"norm must be 1, 2 or math.inf, not {self.norm}")

    @classmethod
    def from_p_max(cls, levels: Levels, p_max: float, norm: float = 2) -> "Geometric":
        """With this attacker's success."""
        return cls(levels, p_max, norm)

    @classmethod
    def from_epsilon(cls, levels: Levels, epsilon: float, norm: float = 2) -> "Geometric":
        """At this exact level of local privacy, reached by the input that needs the most noise."""
        _check_nonnegative("epsilon", epsilon)
        balls = _balls(_checked_levels(levels), norm)
        least = math.inf
        for rows in balls.kinds():
            rates = epsilon / balls.radius(rows)
            mass = balls.counts(rows)[0] * np.exp(-rates[:, None] * balls.distances)
            least = min(least, 1 / mass.sum(axis=1).max())
        low, high = 1 / math.prod(_shape(levels)), math.nextafter(1, 0)  # but for rounding
        return cls(levels, min(max(float(least), low), high), norm)

    @cached_property
    def _balls(self):
        return _balls(self.levels, self.norm)

    @cached_property
    def epsilon(self) -> float:
        """Largest rate times the distance of the farthest report."""
        balls = self._balls
        return max(
            float((self._tuned(balls.counts(rows)[0]) * balls.radius(rows)).max())
            for rows in balls.kinds()
        )

    @cached_property
    def d_privacy(self) -> float:
        """Worst log-ratio for each unit of distance.

        In closed form for norm 1, where steps of one level make up every distance; for the other
        norms from the channel, if it is small enough.
        """
        if self.norm == 1 or not isinstance(self.levels, tuple):
            return self._worst_step()
        _check_dense(self.levels)
        cells = _cells(self.levels)
        kinds = np.unique(self._balls.canonical(cells)[0], axis=0, return_index=True)[1]
        return privacy_loss(self.channel, _distances(self.levels, self.norm), inputs=kinds)

    def _worst_step(self) -> float:
        """Largest log-ratio between inputs that differ by one level of one variable."""
        balls, worst = self._balls, 0.0
        for rows in balls.kinds():
            rates = self._tuned(balls.counts(rows)[0])
            worst = max(worst, rates.max())
            for v in range(rows.shape[1]):
                here = rows[:, v] > 0
                if here.any():
                    worst = max(worst, self._loss_of_step(rows[here], rates[here], v))
        return float(worst)

    def _loss_of_step(self, rows, rates, v) -> float:
        """From each row to the one whose variable v is a level nearer to the end."""
        balls = self._balls
        nearer = rows.copy()
        nearer[:, v] -= 1
        others = self._tuned(balls.counts(nearer)[0])
        reports = np.arange(balls.levels[v])
        beside = balls.radius(rows) - (balls.levels[v] - 1 - rows[:, v])
        losses = [
            rates[:, None] * (np.abs(reports - rows[:, v, None]) + far[:, None])
            - others[:, None] * (np.abs(reports - nearer[:, v, None]) + far[:, None])
            for far in (np.zeros_like(beside), beside)
        ]
        return np.abs(losses).max()

    def rates(self, codes: np.ndarray) -> np.ndarray:
        """The rate of each record, such that its reports' probabilities add up to one."""
        places = self._balls.canonical(_checked_codes(codes, self.levels))[0]
        rows, inverse = np.unique(places, axis=0, return_inverse=True)
        return np.concatenate([self._tuned(self._balls.counts(b)[0]) for b in _blocks(rows)])[
            inverse.ravel()
        ]

    def _tuned(self, counts) -> np.ndarray:
        """Solve sum_r counts(r) exp(-rate r) = 1 / p_max for each row."""
        return _tuned(self._balls.distances, counts, self.p_max)

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        _check_dense(self.levels)
        cells = _cells(self.levels)
        rates = self.rates(cells if isinstance(self.levels, tuple) else cells[:, 0])
        return self.p_max * np.exp(-rates[:, None] * _distances(self.levels, self.norm))

    def sample(self, codes: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one report for each record, exactly: first its distance, then a cell that far."""
        codes, balls = _checked_codes(codes, self.levels), self._balls
        places, order, mirrored = balls.canonical(codes)
        rows, inverse = np.unique(places, axis=0, return_inverse=True)
        found = np.empty_like(codes)
        for first, block in zip(range(0, len(rows), BLOCK), _blocks(rows), strict=True):
            here = np.flatnonzero((inverse.ravel() >= first) & (inverse.ravel() < first + BLOCK))
            counts = balls.counts(block)
            mass = counts[0] * np.exp(-self._tuned(counts[0])[:, None] * balls.distances)
            row = inverse.ravel()[here] - first
            found[here] = balls.draw(block, counts, row, _draw_from(mass, row, rng), rng)
        reports = np.empty_like(codes)
        np.put_along_axis(reports, order, found, axis=1)
        ends = np.array(_shape(self.levels)) - 1
        return _as_given(np.where(mirrored, ends - reports, reports), self.levels)

    def of(self, variables: Sequence[int]):
        """Refused on a product domain: how far one variable moves depends on all the others."""
        if list(variables) == list(range(len(_shape(self.levels)))):
            return self
        raise ValueError(
            "the combined geometric mechanism has no channel for some of its variables; "
            "reconstruct the joint distribution, or use a component-wise mechanism"
        )

    def forward(self, joint: np.ndarray) -> np.ndarray:
        """Distribution of the reports of records with this distribution."""
        return (joint.ravel() @ self.channel).reshape(joint.shape)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """For each input, the mean of these values over its report."""
        return (self.channel @ values.ravel()).reshape(values.shape)


def _tuned(distances, counts, p_max) -> np.ndarray:
    """Newton's method from 0 on a convex falling function: it never passes the root."""
    rates, present = np.zeros(len(counts)), counts.any(axis=0)
    distances, counts = distances[present], counts[:, present]
    for _ in range(200):
        mass = counts * np.exp(-rates[:, None] * distances)
        total = mass.sum(axis=1)
        step = np.log(total * p_max) * total / (mass @ distances)
        rates += step
        if (np.abs(step) <= 1e-15 * (1 + rates)).all():
            break
    return np.maximum(rates, 0.0)


def _blocks(rows) -> Iterator[np.ndarray]:
    for first in range(0, len(rows), BLOCK):
        yield rows[first : first + BLOCK]


def _balls(levels, norm):
    norm = norm if isinstance(levels, tuple) else 1  # on one variable all norms are the same
    return _Largest(levels) if norm == math.inf else _Sums(levels, norm)


class _Balls:
    """Cells by their distance from an input, counted and drawn without listing them.

    Inputs come in canonical form: variables sorted by their levels, each reflected into the lower
    half of its levels, equal variables in rising order.
    """

    def __init__(self, levels):
        self.given = np.array(_shape(levels))
        self.levels = np.sort(self.given)

    def canonical(self, codes):
        """(places, order of the variables, which were reflected) of each record."""
        mirrored = 2 * codes > self.given - 1
        places = np.where(mirrored, self.given - 1 - codes, codes)
        order = np.argsort(self.given * (self.levels[-1] + 1) + places, axis=1, kind="stable")
        return np.take_along_axis(places, order, axis=1), order, mirrored

    def kinds(self) -> Iterator[np.ndarray]:
        """All canonical inputs, a block at a time."""
        groups = [(k, len(list(same))) for k, same in groupby(self.levels.tolist())]
        if math.prod(math.comb(-(-k // 2) + m - 1, m) for k, m in groups) > MOST_KINDS:
            raise ValueError(
                f"the domain has more than {MOST_KINDS:,} kinds of inputs; "
                "use fewer bins, or a component-wise mechanism"
            )
        ways = (combinations_with_replacement(range(-(-k // 2)), m) for k, m in groups)
        rows = np.array([sum(parts, ()) for parts in product(*ways)])
        return _blocks(rows)

    def _within(self, rows, v) -> np.ndarray:
        """How many levels of variable v lie at each distance from its place."""
        steps = np.arange(self.levels[v])
        below = steps <= rows[:, v, None]
        above = steps < self.levels[v] - rows[:, v, None]
        return np.where(steps > 0, below.astype(float) + above, 1.0)


class _Sums(_Balls):
    """Distances whose powers add up over the variables: norms 1 and 2."""

    def __init__(self, levels, norm):
        super().__init__(levels)
        self.norm = norm
        self.most = int(((self.levels - 1) ** norm).sum())
        self.distances = np.arange(self.most + 1) ** (1 / norm)

    def radius(self, rows) -> np.ndarray:
        """Distance of the farthest cell."""
        return ((self.levels - 1 - rows) ** float(self.norm)).sum(axis=1) ** (1 / self.norm)

    def counts(self, rows) -> list[np.ndarray]:
        """Cells at each summed power, over all variables from the v-th on, for every v."""
        start = np.zeros((len(rows), self.most + 1))
        start[:, 0] = 1
        found = [start]
        for v in reversed(range(len(self.levels))):
            counts, reached = np.zeros_like(start), np.flatnonzero(found[0].any(axis=0))
            before = found[0][:, reached]
            for step, ways in enumerate(self._within(rows, v).T):
                counts[:, reached + step**self.norm] += ways[:, None] * before
            found.insert(0, counts)
        return found

    def draw(self, rows, counts, row, total, rng) -> np.ndarray:
        """A uniform cell at the given total for each record, one variable after the other."""
        cells, left = np.empty((len(row), len(self.levels)), np.int64), total
        for v, k in enumerate(self.levels):
            rest = left[:, None] - np.abs(np.arange(k) - rows[row, v, None]) ** self.norm
            ways = counts[v + 1][row[:, None], np.maximum(rest, 0)]
            cells[:, v] = _draw(np.where(rest >= 0, ways, 0.0), rng)
            left = np.take_along_axis(rest, cells[:, v, None], axis=1)[:, 0]
        return cells


class _Largest(_Balls):
    """The largest distance over the variables: norm infinity."""

    def __init__(self, levels):
        super().__init__(levels)
        self.distances = np.arange(int(self.levels[-1])).astype(float)

    def radius(self, rows) -> np.ndarray:
        """Distance of the farthest cell."""
        return (self.levels - 1 - rows).max(axis=1).astype(float)

    def counts(self, rows) -> list[np.ndarray]:
        """Cells at each distance; then, for each variable, its levels within each distance."""
        inside = []
        for v in range(len(self.levels)):
            here = np.zeros((len(rows), len(self.distances)))
            here[:, : self.levels[v]] = self._within(rows, v)
            inside.append(here.cumsum(axis=1))
        return [np.diff(np.prod(inside, axis=0), prepend=0.0), *inside]

    def draw(self, rows, counts, row, total, rng) -> np.ndarray:
        """A uniform cell at the given distance: first which variable is the first that far."""
        within = np.array([inside[row, total] for inside in counts[1:]])
        nearer = np.array([inside[row, total - 1] for inside in counts[1:]]) * (total > 0)
        before = np.cumprod(np.vstack([np.ones(len(row)), nearer[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones(len(row)), within[:0:-1]]), axis=0)[::-1]
        first = _draw((before * (within - nearer) * after).T, rng)
        cells = np.empty((len(row), len(self.levels)), np.int64)
        for v, k in enumerate(self.levels):
            place, most = rows[row, v], total - (v < first)
            gap = np.abs(np.arange(k) - place[:, None])
            allowed = np.where((v == first)[:, None], gap == total[:, None], gap <= most[:, None])
            cells[:, v] = _draw(allowed.astype(float), rng)
        return cells


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
            :class:`RandomizedResponse`, :class:`Geometric` or :class:`ClippedGeometric`.
        levels : sequence of int
        epsilon : float
            Of the whole record. Variable i gets epsilon levels[i] / sum(levels).
        """
        levels, total = tuple(levels), sum(levels)
        return cls([kind.from_epsilon(k, epsilon * k / total) for k in levels])

    @classmethod
    def from_p_max(cls, kind: type, levels: Sequence[int], p_max: float) -> "ComponentWise":
        """With this attacker's success on the whole record; shares as for :meth:`from_epsilon`."""
        _check_p_max(p_max, math.prod(_checked_levels(tuple(levels))))

        def excess(epsilon):
            return math.log(cls.from_epsilon(kind, levels, epsilon).p_max / p_max)

        return cls.from_epsilon(kind, levels, _rising(excess))

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
        _check_dense(self.levels)
        whole = np.ones((1, 1))
        for mechanism in self.mechanisms:
            whole = np.kron(whole, mechanism.channel)
        return whole

    def sample(self, codes: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        """Draw one report for each record."""
        columns = zip(self.mechanisms, _checked_codes(codes, self.levels).T, strict=True)
        return np.column_stack([m.sample(column, rng=rng) for m, column in columns])

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
        columns = zip(self.mechanisms, _checked_codes(reports, self.levels).T, strict=True)
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


def report(data: Dataset, mechanism: LocalMechanism, *, rng: np.random.Generator) -> Dataset:
    """What everybody in a data set would report.

    Parameters
    ----------
    data : Dataset
    mechanism : LocalMechanism
        Over the public levels of the data.
    rng : numpy.random.Generator
        In use each person draws their own randomness; one generator is for experiments.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the mechanism is for other levels.

    Privacy
    -------
    ``mechanism.epsilon``-local privacy for everybody who reports once; m times that for m reports.

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
    return Dataset(mechanism.sample(data.codes, rng=rng), data.levels, data.truth, data.name)


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """A joint distribution that explains reports; asked like :class:`dpcgd.tables.Tables`.

    Attributes
    ----------
    joint : array
        One axis for each variable; adds up to one.
    n : int
        Number of reports.
    log_likelihoods : array
        Of the reports, in nats, before the first update and after each.
    gap : float
        The log-likelihood is at most so many nats below that of the best joint distribution.
    """

    joint: np.ndarray
    n: int
    log_likelihoods: np.ndarray
    gap: float

    @property
    def iterations(self) -> int:
        """Updates made."""
        return len(self.log_likelihoods) - 1

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        """Public levels of these variables."""
        return tuple(self.joint.shape[v] for v in variables)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Expected counts of these variables, rounded."""
        return np.rint(self.n * _marginal(self.joint, variables)).astype(np.int64)

    def records(self) -> np.ndarray:
        """n records whose shares of the cells are those of the joint distribution, to within one.

        Returns
        -------
        integer array, shape (n, d)
        """
        expected = self.n * self.joint.ravel()
        whole = np.floor(expected).astype(np.int64)
        more = np.argsort(whole - expected, kind="stable")[: self.n - whole.sum()]
        whole[more] += 1
        return np.repeat(_cells(self.joint.shape), whole, axis=0)


def _marginal(table, variables) -> np.ndarray:
    others = tuple(v for v in range(table.ndim) if v not in variables)
    kept = sorted(variables)
    return table.sum(axis=others).transpose([kept.index(v) for v in variables])


def _histogram(codes, shape) -> np.ndarray:
    flat = np.ravel_multi_index(tuple(codes.T), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)


def reconstruct(
    reports: np.ndarray,
    mechanism: LocalMechanism,
    *,
    gap: float = 1.0,
    most: int = 10_000,
) -> Reconstruction:
    """Iterative Bayesian update: the joint distribution of the records, from their reports.

    Parameters
    ----------
    reports : integer array, shape (n, d)
    mechanism : LocalMechanism
        The one that made them.
    gap : float
        Stop when the log-likelihood is proved to be within so many nats of its maximum.
    most : int
        Stop after so many updates in any case.

    Returns
    -------
    Reconstruction

    Raises
    ------
    ValueError
        If there is no report, a report is outside the domain, or the domain is too large.

    Privacy
    -------
    Post-processing of the reports: it costs nothing.

    Notes
    -----
    Agrawal and Aggarwal (2001); the update is an EM step, so the likelihood never falls. It is
    concave in the joint distribution, and an update's largest factor bounds what is left to gain
    (chapter 10). Component-wise mechanisms are applied one axis at a time.

    Examples
    --------
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, (2, 2), 3.0)
    >>> rng = np.random.default_rng(0)
    >>> reports = mechanism.sample(np.repeat([[0, 0], [1, 1]], [3000, 1000], axis=0), rng=rng)
    >>> reconstruct(reports, mechanism).joint.round(2)
    array([[0.74, 0.01],
           [0.01, 0.24]])
    """
    shape = _shape(mechanism.levels)
    codes = _checked_codes(reports, mechanism.levels)
    if math.prod(shape) > MOST_COUNTS or len(codes) == 0:
        raise ValueError(
            f"{len(codes)} reports over {math.prod(shape):,} cells: reconstruction needs at least "
            f"one report and at most {MOST_COUNTS:,} cells; leave variables out or use fewer bins"
        )
    seen = _histogram(codes, shape) / len(codes)
    joint, path = np.full(shape, 1 / math.prod(shape)), []
    for _ in range(most + 1):
        expected = mechanism.forward(joint)
        ratio = np.divide(seen, expected, out=np.zeros(shape), where=seen > 0)
        path.append(len(codes) * float(seen[seen > 0] @ np.log(expected[seen > 0])))
        factor = mechanism.backward(ratio)
        left = len(codes) * (float(factor.max()) - 1)
        if left <= gap or len(path) > most:
            break
        joint = joint * factor
        joint /= joint.sum()  # one but for rounding
    return Reconstruction(joint, len(codes), np.array(path), left)


@dataclass(frozen=True, eq=False)
class CorrectedTables:
    """Tables of the records, estimated from reports; asked like :class:`dpcgd.tables.Tables`.

    Parameters
    ----------
    reports : Dataset
    mechanism : LocalMechanism
        The one that made them: component-wise, or randomised response over the whole record.

    Notes
    -----
    A table of reports is multiplied by the inverse of the tested variables' channels. That is
    unbiased but noisier than a table of as many records: tests that take it for one reject too
    often. Negative counts become 0 and the rest is scaled to n.
    """

    reports: Dataset
    mechanism: LocalMechanism

    @property
    def n(self) -> int:
        """Number of reports."""
        return self.reports.n

    def shape(self, variables: Sequence[int]) -> tuple[int, ...]:
        """Public levels of these variables."""
        return tuple(self.reports.cardinalities[v] for v in variables)

    def counts(self, variables: Sequence[int]) -> np.ndarray:
        """Estimated counts of these variables, rounded."""
        codes = self.reports.codes[:, list(variables)].astype(np.int64)
        seen = _histogram(codes, self.shape(variables))
        corrected = np.maximum(self.mechanism.of(variables).inverse(seen.astype(float)), 0)
        return np.rint(corrected * (self.n / corrected.sum())).astype(np.int64)


LEAST_EIGENVALUE = 0.01
"""Estimated correlation matrices are lifted to this, so that noise cannot make them singular."""


@dataclass(frozen=True, eq=False)
class CorrelationOracle:
    """Tests whether a partial correlation of the records is 0, from moments of their reports.

    Parameters
    ----------
    moments : Moments
        ``mechanism.moments(reports)``, which knows the channel, or ``Moments.of_records(reports)``,
        which takes reports for records.
    alpha : float
        Level of the two-sided test.

    Notes
    -----
    The statistic is the partial covariance of x and y over its standard error, which is that of a
    mean over reports (delta method): its null is standard normal for large n, whatever the channel.
    For normal records a partial correlation of 0 is the same as independence; binned ones are only
    close to normal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 5, 5000)
    >>> records = np.column_stack([x, x, rng.integers(0, 5, 5000)])
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, (5, 5, 5), 6.0)
    >>> oracle = CorrelationOracle(mechanism.moments(mechanism.sample(records, rng=rng)))
    >>> oracle.separates(0, 1, ()), oracle.separates(0, 2, ())
    (False, True)
    """

    moments: Moments
    alpha: float = 0.05

    @cached_property
    def _covariance(self):
        return self.moments.covariance

    def statistic(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """Close to standard normal if the partial correlation of x and y is 0."""
        at, rest = [x, y, *given], [*given]
        within = _lifted(self._covariance[np.ix_(rest, rest)])
        slopes = np.linalg.solve(within, self._covariance[np.ix_(rest, [x, y])])
        a, b = np.vstack([np.eye(2), -slopes]).T
        partial = a @ self._covariance[np.ix_(at, at)] @ b
        return math.sqrt(len(self.moments.values)) * partial / self._deviation(at, a, b)

    def _deviation(self, at, a, b) -> float:
        """Of what one report adds to the partial covariance; the slopes' own errors cancel."""
        values, roots, squares, _ = (part[:, at] for part in self.moments)
        each = (roots @ a) * (roots @ b) + squares @ (a * b)
        along_a, along_b = values @ a, values @ b
        each -= along_a * along_b.mean() + along_b * along_a.mean()
        return max(float(each.std()), 1e-300)

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Is the p-value above the level?"""
        return 2 * normal_tail(abs(self.statistic(x, y, given))) > self.alpha


def _lifted(covariance) -> np.ndarray:
    """The same variances (tiny ones raised) with all eigenvalues of the correlations positive."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-6))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    lifted = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    return lifted * np.outer(deviation, deviation)
