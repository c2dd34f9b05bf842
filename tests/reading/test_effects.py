import itertools
import math
import tracemalloc
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from exact_pairs import marginals_of
from known_tables import records
from numpy.random import default_rng
from people import drawn, read_back, refused
from scipy.stats import norm

import dpcgd
from dpcgd import Dataset, Knowledge, effect, effects, load, private_graph
from dpcgd.datasets.arguments import data_folder
from dpcgd.datasets.schema import Schema
from dpcgd.moments.clipped_moments import measure_moments
from dpcgd.moments.interactions import NoisyTable, exactly
from dpcgd.reading.adjustment import OF_CATEGORIES, regressed, spread_of, standardised
from dpcgd.reading.effects import graphs_of, interval
from dpcgd.reading.second_moments import SecondMoments, unshortened

GAPPY = {"range": (-20.0, 20.0), "outside": "clip", "missing": "unknown"}


def released_as(data, marginals):
    """A release of this data that holds these moments in place of its own."""
    return replace(private_graph(data, epsilon=1.0, rng=default_rng(0)), marginals=marginals)


def least_squares(columns, y):
    """Coefficients of columns with a constant before them."""
    columns = np.column_stack([np.ones(len(y)), *columns])
    return np.linalg.lstsq(columns, y, rcond=None)[0][1:]


def joint(network, without=None):
    """The product of all tables; without that of a variable, what follows if it is set."""
    places = {v: i for i, v in enumerate(network.levels)}
    factors = []
    for v, table in network.tables.items():
        if v != without:
            factors += [table, [places[u] for u in (*network.parents[v], v)]]
    return np.einsum(*factors, [*places.values()])


@pytest.mark.parametrize("name", ["cancer", "survey", "earthquake"])
def test_an_exact_table_gives_what_an_intervention_does(name):
    network = dpcgd.from_bif(data_folder() / "networks" / f"{name}.bif")
    data, names = network.sample(2000, rng=default_rng(0)), list(network.levels)
    release = released_as(data, NoisyTable(10**9, joint(network) * 1e9, 1e-6))
    for cause, other in itertools.permutations(names, 2):
        if nx.has_path(network.graph, cause, other):
            found = effect(release, cause, other, graph=network.graph)
            both = [names.index(cause), names.index(other)]
            table = np.moveaxis(joint(network, without=cause), both, [0, 1])
            shares = table[[0, -1], -1].reshape(2, -1).sum(axis=1)
            assert found.estimate == pytest.approx(shares[1] - shares[0], abs=1e-6)
            assert found.probability == 1
            if found.ratio:
                assert found.ratio[0] == pytest.approx(shares[1] / shares[0], rel=1e-4)


def test_pairs_without_noise_give_the_regression_on_records():
    data = load("sachs", n=3000, rng=default_rng(1))
    release = released_as(data, marginals_of(data))
    assert data.truth.number_of_edges() > 10
    for cause, other in data.truth.edges:
        parents = sorted(data.truth.predecessors(cause))
        columns = [data.codes[:, data.variables.index(v)] for v in (cause, *parents)]
        held = [column == level for column in columns for level in range(1, column.max() + 1)]
        y = data.codes[:, data.variables.index(other)]
        wanted = least_squares([np.asarray(own, float) for own in held], y == y.max())
        found = effect(release, cause, other, graph=data.truth)
        assert found.estimate == pytest.approx(wanted[columns[0].max() - 1], abs=1e-8)


def chain_of_numbers(n, rng, slope=0.5):
    """z -> x -> y and z -> y, normal with deviation one."""
    z = rng.normal(size=n)
    x = 0.6 * z + 0.8 * rng.normal(size=n)
    y = slope * x - 0.4 * z + rng.normal(size=n)
    values = np.column_stack([z, x, y / y.std()])
    graph = nx.DiGraph([("z", "x"), ("x", "y"), ("z", "y")])
    return Dataset.of_numbers(values, dict.fromkeys("zxy", (-10.0, 10.0)), graph, "chain"), values


