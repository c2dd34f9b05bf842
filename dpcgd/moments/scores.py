"""Numbers as vectors: a noisy look at where they are in their ranges, and normal scores from it.

A number is kept as one of many equal parts of its public range. Halves are counted, then halves of
the halves that hold many, and so on: so records are found however wide the range is. From there a
number's entries are those of its rank, whatever its unit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.interactions import Marginals, Measurement, Moment, contrasts

__all__ = [
    "DEPTH",
    "ENTRIES",
    "Histogram",
    "Singles",
    "look_sensitivity",
    "measure_singles",
    "number_vectors",
    "share_of_look",
]

DEPTH = PARTS.bit_length() - 1
"""Halvings from a whole range to one part."""

USUAL_DEPTH = 8
"""A look's share of the budget is for so many halvings; those beyond cost extra."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.3
"""The look gets a share of the budget between these."""

TOLERATED = 0.05
"""It gets more than the least where the noise of a count is more than this share of all records."""

CLEAR = 4.0
"""A piece is halved if it holds more records than so many deviations of the noise."""

FINE = 0.03
"""A piece with at most this share of the records is not halved."""

FARTHEST = 3.0
"""Scores are cut off here."""

ENTRIES = 2
"""A number has so many: its score, and the score squared."""

LENGTH, SECOND = 0.84, 0.5
"""Deviation of a number's score in its vector, as of an even category of two levels. The entry that
sees shapes which are not monotone is shorter by the second factor, for its noise is everyone's."""

LEAST_SPREAD = 1e-3
"""Entries that vary less, of a number that is nearly the same in all records, are not stretched
further."""


def look_sensitivity(variables: int) -> float:
    """Replace-one L2 sensitivity of counts of disjoint pieces, of so many variables together.

    Notes
    -----
    A record leaves one piece of each variable and enters another. Chapter 16,
    :prf:ref:`thm-look-at-numbers`.

    Examples
    --------
    >>> look_sensitivity(8)
    4.0
    """
    return math.sqrt(2 * variables)


def share_of_look(n: int, categories: int, numbers: int, rho: float) -> float:
    """Share of rho for the look at single variables, by public facts.

    Examples
    --------
    >>> [round(share_of_look(n, 0, 46, 0.0016), 2) for n in (10**4, 3 * 10**4, 10**5)]
    [0.3, 0.1, 0.1]
    """
    noise = 1 / math.sqrt(LEAST_SHARE * _unit(categories, numbers, rho)) / n
    return LEAST_SHARE * min(max(1.0, noise / TOLERATED), MOST_SHARE / LEAST_SHARE)


def _unit(categories: int, numbers: int, rho: float) -> float:
    """Of rho, for one variable in one release; its counts have a variance of one over this."""
    return rho / (categories + USUAL_DEPTH * numbers)


@dataclass(frozen=True, eq=False)
class Histogram:
    """What was released of one number: pieces of its range, and the share of records in each.

    Attributes
    ----------
    starts : integer array
        The first part of each piece, in order.
    shares : array
        Of the records whose number is known; not negative, they sum to one.
    missing : array of shape (0,) or (1,)
        Share of the records where it is missing, if that has a level.
    """

    starts: np.ndarray
    shares: np.ndarray
    missing: np.ndarray

    @classmethod
    def of_receipt(cls, content: Mapping[str, Any]) -> "Histogram":
        """What :meth:`Singles.to_receipt` has written of a number."""
        starts = np.array(content["starts"], int)
        return cls(starts, np.array(content["shares"], float), np.array(content["missing"], float))

    @property
    def depth(self) -> int:
        """How often the range was halved where it was halved most."""
        return DEPTH + 1 - int(np.diff(self.starts, append=PARTS).min()).bit_length()

    @property
    def by_part(self) -> np.ndarray:
        """Share of each part of the range, and of missing values: pieces are taken to be even."""
        widths = np.diff(self.starts, append=PARTS)
        parts = np.repeat(self.shares / widths, widths)
        return np.concatenate([parts * (1 - self.missing.sum()), self.missing])

    @cached_property
    def vectors(self) -> np.ndarray:
        """A vector for each part; a missing value has mean scores and an entry of its own."""
        shares = self.by_part
        vectors = number_vectors(shares[:PARTS] / shares[:PARTS].sum())
        if not len(self.missing):
            return vectors
        (share,) = self.missing
        apart = np.append(np.full(PARTS, -share), 1 - share) / (share * (1 - share)) ** 0.25
        return np.column_stack([np.vstack([vectors, np.zeros(2)]), apart])

    def error(self, deviation: float) -> float:
        """How far the records' mean vector may be from zero, where counts have noise.

        Noise moves records between the halves of every piece that was halved; where nearly all
        records lie in one piece, vectors are long and that is far. And in a piece that was not
        halved the records may lie anywhere.

        Parameters
        ----------
        deviation : float
            Of the noise of a count, as a share of all records.
        """
        shares = np.maximum(self.by_part, 1 / PARTS**2)
        pieces = np.column_stack([shares, shares[:, None] * self.vectors])[:PARTS]
        total = float((self.vectors[PARTS:] ** 2).sum())
        for depth in range(DEPTH, 0, -1):
            mass, *sums = pieces.T
            apart = np.diff((np.array(sums) / mass).reshape(len(sums), -1, 2))
            middles = np.arange(PARTS >> depth, PARTS, PARTS >> depth - 1)
            total += (apart[:, np.isin(middles, self.starts)] ** 2).sum() / 2
            pieces = pieces[::2] + pieces[1::2]
        return math.hypot(deviation * math.sqrt(total), self._unseen())

    def _unseen(self) -> float:
        """How far the mean may be off for where the records of a piece lie in it."""
        widths = np.diff(self.starts, append=PARTS)[:, None]
        mean, square = (
            np.add.reduceat(self.vectors[:PARTS] ** k, self.starts) / widths for k in (1, 2)
        )
        spread = np.maximum(square - mean**2, 0).sum(axis=1)
        return math.sqrt(self.shares**2 @ spread)


