"""Train the reader of released pairs on simulated networks, where the truth is known: make reader

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their pairs at random budgets, and fits boosted trees to which pairs are edges. A second
model reads each release again, with the probabilities of a first model that has not seen its
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

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import (
    MORE_TABLES,
    SHAPES,
    TABLES,
    mixed_levels,
    random_network,
)
from dpcgd.marginals.blocks import Blocks, blocks_from, rows_of
from dpcgd.marginals.interactions import (
    Marginals,
    MeasuredMarginals,
    Moment,
    exactly,
    pairs_sensitivity,
)
from dpcgd.marginals.pair_features import FEATURES, features_of
from dpcgd.marginals.reader import best_count
from dpcgd.marginals.second_reading import SECOND_FEATURES, second_features
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import multiplier_of_rho, rho_of_budget

NETWORKS, RELEASES, SEED = 4000, 2, 2026
VARIABLES, RECORDS, EPSILONS = (3, 200), (5e3, 1e6), (0.05, 5.0)
MANY_LEVELS = 0.3
"""Share of networks in which some variables have up to 20 levels."""
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
DRAWN = ("datasets/random_networks",)
READ = tuple(f"marginals/{name}" for name in ("pair_features", "blocks", "second_reading"))
READ = (*DRAWN, *READ, "marginals/_conditioning")
"""What networks and features depend on."""


def between(bounds, rng) -> float:
    return math.exp(rng.uniform(*map(math.log, bounds)))


def drawn(number: int) -> Path:
    """The exact pairs of one network's records, on file."""
    file = kept_in("networks", DRAWN) / f"{number:04d}.npz"
    if file.exists():
        return file
    rng = np.random.default_rng([SEED, number])
    d = round(between(VARIABLES, rng))
    shape, tables = rng.choice(SHAPES), rng.choice(TABLES + MORE_TABLES)
    levels = mixed_levels(d, rng) if rng.random() < MANY_LEVELS else None
    network = random_network(shape, tables, d, rng, levels=levels)
    n = round(min(between(RECORDS, rng), MOST_CODES / d))
    data = network.sample(n, rng=rng)
    exact = MeasuredMarginals(Tables(data), exactly)
    exact.measure_pairs(1.0)
    subsets = [s for s in exact.released if s]
    at = {name: i for i, name in enumerate(data.variables)}
    kept = dict(
        n=n,
        name=network.name,
        levels=data.cardinalities,
        values=np.concatenate([exact.released[s].values.ravel() for s in subsets]),
        edges=[(at[a], at[b]) for a, b in network.graph.edges],
    )
    return save(file, kept)


def moments(file: Path) -> tuple[np.ndarray, np.ndarray, int, list[int], set]:
    """Exact means of contrasts and of their products, (D,) and (D, D); records, levels, edges."""
    kept = np.load(file)
    levels = [int(k) for k in kept["levels"]]
    widths, at = rows_of(levels)
    size, values = sum(widths), kept["values"]
    products, start = np.zeros((size, size)), size
    for a, b in itertools.combinations(range(len(levels)), 2):
        end = start + widths[a] * widths[b]
        products[at[a], at[b]] = values[start:end].reshape(widths[a], widths[b])
        start = end
    edges = {tuple(sorted(edge)) for edge in kept["edges"].tolist()}
    return values[:size], products, int(kept["n"]), levels, edges


def released(means, products, n, levels, deviation, rng) -> tuple[Marginals, Blocks]:
    """All pairs with noise of this deviation on each moment's mean."""
    noisy = means + deviation * rng.standard_normal(means.shape)
    _, at = rows_of(levels)
    singles = Marginals(n, levels, {(v,): Moment(noisy[of], deviation) for v, of in enumerate(at)})
    products = products + deviation * rng.standard_normal(products.shape)
    return singles, blocks_from(singles, products, np.full((len(levels),) * 2, deviation))


def releases(number: int) -> Iterator[tuple[Marginals, Blocks, set]]:
    """One network's records released at random budgets, and its edges."""
    *exact, n, levels, joined = moments(drawn(number))
    rng = np.random.default_rng([SEED, number, 1])
    for _ in range(RELEASES):
        rho = rho_of_budget(Budget(between(EPSILONS, rng), 1e-6))
        rho = 1e6 if rng.random() < WITHOUT_NOISE else rho
        deviation = pairs_sensitivity(levels) * multiplier_of_rho(rho) / n
        yield *released(*exact, n, levels, deviation, rng), joined


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
    for singles, blocks, joined in releases(number):
        pairs, rows = features_of(singles, blocks)
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
    for (singles, blocks, _), size in zip(releases(number), first["sizes"], strict=True):
        start, end = end, end + int(size)
        pairs, likely = first["pairs"][start:end], np.zeros((len(singles.levels),) * 2)
        likely[pairs[:, 0], pairs[:, 1]] = told[start:end]
        again, rows = second_features(blocks, likely + likely.T)
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
