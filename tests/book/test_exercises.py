"""What tests a reader's own version accepts right versions, and refuses planted mistakes."""

import ast
import functools
import itertools
import math
from types import SimpleNamespace
from unittest import mock

import chapters
import nbformat
import numpy as np
import pytest
from dpcgd_book.attacks import exercises
from dpcgd_book.results.known_tables import Counts
from scipy import stats

import dpcgd
from dpcgd.constraint.curate_pc import Surrogate, allocate, concentrated
from dpcgd.datasets.bit_columns import pack
from dpcgd.moments.interactions import MeasuredMarginals, NoisyTable
from dpcgd.moments.scores import measure_singles
from dpcgd.privacy.mechanisms import AboveThreshold, laplace
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading import orientation
from dpcgd.reading.adjustment import standardised
from dpcgd.reading.association import association
from dpcgd.reading.reader import edge_probabilities
from dpcgd.statistics.moment_matrices import second_moments, second_moments_sensitivity
from dpcgd.tables.table_pc import ALPHA, TableOracle, search_again


def names_of(node):
    """What a statement of a chapter defines: modules, functions, classes and constants."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        targets = [n.id for target in node.targets for n in ast.walk(target) if hasattr(n, "id")]
        return targets if all(map(str.isupper, targets)) else []
    return [getattr(node, "name", None)]


def solution(chapter, name):
    """A function of a chapter, with what it needs of the page; nothing else is run."""
    (path,) = chapters.chapters(chapter)
    cells = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    nodes = [node for cell in cells for node in ast.parse(cell).body]
    defined = {own: node for node in nodes for own in names_of(node)}
    wanted, body, page = [name], [], {}
    while wanted:
        node = defined.pop(wanted.pop(), None)
        if node is not None and node not in body:
            body.insert(0, node)
            wanted += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    exec(compile(ast.Module(body, []), path.name, "exec"), page)
    return page[name]


# --- the package's versions


UNLIMITED = SimpleNamespace(spend=lambda *events: None)


def packaged_round(z, moves, epsilon, rng):
    paid = {"epsilon": epsilon / 2, "account": UNLIMITED, "noise": SeededNoise(rng)}
    sieve = AboveThreshold(0.0, sensitivity=1.0, **paid)
    for k, below in enumerate((3 - np.abs(z)) / moves):
        if sieve.above(lambda below=below: below):
            return k if laplace(lambda below=below: below, sensitivity=1.0, **paid) >= 0 else None
    return None


def packaged_plan(tests, total, slope):
    return allocate(tests, total, Surrogate(slope), concentrated)


def packaged_moments(x, bound, rho, rng):
    deviation = second_moments_sensitivity(*x.shape, bound=bound) / math.sqrt(2 * rho)
    upper = np.triu(rng.normal(scale=deviation, size=(4, 4)))
    upper[0, 0] = 0
    return second_moments(x, bound=bound) + upper + np.triu(upper, 1).T


def packaged_p_value(x, y, both, n, sigma):
    table = np.zeros(np.add(both.shape, 1), int)
    table.flat[0] = n
    sums = np.concatenate([x, y, both.ravel()])
    marginals = MeasuredMarginals(Counts(table), lambda query, **price: (sums, sigma))
    marginals.measure_pairs(1.0)
    return association(marginals, 0, 1).p_value


def packaged_look(column, sigma, rng):
    twice = np.column_stack([column, column]) + 0.5
    data = dpcgd.Dataset.of_numbers(twice, dict.fromkeys("xy", (0, exercises.PARTS)))

    def measure(query, **price):
        answer = query()
        return answer + sigma * rng.normal(size=len(answer)), sigma

    look = measure_singles(data, measure, 1.0)[0].numbers[0]
    return dict(zip(look.starts.tolist(), look.shares.tolist(), strict=True))


def packaged_interval(counts, scale):
    table = NoisyTable(round(counts.sum()), counts, scale)
    means, sampling, noise = standardised(table, [1, 0], 2, (0, 1), 1)
    reach = stats.norm.ppf(0.95) * math.sqrt([-1, 1] @ (sampling + noise) @ [-1, 1])
    effect = means[1] - means[0]
    return effect, effect - reach, effect + reach


class Asked(TableOracle):
    """The package's search and looks, with the exercise's tests and releases."""

    def __init__(self, p_value, measure):
        self.p_value, self.measure_again = p_value, measure
        self.alpha, self.largest = ALPHA, {}

    def begin_order(self, *asked):
        """Works nothing out ahead."""

    def unconfirmed(self, joined):
        return np.zeros_like(joined)

    def separates(self, x, y, given):
        p = self.p_value(x, y, given)
        self.largest[x, y] = max(p, self.largest.get((x, y), 0.0))
        return p > self.alpha


def packaged_run(d, p_value, measure, rho):
    measure([*itertools.combinations(range(d), 2)], 0.6 * rho)
    prices = iter([0.4 * 0.4 * rho, 0.8 * 0.6 * 0.4 * rho])
    account = SimpleNamespace(share=lambda part: next(prices))
    found = search_again(Asked(p_value, measure), account, [str(v) for v in range(d)], max_order=1)
    return [tuple(map(int, pair)) for pair in found.graph.skeleton]


def packaged_table(rows, levels, n):
    bits = [np.array([np.unpackbits(row, count=n) for row in own]) for own in rows]
    codes = [(own.T @ 2 ** np.arange(len(own))).astype(np.uint8) for own in bits]
    (table,) = pack([codes], levels, n, most_bytes=0).counts_many([[*range(len(levels))]])
    return table


def packaged_parts(one, other):
    return Counts(np.add(one.table, other.table))


def packaged_reader(examples, releases):
    return [own[np.triu_indices(len(own), 1)] for own in map(edge_probabilities, releases)]


def packaged_arrows(r, v, joined):
    released = SimpleNamespace(correlations=r, variances=v, rows=[[k] for k in range(len(r))])
    triples, nothing = orientation.open_triples(joined), np.zeros_like(joined)
    odds = {t: math.sinh(orientation._likelihood(released, *t)) for t in triples}
    with mock.patch.object(orientation, "DRAWS", 2000):
        graphs = orientation.drawn_graphs(joined, nothing, orientation.by_colliders(odds))
    arcs = orientation.completed(graphs, joined, nothing)
    return dict(np.ndenumerate((arcs & ~arcs.swapaxes(1, 2)).mean(axis=0)))


# --- mistakes: what a reader's version does with its arguments, given the right one


def threshold_for_each_test(right, z, *rest):
    answers = [right(z[k : k + 1], *rest) for k in range(len(z))]
    return answers.index(0) if 0 in answers else None


def asked_on(right, *asked):
    first = right(*asked)
    return right(*asked) if first is None else first


def look_with(**changed):
    """Another constant or function on the page."""

    def wrong(right, *asked):
        right.__globals__.update(changed)
        return right(*asked)

    return wrong


class OrderOfAxesLost(Counts):
    def counts(self, variables):
        return super().counts(sorted(variables))


ROUNDS = {
    "half the noise": lambda right, z, moves, *rest: right(z, moves / 2, *rest),
    "dependence in one direction": lambda right, z, *rest: right(np.maximum(z, 0), *rest),
    "a wrong threshold": lambda right, z, *rest: right(z * 3 / 2, *rest),
    "a threshold for each test": threshold_for_each_test,
    "asked on after a refusal": asked_on,
}
PLANS = {
    "twice the total": lambda right, tests, total, slope: right(tests, 2 * total, slope),
    "half the total": lambda right, tests, total, slope: right(tests, total / 2, slope),
    "orders, not tests": lambda right, tests, *rest: right([np.mean(tests)] * len(tests), *rest),
    "a plan that rises": lambda right, tests, *rest: right(tests[::-1], *rest)[::-1],
}
MOMENTS = {
    "half the noise": lambda right, x, bound, rho, rng: right(x, bound, 4 * rho, rng),
    "records not shortened": lambda right, x, bound, *rest: right(x, 9.0, *rest),
    "all shortened alike": lambda right, x, *rest: right(x / 1.8, *rest),
    "noise in the corner": lambda right, *asked: right(*asked) + asked[-1].normal(),
}
P_VALUES = {
    "half the noise": lambda right, *sums: right(*sums[:4], sums[4] / 2),
    "no noise": lambda right, *sums: right(*sums[:4], 0.0),
    "no sampling": lambda right, *sums: right(*(1e6 * own for own in sums)),
    "margins left out": lambda right, x, y, *rest: right(0 * x, 0 * y, *rest),
}
LOOKS = {
    "half the noise": lambda right, column, sigma, rng: right(column, sigma / 2, rng),
    "noise left out of the rule": look_with(CLEAR=0.0),
    "halved too seldom": look_with(FINE=0.1),
    "the right half not used": look_with(
        split=lambda all_, left, _, n: (left / n, all_ - left / n)
    ),
}
INTERVALS = {
    "half the noise": lambda right, counts, scale: right(counts, scale / 2),
    "a wrong variance": lambda right, counts, scale: right(counts, scale / math.sqrt(2)),
    "no sampling": lambda right, counts, scale: right(1e6 * counts, 1e6 * scale),
    "no adjustment": lambda right, counts, scale: right(counts.sum(0, keepdims=True), scale),
}
RUNS = {
    "half the noise": lambda right, d, test, measure, rho: right(
        d, test, lambda pairs, price: measure(pairs, 4 * price), rho
    ),
    "all pairs looked at again": lambda right, d, test, measure, rho: right(
        d, test, lambda _, price: measure([*itertools.combinations(range(d), 2)], price), rho
    ),
    "another level": lambda right, d, test, *rest: right(d, lambda *asked: 3 * test(*asked), *rest),
    "order 1 left out": lambda right, d, test, *rest: right(d, lambda x, y, _: test(x, y), *rest),
    "old answers kept": lambda right, d, test, *rest: right(d, functools.cache(test), *rest),
}
TABLES = {
    "bits behind the last": lambda right, rows, k, n: right(rows, k, 8 * len(rows[0][0])),
    "the last one left out": lambda right, rows, k, n: right(rows, k, n - 1),
    "digits in reverse": lambda right, rows, *rest: right([own[::-1] for own in rows], *rest),
}
SUMS_OF_PARTS = {
    "records of the first": lambda right, one, other: right(one, Counts(0 * other.table)),
    "the first part twice": lambda right, one, other: right(one, one),
    "the order of axes lost": lambda right, *own: right(*(OrderOfAxesLost(p.table) for p in own)),
}


def association_alone(right, *asked):
    page = right.__globals__
    features = page["features"]
    page["features"] = lambda blocks: features(blocks)[["association"]]
    return right(*asked)


READERS = {
    "only the association": association_alone,
    "labels in another order": lambda right, examples, releases: right(
        [(released, joined[::-1]) for released, joined in examples], releases
    ),
    "odds four times too large": lambda right, *asked: [4 * p / (1 + 3 * p) for p in right(*asked)],
    "edges even where nothing is": lambda right, examples, releases: right(
        [example for example in examples if example[1].any()], releases
    ),
}


def all_triples(joined):
    every = itertools.permutations(range(len(joined)), 3)
    return [(x, c, y) for x, c, y in every if x < y and joined[x, c] and joined[c, y]]


def each_alone(right, r, v, joined):
    """No graphs: an arrow is as sure as the surest collider that has it."""
    page, odds = right.__globals__, {}
    page["arrow_shares"] = lambda joined, own, number: odds.update(own) or {}
    right(r, v, joined)
    ends = [((end, c), value) for (x, c, y), value in odds.items() for end in (x, y)]
    return {arrow: stats.logistic.cdf(value) for arrow, value in sorted(ends, key=lambda e: e[1])}


ARROWS = {
    "half the noise": lambda right, r, v, joined: right(r, v / 4, joined),
    "a collider for a chain": lambda right, r, v, joined: right(r, -v, joined),
    "triples whose ends are joined": look_with(open_triples=all_triples),
    "arrows of the graph, not its class": look_with(class_arcs=lambda arcs: arcs),
    "no graphs drawn": each_alone,
}
EXERCISES = {
    "round": ("04", "one_round", packaged_round, ROUNDS),
    "plan": ("06", "falling_plan", packaged_plan, PLANS),
    "moments": ("07", "clipped_moments", packaged_moments, MOMENTS),
    "p_value": ("11", "p_value", packaged_p_value, P_VALUES),
    "reader": ("12", "read", packaged_reader, READERS),
    "arrows": ("13", "own_arrows", packaged_arrows, ARROWS),
    "look": ("16", "look_at", packaged_look, LOOKS),
    "interval": ("19", "interval", packaged_interval, INTERVALS),
    "run": ("14", "own_run", packaged_run, RUNS),
    "table": ("20", "table_of", packaged_table, TABLES),
    "parts": ("20", "Both", packaged_parts, SUMS_OF_PARTS),
}
PLANTED = [(name, mistake) for name, row in EXERCISES.items() for mistake in row[3]]


def test_every_check_is_tested():
    assert {f"check_{name}" for name in EXERCISES} | {"refuses", "same_as"} == {*exercises.__all__}


def test_a_version_is_held_against_a_right_one_in_every_case():
    check = exercises.same_as(np.cumsum, ([1.0, 2.0],), (np.arange(3),))
    assert check(lambda x: np.add.accumulate(x)) == "right in every case"
    mistakes = np.sum, lambda x: np.cumsum(x) + 1e-6, lambda x: [1.0, 3.0], lambda x: "1 3"
    exercises.refuses(check, *mistakes)
    exercises.refuses(exercises.same_as(set, ("ab",)), frozenset("ac").union, list)
    with pytest.raises(AssertionError, match="accepts"):
        exercises.refuses(check, np.sum, np.cumsum)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_and_the_package_are_accepted(name):
    chapter, mine, packaged, _ = EXERCISES[name]
    check = getattr(exercises, f"check_{name}")
    for version in (solution(chapter, mine), packaged):
        assert check(version).startswith("right")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mistake"), PLANTED)
def test_a_planted_mistake_is_refused(name, mistake):
    chapter, mine, _, mistakes = EXERCISES[name]
    right, wrong = solution(chapter, mine), mistakes[mistake]
    with pytest.raises(AssertionError):
        getattr(exercises, f"check_{name}")(lambda *asked: wrong(right, *asked))
