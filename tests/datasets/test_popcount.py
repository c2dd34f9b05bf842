"""Counts of subsets by the compiled loop against their definition."""

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd.datasets import _popcount


def by_definition(codes, weights, levels, subset):
    """For each choice of codes from 1, the rows that have all bits of it; the last one fastest."""
    found = []
    for chosen in np.ndindex(*(levels[v] - 1 for v in subset)):
        has = np.ones(len(codes), bool)
        for v, code in zip(subset, np.array(chosen, int) + 1, strict=True):
            has &= (codes[:, v] & code) == code
        found.append(weights[has].sum())
    return found


def as_columns(values, width):
    """Bit j of the values in row j, 64 to a word."""
    padded = np.zeros(-(-len(values) // 64) * 64, np.int64)
    padded[: len(values)] = values
    bits = [np.packbits(padded >> j & 1, bitorder="little").view("<u8") for j in range(width)]
    return np.array(bits, np.uint64).reshape(width, len(padded) // 64)


def drawn(rng, levels, tables):
    """Subsets, some of them with much in common, and where the counts of each begin and end."""
    subsets = np.full((tables, 4), -1)
    for row in subsets:
        size = rng.integers(1, 5)
        row[:size] = rng.permutation(len(levels))[:size]
    sizes = [np.prod([levels[v] - 1 for v in row if v >= 0]) for row in subsets]
    return subsets, np.cumsum([0, *sizes]).astype(int)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 14])
@pytest.mark.parametrize("rows", [1, 64, 500])
@pytest.mark.parametrize("seed", range(4))
def test_counts_of_subsets_are_those_of_the_definition(seed, rows, at_once, monkeypatch):
    rng = default_rng(seed)
    levels = np.array([2, 3, 5, 1, 2, 4, 9, 2])
    codes, weights = rng.integers(0, levels, (rows, len(levels))), rng.integers(1, 6, rows)
    width = [int(k - 1).bit_length() for k in levels]
    bits = np.concatenate([as_columns(codes[:, v], w) for v, w in enumerate(width)])
    subsets, ends = drawn(rng, levels, 40)
    first, planes = np.cumsum(width) - width, as_columns(weights, 3)
    counts = np.zeros(ends[-1], np.int64)
    middle = bits.shape[1] // 2
    monkeypatch.setattr(_popcount, "MOST_AT_ONCE", at_once)
    count = _popcount.count_subsets
    if at_once != 1 << 14:  # compiled, it is a constant
        count = count.py_func
    for begin, end in ((0, middle), (middle, bits.shape[1])):
        count(bits, planes, first, levels, subsets, ends, begin, end, counts)
    expected = [
        by_definition(codes, weights, levels, [v for v in row if v >= 0]) for row in subsets
    ]
    assert counts.tolist() == [count for of in expected for count in of]


def test_more_counts_than_are_sorted_together_are_exact():
    rng, levels = default_rng(0), np.full(12, 4)
    codes, weights = rng.integers(0, levels, (200, 12)), np.ones(200, int)
    bits = np.concatenate([as_columns(codes[:, v], 2) for v in range(12)])
    subsets, ends = drawn(rng, levels, 600)
    assert ends[-1] > _popcount.MOST_AT_ONCE
    counts, first = np.zeros(ends[-1], np.int64), np.arange(0, 24, 2)
    planes = as_columns(weights, 1)
    _popcount.count_subsets(bits, planes, first, levels, subsets, ends, 0, bits.shape[1], counts)
    expected = [
        by_definition(codes, weights, levels, [v for v in row if v >= 0]) for row in subsets
    ]
    assert counts.tolist() == [count for of in expected for count in of]
