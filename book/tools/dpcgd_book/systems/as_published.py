"""The papers' own versions of the private searches: claimed, not proved.

They serve the chapters that re-run the papers. Each says what is wrong with its claim.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numba import njit
from scipy.optimize import minimize_scalar

from dpcgd import Budget, Counts, Dataset, Release
from dpcgd.constraint import curate_pc, em_pc, laplace_pc, priv_pc
from dpcgd.constraint.curate_pc import Plan
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.knowledge import SearchKeywords
from dpcgd.privacy.budget import Spent, check_delta, growth
from dpcgd.privacy.conversions import gaussian_multiplier
from dpcgd.privacy.events import Event, PureEvent
from dpcgd.privacy.filters import Ledger, NoPrivacy
from dpcgd.privacy.mechanisms import before_amplification, exponential
from dpcgd.privacy.run import RunKeywords, open_run, takes_keywords
from dpcgd.score import noleaks, notears
from dpcgd.score.schedules import Schedule, uniform
from dpcgd.statistics.categorical_statistics import GTest, g_statistic
from dpcgd.statistics.rank_statistics import KendallP, SpearmanP, kendall_p
from dpcgd.statistics.statistic import Statistic, normal_tail

__all__ = ["CoinOracle", "Counted", "CurateOdometer", "Odometer", "PublishedCurateP"]
__all__ += ["PublishedFlips", "PublishedKendallP", "PublishedSpearmanP", "advanced_composition"]
__all__ += ["leakage", "most_questions", "optimal_rate", "p_where_both_vary", "published_curate_pc"]
__all__ += ["published_em_pc", "published_gradient", "reading", "published_noleaks"]
__all__ += ["published_plan", "published_priv_pc", "published_svt_pc"]

BETA = 0.2
"""In CURATE's code the grey zone is this share of the threshold wide, to either side."""

CLIP = 1.0
"""Largest entry of the mean gradient of NoLeaks."""

TWEAK = 0.02
"""Priv-PC's published code lowers the sieve's threshold on the p-value by this."""


class Odometer(NoPrivacy):
    """An account that never refuses; it reports afterwards the cost of a run, as the papers do.

    The reading is no guarantee, because it depends on the data. As in the papers it leaves out a
    last above-threshold that has not fired, although that mechanism ran too.

    Parameters
    ----------
    delta : float
        Split evenly over the kinds of mechanism.

    Raises
    ------
    ValueError
        If delta is not above 0 and below 1.
    """

    guarantee: ClassVar[str] = "claimed, not proved"
    accountant: ClassVar[str] = "odometer, advanced composition: claimed, not proved"

    def __init__(self, delta: float):
        check_delta(delta)
        self.delta = delta
        self._events: list[Any] = []  # those with an epsilon

    def keep(self, share: float) -> None:
        """Reserve nothing: there is no budget."""

    def spend(self, *events: Event):
        """Record events."""
        self._events.extend(events)

    @property
    def ledger(self) -> Ledger:
        """The ledger of the events recorded so far."""
        return Ledger(tuple(self._events), self._spent(), None, self.accountant)

    def _spent(self) -> Spent:
        unfinished = self._events and self._events[-1].mechanism == "above threshold"
        counts = Counter(self._events[:-1] if unfinished else self._events)
        kinds = max(1, len(counts))
        epsilon = sum(
            advanced_composition(event.epsilon, times, self.delta / kinds)
            for event, times in counts.items()
        )
        return Spent(epsilon, self.delta)


def advanced_composition(epsilon: float, times: int, delta: float) -> float:
    """Epsilon of `times` runs of a pure mechanism by advanced composition.

    Notes
    -----
    sqrt(2 k ln(1/delta)) epsilon + k epsilon (e^epsilon - 1), Dwork and Roth (2014), theorem 3.20.

    Examples
    --------
    >>> round(advanced_composition(0.1, 100, 1e-6), 2)
    6.31
    """
    return math.sqrt(2 * times * math.log(1 / delta)) * epsilon + times * epsilon * growth(epsilon)


open_claimed_run = functools.partial(open_run, account=lambda budget: Odometer(budget.delta))
"""A run whose odometer enforces no budget: what it claims is not proved."""


class PublishedKeywords(SearchKeywords, total=False):
    """The keywords of the papers' searches; without a statistic they take the paper's own."""

    statistic: Statistic | None
    max_order: int


