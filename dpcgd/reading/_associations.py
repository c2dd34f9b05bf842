"""Associations of many pairs given at most two other variables, compiled.

The plain definition is :func:`~dpcgd.reading.association.association`, whose names are used here.
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
def _features_of_two(facts, s, t, p, features, h):
    """What :func:`_features` has of two variables."""
    _, levels, _, contrasts, _, _, deviation, deviations, _ = facts
    first, second = levels[s], levels[t]
    table = np.empty((first, second))
    _pair_table(facts, s, t, table)
    for cell in range(first * second):
        i, j, at = cell // second, cell % second, first - 1
        p[cell] = table[i, j]
        for a in range(first - 1):
            features[cell, a] = contrasts[first, i, a]
            h[cell, a] = contrasts[first, i, a] / second * deviation[s]
        for b in range(second - 1):
            features[cell, at + b] = contrasts[second, j, b]
            h[cell, at + b] = contrasts[second, j, b] / first * deviation[t]
        at += second - 1
        for ab in range((first - 1) * (second - 1)):
            a, b = ab // (second - 1), ab % (second - 1)
            product = contrasts[first, i, a] * contrasts[second, j, b]
            h[cell, at + ab] = product * deviations[s, t]


@njit(cache=True, nogil=True)
def _features(facts, given, p, features, h):
    """For each cell of the conditioning variables: its probability, features, and what noise does.

    Returns the numbers of cells and of columns of `h`.
    """
    _, levels, _, contrasts, _, _, deviation, _, singles = facts
    cells = 1
    for v in given:
        cells *= levels[v]
    if len(given) == 0:
        p[0] = 1.0
    elif len(given) == 1:
        for i in range(cells):
            p[i] = singles[given[0], i]
            for a in range(cells - 1):
                features[i, a] = contrasts[cells, i, a]
                h[i, a] = contrasts[cells, i, a] * deviation[given[0]]
    else:
        _features_of_two(facts, given[0], given[1], p, features, h)
    return cells, cells - 1


@njit(cache=True, nogil=True)
def _feature_means(facts, given, of_given, feature_mean):
    """Which contrasts the features are, and their means; how many."""
    _, _, starts, _, mean, _, _, _, _ = facts
    width = 0
    for v in given:
        for r in range(starts[v], starts[v + 1]):
            of_given[width], feature_mean[width] = r, mean[r]
            width += 1
    return width


@njit(cache=True, nogil=True)
def _covariance(p, features, cells, size, covariance):
    """Of the features, under the probabilities of the cells."""
    average = np.zeros(size)
    for c in range(cells):
        for j in range(size):
            average[j] += p[c] * features[c, j]
    for i in range(size):
        for j in range(i + 1):
            total = 0.0
            for c in range(cells):
                off = (features[c, i] - average[i]) * (features[c, j] - average[j])
                total += p[c] * off
            covariance[i, j] = covariance[j, i] = total


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
    _, levels, _, contrasts, _, _, _, _, singles = facts
    k = levels[x]
    table = np.empty((k, cells))
    if len(given):
        _pair_table(facts, x, given[0], table)
    else:
        for i in range(k):
            table[i, 0] = singles[x, i]
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
def _slope(facts, v, room, sizes, cross, slope, intercept, mu):
    """Regress the contrasts of a variable on the features; `mu` is what that gives in each cell."""
    _, _, starts, _, mean, moments, _, _, _ = facts
    _, features, _, _, factor, _, of_given, feature_mean = room
    cells, width, _ = sizes
    for a in range(starts[v + 1] - starts[v]):
        r = starts[v] + a
        for j in range(width):
            cross[a, j] = moments[r, of_given[j]] - mean[r] * feature_mean[j]
            slope[a, j] = cross[a, j]
        _solve(factor, width, slope[a])
        intercept[a] = mean[r]
        for j in range(width):
            intercept[a] -= slope[a, j] * feature_mean[j]
        for c in range(cells):
            mu[c, a] = intercept[a]
            for j in range(width):
                mu[c, a] += features[c, j] * slope[a, j]


@njit(cache=True, nogil=True)
def _residual(facts, v, width, cross, slope, residual, room):
    """What the regression leaves, and its share of the variance; not a number if that is spoilt."""
    _, _, starts, _, _, moments, _, _, _ = facts
    size, part, whole = starts[v + 1] - starts[v], 0.0, 0.0
    for a in range(size):
        for b in range(size):
            left = moments[starts[v] + a, starts[v] + b]
            for j in range(width):
                left -= (cross[a, j] * slope[b, j] + cross[b, j] * slope[a, j]) / 2
            residual[a, b] = room[a, b] = left
        part += residual[a, a]
        whole += moments[starts[v] + a, starts[v] + a]
    return part / whole if whole > 0 and _factor(room, size) else np.nan


@njit(cache=True, nogil=True)
def _noise_floor(facts, v, given, through):
    """Deviations of the noise of the moments of a variable with the features; the largest."""
    _, _, starts, _, _, _, _, deviations, _ = facts
    at, floor = 0, 0.0
    for s in given:
        floor = max(floor, deviations[v, s])
        for _ in range(starts[s], starts[s + 1]):
            through[at] = deviations[v, s]
            at += 1
    return floor


@njit(cache=True, nogil=True)
def _own_noise(facts, v, w, width, slope, intercept, through, found):
    """Privacy variance that the slope and the intercept of v pass on from w."""
    _, _, starts, _, _, _, deviation, _, _ = facts
    for a in range(starts[v + 1] - starts[v]):
        for b in range(starts[v + 1] - starts[v]):
            value = deviation[w] ** 2 * intercept[v, a] * intercept[v, b]
            for j in range(width):
                value += slope[v, a, j] * through[w, j] ** 2 * slope[v, b, j]
            found[a, b] = value


@njit(cache=True, nogil=True)
def _average(facts, x, y, room, sizes, cross, slope, q):
    """Average conditional covariance."""
    _, _, starts, _, mean, moments, _, _, _ = facts
    covariance, width = room[3], sizes[1]
    across = starts[y + 1] - starts[y]
    for a in range(starts[x + 1] - starts[x]):
        for b in range(across):
            r, s = starts[x] + a, starts[y] + b
            value = moments[r, s] - mean[r] * mean[s]
            for j in range(width):
                beyond = cross[y, b, j]
                for k in range(width):
                    beyond -= slope[y, b, k] * covariance[k, j]
                value -= cross[x, a, j] * slope[y, b, j] + slope[x, a, j] * beyond
            q[a * across + b] = value


@njit(cache=True, nogil=True)
def _noise_of_given(h, mu, x, y, rows, across, sizes, found):
    """What each column of `h` does to the average, a row each."""
    cells, _, columns = sizes
    for k in range(columns):
        for a in range(rows):
            for b in range(across):
                value = 0.0
                for c in range(cells):
                    value += h[c, k] * mu[x, c, a] * mu[y, c, b]
                found[k, a * across + b] = value


@njit(cache=True, nogil=True)
def _spread(p, residual, within, x, y, across, cells, exact, spread, outer):
    """n times the sampling variance of the average, and the product of the residuals."""
    for i in range(len(outer)):
        a, b = i // across, i % across
        for j in range(i + 1):
            c, e = j // across, j % across
            outer[i, j] = spread[i, j] = residual[x, a, c] * residual[y, b, e]
            if exact:
                spread[i, j] = 0.0
                for cell in range(cells):
                    spread[i, j] += p[cell] * within[x, cell, a, c] * within[y, cell, b, e]


@njit(cache=True, nogil=True)
def _add_noise(spread, n, own_x, own_y, of_pair, of_given, columns, across):
    """The variance of the average: from sampling, and from the noise of each moment."""
    for i in range(len(spread)):
        a, b = i // across, i % across
        for j in range(i + 1):
            c, e = j // across, j % across
            value = spread[i, j] / n
            if a == c:
                value += own_y[b, e]
            if b == e:
                value += own_x[a, c]
            if i == j:
                value += of_pair**2
            for k in range(columns):
                value += of_given[k, i] * of_given[k, j]
            spread[i, j] = value


@njit(cache=True, nogil=True)
def _differ(one, other):
    """Whether two tests have different conditioning variables."""
    differ = False
    for at in range(2, len(one)):
        differ |= one[at] != other[at]
    return differ


@njit(cache=True, nogil=True)
def associations(facts, asked):
    """Statistic, effect and what is left undetermined for each test; not a number where not found.

    `facts` are the records, the levels of each variable, where its contrasts start among all, the
    contrasts for each number of levels, all means, all second moments with covariance matrices on
    the diagonal, the deviations of the noise of single variables and of pairs, and the
    probabilities of single variables. A row of `asked` holds x, y and the conditioning variables;
    rows with the same ones follow each other, and share what is regressed on them.
    """
    n, levels, starts, _, _, _, _, deviations, _ = facts
    d, most, order = len(levels), levels.max(), asked.shape[1] - 2
    cells, width, size = most**order, order * (most - 1), (most - 1) ** 2
    p, features = np.empty(cells), np.empty((cells, width))
    h, covariance = np.empty((cells, cells)), np.empty((width, width))
    factor, spare = np.empty((width, width)), np.empty((width, width))
    of_given, feature_mean = np.empty(width, np.int64), np.empty(width)
    room = p, features, h, covariance, factor, spare, of_given, feature_mean
    cross, slope = np.empty((d, most, width)), np.empty((d, most, width))
    residual, intercept = np.empty((d, most, most)), np.empty((d, most))
    mu, within = np.empty((d, cells, most)), np.empty((d, cells, most, most))
    through, left_open, regressed = np.empty((d, width)), np.empty(d), np.full(d, -1)
    q, solved, noise = np.empty(size), np.empty(size), np.empty((cells, size))
    of_x, of_y = np.empty((most, most)), np.empty((most, most))
    found, good, begun = np.full((len(asked), 3), np.nan), False, -1
    many, columns, sizes = cells, cells, (cells, width, cells)
    for test in range(len(asked)):
        given = asked[test, 2:]
        if test == 0 or _differ(asked[test - 1], asked[test]):
            begun = test
            many, columns = _features(facts, given, p, features, h)
            width = _feature_means(facts, given, of_given, feature_mean)
            sizes = many, width, columns
            _covariance(p, features, many, width, covariance)
            good = _stays_above(covariance, width, 0.0, factor)
        if not good:
            continue
        for v in asked[test, :2]:
            if regressed[v] < begun:
                regressed[v], left_open[v] = test, np.nan
                floor = _noise_floor(facts, v, given, through[v])
                if _stays_above(covariance, width, floor, spare):
                    _slope(facts, v, room, sizes, cross[v], slope[v], intercept[v], mu[v])
                    left_open[v] = _residual(facts, v, width, cross[v], slope[v], residual[v], of_x)
                    if order < 2:
                        _covariances_given(facts, v, given, many, within[v])
        x, y = asked[test, 0], asked[test, 1]
        if np.isnan(left_open[x] + left_open[y]):
            continue
        rows, across = starts[x + 1] - starts[x], starts[y + 1] - starts[y]
        size = rows * across
        spread, outer = np.empty((size, size)), np.empty((size, size))
        _average(facts, x, y, room, sizes, cross, slope, q)
        _own_noise(facts, x, y, width, slope, intercept, through, of_x)
        _own_noise(facts, y, x, width, slope, intercept, through, of_y)
        _noise_of_given(h, mu, x, y, rows, across, sizes, noise)
        _spread(p, residual, within, x, y, across, many, order < 2, spread, outer)
        _add_noise(spread, n, of_x, of_y, deviations[x, y], noise, columns, across)
        found[test, 0] = _quadratic(spread, size, 1e-14, q, solved)
        found[test, 1] = _quadratic(outer, size, 1e-6, q, solved)
        found[test, 2] = min(left_open[x], left_open[y])
    return found
