"""Train what reads releases on simulated networks, where the truth is known.

python scripts/training.py reader|third_reader|colliders [workers]     # make reader, and so on

All draw networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
and release their moments at random budgets. What is drawn is kept in _build/reader, so that a
command that was killed goes on where it stopped. Each writes a file of data/.

- reader: boosted trees say which pairs are edges. A second model reads each release again, with the
  probabilities of a first model that has not seen its network.
- third_reader, for data/reader.json as it is: networks of six to twelve variables that the reader
  has not seen, at budgets that afford triples, have their pairs read, and trees that know the
  triples too say which pairs are edges.
- colliders, for data/reader.json as it is: trees say which triples of the true skeleton, and of one
  that the reader finds, are colliders.
"""

import json
import math
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
from chapters import BUILD, ROOT
from dpcgd_book.results.digests import digest_of_files
from joblib import Memory, Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.clipped_moments import blocks_of, clips, measure_moments
from dpcgd.moments.interactions import FEWEST, MOST, MOST_LEVELS, measure_triples, pairs_sensitivity
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget
from dpcgd.reading import orientation
from dpcgd.reading.pair_features import pair_features, second_features, third_features
from dpcgd.reading.reader import most_likely_edges, pairs_read

TREES: dict = {
    "max_iter": 400,
    "learning_rate": 0.08,
    "max_leaf_nodes": 24,
    "min_samples_leaf": 60,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "random_state": 2026,
}
"""The settings of boosted trees, unless a training has others."""
READ_AGAIN = {"max_iter": 200}
SMALLER = {"max_iter": 150, "learning_rate": 0.06, "max_leaf_nodes": 12, "min_samples_leaf": 40}
OF_COLLIDERS = {"max_iter": 250, "learning_rate": 0.06, "max_leaf_nodes": 16}
"""Other settings: of the second reading, of the third, and of what says colliders."""
RELEASES = 2
"""Of each network, for the reader."""
UNCLIPPED = 0.2
"""Share of releases of more variables that are not clipped, as of data that only answers counts."""
WITHOUT_NOISE = 0.05
"""Share of the reader's releases with next to no noise."""
NOISE_OVER_SAMPLING = 0.3
"""The most for a pair of the third reader: somewhat more than releases with triples have."""


ROOMS = (f"dpcgd/{room}" for room in ("datasets", "moments", "reading"))
CODE = digest_of_files([*ROOMS, "data/reader.json", __file__], root=ROOT)[:8]
kept = Memory(BUILD / "reader" / CODE, verbose=0).cache
"""What a function returns is kept on file, as long as this code stays as it is."""


@dataclass(frozen=True)
class Training:
    """What a model is trained on: networks, records, budgets."""

    seed: int
    networks: int
    variables: tuple[int, int]
    records: tuple[float, float]
    epsilons: tuple[float, float]
    most_codes: float = 1.5e7
    """Records times variables, for time."""

    def rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number])

    def network(self, rng) -> Network:
        return any_network(round(between(self.variables, rng)), rng)

    def records_of(self, network, rng) -> Dataset:
        most = self.most_codes / len(network.levels)
        return network.sample(round(min(between(self.records, rng), most)), rng=rng)

    def rho(self, rng) -> float:
        return rho_of_budget(Budget(between(self.epsilons, rng), 1e-6))

    def write(self, name: str, *, more=(), **models) -> None:
        """Put trained models, and what they were trained on, into a file of data/."""
        facts = {"networks": self.networks, **dict(more), "variables": self.variables}
        facts |= {"records": self.records, "epsilons": self.epsilons}
        facts["script"] = digest_of_files([__file__])[:16]
        (ROOT / "data" / f"{name}.json").write_text(json.dumps({"trained": facts, **models}) + "\n")


READER = Training(2026, 2000, (3, 200), (1e3, 1e6), (0.05, 10.0))
THIRD = Training(2028, 3000, (FEWEST, MOST), (3e3, 1e6), (0.1, 10.0))
COLLIDERS = Training(2029, 1200, (4, 60), (5e3, 5e5), (0.1, 5.0), 6e6)


# --- what all share


