"""Train the third reading, of releases with triples, on simulated networks: make third_reader

Draws networks of six to twelve variables that the other readings have not seen, releases their
pairs and triples at budgets that afford triples, has the pairs read, and fits boosted trees to
which pairs are edges. What is drawn is kept in _build/reader, so that a command that was killed
goes on where it stopped. Writes data/third_reader.json, for data/reader.json as it is.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
from chapters import ROOT
from joblib import Parallel, delayed
from make_reader import (
    KEPT,
    READ,
    as_arrays,
    between,
    gathered,
    report,
    save,
    simulated,
    trees,
)

from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.interactions import FEWEST, MOST, MOST_LEVELS, measure_triples, pairs_sensitivity
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget
from dpcgd.reading.reader import pairs_read
from dpcgd.reading.third_reading import THIRD_FEATURES, third_features

NETWORKS, SEED = 3000, 2028
VARIABLES, RECORDS, EPSILONS = (FEWEST, MOST), (3e3, 1e6), (0.1, 10.0)
NOISE_OVER_SAMPLING = 0.3
"""Of a pair, at most: somewhat more than releases with triples have."""
TREES = {"max_iter": 150, "learning_rate": 0.06, "max_leaf_nodes": 12, "min_samples_leaf": 40}
CODE = (*READ, "moments/triples", "reading/association", "reading/third_reading")
"""What examples depend on."""


def network_of(rng) -> Network:
    """Of any kind, with no more levels than releases with triples have."""
    while True:
        network = any_network(round(between(VARIABLES, rng)), rng)
        if max(map(len, network.levels.values())) <= MOST_LEVELS:
            return network


def rho_for(levels, n, rng) -> float:
    """Of a random budget that affords triples."""
    while True:
        rho = rho_of_budget(Budget(between(EPSILONS, rng), 1e-6))
        noise = pairs_sensitivity(levels) * multiplier_of_rho(rho)
        if noise <= NOISE_OVER_SAMPLING * math.sqrt(n):
            return rho


def examples(number: int) -> Path:
    """Features and labels of the pairs of one network's release, on file."""
    file = kept() / f"{number:04d}.npz"
    if file.exists():
        return file
    rng = np.random.default_rng([SEED, number])
    network = network_of(rng)
    data = network.sample(round(between(RECORDS, rng)), rng=rng)
    told = measure_triples(data, simulated(rng), rho_for(data.cardinalities, data.n, rng))
    pairs, rows = third_features(told, pairs_read(told))
    at = {name: i for i, name in enumerate(data.variables)}
    edges = {tuple(sorted((at[a], at[b]))) for a, b in network.graph.edges}
    return save(file, {"rows": rows, "labels": [tuple(pair) in edges for pair in pairs.tolist()]})


def kept() -> Path:
    """Where examples are kept as long as the code and the other readings stay as they are."""
    files = [*(ROOT / "dpcgd" / f"{name}.py" for name in CODE), Path(__file__)]
    files.append(ROOT / "data" / "reader.json")
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    (found := KEPT / f"third-{digest}").mkdir(parents=True, exist_ok=True)
    return found


def main(workers: str = "-1"):
    files = Parallel(int(workers))(delayed(examples)(k) for k in range(NETWORKS))
    rows, labels, groups = gathered(files)
    print(f"{len(labels)} pairs, {labels.mean():.3f} of them edges")
    held = groups % 10 == 0
    told = trees(rows[~held], labels[~held], **TREES).predict_proba(rows[held])[:, 1]
    before = 1 / (1 + np.exp(-rows[held, THIRD_FEATURES.index("log odds")].astype(float)))
    for name, of in (("read twice", before), ("read a third time", told)):
        print(name, end=", ")
        report(of, labels[held], groups[held])
    trained = {
        "networks": NETWORKS,
        "variables": VARIABLES,
        "records": RECORDS,
        "epsilons": EPSILONS,
        "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16],
    }
    third = as_arrays(trees(rows, labels, **TREES))
    told = {"features": THIRD_FEATURES, "trained": trained, "third": third}
    (ROOT / "data" / "third_reader.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
