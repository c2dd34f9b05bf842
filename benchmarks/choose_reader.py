"""How the trained reader was chosen: on simulated networks, none of which is in the book.

python benchmarks/choose_reader.py

Needs what ``make reader`` has drawn. Trains on nine tenths of the networks and scores the edges
that are read of the rest, one change at a time: mean F1, and its gain with one standard error.
"""

import math
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import make_reader as reader

CHANGES = {
    "as it is": {},
    "half of the networks": {"part": 2},
    "a quarter of the networks": {"part": 4},
    "every release counts alike": {"alike": True},
    "half the trees": {"max_iter": 200},
    "half the trees, 16 leaves": {"max_iter": 200, "max_leaf_nodes": 16},
}
HELD = 10
"""One network in so many is held back."""


class Examples:
    """Features, labels and releases of many networks."""

    def __init__(self, rows, labels, networks, releases):
        self.rows, self.labels = rows, labels
        self.networks, self.releases = networks, releases
        self.held = networks % HELD == 0

    def scores(self, *, part=1, alike=False, **how) -> np.ndarray:
        """F1 of each release that was held back, by a model that is trained on the others."""
        chosen = ~self.held & (self.networks % part == 1 % part)
        weights = 1 / np.sqrt(np.bincount(self.releases))[self.releases] if alike else None
        model = HistGradientBoostingClassifier(**{**reader.TREES, **how})
        model.fit(
            self.rows[chosen],
            self.labels[chosen],
            sample_weight=None if weights is None else weights[chosen],
        )
        told = model.predict_proba(self.rows[self.held])[:, 1]
        of, labels = self.releases[self.held], self.labels[self.held]
        each = (of == release for release in np.unique(of))
        return np.array([reader.expected_f1(told[at], labels[at], of[at]) for at in each])


def all_examples() -> Examples:
    files = [reader.examples(k) for k in range(reader.NETWORKS)]
    rows, labels, networks = reader.gathered(files)
    sizes = np.concatenate([np.load(file)["sizes"] for file in files])
    return Examples(rows, labels, networks, np.repeat(np.arange(len(sizes)), sizes))


def main():
    examples, usual = all_examples(), None
    print(f"{'':32}  F1      gain    one error")
    for name, change in CHANGES.items():
        scores = examples.scores(**change)
        usual = scores if usual is None else usual
        gained = scores - usual
        error = gained.std() / math.sqrt(len(gained))
        print(f"{name:32}{scores.mean():6.4f}  {gained.mean():+.4f}  {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
