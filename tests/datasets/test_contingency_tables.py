"""Contingency counts against brute force, collapsed or not; their bits, memory, many records."""

import itertools
import tracemalloc
from collections import Counter
from math import comb

import numpy as np
import people
import pytest
import replays
from hypothesis import given, settings, strategies as st
from known_tables import records
from numpy.random import default_rng

from dpcgd import load
from dpcgd.datasets.bit_columns import pack, packed_bytes, zeros
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.parquet_files import zeros_on_disk

SIZES = st.one_of(st.integers(1, 300), st.sampled_from([1, 63, 64, 65, 127, 128, 129]))
SEEDS = st.integers(0, 2**32 - 1)
exactly = settings(derandomize=True, database=None, max_examples=150)


def drawn(rng, levels, n):
    """Random records; about one variable in four shows only one of its levels."""
    codes = rng.integers(levels, size=(n, len(levels)))
    return records(np.where(rng.random(len(levels)) < 0.25, codes[0], codes), levels)


def brute(data, variables, chosen=slice(None)):
    table = np.zeros([data.cardinalities[v] for v in variables], int)
    np.add.at(table, tuple(data.codes[chosen, v] for v in variables), 1)
    return table


def collapsed(tables):
    return len(tables._source.weights) < tables.n


def some(rng, data):
    return [int(v) for v in rng.permutation(data.d)[: rng.integers(1, min(data.d, 5) + 1)]]


DOMAINS = [
    (st.lists(st.integers(1, 9), min_size=2, max_size=6), SIZES, None),
    (st.lists(st.integers(5, 7), min_size=4, max_size=6), SIZES, False),
    (st.lists(st.integers(1, 3), min_size=2, max_size=3), st.integers(110, 300), True),
]


@pytest.mark.parametrize(("levels", "sizes", "collapses"), DOMAINS)
@exactly
@given(draws=st.data())
def test_counts_equal_brute_force(levels, sizes, collapses, draws):
    levels, n, seed = draws.draw(levels), draws.draw(sizes), draws.draw(SEEDS)
    rng = default_rng(seed)
    data = drawn(rng, levels, n)
    tables = Tables(data)
    assert collapses is None or collapsed(tables) == collapses
    questions = [some(rng, data) for _ in range(6)]
    for asked, table in zip(questions, tables.counts_many(questions), strict=True):
        assert tables.shape(asked) == tuple(levels[v] for v in asked)
        np.testing.assert_array_equal(table, brute(data, asked))
        np.testing.assert_array_equal(tables.counts(asked), table)
    together = np.array([rng.permutation(data.d)[: min(3, data.d)] for _ in range(6)])
    counted = tables.count_all(together)
    assert counted.levels.tolist() == [[levels[v] for v in asked] for asked in together]
    for asked, table in zip(together.tolist(), counted.tables(), strict=True):
        np.testing.assert_array_equal(table, brute(data, asked))


def test_constant_columns_may_be_many():
    data = records(np.arange(200).reshape(-1, 1) % 2 * ([1] * 2 + [0] * 70), [2] * 2 + [1] * 70)
    assert Tables(data).counts([0, 71, 1]).tolist() == [[[100, 0]], [[0, 100]]]


def test_weights_beyond_every_small_integer_type_are_exact():
    tables = Tables(records([[0, 0]] * 69_997 + [[0, 1]] * 3, (2, 2)))
    assert collapsed(tables)
    assert tables.counts([1, 0]).tolist() == [[69_997, 0], [3, 0]]


@exactly
@given(st.lists(st.integers(1, 7), min_size=2, max_size=5), SIZES, SEEDS)
def test_a_subsample_and_the_rest_are_tables_that_add_up_to_the_whole(levels, n, seed):
    rng = default_rng(seed)
    data = drawn(rng, levels, n)
    tables, variables = Tables(data), some(rng, data)
    whole = tables.counts(variables)
    order, m = rng.permutation(n), int(rng.integers(0, n + 1))
    parts = [tables.subsample(chosen) for chosen in (order[:m], order[m:])]
    counts = [part.counts(variables) for part in parts]
    np.testing.assert_array_equal(sum(counts), brute(data, variables))
    assert [part.n for part in parts] == [table.sum() for table in counts] == [m, n - m]
    assert min(table.min() for table in counts) >= 0
    for axis, v in enumerate(variables):
        others = tuple(a for a in range(len(variables)) if a != axis)
        np.testing.assert_array_equal(parts[0].counts([v]), counts[0].sum(axis=others))
    np.testing.assert_array_equal(tables.counts(variables), whole)


