"""Graphs weighted by the likelihood of a noisy table, and probabilities of edges and arrows.

A true count is Poisson, with mean n times the probability that a graph gives its cell. The released
number is this count plus Laplace noise. So each graph has a likelihood, which expectation
maximization computes. Random walks look for likely graphs, and each of these has a weight.
"""

import math
from functools import cache

import numpy as np
from numba import njit
from scipy.special import gammaln

from dpcgd.moments.interactions import NoisyTable
from dpcgd.reading.orientation import _array, bits_of, completed, leads

__all__ = ["GraphPosterior", "best_graph", "shares_of"]

PRIOR, EDGE = 3.0, -3.0
"""Records that the prior of a graph's probabilities is worth, and prior log odds of an edge. Both
were chosen on random networks (benchmarks/README.md)."""


COOLING, STEADY, HOTTEST = 100, 250, 10.0
"""Sweeps while a walk cools down, sweeps after that, and the first temperature."""


UNLIKELY = 9.0
"""Graphs whose log posterior is this far below that of the best graph are left out."""


GAIN = 0.01
"""The least gain of log-likelihood for which a graph counts as better."""


STEPS, ENOUGH = 10, 0.05
"""The most steps of expectation maximization, and the gain that is worth another step."""

NEGLIGIBLE, MANY = 1e-11, 1e6
"""Counts of a smaller share of the likeliest one's probability are left out; a count of a larger
mean is treated as normal."""


NARROW = 0.1
"""Noise with a smaller scale, in deviations of the count, is treated as normal."""


class GraphPosterior:
    """Graphs without cycles over the variables of a table, and their probabilities.

    Parameters
    ----------
    table : NoisyTable
    forbidden, required : boolean array of shape (d, d), optional
        Arcs that no graph has, and arcs that every graph has.

    Privacy
    -------
    Post-processing of what has been released.

    Notes
    -----
    The parents of a variable are the bits of a whole number. Conditional probabilities have a
    Dirichlet prior (BDeu), and the score averages over them. Noise lessens the number of records:
    a cell with mean m and noise of variance s counts as m^2 / (m + s) records. Graphs of one
    equivalence class have the same score. Chapter 15.
    """

    def __init__(
        self,
        table: NoisyTable,
        forbidden: np.ndarray | None = None,
        required: np.ndarray | None = None,
    ):
        self.table, self.levels = table, np.array(table.levels, np.int64)
        nothing = np.zeros((len(self.levels),) * 2, bool)
        rules = (nothing if arcs is None else arcs for arcs in (required, forbidden))
        self.needed, self.forbidden = np.array([bits_of(arcs) for arcs in rules], np.int64)
        self._codes = np.array([*np.ndindex(*table.levels)], np.int64)
        self._start = np.maximum(table.counts.ravel(), 0.0) + 1e-9
        self._start *= table.n / self._start.sum()

    def score(self, parents: np.ndarray) -> float:
        """Log posterior of a graph, without its prior and up to a constant."""
        return self._fitted(parents)[0]

    def _fitted(self, parents) -> tuple[float, np.ndarray]:
        """The score of a graph, and the expected true counts under it, given the noisy table."""
        rows, columns, sizes = families(self._codes, self.levels, parents)
        released, scale = self.table.counts.ravel(), self.table.scale
        counts, before = self._start.copy(), -np.inf
        for _ in range(STEPS):
            means = implied(counts, float(self.table.n), self.levels, rows, columns)
            likelihood = expected_counts(released, means, scale, counts)
            if likelihood - before < ENOUGH:
                break
            before = likelihood
        return likelihood - price(means, scale, PRIOR, self.levels, rows, columns, sizes), counts

    def met(self, rng: np.random.Generator, sweeps: int = STEADY) -> tuple[np.ndarray, np.ndarray]:
        """The likely graphs among all that random walks visit, and the posterior of each.

        Parameters
        ----------
        rng : numpy.random.Generator
        sweeps : int
            Number of sweeps of each walk after it has cooled down.

        Returns
        -------
        graphs : array of shape (k, d)
            Parents of each variable, as bits.
        posterior : array of shape (k,)
            It sums to 1 over these graphs; graphs that no walk visits are left out.
        """
        known: dict[tuple[int, ...], float] = {}
        for graph in (self._best(self._start), self.needed):
            score, parents = self._climbed(graph)
            while True:
                best = self._walk(parents, rng, COOLING, HOTTEST, known)
                better, best = self._climbed(best)
                if not better > score + GAIN:
                    break
                score, parents = better, best
            self._walk(parents, rng, sweeps, 1.0, known)
        graphs = np.array([*known], np.int64)
        odds = np.array([*known.values()]) + EDGE * np.bitwise_count(graphs).sum(axis=1)
        likely = odds > odds.max() - UNLIKELY
        weights = np.exp(odds[likely] - odds.max())
        return graphs[likely], weights / weights.sum()

    def _walk(self, parents, rng, sweeps, hottest, known) -> np.ndarray:
        """The best graph that a random walk visits; steps are accepted by their posterior odds.

        `known` keeps the scores of all graphs that were computed, by their parents. Every graph has
        the required parents and no forbidden ones. The temperature falls from `hottest` to 1.
        """
        rules = [*zip(self.needed.tolist(), self.forbidden.tolist(), strict=True)]
        parents, d = parents.tolist(), len(parents)

        def scored(graph):
            if (key := tuple(graph)) not in known:
                known[key] = self._fitted(graph)[0]
            return known[key]

        score = best_score = scored(parents)
        best = parents
        for sweep in range(sweeps):
            heat = hottest ** (1 - sweep / sweeps)
            for _ in range(d):
                x, y = int(rng.random() * d), int(rng.random() * (d - 1))
                proposed = changed(parents, x, y + (y >= x), rng.random() < 0.5)
                if proposed is None:
                    continue
                new, more = proposed
                pairs = zip(new, rules, strict=True)
                if any(must & ~bits or bits & banned for bits, (must, banned) in pairs):
                    continue
                new_score = scored(new)
                if math.log(rng.random()) * heat < new_score - score + more * EDGE:
                    parents, score = new, new_score
                    if score > best_score:
                        best, best_score = new, score
        return np.array(best, np.int64)

    def _climbed(self, parents) -> tuple[float, np.ndarray]:
        """Fit counts to a graph, then the best graph to the counts, as long as the score rises."""
        score, counts = self._fitted(parents)
        while True:
            new = self._best(counts)
            new_score, new_counts = self._fitted(new)
            if not new_score > score + GAIN:
                return score, parents
            parents, score, counts = new, new_score, new_counts

    def _best(self, counts) -> np.ndarray:
        return best_graph(counts.reshape(self.table.levels), self.needed, self.forbidden)


