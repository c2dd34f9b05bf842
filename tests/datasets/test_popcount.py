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
    """Subsets, where those with all but the last in common begin, and where counts do."""
    chosen: set[tuple] = set()
    for _ in range(tables):
        first = rng.permutation(np.flatnonzero(levels > 1))
        size = rng.integers(1, 5)
        chosen.update((*first[: size - 1].tolist(), v) for v in first[size - 1 :].tolist())
    rows = sorted(chosen, key=lambda row: (len(row), row))
    heads = [row[:-1] for row in rows]
    groups = [i for i, head in enumerate(heads) if i == 0 or head != heads[i - 1]]
    sizes = [np.prod([levels[v] - 1 for v in row]) for row in rows]
    subsets = np.array([[*row, *[-1] * (4 - len(row))] for row in rows])
    return subsets, np.array([*groups, len(rows)]), np.cumsum([0, *sizes]).astype(int)


@pytest.mark.parametrize("rows", [1, 64, 500])
@pytest.mark.parametrize("seed", range(4))
def test_counts_of_subsets_are_those_of_the_definition(seed, rows):
    rng = default_rng(seed)
    levels = np.array([2, 3, 5, 1, 2, 4, 9, 2])
    codes, weights = rng.integers(0, levels, (rows, len(levels))), rng.integers(1, 6, rows)
    width = [int(k - 1).bit_length() for k in levels]
    bits = np.concatenate([as_columns(codes[:, v], w) for v, w in enumerate(width)])
    subsets, groups, ends = drawn(rng, levels, 40)
    first, planes = np.cumsum(width) - width, as_columns(weights, 3)
    counts = np.zeros(ends[-1], np.int64)
    middle, about = bits.shape[1] // 2, (bits, planes, first, levels)
    for begin, end in ((0, middle), (middle, bits.shape[1])):
        _popcount.count_subsets(*about, begin, end, subsets, groups, ends[:-1], counts)
    expected = [
        by_definition(codes, weights, levels, [v for v in row if v >= 0]) for row in subsets
    ]
    assert counts.tolist() == [count for row in expected for count in row]
