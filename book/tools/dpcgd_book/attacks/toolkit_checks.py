"""Exact losses by enumeration and integration, and checks of chapters 02 and 25 against them."""

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from functools import partial
from itertools import combinations_with_replacement, count, permutations, product
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy import integrate, stats

from dpcgd.privacy import budget, conversions, filters, mechanisms, noise
from dpcgd.statistics.categorical_statistics import GTest
from dpcgd.statistics.rank_statistics import KendallZ

__all__ = ["adaptive_delta", "check_amplification", "check_conversion", "check_distance"]
__all__ += ["check_flip", "check_grid", "check_selection_order", "delta_at_the_reading"]
__all__ += ["divergence", "flip_law", "gaussian_delta", "loss_before_hit", "most_moved"]
__all__ += ["p_value_of_draws", "paid_answers", "pattern_loss", "plain_answers"]
__all__ += ["released_value_loss", "rounding", "same_draws", "worst_loss"]


def integral(f: Callable, low: float, high: float, points: Sequence[float] | None = None) -> float:
    """An integral to a relative error of 1e-9, however small it is."""
    return integrate.quad(f, low, high, points=points, limit=400, epsabs=0, epsrel=1e-9)[0]


def most_moved(query: Callable, norm: int) -> list[float]:
    """Largest move of a query when one of three records is removed, and when it is replaced.

    Examples
    --------
    >>> most_moved(lambda data: np.array([len(data)]), 1)
    [1.0, 0.0]
    """
    data = [*product(range(3), repeat=3)]
    removed = [query(records) - query(records[1:]) for records in data]
    others = product(data, range(3))
    replaced = [query(records) - query((new, *records[1:])) for records, new in others]
    return [float(np.linalg.norm(moved, norm, axis=1).max()) for moved in (removed, replaced)]


def divergence(p: Any, q: Any, order: float) -> float:
    """Rényi divergence of two noises of scipy around 0 and 1, by integration."""

    def weight(t):
        return math.exp(order * p.logpdf(t) - (order - 1) * q.logpdf(t))

    return math.log(integral(weight, -60, 60, [0, 1])) / (order - 1)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """The delta of Gaussian noise at an epsilon by the formula, which integration checks."""
    p, q, phi = stats.norm(1, sigma), stats.norm(0, sigma), stats.norm.cdf
    cut, half, shift = 0.5 + epsilon * sigma**2, 1 / (2 * sigma), epsilon * sigma
    above = integral(lambda t: p.pdf(t) - math.exp(epsilon) * q.pdf(t), cut, 40)
    formula = phi(half - shift) - math.exp(epsilon) * phi(-half - shift)
    assert math.isclose(above, formula, rel_tol=1e-6), "by integration"
    return formula


def worst_loss(choose: Callable, cases: Iterable[np.ndarray], epsilon: float) -> np.ndarray:
    """Largest size and largest range of a choice's exact loss, over moves of each score by 1.

    Parameters
    ----------
    choose : callable
        From scores, times epsilon / 2, to probabilities.
    cases : iterable of array
        Scores.
    epsilon : float
    """
    worst = np.zeros(2)
    for scores in cases:
        steps = np.array([*product((-1, 0, 1), repeat=len(scores))])
        there = [choose(epsilon * (scores + step) / 2) for step in steps]
        losses = np.log(choose(epsilon * scores / 2)) - np.log(there)
        worst = np.maximum(worst, [np.abs(losses).max(), np.ptp(losses, axis=1).max()])
    return worst


def flip_law(scores: np.ndarray) -> np.ndarray:
    """Of permute-and-flip: in a random order, a coin for each candidate until one shows heads."""
    orders = np.array([*permutations(range(len(scores)))])
    yes = np.exp(scores - scores.max())[orders]
    still = np.cumprod(np.insert(1 - yes[:, :-1], 0, 1.0, axis=1), axis=1)  # none taken before
    return np.bincount(orders.ravel(), (yes * still).ravel()) / len(orders)


def check_flip(choose: Callable, scores: np.ndarray) -> None:
    """The probabilities of permute-and-flip are those over all orders of the candidates."""
    assert np.allclose(choose(scores), flip_law(scores)), "exact"
    assert np.isclose(choose(scores).sum(), 1.0), "probabilities"


def p_value_of_draws(draw: Callable[[], int], law: np.ndarray, draws: int = 20_000) -> float:
    """How likely draws are at least so far from their probabilities."""
    seen = np.bincount([draw() for _ in range(draws)], minlength=len(law))
    return stats.chisquare(seen, draws * law).pvalue


def check_selection_order(exponential: Callable, flip: Callable, rng: np.random.Generator) -> None:
    """Flips do at least as well as the exponential mechanism; at half the noise it does better."""
    for _ in range(500):
        width, size = rng.choice([0.1, 1, 4]), rng.integers(2, 9)
        x = np.sort(rng.normal(scale=width, size=size))
        laws = exponential(x), flip(x), exponential(2 * x)
        at_most = np.cumsum(laws, axis=1)[:, :-1]  # mass of the lower scores
        assert (np.diff(at_most, axis=0) <= 1e-10).all(), "exact probabilities"


