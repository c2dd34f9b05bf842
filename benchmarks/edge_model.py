"""What each part of the edge model is worth, what its probabilities are worth, and its seconds.

python benchmarks/edge_model.py [NETWORKS]

Draws fresh networks by a seed of its own: "as in training", of every kind, and "like the table",
categories of 8 to 60 variables with edges, 10,000 or 100,000 records, epsilon .3 or 1. Each is
released and read as it is, and without one part at a time. Then two wide tables of 100,000 records
are released and read, each in a process of its own. Writes parts, calibration and wide to
book/stored/12_a_trained_reader, as JSON. Half an hour of one core for 300 networks of either
family; goes on where it stopped.
"""

import json
import math
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import networkx as nx
import numpy as np
import pandas as pd
from dpcgd_book.results.digests import digest_of_files
from joblib import Memory, Parallel, delayed

from dpcgd import CPDAG, Budget, graph_from_moments
from dpcgd.datasets.random_networks import any_network, random_network
from dpcgd.moments import entries
from dpcgd.moments.clipped_moments import clips, measure_moments
from dpcgd.privacy.conversions import rho_of_budget
from dpcgd.reading.orientation import arrow_confidence, pointed
from dpcgd.reading.reader import edge_probabilities, first_reading, most_likely_edges

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import training  # noqa: E402

SEED, NETWORKS = 2041, 300
FAMILIES = ("as in training", "like the table")
OTHER_NOISE = {"entries: .03": 0.03, "entries: .1": 0.1, "all contrasts": math.inf}
"""Other limits on the noise that entries bring, beside the one that is used."""
TENTHS = np.linspace(0, 1, 11)
WIDE = {"413 variables of 2 to 21 levels": (413, 2, 21), "441 variables of 3 levels": (441, 3, 3)}
"""How many variables, and their fewest and most levels."""
STORED = ROOT / "book" / "stored" / "12_a_trained_reader"
CODE = digest_of_files(["data", __file__], training.CODE, root=ROOT)[:8]


def drawn(family: str, number: int, rng):
    """A table, and what its moments may cost."""
    if family == "as in training":
        data, epsilon = training.table(number, rng)
    else:
        epsilon = float(rng.choice([0.3, 1.0]))
        network = any_network(int(rng.integers(8, 61)), rng)
        data = network.sample(int(rng.choice([10_000, 100_000])), rng=rng)
    return data, rho_of_budget(Budget(epsilon, 1e-6))


def scored(moments, likely, data) -> dict[str, float]:
    """F1 of the edges of largest expected F1, and SHD of those that are likelier than not."""
    joined = most_likely_edges(likely)
    arrows = arrow_confidence(moments, joined, missed=likely[~joined].sum() / likely.sum())
    arcs = pointed(arrows, joined, np.zeros_like(joined))
    most, likelier = (CPDAG(data.variables, own) for own in (most_likely_edges(likely, "f1"), arcs))
    return {"F1": most.skeleton_f1(data.truth), "SHD": likelier.shd(data.truth)}


@Memory(ROOT / "_build" / "edge_model" / CODE, verbose=0).cache
def one(family: str, number: int) -> tuple[list[dict], list[tuple[float, bool]]]:
    """Scores of one table, with all parts and without each; and what was said of every pair."""
    rng = np.random.default_rng([SEED, FAMILIES.index(family), number])
    data, rho = drawn(family, number, rng)
    measure, clipped = training.simulated(rng), clips(data, rho)
    moments = measure_moments(data, measure, rho, clipped=clipped)
    likely = edge_probabilities(moments)
    ways = {"all": (moments, likely), "read once": (moments, first_reading(moments))}
    for way, most in OTHER_NOISE.items() if clipped and not data.numbers else ():
        with patch.object(entries, "MOST_NOISE", most):
            if entries.entries_carried(data, data.n, rho) != moments.entries:
                other = measure_moments(data, measure, rho, clipped=True)
                ways[way] = other, edge_probabilities(other)
    if clipped and not data.numbers and sum(data.cardinalities) < 700:
        pairs = measure_moments(data, measure, rho, clipped=False)
        ways["not clipped"] = pairs, edge_probabilities(pairs)
    known = ways.items() if data.truth.edges else ()  # without edges there is nothing to score
    rows = [{"way": way, **scored(*read, data)} for way, read in known]
    upper = np.triu_indices(data.d, 1)
    true = nx.to_numpy_array(data.truth.to_undirected(), data.variables, weight=None)[upper] > 0
    return rows, [*zip(likely[upper].tolist(), true.tolist(), strict=True)]


def parts_of(rows: pd.DataFrame) -> dict:
    """By family and part: how much is lost without it, with a standard error, on how many."""
    parts: dict = {}
    for family, some in rows.groupby("family"):
        wide = some.pivot(index="number", columns="way", values=["F1", "SHD"])
        for way in sorted({*some.way} - {"all"}):
            apart = (wide.xs("all", level=1, axis=1) - wide.xs(way, level=1, axis=1)).dropna()
            mean, error = apart.mean(), apart.sem()
            worth = {score: [round(mean[score], 4), round(error[score], 4)] for score in mean.index}
            parts.setdefault(family, {})[way] = worth | {"networks": len(apart)}
    return parts


def calibration_of(said: list, rng) -> list[dict]:
    """Of each tenth: pairs, what was said and what is true, and its error over networks."""
    parts = [pd.DataFrame(own, columns=["said", "true"]) for own in said if own]
    frame, rows = pd.concat(parts, keys=range(len(parts))).astype(float), []
    for tenth, own in frame.groupby(np.clip(np.digitize(frame.said, TENTHS) - 1, 0, 9)):
        by = (own.true - own.said).groupby(level=0).agg(["sum", "count"]).to_numpy()
        some = rng.integers(len(by), size=(400, len(by)))
        error = (by[some, 0].sum(axis=1) / by[some, 1].sum(axis=1)).std()
        means = {"said": own.said.mean(), "true": own.true.mean(), "error": error}
        rounded = {name: round(float(value), 4) for name, value in means.items()}
        rows.append({"tenth": int(tenth), "pairs": len(own), **rounded})
    return rows


def of_wide(d: int, fewest: int, most: int) -> dict[str, float]:
    """Seconds by the clock of a wide table's release and reading, and the process's peak in MB."""
    rng = np.random.default_rng([SEED, d])
    sizes = rng.integers(fewest, most + 1, d).tolist()
    levels = {f"v{v}": tuple(map(str, range(size))) for v, size in enumerate(sizes)}
    data = random_network("sparse", "mixed", d, rng, levels=levels).sample(100_000, rng=rng)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    graph_from_moments(data, epsilon=1.0, rng=rng)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": round(seconds, 1), "MB": peak // 1024, "MB before": before // 1024}


def main(networks: int = NETWORKS):
    numbers = [(family, k) for family in FAMILIES for k in range(networks)]
    answers = Parallel(-1)(delayed(one)(*case) for case in numbers)
    rows, said = [], {family: [] for family in FAMILIES}
    for (family, number), (own, pairs) in zip(numbers, answers, strict=True):
        rows += [{"family": family, "number": number, **row} for row in own]
        said[family].append(pairs)
    calibration = {k: calibration_of(own, np.random.default_rng(SEED)) for k, own in said.items()}
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
        asked = {name: process.submit(of_wide, *facts) for name, facts in WIDE.items()}
        wide = {name: answer.result() for name, answer in asked.items()}
    told = {"parts": parts_of(pd.DataFrame(rows)), "calibration": calibration, "wide": wide}
    for name, content in told.items():
        (STORED / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
        print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
