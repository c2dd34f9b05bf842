"""Train how likely a collider is on simulated releases, where the truth is known: make colliders

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their moments at random budgets, reads each triple of the true skeleton and of one that the
reader finds, and fits boosted trees to which of them are colliders. What is drawn is kept in
_build/reader, so that a command that was killed goes on where it stopped. Writes
data/colliders.json, for data/reader.json as it is.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from chapters import ROOT
from joblib import Parallel, delayed
from make_reader import KEPT, READ, UNCLIPPED, as_arrays, between, save, simulated, trees

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
CODE = (*READ, "reading/reader", "reading/orientation")
"""What examples depend on."""


def examples(number: int) -> Path:
    """Features of the triples of one network's skeleton, true and found, and whether they meet."""
    file = kept() / f"{number:04d}.npz"
    if file.exists():
        return file
    rng = np.random.default_rng([SEED, number])
    d = round(between(VARIABLES, rng))
    network = any_network(d, rng)
    data = network.sample(round(min(between(RECORDS, rng), MOST_CODES / d)), rng=rng)
    rho = rho_of_budget(Budget(between(EPSILONS, rng), 1e-6))
    clipped = clips(data) and rng.random() >= UNCLIPPED
    told = measure_moments(data, simulated(rng), rho, clipped=clipped)
    at = {name: i for i, name in enumerate(network.levels)}
    arcs = np.zeros((d, d), bool)
    for a, b in network.graph.edges:
        arcs[at[a], at[b]] = True
    rows, meet = [], []
    for joined in (arcs | arcs.T, most_likely_edges(pairs_read(told))):
        triples = open_triples(joined)
        rows.append(triple_features(told, joined, triples))
        meet += [arcs[x, c] and arcs[y, c] for x, c, y in triples]
    return save(file, {"rows": np.vstack(rows), "labels": np.array(meet, bool)})


def kept() -> Path:
    """Where examples are kept as long as the code and the reader stay as they are."""
    files = [*(ROOT / "dpcgd" / f"{name}.py" for name in CODE), Path(__file__)]
    files.append(ROOT / "data" / "reader.json")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    (found := KEPT / f"colliders-{digest}").mkdir(parents=True, exist_ok=True)
    return found


def gathered(files) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of all triples."""
    parts = [np.load(file) for file in files]
    return tuple(np.concatenate([part[k] for part in parts]) for k in ("rows", "labels"))


def main(workers: str = "-1"):
    files = Parallel(int(workers))(delayed(examples)(k) for k in range(NETWORKS + FRESH))
    rows, labels = gathered(files[:NETWORKS])
    model = trees(rows, labels, **TREES)
    fresh, truth = gathered(files[NETWORKS:])
    p = model.predict_proba(fresh)[:, 1]
    print(f"{len(labels)} triples, {labels.mean():.3f} of them colliders")
    print(f"log loss on fresh ones {-np.log(np.where(truth, p, 1 - p)).mean():.4f}")
    script = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    trained = {"networks": NETWORKS, "variables": VARIABLES, "records": RECORDS}
    trained |= {"epsilons": EPSILONS, "script": script}
    told = {"features": FEATURES, "trained": trained, "trees": as_arrays(model)}
    (ROOT / "data" / "colliders.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
