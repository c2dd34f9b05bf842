"""Train the reader of released pairs on simulated networks, where the truth is known: make reader

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their moments at random budgets, and fits boosted trees to which pairs are edges. A
second model reads each release again, with the probabilities of a first model that has not seen its
network. What is drawn is kept in _build/reader, so that a command that was killed goes on where it
stopped. Writes data/reader.json.
"""

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from chapters import BUILD, ROOT
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier

from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.blocks import blocks_of, rows_of
from dpcgd.moments.clipped_moments import ClippedMoments, clips, measure_moments
from dpcgd.moments.interactions import Marginals, Measurement, Moment
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget
from dpcgd.reading.pair_features import FEATURES, pair_features
from dpcgd.reading.reader import best_count
from dpcgd.reading.second_reading import SECOND_FEATURES, second_features

NETWORKS, RELEASES, SEED = 2000, 2, 2026
VARIABLES, RECORDS, EPSILONS = (3, 200), (1e3, 1e6), (0.05, 10.0)
UNCLIPPED = 0.2
"""Share of releases of more variables that are not clipped, as of data that only answers counts."""
MOST_CODES = 1.5e7
"""Records times variables, for time."""
WITHOUT_NOISE = 0.05
"""Share of releases with next to no noise."""
TREES: dict = {
    "max_iter": 400,
    "learning_rate": 0.08,
    "max_leaf_nodes": 24,
    "min_samples_leaf": 60,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "random_state": SEED,
}
READ_AGAIN = {"max_iter": 200}
"""Of the second reading, what differs."""
KEPT = BUILD / "reader"
RELEASED = ("datasets/random_networks", "datasets/clipped_sums", "moments/clipped_moments")
"""What releases depend on."""
FEATURES_OF = ("pair_features", "second_reading")
READ = (*RELEASED, "moments/blocks", *(f"reading/{name}" for name in FEATURES_OF))
"""What features depend on."""


def between(bounds, rng) -> float:
    return math.exp(rng.uniform(*map(math.log, bounds)))


def network_of(number: int) -> tuple[Network, np.random.Generator]:
    """A network of any kind, and what all that follows is drawn with."""
    rng = np.random.default_rng([SEED, number])
    return any_network(round(between(VARIABLES, rng)), rng), rng


def drawn(number: int) -> Path:
    """Two releases of one network's records and its edges, on file."""
    file = kept_in("releases", RELEASED) / f"{number:04d}.npz"
    if file.exists():
        return file
    network, rng = network_of(number)
    d = len(network.levels)
    n = round(min(between(RECORDS, rng), MOST_CODES / d))
    data = network.sample(n, rng=rng)
    at = {name: i for i, name in enumerate(data.variables)}
    kept = {"n": n, "levels": data.cardinalities}
    kept["edges"] = [(at[a], at[b]) for a, b in network.graph.edges]
    for k in range(RELEASES):
        rho = rho_of_budget(Budget(between(EPSILONS, rng), 1e-6))
        rho = 1e6 if rng.random() < WITHOUT_NOISE else rho
        clipped = clips(data) and rng.random() >= UNCLIPPED
        told = measure_moments(data, simulated(rng), rho, clipped=clipped)
        singles = [told.moment(v) for v in range(d)]
        kept[f"values{k}"] = np.concatenate([of.values for of in singles])
        kept[f"deviations{k}"] = [of.deviation for of in singles]
        kept[f"moments{k}"], kept[f"deviation{k}"] = moments_of(told)
        kept[f"clipped{k}"] = clipped
    return save(file, kept)


def simulated(rng) -> Measurement:
    """Answer with Gaussian noise that nobody pays for: the records are nobody's."""

    def measure(query, *, sensitivity, rho):
        deviation = sensitivity * multiplier_of_rho(rho)
        values = query()
        return values + deviation * rng.standard_normal(values.shape), deviation

    return measure


