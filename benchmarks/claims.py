"""What the project claims, in one file: book/stored/claims.json.

python benchmarks/claims.py

Takes false pairs from nothing_to_find.py, the cover of error bars from fit_cover.py and planted
bugs from `make mutants`, as their last runs left them in _build/results, and measures calibration
anew: of 60 fresh random networks at epsilon 0.3 and 1, by tenths of the probability that
private_graph gives an edge, the mean of what was said, the share that is true, and how many pairs.
A minute.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from dpcgd import private_graph
from dpcgd.datasets.random_networks import any_network

ROOT = Path(__file__).resolve().parent.parent
RESULTS, CLAIMS = ROOT / "_build" / "results", ROOT / "book" / "stored" / "claims.json"
SEED, NETWORKS, RECORDS, EPSILONS = 4415, 60, 100_000, (0.3, 1.0)


def pairs_of(number: int, epsilon: float) -> list[tuple[float, bool]]:
    """Of each pair of variables the probability of an edge, and whether there is one."""
    rng = np.random.default_rng([SEED, number])
    data = any_network(int(rng.integers(4, 25)), rng).sample(RECORDS, rng=rng)
    true = {frozenset(edge) for edge in data.truth.edges}
    release = private_graph(data, epsilon=epsilon, rng=rng)
    return [(p, pair in true) for pair, p in release.probabilities.items()]


def calibration() -> dict[str, tuple[float, float, int]]:
    """By tenths of what was said: its mean, the share that is true, and how many pairs."""
    cases = [(number, epsilon) for epsilon in EPSILONS for number in range(NETWORKS)]
    frame = pd.DataFrame([p for case in cases for p in pairs_of(*case)], columns=["said", "true"])
    groups = frame.groupby(np.minimum((frame.said * 10).astype(int), 9))
    means = {k: map(float, own.mean().round(4)) for k, own in groups}
    return {f"{k / 10:g} to {(k + 1) / 10:g}": (*means[k], len(own)) for k, own in groups}


def main():
    names = "nothing_to_find", "fit_cover", "attacks"
    nothing, cover, attacks = (json.loads((RESULTS / f"{n}.json").read_text()) for n in names)
    by_family = [row for row in nothing if row["false pairs"] is not None]
    usual = [row for row in cover if (row["n"], row["epsilon"]) == (100_000, 1.0)]
    claims = {
        "false_pairs_a_run": max(row["false pairs"] for row in by_family),
        "false_pairs_in_the_worst_cell": max(row["worst"] for row in by_family),
        "calibration": calibration(),
        "cover": min(row["cover"] for row in usual if row["system"] == "all"),
        "planted": attacks["planted"],
        "caught": attacks["caught"],
    }
    CLAIMS.write_text(json.dumps(claims, indent=1) + "\n")
    print(json.dumps(claims, indent=1))


if __name__ == "__main__":
    main()
