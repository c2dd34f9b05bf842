"""Contingency counts against brute force, on both sides of the collapse rule, and their memory."""

import itertools
import tracemalloc
from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.published_networks import load

SIZES = st.one_of(st.integers(1, 300), st.sampled_from([1, 63, 64, 65, 127, 128, 129]))
SEEDS = st.integers(0, 2**32 - 1)
exactly = settings(derandomize=True, deadline=None, database=None, max_examples=150)


def dataset(codes, levels):
    return Dataset(codes, {f"v{i}": range(k) for i, k in enumerate(levels)})


def drawn(rng, levels, n):
    """Random records; about one variable in four shows only one of its levels."""
    columns = [
        np.full(n, rng.integers(k)) if rng.random() < 0.25 else rng.integers(k, size=n)
        for k in levels
    ]
    return dataset(np.column_stack(columns), levels)


def brute(data, variables, records=slice(None)):
    table = np.zeros([data.cardinalities[v] for v in variables], int)
    np.add.at(table, tuple(data.codes[records, v] for v in variables), 1)
    return table


def collapsed(tables):
    return len(tables._source.weights) < tables.n


def some(rng, data):
    return [int(v) for v in rng.permutation(data.d)[: rng.integers(1, min(data.d, 5) + 1)]]


@pytest.mark.parametrize(
    ("levels", "sizes", "collapses"),
    [
        (st.lists(st.integers(1, 7), min_size=2, max_size=6), SIZES, None),
        (st.lists(st.integers(5, 7), min_size=4, max_size=6), SIZES, False),
        (st.lists(st.integers(1, 3), min_size=2, max_size=3), st.integers(110, 300), True),
    ],
)
@exactly
@given(draws=st.data())
def test_counts_equal_brute_force(levels, sizes, collapses, draws):
    levels, n, seed = draws.draw(levels), draws.draw(sizes), draws.draw(SEEDS)
    rng = np.random.default_rng(seed)
    data = drawn(rng, levels, n)
    tables = Tables(data)
    assert collapses is None or collapsed(tables) == collapses
    for variables in [some(rng, data) for _ in range(4)]:
        assert tables.shape(variables) == tuple(levels[v] for v in variables)
        np.testing.assert_array_equal(tables.counts(variables), brute(data, variables))


@pytest.mark.parametrize(("levels", "n"), [((300, 2, 1000), 500), ((300, 2), 5000)])
def test_more_than_256_levels_are_counted_exactly(levels, n):
    data = drawn(np.random.default_rng(0), levels, n)
    assert data.codes.dtype == np.uint16
    assert len(np.unique(data.codes[:, 0])) > 100
    tables = Tables(data)
    assert collapsed(tables) == (n == 5000)
    for variables in [(0,), (1, 0), (0, 1)]:
        np.testing.assert_array_equal(tables.counts(variables), brute(data, variables))


def test_constant_columns_may_be_many():
    data = dataset(np.arange(200).reshape(-1, 1) % 2 * ([1] * 2 + [0] * 70), [2] * 2 + [1] * 70)
    assert Tables(data).counts([0, 71, 1]).tolist() == [[[100, 0]], [[0, 100]]]


def test_weights_beyond_every_small_integer_type_are_exact():
    codes = np.zeros((70_000, 2), np.uint8)
    codes[-3:, 1] = 1
    tables = Tables(dataset(codes, (2, 2)))
    assert collapsed(tables)
    assert tables.counts([1, 0]).tolist() == [[69_997, 0], [3, 0]]