# Seven records each: the first data set has 6 cells and is collapsed, the second has too many.
COLLAPSED = [[a, b] + [0] * 6 for a, b in [(0, 0), (1, 2), (0, 0), (1, 1), (1, 2), (0, 0), (0, 1)]]
TINY = {
    "collapsed": (COLLAPSED, (2, 3, 1, 1, 1, 1, 1, 1)),
    "not collapsed": ([row[:2] for row in COLLAPSED], (2, 3)),
}


@pytest.mark.parametrize("variables", [(0, 1), (1,)])
@pytest.mark.parametrize("m", range(8))
@pytest.mark.parametrize("name", TINY)
def test_all_subsets_give_the_right_tables_the_right_number_of_times(name, m, variables):
    data = records(*TINY[name])
    tables = Tables(data)
    assert collapsed(tables) == (name == "collapsed")
    found, expected = Counter(), Counter()
    for chosen in itertools.combinations(range(data.n), m):
        chosen = np.array(chosen, int)
        found[tables.subsample(chosen).counts(variables).tobytes()] += 1
        expected[brute(data, variables, chosen).tobytes()] += 1
    assert (found, found.total()) == (expected, comb(7, m))


# The last two are the largest domains that are collapsed at their n: the worst case of the rule.
LARGE_TABLES = [
    lambda: load("alarm", 100_000, rng=default_rng(0)),
    lambda: load("asia", 100_000, rng=default_rng(0)),
    lambda: people.drawn(default_rng(0), (200, 200, 200), 100_000),
    lambda: people.drawn(default_rng(0), (300, 300, 300), 100_000),
    lambda: people.drawn(default_rng(0), (33, 33, 33), 95_833),
    lambda: people.drawn(default_rng(0), (2,) * 12, 2731),
]


@pytest.mark.parametrize("make", LARGE_TABLES)
def test_tables_hold_no_more_than_the_codes_again_and_a_bit_a_record(make):
    data = make()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tables = Tables(data)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert tables.n == data.n
    objects = 8192  # Python's own, whatever n
    assert held <= data.codes.nbytes + data.n / 8 + objects


LIMITS = [("MOST_COUNTS", 0), ("MOST_COUNTS", 40), ("MOST_SUBSETS", 20)]


@pytest.mark.parametrize(("limit", "most"), LIMITS)
def test_kept_counts_are_those_of_a_first_count_however_few_are_kept(limit, most, monkeypatch):
    monkeypatch.setattr(f"dpcgd.datasets.bit_columns.{limit}", most)
    data = load("asia", n=500, rng=default_rng(0))
    kept = Tables(data)
    sample = kept.subsample(np.arange(0, 500, 2))
    first = itertools.permutations([0, 3, 5, 6], 3)
    for variables in itertools.chain(first, itertools.permutations(range(8), 3)):
        np.testing.assert_array_equal(kept.counts(variables), brute(data, variables))
        assert sample.counts(variables).sum() == 250
    with pytest.raises(ValueError, match="read-only"):
        kept.counts((0, 3))[0, 0] = 1


