"""Bits as they are packed, against a plain definition, in whatever batches records come."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd.datasets.bit_columns import pack, packed_bytes, zeros
from dpcgd.datasets.disk_arrays import zeros_on_disk

seeded = settings(derandomize=True, deadline=None, database=None, max_examples=100)
LEVELS = st.lists(st.sampled_from([1, 2, 3, 4, 7, 256, 257, 70_000]), min_size=2, max_size=4)
SIZES = st.lists(st.integers(0, 200), min_size=1, max_size=5).filter(any)


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


@seeded
@given(LEVELS, SIZES, st.booleans(), st.integers(0, 2**32 - 1))
def test_batches_of_any_size_give_the_bits_of_the_whole(levels, sizes, on_disk, seed):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(of, size=sum(sizes)) for of in levels])
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
    batch = [np.zeros(100, np.int8)] * 2
    with pytest.raises(ValueError, match="there are other records than at first; let nobody write"):
        pack([batch], (2, 2), n, most_bytes=most_bytes)