def test_numbers_without_noise_give_the_regression_on_scores():
    data, values = chain_of_numbers(20_000, default_rng(2))
    release = released_as(data, measure_moments(data, exactly, 1e6, clipped=True, aim="effects"))
    found = effect(release, "x", "y", graph=data.truth)
    wanted = least_squares([values[:, 1], values[:, 0]], values[:, 2])[0]
    assert found.estimate == pytest.approx(wanted, abs=0.02)  # scores are of pieces of ranges
    back = effect(release, "x", "y", graph=data.truth, ends=(0.75, 0.25))
    assert back.estimate == pytest.approx(-2 * norm.ppf(0.75) * found.estimate)
    middle, low, high = back.medians
    assert low < middle < high
    assert middle == pytest.approx(back.estimate, abs=0.05)  # y has deviation one


def test_a_category_and_a_number():
    rng, n = default_rng(3), 30_000
    group = rng.integers(0, 3, n)
    number = np.array([0.0, 0.3, 1.0])[group] + rng.normal(size=n)
    answer = (number + rng.normal(size=n) > 0.5).astype(int)
    rule = {"range": (-20.0, 20.0), "outside": "clip"}
    schema = Schema({"group": ["a", "b", "c"], "number": rule, "answer": ["no", "yes"]})
    codes = [group, schema.variables["number"].positions_of_numbers(number), answer]
    graph = nx.DiGraph([("group", "number"), ("number", "answer")])
    data = Dataset.of_schema(np.column_stack(codes), schema, graph, "mixed")
    release = private_graph(data, epsilon=1.0, aim="effects", rng=default_rng(4))
    up = effect(release, "group", "number", graph=graph)
    assert up.low < 1 / number.std() < up.high
    assert up.low > 0
    some = effect(release, "group", "number", ends=("a", "b"), graph=graph)
    assert some.low < 0.3 / number.std() < some.high
    assert 0.7 < up.medians[0] < 1.3
    scored = effect(release, "number", "answer", graph=graph)
    slope = np.polyfit((number - number.mean()) / number.std(), answer, 1)[0]
    assert scored.low < slope < scored.high
    assert effect(release, "number", "answer", outcome="no", graph=graph).high < 0
    assert effect(release, "number", "answer", ends=(1e-3, 0.999), graph=graph).estimate == 1


def moments_of_records(rng, size=5, n=2000):
    values = rng.normal(size=(n, size)) @ rng.normal(size=(size, size))
    values -= values.mean(axis=0)
    return values, values.T @ values / n


def as_moments(values, deviation, n):
    rows, vectors = [[i] for i in range(len(values))], [np.zeros((1, 1))] * len(values)
    return SecondMoments(values, values, np.full_like(values, deviation), rows, vectors, n)


def test_the_delta_method_of_a_regression():
    rng = default_rng(5)
    _, values = moments_of_records(rng)
    values /= np.sqrt(np.outer(np.diag(values), np.diag(values)))
    ends, outcome, deviation = np.array([[0.0], [1.0]]), np.ones(1), 1e-4
    answer = regressed(as_moments(values, deviation, 2000), (0, 1, 2), 4, ends, outcome)
    drawn = []
    for _ in range(4000):
        noise = np.triu(rng.normal(size=values.shape) * deviation, 1)
        noise = noise + noise.T + np.diag(rng.normal(size=5) * deviation * math.sqrt(2))
        noisy = as_moments(values + noise, deviation, 2000)
        drawn.append(regressed(noisy, (0, 1, 2), 4, ends, outcome).difference)
    assert spread_of(answer.further) == pytest.approx(np.std(drawn), rel=0.06)  # 5 deviations


def test_the_correction_for_shortened_records_counts_as_an_error():
    values = np.array([[1.0, 0.5], [0.5, 1.0]])
    short = replace(as_moments(values, 0.0, 2000), shortened=values - 0.1 * (1 - np.eye(2)))
    answer = regressed(short, (0,), 1, np.array([[0.0], [1.0]]), np.ones(1))
    assert spread_of(answer.further) == pytest.approx(OF_CATEGORIES * 0.1)