def number_vectors(shares: np.ndarray) -> np.ndarray:
    """The vector of each part of a number's range: its normal score, and that score squared.

    Parameters
    ----------
    shares : array
        Of the records, in each part.

    Returns
    -------
    array of shape (parts, 2)
        Of mean zero under these shares, and uncorrelated.

    Privacy
    -------
    Post-processing.

    Examples
    --------
    >>> number_vectors(np.full(4, 0.25)).round(2)
    array([[-1.14,  0.42],
           [-0.32, -0.42],
           [ 0.32, -0.42],
           [ 1.14,  0.42]])
    """
    middle = np.clip(np.cumsum(shares) - shares / 2, 1e-12, 1 - 1e-12)
    score = np.clip(ndtri(middle), -FARTHEST, FARTHEST)
    entries = np.column_stack([score, score**2])
    entries -= shares @ entries
    least = LEAST_SPREAD**2
    skew = (shares @ entries.prod(axis=1)) / max(shares @ entries[:, 0] ** 2, least)
    entries[:, 1] -= entries[:, 0] * skew
    spread = np.sqrt(np.maximum(shares @ entries**2, least))
    return entries / spread * (LENGTH, LENGTH * SECOND)


class Singles(Marginals):
    """Single variables: categories by their levels, numbers by pieces of their ranges.

    Parameters
    ----------
    n, levels, released
        As for :class:`~dpcgd.moments.interactions.Marginals`. A number with k entries stands among
        the levels as k + 1, and its entries are released as zero: they are centred.
    numbers : mapping of int to Histogram
    """

    def __init__(self, n: int, levels, released, numbers: Mapping[int, Histogram] | None = None):
        super().__init__(n, levels, released)
        self.numbers = dict(numbers or {})

    def shares(self, v: int) -> np.ndarray:
        """Of the records in each level of a category, or in each part of a number's range."""
        return self.numbers[v].by_part if v in self.numbers else self.table(v)

    def _parts(self) -> list:
        histograms = ((own.starts, own.shares, own.missing) for own in self.numbers.values())
        return [*super()._parts(), *self.numbers, *chain.from_iterable(histograms)]

    def to_receipt(self) -> dict[str, Any]:
        """What a receipt holds of it: of numbers the pieces of their ranges."""
        numbers = [
            {
                "variable": v,
                "starts": own.starts.tolist(),
                "shares": own.shares.tolist(),
                "missing": own.missing.tolist(),
            }
            for v, own in self.numbers.items()
        ]
        return super().to_receipt() | ({"numbers": numbers} if numbers else {})

    def theorems(self, triples: str = "thm-triples") -> tuple[str, ...]:
        """Labels of the theorems that give the sensitivities of what has been released."""
        return ("thm-look-at-numbers",) if self.numbers else ()


