"""The papers' systems as their authors' code runs them, and as printed: claimed, not proved.

What paper and code of CURATE and of NoLeaks have differently stands in a class of settings, with
two values each; Priv-PC and its rivals run as coded. A line says whether the paper, its appendix or
the code has it. The code was read for facts, and nothing of it is copied; that of the score-based
half of CURATE could not be read.
"""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np
from dpcgd_book.systems import as_published
from scipy.optimize import minimize

from dpcgd import CPDAG, Budget, BudgetSpent, Dataset, Release
from dpcgd.constraint import curate_pc
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import Answers
from dpcgd.privacy import budget, conversions, mechanisms
from dpcgd.privacy.events import BoundedRangeEvent, GaussianEvent, PureEvent
from dpcgd.privacy.noise import Noise
from dpcgd.privacy.run import Run, RunKeywords, open_run, takes_keywords
from dpcgd.score import notears
from dpcgd.score.schedules import multiplicative, uniform
from dpcgd.statistics import many_tables
from dpcgd.statistics.categorical_statistics import GTest
from dpcgd.statistics.statistic import normal_tail

Sets = dict[frozenset[int], set[int]]
"""For each pair what separated it, in all."""


# --- the search and its arrows, which are the same in the code of Priv-PC and of CURATE


def _searched(
    run: Run, data: Dataset, last: int, separates: Callable, begin: Callable = lambda *_: None
) -> Release:
    """PC that deletes an edge at once, and tests both ends; a spent budget ends it.

    `separates` is asked about x, y and a set, and answers None where it makes no test; `begin` is
    called with the pairs that are joined and the order.
    """
    (joined, sets), tests = _nothing_deleted(data.d), 0
    with suppress(BudgetSpent):
        for order in range(last + 1):
            begin(joined, order)
            for x, y in itertools.permutations(range(data.d), 2):
                others = [v for v in np.flatnonzero(joined[x]).tolist() if v != y]
                for given in itertools.combinations(others, order) if joined[x, y] else ():
                    answer = separates(x, y, *given)
                    tests += answer is not None
                    if answer:
                        joined[x, y] = joined[y, x] = False
                        sets[frozenset((x, y))] |= {*given}
                        break
            if joined.sum(axis=1).max() <= order:
                break
    return _released(run, data, joined, sets, tests)


def _nothing_deleted(d: int) -> tuple[np.ndarray, Sets]:
    return ~np.eye(d, dtype=bool), defaultdict(set)


def oriented(joined: np.ndarray, sets: Sets) -> np.ndarray:
    """Arrows as the code draws them: later colliders overrule, rules look from low to high only.

    Parameters
    ----------
    joined : boolean array, shape (d, d)
    sets : dict
        From a pair of variables to those that separated it; a pair without an entry has none.

    Notes
    -----
    An edge whose two ends were both taken away is gone. Of Meek's rules the code has three, for
    x - y with x before y only, so some forced edges stay without an arrow.

    Examples
    --------
    >>> oriented(np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], bool), {}).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    arcs, pairs = joined.copy(), [*itertools.combinations(range(len(joined)), 2)]
    for x, y in pairs:
        if not (arcs[x, y] or arcs[y, x]):
            middles = np.flatnonzero(arcs[x] & arcs[y]).tolist()
            heads = [v for v in middles if v not in sets.get(frozenset((x, y)), ())]
            arcs[heads, x] = arcs[heads, y] = False
    while True:
        before = arcs.sum()
        for x, y in pairs:
            if arcs[x, y] and arcs[y, x] and _is_forced(arcs, x, y):
                arcs[y, x] = False
        if arcs.sum() == before:
            return arcs


def _is_forced(arcs, x, y) -> bool:
    """Whether one of the first three of Meek's rules turns x - y into x -> y."""
    directed, apart = arcs & ~arcs.T, ~(arcs | arcs.T | np.eye(len(arcs), dtype=bool))
    both = np.flatnonzero(arcs[x] & arcs[:, x] & directed[:, y])
    chain = (directed[:, x] & apart[y]).any() or (directed[x] & directed[:, y]).any()
    return bool(chain or apart[np.ix_(both, both)].any())


