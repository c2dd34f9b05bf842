"""An experiment: few variables, their whole table released, graphs weighed by its likelihood.

python benchmarks/whole_table.py named 20     # runs a network, beside learned_pc's rows on file
python benchmarks/whole_table.py random 300   # fresh random networks, beside learned_pc

One record moves two cells of a table by one each. So with Laplace noise of scale 2 / epsilon in
each cell the whole table is (epsilon, 0)-private for neighbours that replace one record, and a
Gaussian release at (epsilon, 1e-6) has about twice the noise. A count is Poisson about n times the
probability that a graph gives its cell, and what is released is that count with noise. So each
graph has a likelihood, found by expectation maximization: noise in cells that a graph says are
empty tells nothing. Graphs are drawn by likelihood and prior (Metropolis); how often a pair is
joined, and what the reader of learned_pc says of the same table, give the probability of an edge.
How often an arrow stands in the completed form of what was drawn is its confidence.
"""

import math
import sys
import warnings
from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
from numba import njit, types
from numba.typed import Dict
from scipy.special import expit, logit

from dpcgd.book.larger_networks import drawn
from dpcgd.book.stored import stored_folder
from dpcgd.book.systems import scores
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import any_network
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.marginals.interactions import MeasuredMarginals, Moment
from dpcgd.marginals.learned_pc import learned_pc
from dpcgd.marginals.reader import edge_probabilities, most_likely_edges

MOST_VARIABLES, MOST_CELLS = 8, 1024
EDGE = -1.5
"""Log odds of an edge before anything is known."""

BURN, DRAWS, HOTTEST = 100, 250, 10.0
"""Sweeps that cool down, sweeps that count, temperature at first."""

WEIGHTS = (0.4, 0.24, 0.73)
"""Log odds of an edge: a constant, and weights of the drawn graphs and of the reader; fitted to 300
random networks, seeds of which `random` does not use."""

SHARES = 0.002
"""No share of drawn graphs is taken to be nearer to 0 or 1."""

STEPS, ENOUGH = 10, 0.05
"""Of expectation maximization: how many, and what gain is worth another one."""

ARROW = 0.5
MEASURES = ["F1", "arrowhead F1", "SHD"]


@njit(cache=True)
def expected_counts(released, means, scale, counts):
    """Log-likelihood of noisy cells, but for a constant; expected true counts go to `counts`.

    A true count k is Poisson, what is released is k plus Laplace noise. Terms are added from the
    likeliest k outwards, until they no longer matter.
    """
    total = 0.0
    for c in range(len(released)):
        mean, cell = max(means[c], 1e-9), released[c]
        likeliest = min(max(cell, mean * math.exp(-1 / scale)), mean * math.exp(1 / scale))
        first, log_mean = int(likeliest), math.log(mean)
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


@njit(cache=True)
def families(codes, levels, parents):
    """Of each cell, the row and the cell of each variable's table; how many rows each has."""
    d, cells = len(levels), len(codes)
    rows, columns = np.zeros((d, cells), np.int64), np.zeros((d, cells), np.int64)
    sizes = np.ones(d, np.int64)
    for v in range(d):
        for u in range(d):
            if parents[v] >> u & 1:
                sizes[v] *= levels[u]
                rows[v] = rows[v] * levels[u] + codes[:, u]
        columns[v] = rows[v] * levels[v] + codes[:, v]
    return rows, columns, sizes


@njit(cache=True)
def implied(counts, n, levels, rows, columns, sizes):
    """Expected records of each cell, if each variable depends on its parents as in these counts."""
    means = np.full(len(counts), n)
    for v in range(len(levels)):
        family = np.full(sizes[v] * levels[v], 1e-6)
        alone = np.full(sizes[v], 1e-6 * levels[v])
        for c in range(len(counts)):
            family[columns[v, c]] += counts[c]
            alone[rows[v, c]] += counts[c]
        for c in range(len(counts)):
            means[c] *= family[columns[v, c]] / alone[rows[v, c]]
    return means


@njit(cache=True)
def price(means, scale, levels, rows, sizes):
    """Of the parameters: half the logarithm of how many records tell about each, noise reckoned."""
    total, telling = 0.0, means**2 / (means + 2 * scale**2)
    for v in range(len(levels)):
        told = np.ones(sizes[v])
        for c in range(len(means)):
            told[rows[v, c]] += telling[c]
        total += 0.5 * (levels[v] - 1) * np.log(told).sum()
    return total


@njit(cache=True)
def fitted(released, scale, n, codes, levels, start, parents):
    """Log posterior of a graph but for its prior, and the counts that it makes of a noisy table.

    `parents[v]` has a bit for each parent of v.
    """
    rows, columns, sizes = families(codes, levels, parents)
    counts, before = start.copy(), -np.inf
    for _ in range(STEPS):
        means = implied(counts, n, levels, rows, columns, sizes)
        likelihood = expected_counts(released, means, scale, counts)
        if likelihood - before < ENOUGH:
            break
        before = likelihood
    return likelihood - price(means, scale, levels, rows, sizes), counts


