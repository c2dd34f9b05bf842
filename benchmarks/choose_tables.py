"""How table_pc's settings were chosen: on random networks of every kind, none of them in the book.

python benchmarks/choose_tables.py [seed]

Scores one change at a time on networks of every shape and kind of table, of 5 to 80 variables, with
10,000 to a million records, at epsilon from 0.1 to 3 (delta = 1e-6). One setting serves all; the
optimum is flat. What is chosen with one seed is confirmed with another.
"""

import math
import sys
from itertools import product

import numpy as np
import pandas as pd

from dpcgd import Budget
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.moments.interactions import MeasuredMarginals, paid
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.repairs import repaired
from dpcgd.tables.table_pc import LOOKS, PAIRS, TRIPLES, TableOracle, search_again

VARIABLES, RECORDS, EPSILONS = (5, 80), (10**4, 10**5, 10**6), (0.1, 0.3, 1.0, 3.0)
CHANGES = {
    "as it is": {},
    "no repairs": {"repair": False},
    "costs added up": {"kind": Filter},
    "no second look": {"looks": ()},
    "one second look": {"looks": (0.8,)},
    "nothing left for families": {"looks": (0.5, 1.0)},
    "in doubt within 3": {"doubt": 3},
    "in doubt within 30": {"doubt": 30},
    "half for pairs": {"pairs": 0.5},
    "80% for pairs": {"pairs": 0.8},
    "5 triples a variable": {"triples": 5},
    "16 triples a variable": {"triples": 16},
    "level 0.005": {"alpha": 0.005},
    "level 0.02": {"alpha": 0.02},
    "noise up to 0.1": {"most_noise": 0.1},
    "noise up to 0.4": {"most_noise": 0.4},
    "explained 0.1": {"explained": 0.1},
    "determined 0.01": {"determined": 0.01},
    "determined 0.1": {"determined": 0.1},
    "no least share": {"least_share": 0.0},
    "least share 0.05": {"least_share": 0.05},
}


def score(
    data,
    tables,
    epsilon,
    rng,
    *,
    kind=GaussianFilter,
    looks=LOOKS,
    pairs=PAIRS,
    triples=TRIPLES,
    repair=True,
    **rules,
) -> float:
    account = kind(Budget(epsilon, 1e-6))
    triple = (1 - pairs) / (triples * data.d)
    pairs = 1 - triple * min(triples * data.d, math.comb(data.d, 3))
    marginals = MeasuredMarginals(tables, paid(account, SeededNoise(rng)))
    marginals.measure_pairs(pairs * account.rho)
    oracle = TableOracle(marginals, price=triple * account.rho, **rules)
    found = search_again(oracle, account, data.variables, looks=looks, untested="drop")
    if repair:
        found = repaired(found, oracle.free(), max_order=2)
    return found.graph.skeleton_f1(data.truth)


def scores(number, shape, tables, seed) -> pd.DataFrame:
    """Of one network with all changes, at one size and two epsilons."""
    rng = np.random.default_rng([seed, number])
    d = round(math.exp(rng.uniform(*np.log(VARIABLES))))
    data = random_network(shape, tables, d, rng).sample(int(rng.choice(RECORDS)), rng=rng)
    about = {"shape": shape, "tables": tables, "records": data.n, "d": d}
    counted = Tables(data)
    rows = [
        {**about, "epsilon": epsilon, "change": name}
        | {"F1": score(data, counted, epsilon, np.random.default_rng(number), **change)}
        for epsilon in rng.choice(EPSILONS, 2, replace=False)
        for name, change in CHANGES.items()
    ]
    return pd.DataFrame(rows)


def main(seed: str = "2026"):
    parts = []
    for number, family in enumerate(product(SHAPES, TABLES)):
        parts.append(scores(number, *family, int(seed)))
        print(f"{number + 1} of {len(SHAPES) * len(TABLES)}", file=sys.stderr, flush=True)
    rows = pd.concat(parts)
    facts = ["shape", "tables", "records", "d", "epsilon"]
    wide = rows.pivot(index=facts, columns="change", values="F1")[list(CHANGES)]
    gained = wide.sub(wide["as it is"], axis=0)
    told = pd.DataFrame({"F1": wide.mean(), "change": gained.mean(), "error": gained.sem()})
    for fact in ("shape", "tables", "records", "epsilon"):
        told = told.join(gained.groupby(fact).mean().T.rename(columns=str))
    print(told.round(4).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
