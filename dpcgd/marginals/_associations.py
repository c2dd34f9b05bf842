"""Associations of many pairs given at most two other variables, compiled.

The plain definition is :func:`~dpcgd.marginals.association.association`, whose names are used here.
Where it would have to mend a matrix that noise has spoilt, nothing is found, and it is to be asked.
Kept apart: numba compiles it. No library's linear algebra: no result depends on the processor's
kernels.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _factor(a, size):
    """Cholesky's factor of a symmetric matrix takes its place; whether there is one."""
    for j in range(size):
        for i in range(j, size):
            left = a[i, j]
            for k in range(j):
                left -= a[i, k] * a[j, k]
            if i > j:
                a[i, j] = left / a[j, j]
            elif left > 0 and left < np.inf:
                a[j, j] = math.sqrt(left)
            else:
                return False
    return True


@njit(cache=True, nogil=True)
def _solve(factor, size, b):
    """The solution takes the place of the right-hand side."""
    for i in range(size):
        for k in range(i):
            b[i] -= factor[i, k] * b[k]
        b[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            b[i] -= factor[k, i] * b[k]
        b[i] /= factor[i, i]


@njit(cache=True, nogil=True)
def _quadratic(matrix, size, ridge, vector, solved):
    """vector' (matrix + ridge)^-1 vector, or what is no number; the matrix is used up."""
    for i in range(size):
        matrix[i, i] += ridge
        solved[i] = vector[i]
    if not _factor(matrix, size):
        return np.nan
    _solve(matrix, size, solved)
    total = 0.0
    for i in range(size):
        total += vector[i] * solved[i]
    return total


@njit(cache=True, nogil=True)
def _pair_table(facts, u, v, table):
    """Probabilities of the levels of two variables, none zero."""
    n, levels, starts, contrasts, mean, moments, deviation, _, _ = facts
    rows, columns = levels[u], levels[v]
    least = max(1 / n, deviation[u], deviation[v]) / (rows * columns)
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            cell = 1 / (rows * columns)
            for a in range(rows - 1):
                cell += contrasts[rows, i, a] * mean[starts[u] + a] / columns
            for b in range(columns - 1):
                cell += contrasts[columns, j, b] * mean[starts[v] + b] / rows
            for a in range(rows - 1):
                for b in range(columns - 1):
                    product = contrasts[rows, i, a] * contrasts[columns, j, b]
                    cell += product * moments[starts[u] + a, starts[v] + b]
            table[i, j] = max(cell, least)
            total += table[i, j]
    for i in range(rows):
        for j in range(columns):
            table[i, j] /= total


@njit(cache=True, nogil=True)
def _features(facts, given, p, features, h):
    """For each cell of the conditioning variables: its probability, features, and what noise does.

    Returns the numbers of cells and of columns of `h`.
    """
    n, levels, starts, contrasts, mean, moments, deviation, deviations, singles = facts
    if len(given) == 0:
        p[0] = 1.0
        return 1, 0
    s = given[0]
    first = levels[s]
    if len(given) == 1:
        for i in range(first):
            p[i] = singles[s, i]
            for a in range(first - 1):
                features[i, a] = contrasts[first, i, a]
                h[i, a] = contrasts[first, i, a] * deviation[s]
        return first, first - 1
    t = given[1]
    second = levels[t]
    table = np.empty((first, second))
    _pair_table(facts, s, t, table)
    for i in range(first):
        for j in range(second):
            cell = i * second + j
            p[cell] = table[i, j]
            for a in range(first - 1):
                features[cell, a] = contrasts[first, i, a]
                h[cell, a] = contrasts[first, i, a] / second * deviation[s]
            at = first - 1
            for b in range(second - 1):
                features[cell, at + b] = contrasts[second, j, b]
                h[cell, at + b] = contrasts[second, j, b] / first * deviation[t]
            at += second - 1
            for a in range(first - 1):
                for b in range(second - 1):
                    product = contrasts[first, i, a] * contrasts[second, j, b]
                    h[cell, at + a * (second - 1) + b] = product * deviations[s, t]
    return first * second, first * second - 1


@njit(cache=True, nogil=True)
def _covariance(p, features, cells, size, covariance):
    """Of the features, under the probabilities of the cells."""
    average = np.zeros(size)
    for c in range(cells):
        for j in range(size):
            average[j] += p[c] * features[c, j]
    covariance[:size, :size] = 0
    for c in range(cells):
        for i in range(size):
            for j in range(i + 1):
                off = (features[c, i] - average[i]) * (features[c, j] - average[j])
                covariance[i, j] += p[c] * off
    for i in range(size):
        for j in range(i):
            covariance[j, i] = covariance[i, j]


@njit(cache=True, nogil=True)
def _stays_above(covariance, size, floor, room):
    """Whether all eigenvalues are above the floor; `room` is used up."""
    for i in range(size):
        for j in range(size):
            room[i, j] = covariance[i, j]
        room[i, i] -= floor
    return _factor(room, size)


@njit(cache=True, nogil=True)
def _covariances_given(facts, x, given, cells, found):
    """Covariance of the contrasts of a variable in each cell of one other variable or none."""
    n, levels, starts, contrasts, mean, moments, deviation, deviations, singles = facts
    k = levels[x]
    table = np.empty((k, cells))
    if len(given):
        _pair_table(facts, x, given[0], table)
    else:
        table[:, 0] = singles[x, :k]
    here = np.empty(k - 1)
    for c in range(cells):
        total = 0.0
        for i in range(k):
            total += table[i, c]
        for a in range(k - 1):
            here[a] = 0.0
            for i in range(k):
                here[a] += table[i, c] / total * contrasts[k, i, a]
        for a in range(k - 1):
            for b in range(k - 1):
                product = 0.0
                for i in range(k):
                    product += table[i, c] / total * contrasts[k, i, a] * contrasts[k, i, b]
                found[c, a, b] = product - here[a] * here[b]


@njit(cache=True, nogil=True)
def associations(facts, asked):
    """Statistic, effect and what is left undetermined for each test; not a number where not found.

    `facts` are the records, the levels of each variable, where its contrasts start among all, the
    contrasts for each number of levels, all means, all second moments with covariance matrices on
    the diagonal, the deviations of the noise of single variables and of pairs, and the
    probabilities of single variables. A row of `asked` holds x, y and the conditioning variables;
    rows with the same ones follow each other.
    """
    n, levels, starts, contrasts, mean, moments, deviation, deviations, singles = facts
    d, most = len(levels), levels.max()
    order = asked.shape[1] - 2
    cells, width = most**order, order * (most - 1)
    p, features = np.empty(cells), np.empty((cells, width))
    h, covariance = np.empty((cells, cells)), np.empty((width, width))
    factor, room = np.empty((width, width)), np.empty((width, width))
    of_given, feature_mean = np.empty(width, np.int64), np.empty(width)
    number, usable = np.full(d, -1), np.empty(d, np.bool_)
    cross, slope = np.empty((d, most, width)), np.empty((d, most, width))
    residual, intercept = np.empty((d, most, most)), np.empty((d, most))
    through, mu = np.empty((d, width)), np.empty((d, cells, most))
    within, left_open = np.empty((d, cells, most, most)), np.empty(d)
    size = (most - 1) ** 2
    matrix, ridged = np.empty((size, size)), np.empty((size, size))
    q, solved, noise_of = np.empty(size), np.empty(size), np.empty((cells, size))
    own = np.empty((2, most, most))
    found = np.full((len(asked), 3), np.nan)
    good, known, columns = False, 0, 0
    for test in range(len(asked)):
        given = asked[test, 2:]
        if test == 0 or (given != asked[test - 1, 2:]).any():
            many, columns = _features(facts, given, p, features, h)
            width = 0
            for v in given:
                for a in range(starts[v], starts[v + 1]):
                    of_given[width], feature_mean[width] = a, mean[a]
                    width += 1
            _covariance(p, features, many, width, covariance)
            factor[:width, :width] = covariance[:width, :width]
            good = _factor(factor, width)
            known += 1
        if not good:
            continue
        for v in asked[test, :2]:
            if number[v] == known:
                continue
            number[v], usable[v] = known, False
            contrasts_of = starts[v + 1] - starts[v]
            at, floor = 0, 0.0
            for s in given:
                for _ in range(starts[s], starts[s + 1]):
                    through[v, at] = deviations[v, s]
                    at += 1
                floor = max(floor, deviations[v, s])
            if width and not _stays_above(covariance, width, max(floor, 0.0), room):
                continue
            part = whole = 0.0
            for a in range(contrasts_of):
                r = starts[v] + a
                intercept[v, a] = mean[r]
                for j in range(width):
                    cross[v, a, j] = moments[r, of_given[j]] - mean[r] * feature_mean[j]
                    slope[v, a, j] = cross[v, a, j]
                _solve(factor, width, slope[v, a])
                for j in range(width):
                    intercept[v, a] -= slope[v, a, j] * feature_mean[j]
                for c in range(many):
                    mu[v, c, a] = intercept[v, a]
                    for j in range(width):
                        mu[v, c, a] += features[c, j] * slope[v, a, j]
            for a in range(contrasts_of):
                for b in range(contrasts_of):
                    left = moments[starts[v] + a, starts[v] + b]
                    for j in range(width):
                        one = cross[v, a, j] * slope[v, b, j]
                        left -= (one + cross[v, b, j] * slope[v, a, j]) / 2
                    residual[v, a, b] = ridged[a, b] = left
                part += residual[v, a, a]
                whole += moments[starts[v] + a, starts[v] + a]
            usable[v] = _factor(ridged, contrasts_of)
            left_open[v] = part / whole if whole > 0 else 1.0
            if order < 2:
                _covariances_given(facts, v, given, many, within[v])
        x, y = asked[test, 0], asked[test, 1]
        if not (usable[x] and usable[y]):
            continue
        rows, across = starts[x + 1] - starts[x], starts[y + 1] - starts[y]
        size = rows * across
        for a in range(rows):
            for b in range(across):
                r, s = starts[x] + a, starts[y] + b
                value = moments[r, s] - mean[r] * mean[s]
                for j in range(width):
                    beyond = cross[y, b, j]
                    for k in range(width):
                        beyond -= slope[y, b, k] * covariance[k, j]
                    value -= cross[x, a, j] * slope[y, b, j] + slope[x, a, j] * beyond
                q[a * across + b] = value
                for k in range(columns):
                    value = 0.0
                    for c in range(many):
                        value += h[c, k] * mu[x, c, a] * mu[y, c, b]
                    noise_of[k, a * across + b] = value
        for side in range(2):
            v, w = (x, y) if side == 0 else (y, x)
            for a in range(starts[v + 1] - starts[v]):
                for b in range(starts[v + 1] - starts[v]):
                    value = deviation[w] ** 2 * intercept[v, a] * intercept[v, b]
                    for j in range(width):
                        value += slope[v, a, j] * through[w, j] ** 2 * slope[v, b, j]
                    own[side, a, b] = value
        for i in range(size):
            a, b = i // across, i % across
            for j in range(i + 1):
                c, e = j // across, j % across
                outer = residual[x, a, c] * residual[y, b, e]
                ridged[i, j] = outer
                if order < 2:
                    outer = 0.0
                    for cell in range(many):
                        outer += p[cell] * within[x, cell, a, c] * within[y, cell, b, e]
                value = outer / n
                if a == c:
                    value += own[1, b, e]
                if b == e:
                    value += own[0, a, c]
                if i == j:
                    value += deviations[x, y] ** 2
                for k in range(columns):
                    value += noise_of[k, i] * noise_of[k, j]
                matrix[i, j] = value
        found[test, 0] = _quadratic(matrix, size, 1e-14, q, solved)
        found[test, 1] = _quadratic(ridged, size, 1e-6, q, solved)
        found[test, 2] = min(left_open[x], left_open[y])
    return found