def loss_before_hit(k: int, epsilon: float) -> float:
    """Exact loss of the answer 'query k is the first above', over both directions."""
    noise, threshold = (stats.laplace(scale=scale / epsilon) for scale in (4, 2))
    bends = sorted({-1.0, 0.0, 1.0, 5 / epsilon})

    def given(t, others, last):
        """That the last query is the first above a threshold, with k others before it."""
        return threshold.pdf(t) * noise.cdf(t - others) ** k * noise.sf(t - last)

    cases = (partial(given, others=a, last=b) for a, b in ((0.0, 0.0), (-1.0, 1.0), (1.0, -1.0)))
    logs = np.log([integral(case, -80 / epsilon, 120 / epsilon, bends) for case in cases])
    return float(np.abs(logs[0] - logs[1:]).max())


def _loss_between(given, *ends) -> float:
    """From an answer's probability, given a threshold and a record's move."""
    there = [integral(partial(given, moved=moved), *ends) for moved in (0, 1)]
    return math.log(there[0] / there[1])


def pattern_loss(hits: int, threshold_scale: float, query_scale: float) -> float:
    """Exact loss of hits and as many misses behind one threshold, each moved by 1."""
    threshold, noise = stats.laplace(0, threshold_scale), stats.laplace(0, query_scale)

    def given(t, moved):
        return threshold.pdf(t) * (noise.sf(t + moved) * noise.cdf(t - moved)) ** hits

    return _loss_between(given, -60, 60, [-1, 0, 1])


def released_value_loss(misses: int) -> float:
    """Exact loss of an above-threshold that publishes the compared value, 0."""
    threshold, noise = stats.laplace(0, 2), stats.laplace(0, 4)

    def given(t, moved):
        return threshold.pdf(t) * noise.cdf(t - moved) ** misses

    return _loss_between(given, -60, 0)


def check_amplification(probability_of_yes: Callable, data: list, neighbour: list) -> None:
    """What sub-sampling promises is what is lost, over all samples; and its inverse."""
    for m, inner in product((1, 2, 5), (0.1, 1.0, 3.0)):
        odds = [probability_of_yes(records, m, inner) for records in (data, neighbour)]
        promised = mechanisms.amplified(inner, rate=m / 6)
        assert math.isclose(math.log(odds[0] / odds[1]), promised), "enumerated"
        assert math.isclose(mechanisms.before_amplification(promised, m / 6), inner), "the inverse"


def check_distance(distance: Callable, size: int, top: int, proposed: int) -> int:
    """A formula for the median's distance to instability is right on all data; how many those are.

    Parameters
    ----------
    distance : callable
        Called as ``distance(data, top, proposed)``.
    size, top : int
        Records, and the largest value of one.
    proposed : int
        How far one record may move the median.
    """
    new, mid = [*product(range(size), range(top + 1))], size // 2
    every = combinations_with_replacement(range(top + 1), size)
    near = {d: {tuple(sorted((*d[:i], *d[i + 1 :], v))) for i, v in new} for d in every}
    # one record can move the median of these too far; the others are so many steps away
    edge = {d for d in near if max(abs(d[mid] - e[mid]) for e in near[d]) > proposed}
    graph = nx.from_dict_of_lists(near)
    steps = nx.multi_source_dijkstra_path_length(graph, edge) if edge else {}
    walked = {d: steps.get(d, math.inf) for d in near}
    assert {d: distance(d, top, proposed) for d in near} == walked, "exhaustive"
    moved = [abs(steps[d] - steps[e]) for d in steps for e in near[d]]
    assert max(moved, default=0) <= 1, "exhaustive: it has sensitivity 1"
    return len(near)


def paid_answers(account: Any, event: Any) -> int:
    """How many of an event an account of the package lets pass."""
    with contextlib.suppress(budget.BudgetSpent):
        while True:
            account.spend(event)
    return len(account.ledger.events)


def plain_answers(account: Any, price: float) -> int:
    """How many answers at a price an account of the chapter affords."""
    return next(i for i in count() if not account.affords(price))


def check_conversion(delta: float) -> None:
    """A search over a fine grid of orders comes to the package's conversion."""
    order = 1 + np.logspace(-3, 5, 400_001)
    free = np.log1p(-1 / order) - np.log(order * delta) / (order - 1)
    for rho in (0.001, 0.02, 0.5, 4.0):
        ours, theirs = float((order * rho + free).min()), conversions.epsilon_of_rho(rho, delta)
        assert math.isclose(ours, theirs, rel_tol=1e-6), "the package's"
        simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert ours < simple, "tighter than the simple one"
        one_gaussian = conversions.gaussian_delta(1 / math.sqrt(2 * rho), theirs)
        assert one_gaussian <= delta, "a mechanism of that cost keeps the promise"


