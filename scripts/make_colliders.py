"""Train how likely a collider is on simulated releases, where the truth is known: make colliders

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their moments at random budgets, reads each triple of the true skeleton and of one that the
reader finds, and fits boosted trees to which of them are colliders. What is drawn is kept in
_build/reader, so that a command that was killed goes on where it stopped. Writes
data/colliders.json, for data/reader.json as it is.
"""

import sys

import numpy as np
import training
from make_reader import UNCLIPPED

from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.clipped_moments import clips, measure_moments
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import rho_of_budget
from dpcgd.reading.orientation import FEATURES, open_triples, triple_features
from dpcgd.reading.reader import most_likely_edges, pairs_read

NETWORKS, FRESH, SEED = 1200, 100, 2029
VARIABLES, RECORDS, EPSILONS = (4, 60), (5e3, 5e5), (0.1, 5.0)
MOST_CODES = 6e6
"""Records times variables, for time."""
TREES = {"max_iter": 250, "learning_rate": 0.06, "max_leaf_nodes": 16}
CODE = (*training.READ, "reading/reader", "reading/orientation")
"""The files of the package that examples depend on."""


@training.on_file("colliders", CODE, __file__, "data/reader.json")
def examples(number: int) -> dict:
    """Features of the triples of one network's skeleton, true and found, and whether they meet."""
    rng = np.random.default_rng([SEED, number])
    d = round(training.between(VARIABLES, rng))
    network = any_network(d, rng)
    data = network.sample(round(min(training.between(RECORDS, rng), MOST_CODES / d)), rng=rng)
    rho = rho_of_budget(Budget(training.between(EPSILONS, rng), 1e-6))
    clipped = clips(data) and rng.random() >= UNCLIPPED
    moments = measure_moments(data, training.simulated(rng), rho, clipped=clipped)
    place = {name: i for i, name in enumerate(network.levels)}
    arcs = np.zeros((d, d), bool)
    for a, b in network.graph.edges:
        arcs[place[a], place[b]] = True
    rows, meet = [], []
    for joined in (arcs | arcs.T, most_likely_edges(pairs_read(moments))):
        triples = open_triples(joined)
        rows.append(triple_features(moments, joined, triples))
        meet += [arcs[x, c] and arcs[y, c] for x, c, y in triples]
    return {"rows": np.vstack(rows), "labels": np.array(meet, bool)}


def main(workers: str = "-1"):
    files = training.in_parallel(examples, workers, range(NETWORKS + FRESH))
    rows, labels, _ = training.gathered(files[:NETWORKS])
    model = training.trees(rows, labels, **TREES)
    fresh, truth, _ = training.gathered(files[NETWORKS:])
    p = model.predict_proba(fresh)[:, 1]
    print(f"{len(labels)} triples, {labels.mean():.3f} of them colliders")
    print(f"log loss on fresh ones {-np.log(np.where(truth, p, 1 - p)).mean():.4f}")
    facts = {"networks": NETWORKS, "variables": VARIABLES}
    facts |= {"records": RECORDS, "epsilons": EPSILONS}
    training.write("colliders", __file__, facts, features=FEATURES, trees=training.as_arrays(model))


if __name__ == "__main__":
    main(*sys.argv[1:])
