"""Numbers as vectors: noisy counts of the pieces of a range, and normal scores from these counts.

A number is stored as one of many equal parts of its public range. Halves of the range are counted,
then halves of each half that holds many records, and so on. So records are found however wide the
range is. The entries of a number follow from its rank, whatever its unit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np

from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.entries import ENTRIES, Entries, category_columns, scores_of, uncorrelated_square
from dpcgd.moments.interactions import Marginals, Measurement, Moment, contrasts

__all__ = ["DEPTH", "Histogram", "Singles", "look_sensitivity", "measure_singles"]
__all__ += ["nearest_shares", "number_vectors", "share_of_look"]

DEPTH = PARTS.bit_length() - 1
"""Number of halvings from a whole range to one part."""

USUAL_DEPTH = 8
"""Number of halvings that the usual share of the budget pays for; further ones cost extra."""

LEAST_SHARE, MOST_SHARE = 0.1, 0.3
"""Bounds on the share of the budget for the measurement of single variables."""

TOLERATED = 0.05
"""Single variables get more than the least share if a count's noise exceeds this share of n."""

CLEAR = 4.0
"""A piece is halved if it holds more records than this many deviations of the noise."""

FINE = 0.03
"""A piece with at most this share of the records is not halved."""

LENGTH, SECOND = 0.84, 0.5
"""Deviation of a number's score in its vector, equal to that of an even category of two levels; and
the factor that shortens the squared score, because longer vectors mean more noise everywhere."""

AT_ONE_END = 0.9
"""Share of the way from a piece's middle to its end at which all of its records may lie."""

LEAST_SPREAD = 1e-3
"""The least deviation that entries are divided by, for a number that is nearly the same in all
records."""


def look_sensitivity(variables: int) -> float:
    """Replace-one L2 sensitivity of counts of levels or pieces, for so many variables together.

    Notes
    -----
    A record leaves one level, or piece, of each variable and enters another. Chapters 16 and 18,
    :prf:ref:`thm-look-at-numbers` and :prf:ref:`thm-joined-levels`.

    Examples
    --------
    >>> look_sensitivity(8)
    4.0
    """
    return math.sqrt(2 * variables)


def share_of_look(n: int, categories: int, numbers: int, rho: float) -> float:
    """Share of rho for the measurement of single variables, by public facts.

    Examples
    --------
    >>> [round(share_of_look(n, 0, 46, 0.0016), 2) for n in (10**4, 3 * 10**4, 10**5)]
    [0.3, 0.1, 0.1]
    """
    noise = 1 / math.sqrt(LEAST_SHARE * _unit(categories, numbers, rho)) / n
    return LEAST_SHARE * min(max(1.0, noise / TOLERATED), MOST_SHARE / LEAST_SHARE)


def _unit(categories: int, numbers: int, rho: float) -> float:
    """Rho of one variable in one release; the variance of its counts is one over this."""
    return rho / (categories + USUAL_DEPTH * numbers)