def test_the_sampling_error_of_a_regression_is_that_of_least_squares():
    data, values = moments_of_records(default_rng(6))
    ends, outcome = np.array([[0.0], [1.0]]), np.ones(1)
    answer = regressed(as_moments(values, 0.0, len(data)), (0, 1, 2), 4, ends, outcome)
    x, y = data[:, :3], data[:, 4]
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    covariance = left @ left / len(y) * np.linalg.inv(x.T @ x)
    assert spread_of(answer.sampling) == pytest.approx(math.sqrt(covariance[0, 0]), rel=1e-9)
    without = y - x[:, 1:] @ np.linalg.lstsq(x[:, 1:], y, rcond=None)[0]
    f = (without @ without - left @ left) / (left @ left)
    share = (math.sqrt(f * f + 4 * f) - f) / 2  # Cinelli and Hazlett
    assert answer.robustness(answer.difference, len(y)) == pytest.approx(share, rel=1e-6)


def test_the_delta_method_of_a_standardised_table():
    rng = default_rng(7)
    shares = rng.dirichlet(np.full(12, 5.0)).reshape(2, 2, 3)
    n, scale = 20_000, 30.0
    answer = standardised(NoisyTable(n, n * shares, scale), (0, 2), 1, (0, 1), 1)
    drawn = []
    for _ in range(3000):
        counts = rng.multinomial(n, shares.ravel()).reshape(shares.shape)
        noisy = NoisyTable(n, counts + rng.laplace(size=shares.shape) * scale, scale)
        drawn.append(standardised(noisy, (0, 2), 1, (0, 1), 1))
    drawn, logs = zip(*((again.difference, again.log_ratio[0]) for again in drawn), strict=True)
    assert answer.log_ratio[1] == pytest.approx(np.std(logs), rel=0.08)
    assert answer.deviation == pytest.approx(np.std(drawn), rel=0.08)  # 5 deviations
    assert answer.difference == pytest.approx(np.mean(drawn), abs=0.1 * answer.deviation)


@pytest.mark.parametrize(("second", "off"), [(0.0, 0.03), (0.5, 0.02)])
def test_shortened_records_of_normal_numbers_are_undone(second, off):
    """Scores, and with them their squares: then long records are not those of an ellipse."""
    correlations, square = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.4], [0.0, 0.4, 1.0]]), 4.0
    grid = np.linspace(-5, 5, 1001)

    def entries(scores):
        return np.stack([scores, second * (scores**2 - 1) / math.sqrt(2)], axis=-1)

    scores = default_rng(8).multivariate_normal(np.zeros(3), correlations, 400_000)
    values = entries(scores).reshape(len(scores), -1)
    short = values * np.sqrt(np.minimum(1.0, square / (values**2).sum(axis=1)))[:, None]
    wanted, released = (own.T @ own / len(own) for own in (values, short))
    assert np.trace(released) < 0.85 * np.trace(wanted)
    shares = [norm.pdf(grid) / norm.pdf(grid).sum()] * 3
    undone = unshortened(released, square, [entries(grid)] * 3, shares)
    assert undone[::2, ::2] == pytest.approx(wanted[::2, ::2], abs=off)


def test_a_mixture_of_normal_numbers():
    ends = 2 + norm.ppf([0.05, 0.95])
    assert interval([0.0, 1.0], [0.0, 2.0], [0.0, 1.0]) == pytest.approx(tuple(ends))
    assert interval([0.96, 0.04], [0.0, 2.0], [0.0, 1.0]) == (0.0, 0.0)
    assert interval([0.8, 0.2], [0.0, 0.0], [0.0, math.inf]) == (-math.inf, math.inf)
    draws = np.concatenate([np.full(3000, 0.0), default_rng(9).normal(3, 1, 7000)])
    low, high = interval([0.3, 0.7], [0.0, 3.0], [0.0, 1.0])
    assert (low, high) == pytest.approx(np.quantile(draws, (0.05, 0.95)), abs=0.1)


