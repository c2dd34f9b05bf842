"""Compiled statistics of many tables at once; tests compare each with its definition.

Arguments are tables one after the other in C order, the start of each table, and the levels of its
axes: x, y and the conditioning variables. Sums run in the order of the strata, then of x, then of
y, so they are the same on every processor. What rounding loses of a sum is kept beside it: one
record could move the rounding of all later strata in one direction. Numba compiles this module.
"""

import math

import numpy as np
from numba import njit


def kendall_zs(counts, starts, levels):
    """:func:`~dpcgd.statistics.rank_statistics.kendall_z` of each table."""
    values, lower = np.zeros(len(levels)), np.empty(levels.max(initial=0), counts.dtype)
    _write_kendall_zs(counts, starts, levels, lower, values)
    return values


@njit(cache=True, nogil=True)
def _added(total, lost, term):
    """A sum with one more term, and what rounding has lost of it so far (Neumaier 1974)."""
    new = total + term
    if abs(total) >= abs(term):
        return new, lost + (total - new + term)
    return new, lost + (term - new + total)


@njit(cache=True, nogil=True, error_model="numpy")
def _write_kendall_zs(counts, starts, levels, lower, values):
    """Write the z of each table; `lower` is working memory for the records at lower levels of x.

    A stratum gives concordant minus discordant pairs of records, and the number of records; ties
    count 0. Most runs use this first, so it has no slice and no call that compiles slowly.
    """
    for i in range(len(levels)):
        rows, columns = levels[i, 0], levels[i, 1]
        strata = (starts[i + 1] - starts[i]) // (rows * columns)
        value, total, lost, of_total = 0.0, 0.0, 0.0, 0.0
        for s in range(strata):
            concordant, n = 0, 0
            for y in range(columns):
                lower[y] = 0
            for x in range(rows):
                left, first = 0, starts[i] + x * columns * strata + s
                for y in range(columns):
                    concordant += counts[first + y * strata] * (2 * left + lower[y] - n)
                    left += lower[y]
                for y in range(columns):
                    lower[y] += counts[first + y * strata]
                    n += counts[first + y * strata]
            value, lost = _added(value, lost, 9 * concordant / (2 * n + 5))
            total, of_total = _added(total, of_total, 4.5 * n * (n - 1) / (2 * n + 5))
        if total > 0:
            values[i] = (value + lost) / math.sqrt(total + of_total)


@njit(cache=True, nogil=True)
def _sizes(table, s, of_x, of_y):
    """Write the margins of one stratum into arrays, and return its number of records."""
    of_x[:], of_y[:] = 0, 0
    n = 0
    for x in range(table.shape[0]):
        for y in range(table.shape[1]):
            of_x[x] += table[x, y, s]
            of_y[y] += table[x, y, s]
        n += of_x[x]
    return n


@njit(cache=True, nogil=True)
def spearman_zs(counts, starts, levels):
    """:func:`~dpcgd.statistics.rank_statistics.spearman_z` of each table.

    A stratum gives 3 times the sum of products of centred ranks, over n (n + 1).
    """
    values = np.zeros(len(levels))
    of_x, of_y = np.empty(levels.max(), counts.dtype), np.empty(levels.max(), counts.dtype)
    for i in range(len(levels)):
        table = counts[starts[i] : starts[i + 1]].reshape(levels[i, 0], levels[i, 1], -1)
        value, total, lost = 0.0, 0, 0.0
        for s in range(table.shape[2]):
            n = _sizes(table, s, of_x, of_y)
            products, below_x = 0.0, 0
            for x in range(table.shape[0]):
                below_y = 0
                for y in range(table.shape[1]):
                    rank_x, rank_y = 2.0 * below_x + of_x[x] - n, 2.0 * below_y + of_y[y] - n
                    products += table[x, y, s] * rank_x * rank_y
                    below_y += of_y[y]
                below_x += of_x[x]
            if n > 0:
                value, lost = _added(value, lost, 3 * products / n / (n + 1))
                total += n - 1
        if total > 0:
            values[i] = (value + lost) / math.sqrt(total)
    return values


@njit(cache=True, nogil=True)
def chi_squareds(counts, starts, levels):
    """Pearson's statistic of each table, and its degrees of freedom.

    The first is :func:`~dpcgd.statistics.categorical_statistics.chi_squared`. The second counts the
    levels that occur, stratum by stratum.
    """
    values, freedoms = np.zeros(len(levels)), np.zeros(len(levels), np.int64)
    of_x, of_y = np.empty(levels.max(), counts.dtype), np.empty(levels.max(), counts.dtype)
    for i in range(len(levels)):
        table, lost = counts[starts[i] : starts[i + 1]].reshape(levels[i, 0], levels[i, 1], -1), 0.0
        if min(levels[i, 0], levels[i, 1]) == 1:
            continue  # exactly 0, which rounding would hide
        for s in range(table.shape[2]):
            n = _sizes(table, s, of_x, of_y)
            freedoms[i] += max((of_x > 0).sum() - 1, 0) * max((of_y > 0).sum() - 1, 0)
            for x in range(table.shape[0]):
                for y in range(table.shape[1]):
                    if of_x[x] > 0 and of_y[y] > 0:
                        expected = of_x[x] * of_y[y] / n
                        term = (table[x, y, s] - expected) ** 2 / expected
                        values[i], lost = _added(values[i], lost, term)
        values[i] += lost
    return values, freedoms


@njit(cache=True, nogil=True)
def _entropy_added(total, lost, counts, sign):
    """A sum, and what is lost of it, with t ln t of each count, times a sign."""
    for t in counts:
        if t > 0:
            total, lost = _added(total, lost, sign * t * math.log(t))
    return total, lost


@njit(cache=True, nogil=True)
def g_statistics(counts, starts, levels):
    """:func:`~dpcgd.statistics.categorical_statistics.g_statistic` of each table."""
    values = np.zeros(len(levels))
    of_x, of_y = np.zeros(levels.max(), counts.dtype), np.zeros(levels.max(), counts.dtype)
    for i in range(len(levels)):
        flat = counts[starts[i] : starts[i + 1]]
        table = flat.reshape(levels[i, 0], levels[i, 1], -1)
        if min(levels[i, 0], levels[i, 1]) == 1:
            continue  # exactly 0, which rounding would hide
        total, lost = _entropy_added(0.0, 0.0, flat, 1)
        for s in range(table.shape[2]):
            n = _sizes(table, s, of_x, of_y)
            if n > 0:
                total, lost = _added(total, lost, n * math.log(n))
                total, lost = _entropy_added(total, lost, of_x, -1)
                total, lost = _entropy_added(total, lost, of_y, -1)
        values[i] = max(0.0, 2 * (total + lost))
    return values
