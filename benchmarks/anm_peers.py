"""causal-learn's additive noise model on the Tuebingen pairs, beside ours on the same records.

.venv/bin/python benchmarks/anm_peers.py

Gaussian processes take time of cubic order, so both get the same 300 records of a pair, drawn at
random, columns shuffled. Ours splits them in halves, ten times; causal-learn uses all of them for
fit and score. Writes anm_peers.json here, which chapter 08 shows. Takes about a minute on one core.
"""

import importlib.metadata
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from causallearn.search.FCMBased.ANM.ANM import ANM
from dpcgd_book.data.cause_effect_pairs import PAIRS, load_pair, pair_weights

from dpcgd import Dataset, anm

RECORDS, SPLITS = 300, 10


def causal_learn(pair: Dataset) -> bool:
    """Does it find x -> y? Columns standardised, as it expects."""
    values = pair.scaled - pair.scaled.mean(axis=0)
    values = values / values.std(axis=0)
    forward, backward = ANM().cause_or_effect(values[:, :1], values[:, 1:])
    return (forward > backward) == (pair.variables == ("x", "y"))


def ours(pair: Dataset) -> float:
    """How often does it find x -> y, over ten random halves?"""
    found = [anm(pair, rng=np.random.default_rng(split)).direction for split in range(SPLITS)]
    return found.count(("x", "y")) / SPLITS


def main():
    warnings.simplefilter("ignore")  # its optimiser's
    right, seconds = {"causal-learn": {}, "dpcgd": {}}, {"causal-learn": 0.0, "dpcgd": 0.0}
    for number in PAIRS:
        rng = np.random.default_rng([0, number])
        pair = load_pair(number, rng=rng)
        few = rng.choice(pair.n, min(RECORDS, pair.n), replace=False)
        pair = replace(pair, codes=pair.codes[few])
        for name, task in {"causal-learn": causal_learn, "dpcgd": ours}.items():
            started = time.perf_counter()
            right[name][number] = float(task(pair))
            seconds[name] += time.perf_counter() - started
    numbers, official = zip(*pair_weights().items(), strict=True)
    shares = {name: [own[number] for number in numbers] for name, own in right.items()}
    results = {
        "version": importlib.metadata.version("causal-learn"),
        "records": RECORDS,
        "weighted_accuracy": {k: np.average(own, weights=official) for k, own in shares.items()},
        "accuracy": {k: np.mean(own) for k, own in shares.items()},
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }
    file = Path(__file__).parent / "anm_peers.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    print(file.read_text())


if __name__ == "__main__":
    main()
