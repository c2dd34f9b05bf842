"""CURATE: the budget of each order of tests is planned anew, from released facts only."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from dpcgd.datasets import Dataset
from dpcgd.privacy import (
    LEAST,
    MOST,
    Budget,
    BudgetSpent,
    Event,
    Filter,
    Ledger,
    Odometer,
    Spent,
)
from dpcgd.search import Knowledge, Release
from dpcgd.sieve import LaplaceOracle, check_margin, open_run, release_of
from dpcgd.statistics import RECORDS_PER_CELL, KendallP, KendallZ, Statistic, in_sensitivities
from dpcgd.tables import Tables

__all__ = [
    "CoinOracle",
    "CurateOracle",
    "OrderFilter",
    "OrderOdometer",
    "PublishedCurateP",
    "Surrogate",
    "allocate",
    "askable",
    "concentrated",
    "curate_pc",
    "guessed_questions",
    "leakage",
    "most_questions",
    "planner",
    "proved_plan",
    "published_plan",
    "reading",
    "resolution",
]

LEAST_EPSILON, MOST_EPSILON = 1e-150, 1e150
"""Of a test: the squares of other numbers may be too small or too large."""

MOST_COUNT = 10**300
"""Larger numbers of tests are taken for this one."""

PUBLISHED_BETA = 0.2
"""Half the width of the published grey zone, as a share of the threshold."""

Price = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the tests and the epsilon of each order to what the order costs."""

Questions = Callable[[np.ndarray, int, int], np.ndarray]
"""From the pairs still joined, an order and the last one to the tests planned for each of them."""

Plan = Callable[[np.ndarray, int], float]
"""From the pairs still joined and an order to the epsilon of its tests."""


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


def concentrated(tests, epsilon):
    """The same in zCDP: epsilon^2 / 2 a test. The costs of all orders then add up exactly."""
    with np.errstate(over="ignore"):
        return tests * np.square(epsilon) / 2


@dataclass(frozen=True)
class Surrogate:
    """CURATE's stand-in for the error of a search, its objective (2).

    Parameters
    ----------
    slope : float
        A distance from the threshold over the sensitivity of the statistic: noise stays below it
        but for a probability of e^(-slope epsilon) / 2.
    grey : float
        c1 and c2, a bound on the probability of the grey zone: 1 as published, 0 without a zone.

    Raises
    ------
    ValueError
        If the slope is negative or not finite, or grey is no probability.

    Examples
    --------
    >>> Surrogate(100.0).value(np.array([0.1, 0.1])) < 1 < Surrogate(100.0, 1.0).value([0.1, 0.1])
    True
    """

    slope: float
    grey: float = 0.0

    def __post_init__(self):
        if not (0 <= self.slope < math.inf and 0 <= self.grey <= 1):
            raise ValueError(
                "slope must be finite and not negative and grey between 0 and 1, not "
                f"{self.slope!r} and {self.grey!r}"
            )

    def error(self, epsilons: np.ndarray) -> np.ndarray:
        """Bound q of one test's error, the same for both kinds."""
        return (self.grey + self._beyond(epsilons)) / 2

    def value(self, epsilons: np.ndarray) -> float:
        """prod q + 1 - prod (1 - q)."""
        q = self.error(epsilons)
        return float(q.prod() + 1 - (1 - q).prod())

    def gradient(self, epsilons: np.ndarray) -> np.ndarray:
        """Of the value, by epsilon."""
        q = self.error(epsilons)
        others = [np.delete(q, i) for i in range(len(q))]
        by_q = np.array([rest.prod() + (1 - rest).prod() for rest in others])
        return -self.slope / 2 * self._beyond(epsilons) * by_q

    def _beyond(self, epsilons):
        with np.errstate(over="ignore"):
            return np.exp(-self.slope * np.asarray(epsilons))