@exactly
@given(st.lists(st.integers(1, 7), min_size=2, max_size=5), SIZES, SEEDS)
def test_a_subsample_is_a_part_of_the_whole(levels, n, seed):
    rng = np.random.default_rng(seed)
    data = drawn(rng, levels, n)
    tables, variables = Tables(data), some(rng, data)
    whole = tables.counts(variables)
    m = int(rng.integers(0, n + 1))
    part = tables.subsample(rng.permutation(n)[:m])
    counts = part.counts(variables)
    assert part.n == m
    assert counts.sum() == m
    assert (counts >= 0).all()
    assert (counts <= whole).all()
    for v, axis in zip(variables, range(counts.ndim), strict=True):
        others = tuple(a for a in range(counts.ndim) if a != axis)
        np.testing.assert_array_equal(part.counts([v]), counts.sum(axis=others))
    np.testing.assert_array_equal(tables.counts(variables), whole)


@exactly
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), SIZES, SEEDS)
def test_a_subsample_and_the_rest_add_up_to_the_whole(levels, n, seed):
    rng = np.random.default_rng(seed)
    data = drawn(rng, levels, n)
    tables, variables = Tables(data), some(rng, data)
    order, m = rng.permutation(n), int(rng.integers(0, n + 1))
    parts = [tables.subsample(chosen).counts(variables) for chosen in (order[:m], order[m:])]
    np.testing.assert_array_equal(sum(parts), brute(data, variables))


# Seven records each: the first data set has 6 cells and is collapsed, the second has too many.
COLLAPSED = [[a, b] + [0] * 6 for a, b in [(0, 0), (1, 2), (0, 0), (1, 1), (1, 2), (0, 0), (0, 1)]]
TINY = {
    "collapsed": (COLLAPSED, (2, 3, 1, 1, 1, 1, 1, 1)),
    "not collapsed": ([row[:2] for row in COLLAPSED], (2, 3)),
}


def tiny(name):
    data = dataset(*TINY[name])
    tables = Tables(data)
    assert collapsed(tables) == (name == "collapsed")
    return data, tables


@pytest.mark.parametrize("variables", [(0, 1), (1,)])
@pytest.mark.parametrize("m", range(8))
@pytest.mark.parametrize("name", TINY)
def test_all_subsets_give_the_right_tables_the_right_number_of_times(name, m, variables):
    data, tables = tiny(name)
    found, expected = Counter(), Counter()
    for chosen in itertools.combinations(range(data.n), m):
        chosen = np.array(chosen, int)
        found[tables.subsample(chosen).counts(variables).tobytes()] += 1
        expected[brute(data, variables, chosen).tobytes()] += 1
    assert found == expected
    assert found.total() == comb(7, m)


@pytest.mark.parametrize("name", TINY)
def test_a_subsample_of_a_subsample_is_a_subsample(name):
    data, tables = tiny(name)
    found, expected = Counter(), Counter()
    for first in itertools.combinations(range(7), 5):
        part = tables.subsample(np.array(first))
        for second in itertools.combinations(range(5), 2):
            found[part.subsample(np.array(second)).counts((1, 0)).tobytes()] += 1
    for pair in itertools.combinations(range(7), 2):
        expected[brute(data, (1, 0), np.array(pair)).tobytes()] += comb(5, 3)
    assert found == expected


@pytest.mark.parametrize("name", TINY)
def test_a_record_that_is_not_there_cannot_be_chosen(name):
    _, tables = tiny(name)
    with pytest.raises(IndexError):
        tables.subsample(np.array([7]))


def uniform(levels, n):
    rng = np.random.default_rng(0)
    return dataset(np.column_stack([rng.integers(k, size=n) for k in levels]), levels)


# The last two are the largest domains that are collapsed at their n: the worst case of the rule.
@pytest.mark.parametrize(
    "make",
    [
        lambda: load("alarm", 100_000, rng=np.random.default_rng(0)),
        lambda: load("asia", 100_000, rng=np.random.default_rng(0)),
        lambda: uniform((200, 200, 200), 100_000),
        lambda: uniform((300, 300, 300), 100_000),
        lambda: uniform((33, 33, 33), 95_833),
        lambda: uniform((2,) * 12, 2731),
    ],
    ids=["alarm", "asia", "200 levels", "300 levels", "33 levels", "12 coins"],
)
def test_tables_hold_no_more_than_the_codes_again_and_a_bit_a_record(make):
    data = make()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tables = Tables(data)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert tables.n == data.n
    objects = 8192  # Python's own, whatever n
    assert held <= data.codes.nbytes + data.n / 8 + objects