def test_what_noise_hides_is_not_identified():
    rng = default_rng(10)
    x = rng.integers(0, 2, 4000)
    codes = np.column_stack([x, x, (x + rng.integers(0, 2, 4000)) > 1]).astype(int)
    graph = nx.DiGraph([("v0", "v1"), ("v0", "v2"), ("v1", "v2")])
    release = private_graph(records(codes, [2, 2, 2]), epsilon=1.0, rng=default_rng(11))
    found = effect(release, "v1", "v2", graph=graph)  # v1 copies its parent
    assert not found.identified
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert math.isnan(found.estimate)
    assert effect(release, "v0", "v2", graph=graph).identified


def test_the_direction_counts():
    data = load("cancer", n=100_000, rng=default_rng(12))
    knowledge = Knowledge(tiers=[["Pollution", "Smoker"], ["Cancer"], ["Xray", "Dyspnoea"]])
    release = private_graph(data, epsilon=1.0, knowledge=knowledge, rng=default_rng(13))
    back = effect(release, "Xray", "Cancer")
    assert (back.probability, back.estimate, back.low, back.high) == (0, 0, 0, 0)
    there = effect(release, "Cancer", "Xray", ends=("False", "True"), outcome="positive")
    assert there.low < 0.7 < there.high  # 0.9 less 0.2
    assert there.robustness > there.robustness_of_interval > 0
    other = effect(release, "Cancer", "Xray", ends=("True", "False"), outcome="positive")
    assert other.estimate == pytest.approx(-there.estimate)
    assert there.ratio[1] < 4.5 < there.ratio[2]


def test_effects_are_a_table():
    data = load("asia", n=50_000, rng=default_rng(14))
    release = private_graph(data, epsilon=1.0, rng=default_rng(15))
    found = effects(release)
    assert len(found.frame()) == len(found) == int(release.graph.arcs.sum())
    assert [*effects(release, []).frame()] == [*found.frame()]
    assert {"cause", "effect", "estimate", "low", "high", "probability"} <= set(found.frame())
    for own in found:
        assert own.probability <= sum(way.share for way in own.adjustments) + 1e-9 <= 1 + 1e-6


CANNOT_BE_ASKED = [
    (lambda release: effect(release, "Smokr", "Cancer"), "did you mean 'Smoker'"),
    (lambda release: effect(release, "Smoker", "Smoker"), "two variables"),
    (lambda release: effect(release, "Smoker", "Cancer", ends=("no", "yes")), "take one of"),
    (lambda release: effect(release, "Smoker", "Cancer", ends=("True",)), "two values"),
    (lambda release: effect(release, "Smoker", "Cancer", outcome="none"), "take one of"),
    (lambda release: effect(release, "Smoker", "Cancer", ends=5), "two values"),
    (lambda release: effects(release, ("Smoker", "Cancer")), "list of pairs"),
    (lambda release: effects(release, 5), "list of pairs"),
    (lambda release: dpcgd.climb(release, most_parents=-1), "most_parents must be a whole number"),
    (lambda release: effects(release, graph=nx.DiGraph([("a", "b")])), "without cycles"),
]


@pytest.mark.parametrize(("call", "cure"), CANNOT_BE_ASKED)
def test_what_cannot_be_asked_is_refused(call, cure):
    data = load("cancer", n=1000, rng=default_rng(16))
    refused(cure, call, private_graph(data, epsilon=1.0, rng=default_rng(17)))