class Counted:
    """A statistic that counts how often it is computed.

    Parameters
    ----------
    statistic : Statistic

    Attributes
    ----------
    count : int
    """

    def __init__(self, statistic: Statistic):
        self.statistic, self.count = statistic, 0

    def value(self, table: np.ndarray) -> float:
        """Of the statistic."""
        self.count += 1
        return self.statistic.value(table)

    def __getattr__(self, name):
        return getattr(self.statistic, name)


class _PublishedBound:
    """A p-value's change from z = 0 to z = constant / sqrt(n), whatever the levels."""

    proved: ClassVar[bool] = False
    constant: ClassVar[float]

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """As published; not a bound."""
        return 0.5 - normal_tail(self.constant / math.sqrt(n))


class PublishedKendallP(_PublishedBound, KendallP):
    """Kendall's p-value with the sensitivity of Priv-PC's theorem 3, which is too small.

    Privacy
    -------
    None proved: 9/2 / sqrt(n) in z holds for adding a record near z = 0 only. Chapter 03.
    """

    constant: ClassVar[float] = 4.5


def p_where_both_vary(table: np.ndarray) -> float:
    """Kendall's p-value over the strata in which both variables vary; NaN if there is none.

    So in the code of Priv-PC; in the paper, appendix D, over all strata.

    Examples
    --------
    >>> p_where_both_vary(np.array([[[5, 5], [5, 0]], [[5, 5], [5, 0]]]))
    0.5
    """
    strata = table.reshape(*table.shape[:2], -1)
    varies = [(strata.sum(axis=axis) > 0).sum(axis=0) > 1 for axis in (0, 1)]
    kept = varies[0] & varies[1] & (strata.sum(axis=(0, 1)) > 2)
    return kendall_p(strata[..., kept]) if kept.any() else math.nan


class PublishedSpearmanP(_PublishedBound, SpearmanP):
    """Spearman's p-value with the sensitivity that follows from a published change of 30/n of rho.

    Privacy
    -------
    None claimed by Priv-PC in the part of it that is public: Kusner et al. (2016) print 30/n for
    one stratum. Chapter 03 proves less for one stratum, and how much it takes for several.
    """

    constant: ClassVar[float] = 30.0


@dataclass(frozen=True)
class PublishedCurateP(KendallP):
    """Kendall's p-value with the sensitivity of CURATE's appendix, which is too small.

    Parameters
    ----------
    alpha : float

    Privacy
    -------
    None proved: chapter 03.

    Notes
    -----
    Formula (16) at its largest, two records in the stratum: 10 / (11 sqrt(pi n)) = 0.513 / sqrt(n).
    The authors' code has 0.3627 / sqrt(n), smaller by a factor of sqrt(2).
    """

    alpha: float = 0.05
    proved: ClassVar[bool] = False

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """As published; not a bound."""
        return 10 / 11 / math.sqrt(math.pi * n)


@dataclass(frozen=True)
class PublishedFlips:
    """How many records a greedy hand removes until a G-test decides otherwise; dependent is plus.

    Parameters
    ----------
    alpha : float
        The test's significance level.

    Privacy
    -------
    None proved: the true signed distance moves by up to 2, by 1 after a correction of half a step,
    and what greed finds by far more. Chapter 05, :prf:ref:`thm-em-greedy`.

    Notes
    -----
    Distance scores: Johnson and Shmatikov (2013); greedy in the code of Xu et al. (2017).
    """

    alpha: float = 0.05
    critical: ClassVar[float] = 0.0
    name: ClassVar[str] = "G flips"
    proved: ClassVar[bool] = False

    def value(self, table: np.ndarray) -> float:
        """Removals until independent, or minus those until dependent."""
        table = np.ascontiguousarray(table, np.int64)
        return _flips(table.tobytes(), table.shape, self.alpha)

    def sensitivity(self, n: int, levels: tuple[int, ...]) -> float:
        """1, as claimed."""
        return 1.0


@functools.lru_cache(50_000)
def _flips(content: bytes, shape: tuple[int, ...], alpha: float) -> float:
    table = np.frombuffer(content, np.int64).reshape(*shape[:2], -1).copy()
    gains, critical = _gains(int(table.sum())), GTest(alpha).threshold(shape)
    return float(_greedy_removals(table, gains, g_statistic(table), critical))


@functools.lru_cache(4)
def _gains(n: int) -> np.ndarray:
    """(t + 1) ln(t + 1) - t ln t for t below n."""
    t = np.arange(1, n + 1, dtype=float)
    return np.diff(t * np.log(t), prepend=0.0)


