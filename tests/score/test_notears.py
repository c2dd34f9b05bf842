"""NOTEARS and its private runs: gradients, optima, noise, and what all runs have in common."""

import itertools
import math
from functools import partial

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd_book.data.mixed_networks import GaussianNetwork, random_sem
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import default_rng
from people import refused

import dpcgd.score.notears as module
from dpcgd import Budget, Dataset, load
from dpcgd.datasets.variable import Parts
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.score.notears import acyclic_graph, acyclicity, fit, gram_notears, notears, squared_loss

seeded = settings(derandomize=True, max_examples=100)
numbers = st.floats(-2, 2, allow_subnormal=False)
squares = st.integers(2, 6).flatmap(lambda d: arrays(float, (d, d), elements=numbers))


def by_complex_steps(function, at):
    """The gradient of a function of a square array, exact to rounding."""
    gradient, step = np.zeros(at.shape), 1e-30
    for index in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[index] += 1j * step
        gradient[index] = function(moved).imag / step
    return gradient


def complex_acyclicity(weights):
    from scipy.linalg import expm

    return np.trace(expm(weights * weights)) - len(weights)


def complex_loss(weights, gram):
    left = np.eye(len(weights)) - weights
    return np.trace(left.T @ gram @ left) / 2


@pytest.mark.parametrize("seed", range(5))
def test_gradients_are_those_of_complex_steps(seed):
    rng = default_rng(seed)
    weights, rows = rng.normal(size=(5, 5)), rng.normal(size=(20, 5))
    gram = rows.T @ rows / 20
    value, slope = acyclicity(weights)
    assert value == pytest.approx(complex_acyclicity(weights).real, rel=1e-12)
    assert slope == pytest.approx(by_complex_steps(complex_acyclicity, weights), rel=1e-9)
    value, slope = squared_loss(weights, gram)
    assert value == pytest.approx(((rows - rows @ weights) ** 2).sum() / 40, rel=1e-12)
    expected = by_complex_steps(lambda at: complex_loss(at, gram), weights)
    assert slope == pytest.approx(expected, rel=1e-9)


@seeded
@given(squares)
def test_acyclicity_is_0_for_acyclic_graphs_alone(weights):
    graph = nx.from_numpy_array(weights * weights, create_using=nx.DiGraph)
    value, most = acyclicity(weights)[0], 1e-9 if nx.is_directed_acyclic_graph(graph) else math.inf
    assert -1e-9 <= value <= most
    assert acyclicity(np.triu(weights, 1))[0] == pytest.approx(0, abs=1e-9)


def lasso(gram, target, parents, l1, sweeps=400):
    """Coordinate descent for one variable on given parents, and its least value."""
    weights = np.zeros(len(gram))
    for _, j in itertools.product(range(sweeps), parents):
        others = gram[j, target] - gram[j] @ weights + gram[j, j] * weights[j]
        weights[j] = np.sign(others) * max(abs(others) - l1, 0) / gram[j, j]
    residual = gram[target, target] - 2 * gram[target] @ weights + weights @ gram @ weights
    return residual / 2 + l1 * np.abs(weights).sum()


def best_by_trying_all_orders(gram, l1):
    orders = itertools.permutations(range(len(gram)))
    return min(sum(lasso(gram, v, o[:i], l1) for i, v in enumerate(o)) for o in orders)


@pytest.mark.slow
def test_fit_finds_the_optimum_over_all_acyclic_graphs_of_four_variables():
    gaps = []
    for seed in range(12):
        gram = random_sem(4, 3 + seed % 3, rng=default_rng(seed)).covariance
        weights = fit(gram, l1=0.05, tolerance=1e-8)
        value = squared_loss(weights, gram)[0] + 0.05 * np.abs(weights).sum()
        gaps.append(value / best_by_trying_all_orders(gram, 0.05) - 1)
    assert min(gaps) > -1e-3, "nothing is better than the best but for the last bit of a cycle"
    assert sum(gap < 1e-3 for gap in gaps) >= 9, gaps
    assert max(gaps) < 0.5


@seeded
@given(squares, st.floats(0, 1))
def test_an_acyclic_graph_keeps_every_strong_arc_that_is_on_no_cycle(weights, threshold):
    np.fill_diagonal(weights, 0)
    graph = acyclic_graph(weights, threshold)
    strong = np.argwhere((np.abs(weights) >= threshold) & (weights != 0))
    everything = nx.DiGraph([tuple(arc) for arc in strong.tolist()])
    assert nx.is_directed_acyclic_graph(graph)
    assert set(graph.edges) <= set(everything.edges)
    for a, b in everything.edges:
        assert graph.has_edge(a, b) or nx.has_path(everything, b, a)