@njit(cache=True)
def leads(parents, a, b):
    """Whether a is b or an ancestor of b."""
    above, before = 1 << b, 0
    while above != before:
        before = above
        for v in range(len(parents)):
            if before >> v & 1:
                above |= parents[v]
    return above >> a & 1 == 1


@njit(cache=True)
def changed(parents, x, y, back):
    """The graph with x -> y added, or taken out, or turned; what that does to the number of edges.

    Proposals and their way back are equally likely; none has a number of 9.
    """
    new = parents.copy()
    if parents[x] >> y & 1:
        return new, 9
    if not parents[y] >> x & 1:
        if back or leads(parents, y, x):
            return new, 9
        new[y] |= 1 << x
        return new, 1
    new[y] ^= 1 << x
    if not back:
        return new, -1
    if leads(new, x, y):
        return new, 9
    new[x] |= 1 << y
    return new, 0


@njit(cache=True)
def draw(about, parents, edge, rng, burn, draws, hottest, known):
    """Graphs drawn one after the other, and the best one that was met."""
    d = len(parents)
    score = best_score = fitted(*about, parents)[0]
    best, found = parents.copy(), np.zeros((draws, d), np.int64)
    for sweep in range(burn + draws):
        heat = max(1.0, hottest ** (1 - sweep / max(burn, 1)))
        for _ in range(d):
            x, y = int(rng.random() * d), int(rng.random() * (d - 1))
            new, more = changed(parents, x, y + (y >= x), rng.random() < 0.5)
            if more == 9:
                continue
            key = np.int64(0)
            for v in range(d):
                key = key << d ^ new[v]
            if key not in known:
                known[key] = fitted(*about, new)[0]
            if math.log(rng.random()) * heat < known[key] - score + more * edge:
                parents, score = new, known[key]
                if score > best_score:
                    best, best_score = new.copy(), score
        if sweep >= burn:
            found[sweep - burn] = parents
    return found, best


def best_graph(counts) -> np.ndarray:
    """The graph of largest BIC for these counts, by dynamic programming over sets of variables."""
    d, n = counts.ndim, counts.sum()
    everyone = range(1 << d)
    members = [[v for v in range(d) if of >> v & 1] for of in everyone]
    entropy = np.empty(1 << d)
    for of in everyone:
        margin = counts.sum(axis=tuple(v for v in range(d) if not of >> v & 1))
        entropy[of] = float((margin * np.log(np.maximum(margin, 1e-12))).sum())
    rows = [math.prod(counts.shape[v] for v in members[of]) for of in everyone]

    def choices(v) -> list[tuple[float, int]]:
        """The best parents of v within each set, and their score."""
        best = []
        for of in everyone:
            price = 0.5 * math.log(n) * (counts.shape[v] - 1) * rows[of]
            options = [(entropy[of | 1 << v] - entropy[of] - price, of)]
            options += [best[of ^ 1 << u] for u in members[of] if u != v]
            best.append(max(options) if not of >> v & 1 else (-math.inf, 0))
        return best

    parents_within = [choices(v) for v in range(d)]
    totals, last = np.zeros(1 << d), np.zeros(1 << d, int)
    for of in everyone[1:]:
        options = [
            (totals[of ^ 1 << v] + parents_within[v][of ^ 1 << v][0], v) for v in members[of]
        ]
        totals[of], last[of] = max(options)
    graph, of = np.zeros(d, np.int64), (1 << d) - 1
    while of:
        v = last[of]
        of ^= 1 << v
        graph[v] = parents_within[v][of][1]
    return graph


class Posterior:
    """Graphs for a released table of counts."""

    def __init__(self, table, n, scale):
        self.shape, released = table.shape, table.ravel().astype(float)
        start = np.maximum(released, 0) + 1e-9
        codes = np.array([*np.ndindex(*table.shape)], np.int64)
        start *= n / start.sum()
        self.about = released, scale, float(n), codes, np.array(table.shape, np.int64), start

    def fitted(self, parents):
        """Log posterior but for the prior, and expected counts."""
        return fitted(*self.about, parents)

    def climbed(self, parents):
        """The best graph of the counts that a graph makes of the table, as long as that helps."""
        score, counts = self.fitted(parents)
        while True:
            new = best_graph(counts.reshape(self.shape))
            new_score, new_counts = self.fitted(new)
            if new_score <= score + 0.01:
                return score, parents
            parents, score, counts = new, new_score, new_counts

    def drawn(self, rng, draws=DRAWS, edge=EDGE) -> np.ndarray:
        """Parents of each variable in each graph drawn, as bits."""
        known = Dict.empty(types.int64, types.float64)

        def run(parents, *how):
            return draw(self.about, parents.copy(), edge, rng, *how, known)

        d = len(self.shape)
        saturated = best_graph(self.about[-1].reshape(self.shape))
        starts = [self.climbed(saturated), self.climbed(np.zeros(d, np.int64))]
        score, parents = max(starts, key=lambda of: of[0])
        while (better := self.climbed(run(parents, BURN, 1, HOTTEST)[1]))[0] > score + 0.01:
            score, parents = better
        return run(parents, 0, draws, 1.0)[0]