def moments_of(told: Marginals) -> tuple[np.ndarray, float]:
    """Of all pairs as one matrix, and the deviation of their noise."""
    if isinstance(told, ClippedMoments):
        return told.moments, told.deviation
    widths, at = rows_of(told.levels)
    moments = np.zeros((sum(widths),) * 2)
    for x, y in itertools.combinations(range(len(at)), 2):
        moments[at[x], at[y]], deviation = told.moment(x, y)
    return moments, deviation


def releases(number: int) -> Iterator[tuple[Marginals, set]]:
    """What was released of one network's records, and its edges."""
    kept = np.load(drawn(number))
    levels = kept["levels"].tolist()
    edges = {tuple(sorted(edge)) for edge in kept["edges"].tolist()}
    ends = np.cumsum(np.array(levels) - 1)[:-1]
    for k in range(RELEASES):
        values = np.split(kept[f"values{k}"], ends)
        deviations = kept[f"deviations{k}"].tolist()
        singles = {(v,): Moment(*of) for v, of in enumerate(zip(values, deviations, strict=True))}
        moments, deviation = kept[f"moments{k}"], float(kept[f"deviation{k}"])
        if kept[f"clipped{k}"]:
            yield ClippedMoments(int(kept["n"]), levels, singles, moments, deviation), edges
            continue
        _, at = rows_of(levels)
        pairs = {
            (x, y): Moment(moments[at[x], at[y]], deviation)
            for x, y in itertools.combinations(range(len(at)), 2)
        }
        yield Marginals(int(kept["n"]), levels, singles | pairs), edges


def kept_in(folder: str, code: tuple[str, ...] = READ) -> Path:
    """Where examples are kept as long as the code stays as it is."""
    files = [*(ROOT / "dpcgd" / f"{name}.py" for name in code), Path(__file__)]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    (found := KEPT / f"{folder}-{digest}").mkdir(parents=True, exist_ok=True)
    return found


def examples(number: int) -> Path:
    """Features and labels of the pairs of one network's releases, on file."""
    file = kept_in("examples") / f"{number:04d}.npz"
    if file.exists():
        return file
    parts = []
    for told, joined in releases(number):
        pairs, rows = pair_features(told)
        labels = [tuple(pair) in joined for pair in pairs.tolist()]
        parts.append({"pairs": pairs, "rows": rows, "labels": labels, "sizes": [len(pairs)]})
    return save(file, joined_up(parts))


def read_again(number: int, told: np.ndarray) -> Path:
    """Features for the second reading, once the first has told its probabilities, on file.

    And which rows of the first they continue.
    """
    file = kept_in("again") / f"{number:04d}.npz"
    if file.exists():
        return file
    first, parts, end = np.load(examples(number)), [], 0
    for (release, _), size in zip(releases(number), first["sizes"], strict=True):
        start, end = end, end + int(size)
        pairs, likely = first["pairs"][start:end], np.zeros((len(release.levels),) * 2)
        likely[pairs[:, 0], pairs[:, 1]] = told[start:end]
        again, rows = second_features(blocks_of(release), likely + likely.T)
        at = {tuple(pair): start + i for i, pair in enumerate(pairs.tolist())}
        of = np.array([at[tuple(pair)] for pair in again.tolist()], int)
        parts.append({"rows": rows, "of": of})
    return save(file, joined_up(parts))


def joined_up(parts) -> dict:
    return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}


def save(file, arrays) -> Path:
    whole = file.with_suffix(".part.npz")
    np.savez_compressed(whole, **arrays)
    whole.rename(file)
    return file


