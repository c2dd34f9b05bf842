"""Edges where there is nothing to find: independent, constant, rare and copied columns.

python benchmarks/nothing_to_find.py [CELLS] [RUNS]

Draws cells of a grid at random, by a seed: 2 to 60 variables of 2 to 1,000 levels, 30 to 1,000,000
records, epsilon from 0.01 to 10, and releases 40 tables of each by both systems that give
probabilities; private_graph is one of them. Prints false pairs a run by family, the worst cells,
the mean probability of pairs that are none, and how many cells are refused; writes them to
_build/results/nothing_to_find.json. Of copied columns
a false pair is one with a column that is no copy, and what counts beside is how often the copies
are connected. Some twenty minutes on two cores.
"""

import sys
import warnings
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from dpcgd import Dataset, dag_posterior, graph_from_moments
from dpcgd.tables.private_graph import has_few_cells

CELL = ("family", "d", "levels", "n", "epsilon")
FAMILIES = ("even", "uneven", "constant", "rare", "copied")
VARIABLES, LEVELS = (2, 3, 5, 8, 12, 25, 60), (2, 3, 10, 100, 1000)
RECORDS, EPSILONS = (30, 300, 3000, 30_000, 1_000_000), (0.01, 0.1, 1.0, 10.0)
MOST_CODES = 6e6
"""Records times variables, for time."""
COPIES, SEED = 3, 44
RESULTS = Path(__file__).resolve().parent.parent / "_build" / "results" / "nothing_to_find.json"


def column(family: str, v: int, levels: int, n: int, rng) -> np.ndarray:
    """Codes of an independent column; of the special families every other one is special."""
    if family not in ("constant", "rare") or v % 2:
        even = np.full(levels, 1 / levels)
        shares = rng.dirichlet(np.full(levels, 0.5)) if family == "uneven" else even
        return rng.choice(levels, n, p=shares)
    codes = np.zeros(n, int)
    if family == "rare":
        few = rng.choice(n, rng.integers(1, max(2, n // 20)), replace=False)
        codes[few] = rng.integers(1, levels, len(few))
    return codes


def table(family: str, d: int, levels: int, n: int, rng) -> Dataset:
    columns = [column(family, v, levels, n, rng) for v in range(d)]
    if family == "copied":
        columns[1:COPIES] = [columns[0]] * (min(d, COPIES) - 1)
    names = [str(level) for level in range(levels)]
    return Dataset(np.column_stack(columns), {f"v{v}": names for v in range(d)})


def run(cell: tuple, number: int) -> list[dict]:
    """What each system says of one table."""
    family, d, levels, n, epsilon = cell
    rows, few = [], has_few_cells([levels] * d)
    for system in (graph_from_moments, dag_posterior) if few else (graph_from_moments,):
        rng = np.random.default_rng([SEED, d, levels, n, number])
        data = table(family, d, levels, n, rng)
        row = dict(zip(CELL, cell, strict=True)) | {"system": system.__name__, "refused": False}
        try:
            with warnings.catch_warnings(action="ignore"):
                release = system(data, epsilon=epsilon, rng=rng)
            rows.append(row | said(release, min(d, COPIES) if family == "copied" else 0))
        except ValueError:
            rows.append(row | {"refused": True})
    return rows


def said(release, copies: int) -> dict:
    """False pairs, the mean probability of what is none, and whether copies are connected."""
    alike = {f"v{v}" for v in range(copies)}
    false = {pair: p for pair, p in release.probabilities.items() if not pair <= alike}
    graph = nx.Graph(tuple(pair) for pair in release.graph.skeleton if pair <= alike)
    graph.add_nodes_from(alike)
    return {
        "false pairs": sum(pair in false for pair in release.graph.skeleton),
        "mean probability": np.mean([*false.values()]) if false else np.nan,
        "connected": float(nx.is_connected(graph)) if copies else np.nan,
    }


def cells(count: int) -> list[tuple]:
    """So many of each family, drawn from the grid."""
    rng, grid = np.random.default_rng(SEED), product(VARIABLES, LEVELS, RECORDS, EPSILONS)
    grid = [cell for cell in grid if cell[0] * cell[2] <= MOST_CODES]
    drawn = [(family, rng.choice(len(grid), count, replace=False)) for family in FAMILIES]
    return [(family, *grid[i]) for family, places in drawn for i in places]


def main(count: str = "24", runs: str = "40"):
    jobs = [(cell, number) for cell in cells(int(count)) for number in range(int(runs))]
    parts = Parallel(n_jobs=-1)(delayed(run)(*job) for job in jobs)
    rows = pd.DataFrame([row for part in parts for row in part])
    by_cell = rows.groupby(["family", "system", "d", "levels", "n", "epsilon"]).mean()
    numbers = ["false pairs", "mean probability", "connected", "refused"]
    by_family = by_cell[numbers].groupby(["family", "system"])
    print(by_family.mean().round(3).to_string(), by_family.max().round(3).to_string(), sep="\n\n")
    print(by_cell.nlargest(10, "false pairs").round(3).to_string())
    worst = by_family["false pairs"].max()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(by_family.mean().assign(worst=worst).reset_index().to_json(orient="records"))


if __name__ == "__main__":
    main(*sys.argv[1:])
