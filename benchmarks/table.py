"""Every system of the book at one guarantee, on every network: the table of chapter 12.

python benchmarks/table.py                                    # all cases that are not on file
python benchmarks/table.py --case "table_pc child 1 100000 3" # one row, beside the one on file
python benchmarks/table.py --system table_pc                  # what is missing or of other code
python benchmarks/table.py --check table_pc                   # its guarantee, as far as runs can
python benchmarks/table.py --runs 3 --minutes 30 --workers 2

A case is a system, a network, an epsilon, a number of records and a run; the run is the seed of its
records, which are the same for all systems, and of its noise. Systems are the files in
benchmarks/systems. Cases come in rounds: the first has the first runs of everything, two of what
matters most, so that a table that is not complete has all of its cells. Rows are in
book/stored/12_which_one_should_i_use/table.csv.
"""

import argparse
import math
import os
import time

import pandas as pd

from dpcgd.book.entry_check import check_entry
from dpcgd.book.results import results_folder
from dpcgd.book.stored import keep, rows_on_file, stored_folder, yardsticks
from dpcgd.book.sweep import CLUSTER, sweep
from dpcgd.book.systems import DELTA, HOME, System, code_of, run_case, systems
from dpcgd.datasets.published_networks import NETWORKS

NAME, SEED = "table", 0
LARGER = ("insurance", "water", "hailfinder", "win95pts", "hepar2")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
OF_PUBLISHED = (0.1, 1.0, 10.0)
RUNS, RUNS_OF_PUBLISHED = 20, 5
GRADIENTS = ("noisy gradients", "one release")
SLOW = ("EM-PC", "NOTEARS")
"""On the larger networks: minutes of some runs."""

AT_ONCE = 25
"""Cases between two looks at the clock."""

KEYS = ["system", "network", "n", "epsilon", "run"]
COLUMNS = {
    "system": "its name in benchmarks/systems",
    "network": "whose records: one of the papers' seven, or of five larger ones",
    "n": "records",
    "epsilon": "the guarantee at delta = 1e-6, replace-one; inf without privacy or without a look; "
    "of published-SVT-PC, -Priv-PC and -EM-PC that of a round; of reports local, with delta = 0",
    "run": "the seed of the records and of the noise",
    "F1": "of the skeleton, against the true graph",
    "arrowhead F1": "of the directions, against the completed form of the true graph",
    "SHD": "structural Hamming distance to the completed form of the true graph",
    "edges": "in the graph that was found",
    "precision": "share of these that are true; 1 if there are none",
    "recall": "share of the true ones that were found",
    "tests": "questions asked, where the system asks any",
    "read": "the epsilon that its ledger reads when the run is over",
    "seconds": "of processor time, one thread, a first call left out; of yardsticks by the clock",
    "why_not": "why there is no graph: public facts refused the run, or it took too long",
    "code": "a digest of the system's file and of the package behind it; of other scripts their "
    "name",
}
"""The data dictionary."""


def plan() -> list[dict]:
    """All cases, in order."""
    of = [system for system in systems().values() if system.run]
    published = [s for s in of if s.family == "as published"]
    slow = [s for s in of if s.trust == "local"]
    quick = [s for s in of if s not in slow + published]
    quicker = [s for s in quick if s.family not in GRADIENTS and s.name not in SLOW]
    rest = [s for s in quick + slow if s not in quicker]
    low, high, few = EPSILONS[:5], EPSILONS[5:], EPSILONS[::2]
    blocks = [  # the last number: runs a round
        (quick, NETWORKS, 100_000, low, RUNS, 2),
        (published, NETWORKS, 100_000, (1.0,), RUNS_OF_PUBLISHED, 1),
        (quicker, LARGER, 100_000, few[:2], RUNS, 1),
        (quicker, NETWORKS, 10_000, low, RUNS, 1),
        (quicker, NETWORKS, 100_000, low, RUNS, 4),
        (slow, NETWORKS, 100_000, few[1:], RUNS, 1),
        (quicker, LARGER, 100_000, low, RUNS, 1),
        (published, NETWORKS, 100_000, OF_PUBLISHED, RUNS_OF_PUBLISHED, 1),
        (quick, NETWORKS, 100_000, high, RUNS, 1),
        (quick, NETWORKS, 10_000, low, RUNS, 1),
        (slow, NETWORKS, 100_000, EPSILONS, RUNS, 1),
        (slow, NETWORKS, 10_000, low, RUNS, 1),
        (rest, LARGER, 100_000, low, RUNS, 1),
        (quick + slow, NETWORKS, 10_000, high, RUNS, 1),
        (quick + slow, LARGER, 10_000, low, RUNS, 1),
        (quick + slow, LARGER, 100_000, high, RUNS, 1),
        (quick + slow, LARGER, 10_000, high, RUNS, 1),
    ]
    cases = [
        dict(zip((*KEYS, "seed"), (s.name, network, n, epsilon, run, SEED), strict=True))
        for once in range(RUNS)
        for among, networks, n, epsilons, runs, a_round in blocks
        for run in range(once * a_round, min((once + 1) * a_round, runs))
        for network in networks
        for s in among
        for epsilon in _epsilons(s, epsilons)
    ]
    return list({_key(case): case for case in cases}.values())


