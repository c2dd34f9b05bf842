"""How dag_posterior's settings were chosen: on random networks, none of which is in the book.

python benchmarks/choose_whole_table.py

Releases whole tables of 300 networks of three to eight variables and of every kind, with a thousand
to a million records and epsilon from 0.1 to 10. For each prior, and each log odds of an edge
beforehand, prints the weights of the mixture that fit best, its log loss on pairs, and what the
graphs then score. Some three minutes for a line. The least log loss was taken:

prior  edge   log loss   F1    arrowhead F1   SHD
    1  -1.5   .1641     .923   .831          1.53
    1  -3     .1620     .923   .832          1.55
    3  -1.5   .1611     .927   .847          1.44
    3  -3     .1596     .929   .840          1.46
    8  -1.5   .1654     .924   .862          1.44
    8  -3     .1617     .929   .858          1.42
"""

import math
from itertools import product, repeat

import numpy as np
from dpcgd_book.results.graph_scores import scores
from scipy.optimize import minimize
from scipy.special import expit, logit

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import any_network
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.reading.graph_posterior import GraphPosterior, shares_of
from dpcgd.reading.orientation import pointed
from dpcgd.reading.reader import edge_probabilities, most_likely_edges
from dpcgd.reading.release import LEAST_SHARE, LEVEL_OF_WEIGHED
from dpcgd.tables.private_graph import MOST_CELLS

SEED, NETWORKS = 77, 300
PRIORS, EDGES = (1.0, 3.0, 8.0), (-1.5, -3.0)
SCORES = ("F1", "arrowhead F1", "SHD")


def released(number: int):
    """A noisy table of a network, what the reader says of it, its variables and the true graph."""
    rng = np.random.default_rng([SEED, number])
    while True:
        network = any_network(int(rng.integers(3, 9)), rng)
        cells = math.prod(map(len, network.levels.values()))
        if cells <= MOST_CELLS and network.graph.number_of_edges():
            break
    n, scale = round(10 ** rng.uniform(3, 6)), 2 / 10 ** rng.uniform(-1, 1)
    data = network.sample(n, rng=rng)
    counts = Tables(data).counts_many([(*range(data.d),)])[0]
    noisy = counts + rng.laplace(scale=scale, size=counts.shape)
    table = NoisyTable(n, noisy, scale)
    return table, edge_probabilities(table.marginals()), data.variables, data.truth


def odds_of(table, read, prior, edge):
    """Log odds of all edges, by likely graphs and by the reader, and the posterior of arrows."""
    met = GraphPosterior(table, prior=prior).met(np.random.default_rng(0), edge=edge)
    joined, arrows = shares_of(*met)
    both = [np.clip(of, LEAST_SHARE, 1 - LEAST_SHARE) for of in (joined, read)]
    return [np.ones_like(joined), *map(logit, both)], arrows


def fitted(odds, truths):
    """Weights of least log loss, networks alike, and that loss."""
    pairs = [np.triu_indices(len(truth), 1) for truth in truths]
    columns = [np.stack([of[at] for of in o]) for o, at in zip(odds, pairs, strict=True)]
    signs = [np.where(truth[at], 1, -1) for truth, at in zip(truths, pairs, strict=True)]

    def loss(weights):
        of = zip(columns, signs, strict=True)
        return np.mean([np.logaddexp(0, -sign * (weights @ x)).mean() for x, sign in of])

    best = minimize(loss, [0.0, 0.5, 0.5])
    return best.x, best.fun


def graph_of(names, odds, weights, arrows) -> CPDAG:
    sure = expit(np.tensordot(weights, odds, 1))
    np.fill_diagonal(sure, 0.0)
    joined = most_likely_edges(sure, None)
    return CPDAG(names, pointed(arrows, joined, np.zeros_like(joined), LEVEL_OF_WEIGHED))


def main():
    tables, reads, names, graphs = zip(*map(released, range(NETWORKS)), strict=True)
    arcs = [
        np.array([[(a, b) in graph.edges or (b, a) in graph.edges for b in of] for a in of])
        for of, graph in zip(names, graphs, strict=True)
    ]
    print("prior  edge   weights            log loss   F1, arrowhead F1, SHD")
    for prior, edge in product(PRIORS, EDGES):
        odds, arrows = zip(*map(odds_of, tables, reads, repeat(prior), repeat(edge)), strict=True)
        weights, loss = fitted(odds, arcs)
        made = map(graph_of, names, odds, repeat(weights), arrows)
        told = [scores(graph, truth) for graph, truth in zip(made, graphs, strict=True)]
        means = [float(np.mean([of[key] for of in told])) for key in SCORES]
        print(f"{prior:5} {edge:5}  {weights.round(2)!s:18} {loss:.4f}    ", np.round(means, 3))


if __name__ == "__main__":
    main()