def _released(run: Run, data: Dataset, joined: np.ndarray, sets: Sets, tests: int) -> Release:
    """The graph, with how many tests were made in all, examinations too (code)."""
    receipt = run.receipt()
    tests += sum(event.mechanism == "examination" for event in receipt["ledger"].events)
    answers = Answers({}, frozenset(), tests, stopped_early=False)
    return Release(CPDAG(data.variables, oriented(joined, sets)), **receipt, answers=answers)


def _last_order(data: Dataset) -> int:
    """The largest set that the evaluation of Priv-PC allows (code)."""
    return max(min(math.floor(math.log2(data.n)) - 5, data.d - 2), 0)


_tables = functools.lru_cache(1)(Tables)  # several runs on the same records share their work


@functools.lru_cache(50_000)
def _exact(data: Dataset, *tested: int) -> float:
    return as_published.p_where_both_vary(_tables(data).counts(tested))


# --- Priv-PC and SVT-PC


CONSTANT = 6.0
"""One record moves z by this over the root of n (code; paper, theorem 3: 9/2)."""
QUERY = 4.0
"""SVT-PC: noise of a query over that of the threshold (code; paper, algorithm 1: 2)."""
LEVEL = 0.1
"""Of all three systems of Priv-PC's evaluation (code; the paper prints none)."""


def _laplace(noise: Noise, scale: float) -> float:
    return noise.laplace(scale, PureEvent("Laplace", 1.0))(0.0)


def _normal(noise: Noise, scale: float) -> float:
    return noise.gaussian(scale, GaussianEvent("Gaussian", 1.0))(0.0)


@takes_keywords
def coded_svt_pc(data: Dataset, **shared: Unpack[RunKeywords]) -> Release:
    """SVT-PC as the code runs it: a hit deletes, the threshold is renewed, queries have more noise.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        Of one round, and of the reading afterwards.
    allow_delta, rng, secure
        As for :func:`~dpcgd.constraint.priv_pc.priv_pc`.
    rows_per_person : int
        Must be 1: the odometer enforces no budget.

    Privacy
    -------
    None proved: the sensitivity is too small, and queries that found nothing are not read.
    """
    run = as_published.open_claimed_run(data, **shared)
    moves = 0.5 - normal_tail(CONSTANT / math.sqrt(data.n))
    scale = 2 * moves / shared["epsilon"]
    threshold = LEVEL + _laplace(run.noise, scale)

    def separates(*test) -> bool:
        nonlocal threshold
        p = _exact(data, *test)
        hit = p + _laplace(run.noise, QUERY * scale) >= threshold
        if hit:
            run.account.spend(PureEvent("sieve", shared["epsilon"]))
            threshold = LEVEL + _normal(run.noise, scale)  # paper, algorithm 1: Laplace
        return hit

    return _searched(run, data, _last_order(data), separates)


@takes_keywords
def coded_priv_pc(
    data: Dataset, *, rate: float | None = None, **shared: Unpack[RunKeywords]
) -> Release:
    """Priv-PC as the code runs it: a sieve on a sub-sample, then an examination on all records.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, rows_per_person
        As for :func:`coded_svt_pc`.
    rate : float, optional
        Fraction of the records that a sieve looks at; the best one unless given.

    Privacy
    -------
    None proved: the sensitivity is too small, and the reading is no guarantee. Chapter 04.
    """
    run = as_published.open_claimed_run(data, records=rate != 1, rate=rate, **shared)
    half, n, noise = shared["epsilon"] / 2, data.n, run.noise
    rate = as_published.optimal_rate(half) if rate is None else rate
    moves, sampled = 0.5 - normal_tail(CONSTANT / math.sqrt(n)), math.floor(rate * n)
    scale = 2 * moves / math.sqrt(rate) / mechanisms.before_amplification(half, rate)
    whole = _tables(data)

    def renewed():
        sample = whole if sampled == n else whole.subsample(noise.choose(n, sampled))
        return sample, LEVEL - as_published.TWEAK + _laplace(noise, scale)

    sample, threshold = renewed()

    def separates(*test) -> bool:
        nonlocal sample, threshold
        p = as_published.p_where_both_vary(sample.counts(test))
        if not p + _laplace(noise, 2 * scale) >= threshold:
            return False
        run.account.spend(PureEvent("sieve", half), PureEvent("examination", half))
        p = _exact(data, *test)
        deletes = p + _laplace(noise, moves / half) >= LEVEL
        # Paper, algorithm 2: after a deletion only, if the indentation of our copy is right.
        sample, threshold = renewed()
        return deletes

    return _searched(run, data, _last_order(data), separates)