def _epsilons(system, epsilons):
    return epsilons if system.private else (math.inf,)


def _key(case):
    return tuple(case[k] if k in KEYS[:2] else f"{float(case[k]):g}" for k in KEYS)


class Table:
    """The rows on file."""

    def __init__(self):
        self.folder = stored_folder() / HOME
        self.rows: dict[tuple, dict] = {}
        if (self.folder / f"{NAME}.csv").exists():
            rows = rows_on_file(self.folder, NAME).to_dict("records")
            self.rows = {_key(row): row for row in rows}

    def left(self, cases, *, anew=False):
        """Cases without a row, or with one that other code has made."""
        return [c for c in cases if _key(c) not in self.rows or (anew and self.other_code(c))]

    def other_code(self, case) -> bool:
        row = self.rows.get(_key(case))
        return row is not None and row["code"] != code_of(case["system"])

    def add(self, rows):
        self.rows |= {_key(row): row for row in rows}
        self._write()

    def _write(self):
        known = {name: i for i, name in enumerate(systems())}
        nets = {name: i for i, name in enumerate((*NETWORKS, *LARGER))}
        rows = [row for row in self.rows.values() if row["system"] in known]
        rows = [row for row in rows if row["code"] != "yardsticks.py"] + of_yardsticks()
        rows.sort(
            key=lambda r: (nets[r["network"]], r["n"], known[r["system"]], r["epsilon"], r["run"])
        )
        table = pd.DataFrame(rows, columns=[*COLUMNS]).round(
            dict.fromkeys(("F1", "arrowhead F1", "precision", "recall", "read"), 4)
        )
        for whole in ("SHD", "edges", "tests"):
            table[whole] = table[whole].astype("Int64")
        table["seed"] = SEED
        cases = table[[*KEYS, "seed"]].to_dict("records")
        keep(
            self.folder,
            NAME,
            table,
            cases,
            "F1",
            made_by="python benchmarks/table.py",
            columns=COLUMNS,
        )


def of_yardsticks() -> list[dict]:
    """Rows of other scripts: of systems that have a yardstick instead of a callable."""
    names = {s.yardstick: s.name for s in systems().values() if s.yardstick}
    rows = yardsticks()
    rows = rows[rows.system.isin(names) & rows.n.isin([10_000, 100_000])]
    rows = rows.assign(system=rows.system.map(names), code="yardsticks.py")
    return rows.reindex(columns=[*COLUMNS]).to_dict("records")


def core_hours(table: Table, cases) -> float:
    """What they will take, as the same system did on the same network; unknown ones a second."""
    rows = pd.DataFrame(table.rows.values(), columns=[*COLUMNS])
    known = rows.groupby(["system", "network"]).seconds.mean().to_dict()
    seconds = [known.get((c["system"], c["network"]), math.nan) for c in cases]
    return sum(1.0 if math.isnan(s) else s + 0.05 for s in seconds) / 3600


def one_case(text: str) -> None:
    """Run a case and print it beside the row on file."""
    system, network, epsilon, n, run = text.split()
    case = {"system": system, "network": network, "n": int(n), "epsilon": float(epsilon)}
    case |= {"run": int(run), "seed": SEED}
    found = run_case(**case)
    kept = Table().rows.get(_key(case), {})
    shown = {"now": found, "on file": {k: kept.get(k) for k in found}}
    print(pd.DataFrame(shown).to_string(na_rep="-"))


def _named(name: str) -> System:
    if name not in systems():
        raise SystemExit(f"no system {name}; there are {', '.join(systems())}")
    return systems()[name]


def main(arguments: list[str] | None = None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", help='"system network epsilon n run": one row')
    parser.add_argument("--system", help="only this one; rows of other code are made anew")
    parser.add_argument("--check", help="what can be checked of this system's guarantee")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--workers", type=int, default=1)
    told = parser.parse_args(arguments)
    if told.case:
        one_case(told.case)
        return
    if told.check:
        for check, found in check_entry(_named(told.check)).items():
            print(f"{check}: {found}")
        return
    table, cases = Table(), [c for c in plan() if c["run"] < told.runs]
    if told.system:
        cases = [c for c in cases if c["system"] == _named(told.system).name]
    other = sum(map(table.other_code, cases))
    left = table.left(cases, anew=bool(told.system))
    print(f"{len(cases) - len(left)} of {len(cases)} cases on file, {other} rows of other code")
    print(f"about {core_hours(table, left):.1f} core-hours left at delta = {DELTA:g}", flush=True)
    end = time.monotonic() + 60 * told.minutes
    progress = results_folder() / "sweeps" / f"{HOME}.{NAME}.jsonl"
    how = {"workers": told.workers, "cluster": os.environ.get(CLUSTER)}
    for some in (left[i : i + AT_ONCE] for i in range(0, len(left), AT_ONCE)):
        if time.monotonic() > end:
            break
        table.add(sweep(run_case, some, path=progress, **how))
        progress.unlink()
        print(f"{some[-1]}: {len(table.left(cases))} left", flush=True)
    table.add([])


if __name__ == "__main__":
    main()
