"""Tests of what readers write themselves, for the exercises of the chapters.

Each takes the reader's function, and says what is wrong with it. They look at answers only, so the
order in which noise is drawn does not matter. A right version fails by chance with a probability
below 1e-7.
"""

import itertools
import math
import reprlib
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import networkx as nx
import numpy as np
from scipy import stats

from dpcgd import CPDAG, Budget, Dataset
from dpcgd.constraint.curate_pc import Surrogate, allocate, concentrated
from dpcgd.datasets.random_networks import SHAPES, random_network
from dpcgd.datasets.variable import PARTS
from dpcgd.moments.clipped_moments import clips, measure_moments
from dpcgd.moments.interactions import NoisyTable, paid
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.adjustment import standardised
from dpcgd.reading.association import association
from dpcgd.statistics.moment_matrices import second_moments, second_moments_sensitivity
from dpcgd_book.results.known_tables import Counts, blurred_marginals

__all__ = ["check_arrows", "check_interval", "check_look", "check_p_value", "check_parts"]
__all__ += ["check_moments", "check_plan", "check_reader", "check_round", "check_run"]
__all__ += ["check_table", "refuses", "same_as"]


def _plain(value):
    """Numbers as an array, and anything else as it is."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        return value


def _equal(given, wanted, close: float) -> bool:
    if not isinstance(wanted, np.ndarray):
        return not isinstance(given, np.ndarray) and given == wanted
    same = isinstance(given, np.ndarray) and given.shape == wanted.shape
    return same and np.allclose(given, wanted, close, close, equal_nan=True)


def same_as(right: Callable, *cases: tuple, close: float = 1e-9) -> Callable:
    """A test of a reader's version: with the arguments of each case it gives what ``right`` gives.

    Numbers may differ by ``close``, as a share of the right one or in all.
    """

    def check(mine: Callable) -> str:
        for case in cases:
            wanted, given = (_plain(version(*deepcopy(case))) for version in (right, mine))
            both = (v.round(10).tolist() if hasattr(v, "round") else v for v in (given, wanted))
            text = "for {} it gives {}, where {} is right".format(*map(reprlib.repr, (case, *both)))
            assert _equal(given, wanted, close), text
        return "right in every case"

    return check


def refuses(check: Callable, *wrong: Callable):
    """Fail if a test accepts a version that has a mistake."""
    for mistake in wrong:
        try:
            check(mistake)
        except AssertionError:
            continue
        raise AssertionError("the test accepts a version that has a mistake")


def _within(hits: int, runs: int, low: float, high: float, what: str):
    """Fail unless a chance between these gives so many hits, but for once in 1e9 times."""
    right = stats.binom.ppf(1e-9, runs, low) <= hits <= stats.binom.isf(1e-9, runs, high)
    wanted = " to ".join(dict.fromkeys((f"{low:.1%}", f"{high:.1%}")))
    assert right, f"{what} in {hits / runs:.1%} of the runs; {wanted} would be right"


def check_round(mine: Callable, runs: int = 10_000) -> str:
    """Chapter 4: one round of sieve and examination, against the exact chance of each answer."""
    z, moves, epsilon = np.array([-5.0, 2.5, 3.5, 1.0]), 0.7, 1.4
    rng = np.random.default_rng(4)
    answers = [mine(z, moves, epsilon, rng) for _ in range(runs)]
    below, threshold = (3 - np.abs(z)) / moves, np.linspace(-80, 80, 16_001)
    passes = stats.laplace.sf(threshold - below[:, None], scale=8 / epsilon)
    asked = np.cumprod([np.ones_like(threshold), *(1 - passes[:-1])], axis=0)
    density = stats.laplace.pdf(threshold, scale=4 / epsilon)
    fires = (asked * passes * density).sum(axis=1) * (threshold[1] - threshold[0])
    separated = fires * stats.laplace.cdf(below, scale=2 / epsilon)
    for answer, chance in [*enumerate(separated), (None, 1 - separated.sum())]:
        _within(answers.count(answer), runs, chance, chance, f"the answer was {answer}")
    return "right: every answer is as frequent as it should be"


def check_plan(mine: Callable) -> str:
    """Chapter 6: a plan's rules, and how its surrogate compares with the least that is known."""
    surrogate = Surrogate(160.0)
    orders = [28, 60], [60, 28], [190, 1200], [10, 20, 12], [28, 96, 96, 32]
    for total, tests in itertools.product((0.02, 0.002), orders):
        plan = np.array(mine(tests, total, surrogate.slope))
        spent = concentrated(np.array(tests), plan).sum()
        best = surrogate.value(allocate(tests, total, surrogate, concentrated))
        apart = surrogate.value(plan) / best - 1
        assert (np.diff(plan) <= 1e-9).all(), f"the plan for {tests} rises: {plan}"
        assert spent <= total * (1 + 1e-6), f"for {tests} it costs {spent / total:.2f} of the total"
        assert apart < 1e-4, f"for {tests} the surrogate is {apart:.2g} of the least above it"
    return "right: no plan rises, and no other is better"


