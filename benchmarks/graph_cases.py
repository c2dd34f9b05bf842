"""Systems for graphs in the benchmark: how one case is run and scored."""

import functools
import math
import tracemalloc
import zlib
from dataclasses import dataclass

import numpy as np
from dpcgd_book.results.graph_scores import SCORES, scores
from dpcgd_book.results.larger_networks import drawn

from benchmarks.entries import DELTA, PATIENCE, Entry, attempted, code_of, entries_in, patience
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.random_networks import MORE_TABLES, SHAPES, TABLES, random_network
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.release import Release


@dataclass(frozen=True)
class System(Entry):
    """One that takes part, as a file in ``benchmarks/systems`` names it.

    `run` returns a release or a graph. Without it the rows are those of `yardstick`, its name in
    ``book/stored/yardsticks/scores.parquet``. Seeds of noise follow from the name, or from the old
    name in `seeded_as`.
    """

    yardstick: str = ""
    seeded_as: str = ""

    def __post_init__(self):
        super().__post_init__()
        if (self.run is None) == (not self.yardstick):
            raise ValueError(f"{self.name}: give a callable, or the name of its yardstick")


systems = functools.partial(entries_in, "systems")


def run_case(system: str, network: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """One row of the table: the system on the records of this network, size and run.

    Scores, tests, the epsilon that its ledger reads, seconds of processor time, `why_not` if it has
    no graph, and a digest of the code. The records are the same for every system and epsilon, which
    is infinite for a system without privacy.
    """
    row = scored(systems()[system], _records(network, run, n, seed), epsilon, run, seed)
    return row | {"code": code_of("systems", system)}


def scored(system: System, data: Dataset, epsilon: float, run: int, seed: int) -> dict:
    """The scores of a system's graph of these records, or why there is none."""
    if system.run is None:
        raise ValueError(f"{system.name} runs elsewhere: python benchmarks/yardsticks.py")
    _warm(system)
    rng = np.random.default_rng([seed, run, zlib.crc32((system.seeded_as or system.name).encode())])
    delta = min(DELTA, 0.1 / data.n)
    settings = {"epsilon": epsilon, "delta": delta, "rng": rng, "limit": system.limit}
    graph, outcome = attempted(system.run, data, **settings)
    tests = spent = None
    if isinstance(graph, Release):
        tests = (graph.answers and graph.answers.tests) or None
        spent = graph.ledger.spent.epsilon
        graph = graph.graph
    row = dict.fromkeys(SCORES) if outcome["why_not"] else scores(graph, data.truth)
    return row | {"tests": tests, "read": spent} | outcome


def peak_of(system: str, network: str, n: int, epsilon: float, run: int, seed: int) -> dict:
    """The most megabytes that a system has beside the records, or `why_not`.

    As Python's ``tracemalloc`` counts them: arrays and objects, and not what compiled code takes
    for itself.
    """
    entry, data = systems()[system], _records(network, run, n, seed)
    _warm(entry)
    tracemalloc.start()
    try:
        why_not = scored(entry, data, epsilon, run, seed)["why_not"]
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    return {"megabytes": None if why_not else round(peak, 1), "why_not": why_not}


_records = functools.lru_cache(maxsize=1)(drawn)


def on_random_network(system: str, d: int, n: int, epsilon: float, run: int, seed: int) -> dict:
    """F1 and SHD on a random network: a point of the map of who wins where.

    A network is the same for every n. Runs take the shapes of
    ``dpcgd.datasets.random_networks.SHAPES`` in turn; tables are of every kind. Beside the scores
    stand those of the complete and of the empty graph, and `why_not`.
    """
    data = _random_records(d, n, run, seed)
    row = scored(systems()[system], data, epsilon, run // len(SHAPES), seed)
    true, all_pairs = data.truth.number_of_edges(), ~np.eye(d, dtype=bool)
    return {key: row[key] for key in ("F1", "SHD", "why_not")} | {
        "complete F1": 2 * true / (true + d * (d - 1) // 2),
        "complete SHD": CPDAG(data.variables, all_pairs).shd(data.truth),
        "empty SHD": true,
    }


@functools.lru_cache(maxsize=1)
def _random_records(d, n, run, seed):
    draw, shape = divmod(run, len(SHAPES))
    rng = np.random.default_rng([seed, draw, shape, d])
    return random_network(SHAPES[shape], "mixed", d, rng).sample(n, rng=rng)


def on_many_levels(system: str, d: int, n: int, epsilon: float, run: int, seed: int) -> dict:
    """The scores on a random network of which a fifth of the variables have many levels.

    Shapes and kinds of tables are drawn. Beside F1, precision, edges and `why_not` stand the kind
    of the tables and the most levels of a variable.
    """
    rng = np.random.default_rng([seed, run, d, 7])
    many = np.exp(rng.uniform(math.log(7), math.log(100), size=d)).round().astype(int)
    sizes = np.where(rng.random(d) < 0.2, many, rng.integers(2, 7, size=d)).tolist()
    levels = {f"v{i}": tuple(map(str, range(size))) for i, size in enumerate(sizes)}
    shape, tables = str(rng.choice(SHAPES)), str(rng.choice(TABLES + MORE_TABLES))
    data = random_network(shape, tables, d, rng, levels=levels).sample(n, rng=rng)
    row = scored(systems()[system], data, epsilon, run, seed)
    shown = {key: row[key] for key in ("F1", "precision", "edges", "why_not")}
    return {"tables": tables, "levels": max(sizes)} | shown


@functools.cache
def _warm(system):
    """A first call loads and compiles: no part of a run's seconds."""
    data, rng = drawn("cancer", 0, 20_000, 0), np.random.default_rng(0)
    with patience(PATIENCE):
        system.run(data, epsilon=10.0, delta=DELTA, rng=rng)
