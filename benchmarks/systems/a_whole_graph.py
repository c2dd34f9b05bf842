"""Gradient descent over graphs: chapter 07."""

import functools

from benchmarks.graph_cases import System
from dpcgd.score.noleaks import noleaks
from dpcgd.score.notears import gram_notears
from dpcgd.score.schedules import multiplicative

SCHEDULED = functools.partial(noleaks, schedule=multiplicative)

SYSTEMS = [
    System("NoLeaks", "noisy gradients", "proved", noleaks),
    System("CURATE-NOTEARS", "noisy gradients", "proved", SCHEDULED),
    System("Gram-NOTEARS", "one release", "proved", gram_notears),
]