def test_the_weakest_arc_of_a_cycle_goes():
    weights = np.zeros((4, 4))
    weights[0, 1], weights[1, 2], weights[2, 0], weights[2, 3] = 0.5, -0.3, 0.4, 0.1
    assert set(acyclic_graph(weights, 0.05).edges) == {(0, 1), (2, 0), (2, 3)}


def neighbours(n=200):
    """Signs with 1 + x.y = 0, which reach the bound of second moments."""
    first = np.zeros((n, 3))
    second = first.copy()
    first[0], second[0] = (1, 1, 1), (1, -1, -1)
    ranges = {name: (-1, 1) for name in "abc"}
    return Dataset.of_numbers(first, ranges), Dataset.of_numbers(second, ranges)


def apart(pair, look):
    first, second = (look(data) for data in pair)
    return (first - second) / np.linalg.norm(first - second)


@pytest.mark.slow
def test_the_released_moments_are_as_private_as_they_say():
    pair, rng = neighbours(), default_rng(0)
    upper = tuple(part[1:] for part in np.triu_indices(4))
    exact = lambda data: module.second_moments(data.scaled, bound=9.0)[upper]  # noqa: E731
    worst = apart(pair, exact)

    def projected(wrong, data):
        account = GaussianFilter(Budget(2.0, 0.1))
        moments, _ = module.released_moments(data, math.sqrt(3), account, NarrowNoise(rng, wrong))
        return float(moments[upper] @ worst)

    # False alarm 1e-9. A large delta leaves little noise, and so much to see.
    for wrong, holds in ((1.0, True), (0.5, False)):
        shown = empirical_epsilon(partial(projected, wrong), *pair, delta=0.1, trials=5000)
        assert (shown <= 2.0) == holds


def plain_gram(data, epsilon, rng):
    """The released moments of binary columns, written again."""
    x = 2.0 * data.codes - 1
    n, d = x.shape
    u = np.column_stack([np.ones(n), x])
    rho = GaussianFilter(Budget(epsilon, 1e-6)).rho
    deviation = (1 + d) / n / math.sqrt(2 * rho) * (1 + 1e-9)
    noisy = u.T @ u / n
    places = [(i, j) for i in range(d + 1) for j in range(i, d + 1)][1:]
    for (i, j), z in zip(places, rng.normal(scale=deviation, size=len(places)), strict=True):
        noisy[i, j] += z
        noisy[j, i] = noisy[i, j]
    return noisy, deviation


def test_released_moments_against_a_plain_version():
    data = load("cancer", n=5000, rng=default_rng(0))
    paid = GaussianFilter(Budget(1.0, 1e-6)), SeededNoise(default_rng(7))
    moments, deviation = module.released_moments(data, math.sqrt(data.d), *paid)
    plain, expected = plain_gram(data, 1.0, default_rng(7))
    assert moments == pytest.approx(plain, rel=1e-12)
    assert deviation == pytest.approx(expected, rel=1e-12)


def test_original_units_tell_directions_and_a_common_unit_does_not_matter():
    chain, effects = nx.DiGraph([("x0", "x1"), ("x1", "x2")]), 1.5 * np.eye(3, k=1)
    data = GaussianNetwork("chain", chain, effects, np.ones(3)).sample(20_000, rng=default_rng(0))
    wide = {name: Parts(1000 * own.low, 1000 * own.high) for name, own in data.levels.items()}
    other = Dataset(data.codes, wide)
    private = gram_notears(data, epsilon=1.0, standardized=False, threshold=0.3, rng=default_rng(5))
    found = notears(data, standardized=False, threshold=0.3)
    assert notears(other, standardized=False, threshold=0.3).graph == found.graph
    assert found.graph.skeleton_f1(data.truth) == 1 == private.graph.skeleton_f1(data.truth)


def test_short_rows_need_less_noise_and_have_no_known_squares():
    data = load("sachs", n=1000, rng=default_rng(0))
    account, noise = (lambda: GaussianFilter(Budget(1.0, 1e-6))), SeededNoise(default_rng(1))
    bounds = math.sqrt(11), 1.0
    full, short = (module.released_moments(data, b, account(), noise)[1] for b in bounds)
    assert short < full
    assert gram_notears(data, epsilon=1.0, row_norm=1.0, rng=default_rng(1)).guarantee == "proved"