def shares(graphs) -> tuple[np.ndarray, np.ndarray]:
    """How often each pair is joined, and how often completed forms have each arrow."""
    joined = arrows = 0.0
    for parents, times in zip(*np.unique(graphs, axis=0, return_counts=True), strict=True):
        names = [str(v) for v in range(len(parents))]
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((u, v) for v in names for u in names if parents[int(v)] >> int(u) & 1)
        arcs = CPDAG.from_dag(graph).arcs
        joined, arrows = joined + times * (arcs | arcs.T), arrows + times * (arcs & ~arcs.T)
    return joined / len(graphs), arrows / len(graphs)


def moments_of(data, released, scale):
    """Single variables, pairs and triples of a released table, as the reader takes them."""
    levels, deviation = data.cardinalities, math.sqrt(2) * scale

    def of_table(query, *, sensitivity, rho):
        return query(), 0.0

    marginals = MeasuredMarginals(_Released(Tables(data), released), of_table)
    sets = [of for k in (1, 2, 3) for of in combinations(range(len(levels)), k)]
    for of in sets:
        marginals.measure(of, 1.0)
        left = released.size / math.prod(levels[v] for v in of)
        values = marginals.released[of].values
        marginals.released[of] = Moment(values, deviation * math.sqrt(left) / data.n)
    return marginals.without_data()


class _Released:
    """Answers for tables from what has been released."""

    def __init__(self, tables, released):
        self.n, self.levels, self.released = tables.n, tables.levels, released

    def counts_many(self, subsets):
        everyone = range(len(self.levels))
        return [self.released.sum(axis=tuple(v for v in everyone if v not in of)) for of in subsets]


def whole_table(data, epsilon, rng) -> CPDAG:
    """A graph from the whole table with Laplace noise in each cell: (epsilon, 0)-private."""
    exact = np.zeros(data.cardinalities)
    np.add.at(exact, tuple(data.codes.T), 1)
    scale = 2 / epsilon
    released = exact + rng.laplace(scale=scale, size=exact.shape)
    joined, arrows = shares(Posterior(released, data.n, scale).drawn(rng))
    read = edge_probabilities(moments_of(data, released, scale))
    constant, of_graphs, of_reader = WEIGHTS
    odds = [logit(np.clip(of, SHARES, 1 - SHARES)) for of in (joined, read)]
    sure = expit(constant + of_graphs * odds[0] + of_reader * odds[1])
    edges = most_likely_edges(sure * ~np.eye(data.d, dtype=bool))
    return CPDAG(data.variables, edges & ~(edges & (arrows > ARROW)).T)


def named(runs):
    """The small networks of the book; learned_pc has its rows of the table of chapter 12."""
    table = pd.read_csv(stored_folder() / "12_which_one_should_i_use" / "table.csv")
    table = table[(table.system == "learned_pc") & (table.run < runs)]
    for n in (10_000, 100_000):
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            for network in ("earthquake", "cancer", "asia", "survey"):
                at = (table.network == network) & (table.n == n) & (table.epsilon == epsilon)
                theirs = table[at].sort_values("run")[MEASURES].to_numpy()
                ours = []
                for run in range(runs):
                    data = drawn(network, run, n, 0)
                    graph = whole_table(data, epsilon, np.random.default_rng([0, run, 12]))
                    ours.append([scores(graph, data.truth)[measure] for measure in MEASURES])
                tell(f"{network}, n = {n:,}, epsilon = {epsilon:g}", np.array(ours), theirs)


def random(networks):
    """Networks of three to eight variables, records from 1,000 to 10^6, epsilon from .1 to 10."""
    ours, theirs = [], []
    for number in range(networks):
        rng = np.random.default_rng([17, number])
        network = any_network(int(rng.integers(3, MOST_VARIABLES + 1)), rng)
        cells = math.prod(map(len, network.levels.values()))
        n, epsilon = round(10 ** rng.uniform(3, 6)), float(10 ** rng.uniform(-1, 1))
        if cells > MOST_CELLS or not network.graph.number_of_edges():
            continue
        data = network.sample(n, rng=rng)
        found = learned_pc(data, epsilon=epsilon, rng=rng).graph
        for of, graph in ((ours, whole_table(data, epsilon, rng)), (theirs, found)):
            of.append([scores(graph, data.truth)[measure] for measure in MEASURES])
    tell(f"{len(ours)} random networks", np.array(ours), np.array(theirs))


def tell(what, ours, theirs):
    """Means, and what the table gains over learned_pc, with its standard error."""
    gain = ours - theirs
    error = gain.std(axis=0, ddof=1) / math.sqrt(len(gain))
    rows = zip(MEASURES, ours.mean(0), theirs.mean(0), gain.mean(0), error, strict=True)
    told = (f"{m} {a:.3f} ({b:.3f}, {g:+.3f} ± {e:.3f})" for m, a, b, g, e in rows)
    print(f"{what}: {'; '.join(told)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"named": named, "random": random}[sys.argv[1]](int(sys.argv[2]))
