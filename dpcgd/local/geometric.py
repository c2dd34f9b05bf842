"""Geometric mechanisms: reports near the record are more probable than distant ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, groupby, product

import numpy as np
import pandas as pd

from dpcgd.local import channels
from dpcgd.local.channels import Levels, Mechanism, privacy_loss, shape_of
from dpcgd.local.draws import Draws, SeededDraws

__all__ = ["ClippedGeometric", "Geometric", "UniformGeometric"]

NEAR_ONE = 1 - 1e-7
"""For a `p_max` above this, doubles hold fewer than nine digits of 1 - p_max."""


MOST_EXACT = 1 << 53
"""The largest number of cells that doubles count exactly."""


MOST_KINDS = 200_000
"""Largest number of inputs, up to symmetry, for which an exact privacy level is computed."""


BLOCK = 256
"""Number of inputs that are tuned together; their counts of cells take tens of megabytes."""


@dataclass(frozen=True)
class _OneVariable(Mechanism):
    """The base of mechanisms on one variable: privacy levels and draws from their matrix."""

    levels: int
    rate: float

    def __post_init__(self):
        object.__setattr__(self, "levels", channels.checked_levels(self.levels))
        channels.check_nonnegative("rate", self.rate)

    @property
    def d_privacy(self) -> float:
        """Worst log-ratio for each unit of distance."""
        return privacy_loss(self.channel, channels.distances_between(self.levels, 1))

    @property
    def epsilon(self) -> float:
        """Worst log-ratio."""
        return privacy_loss(self.channel)

    @property
    def p_max(self) -> float:
        """The probability of a right guess: the mean of the columns' largest entries."""
        return float(self.channel.max(axis=0).sum() / self.levels)

    def _reports(self, codes, draws: Draws) -> np.ndarray:
        return draws.each(self.channel[codes[:, 0]])[:, None]


class ClippedGeometric(_OneVariable):
    """Two-sided geometric noise; reports outside the domain move to its nearer end.

    Parameters
    ----------
    levels : int
    rate : float
        Log-ratio for each step of the noise.

    Privacy
    -------
    The log-ratio is exactly `rate` times distance, so epsilon is (levels - 1) times `rate`. Chapter
    10, :prf:ref:`thm-local-clipped`.

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
        """The mechanism with this attacker's success."""
        channels.check_p_max(p_max, levels)
        odds = (p_max * levels + levels - 2) / (levels * (1 - p_max))
        return cls(levels, max(0.0, math.log(odds)))  # below 0 by rounding

    @classmethod
    def from_epsilon(cls, levels: int, epsilon: float) -> "ClippedGeometric":
        """The mechanism with this epsilon, up to 700."""
        channels.checked_levels(levels)
        return cls(levels, epsilon / (int(levels) - 1))

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        one_step = math.exp(-self.rate)
        channel = one_step ** channels.distances_between(self.levels, 1) / (1 + one_step)
        channel[:, 1:-1] *= 1 - one_step
        return channel


class UniformGeometric(_OneVariable):
    """Two-sided geometric noise; a uniform draw replaces reports outside the domain.

    Parameters
    ----------
    levels : int
    rate : float
        Log-ratio for each step of the noise.

    Privacy
    -------
    No closed form is proved: ``epsilon`` and ``d_privacy`` are the largest log-ratios over
    all entries of ``channel``, up to rounding.

    Examples
    --------
    >>> round(UniformGeometric.from_p_max(10, 0.5).p_max, 12)
    0.5
    """

    @classmethod
    def from_p_max(cls, levels: int, p_max: float) -> "UniformGeometric":
        """The mechanism with this attacker's success."""
        channels.check_p_max(p_max, levels)
        return cls(levels, channels.root_of_rising(lambda rate: cls(levels, rate).p_max - p_max))

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        one_step, places = math.exp(-self.rate), np.arange(self.levels)
        inside = one_step ** channels.distances_between(self.levels, 1) * math.tanh(self.rate / 2)
        beyond = one_step ** (places + 1) / (1 + one_step)  # at the lower end, added up exactly
        return inside + (beyond + beyond[::-1])[:, None] / self.levels


