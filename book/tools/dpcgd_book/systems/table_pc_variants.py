"""Variants of table_pc, each with one of its ideas changed or left out: what is an idea worth?"""

import math
from itertools import combinations, compress
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.stats import chi2, false_discovery_control

from dpcgd import CPDAG, Budget, Dataset
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import MeasuredMarginals, Moment, paid
from dpcgd.privacy import filters, noise
from dpcgd.reading.repairs import repaired
from dpcgd.tables.table_pc import LOOKS, TRIPLES, TableOracle, search_again, shares

__all__ = ["MORE_VARIANTS", "VARIANTS", "run_variant"]


def _singles_and_pairs(d):
    return [*combinations(range(d), 1), *combinations(range(d), 2)]


class _OneByOne(MeasuredMarginals):
    """Pairs with the noise that their tables one by one would need."""

    def measure_pairs(self, rho):
        d = len(self.levels)
        self._release(_singles_and_pairs(d), math.sqrt(d * (d - 1)), rho)


class _Projected(MeasuredMarginals):
    """The joint matrix of second moments made positive semidefinite."""

    def measure_pairs(self, rho):
        super().measure_pairs(rho)
        blocks, variables = blocks_of(self), range(len(self.levels))
        mean = np.concatenate([self.moment(v).values for v in variables])[None]
        second = np.block([[np.eye(1), mean], [mean.T, blocks.covariances + mean.T * mean]])
        values, vectors = np.linalg.eigh(second)
        second = ((vectors * np.maximum(values, 0)) @ vectors.T)[1:, 1:]
        for v, w in combinations(variables, 2):
            part = second[blocks.rows[v], blocks.rows[w]]
            self.released[v, w] = self.released[v, w]._replace(values=part)
        self._known.clear()  # what followed from the pairs as they were


class _Weighted(MeasuredMarginals):
    """Pairs in proportion to the root of their variables' levels."""

    def measure_pairs(self, rho):
        levels = np.array(self.levels)
        subsets, weights = _singles_and_pairs(len(levels)), levels / levels.min()
        scales = [math.sqrt(math.prod(weights[list(s)])) for s in subsets]
        flat = np.repeat(scales, [math.prod(levels[list(s)] - 1) for s in subsets])
        moves = 1 + weights @ (1 - 1 / levels)
        answer = self._measure(lambda: flat * self.exact(subsets), sensitivity=moves, rho=rho)
        self._keep(subsets, answer[0] / flat, answer[1])
        for subset, scale in zip(subsets, scales, strict=True):
            mean, noise = self.released[subset]
            self.released[subset] = Moment(mean, noise / scale)


class _BoughtTables(TableOracle):
    """Buys the triple of a question of order 1, and tests it cell by cell."""

    def separates(self, x, y, given):
        triple = tuple(sorted((x, y, *given)))
        if len(given) != 1 or not self._has(triple):
            return super().separates(x, y, given)
        return _cell_by_cell(self.marginals, x, y, *given) > self.alpha


def _cell_by_cell(marginals, x, y, z) -> float:
    """The p-value of a triple's cells, weighed by sampling plus privacy variance."""
    table = marginals.n * marginals.table(x, y, z)
    sigma = marginals.n * marginals.moment(x, y, z).deviation
    of_x, of_y, sizes = (table.sum(axis=axis, keepdims=True) for axis in (1, 0, (0, 1)))
    fit = of_x * of_y / sizes
    weighed = ((table - fit) ** 2 / (fit + sigma**2)).sum()
    freedom = math.prod(marginals.levels[v] - 1 for v in (x, y)) * sizes.size
    return chi2.sf(weighed, freedom)


class _PairsOnly(TableOracle):
    """Asks pairs alone at order 2."""

    def _has(self, triple):
        return False


def _all_triples(marginals, account):
    """All triples at once, instead of those that are asked for."""
    triples = [*combinations(range(len(marginals.levels)), 3)]
    each_rho = account.remaining * (1 - 1e-6) / len(triples)
    for triple in triples:
        marginals.measure(triple, each_rho)


def _few_false(result, oracle):
    """At most 5% false discoveries over all pairs, by largest p-values."""
    graph = repaired(result, oracle, max_order=2).graph
    pairs, joined = [*combinations(range(len(graph.variables)), 2)], graph.arcs | graph.arcs.T
    p_values = [oracle.largest.get(pair, 0.0) if joined[pair] else 1.0 for pair in pairs]
    arcs = np.zeros_like(graph.arcs)
    for x, y in compress(pairs, false_discovery_control(p_values) <= 0.05):
        arcs[x, y] = arcs[y, x] = True
    return SimpleNamespace(graph=CPDAG(graph.variables, arcs))


VARIANTS: dict[str, dict[str, Any]] = {
    "table_pc": {},
    "one look": {"looks": ()},
    "costs added up": {"filter": filters.Filter},
    "tables one by one": {"kind": _OneByOne},
    "order 1 from bought triples": {"oracle": _BoughtTables},
    "no rule for determined": {"rules": {"determined": 0.0}},
    "no limit by noise": {"rules": {"most_noise": math.inf}},
    "order 2 from pairs": {"oracle": _PairsOnly},
    "40% for pairs": {"pairs": 0.4},
    "80% for pairs": {"pairs": 0.8},
    "all triples at once": {"then": _all_triples},
    "positive semidefinite": {"kind": _Projected},
    "all of it undone": {
        **{"looks": (), "filter": filters.Filter, "kind": _OneByOne, "oracle": _BoughtTables},
        "rules": {"determined": 0.0, "most_noise": math.inf},
    },
}
"""The variants by name, and what each changes."""

MORE_VARIANTS: dict[str, dict[str, Any]] = {
    "no repairs": {"repairs": lambda result, oracle: result},
    "5% false discoveries": {"repairs": _few_false},
    "weighted by levels": {"kind": _Weighted},
}
"""Variants that are tried on random and on larger networks alone."""

AS_IT_IS = {
    **{"kind": MeasuredMarginals, "oracle": TableOracle, "looks": LOOKS, "rules": {}},
    **{"filter": filters.GaussianFilter, "pairs": None, "then": lambda marginals, account: None},
    "repairs": lambda result, oracle: repaired(result, oracle, max_order=2),
}
"""What table_pc does where a variant changes nothing."""


def run_variant(data: Dataset, variant: str, epsilon: float, delta: float, rng: Generator) -> float:
    """Skeleton F1 of the graph that a variant of table_pc finds.

    Examples
    --------
    >>> from dpcgd import load
    >>> rng = np.random.default_rng(0)
    >>> run_variant(load("cancer", n=100_000, rng=rng), "one look", 1.0, 1e-6, rng)
    1.0
    """
    own = SimpleNamespace(**AS_IT_IS | (VARIANTS | MORE_VARIANTS)[variant])
    pairs, triple = shares(data.d)
    if own.pairs:
        pairs, triple = own.pairs, (1 - own.pairs) / (TRIPLES * data.d)
    account = own.filter(Budget(epsilon, delta))
    marginals = own.kind(Tables(data), paid(account, noise.SeededNoise(rng)))
    marginals.measure_pairs(pairs * account.rho)
    own.then(marginals, account)
    oracle = own.oracle(marginals, price=triple * account.rho, **own.rules)
    result = search_again(oracle, account, data.variables, looks=own.looks, untested="drop")
    return own.repairs(result, oracle.free()).graph.skeleton_f1(data.truth)