def check_moments(mine: Callable, runs: int = 2000) -> str:
    """Chapter 7: noisy moments of shortened records, by their mean and their noise."""
    rng = np.random.default_rng(7)
    x, rho = rng.uniform(-1, 1, (50, 3)) * [0.4, 1.0, 1.0], 0.05
    for bound in (0.8, 0.3):
        noise = np.array([mine(x, bound, rho, rng) for _ in range(runs)])
        assert noise.shape == (runs, 4, 4), "a matrix of 4 by 4 is right for 3 variables"
        noise -= second_moments(x, bound=bound)
        noise /= second_moments_sensitivity(50, 3, bound=bound) / math.sqrt(2 * rho)
        assert np.allclose(noise, noise.swapaxes(1, 2)), "each number has noise once, on both sides"
        assert np.allclose(noise[:, 0, 0], 0), "the corner is always 1"
        own = noise[:, *np.triu_indices(4)][:, 1:]
        off = np.abs(own.mean(axis=0)).max() * math.sqrt(runs)
        assert off < 7, f"a mean moment is {off:.0f} standard errors off"
        spread = np.abs(np.cov(own.T) - np.eye(9)).max()
        assert spread < 0.25, f"the noise at a bound of {bound} has another width, or it is shared"
    return "right: the moments, and their noise"


def check_p_value(mine: Callable, tables: int = 40) -> str:
    """Chapter 11: the test that knows its noise, beside the package's."""
    rng, n = np.random.default_rng(11), 2500

    def p_values(model, sigma):
        table = rng.multinomial(n, model.ravel()).reshape(model.shape)
        noisy = blurred_marginals(table, sigma, rng)
        sums = (n * noisy.released[subset].values for subset in ((0,), (1,), (0, 1)))
        return mine(*sums, n, sigma), association(noisy, 0, 1).p_value

    for table in range(tables):
        model = np.outer(*(0.7 * np.eye(k)[0] + 0.3 * rng.dirichlet([3.0] * k) for k in (3, 4)))
        sigma = (0.0, 2.0, 10.0, 30.0)[table % 4]
        said, wanted = p_values(model, sigma)
        assert abs(said - wanted) < 0.05, f"with noise of {sigma:g} {wanted:.3f} became {said:.3f}"
    clear, _ = p_values(np.eye(3) / 3, 30.0)
    assert clear < 1e-6, f"two equal variables have a p-value of {clear:.2g}"
    return "right: its p-values are those of the theorem"