@pytest.mark.parametrize("n", [3000, 30_000])
def test_a_release_that_was_read_back_has_the_same_effects(tmp_path, n):
    """With few records noise hides all but the scores."""
    x, more, z = default_rng(28).normal(size=(3, n))
    values = np.column_stack([x, x + more, z])
    values[: n // 60, 1] = np.nan
    data = Dataset.from_pandas(pd.DataFrame(values, columns=[*"xyz"]), dict.fromkeys("xyz", GAPPY))
    release = private_graph(data, epsilon=1.0, rng=default_rng(29))
    asked = [("x", "y"), ("y", "z")]
    both = read_back(release, tmp_path / "receipt.json"), release
    pd.testing.assert_frame_equal(*(effects(r, asked).frame() for r in both))
    assert effect(release, "x", "y").high > 0.5


@pytest.mark.parametrize("gaps", ["abcdx", "ax", "x", "y"])
@pytest.mark.parametrize("records", [800, 12_000])
def test_numbers_that_are_missing_together_are_adjusted_for(gaps, records):
    table = pd.DataFrame(default_rng(31).normal(size=(40_000, 6)), columns=[*"abcdxy"])
    table.x += table.a
    table.y += table.x + table.a
    table.loc[:records, [*gaps]] = np.nan
    data = Dataset.from_pandas(table, dict.fromkeys(table, GAPPY))
    release = private_graph(data, epsilon=1.0, rng=default_rng(32))
    arcs = nx.DiGraph([("x", "y"), *((cause, "x") for cause in "abcd"), ("a", "y")])
    assert effect(release, "x", "y", graph=arcs).estimate == pytest.approx(1 / 3**0.5, abs=0.05)


def test_the_level_of_missing_values_is_taken_if_there_are_not_two_others():
    rules = {"x": {"levels": [*"ab"], "missing": "c"}, "y": {"levels": ["d"], "missing": "e"}}
    table = pd.DataFrame([["a", "d"], ["b", None], [None, None]] * 99, columns=[*"xy"])
    release = private_graph(Dataset.from_pandas(table, rules), epsilon=1.0, rng=default_rng(33))
    assert "y = e, if x is set from a to b" in effect(release, "x", "y").estimand
    assert "x = b, if y is set from d to e" in effect(release, "y", "x").estimand


def test_many_levels_need_no_square_array():
    release = private_graph(drawn(default_rng(3), [800] * 2, 3000), epsilon=1, rng=default_rng(4))
    tracemalloc.start()
    effect(release, "v0", "v1")
    assert tracemalloc.get_traced_memory()[1] < 4 * 800**2
    tracemalloc.stop()


def test_quantiles_of_a_number_are_shares():
    data, _ = chain_of_numbers(2000, default_rng(20))
    release = private_graph(data, epsilon=1.0, rng=default_rng(21))
    refused(r"\(0.25, 0.75\)", effect, release, "x", "y", ends=(1, 2))
    refused("leave outcome out", effect, release, "x", "y", outcome="high")


def test_likely_graphs_have_no_cycle_and_their_shares_sum_to_one():
    data = load("asia", n=5000, rng=default_rng(24))
    kept = Knowledge(tiers=[["asia", "smoke"], ["xray", "dysp"]])
    release = private_graph(data, epsilon=0.3, knowledge=kept, rng=default_rng(25))
    graphs = graphs_of(release)
    assert sum(graphs.values()) == pytest.approx(1)
    assert len(graphs) > 10
    for parents in graphs:
        arcs = [(a, b) for b, bits in enumerate(parents) for a in range(data.d) if bits >> a & 1]
        assert nx.is_directed_acyclic_graph(nx.DiGraph(arcs))
    assert graphs == graphs_of(release)


@pytest.mark.parametrize("known", [False, True])
def test_a_cause_may_be_any_of_many_variables(known):
    rng = default_rng(5)
    codes = rng.integers(0, 2, (3000, 66))
    codes[:, 0] = np.where(rng.random(3000) < 0.8, codes[:, 65], codes[:, 0])
    data = Dataset(codes, {f"v{i}": ("no", "yes") for i in range(66)})
    arc = [("v65", "v0")]
    release = private_graph(data, epsilon=10.0, rng=rng, knowledge=Knowledge(required=arc))
    graph = nx.empty_graph(data.variables, nx.DiGraph)
    graph.add_edges_from(arc)
    found = effect(release, "v65", "v0", graph=graph if known else None)
    assert (found.probability, found.estimate) == (1.0, pytest.approx(0.8, abs=0.1))


def test_a_curve_is_marked_and_a_line_is_not():
    rng = default_rng(26)
    x, other = rng.normal(size=(2, 50_000))
    for bend in (0.0, 0.5):
        values = np.column_stack([x, x + bend * x**2 + rng.normal(size=len(x)), other])
        data = Dataset.of_numbers(values, {"x": (-20, 20), "y": (-60, 60), "other": (-20, 20)})
        release = private_graph(data, epsilon=1.0, rng=default_rng(27))
        graph = nx.empty_graph(["x", "y", "other"], create_using=nx.DiGraph)
        graph.add_edge("x", "y")
        assert bool(effect(release, "x", "y", graph=graph).marked) == bool(bend)


def test_a_number_that_bends_the_share_of_a_category_is_marked():
    rng, rule = default_rng(30), {"range": (-20.0, 20.0), "outside": "clip"}
    schema, x = Schema({"x": rule, "y": ["no", "yes"]}), rng.normal(size=50_000)
    places = schema.variables["x"].positions_of_numbers(x)
    for seen, marked in ((x + rng.normal(size=len(x)) > 0, False), (np.abs(x) > 1, True)):
        data = Dataset.of_schema(np.column_stack([places, seen]), schema)
        release = private_graph(data, epsilon=1.0, rng=default_rng(31))
        assert bool(effect(release, "x", "y", graph=nx.DiGraph([("x", "y")])).marked) == marked


def test_a_parabola_is_followed_from_any_end_to_any_other():
    rng, graph = default_rng(32), nx.DiGraph([("x", "y")])
    x = rng.normal(size=50_000)
    values = np.column_stack([x, 0.5 * x + 0.3 * x**2 + rng.normal(size=len(x))])
    data = Dataset.of_numbers(values, {"x": (-10, 10), "y": (-20, 20)})
    release = released_as(data, measure_moments(data, exactly, 1e6, clipped=True, aim="effects"))
    scores = norm.ppf((values[:, 1].argsort().argsort() + 0.5) / len(x))
    curve = np.polyfit(x, scores, 2)
    for ends in ((0.3, 0.7), (0.5, 0.9), (0.05, 0.6)):
        [wanted] = np.diff(np.polyval(curve, norm.ppf(ends)))
        found = effect(release, "x", "y", graph=graph, ends=ends)
        assert found.estimate == pytest.approx(wanted, abs=0.03)


def test_an_interval_of_medians_is_as_wide_as_medians_spread():
    rng, found = default_rng(33), []
    for _ in range(60):
        data, _ = chain_of_numbers(5000, rng)
        release = private_graph(data, epsilon=3.0, aim="effects", rng=rng)
        found.append(effect(release, "x", "y", graph=data.truth).medians)
    middle, low, high = np.array(found).T
    ratio = middle.std() / np.median(high - low) * 2 * norm.ppf(0.95)
    assert 0.5 < ratio < 1.5, "five deviations of a spread of 60"


def test_intervals_of_a_chain_cover():
    covered, runs = 0, 40
    for seed in range(runs):
        data, _ = chain_of_numbers(10_000, default_rng([22, seed]))
        release = private_graph(data, epsilon=1.0, aim="effects", rng=default_rng([23, seed]))
        found = effect(release, "x", "y", graph=data.truth)
        variance = 0.25 + 0.16 + 1 - 2 * 0.5 * 0.4 * 0.6
        covered += found.low < 0.5 / math.sqrt(variance) < found.high
        assert found.high - found.low < 0.3
    assert covered >= 28  # of 36 expected; 28 or fewer by chance in one of 2,000


def test_intervals_of_independent_numbers_hold_zero():
    """Few records in wide ranges: here scores are centred at means that are far off."""
    names, held = [f"v{v}" for v in range(8)], []
    for seed in range(20):
        values = default_rng([24, seed]).normal(size=(2000, 8))
        data = Dataset.of_numbers(values, dict.fromkeys(names, (-20, 20)))
        release = private_graph(data, epsilon=1.0, rng=default_rng([25, seed]))
        pairs = [*itertools.pairwise(names)]
        found = effects(release, pairs, graph=nx.DiGraph(pairs))
        held += [own.low <= 0 <= own.high for own in found if own.identified]
    assert len(held) > 120
    assert np.mean(held) > 0.84  # .9 is meant; without the errors of means .77