# --- EM-PC


def num_sig(scores: Sequence[float], p_values: Sequence[float], alpha: float) -> np.ndarray:
    """For each number of deletions, from none to all but one, the utility that the code gives it.

    Parameters
    ----------
    scores : sequence of float
        Steps to the other decision, positive where the test finds independence.
    p_values : sequence of float
    alpha : float

    Examples
    --------
    >>> num_sig([-5.0, 30.0, 8.0], [0.0, 0.9, 0.4], 0.1)
    array([-31.,  -8.,   4.])
    """
    order = sorted(zip(scores, p_values, strict=True), reverse=True)
    utilities = [-order[0][0] - (order[0][1] >= alpha)]
    for (score, p), (below, p_below) in itertools.pairwise(order):
        if p > alpha >= p_below:
            utilities.append(min(score, -below) - 1)
        else:
            utilities.append(-below if p > alpha else score)
    return np.array(utilities)


STRUCK_OUT = -10_000.0
"""The score of a variable that has been chosen; one far from independence has less (code)."""


@takes_keywords
def coded_em_pc(data: Dataset, **shared: Unpack[RunKeywords]) -> Release:
    """EM-PC as the code of Priv-PC runs it: greedy distances, no limit on the size of sets.

    The paper prints no algorithm. A turn is charged epsilon: half of it for the number of
    deletions, and half for all deletions together.

    Parameters
    ----------
    data, epsilon, delta, allow_delta, rng, secure, rows_per_person
        As for :func:`coded_svt_pc`; epsilon is that of one variable's turn.

    Privacy
    -------
    None proved: chapter 05. The scores' sensitivity is not 1, and sets are published without noise.
    """
    run, half = as_published.open_claimed_run(data, **shared), shared["epsilon"] / 2
    (joined, sets), tests = _nothing_deleted(data.d), 0
    for order in range(data.d - 1):
        for x in range(data.d):
            neighbours = tuple(np.flatnonzero(joined[x]).tolist())
            if len(neighbours) > order:
                tests += len(neighbours) * math.comb(len(neighbours) - 1, order)
                asked = functools.partial(_clearest, data, order, x, neighbours)
                scores, p_values, given = map(list, zip(*map(asked, neighbours), strict=True))
                deleted = _chosen(run, num_sig(scores, p_values, LEVEL), half)
                for number in range(deleted):
                    k = _chosen(run, np.array(scores), half / deleted)
                    y, scores[k] = neighbours[k], STRUCK_OUT
                    joined[x, y] = joined[y, x] = False
                    # Filed under the variable of that number, not under the one deleted (code).
                    sets[frozenset((x, number))] |= {*given[k]}
                run.account.spend(PureEvent("exponential", shared["epsilon"]))
    return _released(run, data, joined, sets, tests)


