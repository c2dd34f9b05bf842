"""Likelihoods of graphs, given a table with Laplace noise, and walks among graphs.

`parents[v]` has a bit for each parent of v. The plain definitions are in
tests/tables/test_dag_posterior.py. Only the sum over true counts is compiled.
"""

import math

import numpy as np
from numba import njit
from scipy.special import gammaln

from dpcgd.reading.orientation import leads as is_ancestor

STEPS, ENOUGH = 10, 0.05
"""Of expectation maximization: how many, and what gain is worth another one."""

MANY = 1e6
"""A count about a larger mean is as good as normal."""


NARROW = 0.1
"""Noise of a smaller scale, in deviations of the count, is as good as normal beside it."""


NOTHING = 9
"""In place of a change in the number of edges: there is no proposal."""


@njit(cache=True, nogil=True, error_model="numpy")
def expected_counts(released, means, scale, counts):
    """Log-likelihood of noisy cells, but for a constant; expected true counts go to `counts`.

    A true count k is Poisson, what is released is k plus Laplace noise. Terms are added from the
    likeliest k outwards, until they no longer matter; of many records the count is normal.
    """
    total = 0.0
    for c in range(len(released)):
        mean, cell = max(means[c], 1e-9), released[c]
        if mean > MANY:
            density, counts[c] = of_many(cell, mean, scale)
            total += density
            continue
        likeliest = min(max(cell, mean * math.exp(-1 / scale)), mean * math.exp(1 / scale))
        first, log_mean = int(likeliest + 0.5), math.log(mean)
        weight, weighted = 1.0, float(first)
        for step in (1, -1):
            k, term = first, 0.0
            while term > -25 and k + step >= 0:
                nearer = abs(cell - k) - abs(cell - k - step)
                ratio = log_mean - math.log(k + 1) if step > 0 else math.log(k) - log_mean
                term, k = term + ratio + nearer / scale, k + step
                weight += math.exp(term)
                weighted += math.exp(term) * k
        top = first * log_mean - mean - math.lgamma(first + 1.0) - abs(cell - first) / scale
        total += top + math.log(weight)
        counts[c] = weighted / weight
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def of_many(cell, mean, scale):
    """The same of one cell with a normal count, and its expected true count."""
    off, spread = abs(cell - mean), math.sqrt(mean)
    if scale < NARROW * spread:  # the sum is as good as normal, too
        both = mean + 2 * scale * scale
        density = math.log(2 * scale) - (off * off / both + math.log(2 * math.pi * both)) / 2
        return density, mean + mean / both * (cell - mean)
    ratio = spread / scale
    near = math.erfc((ratio - off / spread) / math.sqrt(2))
    far = 0.0
    if off < 30 * spread:
        far = math.exp(2 * off / scale) * math.erfc((ratio + off / spread) / math.sqrt(2))
    density = (ratio * ratio) / 2 - off / scale + math.log((near + far) / 2)
    moved = mean / scale * (near - far) / (near + far)
    return density, mean + math.copysign(moved, cell - mean)


def families(codes, levels, parents):
    """Of each cell, the row and the cell of each variable's table, and how many rows there are.

    Tables of all variables stand one after the other.
    """
    d, cells = len(levels), len(codes)
    rows, columns = np.zeros((d, cells), np.int64), np.empty((d, cells), np.int64)
    sizes = np.ones(d, np.int64)
    for v in range(d):
        for u in range(d):
            if parents[v] >> u & 1:
                sizes[v] *= levels[u]
                rows[v] *= levels[u]
                rows[v] += codes[:, u]
        columns[v] = rows[v] * levels[v] + codes[:, v]
    rows += (np.cumsum(sizes) - sizes)[:, None]
    columns += (np.cumsum(sizes * levels) - sizes * levels)[:, None]
    return rows, columns, sizes


def _sums(values, levels, rows, columns, sizes) -> tuple[np.ndarray, np.ndarray]:
    """Values of cells, summed over the cells of each variable's table, and over its rows."""
    repeated = np.broadcast_to(values, rows.shape).ravel()
    family = np.bincount(columns.ravel(), repeated, int(sizes @ levels))
    return family, np.bincount(rows.ravel(), repeated, int(sizes.sum()))


