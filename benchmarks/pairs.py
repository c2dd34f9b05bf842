"""Every system for cause or effect, on three kinds of pairs: the second table of chapter 12.

python benchmarks/pairs.py                                   # all cases that are not on file
python benchmarks/pairs.py --case "histogram sine 1 4000 3"  # one row, beside the one on file
python benchmarks/pairs.py --system histogram                # what is missing or of other code
python benchmarks/pairs.py --check histogram                 # its guarantee, as far as runs can
python benchmarks/pairs.py --runs 3 --minutes 30 --workers 2

A case is a system, a kind of pair, a number of records, an epsilon and a run; the run is the seed
of the records, the same for all systems, and of the noise. Systems are the files in
benchmarks/pair_systems. Rows are in book/stored/12_which_one_should_i_use/pairs.csv.
"""

import math
from typing import ClassVar

import pandas as pd
from dpcgd_book.results.stored import stored_folder
from dpcgd_book.systems.graph_systems import HOME, code_of
from dpcgd_book.systems.pair_systems import KINDS, pair_systems, pair_systems_folder, run_pair
from kept import Kept, check, of_system, parser_of

SEED, RUNS = 0, 20
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
OF_SQUARE_TIME = ("HSIC", "published-HSIC", "HSIC-everyone", "HSIC-test-half")
OF_SQUARE_TIME += ("IQR-test-half", "histogram")
"""In the number of records: not with 100,000."""

KEYS = ["system", "kind", "n", "epsilon", "run"]
COLUMNS = {
    "system": "its name in benchmarks/pair_systems",
    "kind": "of pairs: sine and steep are y = f(x) + e with a sine of about two periods and with a "
    "cube root; real ones are drawn by their official weight among those large enough",
    "n": "records",
    "epsilon": "the guarantee at delta = 1e-6, replace-one; inf without privacy; of published "
    "systems that of one of two scores; of reports local, with delta = 0",
    "run": "the seed of the records and of the noise",
    "right": "1 if the true direction came out, 0 if the other one, 0.5 if none",
    "margin": "the score of the false direction less that of the true one, as released; empty "
    "where no two scores are",
    "read": "the epsilon that its ledger reads when the run is over",
    "seconds": "of processor time, one thread, a first call left out",
    "why_not": "why there is no answer: public facts refused the run, or it took too long",
    "code": "a digest of the system's file and of the package behind it",
}
"""The data dictionary."""


def plan() -> list[dict]:
    """All cases, in rounds: a run of everything, then the next."""
    names = list(pair_systems())
    quick = [name for name in names if name not in OF_SQUARE_TIME]
    blocks = [
        (names, KINDS, 1000, EPSILONS, RUNS),
        (names, KINDS, 4000, EPSILONS, RUNS),
        (quick, KINDS[:2], 100_000, EPSILONS, RUNS),
        (names, KINDS[:1], 10_000, EPSILONS[:5:2], RUNS // 4),
    ]
    return [
        dict(zip((*KEYS, "seed"), (name, kind, n, epsilon, run, SEED), strict=True))
        for run in range(RUNS)
        for some, kinds, n, epsilons, runs in blocks
        if run < runs
        for kind in kinds
        for name in some
        for epsilon in (epsilons if pair_systems()[name].private else (math.inf,))
    ]


class Pairs(Kept):
    name, keys, columns, compare = "pairs", KEYS, COLUMNS, "right"
    cost: ClassVar = ["system", "n"]
    made_by = "python benchmarks/pairs.py"

    def code_of(self, system):
        return code_of(system, pair_systems_folder())

    def sorted_rows(self):
        known = list(pair_systems())
        rows = [row for row in self.rows.values() if row["system"] in known]
        rows.sort(
            key=lambda r: (
                *(KINDS.index(r["kind"]), r["n"]),
                *(known.index(r["system"]), r["epsilon"], r["run"]),
            )
        )
        return pd.DataFrame(rows, columns=[*COLUMNS]).round({"read": 4}).assign(seed=SEED)


def main(arguments: list[str] | None = None):
    told = parser_of(__doc__, "system kind epsilon n run", RUNS).parse_args(arguments)
    table = Pairs(stored_folder() / HOME)
    if told.case:
        system, kind, epsilon, n, run = told.case.split()
        case = {"system": system, "kind": kind, "n": int(n), "epsilon": float(epsilon)}
        table.again(case | {"run": int(run), "seed": SEED}, run_pair)
    elif told.check:
        check(told.check, pair_systems())
    else:
        table.fill(of_system(plan(), told, pair_systems()), run_pair, told)


if __name__ == "__main__":
    main()