@dataclass(frozen=True, eq=False)
class Histogram:
    """The released histogram of a number: pieces of its range, and the share of records in each.

    Attributes
    ----------
    starts : integer array
        The first part of each piece, in order.
    shares : array
        Shares of the records with a known value; they are not negative and sum to one.
    missing : array of shape (0,) or (1,)
        Share of the records with a missing value, if missing values have a level.
    """

    starts: np.ndarray
    shares: np.ndarray
    missing: np.ndarray

    @classmethod
    def of_receipt(cls, content: Mapping[str, Any]) -> "Histogram":
        """The histogram in a receipt, as :meth:`Singles.to_receipt` has written it."""
        starts = np.array(content["starts"], int)
        return cls(starts, np.array(content["shares"], float), np.array(content["missing"], float))

    @property
    def depth(self) -> int:
        """The largest number of halvings of any piece."""
        return DEPTH + 1 - int(np.diff(self.starts, append=PARTS).min()).bit_length()

    @property
    def by_part(self) -> np.ndarray:
        """Share of each part of the range, and of missing values; each piece is spread evenly."""
        widths = np.diff(self.starts, append=PARTS)
        parts = np.repeat(self.shares / widths, widths)
        return np.concatenate([parts * (1 - self.missing.sum()), self.missing])

    @property
    def vectors(self) -> np.ndarray:
        """A vector for each part; a missing value has mean scores and an entry of its own."""
        shares = self.by_part
        vectors = number_vectors(shares[:PARTS] / shares[:PARTS].sum())
        if not len(self.missing):
            return vectors
        (share,) = self.missing
        apart = np.append(np.full(PARTS, -share), 1 - share) / (share * (1 - share)) ** 0.25
        return np.column_stack([np.vstack([vectors, np.zeros(2)]), apart])

    def errors(self, deviation: float) -> np.ndarray:
        """How far the mean of each entry may be from zero, because counts have noise.

        Noise moves records between the halves of every piece that was halved. If nearly all records
        are in one piece, vectors are long, and this noise changes a mean much. In a piece that was
        not halved, all records may be at one end, as those of a skewed number. Then the means of
        such numbers are off in the same direction, and a product of two looks like a correlation.

        Parameters
        ----------
        deviation : float
            Deviation of the noise of a count, as a share of all records.
        """
        vectors = self.vectors
        shares = np.maximum(self.by_part, 1 / PARTS**2)
        pieces = np.column_stack([shares, shares[:, None] * vectors])[:PARTS]
        total = (vectors[PARTS:] ** 2).sum(axis=0)
        for depth in range(DEPTH, 0, -1):
            mass, *sums = pieces.T
            apart = np.diff((np.array(sums) / mass).reshape(len(sums), -1, 2))
            middles = np.arange(PARTS >> depth, PARTS, PARTS >> depth - 1)
            total += (apart[:, np.isin(middles, self.starts)] ** 2).sum(axis=(1, 2)) / 2
            pieces = pieces[::2] + pieces[1::2]
        ends = np.append(self.starts[1:], PARTS) - 1
        apart = AT_ONE_END * np.abs(vectors[ends] - vectors[self.starts]) / 2
        return np.hypot(deviation * np.sqrt(total), np.sqrt(self.shares**2 @ apart**2))


def number_vectors(shares: np.ndarray) -> np.ndarray:
    """The vector of each part of a number's range: its normal score, and that score squared.

    Parameters
    ----------
    shares : array
        Share of the records in each part.

    Returns
    -------
    array of shape (parts, 2)
        The columns have mean zero under these shares, and are uncorrelated.

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
    score = scores_of(shares)
    entries = np.column_stack([score - shares @ score, uncorrelated_square(score, shares)])
    spread = np.sqrt(np.maximum(shares @ entries**2, LEAST_SPREAD**2))
    return entries / spread * (LENGTH, LENGTH * SECOND)


def nearest_shares(noisy: np.ndarray, least: float) -> np.ndarray:
    """The possible shares that are nearest to noisy ones; then none is below the least, nearly.

    Examples
    --------
    >>> nearest_shares(np.array([0.9, 0.3, -0.2]), 0.0)
    array([0.8, 0.2, 0. ])
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    shares = np.maximum(noisy - excess[falling >= excess][-1], least)
    return shares / shares.sum()