def best_graph(
    counts: np.ndarray, needed: np.ndarray | None = None, forbidden: np.ndarray | None = None
) -> np.ndarray:
    """The graph of largest BIC for these counts, by dynamic programming over sets of variables.

    Parameters
    ----------
    counts : array
        Counts with one axis for each variable.
    needed, forbidden : array of shape (d,), optional
        Required and forbidden parents of each variable, as bits.

    Returns
    -------
    array of shape (d,)
        Parents of each variable, as bits.

    Notes
    -----
    Silander and Myllymaki (2006).
    """
    d, levels = counts.ndim, counts.shape
    none = np.zeros(d, np.int64)
    needed, forbidden = (none if bits is None else bits for bits in (needed, forbidden))
    price = 0.5 * math.log(counts.sum())
    members = [[v for v in range(d) if group >> v & 1] for group in range(1 << d)]

    @cache
    def fit(group: int) -> float:
        margin = counts.sum(axis=tuple(v for v in range(d) if not group >> v & 1))
        return float((margin * np.log(np.maximum(margin, 1e-12))).sum())

    @cache
    def parents(v: int, within: int) -> tuple[float, int]:
        """The score of the best parents within a set, and these parents."""
        options = [parents(v, within ^ 1 << u) for u in members[within]]
        if not (within & forbidden[v] or needed[v] & ~within):
            rows = math.prod(levels[u] for u in members[within])
            gain = fit(within | 1 << v) - fit(within)
            options.append((gain - price * (levels[v] - 1) * rows, within))
        return max(options, default=(-math.inf, 0))

    @cache
    def total(group: int) -> tuple[float, int]:
        """The score of the best graph over a set, and its last variable."""
        ends = [(v, group ^ 1 << v) for v in members[group]]
        scores = ((total(rest)[0] + parents(v, rest)[0], v) for v, rest in ends)
        return max(scores, default=(0.0, 0))

    graph, group = none.copy(), (1 << d) - 1
    while group:
        v = total(group)[1]
        group ^= 1 << v
        graph[v] = parents(v, group)[1]
    return graph