def in_parallel(task, workers: str, *cases) -> list:
    """The task of every case, on so many processes; -1 takes all cores."""
    return Parallel(int(workers))(delayed(task)(*case) for case in zip(*cases, strict=True))


def between(bounds, rng) -> float:
    return math.exp(rng.uniform(*map(math.log, bounds)))


def simulated(rng):
    """Answer with Gaussian noise that nobody pays for: the records are nobody's."""

    def measure(query, *, sensitivity, rho):
        deviation = sensitivity * multiplier_of_rho(rho)
        values = query()
        return values + deviation * rng.standard_normal(values.shape), deviation

    return measure


def released(data, rho, rng):
    clipped = clips(data) and rng.random() >= UNCLIPPED
    return measure_moments(data, simulated(rng), rho, clipped=clipped)


def arcs_of(data) -> np.ndarray:
    """The true graph, ``arcs[a, b]`` where a is a parent of b."""
    arcs = np.zeros((data.d, data.d), bool)
    for edge in data.truth.edges:
        arcs[tuple(map(data.variables.index, edge))] = True
    return arcs


def are_edges(arcs, pairs) -> np.ndarray:
    return (arcs | arcs.T)[tuple(pairs.T)]


def gathered(parts) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, labels and the network of every example."""
    groups = np.repeat(np.arange(len(parts)), [len(labels) for _, labels, *_ in parts])
    rows = pd.concat([part[0] for part in parts], ignore_index=True)
    return rows, np.concatenate([part[1] for part in parts]), groups


def trees(rows, labels, **other) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**TREES | other).fit(rows, labels)


def said_by(model, rows) -> np.ndarray:
    return model.predict_proba(rows)[:, 1]


def as_arrays(model) -> dict:
    """The trees as lists of plain numbers."""
    arrays: dict = {k: [] for k in ("roots", "feature", "threshold", "left", "right", "value")}
    for (tree,) in model._predictors:
        start, nodes = len(arrays["feature"]), tree.nodes
        leaf = nodes["is_leaf"].astype(bool)
        thresholds, values = np.where(leaf, 0, nodes["num_threshold"]), nodes["value"]
        arrays["roots"].append(start)
        arrays["feature"] += np.where(leaf, -1, nodes["feature_idx"]).tolist()
        arrays["threshold"] += [float(f"{t:.6g}") for t in thresholds]
        arrays["left"] += (nodes["left"] + start).tolist()
        arrays["right"] += (nodes["right"] + start).tolist()
        arrays["value"] += [float(f"{v:.4g}") for v in np.where(leaf, values, 0)]
    return {"bias": float(np.ravel(model._baseline_prediction)[0]), **arrays}


def checked(rows, labels, groups, **settings):
    """Print how good trees are on a tenth of the networks if they have not seen it."""
    held = groups % 10 == 0
    said = said_by(trees(rows[~held], labels[~held], **settings), rows[held])
    share = np.full(len(labels), labels.mean())
    print(f"{len(labels)} examples; log loss {log_loss(labels[held], said):.4f} on a tenth of the")
    print(f"networks, which trees have not seen; {log_loss(labels, share):.4f} by the share alone")


# --- the reader of released pairs


@kept
def releases(number: int):
    """Two releases of one network's records, and its arcs."""
    rng, some = READER.rng(number), []
    data = READER.records_of(READER.network(rng), rng)
    for _ in range(RELEASES):
        rho = READER.rho(rng)
        some.append(released(data, 1e6 if rng.random() < WITHOUT_NOISE else rho, rng))
    return some, arcs_of(data)


@kept
def read_once(number: int):
    """Features and labels of the pairs of one network's releases, and the pairs of each."""
    some, arcs = releases(number)
    pairs, rows = zip(*map(pair_features, some), strict=True)
    return pd.concat(map(pd.DataFrame, rows)), are_edges(arcs, np.concatenate(pairs)), pairs


