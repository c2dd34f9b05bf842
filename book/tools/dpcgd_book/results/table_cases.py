"""Cases of chapter 14's sweeps: one run of table_pc, of a variant, or of what reads a release."""

from collections.abc import Iterator, Set

import numpy as np

from dpcgd import Dataset, Network, climb, fit_network, from_bif, table_pc
from dpcgd.datasets.arguments import data_folder
from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd_book.results.larger_networks import drawn
from dpcgd_book.systems.edge_confidence import edge_confidence
from dpcgd_book.systems.table_pc_variants import run_variant

__all__ = ["BINS", "COUNTED", "climb_case", "confidence_case", "covered", "faint_case"]
__all__ += ["family_case", "released", "variant_case"]


def released(data: Dataset, **settings):
    """A release, or None where public facts refuse it."""
    try:
        return table_pc(data, **settings)
    except ValueError:
        return None


def _random_network(tables: str, run: int, rng: np.random.Generator) -> Network:
    """A random network of 8 to 40 variables."""
    return random_network(SHAPES[run % len(SHAPES)], tables, int(rng.integers(8, 41)), rng)


def faint_case(network, n, epsilon, delta, run, seed, **bounds) -> dict:
    """F1 and edges of table_pc with bounds on faint effects, also on "random" networks."""
    if network == "random":
        rngs = (np.random.default_rng([seed, run, stream]) for stream in (16, n))
        data = _random_network("mixed", run, next(rngs)).sample(n, rng=next(rngs))
    else:
        data = drawn(network, run, n, seed)
    rng = np.random.default_rng([seed, run, n, 1])
    release = released(data, epsilon=epsilon, delta=delta, rng=rng, **bounds)
    if release is None:
        return {"F1": None, "edges": None}
    return {"F1": release.graph.skeleton_f1(data.truth), "edges": len(release.graph.skeleton)}


def variant_case(network, variant, epsilon, run, n, delta, seed) -> dict:
    """F1 of a variant on a named network."""
    data, rng = drawn(network, run, n, seed), np.random.default_rng([seed, run, 1])
    return {"F1": run_variant(data, variant, epsilon, delta, rng)}


def family_case(family, variant, epsilon, run, n, delta, seed) -> dict:
    """F1 of a variant on a random network with tables of a kind, or on a larger network."""
    rng = np.random.default_rng([seed, run, 17])
    if family in TABLES:
        data = _random_network(family, run, rng).sample(n, rng=rng)
    else:
        data = drawn(family, run, n, seed)
    return {"F1": run_variant(data, variant, epsilon, delta, rng)}


BINS = {"to 0.2": 0.2, "to 0.5": 0.5, "to 0.8": 0.8, "below 1": 0.999, "1": 1.0}
"""The largest confidence in each bin, by the bin's name."""

COUNTED = [f"{kind} {i}" for kind in ("pairs", "true", "joined") for i in range(len(BINS))]
"""What a case counts in each bin: all pairs, those that are true, those of the release."""


def confidence_case(network, epsilon, run, n, delta, seed, **redraws) -> dict:
    """Pairs by the confidence of :func:`~dpcgd_book.systems.edge_confidence.edge_confidence`."""
    data, rng = drawn(network, run, n, seed), np.random.default_rng([seed, run, 5])
    release = released(data, epsilon=epsilon, delta=delta, rng=rng)
    confidence = edge_confidence(release, runs=redraws["again"], rng=rng) if release else {}
    joined: Set = release.graph.skeleton if release else set()
    truth = {frozenset(arc) for arc in data.truth.edges}  # type: ignore[union-attr]
    counts, ends = np.zeros((3, len(BINS)), int), list(BINS.values())
    for pair, sure in confidence.items():
        counts[:, np.searchsorted(ends, sure)] += [1, pair in truth, pair in joined]
    share = counts[1].sum() / max(1, counts[0].sum()) if release else None
    counted = dict(zip(COUNTED, counts.ravel().tolist(), strict=True))
    return counted | {"right": len(truth & joined), "share": share}


def climb_case(network, epsilon, run, n, delta, seed) -> dict:
    """F1 of table_pc, and of a score search on its release."""
    data, rng = drawn(network, run, n, seed), np.random.default_rng([seed, run, 2])
    release = released(data, epsilon=epsilon, delta=delta, rng=rng)
    if release is None:
        return {"tests": None, "score": None}
    graphs = {"tests": release.graph, "score": climb(release)}
    return {way: graph.skeleton_f1(data.truth) for way, graph in graphs.items()}


def covered(name: str, n: int, epsilon: float, delta: float, seed: int) -> Iterator[tuple]:
    """How many probabilities of each variable's table are within two standard errors.

    Yields
    ------
    kind : str
        How many parents it has, and whether the triple was released.
    inside, all : int
        Probabilities that are within two standard errors, and all.
    """
    true = from_bif(data_folder() / "networks" / f"{name}.bif")
    data, rng = drawn(name, 0, n, seed), np.random.default_rng([seed, 0, 8])
    release = released(data, epsilon=epsilon, delta=delta, rng=rng)
    if release is None:
        return
    fitted = fit_network(release, rng=rng, dag=data.truth, redraws=12)
    triples = {subset for subset in release.marginals.released if len(subset) == 3}
    for child, parents in true.parents.items():
        order = [parents.index(parent) for parent in fitted.network.parents[child]]
        truth = true.tables[child].transpose([*order, len(order)])
        off = np.abs(fitted.network.tables[child] - truth)
        family = tuple(sorted(map(data.variables.index, (child, *parents))))
        kind = f"{len(parents)}{', triple released' * (family in triples)}"
        yield kind, int((off < 2 * fitted.errors[child]).sum()), truth.size