def implied(counts, n, levels, rows, columns, sizes):
    """Expected records of each cell, if each variable depends on its parents as in these counts."""
    family, alone = _sums(counts, levels, rows, columns, sizes)
    alone += 1e-6 * np.repeat(levels, sizes)
    return np.multiply.reduce((family + 1e-6)[columns] / alone[rows], axis=0, initial=n)


def price(means, scale, prior, levels, rows, columns, sizes):
    """What averaging over probabilities costs beside the best ones, noise reckoned.

    Of a Dirichlet prior worth `prior` records (BDeu), on as many records as tell something: a cell
    of mean m and noise of variance s counts as m^2 / (m + s).
    """
    telling = means**2 / (means + 2 * scale**2)
    family, alone = _sums(telling, levels, rows, columns, sizes)
    cells = np.repeat(sizes * levels, sizes * levels)
    return _averaging(family, prior / cells) - _averaging(alone, prior / np.repeat(sizes, sizes))


def averaging(counts, prior):
    """That cost of one table, all of its cells alike beforehand."""
    return _averaging(counts, np.full(len(counts), prior / len(counts)))


def _averaging(counts, shares) -> float:
    logs = np.log(np.where(counts > 0, counts, 1.0))
    return float((gammaln(shares) - gammaln(shares + counts) + counts * logs).sum())


def fitted(about, parents):
    """Log posterior of a graph but for its prior, and the counts that it makes of a noisy table.

    `about` has what has been released, cell by cell, the scale of its noise, the number of records,
    the levels of each cell, how many there are, counts to start from, and the records that the
    prior is worth.
    """
    released, scale, n, codes, levels, start, prior = about
    tables = families(codes, levels, parents)
    counts, before = start.copy(), -np.inf
    for _ in range(STEPS):
        means = implied(counts, n, levels, *tables)
        likelihood = expected_counts(released, means, scale, counts)
        if likelihood - before < ENOUGH:
            break
        before = likelihood
    return likelihood - price(means, scale, prior, levels, *tables), counts


def leads(parents, a, b):
    """Whether a is b or an ancestor of b."""
    return a == b or is_ancestor(parents, a, b)


def changed(parents, x, y, back):
    """The graph with x -> y added, or taken out, or turned; what that does to the number of edges.

    Proposals and their way back are equally likely; no proposal has a number of `NOTHING`.
    """
    new = parents.copy()
    if parents[x] >> y & 1:
        return new, NOTHING
    if not parents[y] >> x & 1:
        if back or leads(parents, y, x):
            return new, NOTHING
        new[y] |= 1 << x
        return new, 1
    new[y] ^= 1 << x
    if not back:
        return new, -1
    if leads(new, x, y):
        return new, NOTHING
    new[x] |= 1 << y
    return new, 0


def allowed(parents, needed, forbidden):
    """Whether everyone has the parents that are needed, and none that is forbidden."""
    rules = zip(parents, needed, forbidden, strict=True)
    return not any(bits & banned or must & ~bits for bits, must, banned in rules)


def scored(about, parents, known):
    """The score of a graph, kept in `known` under all of its parents in one number."""
    key = 0
    for bits in parents:
        key = key << len(parents) ^ bits
    key -= (key >> 63) << 64  # a signed number of 64 bits: eight variables take all of them
    if key not in known:
        known[key] = fitted(about, parents)[0]
    return known[key]


def walk(about, parents, needed, forbidden, edge, rng, sweeps, hottest, known):
    """The best graph that a walk meets, each step a change that the posterior gives its odds.

    `known` keeps the scores of all graphs that were looked at; `edge` is the log odds of an edge
    beforehand. The temperature falls from `hottest` to 1.
    """
    parents, needed, forbidden = parents.tolist(), needed.tolist(), forbidden.tolist()
    d = len(parents)
    score = best_score = scored(about, parents, known)
    best = parents
    for sweep in range(sweeps):
        heat = hottest ** (1 - sweep / sweeps)
        for _ in range(d):
            x, y = int(rng.random() * d), int(rng.random() * (d - 1))
            new, more = changed(parents, x, y + (y >= x), rng.random() < 0.5)
            if more == NOTHING or not allowed(new, needed, forbidden):
                continue
            new_score = scored(about, new, known)
            if math.log(rng.random()) * heat < new_score - score + more * edge:
                parents, score = new, new_score
                if score > best_score:
                    best, best_score = new, score
    return np.array(best, np.int64)