@kept
def read_again(number: int, probabilities: np.ndarray):
    """Features for the second reading, and which rows of the first they continue.

    The probabilities of all pairs are those of a first reading that has not seen the network.
    """
    parts, start = [], 0
    for moments, pairs in zip(releases(number)[0], read_once(number)[2], strict=True):
        numbers = np.arange(start, start + len(pairs))
        likely, place = np.zeros((2, len(moments.levels), len(moments.levels)))
        likely[tuple(pairs.T)], place[tuple(pairs.T)] = probabilities[numbers], numbers
        again, rows = second_features(blocks_of(moments), likely + likely.T)
        parts.append((pd.DataFrame(rows), place[tuple(again.T)].astype(int)))
        start += len(pairs)
    rows, places = zip(*parts, strict=True)
    return pd.concat(rows), np.concatenate(places)


def read_unseen(rows, labels, groups) -> np.ndarray:
    """Probabilities of each pair, by trees that have not seen its network."""
    probabilities = np.zeros(len(labels))
    for half in (groups % 2 == 0, groups % 2 == 1):
        probabilities[half] = said_by(trees(rows[~half], labels[~half]), rows[half])
    return probabilities


def reader(workers: str):
    numbers = range(READER.networks)
    rows, labels, groups = gathered(in_parallel(read_once, workers, numbers))
    checked(rows, labels, groups)
    probabilities = read_unseen(rows, labels, groups)
    by_network = (probabilities[groups == k] for k in numbers)
    parts = in_parallel(read_again, workers, numbers, by_network)
    starts = np.searchsorted(groups, numbers)
    pairs = np.concatenate([start + pairs for start, (_, pairs) in zip(starts, parts, strict=True)])
    again = pd.concat([more for more, _ in parts], ignore_index=True)
    both = rows.iloc[pairs].reset_index(drop=True).join(again)
    checked(both, labels[pairs], groups[pairs], **READ_AGAIN)
    first = as_arrays(trees(rows, labels))
    second = as_arrays(trees(both, labels[pairs], **READ_AGAIN))
    more = {"releases": RELEASES * READER.networks, "levels": [2, 20]}
    READER.write("reader", more=more, features=[*both], first=first, second=second)


# --- the reader of releases with triples


@kept
def with_triples(number: int):
    """Features and labels of the pairs of one network's release."""
    rng = THIRD.rng(number)
    while True:
        network = THIRD.network(rng)
        if max(map(len, network.levels.values())) <= MOST_LEVELS:
            break
    data = THIRD.records_of(network, rng)
    moves, most = pairs_sensitivity(data.cardinalities), NOISE_OVER_SAMPLING * math.sqrt(data.n)
    while moves * multiplier_of_rho(rho := THIRD.rho(rng)) > most:
        pass  # such a budget affords no triples
    moments = measure_triples(data, simulated(rng), rho)
    pairs, rows = third_features(moments, pairs_read(moments))
    return pd.DataFrame(rows), are_edges(arcs_of(data), pairs)


def third_reader(workers: str):
    rows, labels, groups = gathered(in_parallel(with_triples, workers, range(THIRD.networks)))
    checked(rows, labels, groups, **SMALLER)
    third = as_arrays(trees(rows, labels, **SMALLER))
    THIRD.write("third_reader", features=[*rows], third=third)


# --- colliders


@kept
def triples(number: int):
    """Features of the triples of one network's skeleton, true and found, and whether they meet."""
    rng = COLLIDERS.rng(number)
    data = COLLIDERS.records_of(COLLIDERS.network(rng), rng)
    moments, arcs = released(data, COLLIDERS.rho(rng), rng), arcs_of(data)
    rows, meet = [], []
    for joined in (arcs | arcs.T, most_likely_edges(pairs_read(moments))):
        some = orientation.open_triples(joined)
        rows.append(pd.DataFrame(orientation.triple_features(moments, joined, some)))
        meet += [arcs[x, c] and arcs[y, c] for x, c, y in some]
    return pd.concat(rows), np.array(meet, bool)


def colliders(workers: str):
    rows, labels, groups = gathered(in_parallel(triples, workers, range(COLLIDERS.networks)))
    checked(rows, labels, groups, **OF_COLLIDERS)
    model = as_arrays(trees(rows, labels, **OF_COLLIDERS))
    COLLIDERS.write("colliders", features=[*rows], trees=model)


TRAININGS = {"reader": reader, "third_reader": third_reader, "colliders": colliders}

if __name__ == "__main__":
    name, *workers = sys.argv[1:]
    TRAININGS[name](*workers or ["-1"])
