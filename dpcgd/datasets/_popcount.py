"""The hot loop of the package, compiled: contingency tables from population counts of bit columns.

A table follows from a few counts of each subset of its variables: with variable v's code at least
c_v >= 1 in the order of bits, c_v a part of it, for every v of the subset. Binary variables take
one such count a subset, and subsets are shared by many tables, so they are kept. Kept apart: numba
compiles it.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

BLOCK = 2048
"""Words of a column at a time: a mask stays in the first cache, all columns in the second."""


@intrinsic
def _ones(typing_context, word):
    """Number of one bits in a word: the processor's own instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def _intersect(a, b, into):
    for word in range(len(a)):
        into[word] = a[word] & b[word]


@njit(cache=True, nogil=True)
def _common(a, b, c):
    """Number of one bits that three columns share."""
    ones = 0
    for word in range(len(a)):
        # numba itself gives the first argument, which its types do not know
        ones += _ones(a[word] & b[word] & c[word])  # type: ignore[call-arg]
    return ones


@njit(cache=True, nogil=True)
def _column(bits, first, code, begin, end, scratch):
    """Rows whose code has all bits of this one: a bit column itself, or several in `scratch`."""
    j = first
    while not code & 1:
        code >>= 1
        j += 1
    column = bits[j][begin:end]
    while code > 1:
        code >>= 1
        j += 1
        if code & 1:
            _intersect(column, bits[j][begin:end], scratch)
            column = scratch[: end - begin]
    return column


@njit(cache=True, nogil=True)
def _add(bits, first, levels, at, begin, end, rows, masks, shift, code, found):
    """Add the rows to `found`, for every choice of codes from 1, the last one fastest.

    The intersection of `rows` with the columns of all variables but the last two goes to `masks`,
    one after the other; the last two are only counted.
    """
    size, deepest = end - begin, len(at) - 1
    changed, other = 0, rows
    for i in range(len(found)):
        for v in range(changed, deepest + 1):
            column = _column(bits, first[at[v]], code[v], begin, end, masks[v])
            before = min(v, deepest - 1)
            mask = masks[before - 1][:size] if before > 0 else rows
            if v == deepest:
                found[i] += _common(mask, other, column) << shift
            elif v == deepest - 1:
                other = column
            else:
                _intersect(mask, column, masks[v])
        changed = deepest
        while changed > 0 and code[changed] == levels[at[changed]] - 1:
            code[changed] = 1
            changed -= 1
        code[changed] += 1


@njit(cache=True, nogil=True)
def count_subsets(bits, planes, first, levels, subsets, ends, begin, end, counts):
    """Count the rows of words `begin` to `end` for each subset, and add them to its counts.

    `bits[first[v] + j]` holds bit j of variable v's codes, one bit a row; `planes[j]` holds bit j
    of the rows' weights, and is zero where a row is only padding. A row of `subsets` holds
    variables, then -1; its counts are those from its entry of `ends` to the next: one for every
    choice of a code from 1 for each variable, of the rows whose codes have all bits of those
    chosen. All subsets look at one block of words before the next is read.
    """
    masks = np.empty((subsets.shape[1], BLOCK), np.uint64)
    code = np.empty(subsets.shape[1], np.int64)
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        for shift in range(len(planes)):
            rows = planes[shift][start:stop]
            for i in range(len(subsets)):
                depth = 0
                while depth < len(code) and subsets[i, depth] >= 0:
                    code[depth] = 1
                    depth += 1
                at, found = subsets[i][:depth], counts[ends[i] : ends[i + 1]]
                _add(bits, first, levels, at, start, stop, rows, masks, shift, code, found)


@njit(cache=True, nogil=True)
def _find(keys, key):
    """Where a key is or belongs in a hash table with a power of two places."""
    place = ((key ^ key >> 15) * 0x9E3779B1 >> 8) & (len(keys) - 1)
    while keys[place] != key and keys[place] >= 0:
        place = (place + 1) & (len(keys) - 1)
    return place


@njit(cache=True, nogil=True)
def enter_all(keys, numbers, into_keys, into_numbers):
    """Enter the numbers of one hash table into another."""
    for i in range(len(keys)):
        if keys[i] >= 0:
            place = _find(into_keys, keys[i])
            into_keys[place], into_numbers[place] = keys[i], numbers[i]


