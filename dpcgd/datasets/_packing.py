"""Bytes to bits, compiled: 64 records a word, wherever in a column a batch begins.

Kept apart: numba compiles it.
"""

import numpy as np
from numba import njit

ONES = np.uint64(0x0101010101010101)
"""The lowest bit of each of eight bytes."""

GATHER = np.uint64(0x0102040810204080)
"""Times this, those bits stand in the highest byte, that of the first byte lowest."""


@njit(cache=True, nogil=True)
def pack_bytes(eights, start, columns):
    """Write bit j of every byte to row j of `columns`, from bit `start` of the row on.

    `eights` holds eight bytes a word, the first one lowest, and 64 or a multiple of it in all.
    What is written to must be zero. What is beyond the end of a row must be zero bytes.
    """
    offset = np.uint64(start & 63)
    for block in range(len(eights) // 8):
        word = (start >> 6) + block
        for j in range(len(columns)):
            bits = np.uint64(0)
            for k in range(8):
                ones = (eights[8 * block + k] >> np.uint64(j)) & ONES
                bits |= ((ones * GATHER) >> np.uint64(56)) << np.uint64(8 * k)
            columns[j, word] |= bits << offset
            if offset:
                beyond = bits >> (np.uint64(64) - offset)
                if beyond:
                    columns[j, word + 1] |= beyond
