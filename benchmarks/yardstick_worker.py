"""What yardsticks.py runs in .venv/yardsticks: other people's learners, and synthetic records.

Reads one job a line and answers in one line, for what mbi compiles serves the jobs that follow.
"""

import importlib
import json
import sys
import time
import warnings

import numpy as np
from discrete_scores import DiscreteBIC
from ges_steps import ForwardSteps, short_paths
from peers import gum_learner
from synthetic_records import SYNTHESIZERS, PaidRecords


def hill_climbing(codes, levels):
    """Arcs that greedy hill climbing with BIC ends at; one thread."""
    learner, number = gum_learner(codes, levels)
    learner.useGreedyHillClimbing().useScoreBIC().useNoPrior()
    return [(number(a), number(b)) for a, b in learner.learnDAG().arcs()]


def causal_learn_pc(codes, levels):
    """Arcs of PC with chi-squared at .01 and sets of at most three; both ways if undirected."""
    from causallearn.search.ConstraintBased.PC import pc

    data = codes.astype(np.int64, order="C")
    ends = pc(data, 0.01, "chisq", stable=True, max_k=3, show_progress=False).G.graph
    tails = ends == -1
    # heads at both ends tell no direction
    return np.argwhere(tails | ((ends != 0) & ~tails & ~tails.T)).tolist()


def equivalence_search(codes, levels):
    """Arcs of greedy equivalence search with BIC; both ways if undirected."""
    import ges

    def inserts(x, y, graph, score):
        ges.utils.semi_directed_paths = lambda *_: []
        found = ges.main.score_valid_insert_operators(x, y, graph, score)
        ges.utils.semi_directed_paths = short_paths
        return found

    ges.main.forward_step = ForwardSteps(inserts, ges.main.insert)
    return np.argwhere(ges.fit(DiscreteBIC(codes, levels))[0]).tolist()


LEARNERS = {
    "GES, BIC": equivalence_search,
    "hill climbing, BIC": hill_climbing,
    "causal-learn's PC": causal_learn_pc,
}


def answer(job) -> dict:
    """Arcs of a learner, or the name of the file that holds a synthesizer's records."""
    with np.load(job["records"]) as data:
        codes, levels = data["codes"], data["levels"]
    started = time.perf_counter()
    if (name := job["system"]) in LEARNERS:
        found = {"arcs": LEARNERS[name](codes, levels)}
    else:
        importlib.import_module("mbi")  # jax draws from numpy's own generator when it is imported
        np.random.seed(job["noise"])  # mbi draws from it  # noqa: NPY002
        records = PaidRecords(codes, levels, job["rho"], np.random.default_rng(job["noise"]))
        np.savez(job["synthetic"], codes=SYNTHESIZERS[name](records, **job["settings"]))
        found = {"spent": records.spent}
    return found | {"seconds": time.perf_counter() - started}


def main():
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # packages print
    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except TimeoutError as error:
            found = {"error": str(error)}
        print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()
