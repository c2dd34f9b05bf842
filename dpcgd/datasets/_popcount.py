"""The hot loop of the package, compiled: popcounts of intersected bit columns.

Kept apart: numba compiles it.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def _ones(typing_context, word):
    """Number of one bits in a word: the processor's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def _narrow(parent, bits, first, width, code, child):
    """Write to `child` the rows of `parent` whose variable has this code."""
    for word in range(len(child)):
        child[word] = parent[word]
    for j in range(width):
        flip = np.uint64(0) if (code >> j) & 1 else ~np.uint64(0)
        column = bits[first + j]
        for word in range(len(child)):
            child[word] &= column[word] ^ flip


@njit(cache=True, nogil=True)
def count_cells(bits, planes, first, width, levels):
    """Weighted number of rows in each cell, in C order of `levels`.

    `bits[first[v] + j]` holds bit j of variable v's codes, one bit a row; `planes[j]` holds bit j
    of the rows' weights, and is zero where a row is only padding.
    """
    depth, words = len(levels), bits.shape[1]
    masks = np.empty((depth + 1, words), np.uint64)
    masks[0] = ~np.uint64(0)
    cell = np.zeros(depth, np.int64)
    counts = np.empty(np.prod(levels), np.int64)
    changed = 0
    for i in range(len(counts)):
        for v in range(changed, depth):
            _narrow(masks[v], bits, first[v], width[v], cell[v], masks[v + 1])
        total = 0
        for j in range(len(planes)):
            ones = 0
            for word in range(words):
                # numba itself gives the first argument, which its types do not know
                ones += _ones(masks[depth][word] & planes[j][word])  # type: ignore[call-arg]
            total += ones << j
        counts[i] = total
        changed = depth - 1
        while changed > 0 and cell[changed] == levels[changed] - 1:
            cell[changed] = 0
            changed -= 1
        cell[changed] += 1
    return counts
