"""CURATE: a plan gives each order of tests its budget, from released facts only."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
from scipy.optimize import minimize

from dpcgd.constraint.laplace_pc import LaplaceOracle, TestKeywords, private_search
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.release import Release
from dpcgd.privacy.budget import LEAST, MOST, ROOM, BudgetSpent
from dpcgd.privacy.conversions import turning_point
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.run import Run, takes_keywords
from dpcgd.statistics.statistic import RECORDS_PER_CELL, Statistic, in_sensitivities

__all__ = ["CurateOracle", "Surrogate", "allocate", "curate_pc", "proved_plan"]
__all__ += ["askable", "concentrated", "guessed_questions", "planner", "resolution"]

LEAST_EPSILON, MOST_EPSILON = 1e-150, 1e150
"""The range of a test's epsilon; outside it the square may be too small or large for a double."""


MOST_COUNT = 10**300
"""The largest number of tests in a plan; larger numbers are replaced by it."""


Cost = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A function from the tests and the epsilon of each order to the cost of the order."""


Questions = Callable[[np.ndarray, int, int], np.ndarray]
"""A function from joined pairs, an order and the last order to the planned tests of each order."""


Plan = Callable[[np.ndarray, int], float]
"""A function from the pairs still joined and an order to the epsilon of its tests."""


@dataclass
class CurateOracle(LaplaceOracle):
    """Laplace noise on every test; its scale is planned at the beginning of each order.

    Parameters
    ----------
    tables, statistic, epsilon, margin, account, noise, label
        As for :class:`~dpcgd.constraint.laplace_pc.LaplaceOracle`; the plan sets `epsilon` and
        `label`.
    plan : callable
        Function from the pairs still joined and the order to the epsilon of its tests. It may use
        earlier releases and the remaining budget, never the data.
    crowded : float
        Noise scales by which the threshold falls for each factor of e in the number of sets that a
        pair is tested given: one set is enough to remove the pair.
    """

    plan: Plan = field(kw_only=True)
    crowded: float = field(default=0.5, kw_only=True)

    def begin_order(self, order: int, joined: np.ndarray, to_test: np.ndarray) -> None:
        """Plan the tests of an order."""
        self.epsilon = self.plan(joined, order)
        self.label = f"order {order}"
        sets = min(askable(joined, order), MOST_COUNT) / max(1, int(np.triu(joined).sum()))
        self._lowered = self.crowded * math.log(max(1.0, sets))

    def _is_below(self, noisy, sensitivity) -> bool:
        return super()._is_below(noisy + self._lowered * sensitivity / self.epsilon, sensitivity)


@takes_keywords
def curate_pc(data: Counts, **shared: Unpack[TestKeywords]) -> Release:
    """CURATE: the PC algorithm with Laplace noise on every test, planned order by order.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, statistic, max_order, knowledge, rows_per_person
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    margin : float
        Noise scales between the statistic's critical value and the threshold at order 0. At higher
        orders less by half the logarithm of the number of sets that a pair is tested given.

    Returns
    -------
    Release
        Its ledger has a row for each order.

    Raises
    ------
    ValueError
        If the statistic's critical value is 0, so that no plan is possible, and as
        :func:`~dpcgd.constraint.priv_pc.priv_pc`; nothing has run then.

    Privacy
    -------
    (epsilon, delta)-differentially private for replace-one neighbours: a zCDP filter pays for every
    test of every order. Chapters 02, 03 and 06, :prf:ref:`thm-curate-filter`.

    Notes
    -----
    Bhattacharjee and Tandon (2024), algorithm 1. Copies lose edges as in
    :func:`~dpcgd.constraint.priv_pc.priv_pc`.

    Examples
    --------
    >>> from dpcgd import load
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = curate_pc(data, epsilon=1.0, delta=1e-6, rng=np.random.default_rng(1))
    >>> release.guarantee, release.ledger.spent <= (1.0, 1e-6)
    ('proved', True)
    """

    def oracle(run: Run, statistic: Statistic) -> CurateOracle:
        margin, max_order = (run.terms.settings[name] for name in ("margin", "max_order"))
        plan = proved_plan(run.account, statistic, data.n, last=min(max_order, data.d - 2))
        tables = Tables(data)
        return CurateOracle(tables, statistic, math.nan, margin, run.account, run.noise, plan=plan)

    return private_search(data, ("curate_pc", "thm-curate-filter"), oracle, **shared)


def proved_plan(account: Filter, statistic: Statistic, n: int, *, last: int) -> Plan:
    """The plan of this book: a fixed distance to the threshold, zCDP, guesses of later tests.

    Raises
    ------
    ValueError
        If the statistic's critical value is 0, so that there is no distance.

    Notes
    -----
    The distance is that of the critical value from 0. An order whose noise scale is more than ten
    times this distance is not begun, because noise would decide it. The settings were chosen on
    networks that are not in the book (chapter 06).
    """
    slope, left = resolution(statistic, n), lambda: account.share(1.0)
    if slope == 0:
        cure = "take a statistic with another critical value, such as KendallZ()"
        raise ValueError(f"the critical value of {statistic.name} is 0; {cure}")
    surrogate = Surrogate(slope)
    return planner(left, guessed_questions, surrogate, concentrated, last=last, least=0.1 / slope)


def resolution(statistic: Statistic, n: int) -> float:
    """Distance of the critical value from 0, in sensitivities of the smallest conditional test."""
    levels = (2, 2, 2)
    # with fewer records it would be refused
    sensitivity = statistic.sensitivity(max(n, RECORDS_PER_CELL * math.prod(levels)), levels)
    return in_sensitivities(abs(statistic.critical), sensitivity)


def concentrated(tests, epsilon):
    """The zCDP cost of an order: epsilon^2 / 2 a test. The costs of all orders add up exactly."""
    with np.errstate(over="ignore"):
        return tests * np.square(epsilon) / 2


@dataclass(frozen=True)
class Surrogate:
    """CURATE's surrogate for the error probability of a search, its objective (2).

    Parameters
    ----------
    slope : float
        A distance from the threshold over the sensitivity of the statistic: noise exceeds it with
        probability e^(-slope epsilon) / 2.
    grey : float
        c1 and c2, a bound on the probability that a statistic is near the threshold, where a coin
        decides: 1 as published, 0 without a coin.

    Raises
    ------
    ValueError
        If the slope is negative or not finite, or grey is not between 0 and 1.

    Examples
    --------
    >>> Surrogate(100.0).value(np.array([0.1, 0.1])) < 1 < Surrogate(100.0, 1.0).value([0.1, 0.1])
    True
    """

    slope: float
    grey: float = 0.0

    def __post_init__(self):
        if not (0 <= self.slope < math.inf and 0 <= self.grey <= 1):
            numbers = f"{self.slope!r} and {self.grey!r}"
            raise ValueError(f"slope must be finite, at least 0, grey at most 1, not {numbers}")

    def error(self, epsilons: np.ndarray) -> np.ndarray:
        """Bound q on the error probability of one test, the same for both kinds of errors."""
        return (self.grey + self._beyond(epsilons)) / 2

    def value(self, epsilons: np.ndarray) -> float:
        """prod q + 1 - prod (1 - q)."""
        q = self.error(epsilons)
        return float(q.prod() + 1 - (1 - q).prod())

    def gradient(self, epsilons: np.ndarray) -> np.ndarray:
        """Derivative of the value by epsilon."""
        q = self.error(epsilons)
        others = [np.delete(q, i) for i in range(len(q))]
        by_q = np.array([rest.prod() + (1 - rest).prod() for rest in others])
        return -self.slope / 2 * self._beyond(epsilons) * by_q

    def _beyond(self, epsilons):
        with np.errstate(over="ignore"):
            return np.exp(-self.slope * np.asarray(epsilons))


def allocate(
    tests: Sequence[int] | np.ndarray, remaining: float, surrogate: Surrogate, price: Cost
) -> np.ndarray:
    """Non-increasing epsilons of the orders that make the surrogate small within the budget.

    Parameters
    ----------
    tests : sequence of int
        The planned tests of each order; an order without tests costs nothing.
    remaining : float
        The total that all orders may cost.
    surrogate : Surrogate
    price : callable
        Function from tests and epsilons to the cost of each order. When all epsilons shrink by a
        factor, the cost must shrink at least by that factor, as the prices here do.

    Returns
    -------
    array of float
        One for each order. The plan is no worse than three simple plans: the same epsilon for every
        test, the same cost for every order, nearly all for the first. If the optimiser fails, or
        the surrogate is flat, it is one of these.

    Raises
    ------
    ValueError
        If there are no tests or no budget, or a number of tests is not finite.

    Notes
    -----
    Sequential least squares over the logarithms of the epsilons; CURATE uses the epsilons.

    Examples
    --------
    >>> allocate([28, 60], 0.02, Surrogate(100.0), concentrated).round(4)
    array([0.0248, 0.0195])
    """
    asked = np.asarray(tests, float)
    countable = asked.size and (asked >= 0).all() and np.isfinite(asked).all() and asked.any()
    if not (countable and 0 < remaining < math.inf):
        raise ValueError(f"a plan needs tests and something to spend, not {asked}, {remaining!r}")
    some = asked[asked > 0]
    starts = _starts(some, remaining, price)
    better = [_improve(start, some, remaining, surrogate, price) for start in starts]
    best = min([*starts, *better], key=surrogate.value)
    planned = np.full(len(asked), best[-1])
    planned[asked > 0] = best
    return np.maximum.accumulate(planned[::-1])[::-1]  # an order without tests: as the next one


def _starts(tests, remaining, price) -> list[np.ndarray]:
    """Three plans: equal epsilons of tests, equal costs of orders, nearly all for the first."""
    together = _scale_to(lambda e: price(tests, e).sum(), remaining)
    even = np.full(len(tests), 1 / len(tests))
    first = np.append(1.0, np.full(len(tests) - 1, 1e-3 / len(tests)))

    def affordable(asked, share):
        return _scale_to(lambda e: price(asked, e), remaining * share)

    by_share = [[*map(affordable, tests, share)] for share in (even, first / first.sum())]
    return [np.full(len(tests), together), *np.minimum.accumulate(by_share, axis=1)]


def _scale_to(cost, remaining) -> float:
    """The largest epsilon, up to rounding, whose increasing cost stays within the rest.

    It is at most MOST_EPSILON. Below LEAST_EPSILON it is any affordable epsilon, or 0.
    """
    top = 1.0
    while cost(top) < remaining:
        if top == MOST_EPSILON:
            return top
        top = min(2 * top, MOST_EPSILON)
    while top >= LEAST_EPSILON and cost(top / 2) >= remaining:
        top /= 2
    return turning_point(lambda epsilon: cost(epsilon) <= remaining, top)[0] * (1 - ROOM)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _improve(start, tests, remaining, surrogate, price) -> np.ndarray:
    """The optimum that SLSQP finds from a start, or the start if it finds none."""

    def epsilons(logs):
        return start * np.exp(logs)

    def left_over(logs):
        return -math.log(np.clip(price(tests, epsilons(logs)).sum() / remaining, LEAST, MOST))

    level, slope = surrogate.value(start), surrogate.gradient(start) * start
    unit = np.abs(slope).max()
    if not 1e-12 < unit < math.inf or not start.all():
        return start
    falls = {"type": "ineq", "fun": lambda logs: -np.diff(logs + np.log(start))}
    affordable = {"type": "ineq", "fun": left_over}
    optimum = minimize(
        lambda logs: (surrogate.value(epsilons(logs)) - level) / unit,
        np.zeros(len(start)),
        jac=lambda logs: surrogate.gradient(epsilons(logs)) * epsilons(logs) / unit,
        bounds=[(-12.0, 12.0)] * len(start),
        constraints=[falls, affordable],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    if not (optimum.success and np.isfinite(optimum.x).all()):
        return start
    planned = np.minimum.accumulate(epsilons(optimum.x))
    # constraints hold up to a tolerance only
    return planned * min(1.0, remaining / price(tests, planned).sum() * (1 - ROOM))


def guessed_questions(joined: np.ndarray, order: int, last: int) -> np.ndarray:
    """The exact number of possible tests at this order, and a guess for later orders.

    Notes
    -----
    The guess supposes two edges for each variable, or all remaining edges, spread evenly.

    Examples
    --------
    >>> guessed_questions(~np.eye(8, dtype=bool), 0, 3)
    array([28., 96., 96., 32.])
    """
    edges = min(int(np.triu(joined).sum()), 2 * len(joined))
    others = max(0, math.ceil(2 * edges / len(joined)) - 1)
    later = [2 * edges * math.comb(others, k) for k in range(order + 1, last + 1)]
    return np.array([min(count, MOST_COUNT) for count in (askable(joined, order), *later)], float)


def askable(joined: np.ndarray, order: int) -> int:
    """The most tests of PC-stable at an order that starts with these pairs joined.

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
    price: Cost,
    *,
    last: int,
    least: float = 0.0,
) -> Plan:
    """CURATE's plan: at the start of an order, allocate the rest to it and to later orders.

    Parameters
    ----------
    remaining : callable
        Function that returns the remaining budget, in units of the price.
    questions, surrogate, price
        See :func:`allocate`.
    last : int
        Largest order.
    least : float
        A higher order with a smaller epsilon is not begun, because noise would decide its tests.

    Returns
    -------
    callable
        It also raises :class:`dpcgd.privacy.budget.BudgetSpent` if almost nothing is left.
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
