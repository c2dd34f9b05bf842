"""What the three trainings share: examples on file, simulated noise, trees, their quality.

They are make_reader.py, make_third_reader.py and make_colliders.py.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from chapters import BUILD, ROOT
from dpcgd_book.results.digests import digest_of_files
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier

from dpcgd.moments.interactions import Measurement
from dpcgd.privacy.conversions import multiplier_of_rho
from dpcgd.reading.reader import best_count

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

RELEASED = ("datasets/random_networks", "datasets/clipped_sums", "moments/clipped_moments")
"""The files of the package that releases depend on."""
READ = (*RELEASED, "reading/association", "reading/pair_features")
"""The files of the package that features depend on."""


def on_file(folder: str, code: Iterable[str], *others: str | Path):
    """Let a function's arrays be kept in a file, as long as this code stays as it is.

    Parameters
    ----------
    folder : str
        Below _build/reader.
    code : iterable of str
        Files of the package.
    *others : str or Path
        More files from the checkout, as the script itself.
    """
    files = [*(f"dpcgd/{name}.py" for name in code), "scripts/training.py", *others]

    def kept(make: Callable[..., dict]) -> Callable[..., Path]:
        @functools.wraps(make)
        def made(number: int, *given) -> Path:
            digest = digest_of_files(files, root=ROOT)[:8]
            file = BUILD / "reader" / f"{folder}-{digest}" / f"{number:04d}.npz"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                whole = file.with_suffix(".part.npz")
                np.savez_compressed(whole, **make(number, *given))
                whole.rename(file)
            return file

        return made

    return kept


def in_parallel(task: Callable, workers: str, *cases: Iterable) -> list:
    """The task of every case, on so many processes; -1 takes all cores."""
    return Parallel(int(workers))(delayed(task)(*case) for case in zip(*cases, strict=True))


def between(bounds, rng) -> float:
    return math.exp(rng.uniform(*map(math.log, bounds)))


def simulated(rng) -> Measurement:
    """Answer with Gaussian noise that nobody pays for: the records are nobody's."""

    def measure(query, *, sensitivity, rho):
        deviation = sensitivity * multiplier_of_rho(rho)
        values = query()
        return values + deviation * rng.standard_normal(values.shape), deviation

    return measure


def gathered(files) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and the network of every example."""
    parts = [np.load(file) for file in files]
    groups = [np.full(len(part["labels"]), i) for i, part in enumerate(parts)]
    rows, labels = (np.concatenate([part[k] for part in parts]) for k in ("rows", "labels"))
    return rows, labels, np.concatenate(groups)


def trees(rows, labels, weights=None, **other) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(**TREES | other).fit(rows, labels, weights)


def as_arrays(model) -> dict:
    """The trees as lists of plain numbers."""
    arrays: dict = {k: [] for k in ("roots", "feature", "threshold", "left", "right", "value")}
    for (tree,) in model._predictors:
        start, nodes = len(arrays["feature"]), tree.nodes
        leaf = nodes["is_leaf"].astype(bool)
        arrays["roots"].append(start)
        arrays["feature"] += np.where(leaf, -1, nodes["feature_idx"]).tolist()
        arrays["threshold"] += [
            float(f"{t:.6g}") for t in np.where(leaf, 0, nodes["num_threshold"])
        ]
        arrays["left"] += (nodes["left"] + start).tolist()
        arrays["right"] += (nodes["right"] + start).tolist()
        arrays["value"] += [float(f"{v:.4g}") for v in np.where(leaf, nodes["value"], 0)]
    return {"bias": float(np.ravel(model._baseline_prediction)[0]), **arrays}


def expected_f1(probabilities, labels, groups) -> float:
    """Mean over networks of the F1 of the edges that are read."""
    scores = []
    for group in np.unique(groups):
        p, truth = probabilities[groups == group], labels[groups == group]
        order = np.argsort(-p)
        count = best_count(p[order])
        scores.append(2 * truth[order[:count]].sum() / (count + truth.sum()))
    return float(np.mean(scores))


def report(said, labels, groups):
    """How good probabilities are on the networks that were held back."""
    print(f"F1 on a tenth of the networks: {expected_f1(said, labels, groups):.4f}")
    for low, high in itertools.pairwise((0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)):
        here = (said >= low) & (said < high)
        means = said[here].mean(), labels[here].mean()
        print("  said {:.3f}, was {:.3f}, {} pairs".format(*means, here.sum()))


def write(name: str, script: str, facts: dict, **models) -> None:
    """Put trained models, and what they were trained on, into a file of data/."""
    facts = facts | {"script": digest_of_files([script])[:16]}
    (ROOT / "data" / f"{name}.json").write_text(json.dumps({"trained": facts, **models}) + "\n")
