"""Everybody reports both variables with noise; the reports are judged: chapters 10 and 24.

The guarantee is local, epsilon for a whole record, with delta = 0. Judged are the reports as they
are, as in the paper, or records drawn from the joint distribution that explains the reports best.
"""

import functools

import numpy as np
from dpcgd_book.attacks.reconstruction import reconstruct
from dpcgd_book.systems.direction_scores import reci

from benchmarks.pair_cases import PairSystem
from dpcgd.datasets.dataset import Dataset
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import Geometric
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report
from dpcgd.pairwise.anm import anm

BINS, DRAWN, UPDATES = 8, 1000, 1000


def as_they_are(told, mechanism, rng):
    if np.ptp(told.codes, axis=0).min() == 0:
        return None
    score = reci(*told.codes.T)
    return (told.variables if score > 0 else told.variables[::-1]) if score else None


def reconstructed(told, mechanism, rng):
    joint = reconstruct(told.codes, mechanism, most=UPDATES).joint
    cells = rng.choice(joint.size, DRAWN, p=joint.ravel())
    places = np.column_stack(np.unravel_index(cells, joint.shape)) + rng.random((DRAWN, 2))
    drawn = Dataset.of_numbers(places, dict.fromkeys(told.variables, (0.0, BINS)))
    return anm(drawn, rng=rng).direction


def run(pair, *, epsilon, delta, rng, kind, judge):
    codes = pair.binned(BINS)
    mechanism = ComponentWise.from_epsilon(kind, codes.cardinalities, epsilon)
    found = judge(report(codes, mechanism, rng=rng), mechanism, rng)
    return found and tuple(found)


def system(name, kind, judge):
    of = functools.partial(run, kind=kind, judge=judge)
    return PairSystem(name, "local reports", "proved", of, trust="local")


SYSTEMS = [
    system("k-RR-RECI", RandomizedResponse, as_they_are),
    system("geometric-RECI", Geometric, as_they_are),
    system("k-RR-HSIC", RandomizedResponse, reconstructed),
    system("geometric-HSIC", Geometric, reconstructed),
]