@pytest.mark.parametrize("most_cells", [0, 40, 1 << 17])
def test_kept_counts_are_those_of_a_first_count_in_any_order_of_the_variables(
    most_cells, monkeypatch
):
    monkeypatch.setattr("dpcgd.datasets.shared_counts.MOST_COUNTS", most_cells)
    data = load("asia", n=500, rng=np.random.default_rng(0))
    kept = Tables(data)
    sample = kept.subsample(np.arange(0, 500, 2))
    for _ in range(2):
        for at in itertools.permutations([0, 3, 5, 6], 3):
            assert (kept.counts(at) == Tables(data).counts(at)).all()
            assert kept.counts(at).sum() == 500
            assert sample.counts(at).sum() == 250
    with pytest.raises(ValueError, match="read-only"):
        kept.counts((0, 3))[0, 0] = 1


@exactly
@given(st.lists(st.integers(1, 7), min_size=2, max_size=5), SIZES, SEEDS, st.integers(0, 40))
def test_tables_of_many_cells_are_counted_by_a_look_at_every_record(levels, n, seed, most):
    rng = np.random.default_rng(seed)
    data = drawn(rng, levels, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpcgd.datasets.bit_columns.MOST_CELLS", most)
        patch.setattr("dpcgd.datasets.bit_columns.CHUNK", 64)
        tables, asked = Tables(data), [some(rng, data) for _ in range(6)]
        found = [*tables.counts_many(asked), *map(tables.counts, asked)]
        sample = tables.subsample(np.arange(0, n, 2))
        assert sample.counts(asked[0]).sum() == len(range(0, n, 2))
    for table, variables in zip(found, asked * 2, strict=True):
        np.testing.assert_array_equal(table, brute(data, variables))


@exactly
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), SIZES, SEEDS)
def test_many_tables_at_once_equal_brute_force(levels, n, seed):
    rng = np.random.default_rng(seed)
    data = drawn(rng, levels, n)
    tables = Tables(data)
    questions = [some(rng, data) for _ in range(6)]
    for asked, table in zip(questions, tables.counts_many(questions), strict=True):
        np.testing.assert_array_equal(table, brute(data, asked))
    size = min(3, data.d)
    asked = np.array([rng.permutation(data.d)[:size] for _ in range(6)])
    counted = tables.count_all(asked)
    assert counted.levels.tolist() == [[levels[v] for v in of] for of in asked]
    for of, table in zip(asked.tolist(), counted.tables(), strict=True):
        np.testing.assert_array_equal(table, brute(data, of))


@pytest.mark.parametrize("n", [64 * 2048 - 1, 64 * 2048 + 1, 300_000])
def test_records_in_several_blocks_are_counted_exactly(n):
    rng = np.random.default_rng(0)
    data = dataset(rng.integers(0, (2, 3, 5, 8, 200), (n, 5)), (2, 3, 5, 8, 200))
    tables = Tables(data)
    for at in [(0, 1, 2, 3), (3, 1), (4, 0), (2, 3, 0)]:
        np.testing.assert_array_equal(tables.counts(at), brute(data, at))


def test_kept_subsets_are_let_go_of_where_they_are_too_many(monkeypatch):
    monkeypatch.setattr("dpcgd.datasets.shared_counts.MOST_SUBSETS", 20)
    data = load("asia", n=500, rng=np.random.default_rng(0))
    tables = Tables(data)
    for at in itertools.permutations(range(8), 3):
        np.testing.assert_array_equal(tables.counts(at), brute(data, at))