@functools.lru_cache(50_000)
def _clearest(data, order, x, neighbours, y) -> tuple[float, float, tuple[int, ...]]:
    """The set with the largest p-value, that p-value, and how far the other decision is."""
    tables, others = _tables(data), [v for v in neighbours if v != y]
    tests = [(x, y, *given) for given in itertools.combinations(others, order)]
    shapes = np.array([tables.shape(test) for test in tests], float)
    freedom = (shapes[:, 0] - 1) * (shapes[:, 1] - 1) * shapes[:, 2:].prod(axis=1)
    made, p_values = tables.n >= 10 * freedom, np.ones(len(tests))  # a sparse table passes (code)
    p_values[made] = many_tables.nearnesses_of(GTest(), tables, np.array(tests, np.int64)[made])
    k = int(np.argmax(p_values))
    steps = as_published.PublishedFlips(LEVEL).value(tables.counts(tests[k]))
    return math.copysign(abs(steps) - 1, -steps), float(p_values[k]), tests[k][2:]


def _chosen(run, scores, epsilon) -> int:
    return run.noise.gumbel_max(1.0, BoundedRangeEvent("exponential", epsilon))(scores)


# --- CURATE, by tests


def _slsqp(tests, remaining, surrogate, price) -> np.ndarray:
    """One run of SLSQP over the epsilons themselves, from one that all tests can afford."""
    together = curate_pc.allocate([tests.sum()], remaining, surrogate, price)
    start = (together / math.sqrt(len(tests))).repeat(len(tests))
    affordable = {"type": "ineq", "fun": lambda e: remaining - price(tests, e).sum()}
    falls = {"type": "ineq", "fun": lambda e: -np.diff(e)}
    rules = [affordable, falls][: len(tests)]
    limits = {"bounds": [(0, None)] * len(tests), "constraints": rules}
    optimum = minimize(surrogate.value, start, method="SLSQP", **limits)
    planned = optimum.x if optimum.success else start
    return planned * min(1.0, remaining / price(tests, planned).sum())  # up to a tolerance only


class CurateSettings(NamedTuple):
    """What paper and code of CURATE have differently.

    Of two numbers the paper prints no value, so both versions have the code's: the margins of the
    grey zone, .2 of the threshold, and c1 and c2 of the surrogate (lemma 1: below 1), which are 1.
    """

    moves: float
    """A p-value's sensitivity, times the root of n. Appendix, (16): .513. Code: .363."""
    order_delta: float
    """delta' of an order. Paper, section IV: 1e-12. Code: 1e-14."""
    test_delta: float
    """delta of a test. Paper, algorithm 1: at most 10^(-1.5 m), which is no double. Code: 1e-14."""
    total_delta: float
    """The search ends where the deltas reach it. Paper, algorithm 1: no value. Code: 1e-10."""
    charged_above: float
    """A test is charged if its noisy p-value is above. Paper: all are. Code: T (1 - beta)."""
    optimise: Callable[..., np.ndarray]
    """Paper: not named, so the package's. Code: SLSQP over the epsilons; its start is ours."""
    deletes_in_grey: Callable[[Noise], bool]
    """Paper, algorithm 1: a fair coin. Code: a fixed seed before the coin, so always the same; the
    runs of the code that we have seen keep the edge."""


def _coin(noise: Noise) -> bool:
    return noise.choose(2, 1)[0] == 0


CURATE_LEVEL = 0.05
"""CURATE's threshold (paper, section IV, and code)."""
CURATE_AS_PRINTED = CurateSettings(
    10 / 11 / math.sqrt(math.pi), 1e-12, 0.0, math.inf, -math.inf, curate_pc.allocate, _coin
)
"""CURATE by tests as the paper prints it."""
CURATE_AS_CODED = CurateSettings(
    0.3627, 1e-14, 1e-14, 1e-10, CURATE_LEVEL * (1 - as_published.BETA), _slsqp, lambda noise: False
)
"""CURATE by tests as its code runs it."""


