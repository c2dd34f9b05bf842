"""Fit how likely a collider is to simulated releases, where the truth is known.

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their pairs at random budgets, reads each triple of the true skeleton and of one that the
reader finds, and fits a logistic model to which of them are colliders. Prints the numbers that
dpcgd/marginals/orientation.py keeps, and on fresh networks how good they are.
"""

import math
import sys

import numpy as np
from joblib import Parallel, delayed
from make_reader import between, simulated
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.marginals.clipped_moments import measure_moments
from dpcgd.marginals.interactions import Marginals
from dpcgd.marginals.orientation import expanded, open_triples, triple_features
from dpcgd.marginals.reader import edge_probabilities, most_likely_edges
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import rho_of_budget

NETWORKS, FRESH, SEED = 240, 40, 2027
VARIABLES, RECORDS, EPSILONS = (5, 50), (2e4, 5e5), (0.1, 5.0)
MOST_CODES = 6e6
"""Records times variables, for time."""


def released(data, epsilon, rng) -> Marginals:
    """All pairs with the noise of this epsilon at a delta of 1e-6."""
    rho = rho_of_budget(Budget(epsilon, 1e-6))
    return measure_moments(data, simulated(rng), rho, clipped=False)


def examples(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of the triples of one network's skeleton, true and found, and whether they meet."""
    rng = np.random.default_rng([SEED, number])
    d = round(between(VARIABLES, rng))
    network = random_network(SHAPES[number % 6], TABLES[number // 6 % 5], d, rng)
    n = round(min(between(RECORDS, rng), MOST_CODES / d))
    told = released(network.sample(n, rng=rng), between(EPSILONS, rng), rng)
    at = {name: i for i, name in enumerate(network.levels)}
    arcs = np.zeros((d, d), bool)
    for a, b in network.graph.edges:
        arcs[at[a], at[b]] = True
    rows, meet = [], []
    for joined in (arcs | arcs.T, most_likely_edges(edge_probabilities(told))):
        triples = open_triples(joined)
        rows.append(triple_features(told, joined, triples))
        meet += [arcs[x, c] and arcs[y, c] for x, c, y in triples]
    return np.vstack(rows), np.array(meet, bool)


def main(workers: str = "-1"):
    parts = Parallel(int(workers))(delayed(examples)(k) for k in range(NETWORKS + FRESH))
    rows, meet = (np.concatenate([part[k] for part in parts[:NETWORKS]]) for k in (0, 1))
    weights = [np.full(len(of), 1 / math.sqrt(max(1, len(of)))) for _, of in parts[:NETWORKS]]
    scaler = StandardScaler().fit(np.hstack(expanded(rows)))
    model = LogisticRegression(C=10, max_iter=5000)
    model.fit(scaler.transform(np.hstack(expanded(rows))), meet, np.concatenate(weights) * 10)
    slopes = model.coef_[0] / scaler.scale_
    print("INTERCEPT =", float(f"{model.intercept_[0] - slopes @ scaler.mean_:.4g}"))
    for of in slopes.reshape(3, -1):
        print([float(f"{w:.4g}") for w in of])
    fresh, truth = (np.concatenate([part[k] for part in parts[NETWORKS:]]) for k in (0, 1))
    p = model.predict_proba(scaler.transform(np.hstack(expanded(fresh))))[:, 1]
    print(f"{len(meet)} triples, {meet.mean():.3f} of them colliders")
    print(f"log loss on fresh ones {-np.log(np.where(truth, p, 1 - p)).mean():.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
