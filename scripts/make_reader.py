"""Train the reader of released pairs on simulated networks, where the truth is known: make reader

Draws networks of every kind (dpcgd/datasets/random_networks.py), none of which is in the book,
releases their moments at random budgets, and fits boosted trees to which pairs are edges. A
second model reads each release again, with the probabilities of a first model that has not seen its
network. What is drawn is kept in _build/reader, so that a command that was killed goes on where it
stopped. Writes data/reader.json.
"""

import itertools
import sys
from collections.abc import Iterator

import numpy as np
import training

from dpcgd.datasets.bayesian_networks import Network
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.clipped_moments import ClippedMoments, blocks_of, clips, measure_moments, rows_of
from dpcgd.moments.interactions import Marginals, Moment
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import rho_of_budget
from dpcgd.reading.pair_features import FEATURES, SECOND_FEATURES, pair_features, second_features

NETWORKS, RELEASES, SEED = 2000, 2, 2026
VARIABLES, RECORDS, EPSILONS = (3, 200), (1e3, 1e6), (0.05, 10.0)
UNCLIPPED = 0.2
"""Share of releases of more variables that are not clipped, as of data that only answers counts."""
MOST_CODES = 1.5e7
"""Records times variables, for time."""
WITHOUT_NOISE = 0.05
"""Share of releases with next to no noise."""
READ_AGAIN = {"max_iter": 200}
"""The settings of the second reading's trees, where they differ."""


def network_of(number: int) -> tuple[Network, np.random.Generator]:
    """A network of any kind, and what all that follows is drawn with."""
    rng = np.random.default_rng([SEED, number])
    return any_network(round(training.between(VARIABLES, rng)), rng), rng


@training.on_file("releases", training.RELEASED, __file__)
def drawn(number: int) -> dict:
    """Two releases of one network's records and its edges."""
    network, rng = network_of(number)
    d = len(network.levels)
    n = round(min(training.between(RECORDS, rng), MOST_CODES / d))
    data = network.sample(n, rng=rng)
    place = {name: i for i, name in enumerate(data.variables)}
    arrays = {"n": n, "levels": data.cardinalities}
    arrays["edges"] = [(place[a], place[b]) for a, b in network.graph.edges]
    for k in range(RELEASES):
        rho = rho_of_budget(Budget(training.between(EPSILONS, rng), 1e-6))
        rho = 1e6 if rng.random() < WITHOUT_NOISE else rho
        clipped = clips(data) and rng.random() >= UNCLIPPED
        moments = measure_moments(data, training.simulated(rng), rho, clipped=clipped)
        singles = [moments.moment(v) for v in range(d)]
        arrays[f"values{k}"] = np.concatenate([single.values for single in singles])
        arrays[f"deviations{k}"] = [single.deviation for single in singles]
        arrays[f"moments{k}"], arrays[f"deviation{k}"] = moments_of(moments)
        arrays[f"clipped{k}"] = clipped
    return arrays


def moments_of(released: Marginals) -> tuple[np.ndarray, float]:
    """Of all pairs as one matrix, and the deviation of their noise."""
    if isinstance(released, ClippedMoments):
        return released.moments, released.deviation
    at = rows_of(released.levels)
    moments = np.zeros((at[-1].stop,) * 2)
    for x, y in itertools.combinations(range(len(at)), 2):
        moments[at[x], at[y]], deviation = released.moment(x, y)
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
        at = rows_of(levels)
        pairs = {
            (x, y): Moment(moments[at[x], at[y]], deviation)
            for x, y in itertools.combinations(range(len(at)), 2)
        }
        yield Marginals(int(kept["n"]), levels, singles | pairs), edges


@training.on_file("examples", training.READ, __file__)
def examples(number: int) -> dict:
    """Features and labels of the pairs of one network's releases."""
    parts = []
    for moments, edges in releases(number):
        pairs, rows = pair_features(moments)
        labels = [tuple(pair) in edges for pair in pairs.tolist()]
        parts.append({"pairs": pairs, "rows": rows, "labels": labels, "sizes": [len(pairs)]})
    return joined_up(parts)


@training.on_file("again", training.READ, __file__)
def read_again(number: int, probabilities: np.ndarray) -> dict:
    """Features for the second reading, and which rows of the first they continue.

    The probabilities of all pairs are those of a first reading that has not seen the network.
    """
    first, parts, end = np.load(examples(number)), [], 0
    for (moments, _), size in zip(releases(number), first["sizes"], strict=True):
        start, end = end, end + int(size)
        pairs, likely = first["pairs"][start:end], np.zeros((len(moments.levels),) * 2)
        likely[pairs[:, 0], pairs[:, 1]] = probabilities[start:end]
        again, rows = second_features(blocks_of(moments), likely + likely.T)
        place = {tuple(pair): start + i for i, pair in enumerate(pairs.tolist())}
        continued = np.array([place[tuple(pair)] for pair in again.tolist()], int)
        parts.append({"rows": rows, "of": continued})
    return joined_up(parts)


def joined_up(parts) -> dict:
    return {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}


def read_unseen(rows, labels, groups) -> np.ndarray:
    """Probabilities of each pair, by trees that have not seen its network."""
    probabilities = np.zeros(len(labels))
    for half in (groups % 2 == 0, groups % 2 == 1):
        probabilities[half] = training.trees(rows[~half], labels[~half]).predict_proba(rows[half])[
            :, 1
        ]
    return probabilities


def gathered_again(files, rows, groups) -> tuple[np.ndarray, np.ndarray]:
    """Features of both readings, and which pairs they are of."""
    parts = [np.load(file) for file in files]
    starts = np.searchsorted(groups, np.arange(len(files)))
    pairs = np.concatenate([start + part["of"] for start, part in zip(starts, parts, strict=True)])
    return np.hstack([rows[pairs], np.concatenate([part["rows"] for part in parts])]), pairs


def main(workers: str = "-1"):
    numbers = range(NETWORKS)
    rows, labels, groups = training.gathered(training.in_parallel(examples, workers, numbers))
    print(f"{len(labels)} pairs, {labels.mean():.3f} of them edges")
    probabilities, held = read_unseen(rows, labels, groups), groups % 10 == 0
    training.report(probabilities[held], labels[held], groups[held])
    by_network = (probabilities[groups == k] for k in numbers)
    files = training.in_parallel(read_again, workers, numbers, by_network)
    both, pairs = gathered_again(files, rows, groups)
    unseen = held[pairs]
    second = training.trees(both[~unseen], labels[pairs[~unseen]], **READ_AGAIN)
    probabilities[pairs[unseen]] = second.predict_proba(both[unseen])[:, 1]
    training.report(probabilities[held], labels[held], groups[held])
    facts = {"networks": NETWORKS, "releases": RELEASES * NETWORKS, "variables": VARIABLES}
    facts |= {"records": RECORDS, "epsilons": EPSILONS, "levels": [2, 20]}
    first = training.as_arrays(training.trees(rows, labels))
    second = training.as_arrays(training.trees(both, labels[pairs], **READ_AGAIN))
    features = FEATURES + SECOND_FEATURES
    training.write("reader", __file__, facts, features=features, first=first, second=second)


if __name__ == "__main__":
    main(*sys.argv[1:])
