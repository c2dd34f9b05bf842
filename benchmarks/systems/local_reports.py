"""Everybody reports with noise; PC reads the reports with a test that knows the channel.

The guarantee is local, epsilon for a whole record, with delta = 0: chapter 10.
"""

import functools

from benchmarks.graph_cases import System
from dpcgd.graphs.pc_search import search
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import Geometric
from dpcgd.local.moments import CorrelationOracle
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report

LEVEL = 0.01


def corrected_pc(data, *, epsilon, delta, rng, mechanism):
    """PC on reports of this exact level of local privacy; delta is not used."""
    made = mechanism(data.cardinalities, epsilon)
    told = report(data, made, rng=rng)
    oracle = CorrelationOracle(made.moments(told.codes), LEVEL)
    return search(oracle, data.variables, max_order=3).graph


def system(name, mechanism):
    run = functools.partial(corrected_pc, mechanism=mechanism)
    return System(name, "local reports", "proved", run, trust="local")


SYSTEMS = [
    system("k-RR-reports", functools.partial(ComponentWise.from_epsilon, RandomizedResponse)),
    system("k-RR-whole-records", RandomizedResponse.from_epsilon),
    system("geometric-reports", functools.partial(ComponentWise.from_epsilon, Geometric)),
]