@dataclass(frozen=True)
class Geometric(Mechanism):
    """The bounded geometric mechanism, ``p_max exp(-rate(x) |y - x|)`` inside the domain.

    Parameters
    ----------
    levels : int, or tuple of int
        A tuple is a product domain whose records are randomised as a whole ("combined").
    p_max : float
        The probability of reporting the record itself, the same for every record.
    norm : 1, 2 or math.inf
        The norm of distances on a product domain.

    Raises
    ------
    ValueError
        If a variable has fewer than two levels, the norm is unknown, or p_max is below the
        probability of a right guess without a report.

    Privacy
    -------
    :attr:`epsilon` is exactly the largest rate(x) times distance over all x and reports. The exact
    level of d-privacy, :attr:`d_privacy`, is at least the largest rate. Chapter 10,
    :prf:ref:`thm-local-geometric`.

    Notes
    -----
    The mechanism of Binkyte et al. (2024): geometric noise, drawn again until it is in the domain,
    at a fixed p_max. Rates, privacy and samples are computed from counts of cells by distance,
    never from a list of cells: a domain of 10^11 cells takes a second
    (:prf:ref:`thm-local-counting`). Inputs that reflections or exchanges of equal variables
    identify share a rate.

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
        object.__setattr__(self, "levels", channels.checked_whole(self.levels))
        channels.check_p_max(self.p_max, self.levels)
        if self.norm not in (1, 2, math.inf):
            raise ValueError(f"norm must be 1, 2 or math.inf, not {self.norm}")

    @classmethod
    def from_p_max(cls, levels: Levels, p_max: float, norm: float = 2) -> "Geometric":
        """The mechanism with this attacker's success."""
        return cls(levels, p_max, norm)

    @classmethod
    def from_epsilon(cls, levels: Levels, epsilon: float, norm: float = 2) -> "Geometric":
        """The mechanism with this epsilon, which the input with the most noise reaches.

        If p_max is very near 1, epsilon is smaller, because doubles end at 1 - 2^-53.
        """
        channels.check_nonnegative("epsilon", epsilon)
        balls = balls_of(channels.checked_whole(levels), norm)
        least = math.inf
        for rows in balls.kinds():
            with np.errstate(over="ignore"):
                falls = np.exp(-(epsilon / balls.radius(rows))[:, None] * balls.distances)
            least = min(least, 1 / (balls.counts(rows)[0] * falls).sum(axis=1).max())
        low, high = 1 / math.prod(shape_of(levels)), math.nextafter(1, 0)
        mechanism = cls(levels, min(max(float(least), low), high), norm)
        while mechanism.p_max > NEAR_ONE and mechanism.epsilon > epsilon:
            mechanism = cls(levels, math.nextafter(mechanism.p_max, 0), norm)
        return mechanism

    @cached_property
    def _balls(self):
        return balls_of(self.levels, self.norm)

    @cached_property
    def epsilon(self) -> float:
        """Largest rate times the distance of the farthest report."""
        return max(
            float((self._tuned(self._balls.counts(rows)[0]) * self._balls.radius(rows)).max())
            for rows in self._balls.kinds()
        )

    @cached_property
    def d_privacy(self) -> float:
        """Worst log-ratio for each unit of distance.

        It has a closed form for norm 1, in which every distance is a sum of steps of one level. For
        other norms it is computed from the channel, if that is small enough.
        """
        if self.norm == 1 or not isinstance(self.levels, tuple):
            return self._worst_step()
        distances = channels.distances_between(self.levels, self.norm)
        places = self._balls.canonical(channels.cells_of(self.levels))[0]
        kinds = np.unique(places, axis=0, return_index=True)[1].tolist()
        return privacy_loss(self.channel, distances, inputs=kinds)

    def _worst_step(self) -> float:
        """Largest log-ratio between inputs that differ by one level of one variable."""
        balls, worst = self._balls, 0.0
        for rows in balls.kinds():
            rates = self._tuned(balls.counts(rows)[0])
            worst = max(worst, rates.max())
            for v, inner in enumerate((rows > 0).T):
                if inner.any():
                    worst = max(worst, self._loss_of_step(rows[inner], rates[inner], v))
        return float(worst)

    def _loss_of_step(self, rows, rates, v) -> float:
        """For each row, the row whose variable v is one level nearer to the end."""
        balls = self._balls
        nearer = rows.copy()
        nearer[:, v] -= 1
        others = self._tuned(balls.counts(nearer)[0])
        reports = np.arange(balls.levels[v])
        beside = balls.radius(rows) - (balls.levels[v] - 1 - rows[:, v])
        gap, gap_nearer = (np.abs(reports - places[:, v, None]) for places in (rows, nearer))
        far = np.stack([np.zeros_like(beside), beside])[:, :, None]
        return np.abs(rates[:, None] * (gap + far) - others[:, None] * (gap_nearer + far)).max()

    def rates(self, codes: np.ndarray) -> np.ndarray:
        """The rate of each record, for which the probabilities of its reports add up to one."""
        return self._rates(channels.checked_codes(codes, self.levels))

    def _rates(self, cells) -> np.ndarray:
        rows, which = _distinct_rows(self._balls.canonical(cells)[0])
        counts = (self._balls.counts(block)[0] for block in in_blocks(rows))
        return np.concatenate([*map(self._tuned, counts)])[which]

    def _tuned(self, counts) -> np.ndarray:
        """Solve sum_r counts(r) exp(-rate r) = 1 / p_max for each row.

        Newton's method from 0 on a convex decreasing function never passes the root. Each row stops
        on its own, so that no result depends on other rows, not even in the last digit.
        """
        rates, left = np.zeros(len(counts)), np.arange(len(counts))
        others = (1 - self.p_max) / self.p_max  # with the record's own 1 digits would be lost
        distances, counts = self._balls.distances[1:], counts[:, 1:]
        for _ in range(200):
            mass = counts[left] * np.exp(-rates[left, None] * distances)
            total = mass.sum(axis=1)
            step = np.log(total / others) * total / (mass * distances).sum(axis=1)
            rates[left] += step
            left = left[np.abs(step) > 1e-15 * (1 + rates[left])]
            if not left.size:
                break
        return np.maximum(rates, 0.0)

    @cached_property
    def channel(self) -> np.ndarray:
        """P[report | input]."""
        rates = self._rates(channels.cells_of(self.levels))[:, None]
        return self.p_max * np.exp(-rates * channels.distances_between(self.levels, self.norm))

    def _reports(self, codes, draws: Draws) -> np.ndarray:
        """One report for each record, drawn exactly: first a distance, then a cell at it."""
        balls, secure = self._balls, not isinstance(draws, SeededDraws)
        if secure and self.size > MOST_EXACT:
            raise ValueError(f"{self.size:.3g} cells are too many to draw securely; use fewer bins")
        places, order, mirrored = balls.canonical(codes)
        rows, which = _distinct_rows(places)
        cells, reports = np.empty_like(codes), np.empty_like(codes)
        at_once = 1 if secure else BLOCK  # alone: rounding may tell of other records in a block
        for first in range(0, len(rows), at_once):
            block = rows[first : first + at_once]
            here = np.flatnonzero((which >= first) & (which < first + at_once))
            counts = balls.counts(block)
            mass = counts[0] * np.exp(-self._tuned(counts[0])[:, None] * balls.distances)
            row = which[here] - first
            cells[here] = balls.draw(block, counts, row, draws.from_rows(mass, row), draws)
        np.put_along_axis(reports, order, cells, axis=1)
        return np.where(mirrored, np.array(self.shape) - 1 - reports, reports)

    def of(self, variables: Sequence[int]):
        """Refused on a product domain, where the noise of one variable depends on all others."""
        if list(variables) == list(range(len(self.shape))):
            return self
        raise ValueError("no channel for some variables; reconstruct the joint distribution first")


