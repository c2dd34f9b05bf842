"""How much of a released graph would have come out again under other noise."""

from collections import Counter

import numpy as np

from dpcgd.graphs.knowledge import Knowledge
from dpcgd.graphs.pc_search import search
from dpcgd.marginals.table_pc import ALPHA, TableOracle, TableRelease

__all__ = ["edge_confidence"]


def edge_confidence(
    release: TableRelease,
    *,
    runs: int = 100,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    max_order: int = 2,
    knowledge: Knowledge | None = None,
) -> dict[frozenset[str], float]:
    """How often each pair stays joined when the known noise is drawn anew on what was released.

    Parameters
    ----------
    release : TableRelease
    runs : int
        At least 1.
    rng : numpy.random.Generator
    alpha, max_order, knowledge
        As in the run.

    Returns
    -------
    dict
        From each pair that is joined in the release, or in one of the runs, to its share of runs.

    Raises
    ------
    ValueError
        If there is to be no run, or alpha is no level.

    Privacy
    -------
    Post-processing of the release: no data, no budget. Chapter 11.

    Notes
    -----
    A parametric bootstrap around the released moments. They then carry their noise twice, and the
    tests are told so; an edge that survives has something to spare.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.marginals.table_pc import table_pc
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> found = edge_confidence(release, runs=20, rng=np.random.default_rng(2))
    >>> found[frozenset("AE")]
    1.0
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    names, count = release.graph.variables, Counter()
    for _ in range(runs):
        oracle = TableOracle(release.marginals.redrawn(rng), alpha)
        again = search(oracle, names, max_order=max_order, knowledge=knowledge)
        count.update(again.graph.skeleton)
    return {pair: count[pair] / runs for pair in release.graph.skeleton | set(count)}