@njit(cache=True, nogil=True)
def _greedy_removals(table, gains, g, critical):
    """How many records go, one at a time, until G falls below `critical` or reaches it.

    `table` has axes x, y and stratum and is used up. Each step removes the record that changes G
    most in the wanted direction.
    """
    by_x, by_y = table.sum(axis=1), table.sum(axis=0)
    size, (_, width, strata) = by_x.sum(axis=0), table.shape
    sign, removed = 1 if g >= critical else -1, 0
    drops, cells = np.full(strata, -np.inf), np.zeros(strata, np.int64)
    changed = np.arange(strata)
    while (g >= critical) == (sign > 0) and size.sum() > 0:
        for s in changed:  # the best record of a stratum depends on that stratum only
            drops[s] = -np.inf
            for (x, y), count in np.ndenumerate(table[:, :, s]):
                if count > 0:
                    drop = gains[count - 1] + gains[size[s] - 1]
                    drop -= gains[by_x[x, s] - 1] + gains[by_y[y, s] - 1]
                    if sign * drop > drops[s]:
                        drops[s], cells[s] = sign * drop, (x * width + y) * strata + s
        place = cells[drops == drops.max()].min()  # of ties the first
        s, y, x = place % strata, place // strata % width, place // strata // width
        table[x, y, s] -= 1
        by_x[x, s] -= 1
        by_y[y, s] -= 1
        size[s] -= 1
        g -= sign * 2 * drops[s]
        removed += 1
        changed = np.array([s])
    return sign * removed


def optimal_rate(epsilon: float) -> float:
    """Sampling rate with the least sieve noise, if sensitivity grows as the root of its inverse.

    Parameters
    ----------
    epsilon : float
        Of the sieve, after amplification.

    Returns
    -------
    float
        Minimises sqrt(1/r) / ln(1 + (e^epsilon - 1) / r) over 1/20 <= r <= 1 (Priv-PC, section
        3.2). Chapter 04, :prf:ref:`thm-best-share`, has a closed form.

    Raises
    ------
    ValueError
        If epsilon is not positive.

    Examples
    --------
    >>> optimal_rate(0.5), round(optimal_rate(2.0), 3)
    (0.165..., 1.0)
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, not {epsilon!r}")
    epsilon = max(epsilon, 1e-100)  # the best rate no longer depends on it

    def noise(rate):
        return math.sqrt(1 / rate) / before_amplification(epsilon, rate)

    best = minimize_scalar(noise, bounds=(1 / 20, 1), method="bounded", options={"xatol": 1e-10})
    return min((float(best.x), 1.0), key=noise)


@takes_keywords
def published_svt_pc(
    data: Counts, *, rate: float = 1.0, **shared: Unpack[PublishedKeywords]
) -> Release:
    """SVT-PC as published: p-values, their claimed sensitivity, an odometer.

    Parameters
    ----------
    epsilon : float
        Of one round.
    data, delta, allow_delta, rng, secure, statistic, rate, max_order, knowledge
        As for :func:`published_priv_pc`.
    rows_per_person : int
        Must be 1: the odometer enforces no budget.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapters 03 and 04.
    """
    return _by_rounds(priv_pc.ThresholdOracle, (1.0, 0.0), 0.0, data, rate, shared)


@takes_keywords
def published_priv_pc(
    data: Counts, *, rate: float | None = None, **shared: Unpack[PublishedKeywords]
) -> Release:
    """Priv-PC as published: p-values, their claimed sensitivity and thresholds, an odometer.

    Parameters
    ----------
    data : Dataset or Counts
    epsilon : float
        Of one round of sieve and examination.
    delta : float
        Of the reading afterwards.
    statistic : Statistic, optional
        ``PublishedKendallP()`` unless given.
    rate : float, optional
        Fraction of the records that a sieve looks at; by :func:`optimal_rate` unless given.
    allow_delta, rng, secure, max_order, knowledge
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    rows_per_person : int
        Must be 1: the odometer enforces no budget.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Raises
    ------
    ValueError
        As :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Privacy
    -------
    None proved: the sensitivity is too small and the reading is no guarantee, chapters 03 and 04.

    Notes
    -----
    Wang, Pang and Song (2020), algorithm 2, with the settings of its code.
    """
    return _by_rounds(priv_pc.SieveOracle, (0.5, 0.5), TWEAK, data, rate, shared)


def _by_rounds(kind, shares, tweak, data, rate, shared) -> Release:
    """A search whose every round costs epsilon: these shares for sieve and examination."""
    max_order = shared.setdefault("max_order", 3)
    run = open_claimed_run(data, records=rate != 1, rate=rate, **shared)
    cost = priv_pc.Round(*(share * shared["epsilon"] for share in shares))
    statistic = shared.get("statistic") or PublishedKendallP()
    rate = optimal_rate(cost.sieve) if rate is None else rate
    oracle = kind(Tables(data), statistic, lambda _: cost, 0.0, tweak, rate, run.account, run.noise)
    return laplace_pc.released_by(oracle, run, max_order)


class PublishedOracle(em_pc.ExponentialOracle):
    """EM-PC as published: the set is the best one, which is released without noise."""

    def _which_set(self, sets, scores, epsilon) -> tuple[int, ...]:
        return sets[int(np.argmax(scores()))]


@takes_keywords
def published_em_pc(data: Counts, **shared: Unpack[PublishedKeywords]) -> Release:
    """EM-PC as published: greedy distances of a G-test, the best set released without noise.

    Parameters
    ----------
    epsilon : float
        Every choice costs half of it.
    delta : float
        Of the odometer's reading afterwards.
    statistic : Statistic, optional
        ``PublishedFlips()`` unless given.
    data, allow_delta, rng, secure, max_order, knowledge
        As for :func:`~dpcgd.constraint.em_pc.em_pc`.
    rows_per_person : int
        Must be 1: the odometer enforces no budget.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapter 05.
    """
    max_order = shared.setdefault("max_order", 3)
    run = open_claimed_run(data, **shared)
    statistic, half = shared.get("statistic") or PublishedFlips(), shared["epsilon"] / 2
    paid = run.account, run.noise
    oracle = PublishedOracle(Tables(data), statistic, lambda *_: half, exponential, 0.0, *paid)
    return laplace_pc.released_by(oracle, run, max_order)


class CoinOracle(curate_pc.CurateOracle):
    """CURATE's published decision: near the threshold, a coin."""

    beta: ClassVar[float] = BETA

    def _is_below(self, noisy, sensitivity) -> bool:
        above = noisy - self.statistic.critical
        if abs(above) > self.beta * abs(self.statistic.critical):
            return above < 0
        return self.noise.choose(2, 1)[0] == 0