def _distinct_rows(rows) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows in order, and the index of each row among them; ten times NumPy's speed."""
    which = pd.DataFrame(rows).groupby([*range(rows.shape[1])]).ngroup().to_numpy()
    return rows[np.unique(which, return_index=True)[1]], which


def in_blocks(rows: np.ndarray) -> list[np.ndarray]:
    """The rows in blocks of at most 256."""
    return np.array_split(rows, range(BLOCK, len(rows), BLOCK))


def balls_of(levels: Levels, norm: float) -> "_Sums | _Largest":
    """The balls of a domain for norm 1, 2 or infinity."""
    norm = norm if isinstance(levels, tuple) else 1  # on one variable all norms are the same
    return _Largest(levels) if norm == math.inf else _Sums(levels, norm)


class _Balls:
    """Counts and draws of cells by their distance from an input, without a list of cells.

    Inputs are in canonical form: variables sorted by their levels, each reflected into the lower
    half of its levels, equal variables in increasing order.
    """

    def __init__(self, levels):
        self.given = np.array(shape_of(levels))
        self.levels = np.sort(self.given)

    def canonical(self, codes):
        """(canonical form, order of the variables, which were reflected) of each record."""
        mirrored = 2 * codes > self.given - 1
        places = np.where(mirrored, self.given - 1 - codes, codes)
        order = np.argsort(self.given * (self.levels[-1] + 1) + places, axis=1, kind="stable")
        return np.take_along_axis(places, order, axis=1), order, mirrored

    def kinds(self) -> list[np.ndarray]:
        """All canonical inputs, block by block."""
        groups = [(k, len(list(same))) for k, same in groupby(self.levels.tolist())]
        if math.prod(math.comb(-(-k // 2) + m - 1, m) for k, m in groups) > MOST_KINDS:
            raise ValueError(f"more than {MOST_KINDS:,} kinds of inputs; use fewer bins")
        ways = (combinations_with_replacement(range(-(-k // 2)), m) for k, m in groups)
        return in_blocks(np.array([sum(parts, ()) for parts in product(*ways)]))

    def _within(self, rows, v) -> np.ndarray:
        """The number of levels of variable v at each distance from its place."""
        steps = np.arange(self.levels[-1])
        below = steps <= rows[:, v, None]
        above = steps < self.levels[v] - rows[:, v, None]
        return np.where(steps > 0, below.astype(float) + above, 1.0)


class _Sums(_Balls):
    """Distances whose powers add up over the variables: norms 1 and 2."""

    def __init__(self, levels, norm):
        super().__init__(levels)
        self.norm = norm
        self.most = int(((self.levels - 1) ** norm).sum())
        corner = np.zeros((1, len(self.levels)), int)  # it reaches whatever any input does
        self.sums = np.flatnonzero(self._ways(corner)[0])
        self.distances = self.sums ** (1 / norm)

    def radius(self, rows) -> np.ndarray:
        """Distance of the farthest cell."""
        return ((self.levels - 1 - rows) ** float(self.norm)).sum(axis=1) ** (1 / self.norm)

    def counts(self, rows) -> list[np.ndarray]:
        """The cells at each distance; then, for every v but the first, the ways of `_ways`."""
        first, *others = self._ways(rows)
        return [first[:, self.sums], *others]

    def _ways(self, rows) -> list[np.ndarray]:
        """For every v, the number of cells at each sum of powers over the variables from v on."""
        counts = [np.eye(1, self.most + 1).repeat(len(rows), axis=0)]
        for v in reversed(range(len(self.levels))):
            reached = np.flatnonzero(counts[0].any(axis=0))
            before = counts[0][:, reached]
            counts.insert(0, np.zeros_like(counts[0]))
            for step, ways in enumerate(self._within(rows, v).T[: self.levels[v]]):
                counts[0][:, reached + step**self.norm] += ways[:, None] * before
        return counts

    def draw(self, rows, counts, row, total, draws: Draws) -> np.ndarray:
        """A uniform cell at the given distance for each record, one variable after the other."""
        cells, left = np.empty((len(row), len(self.levels)), np.int64), self.sums[total]
        for v, k in enumerate(self.levels):
            rest = left[:, None] - np.abs(np.arange(k) - rows[row, v, None]) ** self.norm
            ways = counts[v + 1][row[:, None], np.maximum(rest, 0)]
            cells[:, v] = draws.each(np.where(rest >= 0, ways, 0.0))
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
        """Numbers of cells at each distance, and of each variable's levels within each distance."""
        inside = [self._within(rows, v).cumsum(axis=1) for v in range(len(self.levels))]
        return [np.diff(np.prod(inside, axis=0), prepend=0.0), *inside]

    def draw(self, rows, counts, row, total, draws: Draws) -> np.ndarray:
        """A uniform cell at the given distance: first draw the first variable at that distance."""
        within = np.array([inside[row, total] for inside in counts[1:]])
        nearer = np.array([inside[row, total - 1] for inside in counts[1:]]) * (total > 0)
        before = np.cumprod(np.vstack([np.ones(len(row)), nearer[:-1]]), axis=0)
        after = np.cumprod(np.vstack([np.ones(len(row)), within[:0:-1]]), axis=0)[::-1]
        first = draws.each((before * (within - nearer) * after).T)
        cells = np.empty((len(row), len(self.levels)), np.int64)
        for v, k in enumerate(self.levels):
            place, most = rows[row, v], total - (v < first)
            gap = np.abs(np.arange(k) - place[:, None])
            allowed = np.where((first == v)[:, None], gap == total[:, None], gap <= most[:, None])
            cells[:, v] = draws.each(allowed.astype(float))
        return cells