@pytest.mark.parametrize("gram", [np.ones((2, 3)), np.array([[1, np.nan], [np.nan, 1]])])
def test_a_gram_matrix_that_is_none_is_refused(gram):
    refused("square and finite", fit, gram)
    refused("l1 must not be negative", fit, np.eye(2), l1=-0.1)


def matrices():
    """Positive semidefinite up to rounding: singular, huge, tiny, with equal eigenvalues, zero."""
    entries = st.lists(st.floats(-1, 1), min_size=9, max_size=9)
    scales = st.sampled_from([1e-300, 1e-20, 1.0, 1e20, 1e150, 1e300])
    ranks = st.integers(0, 3)
    return st.builds(_matrix, entries, ranks, scales) | scales.map(lambda scale: scale * np.eye(3))


def _matrix(entries, rank, scale):
    rows = np.reshape(entries, (3, 3))[:rank]
    return scale * (rows.T @ rows)


@pytest.mark.filterwarnings("error")
@settings(max_examples=60, derandomize=True)
@given(gram=matrices(), l1=st.sampled_from([0.0, 0.02, 1e100]))
def test_every_matrix_has_weights(gram, l1):
    weights = fit(gram, l1=l1)
    assert np.isfinite(weights).all()
    assert not np.diag(weights).any()
    assert nx.is_directed_acyclic_graph(acyclic_graph(weights))


@pytest.mark.parametrize("size", [1e8, 1e160, math.inf, math.nan])
def test_a_cycle_that_is_too_large_for_doubles_is_infinitely_cyclic(size):
    value, slope = acyclicity(np.array([[0, size], [size, 0]]))
    assert value == math.inf
    assert not slope.any()
    if math.isfinite(size * size):
        assert abs(acyclicity(np.array([[0, size], [0, 0]]))[0]) < 1e-12


def test_a_line_search_that_goes_too_far_comes_back():
    """The penalty times the square of the acyclicity overflows on the way."""
    rows = [[0, 1, 0, 1, 1], [0, 1, 1, 1, 1], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0]]
    levels = {f"v{i}": ["0", "1"] for i in range(5)}
    data = Dataset(np.repeat(rows, [294, 315, 208, 183], axis=0), levels)
    release = gram_notears(data, epsilon=2.0, rng=default_rng(708029063))
    assert release.graph.variables == data.variables


def gaussian_pairs(strengths, seed, n=5000):
    """For each strength r a cause and r times it plus noise, columns one after the other."""
    rng = default_rng(seed)
    causes = rng.normal(size=(n, len(strengths)))
    effects = causes * strengths + rng.normal(size=causes.shape)
    return np.stack([causes, effects], axis=2).reshape(n, -1)


def released_skeleton(values, run=notears, widths=20.0, **settings):
    names = [f"v{i}" for i in range(values.shape[1])]
    widths = np.broadcast_to(widths, len(names)).tolist()
    ranges = {name: (-w, w) for name, w in zip(names, widths, strict=True)}
    found = run(Dataset.of_numbers(values, ranges), **settings).graph.skeleton
    return {tuple(sorted(int(name[1:]) for name in pair)) for pair in found}


@pytest.mark.parametrize("strength", [0.15, 0.3, -0.3, 0.5, 0.8, 3.0])
def test_two_columns_of_equal_variance_keep_their_edge(strength):
    for seed in range(10):
        values = gaussian_pairs([strength], seed)
        assert released_skeleton(values) == {(0, 1)}
        generous = {"epsilon": 1e4, "rng": default_rng(seed)}
        assert released_skeleton(values, gram_notears, **generous) == {(0, 1)}


def test_edges_do_not_hang_on_units_ranges_signs_or_the_order_of_columns():
    rng = default_rng(0)
    values = gaussian_pairs([0.3, 0.5, 0.8, 0.5], 1)
    linked = 0.7 * values[:, 3]  # two of the pairs hang together, the others stand alone
    values[:, 4:6] += np.column_stack([linked, 0.8 * linked])
    edges = {(0, 1), (2, 3), (3, 4), (4, 5), (6, 7)}
    assert released_skeleton(values) == edges
    for _ in range(20):
        units = rng.choice([-1, 1], 8) * 10 ** rng.uniform(-3, 3, 8)
        widths = np.abs(units) * rng.uniform(8, 200, 8)
        order = rng.permutation(8)
        at = np.argsort(order)
        moved = {tuple(sorted((int(at[a]), int(at[b])))) for a, b in edges}
        assert released_skeleton((values * units)[:, order], widths=widths[order]) == moved
