"""Rows of a long benchmark on file: what is there, what is missing, what other code has made."""

import argparse
import itertools
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from dpcgd_book.results.record import results_folder
from dpcgd_book.results.stored import keep, rows_on_file, stored_folder
from dpcgd_book.results.sweep import CLUSTER, sweep

from benchmarks.entries import DELTA, FOLDER, HOME, Entry, code_of, entries_in
from benchmarks.entry_check import check_entry

COLUMNS = json.loads(Path(__file__).with_name("columns.json").read_text())
"""The data dictionary of each table."""

SEED, RUNS = 0, 20
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
BOOK = Path(__file__).resolve().parent.parent / "book"
"""Its tables have the systems of this repository, and no others."""
AT_ONCE = 25
"""Cases between two looks at the clock."""


def in_time(cases: Sequence, seconds: float, at_once: int = AT_ONCE) -> Iterator[Sequence]:
    """Some cases after the others, for as long as there is time."""
    end = time.monotonic() + seconds
    parts = (cases[i : i + at_once] for i in range(0, len(cases), at_once))
    return itertools.takewhile(lambda _: time.monotonic() <= end, parts)


class Rows:
    """The rows of a table on file, by the values of their keys."""

    def __init__(self, folder: Path, name: str, keys: Sequence[str]):
        self.folder, self.name, self.keys, self.rows = folder, name, keys, {}
        if (folder / f"{name}.parquet").exists():
            self.add(rows_on_file(folder, name).to_dict("records"))

    def key(self, case) -> tuple:
        values = (case[k] for k in self.keys)
        return tuple(v if isinstance(v, str) else f"{float(v):g}" for v in values)

    def add(self, rows):
        self.rows |= {self.key(row): row for row in rows}

    def left(self, cases) -> list[dict]:
        """Cases without a row."""
        return [case for case in cases if self.key(case) not in self.rows]