@exactly
@given(st.lists(st.integers(1, 7), min_size=2, max_size=5), SIZES, SEEDS, st.integers(0, 40))
def test_tables_of_many_cells_are_counted_by_a_look_at_every_record(levels, n, seed, most):
    rng = default_rng(seed)
    data = drawn(rng, levels, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpcgd.datasets.bit_columns.MOST_CELLS", most)
        patch.setattr("dpcgd.datasets.bit_columns.CHUNK", 64)
        tables, asked = Tables(data), [some(rng, data) for _ in range(6)]
        found = [*tables.counts_many(asked), *map(tables.counts, asked)]
        assert tables.subsample(np.arange(0, n, 2)).counts(asked[0]).sum() == len(range(0, n, 2))
    for table, variables in zip(found, asked * 2, strict=True):
        np.testing.assert_array_equal(table, brute(data, variables))


@pytest.mark.parametrize("n", [64 * 2048 - 1, 64 * 2048 + 1, 300_000])
def test_records_in_several_blocks_are_counted_exactly(n):
    data = records(default_rng(0).integers(0, (2, 3, 5, 8, 200), (n, 5)), (2, 3, 5, 8, 200))
    tables = Tables(data)
    for at in [(0, 1, 2, 3), (3, 1), (4, 0), (2, 3, 0)]:
        np.testing.assert_array_equal(tables.counts(at), brute(data, at))


# --- bits as they are packed, in whatever batches records come

WIDE = st.lists(st.sampled_from([1, 2, 3, 4, 7, 256, 257, 70_000]), min_size=2, max_size=4)
PARTS = st.lists(st.integers(0, 200), min_size=1, max_size=5).filter(any)


def plain_bits(codes, levels):
    """Record i's bit j of variable v is bit i % 64 of word i // 64 in the row of v and j.

    Rows are filled up to a multiple of eight words.
    """
    rows, size = [], 8 * -(-len(codes) // 512)
    for column, of in zip(codes.T.tolist(), levels, strict=True):
        for j in range((of - 1).bit_length()):
            words = [0] * size
            for i, code in enumerate(column):
                words[i // 64] |= (code >> j & 1) << (i % 64)
            rows.append(words)
    return np.array(rows, np.uint64).reshape(len(rows), size)


@exactly
@given(WIDE, PARTS, st.booleans(), SEEDS)
def test_batches_of_any_size_give_the_bits_of_the_whole(levels, sizes, on_disk, seed):
    codes = default_rng(seed).integers(levels, size=(sum(sizes), len(levels)))
    parts = [list(part.T) for part in np.split(codes, np.cumsum(sizes)[:-1])]
    allocate = zeros_on_disk if on_disk else zeros
    columns = pack(parts, tuple(levels), len(codes), most_bytes=0, allocate=allocate)
    expected = plain_bits(codes, levels)
    assert np.array_equal(columns._bits, expected)
    assert columns._bits.size == 0 or columns._bits.ctypes.data % 64 == 0
    assert expected.nbytes == packed_bytes(levels, len(codes))
    assert np.array_equal(columns._planes, plain_bits(np.ones((len(codes), 1), int), [2]))


@pytest.mark.parametrize("most_bytes", [0, 10**6])
@pytest.mark.parametrize("n", [99, 101])
def test_records_that_are_too_many_or_too_few_are_noticed(n, most_bytes):
    cure = "there are other records than at first; let nobody write"
    people.refused(cure, pack, [[np.zeros(100, np.int8)] * 2], (2, 2), n, most_bytes=most_bytes)


# --- more records than single precision or four bytes can hold

ROWS, LARGEST = 300, 2**33
"""Of 10^12 records in all."""


def many(form, shape):
    rng = default_rng(0)
    codes = np.unique(rng.integers(0, shape, (ROWS, len(shape))), axis=0)
    weights = rng.integers(1, LARGEST, len(codes)) | 1
    return codes, weights, form(codes, weights, people.levels_of(shape), ())


def counted(codes, weights, shape, variables):
    """By Python's own whole numbers."""
    table = np.zeros([shape[v] for v in variables], object)
    for row, weight in zip(codes[:, variables].tolist(), weights.tolist(), strict=True):
        table[tuple(row)] += weight
    return table.tolist()


@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (300, 2, 200, 3)], ids=str)
@pytest.mark.parametrize("form", [replays.as_bits, replays.Counted])
def test_every_record_counts_once(form, shape):
    codes, weights, data = many(form, shape)
    assert data.n == sum(weights.tolist())
    questions = [[0], [2, 1], [0, 2], [3, 1, 2]]
    for answers in (data.counts_many(questions), Tables(data).counts_many(questions)):
        for variables, table in zip(questions, answers, strict=True):
            assert table.tolist() == counted(codes, weights, shape, variables)
    pairs = [[0, 1], [2, 3]]
    for pair, table in zip(pairs, Tables(data).count_all(np.array(pairs)).tables(), strict=True):
        assert table.tolist() == counted(codes, weights, shape, pair)