class Singles(Marginals):
    """Single variables: categories by their levels, numbers by pieces of their ranges.

    Parameters
    ----------
    n, levels, released
        As for :class:`~dpcgd.moments.interactions.Marginals`. A number with k entries counts as
        k + 1 levels, and its entries are released as zero, because they are centred.
    numbers : mapping of int to Histogram
    entries : mapping of int to Entries
        The entries of categories that have fewer entries than contrasts.
    """

    def __init__(
        self,
        n: int,
        levels,
        released,
        numbers: Mapping[int, Histogram] | None = None,
        entries: Mapping[int, Entries] | None = None,
    ):
        super().__init__(n, levels, released)
        self.numbers, self.entries = dict(numbers or {}), dict(entries or {})

    @property
    def widths(self) -> list[int]:
        """Number of entries of each variable."""
        kept = {v: own.width for v, own in self.entries.items()}
        return [kept.get(v, size - 1) for v, size in enumerate(self.levels)]

    def table(self, *variables: int) -> np.ndarray:
        """As for other marginals, but one variable alone has the nearest possible shares.

        Vectors are centred by these shares. Where many levels are empty, shares that are only cut
        off at zero keep the positive half of all noise, several times the whole.
        """
        if len(variables) != 1:
            return super().table(*variables)

        def work():
            size = self.levels[variables[0]]
            noisy = 1 / size + contrasts(size) @ self.moment(*variables).values
            return nearest_shares(noisy, 1 / self.n / size)

        return self.worked_out(("table", variables), work)

    def columns(self, v: int) -> np.ndarray:
        """Centred entries of the levels of a category; shape (levels, entries)."""
        shares = self.table(v)
        columns = category_columns(shares, self.entries.get(v))
        return columns - shares @ columns

    def shares(self, v: int) -> np.ndarray:
        """Shares of records in the levels of a category, or in the parts of a number's range."""
        return self.numbers[v].by_part if v in self.numbers else self.table(v)

    def _parts(self) -> list:
        histograms = ((own.starts, own.shares, own.missing) for own in self.numbers.values())
        entries = ((v, *own) for v, own in self.entries.items())
        return [*super()._parts(), *self.numbers, *chain.from_iterable((*histograms, *entries))]

    def to_receipt(self) -> dict[str, Any]:
        """The content for a receipt: moments, pieces of numbers' ranges, and reduced entries."""
        numbers = [
            {"variable": v, **{name: part.tolist() for name, part in vars(own).items()}}
            for v, own in self.numbers.items()
        ]
        entries = [{"variable": v, **own._asdict()} for v, own in self.entries.items()]
        held = {"numbers": numbers, "entries": entries}
        return super().to_receipt() | {name: some for name, some in held.items() if some}

    def theorems(self) -> tuple[str, ...]:
        """Labels of the theorems behind the sensitivities of the released numbers."""
        return ("thm-look-at-numbers",)


class _Pieces:
    """The pieces of one number's range: those still to be halved, and those that stay.

    A piece is (first part, share of the known records). Open pieces all have the same width.
    """

    def __init__(self):
        self.open, self.closed = [(0, 1.0)], []

    def halves(self, below: np.ndarray, width: int) -> np.ndarray:
        """Exact counts of the halves of open pieces; `below` counts the records below each part."""
        starts = np.array([start for start, _ in self.open], int)
        return np.diff(below[starts[:, None] + [0, width // 2, width]]).ravel()

    def halve(self, noisy: np.ndarray, width: int, records: float, least: float):
        """Give each half of an open piece its share, from noisy counts of so many records."""
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


def measure_singles(
    data: Any, measure: Measurement, rho: float, entries: Mapping[int, Entries] | None = None
) -> tuple[Singles, float]:
    """Measure single variables: counts of levels, and of halves of pieces with many records.

    Parameters
    ----------
    data : Dataset or Records
    measure : callable
        The measurement, for instance :func:`~dpcgd.moments.interactions.paid` by an account.
    rho : float
        Rho for the levels and the usual number of halvings.
    entries : mapping of int to Entries, optional
        The entries of categories that have fewer entries than contrasts, by public facts.

    Returns
    -------
    Singles
    float
        The rho that was used: less if no piece was left to be halved, more if a range was much
        wider than its values.

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

    def first_counts(v: int) -> np.ndarray:
        return np.append(halved(v, PARTS), counts()[v][PARTS:]) if v in pieces else counts()[v]

    sizes = [2 + own - PARTS if v in pieces else own for v, own in enumerate(data.cardinalities)]
    first, deviation = look(lambda: [*map(first_counts, range(data.d))], sizes)
    least = min(max(1.0, deviation) / data.n, 0.5)  # never 0 or 1
    missing = {v: np.clip(first[v][2:] / data.n, least, 1 - least) for v in pieces}
    used, width, halves = unit * data.d, PARTS, {v: first[v][:2] for v in pieces}
    while halves:
        for v, noisy in halves.items():
            records = data.n * (1 - missing[v].sum())
            pieces[v].halve(noisy, width, records, max(FINE, CLEAR * deviation / records))
        width //= 2
        asked, halves = [v for v in pieces if pieces[v].open], {}
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
    return Singles(data.n, levels, released, histograms, entries), used
