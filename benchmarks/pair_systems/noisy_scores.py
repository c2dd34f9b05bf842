"""Additive noise models with noise on their scores: chapters 08 and 09."""

import functools

from benchmarks.pair_cases import PairSystem
from dpcgd.pairwise.anm import private_anm
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman

FAMILY = "noisy scores"


def of_test_half(score):
    run = functools.partial(private_anm, protects="test set", score=score)
    return PairSystem(f"{score.name}-test-half", FAMILY, "proved", run, protects="test half")


SYSTEMS = [
    PairSystem("HSIC-everyone", FAMILY, "proved", functools.partial(private_anm, score=Hsic())),
    *map(of_test_half, (Hsic(), Spearman(), Kendall(), Iqr())),
]
