"""Attacks on our own claims: the worst neighbours, the privacy that is really there, the receipt.

Nothing here is private. It takes data apart that was made up for the purpose.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement
from numbers import Real

import numpy as np

from dpcgd.mechanisms import Account, Noise
from dpcgd.privacy import Event
from dpcgd.statistics import Statistic

__all__ = ["Witness", "Worst", "empirical_epsilon", "every_neighbour", "sensitivity_search"]

Output = float | int | tuple | None
"""What an audited mechanism may return: a number, or anything that is one of few."""

Value = Callable[[np.ndarray], float]

BINS = 100

EQUAL = 1e-8
"""Changes this close, in parts of themselves, are equal: their last digits differ by machine."""

DRAWS = {
    "Laplace": "Laplace",
    "Gaussian": "Gaussian",
    "exponential": "Gumbel",
    "permute and flip": "exponential",
    "distance test": "Laplace",
    "tested release": "Laplace",
}
"""The one draw of noise that paying for a mechanism covers."""


@dataclass(frozen=True)
class Worst:
    """The neighbouring tables between which a statistic was found to change most.

    Attributes
    ----------
    change : float
        Of the statistic.
    table, neighbour : integer arrays
        They differ in one record.
    pairs : int
        How many pairs of neighbours were compared.
    """

    change: float
    table: np.ndarray
    neighbour: np.ndarray
    pairs: int


def _beats(one: Worst, other: Worst) -> bool:
    """Whether one is worse by more than rounding; of equals the first that was found stays."""
    return one.change > other.change * (1 + EQUAL)


def _worst(found: Iterable[Worst]) -> Worst:
    return reduce(lambda best, new: new if _beats(new, best) else best, found)


def _over_one_record(statistic: Statistic | Value, others: np.ndarray) -> Worst:
    """The worst pair among all tables that add one record to these."""
    value = getattr(statistic, "value", statistic)
    values = np.empty(others.size)
    for cell in range(others.size):
        others.flat[cell] += 1
        values[cell] = value(others)
        others.flat[cell] -= 1
    near = EQUAL * np.ptp(values)
    ends = (
        np.flatnonzero(values >= values.max() - near)[-1],
        np.flatnonzero(values <= values.min() + near)[0],
    )
    high, low = (others + np.eye(1, others.size, end, int).reshape(others.shape) for end in ends)
    change = float(values[ends[0]] - values[ends[1]])
    return Worst(change, high, low, math.comb(others.size, 2))


def every_neighbour(statistic: Statistic | Value, n: int, levels: tuple[int, ...]) -> Worst:
    """The worst pair of all tables of n records, by trying them all.

    Parameters
    ----------
    statistic : Statistic or callable
        A statistic, or any function from a table of counts to a number.
    n : int
        Records. There are C(n + cells - 2, n - 1) tables to try.
    levels : tuple of int
        Shape of the table.

    Examples
    --------
    >>> from dpcgd.statistics import chi_squared
    >>> worst = every_neighbour(chi_squared, 5, (2, 2))
    >>> round(worst.change, 9), worst.pairs
    (5.0, 210)
    """
    cells = math.prod(levels)
    tables = (
        np.bincount(records, minlength=cells).reshape(levels)
        for records in combinations_with_replacement(range(cells), n - 1)
    )
    worst = _worst(_over_one_record(statistic, others) for others in tables)
    return replace(worst, pairs=worst.pairs * math.comb(n + cells - 2, n - 1))


def sensitivity_search(
    statistic: Statistic | Value,
    n: int,
    levels: tuple[int, ...],
    *,
    pairs: int,
    rng: np.random.Generator,
    patience: int = 150,
) -> Worst:
    """The worst pair of tables of n records that hill climbing finds.

    Parameters
    ----------
    statistic : Statistic or callable
        A statistic, or any function from a table of counts to a number.
    n : int
        Records.
    levels : tuple of int
        Shape of the table.
    pairs : int
        Stop when this many pairs of neighbours have been compared.
    rng : numpy.random.Generator
    patience : int
        Start again from a random table after this many steps without progress.

    Returns
    -------
    Worst
        A lower bound of the sensitivity: what is proved must be at least this.

    Notes
    -----
    A step moves a crowd of records from one cell to another and keeps what makes the worst replaced
    record worse, or as bad. All places of one record are tried at once, so a step compares
    C(cells, 2) pairs at the price of as many tables as there are cells. Changes that differ by
    rounding alone count as equal, so that a seed climbs the same way on every machine.

    Examples
    --------
    >>> from dpcgd.statistics import KendallZ
    >>> kendall = KendallZ()
    >>> worst = sensitivity_search(kendall, 1000, (2, 2, 2), pairs=20_000,
    ...                            rng=np.random.default_rng(0))
    >>> 0.9 < worst.change / kendall.sensitivity(1000, (2, 2, 2)) <= 1
    True
    """
    climbed, seen = [], 0
    while seen < pairs:
        others = _random_table(n - 1, levels, rng)
        top = _over_one_record(statistic, others)
        seen, stuck = seen + top.pairs, 0
        while stuck < patience and seen < pairs:
            moved = _move_a_crowd(others, rng)
            found = _over_one_record(statistic, moved)
            seen, stuck = seen + found.pairs, stuck + 1
            if not _beats(top, found):
                others = moved
            if _beats(found, top):
                top, stuck = found, 0
        climbed.append(top)
    return replace(_worst(climbed), pairs=seen)


def _random_table(n: int, levels: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Records spread over cells in very uneven shares."""
    cells = math.prod(levels)
    share = rng.dirichlet(np.full(cells, rng.choice([0.05, 0.3, 1.0])))
    return rng.multinomial(n, share).reshape(levels)