@takes_keywords
def coded_curate_pc(
    data: Dataset, *, settings: CurateSettings = CURATE_AS_CODED, **shared: Unpack[RunKeywords]
) -> Release:
    """CURATE by tests as the code runs it: orders up to d - 2, planned anew at each.

    Parameters
    ----------
    data : Dataset
    epsilon : float
        The total that CURATE's account allows.
    settings : CurateSettings
        Its deltas stand in for `delta`.
    delta, allow_delta, rng, secure, rows_per_person
        As for :func:`coded_svt_pc`.

    Privacy
    -------
    None proved: chapters 03 and 06.

    Notes
    -----
    In either version an edge goes at once, and p-values leave out strata as in Priv-PC's code, from
    which that of CURATE is made. A pair is tested given a set once (paper, algorithm 1).
    """
    shared["delta"] = settings.order_delta
    run, last = open_run(data, account=as_published.CurateOdometer, **shared), data.d - 2
    moves = settings.moves / math.sqrt(data.n)
    surrogate = curate_pc.Surrogate(as_published.BETA * CURATE_LEVEL / moves, grey=1.0)
    price = functools.partial(as_published.leakage, delta=settings.order_delta)
    event = PureEvent("Laplace", 1.0)

    def begin(joined, order):
        nonlocal event
        ledger, left = run.account.ledger, run.account.remaining
        spent = ledger.spent.delta + settings.test_delta * len(ledger.events)
        if spent >= settings.total_delta or left <= 0 or not joined.any():
            raise BudgetSpent("CURATE's account is at its end")
        tests = as_published.most_questions(joined, order, last)
        epsilon = float(settings.optimise(tests, left, surrogate, price)[0])
        if epsilon < curate_pc.LEAST_EPSILON:
            raise BudgetSpent("next to nothing is left")
        event = PureEvent("Laplace", epsilon, label=f"order {order}")

    asked = set()

    def separates(x, y, *given) -> bool | None:
        test = frozenset((x, y)), given
        if test in asked:  # paper, algorithm 1: not twice on one set
            return None
        asked.add(test)
        p = _exact(data, x, y, *given)
        noisy = run.noise.laplace(moves, event)(p)
        if noisy > settings.charged_above:
            run.account.spend(event)
        if abs(noisy - CURATE_LEVEL) <= as_published.BETA * CURATE_LEVEL:
            return settings.deletes_in_grey(run.noise)
        return noisy > CURATE_LEVEL

    return _searched(run, data, last, separates, begin)


# --- NoLeaks, and CURATE by scores


class NoLeaksSettings(NamedTuple):
    """What NoLeaks's code has, and what CURATE prints of the same method."""

    moves: Callable[[int], float]
    """The gradient's sensitivity times n, from d; s is the clip. CURATE, section II: the root of
    d (d - 1) s. Code: twice the root of d (d - 1), times s."""
    budgets: Callable[[float], Iterator[float]]
    """From epsilon to that of each gradient. Code: the same for as many as there are. CURATE,
    algorithm 2: I iterations, no value of I; 30 as in chapter 07."""


CLIP = 2.0
"""Largest entry of the mean gradient. CURATE: s, no value. Code: 2."""
NOLEAKS_AS_PRINTED = NoLeaksSettings(
    lambda d: math.sqrt(d * (d - 1) * CLIP), lambda epsilon: iter(uniform(epsilon, 30))
)
"""NoLeaks as CURATE prints it."""
NOLEAKS_AS_CODED = NoLeaksSettings(lambda d: 2 * math.sqrt(d * (d - 1)) * CLIP, itertools.repeat)
"""NoLeaks as its code runs it."""
SCHEDULE_AS_PRINTED = NOLEAKS_AS_PRINTED._replace(budgets=lambda e: iter(multiplicative(e, 30)))
"""CURATE by scores, algorithm 2; its code could not be read."""
RAW, OUTER, PENALTY, ACYCLIC = 1000, 100, 0.1, 1e-8
"""Raw records of the line search, outer steps, l1, and the tolerance of the acyclicity (code)."""


