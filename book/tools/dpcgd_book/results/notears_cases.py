"""Cases of chapter 07's sweeps, and the steps of a run of NOTEARS."""

from collections.abc import Callable
from unittest import mock

import numpy as np

import dpcgd.score.notears
from dpcgd import gram_notears, noleaks, notears
from dpcgd_book.data.mixed_networks import random_sem
from dpcgd_book.results.graph_scores import scores
from dpcgd_book.results.larger_networks import drawn

__all__ = ["modelled", "scored", "steps_of"]

SYSTEMS: dict[str, Callable] = {"NOTEARS": notears, "Gram": gram_notears, "NoLeaks": noleaks}
"""Those that run on linear models."""


def scored(algorithm: Callable, network: str, run: int, n: int, seed: int, **settings) -> dict:
    """Scores of one run on a sample that all systems share, with a filter that keeps its promise.

    Parameters
    ----------
    algorithm : callable
        A system, as ``gram_notears``; ``notears`` takes no random numbers.
    network : str
    run, n, seed : int
        Of the sample.
    **settings
        What the system takes.
    """
    data = drawn(network, run, n, seed)
    if algorithm is not notears:
        settings["rng"] = np.random.default_rng([seed, run, 1])
    release = algorithm(data, **settings)
    most = settings.get("epsilon", np.inf) * (1 + 1e-12)
    assert release.ledger.spent.epsilon <= most, "the filter's promise"
    edges = release.graph.skeleton
    true = {frozenset(arc) for arc in data.truth.edges}  # type: ignore[union-attr]
    result = {"F1": release.graph.skeleton_f1(data.truth)}
    result["arrowhead_F1"] = release.graph.arrowhead_f1(data.truth)
    result |= {"edges": len(edges), "right": len(edges & true)}
    return result | {"true": len(true), "wrong": len(edges ^ true)}


def modelled(system: str, budget: str, d: int, arcs: int, run: int, n: int, seed: int) -> dict:
    """Scores of one run on a linear model in original units; a budget is an epsilon or "none"."""
    rng = np.random.default_rng([seed, 30, d, arcs, run])
    data = random_sem(d, arcs * d, rng=rng).sample(n, rng=rng)
    private = {} if budget == "none" else {"epsilon": float(budget), "rng": rng}
    graph = SYSTEMS[system](data, standardized=False, threshold=0.3, **private).graph
    own = scores(graph, data.truth)
    return {"skeleton_F1": own["F1"], "arrowhead_F1": own["arrowhead F1"], "SHD": own["SHD"]}


def steps_of(run: Callable) -> tuple:
    """What a run of NOTEARS or NoLeaks returns, and the weights after each of its steps."""
    steps, real = [], dpcgd.score.notears.least_from

    def watched(*given, **more):
        steps.append(real(*given, **more))
        return steps[-1]

    with mock.patch.object(dpcgd.score.notears, "least_from", watched):
        return run(), steps
