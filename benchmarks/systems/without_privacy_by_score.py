"""Without privacy, by a score: greedy equivalence search, and searches over orders.

GES runs in an environment of its own, by benchmarks/yardsticks.py. BOSS and GRaSP are those of
causal-learn; only their score is ours, which counts a table once instead of at each question.
"""

import random
from functools import partial
from importlib import import_module

from benchmarks.discrete_scores import DiscreteBDeu
from benchmarks.graph_cases import System
from dpcgd.graphs.cpdag import CPDAG


def by_order(name, data, *, epsilon, delta, rng):
    """The graph that a search over orders ends at, with BDeu."""
    module = import_module(f"causallearn.search.PermutationBased.{name}")
    score = DiscreteBDeu(data.codes, data.cardinalities)
    module.local_score_BDeu = lambda codes, x, parents, settings: score.local_score(x, parents)
    random.seed(int(rng.integers(1 << 32)))  # its own order of questions
    graph = getattr(module, name.lower())(data.codes, "local_score_BDeu", verbose=False)
    return CPDAG.from_amat(graph.graph, data.variables, "causal-learn")


SYSTEMS = [
    System("GES", "without privacy", "none", yardstick="GES, BIC"),
    System("BOSS", "without privacy", "none", partial(by_order, "BOSS")),
    System("GRaSP", "without privacy", "none", partial(by_order, "GRaSP")),
]