@njit(cache=True, nogil=True)
def _by_levels(variables, levels, ordered):
    """Few levels first, which is faster; equal ones by number."""
    for i in range(len(variables)):
        v, at = variables[i], i
        while at > 0 and (levels[ordered[at - 1]], ordered[at - 1]) > (levels[v], v):
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = v


@njit(cache=True, nogil=True)
def find_subsets(asked, levels, keys, places, ends, known):
    """Number every subset of the variables of each table asked for.

    A subset's key is the number of the subset without its last variable, and that variable.
    `keys` and `places` are a hash table from keys to numbers, of which `known` are taken; the
    counts of subset i go from `ends[i]` to `ends[i + 1]`. Number 0 is the empty one. Returns the
    variables of each table, those with few levels first; the numbers of their subsets; and the
    subsets that are new, a row each, then -1.
    """
    tables, depth = asked.shape
    ordered = np.empty((tables, depth), np.int64)
    numbers = np.zeros((tables, 1 << depth), np.int64)
    new = np.full((tables << depth, depth), -1)
    count = 0
    for i in range(tables):
        _by_levels(asked[i], levels, ordered[i])
        last = -1
        for subset in range(1, 1 << depth):
            if subset == 1 << (last + 1):
                last += 1
            key = numbers[i, subset ^ (1 << last)] * len(levels) + ordered[i, last]
            place = _find(keys, key)
            if keys[place] < 0:
                number = known + count
                keys[place], places[place] = key, number
                size, at = 1, 0
                for v in range(depth):
                    if subset >> v & 1:
                        size *= levels[ordered[i, v]] - 1
                        new[count, at] = ordered[i, v]
                        at += 1
                ends[number + 1] = ends[number] + size
                count += 1
            numbers[i, subset] = places[place]
    return ordered, numbers, new[:count]


@njit(cache=True, nogil=True)
def _place(found, levels, strides, depth, code, table):
    """Write the counts of a subset to the cells where every other variable has code 0."""
    cell = 0
    for v in range(depth):
        code[v] = 1
        cell += strides[v]
    for i in range(len(found)):
        table[cell] = found[i]
        v = depth - 1
        while v >= 0 and code[v] == levels[v] - 1:
            cell -= (code[v] - 1) * strides[v]
            code[v] = 1
            v -= 1
        if v >= 0:
            code[v] += 1
            cell += strides[v]


@njit(cache=True, nogil=True)
def _take_apart(table, k, stride):
    """From counts of codes that hold a code's bits to counts of the code itself, on one axis."""
    bit = 1
    while bit < k:
        for start in range(0, len(table), stride * k):
            for code in range(k - bit):
                if not code & bit:
                    here = start + code * stride
                    for i in range(here, here + stride):
                        table[i] -= table[i + bit * stride]
        bit <<= 1


@njit(cache=True, nogil=True)
def cells_of(asked, levels):
    """Cells of all tables together."""
    total = 0
    for i in range(len(asked)):
        cells = 1
        for v in asked[i]:
            cells *= levels[v]
        total += cells
    return total


@njit(cache=True, nogil=True)
def fill_tables(asked, levels, ordered, numbers, ends, counts):
    """The tables asked for, one after the other in C order, and where each begins."""
    tables, depth = asked.shape
    starts = np.zeros(tables + 1, np.int64)
    for i in range(tables):
        starts[i + 1] = starts[i] + cells_of(asked[i : i + 1], levels)
    flat = np.zeros(starts[tables], np.int64)
    strides = np.zeros(len(levels), np.int64)
    room = np.empty((3, depth), np.int64)
    code, of_levels, of_strides = room[0], room[1], room[2]
    for i in range(tables):
        table, stride = flat[starts[i] : starts[i + 1]], 1
        for v in asked[i, ::-1]:
            strides[v] = stride
            stride *= levels[v]
        for subset in range(1 << depth):
            size, number = 0, numbers[i, subset]
            for j in range(depth):
                if subset >> j & 1:
                    v = ordered[i, j]
                    of_levels[size], of_strides[size] = levels[v], strides[v]
                    size += 1
            _place(
                counts[ends[number] : ends[number + 1]], of_levels, of_strides, size, code, table
            )
        for v in asked[i]:
            _take_apart(table, levels[v], strides[v])
    return flat, starts