def leakage(tests, epsilon, delta: float):
    """What an order costs in CURATE's account: advanced composition of its tests.

    It is infinite where it is too large a number.

    Examples
    --------
    >>> float(leakage(100, 0.01, 1e-6).round(3))
    0.536
    """
    with np.errstate(over="ignore"):
        squares = np.asarray(tests * np.square(epsilon))
        return squares + np.sqrt(2 * math.log(1 / delta) * squares)


def reading(events: Iterable[PureEvent], delta: float) -> float:
    """CURATE's account of a run: the :func:`leakage` of its orders, added up."""
    orders = Counter((event.label, event.epsilon) for event in events)
    return float(sum(leakage(tests, epsilon, delta) for (_, epsilon), tests in orders.items()))


class CurateOdometer(Odometer):
    """CURATE's own account: orders by advanced composition, then added; what is left is refunded.

    Chapter 06, :prf:ref:`thm-curate-account`, says what a bound on its reading is worth.

    Parameters
    ----------
    budget : Budget
        Epsilon of the whole run, and delta' of each order.
    """

    accountant = "CURATE's sum over orders: claimed, not proved"

    def __init__(self, budget: Budget):
        super().__init__(budget.delta)
        self._budget = budget

    @property
    def remaining(self) -> float:
        """What the paper has left for the orders to come."""
        return self._budget.epsilon - reading(self._events, self.delta)

    def _spent(self) -> Spent:
        orders = len({event.label for event in self._events})
        return Spent(reading(self._events, self.delta), orders * self.delta)


def most_questions(joined: np.ndarray, order: int, last: int) -> np.ndarray:
    """CURATE's bound on the tests of each order: every pair still joined, given any others."""
    pairs, d, most = int(np.triu(joined).sum()), len(joined), curate_pc.MOST_COUNT
    counts = [min(pairs * math.comb(d - 2, k), most) for k in range(order, last + 1)]
    return np.array(counts, float)