def gathered(files) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and the network of every pair."""
    parts = [np.load(file) for file in files]
    groups = [np.full(len(part["labels"]), i) for i, part in enumerate(parts)]
    rows, labels = (np.concatenate([part[k] for part in parts]) for k in ("rows", "labels"))
    return rows, labels, np.concatenate(groups)


def told_unseen(rows, labels, groups) -> np.ndarray:
    """Probabilities of each pair, by trees that have not seen its network."""
    told = np.zeros(len(labels))
    for half in (groups % 2 == 0, groups % 2 == 1):
        told[half] = trees(rows[~half], labels[~half]).predict_proba(rows[half])[:, 1]
    return told


def gathered_again(files, rows, groups) -> tuple[np.ndarray, np.ndarray]:
    """Features of both readings, and which pairs they are of."""
    parts = [np.load(file) for file in files]
    starts = np.searchsorted(groups, np.arange(len(files)))
    of = np.concatenate([start + part["of"] for start, part in zip(starts, parts, strict=True)])
    return np.hstack([rows[of], np.concatenate([part["rows"] for part in parts])]), of


def trees(rows, labels, weights=None, **other) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**TREES | other).fit(rows, labels, weights)


def told_again(told, both, of, labels, held, **other) -> np.ndarray:
    """What is told of networks held back, once trees trained on the others read them again."""
    unseen, told = held[of], told.copy()
    model = trees(both[~unseen], labels[of[~unseen]], **READ_AGAIN | other)
    told[of[unseen]] = model.predict_proba(both[unseen])[:, 1]
    return told


def as_arrays(model) -> dict:
    """The trees as lists of plain numbers."""
    found: dict = {k: [] for k in ("roots", "feature", "threshold", "left", "right", "value")}
    for (tree,) in model._predictors:
        start, nodes = len(found["feature"]), tree.nodes
        leaf = nodes["is_leaf"].astype(bool)
        found["roots"].append(start)
        found["feature"] += np.where(leaf, -1, nodes["feature_idx"]).tolist()
        found["threshold"] += [float(f"{t:.6g}") for t in np.where(leaf, 0, nodes["num_threshold"])]
        found["left"] += (nodes["left"] + start).tolist()
        found["right"] += (nodes["right"] + start).tolist()
        found["value"] += [float(f"{v:.4g}") for v in np.where(leaf, nodes["value"], 0)]
    return {"bias": float(np.ravel(model._baseline_prediction)[0]), **found}


def expected_f1(probabilities, labels, groups) -> float:
    """Mean over networks of the F1 of the edges that are read."""
    scores = []
    for group in np.unique(groups):
        p, of = probabilities[groups == group], labels[groups == group]
        order = np.argsort(-p)
        count = best_count(p[order])
        scores.append(2 * of[order[:count]].sum() / (count + of.sum()))
    return float(np.mean(scores))


def report(told, labels, groups):
    """How good probabilities are on the networks that were held back."""
    print(f"F1 on a tenth of the networks: {expected_f1(told, labels, groups):.4f}")
    for low, high in itertools.pairwise((0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)):
        of = (told >= low) & (told < high)
        print(f"  said {told[of].mean():.3f}, was {labels[of].mean():.3f}, {of.sum()} pairs")


def main(workers: str = "-1"):
    parallel = Parallel(int(workers))
    rows, labels, groups = gathered(parallel(delayed(examples)(k) for k in range(NETWORKS)))
    print(f"{len(labels)} pairs, {labels.mean():.3f} of them edges")
    told, held = told_unseen(rows, labels, groups), groups % 10 == 0
    report(told[held], labels[held], groups[held])
    files = parallel(delayed(read_again)(k, told[groups == k]) for k in range(NETWORKS))
    both, of = gathered_again(files, rows, groups)
    report(told_again(told, both, of, labels, held)[held], labels[held], groups[held])
    trained = {
        "networks": NETWORKS,
        "releases": RELEASES * NETWORKS,
        "variables": VARIABLES,
        "records": RECORDS,
        "epsilons": EPSILONS,
        "levels": [2, 20],
        "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16],
    }
    kept = {"features": FEATURES + SECOND_FEATURES, "trained": trained}
    kept["first"] = as_arrays(trees(rows, labels))
    kept["second"] = as_arrays(trees(both, labels[of], **READ_AGAIN))
    (ROOT / "data" / "reader.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
