"""Every system of the book at one guarantee, on every network: the table of chapter 17.

python benchmarks/table.py                                    # all cases that are not on file
python benchmarks/table.py --case "table_pc child 1 100000 3" # one row, beside the one on file
python benchmarks/table.py --system table_pc                  # what is missing or of other code
python benchmarks/table.py --check table_pc                   # its guarantee, as far as runs can
python benchmarks/table.py --runs 3 --minutes 30 --workers 2
python benchmarks/table.py --memory                           # memory.csv: peaks of a run each

A case is a system, a network, an epsilon, a number of records and a run; the run is the seed of its
records, which are the same for all systems, and of its noise. Systems are the files in
benchmarks/systems. Cases come in rounds: the first has the first runs of everything, two of what
matters most, so that a table that is not complete has all of its cells. Rows are in
book/stored/17_which_one_should_i_use/table.csv.
"""

import math

import pandas as pd
from dpcgd_book.results.stored import keep, yardsticks

from benchmarks.entries import LARGER, entries_in
from benchmarks.graph_cases import peak_of, run_case
from benchmarks.kept import COLUMNS, Kept
from benchmarks.yardsticks import run_yardstick
from dpcgd.datasets.bayesian_networks import NETWORKS

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
OF_PUBLISHED = (0.1, 1.0, 10.0)
RUNS = 20
GRADIENTS = ("noisy gradients", "one release")
SLOW = ("EM-PC", "NOTEARS")
"""On the larger networks: minutes of some runs."""


def _epsilons(system, epsilons):
    return epsilons if system.private else (math.inf,)


def run_here_or_there(system: str, network: str, n: int, epsilon: float, run: int, seed: int):
    """A case of a system, in the environment that it needs."""
    if yardstick := entries_in("systems")[system].yardstick:
        return run_yardstick(system=yardstick, network=network, n=n, epsilon=epsilon, run=run)
    return run_case(system, network, n, epsilon, run, seed)


class Table(Kept):
    """The table of systems for graphs."""

    name, kind, compare = "table", "systems", "F1"
    keys, cost = ("system", "network", "n", "epsilon", "run"), ("system", "network")
    made_by, runs, task = "python benchmarks/table.py", RUNS, staticmethod(run_here_or_there)

    def plan(self):
        run_here = [system for system in entries_in("systems").values() if system.run]
        published = [s for s in run_here if s.family == "as published"]
        slow = [s for s in run_here if s.trust == "local"]
        quick = [s for s in run_here if s not in slow + published]
        quicker = [s for s in quick if s.family not in GRADIENTS and s.name not in SLOW]
        rest = [s for s in quick + slow if s not in quicker]
        low, high, few = EPSILONS[:5], EPSILONS[5:], EPSILONS[::2]
        blocks = [  # the last number: runs a round
            (quick, NETWORKS, 100_000, low, RUNS, 2),
            (published, NETWORKS, 100_000, (1.0,), RUNS, 1),
            (quicker, LARGER, 100_000, few[:2], RUNS, 1),
            (quicker, NETWORKS, 10_000, low, RUNS, 1),
            (quicker, NETWORKS, 100_000, low, RUNS, 4),
            (slow, NETWORKS, 100_000, few[1:], RUNS, 1),
            (quicker, LARGER, 100_000, low, RUNS, 1),
            (published, NETWORKS, 100_000, OF_PUBLISHED, RUNS, 1),
            (quick, NETWORKS, 100_000, high, RUNS, 1),
            (quick, NETWORKS, 10_000, low, RUNS, 1),
            (slow, NETWORKS, 100_000, EPSILONS, RUNS, 1),
            (slow, NETWORKS, 10_000, low, RUNS, 1),
            (rest, LARGER, 100_000, low, RUNS, 1),
            (quick + slow, NETWORKS, 10_000, high, RUNS, 1),
            (quick + slow, LARGER, 10_000, low, RUNS, 1),
            (quick + slow, LARGER, 100_000, high, RUNS, 1),
            (quick + slow, LARGER, 10_000, high, RUNS, 1),
            (published, NETWORKS, 10_000, OF_PUBLISHED, RUNS, 1),
        ]
        cases = [
            self.case(s.name, network, n, epsilon, run)
            for once in range(RUNS)
            for among, networks, n, epsilons, runs, a_round in blocks
            for run in range(once * a_round, min((once + 1) * a_round, runs))
            for network in networks
            for s in among
            for epsilon in _epsilons(s, epsilons)
        ]
        return list({tuple(case.values()): case for case in cases}.values())

    def sorted_rows(self):
        known = list(entries_in("systems"))
        networks = [*NETWORKS, *LARGER]
        rows = [row for row in self.rows.values() if row["system"] in known]
        rows = [row for row in rows if row["code"] != "yardsticks.py"] + of_yardsticks()
        rows.sort(
            key=lambda row: (
                *(networks.index(row["network"]), row["n"]),
                *(known.index(row["system"]), row["epsilon"], row["run"]),
            )
        )
        rounded = dict.fromkeys(("F1", "arrowhead F1", "precision", "recall", "read"), 4)
        table = pd.DataFrame(rows, columns=[*self.columns]).round(rounded)
        return table.astype(dict.fromkeys(("SHD", "edges", "tests"), "Int64"))

    def memory(self):
        """What each system takes beside the records, at its peak: memory.csv, one run a row."""
        run_here = [s for s in entries_in("systems").values() if s.run]
        counts = [s for s in run_here if s.family in ASK_COUNTS or s.name == "PC"]
        cases = [
            self.case(s.name, network, n, epsilon, 0)
            for n, some in ((100_000, run_here), (1_000_000, counts))
            for s in some
            for network in ("child", "alarm")
            for epsilon in _epsilons(s, (1.0,))
        ]
        rows = pd.DataFrame([case | peak_of(**case) for case in cases])
        made_by, columns = f"{self.made_by} --memory", COLUMNS["memory"]
        unit = "megabytes"
        keep(self.folder, "memory", rows, cases, unit, made_by=made_by, columns=columns)


def of_yardsticks() -> list[dict]:
    """Rows of other scripts: of systems that have a yardstick instead of a callable."""
    names = {s.yardstick: s.name for s in entries_in("systems").values() if s.yardstick}
    rows = yardsticks()
    rows = rows[rows.system.isin(names) & rows.n.isin([10_000, 100_000])]
    rows = rows.assign(system=rows.system.map(names), code="yardsticks.py")
    return rows.reindex(columns=[*COLUMNS["table"]]).to_dict("records")


ASK_COUNTS = ("test by test", "released tables")


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