def allocate(
    tests: Sequence[int], remaining: float, surrogate: Surrogate, price: Price
) -> np.ndarray:
    """Epsilons of the orders, never rising, that make the surrogate small within the budget.

    Parameters
    ----------
    tests : sequence of int
        Planned for each order; an order without tests costs nothing.
    remaining : float
        What all of them may cost together.
    surrogate : Surrogate
    price : callable
        From tests and epsilons to the cost of each order; it must not grow faster than linearly
        when all epsilons shrink together, as those here do not.

    Returns
    -------
    array of float
        One for each order. No worse than spending the same on every test, the same on every order
        or nearly all on the first: where the optimiser fails, or the surrogate is flat, it is one
        of these.

    Raises
    ------
    ValueError
        If there is nothing to plan or nothing to spend, or a number of tests is not finite.

    Notes
    -----
    Sequential least squares over the logarithms, as CURATE does over the epsilons themselves.

    Examples
    --------
    >>> allocate([28, 60], 0.02, Surrogate(100.0), concentrated).round(4)
    array([0.0248, 0.0195])
    """
    tests = np.asarray(tests, float)
    countable = tests.size and (tests >= 0).all() and np.isfinite(tests).all() and tests.any()
    if not (countable and 0 < remaining < math.inf):
        raise ValueError(
            f"a plan needs tests and something to spend on them, not {tests} and {remaining!r}"
        )
    some = tests[tests > 0]
    starts = _starts(some, remaining, price)
    found = [_improve(start, some, remaining, surrogate, price) for start in starts]
    best = min([*starts, *found], key=surrogate.value)
    planned = np.full(len(tests), best[-1])
    planned[tests > 0] = best
    return np.maximum.accumulate(planned[::-1])[::-1]  # an order without tests: as the next one


def _starts(tests, remaining, price) -> list[np.ndarray]:
    """The same epsilon for every test; the same cost for every order; nearly all for the first."""
    together = _scale_to(lambda e: price(tests, e).sum(), remaining)
    even = np.full(len(tests), 1 / len(tests))
    first = np.append(1.0, np.full(len(tests) - 1, 1e-3 / len(tests)))
    by_share = [
        [
            _scale_to(lambda e, t=t: price(t, e), remaining * s)
            for t, s in zip(tests, share, strict=True)
        ]
        for share in (even, first / first.sum())
    ]
    return [np.full(len(tests), together), *np.minimum.accumulate(by_share, axis=1)]


def _scale_to(cost, remaining) -> float:
    """The largest epsilon, but for rounding, at which a growing cost stays within what remains.

    It is at most MOST_EPSILON; below LEAST_EPSILON it is an affordable one, or 0.
    """
    from scipy.optimize import brentq  # heavy, and only needed here

    top = 1.0
    while cost(top) < remaining:
        top *= 2
        if top > MOST_EPSILON:
            return MOST_EPSILON
    bottom = top
    while bottom > 0 and cost(bottom) >= remaining:
        bottom /= 2
    if bottom < LEAST_EPSILON:
        return bottom
    excess = lambda e: min(cost(e), MOST) - remaining  # noqa: E731
    close = {"xtol": 1e-300, "rtol": 1e-12}
    root, found = brentq(excess, bottom, top, full_output=True, disp=False, **close)
    if not found.converged:  # too wide a bracket
        root = brentq(excess, bottom, min(top, 2 * bottom), **close)
    return root * (1 - 1e-9)


