"""Every system for cause or effect, on three kinds of pairs: the second table of chapter 17.

python benchmarks/pairs.py                                   # all cases that are not on file
python benchmarks/pairs.py --case "histogram sine 1 4000 3"  # one row, beside the one on file
python benchmarks/pairs.py --system histogram                # what is missing or of other code
python benchmarks/pairs.py --check histogram                 # its guarantee, as far as runs can
python benchmarks/pairs.py --runs 3 --minutes 30 --workers 2

A case is a system, a kind of pair, a number of records, an epsilon and a run; the run is the seed
of the records, the same for all systems, and of the noise. Systems are the files in
benchmarks/pair_systems. Rows are in book/stored/17_which_one_should_i_use/pairs.parquet.
"""

from benchmarks.kept import EPSILONS, RUNS, Kept
from benchmarks.pair_cases import KINDS, pair_systems, run_pair

OF_SQUARE_TIME = ("HSIC", "published-HSIC", "HSIC-everyone", "HSIC-test-half")
OF_SQUARE_TIME += ("IQR-test-half", "histogram")
"""In the number of records: not with 100,000."""


class Pairs(Kept):
    """The table of systems for cause or effect."""

    name, kind, compare = "pairs", "pair_systems", "right"
    keys, cost = ("system", "kind", "n", "epsilon", "run"), ("system", "n")
    made_by, task = "python benchmarks/pairs.py", staticmethod(run_pair)
    places, digits = KINDS, {"read": 4}

    def blocks(self):
        known = list(pair_systems().values())
        quick = [system for system in known if system.name not in OF_SQUARE_TIME]
        return [
            (known, KINDS, 1000, EPSILONS, RUNS),
            (known, KINDS, 4000, EPSILONS, RUNS),
            (quick, KINDS[:2], 100_000, EPSILONS, RUNS),
            (known, KINDS[:1], 10_000, EPSILONS[:5:2], RUNS // 4),
        ]


def main(arguments: list[str] | None = None):
    table = Pairs()
    table.do(table.parser(__doc__).parse_args(arguments))


if __name__ == "__main__":
    main()