def published_plan(account: CurateOdometer, statistic: Statistic, n: int, *, last: int) -> Plan:
    """Every set of other variables, the paper's account; margins and c1 = c2 = 1 of the code."""
    surrogate = curate_pc.Surrogate(BETA * curate_pc.resolution(statistic, n), grey=1.0)
    price = functools.partial(leakage, delta=account.delta)
    return curate_pc.planner(lambda: account.remaining, most_questions, surrogate, price, last=last)


@takes_keywords
def published_curate_pc(data: Counts, **shared: Unpack[PublishedKeywords]) -> Release:
    """CURATE as published: p-values, a coin near the threshold, its surrogate and its account.

    Parameters
    ----------
    epsilon, delta : float
        The total that the paper's account allows, and the delta of each order.
    statistic : Statistic, optional
        ``PublishedCurateP()`` unless given.
    data, allow_delta, rng, secure, max_order, knowledge
        As for :func:`~dpcgd.constraint.curate_pc.curate_pc`.
    rows_per_person : int
        Must be 1: the account enforces no budget.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapters 03 and 06.
    """
    max_order = shared.setdefault("max_order", 3)
    run = open_run(data, account=CurateOdometer, **shared)
    statistic, last = shared.get("statistic") or PublishedCurateP(), min(max_order, data.d - 2)
    plan = published_plan(run.account, statistic, data.n, last=last)
    oracle = CoinOracle(Tables(data), statistic, math.nan, 0.0, run.account, run.noise, plan=plan)
    return laplace_pc.released_by(oracle, run, last)


def published_gradient(
    rows: np.ndarray, weights: np.ndarray, *, clip: float, times: np.ndarray | None = None
) -> np.ndarray:
    """The mean gradient with its entries clipped, as published.

    Parameters
    ----------
    rows, weights, clip, times
        As for :func:`~dpcgd.score.noleaks.clipped_gradient`; `clip` is the largest entry of the
        mean.

    Privacy
    -------
    None proved: claimed is a sensitivity of sqrt(d (d - 1)) clip / n, twice that in the authors'
    code, and one record can move the mean by more. Chapter 07.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [1.0, -1.0]])
    >>> published_gradient(rows, np.zeros((2, 2)), clip=0.2)
    array([[ 0. , -0.2],
           [-0.2,  0. ]])
    """
    times = np.ones(len(rows)) if times is None else times
    mean = -(rows.T * times) @ (rows - rows @ weights) / times.sum()
    return noleaks.without_diagonal(mean.clip(-clip, clip))


class PairsAddedUp(Odometer):
    """An account as published: (epsilon, delta) of every step, summed, whatever was drawn."""

    accountant = "pairs added up: claimed, not proved"

    def __init__(self, claimed: Spent):
        super().__init__(min(claimed.delta, 0.5))  # the sum may be no probability
        self._claimed = claimed

    def _spent(self) -> Spent:
        return self._claimed


@takes_keywords
def published_noleaks(
    data: Dataset, *, steps: int = 30, schedule: Schedule = uniform, **shared: Unpack[RunKeywords]
) -> Release:
    """NoLeaks as published: the mean gradient is clipped, and pairs (epsilon, delta) are added up.

    Parameters
    ----------
    epsilon, delta : float
        Claimed.
    data, allow_delta, rng, secure, steps, schedule
        As for :func:`~dpcgd.score.noleaks.noleaks`. The data's own means and variances scale the
        columns.
    rows_per_person : int
        Must be 1: the account enforces no budget.

    Returns
    -------
    Release
        Its guarantee is "claimed, not proved".

    Privacy
    -------
    None proved: chapter 07.
    """
    settings: dict[str, Any] = {"steps": steps, "schedule": schedule, **shared}
    run = open_claimed_run(data, numbers=True, records=True, **settings)
    shares, delta = noleaks.epsilons_of(schedule, shared["epsilon"], steps), run.account.delta
    run = replace(run, account=PairsAddedUp(Spent(float(shares.sum()), delta)))
    rows, times = noleaks.distinct_rows(data)
    scale = noleaks.scale_of(noleaks.means_of(rows, times), data, 0.0)
    multipliers = (gaussian_multiplier(Budget(share, delta / steps)) for share in shares.tolist())
    mean = functools.partial(published_gradient, clip=CLIP, times=times)
    moves = math.sqrt(data.d * (data.d - 1)) * CLIP / data.n
    look = noleaks.noisy_gradients(mean, moves, multipliers, run)
    weights = noleaks.descended(look, rows, scale, data, True, steps=steps, l1=notears.L1)
    return notears.release_by_weights(weights, notears.THRESHOLD, run, data.variables)