def check_look(mine: Callable, runs: int = 2000) -> str:
    """Chapter 16: the look at one number, without noise and by how noise spreads its shares."""
    rng = np.random.default_rng(16)
    column = np.sort(np.append(rng.binomial(PARTS - 1, 0.7, 3500), [77] * 500))

    def held(start, width):
        ends = np.searchsorted(column, [start, start + width])
        return (ends[1] - ends[0]) / len(column)

    starts, shares = map(np.array, zip(*sorted(mine(column, 0.0, rng).items()), strict=True))
    widths = np.diff(np.append(starts, PARTS))
    assert starts[0] == 0, "pieces begin with the first part of the range"
    assert np.allclose(shares, held(starts, widths)), "without noise shares are exact"
    assert (shares[widths > 1] <= 0.03).all(), "a piece above 3 % is halved, down to one part"
    parents = held(starts // (2 * widths) * (2 * widths), 2 * widths)
    assert (parents > 0.03).all(), "a piece of 3 % or less stays whole"
    assert len(mine(column, 1e6, rng)) > 1, "the whole range is always halved"
    column = np.append(np.arange(400) * 40, PARTS // 2 + np.arange(600) * 27)
    looks = [sorted(mine(column, 100.0, rng).items()) for _ in range(runs)]
    assert all(share >= 0 for look in looks for _, share in look), "no share is below 0"
    halved = sum(look[1][0] < PARTS // 2 for look in looks)
    _within(halved, runs, 0.5, 0.5, "a half as large as four deviations was halved")
    looks = [mine(np.arange(PARTS // 4) * 4, 100.0, rng).items() for _ in range(runs)]
    ends = PARTS >> np.arange(5)
    below = np.array([[sum(v for k, v in look if k < end) for end in ends] for look in looks])
    noise = (below[:, 1:] - below[:, :-1] / 2) * PARTS / 4 / (100 / math.sqrt(2))
    spread = np.abs(np.cov(noise.T) - np.eye(4)).max()
    assert spread < 0.25, "the noise of a halving has another width, or two halvings share it"
    return "right: pieces, shares and their noise"


def check_interval(mine: Callable, tables: int = 12) -> str:
    """Chapter 19: an effect with its 90 % interval, beside the package's."""
    rng, n, reach = np.random.default_rng(19), 20_000, stats.norm.ppf(0.95)
    for table in range(tables):
        z, x = rng.dirichlet([5.0] * 3), rng.uniform(0.2, 0.8, 3)
        low, more = rng.uniform(0.1, 0.3, 3), rng.permutation([0.6, 0.2, -0.05])
        y, scale = np.stack([low, low + more], 1), (0.0, 15.0, 30.0)[table % 3]
        cells = (z[:, None] * np.stack([1 - x, x], 1))[:, :, None] * np.stack([1 - y, y], 2)
        counts = rng.multinomial(n, cells.ravel()).reshape(cells.shape)
        noisy = counts + scale * rng.laplace(size=cells.shape)
        right = standardised(NoisyTable(n, noisy, scale), [1, 0], 2, (0, 1), 1)
        assert right is not None, "all strata hold records"
        middle, *ends = mine(noisy, scale)
        assert math.isclose(middle, right.difference, abs_tol=1e-3), "the effect is another one"
        for way, end in zip((-1, 1), ends, strict=True):
            ratio = way * (end - middle) / (reach * right.deviation)
            assert abs(ratio - 1) < 0.06, f"an end is {ratio:.2f} times as far away as it should be"
    return "right: the effect, and both ends of its interval"


def check_table(mine: Callable) -> str:
    """Chapter 20: tables from rows of bits, against counts of the records, each in turn."""
    rng = np.random.default_rng(20)
    for levels, n in itertools.product([(3,), (2, 5), (4, 3, 2)], [1, 64, 1003]):
        codes, table = rng.integers(0, levels, (n, len(levels))), np.zeros(levels, int)
        digits = [(v, range((k - 1).bit_length())) for v, k in enumerate(levels)]
        rows = [[np.packbits(codes[:, v] >> j & 1) for j in places] for v, places in digits]
        np.add.at(table, tuple(codes.T), 1)
        assert np.array_equal(mine(rows, levels, n), table), f"wrong for {n} records of {levels}"
    return "right for all tables"


def check_parts(mine: Callable) -> str:
    """Chapter 20: two parts as one, against all records in one place."""
    tables = np.random.default_rng(21).integers(0, 100, (2, 2, 3, 4))
    both, whole = mine(*map(Counts, tables)), Counts(tables.sum(axis=0))
    assert both.n == whole.n, f"{both.n} records in place of {whole.n}"
    assert both.levels == whole.levels, "its levels are those of the parts"
    for subset in itertools.permutations(range(3), 2):
        assert np.array_equal(both.counts(subset), whole.counts(subset)), f"counts of {subset}"
    return "right for all tables"


@cache
def _simulated_releases(stream: int, count: int = 45) -> list:
    """Releases of small tables and which pairs are joined; in every third table none are."""
    examples = []
    for k in range(count):
        rng = np.random.default_rng([12, stream, k])
        network = random_network(SHAPES[k % len(SHAPES)], "mixed", int(rng.integers(6, 13)), rng)
        data = network.sample(20_000, rng=rng)
        arcs = nx.to_numpy_array(data.truth, data.variables, weight=None) > 0
        if k % 3 == 2:
            codes, arcs = [rng.permutation(own) for own in data.codes.T], np.zeros_like(arcs)
            data = Dataset(np.column_stack(codes), data.levels)
        account = GaussianFilter(Budget(float(rng.choice([0.1, 0.3, 1.0])), 1e-6))
        measure, clipped = paid(account, SeededNoise(rng)), clips(data, account.rho)
        released = measure_moments(data, measure, account.rho, clipped=clipped)
        examples.append((released, (arcs | arcs.T)[np.triu_indices(data.d, 1)]))
    return examples


def check_reader(mine: Callable) -> str:
    """Chapter 12: an edge model, by its log loss, by its calibration, and where nothing is."""
    others = _simulated_releases(1)
    said = mine(_simulated_releases(0), [released for released, _ in others])
    p, true = np.concatenate(said), np.concatenate([joined for _, joined in others])
    assert p.shape == true.shape, f"{len(p)} probabilities of {len(true)} pairs"
    loss = -np.log(np.where(true, p, 1 - p).clip(1e-6)).mean()
    assert loss < 0.24, f"the log loss is {loss:.3f}; conditioning on others brings it to 0.21"
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.0)):
        here = (low <= p) & (p <= high)
        off = p[here].mean() - true[here].mean()
        assert abs(off) < 0.1, f"between {low} and {high} probabilities are off by {off:+.2f}"
    empty = [own for own, (_, joined) in zip(said, others, strict=True) if not joined.any()]
    claims = np.mean(np.concatenate(empty) > 0.5)
    assert claims < 0.02, f"where nothing is, {claims:.1%} of the pairs are likelier edges than not"
    return "right: its probabilities are good, mean what they say, and claim nothing from nothing"


def _collider_odds(graph: nx.DiGraph, joined: np.ndarray, r: np.ndarray, v: np.ndarray) -> float:
    """Summed votes for the colliders of a graph whose ends are not joined."""
    meets = [(c, *ends) for c in graph for ends in itertools.combinations(graph.pred[c], 2)]
    c, x, y = np.array([meet for meet in meets if not joined[meet[1:]]], int).reshape(-1, 3).T
    return float((((r[x, y] - r[x, c] * r[c, y]) ** 2 - r[x, y] ** 2) / (2 * v[x, y])).sum())


def check_arrows(mine: Callable, cases: int = 6) -> str:
    """Chapter 13: how sure arrows are, by the weights of all graphs of a small skeleton."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)]
    joined = nx.to_numpy_array(nx.Graph(edges)) > 0
    ways = itertools.product((1, -1), repeat=len(edges))
    every = [nx.DiGraph([e[::w] for e, w in zip(edges, way, strict=True)]) for way in ways]
    graphs = [graph for graph in every if nx.is_directed_acyclic_graph(graph)]
    for case in range(cases):
        rng = np.random.default_rng([13, case])
        times: Counter = Counter()
        drawn = rng.uniform(-0.6, 0.6, (5, 5)), 10 ** rng.uniform(-2.3, -0.5, (5, 5))
        r, v = (np.triu(own) + np.triu(own, 1).T for own in drawn)
        weights = np.exp([_collider_odds(graph, joined, r, v) for graph in graphs])
        for graph, share in zip(graphs, weights / weights.sum(), strict=True):
            times.update(dict.fromkeys(CPDAG.from_dag(graph).arrows, share))
        answer = mine(r, v, joined)
        for arrow in {*times, *answer}:
            said, right = answer.get(arrow, 0.0), times[arrow]
            assert abs(said - right) < 0.1, f"{arrow} has {said:.2f} in place of {right:.2f}"
    return "right: every arrow is as sure as it should be"


class _Script:
    """P-values that are made up: each is the same until its pair is released again."""

    def __init__(self, case: int, d: int):
        rng = np.random.default_rng([14, case])
        shape = (d, d, d + 1, 4)  # a pair, what is given or nothing, and how often released
        joined = rng.choice([1e-9, 0.0009, 0.0011, 0.009], shape, p=[0.7, 0.1, 0.1, 0.1])
        parted = rng.choice([0.011, 0.09, 0.11, 0.5], (d, d, 1, 4))
        self.values = np.where(rng.random(shape) < 0.15, parted, joined)
        self.times = dict.fromkeys(itertools.combinations(range(d), 2), -1)
        self.prices: list[tuple[set, float]] = []

    def measure(self, pairs, rho: float):
        looked = {(min(pair), max(pair)) for pair in pairs}
        self.prices += [(looked, rho)] if looked else []
        self.times.update({pair: self.times[pair] + 1 for pair in looked})

    def p_value(self, x: int, y: int, given=()) -> float:
        x, y = sorted((x, y))
        assert self.times[x, y] >= 0, f"{x} and {y} were tested before they were released"
        return float(self.values[x, y, [*given, -1][0], self.times[x, y]])

    def searched(self) -> tuple[set, set]:
        """What stays joined at orders 0 and 1, and what is in doubt."""
        largest = {pair: self.p_value(*pair) for pair in self.times}
        left = {pair for pair, p in largest.items() if p <= 0.01}
        for x, y in left:
            near = {v for pair in left if {x, y} & {*pair} for v in pair} - {x, y}
            largest[x, y] = max(self.p_value(x, y, given) for given in [(), *((z,) for z in near)])
        doubt = {pair for pair, p in largest.items() if 0.001 < p < 0.1}
        return {pair for pair in left if largest[pair] <= 0.01}, doubt

    def run(self, rho: float) -> set:
        self.measure(self.times, 0.6 * rho)
        left = 0.4 * rho
        for share in (0.4, 0.8):
            self.measure(self.searched()[1], share * left)
            left -= share * left
        return self.searched()[0]


def check_run(mine: Callable, cases: int = 200) -> str:
    """Chapter 14: PC on released pairs with two looks, at p-values that are made up."""
    for case in range(cases):
        wanted, script = _Script(case, 5), _Script(case, 5)
        right = wanted.run(2.0)
        left = {(min(p), max(p)) for p in mine(5, script.p_value, script.measure, 2.0)}
        nothing: tuple[set, float] = (set(), 0.0)
        steps = itertools.zip_longest(script.prices, wanted.prices, fillvalue=nothing)
        for place, ((pairs, rho), (others, price)) in enumerate(steps):
            assert pairs == others, f"release {place} was of {pairs} in place of {others}"
            assert math.isclose(rho, price), f"release {place} cost {rho:.3f} of 2, not {price:.3f}"
        assert left == right, f"{left} stayed joined in place of {right}"
    return "right: what is released, for how much, and what stays joined"
