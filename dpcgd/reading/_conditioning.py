"""The hot loops of the features, compiled: associations of pairs given other variables.

Kept apart: numba compiles it. Plain elimination in place of a library's: no result depends on the
processor's kernels.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _eliminate(a, b):
    """Gaussian elimination with row pivots: `a` becomes triangular."""
    size = len(a)
    for k in range(size):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            for j in range(k, size):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            for j in range(b.shape[1]):
                b[k, j], b[pivot, j] = b[pivot, j], b[k, j]
        for i in range(k + 1, size):
            factor = a[i, k] / a[k, k] if a[k, k] != 0 else 0.0
            for j in range(k + 1, size):
                a[i, j] -= factor * a[k, j]
            for j in range(b.shape[1]):
                b[i, j] -= factor * b[k, j]


@njit(cache=True, nogil=True)
def _solve(a, b):
    """The solution of a x = b takes the place of `b`; 0 where there is none."""
    _eliminate(a, b)
    for k in range(len(a) - 1, -1, -1):
        for j in range(b.shape[1]):
            left = b[k, j]
            for i in range(k + 1, len(a)):
                left -= a[k, i] * b[i, j]
            b[k, j] = left / a[k, k] if a[k, k] != 0 else 0.0


@njit(cache=True, nogil=True)
def _rows(starts, given, count, of):
    """Rows of the first `count` of these variables, into `of`; how many."""
    size = 0
    for k in range(count):
        for i in range(starts[given[k]], starts[given[k] + 1]):
            of[size] = i
            size += 1
    return size


@njit(cache=True, nogil=True)
def _slopes(b, ridge, first, of):
    """Slopes of the rows `first` on the rows `of`, a column each."""
    size = len(of)
    inner, slopes = np.empty((size, size)), np.empty((size, len(first)))
    for i in range(size):
        for j in range(size):
            inner[i, j] = b[of[i], of[j]]
        inner[i, i] += ridge[of[i]] * math.sqrt(size)
        for a in range(len(first)):
            slopes[i, a] = b[of[i], first[a]]
    _solve(inner, slopes)
    return slopes


@njit(cache=True, nogil=True)
def _left_open(b, first, of, slopes, least_open):
    """Share of the variance of these rows that the others leave open."""
    total = 0.0
    for a in range(len(first)):
        left = 1.0
        for i in range(len(of)):
            left -= b[of[i], first[a]] * slopes[i, a]
        total += min(max(left, least_open), 1.0)
    return total / len(first)


@njit(cache=True, nogil=True)
def _told(q, variance, usual):
    """Twice the log Bayes factor of an entry, and its squared correlation beyond the noise."""
    signal = usual**2 / (variance + usual**2)
    return q * q / variance * signal + math.log1p(-signal), (q * q - variance) * signal


@njit(cache=True, nogil=True)
def association_given(b, v, n, starts, x, y, given, count, ridge, least_open, usual):
    """Evidence for an association of x and y given others, its effect, and what is left open."""
    of = np.empty(len(b), np.int64)
    of = of[: _rows(starts, given, count, of)]
    at_x, at_y = np.arange(starts[x], starts[x + 1]), np.arange(starts[y], starts[y + 1])
    to_x, to_y = _slopes(b, ridge, at_x, of), _slopes(b, ridge, at_y, of)
    open_x = _left_open(b, at_x, of, to_x, least_open)
    open_y = _left_open(b, at_y, of, to_y, least_open)
    evidence, effect, root = 0.0, 0.0, math.sqrt(open_x * open_y)
    for a in range(len(at_x)):
        for c in range(len(at_y)):
            r, s = at_x[a], at_y[c]
            q, variance = b[r, s], v[r, s]
            for i in range(len(of)):
                q -= b[r, of[i]] * to_y[i, c]
                variance += v[r, of[i]] * to_y[i, c] ** 2 + v[s, of[i]] * to_x[i, a] ** 2
            told = _told(q / root, variance / root**2 + 1 / n, usual)
            evidence += told[0]
            effect += told[1]
    return math.asinh(evidence), effect, min(open_x, open_y)


@njit(cache=True, nogil=True)
def associations_given(b, v, n, starts, pairs, sets, ridge, least_open, usual):
    """What `association_given` tells of each pair; a row of `sets` is how many, then which."""
    found = np.empty((len(pairs), 3))
    for i in range(len(pairs)):
        given, count = sets[i, 1:], sets[i, 0]
        x, y = pairs[i]
        told = association_given(b, v, n, starts, x, y, given, count, ridge, least_open, usual)
        found[i, 0], found[i, 1], found[i, 2] = told
    return found


@njit(cache=True, nogil=True)
def _given(b, v, n, starts, x, y, z, left_open, usual):
    """Association of x and y given z, whose block with itself is the identity."""
    evidence, effect = 0.0, 0.0
    for r in range(starts[x], starts[x + 1]):
        for s in range(starts[y], starts[y + 1]):
            q, variance = b[r, s], v[r, s]
            for k in range(starts[z], starts[z + 1]):
                q -= b[r, k] * b[k, s]
                variance += b[r, k] ** 2 * v[k, s] + b[k, s] ** 2 * v[r, k]
            both = left_open[r, z] * left_open[s, z]
            told = _told(q / math.sqrt(both), variance / both + 1 / n, usual)
            evidence += told[0]
            effect += told[1]
    return math.asinh(evidence), effect


@njit(cache=True, nogil=True)
def _each_left_open(b, starts, least_open):
    """Share of each row's variance that each variable leaves open."""
    found = np.empty((len(b), len(starts) - 1))
    for r in range(len(b)):
        for z in range(len(starts) - 1):
            left = 1.0
            for k in range(starts[z], starts[z + 1]):
                left -= b[r, k] ** 2
            found[r, z] = min(max(left, least_open), 1.0)
    return found


