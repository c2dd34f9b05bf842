"""Pairs of small simulated tables, released without noise; and the same tables told differently."""

import numpy as np

from dpcgd import Dataset
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import random_network
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, exactly


def sample(d, n=5000, seed=0, shape="dense", tables="mixed") -> Dataset:
    rng = np.random.default_rng(seed)
    return random_network(shape, tables, d, rng).sample(n, rng=rng)


def marginals_of(data, triples=(), measure=exactly) -> Marginals:
    marginals = MeasuredMarginals(Tables(data), measure)
    marginals.measure_pairs(1.0)
    for triple in triples:
        marginals.measure(triple, 1.0)
    return marginals.without_data()


def with_a_constant(data) -> Dataset:
    """The first variable always has its first level."""
    codes = data.codes.copy()
    codes[:, 0] = 0
    return Dataset(codes, data.levels)


def turned(data) -> Dataset:
    """Variables in another order, levels backwards."""
    names = list(data.variables)
    order = np.random.default_rng(3).permutation(len(names))
    codes = np.column_stack([len(data.levels[names[j]]) - 1 - data.codes[:, j] for j in order])
    return Dataset(codes, {names[j]: data.levels[names[j]][::-1] for j in order})