@takes_keywords
def coded_noleaks(
    data: Dataset, *, settings: NoLeaksSettings = NOLEAKS_AS_CODED, **shared: Unpack[RunKeywords]
) -> Release:
    """NoLeaks as its code runs it: L-BFGS-B on noisy gradients, its line search on raw records.

    Parameters
    ----------
    data : Dataset
    epsilon, delta : float
        Of one gradient, or of all where `settings` share it; delta of each.
    settings : NoLeaksSettings
    allow_delta, rng, secure, rows_per_person
        As for :func:`coded_svt_pc`.

    Privacy
    -------
    None proved, and none there: the line search evaluates the exact loss of the first 1,000
    records, so whoever is among them has no protection at all. The code charges
    ln((n + 1) / (n + 1 - 1000)) and delta 1000 / n for it, as if they were drawn in secret; and a
    delta of 1000 / n allows 1,000 records to be published.

    Notes
    -----
    Ma et al. (2022). Columns are the middles of their levels' shares, most frequent first, times
    20, as in the code. It picks the threshold of weights that fits the true graph best; here it is
    that of :mod:`dpcgd.score.notears`.
    """
    run = as_published.open_claimed_run(data, records=True, numbers=True, **shared)
    rows = 20 * np.column_stack([_middles(column) for column in data.scaled.T])
    rows -= rows.mean(axis=0)
    first, gram = rows[:RAW], rows.T @ rows / data.n
    raw, budgets, d = first.T @ first / len(first), settings.budgets(shared["epsilon"]), data.d
    moves, delta, spent, events = settings.moves(d) / data.n, run.account.delta, [], []
    last = np.zeros((d, d))

    def gradient(weights):
        nonlocal last
        last = weights
        spent.append(next(budgets))
        multiplier = conversions.gaussian_multiplier(Budget(spent[-1], delta))
        events.append(GaussianEvent("Gaussian", multiplier))
        mean = notears.squared_loss(weights, gram)[1].clip(-CLIP, CLIP)
        return run.noise.gaussian(moves, events[-1])(mean) * ~np.eye(d, dtype=bool)

    try:
        weights = _augmented(lambda weights: notears.squared_loss(weights, raw)[0], gradient, d)
    except StopIteration:
        weights = last
    charged = math.log((data.n + 1) / max(1, data.n + 1 - RAW))
    claim = budget.Spent(sum(spent) + charged, len(spent) * delta + RAW / data.n)
    run = replace(run, account=as_published.PairsAddedUp(claim))
    run.account.spend(*events)
    return notears.release_by_weights(weights, notears.THRESHOLD, run, data.variables)


def _middles(column) -> np.ndarray:
    """Each level as the middle of its share of the records, the most frequent level first."""
    _, level, times = np.unique(column, return_inverse=True, return_counts=True)
    order = np.argsort(-times, kind="stable")
    middles = np.empty(len(times))
    middles[order] = np.cumsum(times[order]) - times[order] / 2
    return middles[level] / len(column)


def _augmented(loss, gradient, d) -> np.ndarray:
    """NOTEARS' augmented Lagrangian, with a loss and a gradient that need not belong together."""
    bounds = [(0, 0 if a == b else None) for _ in range(2) for a in range(d) for b in range(d)]
    parts, cyclic, multiplier, penalty = np.zeros(2 * d * d), math.inf, 0.0, 1.0

    def weights_of(parts):
        return np.subtract(*np.split(parts, 2)).reshape(d, d)

    def lagrangian(parts):
        weights = weights_of(parts)
        h, away = notears.acyclicity(weights)
        total = loss(weights) + penalty / 2 * h * h + multiplier * h
        smooth = (gradient(weights) + (penalty * h + multiplier) * away).ravel()
        slope = np.concatenate([smooth + PENALTY, PENALTY - smooth])
        return min(1e100, total) + PENALTY * parts.sum(), slope

    for _ in range(OUTER):
        while penalty < 1e16:
            new = minimize(lagrangian, parts, jac=True, method="L-BFGS-B", bounds=bounds).x
            h, _ = notears.acyclicity(weights_of(new))
            if h <= cyclic / 4:
                break
            penalty *= 10
        parts, cyclic = new, h
        multiplier += penalty * cyclic
        if cyclic <= ACYCLIC or penalty >= 1e16:
            break
    return weights_of(parts)