def shares_of(
    graphs: np.ndarray, posterior: np.ndarray, forbidden: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that each pair is joined, and that the CPDAG has each arrow.

    Parameters
    ----------
    graphs : array of shape (k, d)
        Parents of each variable, as bits.
    posterior : array of shape (k,)
    forbidden : boolean array of shape (d, d), optional
        Arcs that are known to be absent: their edges point the other way.

    Returns
    -------
    joined : array of shape (d, d)
        Symmetric.
    arrows : array of shape (d, d)
        The probability of a -> b is at [a, b].

    Examples
    --------
    >>> joined, arrows = shares_of(np.array([[0, 0, 3], [0, 1, 0]]), np.array([0.5, 0.5]))
    >>> float(joined[0, 2]), float(arrows[0, 2]), float(arrows[0, 1])
    (0.5, 0.5, 0.0)
    """
    joined, arrows = np.zeros((2, *[graphs.shape[1]] * 2))
    for parents, share in zip(graphs, posterior, strict=True):
        graph = _array(parents)
        pairs = graph | graph.T
        [arcs] = completed(graph[None], pairs, pairs & False if forbidden is None else forbidden)
        joined += share * pairs
        arrows += share * (arcs & ~arcs.T)
    return joined, arrows


@njit(cache=True, nogil=True, error_model="numpy")
def expected_counts(released, means, scale, counts):
    """Log-likelihood of noisy cells, up to a constant; expected true counts go to `counts`.

    A true count k is Poisson, and the released number is k plus Laplace noise. Terms are added from
    the likeliest k outwards until they are negligible. Counts of large mean are taken as normal.
    """
    total = 0.0
    for c in range(len(released)):
        mean, cell = max(means[c], 1e-9), released[c]
        if mean > MANY:
            density, counts[c] = of_many(cell, mean, scale)
            total += density
            continue
        likeliest = min(max(cell, mean * math.exp(-1 / scale)), mean * math.exp(1 / scale))
        first = int(likeliest + 0.5)
        weight, weighted = 1.0, float(first)
        for step in (1, -1):
            k, share = first, 1.0
            while share > NEGLIGIBLE and k + step >= 0:
                nearer = abs(cell - k) - abs(cell - k - step)
                share *= math.exp(nearer / scale) * (mean / (k + 1) if step > 0 else k / mean)
                k += step
                weight += share
                weighted += share * k
        top = first * math.log(mean) - mean - math.lgamma(first + 1.0) - abs(cell - first) / scale
        total += top + math.log(weight)
        counts[c] = weighted / weight
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def of_many(cell, mean, scale):
    """Log-likelihood of one cell with a normal count, and its expected true count."""
    off, spread = abs(cell - mean), math.sqrt(mean)
    if scale < NARROW * spread:  # the sum is nearly normal, too
        both = mean + 2 * scale * scale
        density = math.log(2 * scale) - (off * off / both + math.log(2 * math.pi * both)) / 2
        return density, mean + mean / both * (cell - mean)
    ratio = spread / scale
    near = math.erfc((ratio - off / spread) / math.sqrt(2))
    far = 0.0
    if off < 30 * spread:
        far = math.exp(2 * off / scale) * math.erfc((ratio + off / spread) / math.sqrt(2))
    density = (ratio * ratio) / 2 - off / scale + math.log((near + far) / 2)
    return density, mean + math.copysign(mean / scale * (near - far) / (near + far), cell - mean)


def families(codes, levels, parents):
    """The row and the cell of each cell in each variable's table, and the number of rows.

    The tables of all variables are stored one after the other.
    """
    rows, sizes = np.zeros(codes.T.shape, np.int64), np.ones(len(levels), np.int64)
    for v, bits in enumerate(parents):
        for u in range(len(levels)):
            if bits >> u & 1:
                sizes[v] *= levels[u]
                rows[v] = rows[v] * levels[u] + codes[:, u]
    columns = rows * levels[:, None] + codes.T
    rows += (np.cumsum(sizes) - sizes)[:, None]
    columns += (np.cumsum(sizes * levels) - sizes * levels)[:, None]
    return rows, columns, sizes


@njit(cache=True, nogil=True, error_model="numpy")
def _sums(values, rows, columns):
    """Sums of values of cells over the cells of each variable's table, and over its rows."""
    # the last cell has the last row, and the last cell, of the last table
    family, alone = np.zeros(columns[-1, -1] + 1), np.zeros(rows[-1, -1] + 1)
    for v in range(len(rows)):
        for c in range(len(values)):
            family[columns[v, c]] += values[c]
            alone[rows[v, c]] += values[c]
    return family, alone


@njit(cache=True, nogil=True, error_model="numpy")
def implied(counts, n, levels, rows, columns):
    """Expected records of each cell if each variable depends on its parents as in these counts."""
    family, alone = _sums(counts, rows, columns)
    means = np.full(len(counts), n)
    for v in range(len(levels)):
        for c in range(len(counts)):
            means[c] *= (family[columns[v, c]] + 1e-6) / (alone[rows[v, c]] + 1e-6 * levels[v])
    return means


def price(means, scale, prior, levels, rows, columns, sizes):
    """Log-likelihood lost by averaging over probabilities instead of taking the best ones.

    The Dirichlet prior is worth `prior` records (BDeu). A cell of mean m and noise of variance s
    counts as m^2 / (m + s) records.
    """
    telling = means**2 / (means + 2 * scale**2)
    family, alone = _sums(telling, rows, columns)
    cells = np.repeat(sizes * levels, sizes * levels)
    return averaging(family, prior / cells) - averaging(alone, prior / np.repeat(sizes, sizes))


def averaging(counts, shares) -> float:
    """The loss by averaging for one table; `shares` are the prior's records in each cell."""
    logs = np.log(np.where(counts > 0, counts, 1.0))
    return float((gammaln(shares) - gammaln(shares + counts) + counts * logs).sum())


def changed(parents, x, y, back):
    """A graph with x -> y added, removed or turned, and the change in the number of edges.

    A proposal and its reversal are equally likely; None means that there is no proposal.
    """
    new = parents.copy()
    new[y] ^= 1 << x
    if parents[x] >> y & 1:
        return None
    if not parents[y] >> x & 1:
        return None if back or leads(parents, y, x) else (new, 1)
    if not back:
        return new, -1
    if leads(new, x, y):
        return None
    new[x] |= 1 << y
    return new, 0