def _improve(start, tests, remaining, surrogate, price) -> np.ndarray:
    """The optimum that SLSQP finds from a start, or the start where it finds none."""
    from scipy.optimize import minimize

    def at(logs):
        return start * np.exp(logs)

    with np.errstate(over="ignore", invalid="ignore"):
        level, slope = surrogate.value(start), surrogate.gradient(start) * start
        unit = np.abs(slope).max()
    if not 1e-12 < unit < math.inf or not start.all():
        return start
    falls = {"type": "ineq", "fun": lambda logs: -np.diff(logs + np.log(start))}
    affordable = {
        "type": "ineq",
        "fun": lambda logs: -_log_ratio(price(tests, at(logs)), remaining),
    }
    found = minimize(
        lambda logs: (surrogate.value(at(logs)) - level) / unit,
        np.zeros(len(start)),
        jac=lambda logs: surrogate.gradient(at(logs)) * at(logs) / unit,
        bounds=[(-12.0, 12.0)] * len(start),
        constraints=[falls, affordable],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    if not (found.success and np.isfinite(found.x).all()):
        return start
    return _within(np.minimum.accumulate(at(found.x)), tests, remaining, price)


def _log_ratio(costs, remaining) -> float:
    """Of what orders cost to what remains; a number in any case."""
    with np.errstate(over="ignore"):
        return math.log(min(max(costs.sum() / remaining, LEAST), MOST))


def _within(epsilons, tests, remaining, price) -> np.ndarray:
    """Shrunk until affordable: the constraints of an optimiser hold up to its tolerance only."""
    with np.errstate(over="ignore", divide="ignore"):
        return epsilons * min(1.0, remaining / price(tests, epsilons).sum() * (1 - 1e-9))


def most_questions(joined: np.ndarray, order: int, last: int) -> np.ndarray:
    """CURATE's bound on the tests of each order: every pair still joined, given any others."""
    pairs = int(np.triu(joined).sum())
    return _as_floats(pairs * math.comb(len(joined) - 2, k) for k in range(order, last + 1))


def _as_floats(counts) -> np.ndarray:
    """Counts of tests, which may be larger than any double."""
    return np.array([min(count, MOST_COUNT) for count in counts], float)


def guessed_questions(joined: np.ndarray, order: int, last: int) -> np.ndarray:
    """What can be asked at this order, exactly; and a guess for the later ones.

    Notes
    -----
    The guess takes two edges for each variable, or what is left of them, spread evenly.

    Examples
    --------
    >>> guessed_questions(~np.eye(8, dtype=bool), 0, 3)
    array([28., 96., 96., 32.])
    """
    edges = min(int(np.triu(joined).sum()), 2 * len(joined))
    others = max(0, math.ceil(2 * edges / len(joined)) - 1)
    later = [2 * edges * math.comb(others, k) for k in range(order + 1, last + 1)]
    return _as_floats([askable(joined, order), *later])


def askable(joined: np.ndarray, order: int) -> int:
    """How many questions PC-stable can ask at an order that starts with these pairs joined.

    Examples
    --------
    >>> askable(~np.eye(4, dtype=bool), 1)
    12
    """
    degree, common = joined.sum(axis=1).tolist(), (joined.astype(int) @ joined).tolist()
    return sum(
        math.comb(degree[x] - 1, order)
        + math.comb(degree[y] - 1, order)
        - math.comb(common[x][y], order)
        for x, y in np.argwhere(np.triu(joined)).tolist()
    )


def planner(
    remaining: Callable[[], float],
    questions: Questions,
    surrogate: Surrogate,
    price: Price,
    *,
    last: int,
    least: float = 0.0,
) -> Plan:
    """CURATE's plan: at the beginning of an order, allocate what is left to it and the later ones.

    Parameters
    ----------
    remaining : callable
        What is left, in units of the price.
    questions, surrogate, price
        See :func:`allocate`.
    last : int
        Largest order.
    least : float
        A higher order with a smaller epsilon is not begun: its noise would decide alone.

    Returns
    -------
    callable
        It raises :class:`dpcgd.privacy.BudgetSpent` where next to nothing is left, too.
    """

    def plan(joined: np.ndarray, order: int) -> float:
        tests, left = questions(joined, order, last), remaining()
        if not left > 0:
            raise BudgetSpent("nothing is left to plan with")
        epsilon = float(allocate(tests, left, surrogate, price)[0])
        if epsilon < max(LEAST_EPSILON, least if order > 0 else 0.0):
            raise BudgetSpent(f"order {order} would run at epsilon = {epsilon:.3g} a test")
        return epsilon

    return plan


@dataclass
class CurateOracle(LaplaceOracle):
    """Laplace noise on every test, its size planned anew at the beginning of each order.

    Parameters
    ----------
    tables, statistic, epsilon, margin, account, noise
        As for :class:`LaplaceOracle`; `epsilon` is that of the order at hand, set by the plan, and
        `account` an :class:`OrderFilter` or :class:`OrderOdometer`.
    plan : callable
        From the pairs still joined and the order to the epsilon of its tests. It may use what has
        been released and what is left, never the data.
    joined : boolean array of shape (d, d)
        Pairs that are joined at the start.
    crowded : float
        How many noise scales to lower the threshold for each factor of e in the sets a pair may be
        asked about: one of them is enough to lose it.
    """

    plan: Plan
    joined: np.ndarray
    crowded: float = 0.5
    _order: int = -1

    def separates(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        """Is the noisy statistic below the threshold of this order?"""
        if len(given) > self._order:
            self._begin(len(given))
        independent = super().separates(x, y, given)
        if independent:
            self.joined[x, y] = self.joined[y, x] = False
        return independent

    def _begin(self, order):
        self.epsilon = self.plan(self.joined, order)
        self.account.order = self._order = order
        pairs = max(1, int(np.triu(self.joined).sum()))
        sets = min(askable(self.joined, order), MOST_COUNT) / pairs
        self._lowered = self.crowded * math.log(max(1.0, sets))

    def _is_below(self, noisy, sensitivity) -> bool:
        return super()._is_below(noisy + self._lowered * sensitivity / self.epsilon, sensitivity)


@dataclass
class CoinOracle(CurateOracle):
    """The published decision: near the threshold, a coin."""

    beta: float = PUBLISHED_BETA

    def _is_below(self, noisy, sensitivity) -> bool:
        above = noisy - self.statistic.critical
        if abs(above) > self.beta * abs(self.statistic.critical):
            return above < 0
        return self.noise.choose(2, 1)[0] == 0


def reading(events: Iterable[Event], delta: float) -> float:
    """CURATE's account of a run: the sum of :func:`leakage` over its orders."""
    orders = Counter((event.mechanism, event.epsilon) for event in events)
    return float(sum(leakage(t, epsilon, delta) for (_, epsilon), t in orders.items()))


class _ByOrder:
    """Events are noted by order."""

    order = 0

    def spend(self, *events: Event):
        """Pay for events that are about to run."""
        super().spend(*(_at(self.order, event) for event in events))


def _at(order, event) -> Event:
    return replace(event, mechanism=f"{event.mechanism}, order {order}")


class OrderFilter(_ByOrder, Filter):
    """A filter whose ledger has a row for each order.

    Examples
    --------
    >>> from dpcgd.privacy import PureEvent
    >>> account = OrderFilter(Budget(1.0, 1e-6))
    >>> account.spend(PureEvent("Laplace", 0.1))
    >>> account.order = 1
    >>> account.spend(PureEvent("Laplace", 0.05))
    >>> account.ledger.to_frame().mechanism.tolist()
    ['Laplace, order 0', 'Laplace, order 1']
    """


class OrderOdometer(_ByOrder, Odometer):
    """CURATE's own account: orders by advanced composition, then added; what is left is refunded.

    Parameters
    ----------
    budget : Budget
        Epsilon of the whole run, and delta' of each order.
    """

    def __init__(self, budget: Budget):
        super().__init__(budget.delta)
        self._budget = budget

    @property
    def remaining(self) -> float:
        """What the paper has left for the orders to come."""
        return self._budget.epsilon - reading(self._events, self.delta)

    @property
    def ledger(self) -> Ledger:
        """What has been noted so far."""
        orders = len({event.mechanism for event in self._events})
        spent = Spent(reading(self._events, self.delta), orders * self.delta)
        accountant = "CURATE's sum over orders: claimed, not proved"
        return Ledger(tuple(self._events), spent, None, accountant)


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


def curate_pc(
    data: Dataset,
    *,
    epsilon: float,
    delta: float = 1e-6,
    rng: np.random.Generator | None = None,
    secure: bool = False,
    statistic: Statistic | None = None,
    margin: float = 1.0,
    max_order: int = 3,
    knowledge: Knowledge | None = None,
    published: bool = False,
) -> Release:
    """CURATE: the PC algorithm with Laplace noise on every test, planned order by order.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        The guarantee of the whole run. With ``published=True``, epsilon is the total that the
        paper's account allows and delta that of each order.
    statistic : Statistic, optional
        ``KendallZ()`` unless given; ``PublishedCurateP()`` for the published version.
    margin : float
        Noise scales between the statistic's critical value and the threshold at order 0; at higher
        orders less by half the logarithm of the sets a pair may be asked about. Not used when
        published.
    published : bool
        Run the paper's version instead: p-values, its sensitivity, a coin near the threshold, its
        surrogate, its bounds on the tests, its account.
    rng, secure, max_order, knowledge
        As for :func:`dpcgd.priv_pc`.

    Returns
    -------
    Release
        Its ledger has a row for each order.

    Raises
    ------
    ValueError
        If the budget, the noise source or the margin is unusable, or the statistic has its critical
        value at 0, which leaves nothing to plan by (unless published); nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a zCDP filter pays for every
    test of every order. Chapters 02, 03 and 06. None with ``published=True``.

    Notes
    -----
    Bhattacharjee and Tandon (2024), algorithm 1.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = curate_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """
    started = time.perf_counter()
    check_margin(margin)
    account, noise = open_run(data, epsilon, delta, rng, secure, published, OrderFilter)
    last = min(max_order, data.d - 2)
    forbidden, _ = (knowledge or Knowledge()).arrays(data.variables)
    joined = ~(forbidden & forbidden.T) & ~np.eye(data.d, dtype=bool)
    if published:
        kind, statistic = CoinOracle, statistic or PublishedCurateP()
        account = OrderOdometer(Budget(epsilon, delta))
        plan = published_plan(account, statistic, data.n, last=last)
    else:
        kind, statistic = CurateOracle, statistic or KendallZ()
        plan = proved_plan(account, statistic, data.n, last=last)
    oracle = kind(
        Tables(data), statistic, math.nan, margin, account, noise, plan=plan, joined=joined
    )
    return release_of(oracle, data, last, knowledge, started, secure)


def published_plan(account: OrderOdometer, statistic: Statistic, n: int, *, last: int) -> Plan:
    """The paper's: c1 = c2 = 1, margins of beta T, every set of other variables, its account."""
    slope = PUBLISHED_BETA * resolution(statistic, n)
    price = partial(leakage, delta=account.delta)
    left = lambda: account.remaining  # noqa: E731
    return planner(left, most_questions, Surrogate(slope, grey=1.0), price, last=last)


def proved_plan(account: Filter, statistic: Statistic, n: int, *, last: int) -> Plan:
    """Ours: a fixed distance to resolve, zCDP, guessed tests, and an end where noise would decide.

    Raises
    ------
    ValueError
        If the statistic's critical value is 0: there is no distance then.

    Notes
    -----
    The distance is that of the critical value from 0, and an order whose noise scale is more than
    ten times that is not begun. Chosen on networks that are not in the book (chapter 06).
    """
    slope, left = resolution(statistic, n), lambda: account.share(1.0)
    if slope == 0:
        raise ValueError(
            f"{statistic.name} has its critical value at 0, and the plan needs a distance of it "
            "from 0; take a statistic with another, such as KendallZ()"
        )
    surrogate = Surrogate(slope)
    return planner(left, guessed_questions, surrogate, concentrated, last=last, least=0.1 / slope)


def resolution(statistic: Statistic, n: int) -> float:
    """Distance of the critical value from 0, in sensitivities of the smallest conditional test."""
    levels = (2, 2, 2)
    smallest = RECORDS_PER_CELL * math.prod(levels)  # with fewer records it would be refused
    sensitivity = statistic.sensitivity(max(n, smallest), levels)
    return in_sensitivities(abs(statistic.critical), sensitivity)
