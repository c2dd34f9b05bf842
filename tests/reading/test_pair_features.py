"""Features of released pairs against plain definitions, and the reader that was trained on them."""

import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred
from exact_pairs import marginals_of, sample, turned, with_a_constant
from known_tables import records

from dpcgd import load
from dpcgd.datasets.arguments import data_folder
from dpcgd.datasets.random_networks import SHAPES
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.reading import pair_features as reading, reader
from dpcgd.reading.pair_features import LEAST_LIKELY, STRONGEST, LocalEvidence, pair_features
from dpcgd.reading.reader import Trees, edge_probabilities, first_reading, most_likely_edges

SEVEN = [*combinations(range(7), 2)]


def table(columns):
    """A row for each pair."""
    return np.column_stack([*columns.values()])


def test_of_binary_variables_a_block_is_their_correlation():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (4000, 4))
    codes[:, 1:] = np.where(rng.random((4000, 3)) < 0.4, codes[:, :-1], codes[:, 1:])
    data = records(codes, (2, 2, 2, 2))
    blocks = blocks_of(marginals_of(data))
    assert np.allclose(np.abs(blocks.correlations), np.abs(np.corrcoef(data.codes.T)))
    assert np.allclose(blocks.variances[0, 1], 1 / data.n, rtol=2e-3)  # single records


class Plain:
    """Conditional associations of seven noisy variables, as a textbook has them."""

    def __init__(self, seed):
        noise = blurred(20.0, np.random.default_rng(seed))
        data = sample(7, n=4000, seed=seed, shape=SHAPES[seed])
        self.blocks = blocks_of(marginals_of(data, measure=noise))

    def given(self, x, y, s, ridge):
        """By a ridge-regularised regression of both on the others."""
        b, v, rows = self.blocks.correlations, self.blocks.noise, self.blocks.rows
        of = np.concatenate([np.arange(len(b))[rows[z]] for z in s] or [np.empty(0, int)])
        inner = b[np.ix_(of, of)] + np.diag(ridge[of] * math.sqrt(len(of)))
        slope_x, slope_y = (np.linalg.solve(inner, b[of, rows[a]]) for a in (x, y))
        slopes = ((x, slope_x), (y, slope_y))
        left = [1 - (b[of, rows[a]] * slope).sum(axis=0) for a, slope in slopes]
        left = [np.clip(share, reading.LEAST_OPEN, 1).mean() for share in left]
        q = b[rows[x], rows[y]] - b[rows[x]][:, of] @ slope_y
        noise = v[rows[x], rows[y]] + v[rows[x]][:, of] @ slope_y**2
        noise = noise + (v[rows[y]][:, of] @ slope_x**2).T
        return *self.told(q, noise, math.prod(left)), min(left)

    def given_one(self, x, y, z):
        b, v = self.blocks.correlations, self.blocks.noise
        x, y, z = (self.blocks.rows[a] for a in (x, y, z))
        left = [np.clip(1 - (b[a, z] ** 2).sum(axis=1), reading.LEAST_OPEN, 1) for a in (x, y)]
        noise = v[x, y] + b[x, z] ** 2 @ v[z, y] + v[x, z] @ b[z, y] ** 2
        return self.told(b[x, y] - b[x, z] @ b[z, y], noise, np.outer(*left))

    def told(self, q, noise, left):
        """The log Bayes factor of a usual effect against none, twice, as arsinh; the effect."""
        squares, variance = q**2 / left, noise / left + 1 / self.blocks.n
        signal = reading.USUAL**2 / (variance + reading.USUAL**2)
        evidence = (squares / variance * signal + np.log1p(-signal)).sum()
        return math.asinh(evidence), ((squares - variance) * signal).sum()


@pytest.fixture(params=range(6))
def plain(request):
    return Plain(request.param)


@pytest.mark.parametrize("narrow", [1, 2, 32])
def test_an_association_given_any_set_is_that_of_the_regression(plain, narrow, monkeypatch):
    monkeypatch.setattr(reading, "NARROW", narrow)
    local = LocalEvidence(plain.blocks, np.ones((7, 7)))
    for s in [(), (2,), (2, 3), (5, 3, 4), (2, 3, 4, 5, 6)]:
        (found,) = local.given([(0, 1, s)])
        assert found == pytest.approx(plain.given(0, 1, s, local.ridge), abs=1e-9)


