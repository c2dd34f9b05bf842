"""How the trained reader was chosen: on simulated networks, none of which is in the book.

python benchmarks/choose_reader.py

Needs what ``make reader`` has drawn. Trains on nine tenths of the networks and scores the edges
that are read of the rest, one change at a time: mean F1, and its gain with one standard error. What
is read again gains over what models of half of the networks read once. What kinds of tables that
only readers are trained on are worth is told for each kind.
"""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import make_reader as reader

from dpcgd.datasets.random_networks import MORE_TABLES, TABLES

CHANGES = {
    "as it is": {},
    "half of the networks": {"part": 2},
    "a quarter of the networks": {"part": 4},
    "every release counts alike": {"alike": True},
    "half the trees": {"max_iter": 200},
    "half the trees, 16 leaves": {"max_iter": 200, "max_leaf_nodes": 16},
}
AGAIN = {
    "read again": {},
    "read again by twice the trees": {"max_iter": 400},
    "read again without the first features": {"alone": True},
}
HELD = 10
"""One network in so many is held back."""


class Examples:
    """Features, labels and releases of many networks, and what a first reading told of them."""

    def __init__(self, rows, labels, networks, releases):
        self.rows, self.labels = rows, labels
        self.networks, self.releases = networks, releases
        self.held = networks % HELD == 0
        names = (reader.network_of(k)[0].name for k in range(reader.NETWORKS))
        self.kinds = np.array([name.split(", ")[1] for name in names])
        self.told = reader.told_unseen(rows, labels, networks)
        again = [reader.read_again(k, self.told[networks == k]) for k in range(reader.NETWORKS)]
        self.both, self.of = reader.gathered_again(again, rows, networks)

    def scores(self, *, part=1, alike=False, kinds=None, **how) -> np.ndarray:
        """F1 of each release that was held back, by a model that is trained on the others."""
        chosen = ~self.held & (self.networks % part == 1 % part)
        if kinds:
            chosen &= np.isin(self.kinds, kinds)[self.networks]
        weights = 1 / np.sqrt(np.bincount(self.releases))[self.releases[chosen]] if alike else None
        model = reader.trees(self.rows[chosen], self.labels[chosen], weights, **how)
        return self.f1(model.predict_proba(self.rows[self.held])[:, 1])

    def kind_of_release(self) -> np.ndarray:
        """Kind of tables of each release that was held back."""
        _, first = np.unique(self.releases[self.held], return_index=True)
        return self.kinds[self.networks[self.held][first]]

    def scores_again(self, *, alone=False, **how) -> np.ndarray:
        """The same once they are read again."""
        rows = self.both[:, len(reader.FEATURES) :] if alone else self.both
        told = reader.told_again(self.told, rows, self.of, self.labels, self.held, **how)
        return self.f1(told[self.held])

    def f1(self, told) -> np.ndarray:
        of, labels = self.releases[self.held], self.labels[self.held]
        each = (of == release for release in np.unique(of))
        return np.array([reader.expected_f1(told[at], labels[at], of[at]) for at in each])


def all_examples() -> Examples:
    files = [reader.examples(k) for k in range(reader.NETWORKS)]
    rows, labels, networks = reader.gathered(files)
    sizes = np.concatenate([np.load(file)["sizes"] for file in files])
    return Examples(rows, labels, networks, np.repeat(np.arange(len(sizes)), sizes))


def say(name, scores, usual):
    """How good something is, and what it gains over what is usual."""
    gained = scores - usual
    error = gained.std() / math.sqrt(len(gained))
    print(f"{name:40}{scores.mean():6.4f}  {gained.mean():+.4f}  {error:.4f}", flush=True)


def main():
    examples = all_examples()
    print(f"{'':40}F1      gain     one error")
    usual = examples.scores()
    for name, change in CHANGES.items():
        say(name, examples.scores(**change) if change else usual, usual)
    narrow, kinds = examples.scores(kinds=TABLES), examples.kind_of_release()
    say("kinds that settings were chosen on", narrow, usual)
    for kind in TABLES + MORE_TABLES:
        say(f"  tried on {kind}", narrow[kinds == kind], usual[kinds == kind])
    once = examples.f1(examples.told[examples.held])
    for name, change in AGAIN.items():
        say(name, examples.scores_again(**change), once)


if __name__ == "__main__":
    main()
