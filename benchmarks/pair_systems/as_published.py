"""The private scores as published: half of the records protected, epsilon for each of two scores.

The rank scores have a sign there, and the constants are the printed ones: chapters 08 and 23.
"""

import functools
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.pair_cases import PairSystem
from dpcgd.pairwise.anm import private_anm
from dpcgd.pairwise.dependence_scores import Hsic, Kendall, Spearman

TWO_SCORES = 2


@dataclass(frozen=True)
class PublishedHsic(Hsic):
    def sensitivity(self, m):
        return (12 * m - 11) / (m - 1) ** 2


@dataclass(frozen=True)
class PublishedSpearman(Spearman):
    def value(self, x, residual):
        return float(np.sign(stats.spearmanr(x, residual).statistic)) * super().value(x, residual)

    def sensitivity(self, m):
        return 30 / m


@dataclass(frozen=True)
class PublishedKendall(Kendall):
    def value(self, x, residual):
        return float(np.sign(stats.kendalltau(x, residual).statistic)) * super().value(x, residual)


def run(pair, *, epsilon, delta, rng, score):
    whole = {"epsilon": TWO_SCORES * epsilon, "delta": delta, "protects": "test set"}
    return private_anm(pair, **whole, score=score, rng=rng)


def system(score, really):
    claimed = "claimed, not proved", functools.partial(run, score=score)
    how = {"protects": "test half", "really": f"{really} epsilon, of the test half"}
    return PairSystem(f"published-{score.name}", "as published", *claimed, **how)


SYSTEMS = [
    system(PublishedHsic(), "a third of"),
    system(PublishedSpearman(), "two fifths of"),
    system(PublishedKendall(), "twice the"),
]