@njit(cache=True, nogil=True)
def given_one(b, v, n, starts, association, effect, least_open, usual):
    """Least association given one other, the next, the effect at the least, the strongest path."""
    d = len(starts) - 1
    left_open = _each_left_open(b, starts, least_open)
    found = np.zeros((4, d, d))
    for x in range(d):
        for y in range(x + 1, d):
            least, second, at_least, path = association[x, y], np.inf, effect[x, y], 0.0
            for z in range(d):
                if z in (x, y):
                    continue
                told, size = _given(b, v, n, starts, x, y, z, left_open, usual)
                if told < least:
                    least, second, at_least = told, least, size
                elif told < second:
                    second = told
                path = max(path, min(effect[x, z], effect[z, y]))
            second = second if second < np.inf else association[x, y]
            found[:, x, y] = found[:, y, x] = np.array([least, second, at_least, path])
    return found


@njit(cache=True, nogil=True)
def _union(order, x, y, size, near):
    """The nearest of x and of y, each once, into `near`; how many."""
    count = 0
    for v in (x, y):
        taken = 0
        for w in order[v]:
            if taken == size:
                break
            if w not in (x, y):
                taken += 1
                if w not in near[:count]:
                    near[count] = w
                    count += 1
    return count


@njit(cache=True, nogil=True)
def _least_given_two(b, v, n, starts, x, y, near, ridge, least_open, usual, least):
    """The least association given two of these, or the one at hand if there are no two."""
    two, first = np.empty(2, np.int64), True
    for i in range(len(near)):
        for j in range(i + 1, len(near)):
            two[0], two[1] = near[i], near[j]
            told = association_given(b, v, n, starts, x, y, two, 2, ridge, least_open, usual)
            if first or told[0] < least[0]:
                least, first = told, False
    return least


@njit(cache=True, nogil=True)
def local_features(b, v, n, starts, pairs, order, sizes, few, ridge, least_open, usual):
    """For each pair, what sets of its own nearest variables tell.

    Columns: the least association given two of the few nearest of either and its effect; the
    association, then the effect, given each size of the nearest; what the second size leaves open.
    """
    many = len(sizes)
    found = np.empty((len(pairs), 3 + 2 * many))
    near = np.empty(2 * max(few, sizes.max()), np.int64)
    for p in range(len(pairs)):
        x, y = pairs[p]
        for at in range(many):
            count = _union(order, x, y, sizes[at], near)
            told = association_given(b, v, n, starts, x, y, near, count, ridge, least_open, usual)
            found[p, 2 + at], found[p, 2 + many + at] = told[0], told[1]
            if at == 0:
                strongest = told
            if at == 1:
                found[p, 2 + 2 * many] = told[2]
        count = _union(order, x, y, few, near)
        least = _least_given_two(
            b, v, n, starts, x, y, near[:count], ridge, least_open, usual, strongest
        )
        found[p, 0], found[p, 1] = least[0], least[1]
    return found