class Kept(Rows):
    """The rows of a long benchmark; each kind of table says how they are planned and sorted.

    Its method `blocks` returns tuples: systems, places, records, epsilons and how many runs.

    Attributes
    ----------
    name, compare, made_by : str
        As on file.
    kind : str
        The folder of its systems.
    keys : tuple of str
        The keys of a case; the first is its system, the last its run.
    cost : tuple of str
        Cases with the same values of these keys take about as long.
    task : callable
        From the values of a case, by name, to its results.
    places : tuple of str
        Networks, or kinds of pairs, in the order of the file.
    digits : dict of str to int
        Of columns that are rounded.
    """

    def __init__(self):
        super().__init__(stored_folder() / HOME, self.name, self.keys)
        self.columns = COLUMNS[self.name]

    def plan(self) -> list[dict]:
        """All cases, in rounds: a run of everything, then the next."""
        return [
            self.case(system.name, place, n, epsilon, run)
            for run in range(RUNS)
            for among, places, n, epsilons, runs in self.blocks()
            if run < runs
            for place, system in itertools.product(places, among)
            for epsilon in (epsilons if system.private else (math.inf,))
        ]

    def rows_of_others(self) -> list[dict]:
        """Rows that other scripts have made, of systems with a yardstick instead of a callable."""
        return []

    def sorted_rows(self) -> pd.DataFrame:
        """All rows, in the order of the file."""
        known, others = list(entries_in(self.kind)), self.rows_of_others()
        there = {row["code"] for row in others}
        mine = [row for row in self.rows.values() if row["code"] not in there]
        table = pd.DataFrame([row for row in mine if row["system"] in known] + others)
        places = table[self.keys[1]].map(self.places.index)
        order = table.assign(place=places, number=table.system.map(known.index))
        order = order.sort_values(["place", "n", "number", "epsilon", "run"], kind="stable")
        return order.reindex(columns=[*self.columns]).round(self.digits)

    def case(self, *values) -> dict:
        """The case with these values of its keys."""
        return dict(zip((*self.keys, "seed"), (*values, SEED), strict=True))

    def other_code(self, case) -> bool:
        row = self.rows.get(self.key(case))
        return row is not None and row["code"] != code_of(self.kind, case["system"])

    def refuse_others(self):
        """Refuse to write a table of the book with the systems of another folder."""
        if os.environ.get(FOLDER) and self.folder.is_relative_to(BOOK) and self.rows:
            problem = f"their rows do not belong in {self.folder}"
            raise SystemExit(f"{FOLDER} names other systems: {problem}")

    def write(self):
        """Put all rows on file."""
        table = self.sorted_rows().assign(seed=SEED)
        cases = table[[*self.keys, "seed"]].to_dict("records")
        about = {"made_by": self.made_by, "columns": self.columns}
        keep(self.folder, self.name, table, cases, self.compare, **about)

    def core_hours(self, cases) -> float:
        """What they will take, as like cases did; unknown ones a second."""
        rows = pd.DataFrame(self.rows.values(), columns=[*self.columns])
        known = (rows.groupby(list(self.cost)).seconds.mean().dropna() + 0.05).to_dict()
        return sum(known.get(tuple(c[k] for k in self.cost), 1.0) for c in cases) / 3600

    def fill(self, asked):
        """Run what is left of the cases that were asked for while there is time."""
        self.refuse_others()
        cases = [c for c in self.plan() if c["run"] < asked.runs]
        if asked.system:
            cases = [c for c in cases if c["system"] == self.entry(asked.system).name]
        other = [c for c in cases if self.other_code(c)]
        left = self.left(cases) + (other if asked.system else [])
        known = f"{len(cases) - len(left)} of {len(cases)} cases on file"
        print(f"{known}, {len(other)} rows of other code")
        print(f"about {self.core_hours(left):.1f} core-hours left at delta = {DELTA:g}", flush=True)
        path = results_folder() / "sweeps.sqlite3"
        for some in in_time(left, 60 * asked.minutes):
            code = " ".join(sorted({code_of(self.kind, case["system"]) for case in some}))
            settings = {"path": path, "version": code, "workers": asked.workers}
            self.add(sweep(self.task, some, cluster=os.environ.get(CLUSTER), **settings))
            self.write()
            print(f"{some[-1]}: {len(self.left(cases))} left", flush=True)
        self.write()

    def again(self, text: str):
        """Run a case and print it beside the row on file."""
        system, where, epsilon, n, run = text.split()
        case = self.case(self.entry(system).name, where, int(n), float(epsilon), int(run))
        now, kept = self.task(**case), self.rows.get(self.key(case), {})
        shown = {"now": now, "on file": {k: kept.get(k) for k in now}}
        print(pd.DataFrame(shown).to_string(na_rep="-"))

    def entry(self, name: str) -> Entry:
        """The system of this name."""
        known = entries_in(self.kind)
        if name not in known:
            raise SystemExit(f"no system {name}; there are {', '.join(known)}")
        return known[name]

    def check(self, name: str):
        """Print what can be checked of a guarantee, or in one line why it would be refused."""
        try:
            for what, result in check_entry(self.entry(name)).items():
                print(f"{what}: {result}")
        except ValueError as error:
            raise SystemExit(f"refused: {error}") from None

    def parser(self, doc: str) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(description=doc.split("\n")[0])
        parser.add_argument("--case", help=f'"system {self.keys[1]} epsilon n run": one row')
        parser.add_argument("--system", help="only this one; rows of other code are made anew")
        parser.add_argument("--runs", type=int, default=RUNS)
        parser.add_argument("--check", help="what can be checked of this system's guarantee")
        parser.add_argument("--minutes", type=float, default=math.inf)
        parser.add_argument("--workers", type=int, default=1)
        return parser

    def do(self, asked):
        """What the command line asks for."""
        if asked.case:
            self.again(asked.case)
        elif asked.check:
            self.check(asked.check)
        else:
            self.fill(asked)
