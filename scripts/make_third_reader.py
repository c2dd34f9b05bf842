"""Train the third reading, of releases with triples, on simulated networks: make third_reader

Draws networks of six to twelve variables that the other readings have not seen, releases their
pairs and triples at budgets that afford triples, has the pairs read, and fits boosted trees to
which pairs are edges. What is drawn is kept in _build/reader, so that a command that was killed
goes on where it stopped. Writes data/third_reader.json, for data/reader.json as it is.
"""

import math
import sys

import numpy as np
import training

from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.interactions import FEWEST, MOST, MOST_LEVELS, measure_triples, pairs_sensitivity
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget
from dpcgd.reading.pair_features import THIRD_FEATURES, third_features
from dpcgd.reading.reader import pairs_read

NETWORKS, SEED = 3000, 2028
VARIABLES, RECORDS, EPSILONS = (FEWEST, MOST), (3e3, 1e6), (0.1, 10.0)
NOISE_OVER_SAMPLING = 0.3
"""The most for a pair: somewhat more than releases with triples have."""
TREES = {"max_iter": 150, "learning_rate": 0.06, "max_leaf_nodes": 12, "min_samples_leaf": 40}
CODE = (*training.READ, "moments/interactions")
"""The files of the package that examples depend on."""


def network_of(rng) -> Network:
    """Of any kind, with no more levels than releases with triples have."""
    while True:
        network = any_network(round(training.between(VARIABLES, rng)), rng)
        if max(map(len, network.levels.values())) <= MOST_LEVELS:
            return network


def rho_for(levels, n, rng) -> float:
    """Of a random budget that affords triples."""
    while True:
        rho = rho_of_budget(Budget(training.between(EPSILONS, rng), 1e-6))
        noise = pairs_sensitivity(levels) * multiplier_of_rho(rho)
        if noise <= NOISE_OVER_SAMPLING * math.sqrt(n):
            return rho


@training.on_file("third", CODE, __file__, "data/reader.json")
def examples(number: int) -> dict:
    """Features and labels of the pairs of one network's release."""
    rng = np.random.default_rng([SEED, number])
    network = network_of(rng)
    data = network.sample(round(training.between(RECORDS, rng)), rng=rng)
    rho = rho_for(data.cardinalities, data.n, rng)
    moments = measure_triples(data, training.simulated(rng), rho)
    pairs, rows = third_features(moments, pairs_read(moments))
    place = {name: i for i, name in enumerate(data.variables)}
    edges = {tuple(sorted((place[a], place[b]))) for a, b in network.graph.edges}
    return {"rows": rows, "labels": [tuple(pair) in edges for pair in pairs.tolist()]}


def main(workers: str = "-1"):
    files = training.in_parallel(examples, workers, range(NETWORKS))
    rows, labels, groups = training.gathered(files)
    print(f"{len(labels)} pairs, {labels.mean():.3f} of them edges")
    held = groups % 10 == 0
    third = training.trees(rows[~held], labels[~held], **TREES).predict_proba(rows[held])[:, 1]
    before = 1 / (1 + np.exp(-rows[held, THIRD_FEATURES.index("log odds")].astype(float)))
    for name, probabilities in (("read twice", before), ("read a third time", third)):
        print(name, end=", ")
        training.report(probabilities, labels[held], groups[held])
    facts = {"networks": NETWORKS, "variables": VARIABLES}
    facts |= {"records": RECORDS, "epsilons": EPSILONS}
    model = training.as_arrays(training.trees(rows, labels, **TREES))
    training.write("third_reader", __file__, facts, features=THIRD_FEATURES, third=model)


if __name__ == "__main__":
    main(*sys.argv[1:])
