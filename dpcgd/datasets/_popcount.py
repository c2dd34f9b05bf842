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

MOST_AT_ONCE = 1 << 14
"""Counts that are sorted together, by the columns that they share."""


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
def _common(mask, column):
    """Number of one bits that two columns share."""
    ones = 0
    for word in range(len(mask)):
        # numba itself gives the first argument, which its types do not know
        ones += _ones(mask[word] & column[word])  # type: ignore[call-arg]
    return ones


@njit(cache=True, nogil=True)
def _common_of_four(mask, a, b, c, d):
    """Numbers of one bits that a column shares with each of four others, read once for all."""
    of_a, of_b, of_c, of_d = 0, 0, 0, 0
    for word in range(len(mask)):
        held = mask[word]
        of_a += _ones(held & a[word])  # type: ignore[call-arg]
        of_b += _ones(held & b[word])
        of_c += _ones(held & c[word])
        of_d += _ones(held & d[word])
    return of_a, of_b, of_c, of_d


@njit(cache=True, nogil=True)
def _by(key, numbers, ordered):
    """Those with a small key first, equal ones by number; may take the place of the numbers."""
    for i in range(len(numbers)):
        v, at = numbers[i], i
        while at > 0 and (key[ordered[at - 1]], ordered[at - 1]) > (key[v], v):
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = v


@njit(cache=True, nogil=True)
def _bits_in(subset, first, columns):
    """Columns of all variables of a subset."""
    found = 0
    for v in subset:
        if v >= 0:
            found += (first[v + 1] if v + 1 < len(first) else columns) - first[v]
    return found


@njit(cache=True, nogil=True)
def _columns_of(first, levels, subsets, rows):
    """Write which columns each count of these subsets is about: how many, then their numbers."""
    code, done = np.empty(subsets.shape[1], np.int64), 0
    for i in range(len(subsets)):
        size, many = 0, 1
        while size < len(code) and subsets[i, size] >= 0:
            code[size] = 1
            many *= levels[subsets[i, size]] - 1
            size += 1
        for at in range(done, done + many):
            for v in range(size):
                column, left = first[subsets[i, v]], code[v]
                while left > 0:
                    if left & 1:
                        rows[at, 0] += 1
                        rows[at, rows[at, 0]] = column
                    column += 1
                    left >>= 1
            v = size - 1
            while v > 0 and code[v] == levels[subsets[i, v]] - 1:
                code[v] = 1
                v -= 1
            code[v] += 1
        done += many


@njit(cache=True, nogil=True)
def _in_order(rows, most, order):
    """Write where rows of numbers below `most` go for lexicographic order."""
    before = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        order[i] = i
    for column in range(rows.shape[1] - 1, -1, -1):
        place = np.zeros(most + 1, np.int64)
        for i in range(len(rows)):
            before[i] = order[i]
            place[rows[i, column] + 1] += 1
        for number in range(most):
            place[number + 1] += place[number]
        for row in before:
            order[place[rows[row, column]]] = row
            place[rows[row, column]] += 1


@njit(cache=True, nogil=True)
def _by_prefix(first, levels, subsets, columns, rows, order):
    """Write the columns of each count, and an order in which equal beginnings are neighbours.

    First in each come the columns that most of them have.
    """
    rare = np.zeros(columns, np.int64)
    _columns_of(first, levels, subsets, rows)
    for i in range(len(rows)):
        for at in range(1, rows[i, 0] + 1):
            rare[rows[i, at]] -= 1
    for i in range(len(rows)):
        _by(rare, rows[i, 1 : rows[i, 0] + 1], rows[i, 1:])
    _in_order(rows, max(columns, rows.shape[1]), order)


@njit(cache=True, nogil=True)
def _alike(one, other, most):
    """With how many same numbers both begin, of so many."""
    same = 0
    while same < most and one[same] == other[same]:
        same += 1
    return same


@njit(cache=True, nogil=True)
def _count_rows(bits, rows, order, begin, end, masks, shift, counts):
    """Count the rows of a block that have all of some columns, for each choice of columns.

    `masks[0]` are those that are counted at all; each further one has another column, too, and
    holds for all choices that begin like that.
    """
    size, depth, i = end - begin, 0, 0
    while i < len(order):
        row = rows[order[i]]
        last = row[0]
        same = _alike(row[1:], rows[order[i - 1], 1:], min(depth, last - 1))
        depth = last - 1
        for v in range(same, depth):
            _intersect(masks[v][:size], bits[row[v + 1], begin:end], masks[v + 1])
        mask, stop = masks[depth][:size], i + 1
        while (
            stop < len(order)
            and rows[order[stop], 0] == last
            and _alike(row[1:], rows[order[stop], 1:], depth) == depth
        ):
            stop += 1
        while i + 4 <= stop:
            a, b, c, d = order[i], order[i + 1], order[i + 2], order[i + 3]
            of_a, of_b, of_c, of_d = _common_of_four(
                mask,
                bits[rows[a, last], begin:end],
                bits[rows[b, last], begin:end],
                bits[rows[c, last], begin:end],
                bits[rows[d, last], begin:end],
            )
            counts[a] += of_a << shift
            counts[b] += of_b << shift
            counts[c] += of_c << shift
            counts[d] += of_d << shift
            i += 4
        while i < stop:
            counts[order[i]] += _common(mask, bits[rows[order[i], last], begin:end]) << shift
            i += 1


