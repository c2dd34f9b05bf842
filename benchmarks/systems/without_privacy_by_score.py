"""Without privacy, by a score: greedy equivalence search, and searches over orders.

GES runs in an environment of its own, by benchmarks/yardsticks.py. BOSS and GRaSP are those of
causal-learn; only their score is ours, which counts a table once instead of at each question.
"""

import random

from benchmarks.discrete_scores import DiscreteBDeu
from benchmarks.graph_cases import System
from dpcgd.graphs.cpdag import CPDAG


def by_order(module, search, data, rng):
    """The graph that a search over orders ends at, with BDeu."""
    score = DiscreteBDeu(data.codes, data.cardinalities)
    module.local_score_BDeu = lambda codes, x, parents, settings: score.local_score(x, parents)
    random.seed(int(rng.integers(1 << 32)))  # its own order of questions
    graph = search(data.codes, "local_score_BDeu", verbose=False)
    return CPDAG.from_amat(graph.graph, data.variables, "causal-learn")


def boss(data, *, epsilon, delta, rng):
    from causallearn.search.PermutationBased import BOSS

    return by_order(BOSS, BOSS.boss, data, rng)


def grasp(data, *, epsilon, delta, rng):
    from causallearn.search.PermutationBased import GRaSP

    return by_order(GRaSP, GRaSP.grasp, data, rng)


SYSTEMS = [
    System("GES", "without privacy", "none", yardstick="GES, BIC"),
    System("BOSS", "without privacy", "none", boss),
    System("GRaSP", "without privacy", "none", grasp),
]