def adaptive_delta(part: Callable[[float], float], most: float, epsilon: float) -> float:
    """Exact delta if `part` of the rest is spent after a first Gaussian answer.

    Parameters
    ----------
    part : callable
        From the first answer to a share of what is left.
    most : float
        One over the noise multiplier that the whole filter allows.
    epsilon : float
    """
    first, rest = 0.6 * most, 0.8 * most  # squares: most^2

    def given(y):
        left, moved = epsilon - first * y + first**2 / 2, rest * part(y)
        gained = max(0.0, -math.expm1(left))  # if nothing more is asked
        if moved:
            gained = conversions.gaussian_delta(1 / moved, left)
        return stats.norm.pdf(y, first) * gained

    return integral(given, -10, 20, points=[1.0, epsilon / first + first / 2])


def delta_at_the_reading(readings: Sequence[float], step: float, *, free: bool) -> float:
    """Exact delta of a run of randomised responses that is stopped freely, or after the last one.

    Parameters
    ----------
    readings : sequence of float
        Epsilon that is read after 1, 2, ... answers.
    step : float
        Epsilon of each answer.
    free : bool
        Whether the adversary stops when he likes.
    """
    right = 1 / (1 + math.exp(-step))

    def stopped(k):
        loss = step * (2 * np.arange(k + 1) - k)
        return -np.expm1(np.minimum(readings[k - 1] - loss, 0))

    worth = stopped(len(readings))
    for k in range(len(readings) - 1, 0, -1):
        later = right * worth[1:] + (1 - right) * worth[:-1]
        worth = np.maximum(stopped(k), later) if free else later
    return float(right * worth[1] + (1 - right) * worth[0])


def check_grid(mechanism: Callable, epsilon: float, grid: float) -> None:
    """Laplace noise on a grid stays there, and its law for the answers 0 and 1 is private.

    Parameters
    ----------
    mechanism : callable
        From an answer to its release.
    epsilon, grid : float
    """
    on_grid = np.array([mechanism(answer) for answer in [0.0, 1.0] * 5_000]) / grid
    assert (on_grid == np.round(on_grid)).all(), "on the grid"
    steps = math.floor(1 / grid) + 1
    z = np.arange(-round(20 * steps / epsilon), round(20 * steps / epsilon) + 1)
    log_ratio = (np.abs(z - round(1 / grid)) - np.abs(z)) * epsilon / steps
    mass = np.exp(-np.abs(z) * epsilon / steps).sum() * math.tanh(epsilon / steps / 2)
    assert np.abs(log_ratio).max() <= epsilon * (1 + 1e-9), "thm-grid"
    assert math.isclose(mass, 1, rel_tol=1e-6), "a probability"


def same_draws(plain: Callable, package: Callable, data: Any, seed: int, **settings: Any) -> int:
    """With how many of 200 seeds the chapter's mechanism and the package's answer the same."""
    same = 0
    for stream in range(200):
        ours, theirs = (np.random.default_rng([seed, stream]) for _ in range(2))
        theirs = package(data, account=filters.NoPrivacy(), noise=noise.SeededNoise(theirs))
        same += plain(data, **settings, rng=ours) == theirs
    return same


def _exact_z(table) -> Decimal:
    """Kendall's z of a table with two levels each."""
    a, b, c, d = (Decimal(int(k)) for k in table.flat)
    n, over = a + b + c + d, a * d - b * c
    return 9 * over / (2 * n + 5) / (9 * n * (n - 1) / (4 * n + 10)).sqrt()


def _exact_g(table) -> Decimal:
    def total(counts):
        seen = [Decimal(int(k)) for k in np.ravel(counts) if k]
        return sum((k * k.ln() for k in seen), Decimal(0))

    margins = total(table.sum(axis=0)) + total(table.sum(axis=1))
    return 2 * (total(table) - margins + total(table.sum()))


def rounding(sizes: Iterable[int], rng: np.random.Generator) -> pd.DataFrame:
    """Largest rounding error of z and G among fifty tables, as a share of the sensitivity.

    Parameters
    ----------
    sizes : iterable of int
        Records in the tables; each makes a row.
    rng : numpy.random.Generator
    """
    both = {"Kendall z": (KendallZ(), _exact_z), "G": (GTest(), _exact_g)}
    rows = {name: [_rounding(*pair, n, rng) for n in sizes] for name, pair in both.items()}
    return pd.DataFrame(rows, [f"n = {n:,}" for n in sizes])


def _rounding(statistic, exact, n, rng) -> float:
    tables = rng.multinomial(n, rng.dirichlet([0.5] * 4, size=50)).reshape(-1, 2, 2)
    zero = statistic.value(np.ones((2, 2), int))  # less its critical value
    with localcontext(prec=50):
        errors = [abs(Decimal(statistic.value(t) - zero) - abs(exact(t))) for t in tables]
    return float(max(errors)) / statistic.sensitivity(n, (2, 2))