class _Pieces:
    """Of one number: the pieces that are still halved, and those that are not any more.

    Pieces are (first part, share of the known records), all of the same width.
    """

    def __init__(self):
        self.open, self.closed = [(0, 1.0)], []

    def halves(self, below: np.ndarray, width: int) -> np.ndarray:
        """Exact counts of the halves of open pieces, so wide, by the records below each part."""
        starts = np.array([start for start, _ in self.open], int)
        return np.diff(below[starts[:, None] + [0, width // 2, width]]).ravel()

    def halve(self, noisy: np.ndarray, width: int, records: float, least: float):
        """Give each half of an open piece its share, by noisy counts among so many records."""
        halved = []
        for (start, share), (left, right) in zip(self.open, noisy.reshape(-1, 2), strict=True):
            part = min(max((share + (left - right) / records) / 2, 0.0), share)
            halved += [(start, part), (start + width // 2, share - part)]
        goes_on = [width > 2 and share > least for _, share in halved]
        self.open = [piece for piece, on in zip(halved, goes_on, strict=True) if on]
        self.closed += [piece for piece, on in zip(halved, goes_on, strict=True) if not on]

    def histogram(self, missing: np.ndarray) -> Histogram:
        starts, shares = zip(*sorted(self.closed + self.open), strict=True)
        return Histogram(np.array(starts), np.array(shares), missing)


def measure_singles(data: Any, measure: Measurement, rho: float) -> tuple[Singles, float]:
    """Count levels of categories and halves of ranges, then halves of what holds many.

    Parameters
    ----------
    data : Dataset or Records
    measure : callable
        Who measures: :func:`~dpcgd.moments.interactions.paid` by an account, for instance.
    rho : float
        For the levels and so many halvings as are usual.

    Returns
    -------
    Singles
    float
        The rho that was used: less where no piece was left to be halved, more where a range was
        much wider than what lies in it.

    Raises
    ------
    BudgetSpent
        Before the data is touched, if the account cannot pay.

    Privacy
    -------
    zCDP for replace-one neighbours with the rho that was used: Gaussian releases one after the
    other; which pieces are halved, and how many releases there are, follows from those before.
    Chapter 16, :prf:ref:`thm-look-at-numbers`.
    """
    pieces = {v: _Pieces() for v, own in enumerate(data.levels.values()) if isinstance(own, Parts)}
    counts = cache(lambda: data.counts_many([v] for v in range(data.d)))
    below = cache(lambda: {v: np.cumsum(np.append(0, counts()[v][:PARTS])) for v in pieces})
    unit = _unit(data.d - len(pieces), len(pieces), rho)

    def look(query: Callable[[], list[np.ndarray]], sizes: Sequence[int]):
        noisy, deviation = measure(
            lambda: np.concatenate(query()).astype(float),
            sensitivity=look_sensitivity(len(sizes)),
            rho=unit * len(sizes),
        )
        return np.split(noisy, np.cumsum(sizes)[:-1]), deviation

    def halved(v: int, width: int) -> np.ndarray:
        return pieces[v].halves(below()[v], width)

    sizes = [2 + own - PARTS if v in pieces else own for v, own in enumerate(data.cardinalities)]
    first, deviation = look(
        lambda: [
            np.append(halved(v, PARTS), counts()[v][PARTS:]) if v in pieces else counts()[v]
            for v in range(data.d)
        ],
        sizes,
    )
    least = min(max(1.0, deviation) / data.n, 0.5)  # nobody is all but missing, or all but known
    missing = {v: np.clip(first[v][2:] / data.n, least, 1 - least) for v in pieces}
    used, width, halves = unit * data.d, PARTS, {v: first[v][:2] for v in pieces}
    while halves:
        for v, noisy in halves.items():
            records = data.n * (1 - missing[v].sum())
            pieces[v].halve(noisy, width, records, max(FINE, CLEAR * deviation / records))
        width //= 2
        asked = [v for v in pieces if pieces[v].open]
        halves = {}
        if asked:
            noisy, _ = look(
                partial(lambda width, asked: [halved(v, width) for v in asked], width, asked),
                [2 * len(pieces[v].open) for v in asked],
            )
            halves, used = dict(zip(asked, noisy, strict=True)), used + unit * len(asked)
    levels, released = list(data.cardinalities), {}
    for v, counted in enumerate(first):
        if v in pieces:
            levels[v] = 1 + ENTRIES + len(missing[v])
            moment = np.zeros(levels[v] - 1)
        else:
            moment = contrasts(levels[v]).T @ counted / data.n
        released[(v,)] = Moment(moment, deviation / data.n)
    histograms = {v: own.histogram(missing[v]) for v, own in pieces.items()}
    return Singles(data.n, levels, released, histograms), used
