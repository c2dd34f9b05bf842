"""How Priv-PC's settings were chosen: on networks that are not in the book.

python benchmarks/choose_settings.py

Scores settings at (1, 1e-6), n = 100,000, on 72 random networks of 5 to 20 variables and on
insurance, water, hailfinder and hepar2 from pgmpy's wheel. One setting serves all; the optimum is
flat.
"""

import itertools
import math

import numpy as np
from dpcgd_book.results.larger_networks import packaged

from dpcgd import Budget, Network
from dpcgd.constraint.priv_pc import Round, SieveOracle
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.rank_statistics import KendallZ

RECORDS = 100_000
LARGER = ("insurance", "water", "hailfinder", "hepar2")
SIZES = (5, 6, 8, 11, 15, 20) * 12


def random_network(d, rng) -> Network:
    """Up to two parents a variable, two or three levels, rows from strong to weak dependence."""
    names = [f"v{i}" for i in range(d)]
    levels = {name: tuple("abc"[: rng.integers(2, 4)]) for name in names}
    order, parents, tables = rng.permutation(names), {}, {}
    for i, name in enumerate(order):
        some = rng.choice(order[:i], rng.integers(0, min(i, 2) + 1), replace=False).tolist()
        shape = [len(levels[parent]) for parent in some]
        spread = rng.choice([1, 4, 12]) if some else 2
        parents[name] = tuple(some)
        tables[name] = rng.dirichlet(spread * np.ones(len(levels[name])), size=shape or None)
    return Network("random", levels, parents, tables)


def sieve_oracle(tables, account, price, rng, margin=1.0) -> SieveOracle:
    """Priv-PC's oracle at a price of its own."""
    rules = {"margin": margin, "tweak": 0.0, "rate": 1.0}
    noise = SeededNoise(rng)
    return SieveOracle(tables, KendallZ(), price=price, account=account, noise=noise, **rules)


def score(data, tables, seed, *, share, ratio, margin) -> float:
    account = Filter(Budget(1.0, 1e-6))
    pairs = math.comb(data.d, 2)

    def price(separated):
        rho = account.remaining / (share * (pairs - separated) + 1)
        examination = math.sqrt(2 * rho / (1 + ratio**2))
        return Round(ratio * examination, examination)

    oracle = sieve_oracle(tables, account, price, np.random.default_rng(seed), margin)
    return search(oracle, data.variables).graph.skeleton_f1(data.truth)


def main():
    rng = np.random.default_rng(99)
    networks = [packaged(name) for name in LARGER] + [random_network(d, rng) for d in SIZES]
    samples = [network.sample(RECORDS, rng=rng) for network in networks]
    prepared = [(data, Tables(data)) for data in samples]
    print("share  ratio  margin   mean skeleton F1")
    for share, ratio, margin in itertools.product(
        (1.3, 2.0, 3.0), (0.5, 1.0, 2.0), (0.25, 0.5, 1.0)
    ):
        settings = {"share": share, "ratio": ratio, "margin": margin}
        scores = [score(*pair, seed, **settings) for pair in prepared for seed in range(3)]
        print(f"{share:5}  {ratio:5}  {margin:6}   {np.mean(scores):.3f}", flush=True)


if __name__ == "__main__":
    main()