def _move_a_crowd(table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same records, but some of one cell are now in another."""
    table = table.copy()
    source = rng.choice(np.flatnonzero(table))
    size = table.flat[source]
    crowd = rng.choice([1, size, rng.integers(1, size + 1), max(1, size // 2), max(1, size // 16)])
    table.flat[source] -= crowd
    table.flat[rng.integers(table.size)] += crowd
    return table


def empirical_epsilon(
    mechanism: Callable[[object], Output],
    data: object,
    neighbour: object,
    *,
    delta: float = 0.0,
    confidence: float = 1 - 1e-9,
    trials: int = 10_000,
) -> float:
    """Lower bound on the epsilon of a mechanism, from watching it on two neighbours.

    Parameters
    ----------
    mechanism : callable
        From a data set to a random output. Real numbers are sorted into bins; other outputs should
        take few values.
    data, neighbour
        Two data sets that differ in one record.
    delta : float
        Of the claim.
    confidence : float
        A mechanism that is (epsilon, delta)-private gets a bound above its epsilon with probability
        at most 1 - confidence.
    trials : int
        Runs on each data set.

    Returns
    -------
    float
        At least 0. The true epsilon may be larger: other neighbours or events may tell more.

    Notes
    -----
    The first half of the runs chooses one event, outputs with the largest estimated likelihood
    ratios; the second half bounds its two probabilities by Clopper and Pearson, so nothing is
    tested twice.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> halved = empirical_epsilon(lambda x: x + rng.laplace(scale=0.5), 0.0, 1.0)
    >>> honest = empirical_epsilon(lambda x: x + rng.laplace(scale=1.0), 0.0, 1.0)
    >>> honest < 1 < halved < 2
    True
    """
    both = [[mechanism(case) for _ in range(trials)] for case in (data, neighbour)]
    first = trials // 2
    kinds = _kinds(both, first)
    explored, kept = (
        np.array([np.bincount(row, minlength=kinds.max() + 1) for row in half])
        for half in (kinds[:, :first], kinds[:, first:])
    )
    level = (1 - confidence) / 2
    side, event = _most_telling(explored, delta, level)
    often, rare = kept[side, event].sum(), kept[1 - side, event].sum()
    return float(_epsilon_at_least(often, rare, trials - first, delta, level))


def _kinds(both: list[list[Output]], first: int) -> np.ndarray:
    """Number the kinds of output, real ones by bins; one row a data set.

    Bins and kinds follow from the first runs alone; what is new later is of a kind of its own.
    """
    reals = [x for row in both for x in row[:first] if isinstance(x, Real)]
    if len(set(reals)) > BINS:
        edges = np.unique(np.quantile(reals, np.linspace(0, 1, BINS + 1)[1:-1]))
        both = [[_bin(x, edges) if isinstance(x, Real) else x for x in row] for row in both]
    known = dict.fromkeys(x for row in both for x in row[:first])
    number = {kind: i for i, kind in enumerate(known)}
    return np.array([[number.get(x, len(number)) for x in row] for row in both])


def _bin(x: float, edges: np.ndarray) -> tuple[str, int]:
    return "bin", int(np.searchsorted(edges, x))


def _most_telling(counts: np.ndarray, delta: float, level: float) -> tuple[int, np.ndarray]:
    """Which data set makes which event more likely: the best set of kinds with the top ratios."""
    trials, best = counts[0].sum(), (-math.inf, 0, np.zeros(1, int))
    for side in (0, 1):
        order = np.argsort(-(counts[side] + 1) / (counts[1 - side] + 1), kind="stable")
        often, rare = counts[side, order].cumsum(), counts[1 - side, order].cumsum()
        bounds = _epsilon_at_least(often, rare, trials, delta, level)
        last = int(bounds.argmax())
        if bounds[last] > best[0]:
            best = bounds[last], side, order[: last + 1]
    return best[1:]


def _epsilon_at_least(often, rare, trials, delta, level) -> np.ndarray:
    """Bound from counts of one event, each of its two probabilities wrong with chance `level`."""
    from scipy.stats import beta  # heavy, and only needed here

    often, rare = np.asarray(often, float), np.asarray(rare, float)
    low = np.where(often > 0, beta.ppf(level, often, trials - often + 1), 0.0)
    high = np.where(rare < trials, beta.isf(level, rare + 1, trials - rare), 1.0)
    return np.maximum(0.0, np.log(np.maximum(low - delta, 1e-300) / high))


class Witness:
    """An account and a noise source in one, which notes all noise that nobody paid for.

    Hand it to a run in place of both; a run that pays for all it does leaves `unpaid` empty. Once a
    run draws sub-samples, each sieve has to have its own, for that is what its price is about. How
    wide the noise is, it does not judge: that is for :func:`empirical_epsilon`.

    Parameters
    ----------
    account : Filter or Odometer
        Who really pays.
    noise : Noise
        Who really draws.

    Attributes
    ----------
    unpaid : list of str
        What was used without a payment that covers it.

    Examples
    --------
    >>> from dpcgd.mechanisms import SeededNoise, laplace
    >>> from dpcgd.privacy import Budget, Filter
    >>> seeded = SeededNoise(np.random.default_rng(0))
    >>> witness = Witness(Filter(Budget(1.0, 1e-6)), seeded)
    >>> answer = laplace(lambda: 3.0, sensitivity=1, epsilon=0.1, account=witness, noise=witness)
    >>> witness.unpaid
    []
    >>> again = witness.laplace(3.0, 10.0)
    >>> witness.unpaid
    ['Laplace noise of scale 10']
    """

    def __init__(self, account: Account, noise: Noise):
        self._account, self._noise = account, noise
        self.unpaid = []
        self._paid, self._sieve = [], None
        self._fresh = None  # is the sub-sample unused? None while there is none

    def __getattr__(self, name):
        return getattr(self._account, name)

    def spend(self, *events: Event):
        """Pay, and remember what may now be drawn; what was paid for earlier has had its time."""
        self._account.spend(*events)
        names = [event.mechanism for event in events]
        self._paid = [DRAWS.get(name) for name in names]
        if "above threshold" in names:
            self._sieve = _Sieve()

    def _use(self, kind: str, scale: float):
        if kind in self._paid:
            self._paid.remove(kind)
        else:
            self.unpaid.append(f"{kind} noise of scale {scale:g}")

    def laplace(self, value: float, scale: float) -> float:
        """`value` plus Laplace noise, paid for by itself or as part of a sieve."""
        noisy = self._noise.laplace(value, scale)
        if "Laplace" in self._paid or self._sieve is None:
            self._use("Laplace", scale)
        elif self._sieve.threshold is None:
            self._sieve = _Sieve(noisy, scale)
        elif not math.isclose(scale, 2 * self._sieve.scale):
            self._use("Laplace", scale)
        else:
            self._ask(noisy)
        return noisy

    def _ask(self, noisy: float):
        """A query of the sieve: its first needs a sub-sample of its own, a hit ends it."""
        if not self._sieve.asked and self._fresh is False:
            self.unpaid.append("the sub-sample of an earlier sieve")
        if self._fresh:
            self._fresh = False
        self._sieve = replace(self._sieve, asked=True)
        if noisy >= self._sieve.threshold:
            self._sieve = None

    def gaussian(self, value: float, scale: float) -> float:
        """`value` plus Gaussian noise."""
        self._use("Gaussian", scale)
        return self._noise.gaussian(value, scale)

    def gumbel_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus Gumbel noise are largest."""
        self._use("Gumbel", scale)
        return self._noise.gumbel_max(scores, scale)

    def exponential_max(self, scores: np.ndarray, scale: float) -> int:
        """Where `scores` plus exponential noise are largest."""
        self._use("exponential", scale)
        return self._noise.exponential_max(scores, scale)

    def choose(self, n: int, m: int) -> np.ndarray:
        """m distinct numbers below n; free, for a sub-sample shows nothing by itself."""
        self._fresh = True
        return self._noise.choose(n, m)


@dataclass(frozen=True)
class _Sieve:
    """An above-threshold that has been paid for: its noisy threshold and that noise's scale."""

    threshold: float | None = None
    scale: float | None = None
    asked: bool = False
