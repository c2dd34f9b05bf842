"""How often the error bars of fit_network cover, on random networks.

python benchmarks/fit_cover.py [networks]

Releases samples of random networks by every system that releases moments, and fits the true graph
and the released one to each release. A bar is a probability, plus and minus 1.96 of its errors.
Prints a line of JSON for each size, budget and system, for cells that are expected to have at least
20 records, and how often bars cover in cells with fewer; all of it is written to
_build/results/fit_cover.json. A quarter of an hour for 100 networks.
"""

import json
import math
import sys
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np

from dpcgd import dag_posterior, fit_network, graph_from_moments, table_pc
from dpcgd.datasets.random_networks import any_network
from dpcgd.tables.private_graph import has_few_cells

SEED, NETWORKS = 31, 100
RECORDS, EPSILONS = (5_000, 100_000), (0.3, 1.0, 10.0)
SYSTEMS = (table_pc, graph_from_moments)
"""For any number of cells; where they are few there is dag_posterior, too."""
FEWEST_RECORDS, DEVIATIONS = 20, 1.96
MOST_CELLS = 10**7
"""Of the true joint table of a variable with the parents that a release gives it."""

RESULTS = Path(__file__).resolve().parent.parent / "_build" / "results" / "fit_cover.json"


def true_joint(network, family) -> np.ndarray:
    """The table of some variables of a network, by elimination of their ancestors."""
    ancestors = set(family).union(*(nx.ancestors(network.graph, v) for v in family))
    names = [v for v in network.levels if v in ancestors]
    operands = []
    for v in names:
        operands += [network.tables[v], [*map(names.index, (*network.parents[v], v))]]
    return np.einsum(*operands, [*map(names.index, family)], optimize="greedy")


def cells_of(network, release, dag, rng):
    """Of each cell of a fit: expected records, whether its bar covers, and whether it is marked."""
    fitted, n = fit_network(release, rng=rng, dag=dag), release.terms.n
    joined = {v for v in network.levels if len(release.levels[v]) < len(network.levels[v])}
    for v, parents in fitted.network.parents.items():
        family = (*parents, v)
        cells = math.prod(len(network.levels[u]) for u in family)
        if cells > MOST_CELLS or set(family) & joined:  # joined levels have another truth
            continue
        joint = true_joint(network, family)
        with np.errstate(invalid="ignore"):  # levels of the parents that cannot be
            truth = joint / joint.sum(axis=-1, keepdims=True)
        covers = np.abs(fitted.network.tables[v] - truth) <= DEVIATIONS * fitted.errors[v]
        facts = n * joint, covers, not fitted.identified[v], v in fitted.assumed
        yield np.stack(np.broadcast_arrays(*facts)).reshape(4, -1)


def fits_of(number: int):
    """Of one network every size, budget, system and graph, and the cells of that fit."""
    rng = np.random.default_rng([SEED, number])
    network = any_network(4 + number % 12, rng)
    for n in RECORDS:
        data = network.sample(n, rng=rng)
        systems = (*SYSTEMS, dag_posterior) if has_few_cells(data.cardinalities) else SYSTEMS
        for epsilon, system in product(EPSILONS, systems):
            try:
                release = system(data, epsilon=epsilon, rng=rng)
            except ValueError:  # too much noise, by public facts
                continue
            for graph, dag in (("true", data.truth), ("released", None)):
                cells = np.hstack([*cells_of(network, release, dag, rng)])
                yield (n, epsilon, system.__name__, graph), cells


def summary(cells) -> dict[str, float]:
    records, covers, marked, assumed = cells
    many, known = records >= FEWEST_RECORDS, marked == 0
    rest = {"released": assumed == 0, "assumed": assumed == 1}
    shares = {f"cover, {name}": covers[many & known & group] for name, group in rest.items()}
    shares |= {"cover": covers[many & known], "unmarked": known[many]}
    shares["cover, fewer than 20 records"] = covers[~many & known]
    means = {name: round(float(part.mean()), 4) for name, part in shares.items() if part.size}
    return {"cells": int(many.sum()), **means}


def main(networks: int = NETWORKS):
    warnings.simplefilter("ignore")
    cells_by_key = defaultdict(list)
    for number in range(networks):
        print(f"network {number + 1} of {networks}", end="\r", file=sys.stderr)
        for (n, epsilon, system, graph), cells in fits_of(number):
            for key in ((n, epsilon, system, graph), (n, epsilon, "all", graph)):
                cells_by_key[key].append(cells)
    rows = []
    for key in sorted(cells_by_key):
        names = dict(zip(("n", "epsilon", "system", "graph"), key, strict=True))
        rows.append(names | summary(np.hstack(cells_by_key[key])))
        print(json.dumps(rows[-1]))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