def test_the_least_and_the_next_given_one_other(plain):
    association, effect = np.random.default_rng(0).random((2, 7, 7))
    association, effect = association + association.T, effect + effect.T
    found = np.array(reading._given_one(plain.blocks, association, effect))
    for x, y in SEVEN:
        others = [z for z in range(7) if z not in (x, y)]
        whole = (association[x, y], effect[x, y])
        (least, size), second = sorted([whole, *(plain.given_one(x, y, z) for z in others)])[:2]
        path = max(min(effect[x, z], effect[z, y]) for z in others)
        assert found[:, x, y] == pytest.approx((least, second[0], size, path), abs=1e-9)
        assert (found[:, x, y] == found[:, y, x]).all()


def test_what_the_nearest_of_either_tell(plain):
    local = LocalEvidence(plain.blocks, np.random.default_rng(0).random((7, 7)))
    for (x, y), row in zip(SEVEN, table(local.features(np.array(SEVEN))), strict=True):
        ranked = [[w for w in local.nearest[a] if w not in (x, y)] for a in (x, y)]
        sizes = (*STRONGEST, reading.FEW)
        near = {k: [*dict.fromkeys(ranked[0][:k] + ranked[1][:k])] for k in sizes}
        strong = [plain.given(x, y, near[k], local.ridge) for k in STRONGEST]
        least = min(plain.given(x, y, s, local.ridge) for s in combinations(near[reading.FEW], 2))
        expected = [*least[:2], *(s[0] for s in strong), *(s[1] for s in strong), strong[1][2]]
        assert row == pytest.approx(expected, abs=1e-9)


def test_no_question_has_no_answer():
    local = LocalEvidence(blocks_of(marginals_of(sample(4))), np.ones((4, 4)))
    assert local.given([]).shape == (0, 3)
    assert table(local.features(np.empty((0, 2), int))).shape == (0, 3 + 2 * len(STRONGEST))


def test_candidates_are_near_for_one_of_both():
    strength = np.zeros((30, 30))
    strength[0, 1:] = strength[1:, 0] = np.arange(29, 0, -1)
    assert {(0, k) for k in range(1, 30)} <= set(map(tuple, reading.candidates(strength).tolist()))


def by_names(data):
    pairs, columns = pair_features(marginals_of(data))
    ends = (frozenset(data.variables[v] for v in pair) for pair in pairs)
    return dict(zip(ends, table(columns), strict=True))


def test_the_order_of_variables_and_of_levels_does_not_matter():
    plain, other = by_names(sample(7)), by_names(turned(sample(7)))
    assert plain.keys() == other.keys()
    for pair, row in plain.items():
        assert np.allclose(row, other[pair], rtol=1e-3, atol=1e-3), pair
    data = sample(8)
    order = [data.variables.index(name) for name in turned(data).variables]
    plain, other = (edge_probabilities(marginals_of(d)) for d in (data, turned(data)))
    assert np.abs(plain[np.ix_(order, order)] - other).max() < 0.05


def probabilities(d):
    likely = np.triu(np.random.default_rng(1).beta(0.3, 0.5, (d, d)), 1)
    return likely + likely.T


def second(data, likely):
    pairs, columns = reading.second_features(blocks_of(marginals_of(data)), likely)
    assert np.isfinite(table(columns)).all()
    return pairs.tolist(), columns


@pytest.mark.parametrize("d", [2, 3, 12])
def test_features_are_numbers_for_few_variables_and_for_constant_ones(d):
    data = with_a_constant(sample(d, n=200))
    assert np.isfinite(table(pair_features(marginals_of(data))[1])).all()
    second(data, probabilities(d))
    assert second(data, np.zeros((d, d)))[0] == []


