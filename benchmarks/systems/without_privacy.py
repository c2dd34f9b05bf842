"""What there is without privacy, and what needs no look at the data."""

import numpy as np

from benchmarks.graph_cases import System
from dpcgd.constraint.laplace_pc import pc
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.score.notears import notears
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared, ChiSquared


def plain_pc(data, *, epsilon, delta, rng):
    return pc(data, statistic=ChiSquared(0.01), max_order=3)


def adjusted_pc(data, *, epsilon, delta, rng):
    return pc(data, statistic=AdjustedChiSquared(0.01), max_order=3)


def plain_notears(data, *, epsilon, delta, rng):
    return notears(data)


def complete(data, *, epsilon, delta, rng):
    return CPDAG(data.variables, ~np.eye(data.d, dtype=bool))


def empty(data, *, epsilon, delta, rng):
    return CPDAG(data.variables, np.zeros((data.d, data.d), bool))


SYSTEMS = [
    System("PC", "without privacy", "none", plain_pc),
    System("PC-adjusted", "without privacy", "none", adjusted_pc),
    System("NOTEARS", "without privacy", "none", plain_notears),
    System("hill-climbing", "without privacy", "none", yardstick="hill climbing, BIC"),
    System("complete", "no look", "proved", complete),
    System("empty", "no look", "proved", empty),
]
