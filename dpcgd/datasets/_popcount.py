"""Compiled inner loops: contingency tables from population counts of bit columns.

A table follows from a few counts of each subset of its variables. Such a count is the number of
rows in which, for every variable v of the subset, the code of v has all bits of a chosen code c_v
>= 1. Binary variables need one count a subset. Many tables share subsets, so the counts are kept.
The loops use plain numbers, without slices and without calls, so that they compile fast.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

BLOCK = 2048
"""Words of a column in a block: a mask fits in the first cache, all columns in the second."""

SPREAD = 0x9E3779B1
"""Multiplier that spreads keys over a hash table."""


@intrinsic
def _ones(typing_context, word):
    """Number of one bits in a word, by the processor's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True, error_model="numpy")
def count_subsets(  # noqa: C901  (a function of its own would cost its own compilation)
    bits, planes, first, levels, subsets, groups, starts, counts, masks, codes
):
    """Count the rows for each subset, and add them to its counts.

    `bits[first[v] + j]` holds bit j of variable v's codes, one bit a row; `planes[j]` holds bit j
    of the rows' weights, and is zero for rows that are only padding. A row of `subsets` holds
    variables of two levels or more, then -1. The subsets from `groups[g]` to `groups[g + 1]` differ
    in their last variable only. The counts of subset i start at `starts[i]`. There is one for every
    choice of a code from 1 on for each variable, the last variable fastest: the number of rows
    whose codes have all bits of the chosen codes. `codes` is working memory for a choice, at first
    ones, and `masks` for blocks of words: row j marks the rows that have the bits of the first j
    codes.
    """
    end = bits.shape[1]
    for word in range(0, end, BLOCK):
        size, here = np.uint64(min(BLOCK, end - word)), np.uint64(word)  # no sign: no look at it
        for shift in range(planes.shape[0]):
            for w in range(size):
                masks[0, w] = planes[shift, here + w]
            for g in range(len(groups) - 1):
                i, before, choice, changed = groups[g], 0, 0, 0
                while before + 1 < subsets.shape[1] and subsets[i, before + 1] >= 0:
                    before += 1
                while changed >= 0:
                    for j in range(changed, before):
                        held, code, column = j, codes[j], first[subsets[i, j]]
                        while code > 0:
                            if code & 1:
                                for w in range(size):
                                    masks[j + 1, w] = masks[held, w] & bits[column, here + w]
                                held = j + 1
                            column += 1
                            code >>= 1
                    for k in range(i, groups[g + 1]):
                        v = subsets[k, before]
                        begin = starts[k] + choice * (levels[v] - 1) - 1
                        for last in range(1, levels[v]):
                            held, code, column, ones = before, last, first[v], 0
                            while code > 1:
                                if code & 1:
                                    for w in range(size):
                                        masks[before + 1, w] = (
                                            masks[held, w] & bits[column, here + w]
                                        )
                                    held = before + 1
                                column += 1
                                code >>= 1
                            for w in range(size):
                                # numba itself gives the first argument, which its types lack
                                ones += _ones(masks[held, w] & bits[column, here + w])  # type: ignore
                            counts[begin + last] += ones << shift
                    choice, changed = choice + 1, before - 1
                    while changed >= 0 and codes[changed] == levels[subsets[i, changed]] - 1:
                        codes[changed] = 1
                        changed -= 1
                    if changed >= 0:
                        codes[changed] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def find_subsets(ordered, levels, keys, places, ends, numbers, origins, known):
    """Number every subset of the variables of each table; return how many subsets are known.

    A subset's key is the number of the subset without its last variable, and that variable. `keys`
    holds the keys of the known subsets, `places` is a hash table with their numbers. Number 0 is
    the empty subset. The counts of subset i go from `ends[i]` to `ends[i + 1]`. `origins` holds for
    each new subset where it first occurred. A table's subsets have a bit for each of its variables.
    """
    begun, most = known, len(places) - 1
    for i in range(ordered.shape[0]):
        last = 0
        for subset in range(1, numbers.shape[1]):
            if subset >> last > 1:
                last += 1
            before, v = numbers[i, subset ^ (1 << last)], ordered[i, last]
            key = before * len(levels) + v
            place = key * SPREAD >> 8 & most
            while places[place] > 0 and keys[places[place]] != key:
                place = (place + 1) & most
            if places[place] == 0:
                places[place], keys[known] = known, key
                origins[known - begun] = i * numbers.shape[1] + subset
                many = (ends[before + 1] - ends[before]) * (levels[v] - 1)
                ends[known + 1] = ends[known] + many
                known += 1
            numbers[i, subset] = places[place]
    return known


@njit(cache=True, nogil=True, error_model="numpy")
def fill_tables(  # noqa: C901  (as above)
    shapes, strides, numbers, ends, counts, starts, begins, cells, flat
):
    """Fill in tables, one after the other in C order.

    `shapes` and `strides` belong to a table's variables in the order of `numbers`. The counts of a
    subset go to the cells in which every other variable has code 0; these follow from the cells of
    the subset without its last variable. `begins` and `cells` are working memory for them.
    """
    begins[0], begins[1], cells[0] = 0, 1, 0
    for i in range(len(starts) - 1):
        start, done = starts[i], 1
        flat[start] = counts[0]
        for last in range(shapes.shape[1]):
            for before in range(1 << last):
                subset = before | 1 << last
                count = ends[numbers[i, subset]]
                for c in range(begins[before], begins[before + 1]):
                    for code in range(1, shapes[i, last]):
                        cells[done] = cells[c] + code * strides[i, last]
                        flat[start + cells[done]] = counts[count]
                        count += 1
                        done += 1
                begins[subset + 1] = done
        for j in range(shapes.shape[1]):  # from codes that hold a code's bits to the code itself
            bit, stride, k = 1, strides[i, j], shapes[i, j]
            while bit < k:
                for code in range(k - bit):
                    if code & bit == 0:
                        for first in range(start + code * stride, starts[i + 1], stride * k):
                            for cell in range(first, first + stride):
                                flat[cell] -= flat[cell + bit * stride]
                bit <<= 1
