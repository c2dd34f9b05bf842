"""How much of a released graph would have come out again under other noise."""

import math
from collections import Counter
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_whole
from dpcgd.tables.dag_posterior import PosteriorRelease
from dpcgd.tables.learned_pc import LearnedRelease
from dpcgd.tables.table_pc import (
    MOST_NOISE,
    TableOracle,
    TableRelease,
    check_tables,
    search_tables,
)

__all__ = ["edge_confidence"]


def edge_confidence(
    release: TableRelease | LearnedRelease | PosteriorRelease,
    *,
    runs: int = 100,
    rng: np.random.Generator,
) -> dict[frozenset[str], float]:
    """How often each pair stays joined when the known noise is drawn anew on what was released.

    Parameters
    ----------
    release : TableRelease, LearnedRelease or PosteriorRelease
        The last two carry probabilities of edges, and these are the answer; nothing is drawn.
    runs : int
        At least 1.
    rng : numpy.random.Generator

    Returns
    -------
    dict
        From each pair that is joined in the release, or in one of the runs, to its share of runs;
        or from each pair that is joined in the release to its released probability.

    Raises
    ------
    ValueError
        If the release holds neither tables nor probabilities, or there is to be no run.

    Privacy
    -------
    Post-processing of the release: no data, no budget. Chapter 16, :prf:ref:`thm-table-pc`.

    Notes
    -----
    A parametric bootstrap around the released moments. They then carry their noise twice, and the
    tests are told so; an edge that survives has something to spare.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.tables.table_pc import table_pc
    >>> data = load("survey", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> found = edge_confidence(release, runs=20, rng=np.random.default_rng(2))
    >>> found[frozenset("AE")]
    1.0
    """
    check_whole("runs", runs, 1)
    if isinstance(release, LearnedRelease | PosteriorRelease):
        return {pair: release.probabilities[pair] for pair in release.graph.skeleton}
    check_tables(release)
    names = release.graph.variables
    count: Counter[frozenset[str]] = Counter()
    settings = release.search_settings
    how: dict[str, Any] = {"most_noise": MOST_NOISE * math.sqrt(2)}  # no more questions refused
    how |= {"least_effect": release.least_effect, "least_share": release.least_share}
    how |= {"joined": release.joined_variables}
    for _ in range(runs):
        told = release.marginals.redrawn(rng)
        oracle = TableOracle(told, release.alpha, **how)
        again = search_tables(oracle, names, **settings)
        count.update(again.graph.skeleton)
    return {pair: count[pair] / runs for pair in release.graph.skeleton | set(count)}