def test_what_a_second_reading_looks_at():
    data, likely = sample(7), probabilities(7)
    pairs, columns = second(data, likely)
    assert pairs == np.argwhere(np.triu(likely) > LEAST_LIKELY).tolist()
    local = LocalEvidence(blocks_of(marginals_of(data)), likely)
    for i, (x, y) in enumerate(pairs):
        third = [z for z in range(7) if z not in (x, y)]
        paths = sorted(min(likely[x, z], likely[z, y]) for z in third)
        near = [[z for z in third if likely[end, z] > 0.5] for end in (x, y)]
        least, most = sorted(local.given([(x, y, s) for s in near]).tolist())
        others = sorted(likely[end].sum() - likely[x, y] for end in (x, y))
        ranks = sorted(int((likely[a] > likely[x, y]).sum()) for a in (x, y))
        expected = {
            "log odds": reading.log_odds(likely[x, y]),
            "likeliest path": paths[-1],
            "second likeliest path": paths[-2],
            "expected paths": sum(likely[x, z] * likely[z, y] for z in third),
            "least given the neighbours of one": least[0],
            "effect at the least given neighbours": least[1],
            "left open by neighbours": least[2],
            "most given the neighbours of one": most[0],
            "fewer other edges": others[0],
            "more other edges": others[1],
            "higher rank": ranks[0],
            "lower rank": ranks[1],
            "expected edges a variable": likely.sum() / 14,
        }
        found = {name: columns[name][i] for name in expected}
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_the_second_reading_replaces_the_first_where_it_looked():
    released = marginals_of(sample(9))
    found, first = edge_probabilities(released), first_reading(released)
    again, left = (np.triu(some) for some in (first > LEAST_LIKELY, first <= LEAST_LIKELY))
    assert (found[again] != first[again]).all()
    assert np.array_equal(found[left], first[left])
    assert (found == found.T).all()


# --- the reader: its trees, its edge sets, and what it was trained on


def expected_f1(chosen, p):
    """By its definition, over all graphs that the probabilities allow."""
    total = 0.0
    for truth in product([0, 1], repeat=len(p)):
        chance = np.prod([q if t else 1 - q for q, t in zip(p, truth, strict=True)])
        right = sum(c and t for c, t in zip(chosen, truth, strict=True))
        sizes = sum(chosen) + sum(truth)
        total += chance * (2 * right / sizes if sizes else 1.0)
    return total


def of_four(values):
    p = np.zeros((4, 4))
    p[np.triu_indices(4, 1)] = values
    return p + p.T


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_edges_have_nearly_the_largest_expected_f1(seed):
    p = np.random.default_rng(seed).beta(0.5, 0.5, 6)
    chosen = most_likely_edges(of_four(p), "f1")
    assert (chosen == chosen.T).all()
    best = max(expected_f1(edges, p) for edges in product([0, 1], repeat=6))
    assert expected_f1(chosen[np.triu_indices(4, 1)], p) >= best - 0.05


def test_a_precision_keeps_as_many_edges_as_it_allows():
    p = of_four([0.99, 0.9, 0.8, 0.3, 0.2, 0.0])
    assert [most_likely_edges(p, at).sum() // 2 for at in (1.0, 0.95, 0.89, 0.1)] == [0, 1, 3, 5]


def test_more_records_than_in_training_are_read_as_so_many():
    released = marginals_of(load("survey", n=5_000, rng=np.random.default_rng(0)))
    most = int(reader.trained_reader().trained["records"][1])
    many, as_many = (edge_probabilities(released.as_of(n)) for n in (1000 * most, most))
    assert np.array_equal(many, as_many)
    assert not np.array_equal(many, edge_probabilities(released))
    assert released.n == 5_000


NODES = {"feature": np.array([1, -1, -1, -1]), "number": np.array([0.5, -2.0, 3.0, 0.25])}
NODES |= {"right": np.array([2, 0, 0, 0]), "roots": np.array([0, 3])}


def test_the_log_odds_are_the_sum_of_the_leaves():
    columns = {"seen": np.array([0.5, 0.6]), "more": np.zeros(2), "never seen": np.full(2, 9.0)}
    found = Trees(features=("never seen", "seen"), bias=-1.0, **NODES).probabilities(columns)
    assert np.allclose(np.log(found / (1 - found)), [-1 - 2 + 0.25, -1 + 3 + 0.25])


@pytest.mark.parametrize("name", ["reader", "colliders"])
def test_what_was_trained_on_other_features_is_refused(name, tmp_path, monkeypatch):
    kept = json.loads((data_folder() / f"{name}.json").read_text())
    columns = {feature: np.zeros(1) for feature in kept["features"]}
    kept["features"][0] = "something else"
    (tmp_path / f"{name}.json").write_text(json.dumps(kept))
    monkeypatch.setattr(reader, "data_folder", lambda: tmp_path)
    for trees in reader.trained_on.__wrapped__(f"{name}.json").trees.values():
        with pytest.raises(ValueError, match=r"'something else'.*with: make models"):
            trees.probabilities(columns)
