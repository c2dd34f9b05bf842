"""Sums over records of u u^T: what they are, that they are exact, and what one record may move."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from known_tables import records
from numpy.random import default_rng
from people import drawn, levels_of

from dpcgd.datasets.bit_columns import PackedRecords, pack
from dpcgd.datasets.counts import clipped_sums
from dpcgd.datasets.schema import Schema

LEVELS = (2, 3, 5, 2)


def vectors(rng):
    return [rng.normal(size=shape) for shape in zip(LEVELS, (1, 2, 3, 1), strict=True)]


def data_of(n, seed=0):
    return drawn(default_rng(seed), LEVELS, n)


def plainly(data, of, bound):
    """By the definition, a record at a time."""
    total = 0.0
    for codes in data.codes:
        u = np.concatenate([rows[code] for rows, code in zip(of, codes, strict=True)])
        u = u * min(1.0, bound / np.linalg.norm(u))
        total = total + np.outer(u, u)
    return total


@pytest.mark.parametrize("bound", [0.3, 2.0, 1e3])
def test_they_are_what_the_definition_says(bound):
    data, of = data_of(500), vectors(default_rng(1))
    found = data.clipped_sums(of, bound=bound)
    step = 2 * bound * math.sqrt(data.n / 2**52)
    assert np.abs(found - plainly(data, of, bound)).max() < data.n * step * bound * 2
    assert np.array_equal(found, found.T)


def packed(data, most_bytes):
    columns = pack([data.codes.T], LEVELS, data.n, most_bytes=most_bytes)
    return PackedRecords(columns, Schema(levels_of(LEVELS)))


def test_parts_bits_and_weights_give_the_same_to_the_last_digit():
    data, of = data_of(10_001), vectors(default_rng(2))
    whole = data.clipped_sums(of, bound=1.5)
    cut = data.n // 3  # other sizes than batches have
    parts = [(part.T, None) for part in (data.codes[:cut], data.codes[cut:])]
    for order in (parts, parts[::-1]):
        assert np.array_equal(whole, clipped_sums(order, of, bound=1.5, n=data.n))
    sums = [records(part.T, LEVELS).clipped_sums(of, bound=1.5, n=data.n) for part, _ in parts]
    assert np.array_equal(whole, sum(sums))
    for most_bytes in (0, 1 << 20):
        assert np.array_equal(whole, packed(data, most_bytes).clipped_sums(of, bound=1.5))
    assert len(packed(data, 1 << 20).columns.weights) < 61


def upper(sums):
    """As it is released: the diagonal counts half."""
    at = np.triu_indices(len(sums))
    return sums[at] * np.where(at[0] == at[1], math.sqrt(0.5), 1.0)


@settings(derandomize=True, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(-3, 3))
def test_no_record_moves_them_by_more_than_the_bound_squared(seed, size):
    rng, bound = default_rng(seed), 10.0**size
    of = [10 ** rng.uniform(-3, 3) * part for part in vectors(rng)]
    same, one, other = data_of(3, seed).codes
    pair = (records([same, last], LEVELS).clipped_sums(of, bound=bound) for last in (one, other))
    here, there = map(upper, pair)
    assert np.linalg.norm(here - there) <= bound**2 * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 1000, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("seed", range(20))
def test_a_record_adds_no_more_than_the_bound_squared_on_the_coarsest_grid(n, seed):
    rng = default_rng(seed)
    of, codes = vectors(rng), rng.integers(0, LEVELS)[:, None]
    added = clipped_sums([(codes, None)], of, bound=0.7, n=n)
    assert np.trace(added) <= 0.49 * (1 + 1e-12)
    assert np.linalg.norm(added) <= 0.49 * (1 + 1e-12)


@pytest.mark.parametrize("weight", [3, 2**24 + 1, 2**31 + 1, 10**12 - 1])
def test_a_record_among_many_moves_exactly_what_it_moves_alone(weight):
    of, n = vectors(default_rng(4)), 10**12
    crowd, one, other = (default_rng(seed).integers(0, LEVELS)[:, None] for seed in (5, 6, 7))

    def added(*codes, weights=None):
        return clipped_sums([(np.hstack(codes), weights)], of, bound=1.5, n=n)

    told = [added(crowd, last, weights=np.array([weight, 1])) for last in (one, other)]
    assert np.array_equal(told[0] - told[1], added(one) - added(other))
    assert np.array_equal(told[0] - added(one), weight * added(crowd))


def test_two_records_reach_it():
    # u = (b, 0) and w = (0, b): half of (b^4 + b^4) is the bound to the fourth
    of = [np.array([[5.0], [0.0]]), np.array([[0.0], [7.0]])]
    pair = (records([codes], (2, 2)).clipped_sums(of, bound=2.0) for codes in ((0, 0), (1, 1)))
    here, there = map(upper, pair)
    assert np.linalg.norm(here - there) == pytest.approx(4.0, rel=1e-6)


def test_without_length_there_is_nothing_to_add():
    assert not data_of(10).clipped_sums([np.zeros((k, 1)) for k in LEVELS], bound=0.0).any()
