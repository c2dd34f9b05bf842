"""Fit what the verdict of a search is worth beside the trained reader, on simulated releases.

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book and
none that the reader was trained on, releases their pairs at random budgets, and fits a logistic
model to the reader's log odds and to whether a search of the same release joins the pair. Prints
the numbers that dpcgd/marginals/reader.py keeps, and on fresh networks what the verdict gains.
"""

import math
import sys

import networkx as nx
import numpy as np
from joblib import Parallel, delayed
from make_orientation import released
from make_reader import between
from sklearn.linear_model import LogisticRegression

from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.marginals.reader import edge_probabilities, log_odds, most_likely_edges, with_verdict
from dpcgd.marginals.table_pc import TableOracle, search_tables

NETWORKS, FRESH, SEED = 300, 150, 2028
VARIABLES, RECORDS, EPSILONS = (4, 80), (1e4, 1e6), (0.1, 3.0)
MOST_CODES = 6e6
"""Records times variables, for time."""


def example(number: int) -> tuple[np.ndarray, ...]:
    """Of one network: probabilities, what a search joins, and what is joined, (d, d) each."""
    rng = np.random.default_rng([SEED, number])
    d = round(between(VARIABLES, rng))
    network = random_network(SHAPES[number % 6], TABLES[number // 6 % 5], d, rng)
    n = round(min(between(RECORDS, rng), MOST_CODES / d))
    data = network.sample(n, rng=rng)
    told = released(data, between(EPSILONS, rng), rng)
    found = search_tables(TableOracle(told), data.variables, max_order=2, untested="drop")
    joined = found.graph.arcs | found.graph.arcs.T
    true = nx.to_numpy_array(network.graph, nodelist=data.variables, weight=None) > 0
    return edge_probabilities(told), joined, true | true.T


def rows_of(probabilities, joined, true) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is fitted, what it is fitted to, and the weight of each pair."""
    told = np.triu((probabilities > 0) | joined, 1)
    rows = np.column_stack([log_odds(probabilities[told]), joined[told]])
    return rows, true[told], np.full(told.sum(), 1 / math.sqrt(max(1, told.sum())))


def f1(found, true) -> float:
    return 2 * (found & true).sum() / max(1, found.sum() + true.sum())


def main(workers: str = "-1"):
    parts = Parallel(int(workers))(delayed(example)(k) for k in range(NETWORKS + FRESH))
    rows, labels, weights = map(
        np.concatenate, zip(*(rows_of(*of) for of in parts[:NETWORKS]), strict=True)
    )
    model = LogisticRegression(C=100, max_iter=5000).fit(rows, labels, weights)
    slope, verdict = model.coef_[0]
    print(f"SLOPE, VERDICT, BIAS = {slope:.2f}, {verdict:.2f}, {model.intercept_[0]:.2f}")
    gains = [
        (f1(most_likely_edges(with_verdict(p, joined)), true) - f1(most_likely_edges(p), true))
        for p, joined, true in parts[NETWORKS:]
    ]
    print(f"F1 on fresh networks {np.mean(gains):+.4f} ± {np.std(gains) / math.sqrt(FRESH):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
