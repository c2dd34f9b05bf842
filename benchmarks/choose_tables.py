"""How table_pc's settings were chosen: on random networks, none of which is in the book.

python benchmarks/choose_tables.py

Scores one change at a time at epsilon = 1, 0.3 and 0.1 (delta = 1e-6, n = 100,000) on 40 networks
of 5 to 30 variables. One setting serves all; the optimum is flat.
"""

import math

import numpy as np

from dpcgd import Budget, Network
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.marginals.interactions import MeasuredMarginals, paid
from dpcgd.marginals.table_pc import LOOKS, PAIRS, TRIPLES, TableOracle, search_again
from dpcgd.privacy.filters import Filter, GaussianFilter
from dpcgd.privacy.noise import SeededNoise

RECORDS = 100_000
NETWORKS = 40
EPSILONS = (1.0, 0.3, 0.1)
CHANGES = {
    "as it is": {},
    "costs added up": {"kind": Filter},
    "no second look": {"looks": ()},
    "one second look": {"looks": (0.8,)},
    "three second looks": {"looks": (0.27, 0.4, 0.8)},
    "nothing left for families": {"looks": (0.5, 1.0)},
    "in doubt within 3": {"doubt": 3},
    "in doubt within 30": {"doubt": 30},
    "half for pairs": {"pairs": 0.5},
    "70% for pairs": {"pairs": 0.7},
    "5 triples a variable": {"triples": 5},
    "16 triples a variable": {"triples": 16},
    "level 0.005": {"alpha": 0.005},
    "level 0.02": {"alpha": 0.02},
    "explained 0.1": {"explained": 0.1},
    "determined 0.01": {"determined": 0.01},
    "determined 0.1": {"determined": 0.1},
    "no least share": {"least_share": 0.0},
    "least share 0.05": {"least_share": 0.05},
}


def random_network(d, rng) -> Network:
    """Up to three parents a variable, two to five levels, rows from strong to weak dependence."""
    names = [f"v{i}" for i in range(d)]
    levels = {v: tuple("abcde"[: rng.choice([2, 2, 2, 3, 3, 4, 5])]) for v in names}
    order = rng.permutation(names)
    parents = {v: [] for v in names}
    for _ in range(round(d * rng.uniform(0.9, 1.6))):
        i, j = np.sort(rng.choice(d, 2, replace=False))
        if order[i] not in parents[order[j]] and len(parents[order[j]]) < 3:
            parents[order[j]].append(order[i])
    tables = {
        v: rng.dirichlet(
            np.full(len(levels[v]), rng.choice([0.3, 0.6, 1.0])),
            size=[len(levels[parent]) for parent in parents[v]] or None,
        )
        for v in names
    }
    return Network("random", levels, {v: tuple(of) for v, of in parents.items()}, tables)


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
    **rules,
) -> float:
    account = kind(Budget(epsilon, 1e-6))
    triple = (1 - pairs) / (triples * data.d)
    pairs = 1 - triple * min(triples * data.d, math.comb(data.d, 3))
    marginals = MeasuredMarginals(tables, paid(account, SeededNoise(rng)))
    marginals.measure_pairs(pairs * account.rho)
    oracle = TableOracle(marginals, price=triple * account.rho, **rules)
    found = search_again(oracle, account, data.variables, looks=looks)
    return found.graph.skeleton_f1(data.truth)


def main():
    rng = np.random.default_rng(2026)
    networks = [random_network(rng.integers(5, 31), rng) for _ in range(NETWORKS)]
    samples = [network.sample(RECORDS, rng=rng) for network in networks]
    prepared = [(data, Tables(data)) for data in samples]
    print(f"{'':28}" + "".join(f"{e:8g}" for e in EPSILONS) + "   change, one error")
    usual = None
    for name, change in CHANGES.items():
        scores = np.array(
            [
                [
                    np.mean([score(*pair, e, np.random.default_rng(s), **change) for s in range(2)])
                    for e in EPSILONS
                ]
                for pair in prepared
            ]
        )
        usual = scores if usual is None else usual
        gained = (scores - usual).mean(axis=1)
        shown = "".join(f"{value:8.3f}" for value in scores.mean(axis=0))
        error = gained.std() / math.sqrt(len(gained))
        print(f"{name:28}{shown}   {gained.mean():+.4f} {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
