"""What there is without privacy, and a coin."""

from dpcgd_book.systems.direction_scores import reci

from benchmarks.pair_cases import PairSystem
from dpcgd.pairwise.anm import anm


def hsic(pair, *, epsilon, delta, rng):
    return anm(pair, rng=rng)


def regression_error(pair, *, epsilon, delta, rng):
    return pair.variables if reci(*pair.scaled.T) > 0 else pair.variables[::-1]


def coin(pair, *, epsilon, delta, rng):
    return tuple(rng.permutation(pair.variables).tolist())


SYSTEMS = [
    PairSystem("HSIC", "without privacy", "none", hsic, protects="nobody"),
    PairSystem("RECI", "without privacy", "none", regression_error, protects="nobody"),
    PairSystem("coin", "no look", "none", coin),
]
