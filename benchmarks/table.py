"""Every system of the book at one guarantee, on every network: the table of chapter 17.

python benchmarks/table.py                                    # all cases that are not on file
python benchmarks/table.py --case "table_pc child 1 100000 3" # one row, beside the one on file
python benchmarks/table.py --system table_pc                  # what is missing or of other code
python benchmarks/table.py --check table_pc                   # its guarantee, as far as runs can
python benchmarks/table.py --runs 3 --minutes 30 --workers 2
python benchmarks/table.py --memory                           # memory.parquet: peaks of a run each

A case is a system, a network, an epsilon, a number of records and a run; the run is the seed of its
records, which are the same for all systems, and of its noise. Systems are the files in
benchmarks/systems. Cases come in rounds: the first has the first run of everything, so that a table
that is not complete has all of its cells. Rows are in
book/stored/17_which_one_should_i_use/table.parquet.
"""

import itertools
import math

import pandas as pd
from dpcgd_book.results.stored import keep, yardsticks

from benchmarks.entries import LARGER, entries_in
from benchmarks.graph_cases import peak_of, run_case
from benchmarks.kept import COLUMNS, EPSILONS, RUNS, Kept
from benchmarks.yardsticks import run_yardstick
from dpcgd.datasets.bayesian_networks import NETWORKS

OF_PUBLISHED = (0.1, 1.0, 10.0)
SLOW, FEWER_RUNS = ("BOSS", "GRaSP"), 3
ASK_COUNTS = ("test by test", "released tables")


def run_here_or_there(system: str, network: str, n: int, epsilon: float, run: int, seed: int):
    """A case of a system, in the environment that it needs."""
    if yardstick := entries_in("systems")[system].yardstick:
        return run_yardstick(system=yardstick, network=network, n=n, epsilon=epsilon, run=run)
    return run_case(system, network, n, epsilon, run, seed)


class Table(Kept):
    """The table of systems for graphs."""

    name, kind, compare = "table", "systems", "F1"
    keys, cost = ("system", "network", "n", "epsilon", "run"), ("system", "network")
    made_by, task = "python benchmarks/table.py", staticmethod(run_here_or_there)
    places = (*NETWORKS, *LARGER)
    digits = dict.fromkeys(("F1", "arrowhead F1", "precision", "recall", "read"), 4)

    def blocks(self):
        run_here = [system for system in entries_in("systems").values() if system.run]
        published = [s for s in run_here if s.family == "as published"]
        slow = [s for s in run_here if s.name in SLOW]
        proved = [s for s in run_here if s not in published + slow]
        return [
            (proved, self.places, 100_000, EPSILONS, RUNS),
            (published, NETWORKS, 100_000, OF_PUBLISHED, RUNS),
            (proved, self.places, 10_000, EPSILONS, RUNS),
            (published, NETWORKS, 10_000, OF_PUBLISHED, RUNS),
            *((slow, self.places, n, EPSILONS, FEWER_RUNS) for n in (100_000, 10_000)),
        ]

    def rows_of_others(self):
        names = {s.yardstick: s.name for s in entries_in("systems").values() if s.yardstick}
        rows = yardsticks()
        rows = rows[rows.system.isin(names) & rows.n.isin([10_000, 100_000])]
        rows = rows.assign(system=rows.system.map(names), code="yardsticks.py")
        return rows.reindex(columns=[*self.columns]).to_dict("records")

    def sorted_rows(self):
        return super().sorted_rows().astype(dict.fromkeys(("SHD", "edges", "tests"), "Int64"))

    def memory(self):
        """What each system takes beside the records, at its peak: memory.parquet, one run a row."""
        self.refuse_others()
        run_here = [s for s in entries_in("systems").values() if s.run]
        counts = [s for s in run_here if s.family in ASK_COUNTS or s.name == "PC"]
        cases = [
            self.case(s.name, network, n, epsilon, 0)
            for n, some in ((100_000, run_here), (1_000_000, counts))
            for s, network in itertools.product(some, ("child", "alarm"))
            for epsilon in ((1.0,) if s.private else (math.inf,))
        ]
        rows = pd.DataFrame([case | peak_of(**case) for case in cases])
        about = {"made_by": f"{self.made_by} --memory", "columns": COLUMNS["memory"]}
        keep(self.folder, "memory", rows, cases, "megabytes", **about)


def main(arguments: list[str] | None = None):
    table = Table()
    parser = table.parser(__doc__)
    parser.add_argument("--memory", action="store_true", help="peaks of memory, all anew")
    asked = parser.parse_args(arguments)
    if asked.memory:
        table.memory()
    else:
        table.do(asked)


if __name__ == "__main__":
    main()
