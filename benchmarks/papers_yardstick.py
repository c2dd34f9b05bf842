"""The papers' own systems by the papers' own yardstick: Priv-PC's figure 1 and table 2, CURATE's.

.venv/bin/python benchmarks/papers_yardstick.py --minutes 60

Rows that are on file are not made again; the smaller networks and the first 20 runs come first.
They are in book/stored, beside chapters 21 and 22, which read them. A run that does not end in
PATIENCE seconds of processor time has a row that says so.
"""

import argparse
import functools
import itertools
import time

import numpy as np
import pandas as pd
from dpcgd_book.results.graph_scores import arcs_f1, reference_arcs
from dpcgd_book.results.stored import keep, stored_folder
from dpcgd_book.results.sweep import sweep

import dpcgd
from benchmarks import as_coded as coded
from benchmarks.entries import attempted
from benchmarks.kept import COLUMNS, Rows

SMALL, LARGE = ("earthquake", "cancer", "survey", "asia"), ("sachs", "child", "alarm")
N, SEED, DELTA = 100_000, 0, 1e-3
ROUNDS = {
    "SVT-PC": (coded.coded_svt_pc, {}),
    "Priv-PC": (coded.coded_priv_pc, {}),
    "EM-PC": (coded.coded_em_pc, {}),
    "Priv-PC, all records": (coded.coded_priv_pc, {"rate": 1.0}),
}
TOTALS = {
    "CURATE": (coded.coded_curate_pc, {}),
    "CURATE, as printed": (coded.coded_curate_pc, {"settings": coded.CURATE_AS_PRINTED}),
    "NoLeaks, as printed": (coded.coded_noleaks, {"settings": coded.NOLEAKS_AS_PRINTED}),
    "CURATE by scores, as printed": (coded.coded_noleaks, {"settings": coded.SCHEDULE_AS_PRINTED}),
}
GRADIENTS = {"NoLeaks": (coded.coded_noleaks, {})}
SYSTEMS = ROUNDS | TOTALS | GRADIENTS
DELTAS = dict.fromkeys(ROUNDS, DELTA) | dict.fromkeys(TOTALS | GRADIENTS, 1e-12)
BUDGETS = [float(f"{e:.4g}") for e in np.logspace(-2, 1.5, 21)]
"""Of a round, as in the code: 21 of them."""
CURATES = (*SMALL, "sachs", "child")
STAGES = [(0, 20), (20, 50)]
AT_ONCE = 40
KEYS = ("system", "network", "epsilon", "run")
MEANINGS = COLUMNS["papers_yardstick"]


@functools.lru_cache(1)
def records(network: str, n: int, run: int, seed: int) -> dpcgd.Dataset:
    """The records of one run, levels in alphabetical order, as in the code of Priv-PC.

    All systems share them, and what they have worked out.
    """
    data = dpcgd.load(network, n=n, rng=np.random.default_rng([seed, run]))
    ranks = [np.argsort(np.argsort(levels)) for levels in data.levels.values()]
    codes = np.column_stack([rank[codes] for rank, codes in zip(ranks, data.codes.T, strict=True)])
    levels = {name: sorted(levels) for name, levels in data.levels.items()}
    return dpcgd.Dataset(codes, levels, truth=data.truth)


def timed(**case) -> dict:
    """The same with nothing shared: its seconds are those of one run."""
    records.cache_clear()
    return measured(**case)


def measured(system: str, network: str, epsilon: float, run: int, n: int, seed: int) -> dict:
    """One run: both scores, what the account reads, tests and seconds."""
    data = records(network, n, run, seed)
    algorithm, settings = SYSTEMS[system]
    settings = settings | {"epsilon": epsilon, "delta": DELTAS[system], "allow_delta": True}
    rng = np.random.default_rng([seed, run, 1])
    release, outcome = attempted(algorithm, data, rng=rng, **settings)
    if release is None:
        return dict.fromkeys(MEANINGS.keys() - {"epsilon"}) | outcome
    events = {event.mechanism for event in release.ledger.events}
    return {
        "F1": release.graph.skeleton_f1(data.truth),
        "arcs F1": arcs_f1(release.graph, reference_arcs(network)),
        "read": float(release.ledger.spent.epsilon),
        "rounds": len(release.ledger.events) // max(1, len(events)),
        "tests": release.answers.tests if release.answers else None,
    } | outcome


TABLES = {
    "figure_1": (measured, "21_priv_pc_rerun", [*ROUNDS][:3], BUDGETS, (*SMALL, *LARGE), 20),
    "table_2": (timed, "21_priv_pc_rerun", [*ROUNDS], [1.0], (*SMALL, *LARGE), 20),
    "totals": (timed, "22_curate_rerun", [*TOTALS], [0.1, 0.5, 1.0, 5.0, 10.0], CURATES, 50),
    "gradients": (timed, "22_curate_rerun", [*GRADIENTS], [1e-4, 1e-3, 0.01, 0.1], CURATES, 50),
}
"""Of each table its task, chapter, systems, budgets, networks and number of runs."""


def cases_of(table: str, networks: tuple, first: int, end: int) -> list[dict]:
    """A table's cases on these networks, from the first run to before the last."""
    _, _, systems, budgets, names, runs = TABLES[table]
    return [
        {"system": s, "network": name, "epsilon": e, "run": run, "n": N, "seed": SEED}
        for run in range(first, min(end, runs))
        for name, s, e in itertools.product(networks, systems, budgets)
        if name in names
    ]


def write(kept: Rows):
    """Put all rows of a table on file, in the order of its cases."""
    planned = cases_of(kept.name, TABLES[kept.name][4], 0, 99)
    cases = [case for case in planned if kept.key(case) in kept.rows]
    frame = pd.DataFrame([kept.rows[kept.key(case)] for case in cases])
    about = {"made_by": "python benchmarks/papers_yardstick.py", "columns": MEANINGS}
    keep(kept.folder, kept.name, frame, cases, "arcs F1", **about)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    end = time.monotonic() + 60 * parser.parse_args().minutes
    folders = {table: stored_folder() / chapter for table, (_, chapter, *_) in TABLES.items()}
    kept = {table: Rows(folder, table, KEYS) for table, folder in folders.items()}
    for (first, last), networks in itertools.product(STAGES, (SMALL, LARGE)):
        for (table, (task, *_)), network in itertools.product(TABLES.items(), networks):
            left = kept[table].left(cases_of(table, (network,), first, last))
            for i in range(0, len(left), AT_ONCE):
                if time.monotonic() > end:
                    return
                kept[table].add(sweep(task, left[i : i + AT_ONCE]))
                write(kept[table])
            print(f"runs {first} to {last}, {network}, {table}: done", flush=True)


if __name__ == "__main__":
    main()
