"""Rows of a long benchmark on file: what is there, what is missing, what other code has made."""

import argparse
import math
import os
import time
from pathlib import Path

import pandas as pd
from dpcgd_book.results.entry_check import check_entry
from dpcgd_book.results.record import results_folder
from dpcgd_book.results.stored import keep, rows_on_file
from dpcgd_book.results.sweep import CLUSTER, sweep
from dpcgd_book.systems.graph_systems import DELTA, HOME, code_of

AT_ONCE = 25
"""Cases between two looks at the clock."""


class Kept:
    """The rows on file of a table; each kind of table says how they are sorted."""

    name: str
    keys: list[str]
    """Those of a case; the last one is its run."""
    cost: list[str]
    """Keys of which cases take about as long."""
    columns: dict[str, str]
    compare: str
    made_by: str

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: dict[tuple, dict] = {}
        if (folder / f"{self.name}.csv").exists():
            rows = rows_on_file(folder, self.name).to_dict("records")
            self.rows = {self.key(row): row for row in rows}

    def sorted_rows(self) -> pd.DataFrame:
        raise NotImplementedError

    def code_of(self, system: str) -> str:
        return code_of(system)

    def key(self, case) -> tuple:
        values = (case[k] for k in self.keys)
        return tuple(v if isinstance(v, str) else f"{float(v):g}" for v in values)

    def left(self, cases, *, anew=False):
        """Cases without a row, or with one that other code has made."""
        return [c for c in cases if self.key(c) not in self.rows or (anew and self.other_code(c))]

    def other_code(self, case) -> bool:
        row = self.rows.get(self.key(case))
        return row is not None and row["code"] != self.code_of(case["system"])

    def add(self, rows):
        self.rows |= {self.key(row): row for row in rows}
        table = self.sorted_rows()
        cases = table[[*self.keys, "seed"]].to_dict("records")
        told = {"made_by": self.made_by, "columns": self.columns}
        keep(self.folder, self.name, table, cases, self.compare, **told)

    def core_hours(self, cases) -> float:
        """What they will take, as like cases did; unknown ones a second."""
        rows = pd.DataFrame(self.rows.values(), columns=[*self.columns])
        known = rows.groupby(self.cost).seconds.mean().to_dict()
        seconds = [known.get(tuple(c[k] for k in self.cost), math.nan) for c in cases]
        return sum(1.0 if math.isnan(s) else s + 0.05 for s in seconds) / 3600

    def fill(self, cases, task, told):
        """Run what is left of these cases while there is time."""
        other = sum(map(self.other_code, cases))
        left = self.left(cases, anew=bool(told.system))
        print(f"{len(cases) - len(left)} of {len(cases)} cases on file, {other} rows of other code")
        print(f"about {self.core_hours(left):.1f} core-hours left at delta = {DELTA:g}", flush=True)
        end = time.monotonic() + 60 * told.minutes
        progress = results_folder() / "sweeps" / f"{HOME}.{self.name}.jsonl"
        how = {"workers": told.workers, "cluster": os.environ.get(CLUSTER)}
        for some in (left[i : i + AT_ONCE] for i in range(0, len(left), AT_ONCE)):
            if time.monotonic() > end:
                break
            self.add(sweep(task, some, path=progress, **how))
            progress.unlink()
            print(f"{some[-1]}: {len(self.left(cases))} left", flush=True)
        self.add([])

    def again(self, case, task):
        """Run a case and print it beside the row on file."""
        found, kept = task(**case), self.rows.get(self.key(case), {})
        shown = {"now": found, "on file": {k: kept.get(k) for k in found}}
        print(pd.DataFrame(shown).to_string(na_rep="-"))


def parser_of(doc: str, case: str, runs: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--case", help=f'"{case}": one row')
    parser.add_argument("--system", help="only this one; rows of other code are made anew")
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--check", help="what can be checked of this system's guarantee")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--workers", type=int, default=1)
    return parser


def named(name: str, known):
    if name not in known:
        raise SystemExit(f"no system {name}; there are {', '.join(known)}")
    return known[name]


def check(name: str, known):
    """Print what can be checked of a system's guarantee, or in one line why it would be refused."""
    try:
        for what, found in check_entry(named(name, known)).items():
            print(f"{what}: {found}")
    except ValueError as error:
        raise SystemExit(f"refused: {error}") from None


def of_system(cases, told, known):
    """Cases of the runs, and of the system, that were asked for."""
    cases = [c for c in cases if c["run"] < told.runs]
    if told.system:
        cases = [c for c in cases if c["system"] == named(told.system, known).name]
    return cases