@njit(cache=True, nogil=True)
def count_subsets(bits, planes, first, levels, subsets, ends, begin, end, counts):
    """Count the rows of words `begin` to `end` for each subset, and add them to its counts.

    `bits[first[v] + j]` holds bit j of variable v's codes, one bit a row; `planes[j]` holds bit j
    of the rows' weights, and is zero where a row is only padding. A row of `subsets` holds
    variables, then -1; its counts are those from its entry of `ends` to the next: one for every
    choice of a code from 1 for each variable, the last one fastest, of the rows whose codes have
    all bits of those chosen. Many subsets look at one block of words before the next is read.
    """
    i = 0
    while i < len(subsets):
        j = i + 1
        while j < len(subsets) and ends[j + 1] - ends[i] <= MOST_AT_ONCE:
            j += 1
        some = counts[ends[i] : ends[j]]
        order, most = np.empty(len(some), np.int64), 0
        for subset in subsets[i:j]:
            most = max(most, _bits_in(subset, first, len(bits)))
        rows = np.zeros((len(some), most + 1), np.int64)
        masks = np.empty((most + 1, BLOCK), np.uint64)
        _by_prefix(first, levels, subsets[i:j], len(bits), rows, order)
        for start in range(begin, end, BLOCK):
            stop = min(start + BLOCK, end)
            for shift in range(len(planes)):
                plane = planes[shift, start:stop]
                _intersect(plane, plane, masks[0])
                _count_rows(bits, rows, order, start, stop, masks, shift, some)
        i = j


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
    numbers = np.zeros((tables, 1 << depth), np.int32)
    new = np.empty((tables << depth, depth), np.int64)
    count = 0
    for i in range(tables):
        _by(levels, asked[i], ordered[i])
        last = _alike(ordered[i - 1], ordered[i], depth) - 1 if i else -1
        for subset in range(1, 1 << (last + 1)):
            numbers[i, subset] = numbers[i - 1, subset]
        for subset in range(1 << (last + 1), 1 << depth):
            if subset == 1 << (last + 1):
                last += 1
            key = numbers[i, subset ^ (1 << last)] * len(levels) + ordered[i, last]
            place = _find(keys, key)
            if keys[place] < 0:
                number = known + count
                keys[place], places[place] = key, number
                size, at = 1, 0
                new[count] = -1
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
def _place(ordered, numbers, levels, strides, ends, counts, begins, cells, table):
    """Write the counts of each subset to the cells where every other variable has code 0.

    The cells of a subset follow from those of the subset without its last variable.
    """
    begins[0], begins[1], cells[0], done = 0, 1, 0, 1
    table[0] = counts[0]
    for last in range(len(ordered)):
        levels_here, stride = levels[ordered[last]], strides[ordered[last]]
        for before in range(1 << last):
            subset = before | 1 << last
            at = ends[numbers[subset]]
            for i in range(begins[before], begins[before + 1]):
                for code in range(1, levels_here):
                    cells[done] = cells[i] + code * stride
                    table[cells[done]] = counts[at]
                    at += 1
                    done += 1
            begins[subset + 1] = done


@njit(cache=True, nogil=True)
def _take_apart(table, k, stride):
    """From counts of codes that hold a code's bits to counts of the code itself, on one axis."""
    bit = 1
    while bit < k:
        for code in range(k - bit):
            if code & bit:
                continue
            if stride == 1:  # the longer loop is the inner one
                for i in range(code, len(table), k):
                    table[i] -= table[i + bit]
            else:
                for here in range(code * stride, len(table), stride * k):
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
    tables = len(asked)
    starts = np.zeros(tables + 1, np.int64)
    for i in range(tables):
        starts[i + 1] = starts[i] + cells_of(asked[i : i + 1], levels)
    flat, most = np.empty(starts[tables], np.int64), 0
    for i in range(tables):
        most = max(most, starts[i + 1] - starts[i])
    strides, cells = np.zeros(len(levels), np.int64), np.empty(most, np.int64)
    begins = np.empty(numbers.shape[1] + 1, np.int64)
    for i in range(tables):
        table, stride = flat[starts[i] : starts[i + 1]], 1
        for v in asked[i, ::-1]:
            strides[v] = stride
            stride *= levels[v]
        _place(ordered[i], numbers[i], levels, strides, ends, counts, begins, cells, table)
        for v in asked[i]:
            _take_apart(table, levels[v], strides[v])
    return flat, starts
