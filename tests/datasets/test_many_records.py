"""Counts of more records than single precision or four bytes can hold, to the last one."""

import numpy as np
import pytest
import replays
from numpy.random import default_rng

from dpcgd.datasets.contingency_tables import Tables

ROWS, LARGEST = 300, 2**33
"""Of 10^12 records in all."""

FORMS = [replays.as_bits, replays.Counted]


def many(form, shape):
    rng = default_rng(0)
    codes = np.unique(rng.integers(0, shape, (ROWS, len(shape))), axis=0)
    weights = rng.integers(1, LARGEST, len(codes)) | 1
    levels = replays.levels_of(shape)
    return codes, weights, form(codes, weights, levels, ())


def counted(codes, weights, shape, variables):
    """By Python's own whole numbers."""
    cells = {}
    for row, weight in zip(codes[:, variables].tolist(), weights.tolist(), strict=True):
        cells[tuple(row)] = cells.get(tuple(row), 0) + weight
    table = np.zeros([shape[v] for v in variables], object)
    for cell, times in cells.items():
        table[cell] = times
    return table.tolist()


@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (300, 2, 200, 3)], ids=str)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_record_counts_once(form, shape):
    codes, weights, data = many(form, shape)
    assert data.n == sum(weights.tolist())
    questions = [[0], [2, 1], [0, 2], [3, 1, 2]]
    for answers in (data.counts_many(questions), Tables(data).counts_many(questions)):
        for variables, table in zip(questions, answers, strict=True):
            assert table.tolist() == counted(codes, weights, shape, variables)
    together = Tables(data).count_all(np.array([[0, 1], [2, 3]])).tables()
    assert [t.tolist() for t in together] == [
        counted(codes, weights, shape, of) for of in ([0, 1], [2, 3])
    ]


def test_one_record_more_is_seen_among_ten_to_the_twelve():
    codes, weights, data = many(replays.as_bits, (2, 3, 4, 2))
    more = weights.copy()
    more[7] += 1
    other = replays.as_bits(codes, more, data.levels, ())
    for variables in ([0], [1, 2], [0, 1, 2, 3]):
        apart = other.counts(variables) - data.counts(variables)
        assert apart.sum() == np.abs(apart).sum() == 1


@pytest.mark.parametrize("bound", [0.5, 3.0])
def test_sums_over_many_records_are_the_sums_of_their_parts(bound):
    codes, weights, data = many(replays.as_bits, (2, 3, 4, 2))
    vectors = [np.eye(k) * (v + 1.0) for v, k in enumerate((2, 3, 4, 2))]
    found = data.clipped_sums(vectors, bound=bound)
    parts = [weights // 3, weights - weights // 3]
    halves = [replays.as_bits(codes, of, data.levels, ()) for of in parts]
    sums = [half.clipped_sums(vectors, bound=bound, n=data.n) for half in halves]
    assert np.array_equal(found, sums[0] + sums[1])
    rows = np.hstack([of[code] for of, code in zip(vectors, codes.T, strict=True)])
    rows *= bound / np.maximum(np.linalg.norm(rows, axis=1), bound)[:, None]
    assert found == pytest.approx((rows * weights[:, None]).T @ rows, rel=0.2)
    assert np.trace(found) <= data.n * bound**2
