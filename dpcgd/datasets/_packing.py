"""Codes to bits, compiled: values that stand for codes go to columns of bits in one pass.

Kept apart: numba compiles it.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pack_values(values, codes, start, columns):
    """Write bit j of `codes[values[i]]` to row j of `columns`, at bit `start + i`, for every i.

    What is written to must be zero. Returns the first i whose code is negative, or the number of
    values if there is none; nothing is written from that word on.
    """
    n, done = len(values), 0
    block = np.empty(64, np.int64)
    while done < n:
        word, offset = (start + done) >> 6, (start + done) & 63
        many = min(64 - offset, n - done)
        for i in range(many):
            block[i] = codes[values[done + i]]
            if block[i] < 0:
                return done + i
        for j in range(len(columns)):
            bits = np.uint64(0)
            for i in range(many):
                bits |= np.uint64((block[i] >> j) & 1) << np.uint64(offset + i)
            columns[j, word] |= bits
        done += many
    return n
