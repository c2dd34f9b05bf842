"""How much of a released graph would have come out again under other noise."""

from collections import Counter

import numpy as np

from dpcgd.datasets.arguments import check_whole
from dpcgd.moments.interactions import Marginals, Moment
from dpcgd.reading.release import MarginalRelease
from dpcgd.tables.table_pc import MOST_NOISE, TableOracle, search_tables

__all__ = ["edge_confidence"]


def edge_confidence(
    release: MarginalRelease, *, runs: int = 100, rng: np.random.Generator
) -> dict[frozenset[str], float]:
    """How often each pair stays joined when the known noise is drawn anew on what was released.

    Parameters
    ----------
    release : MarginalRelease
        Of :func:`~dpcgd.tables.table_pc.table_pc`.
    runs : int
        At least 1.
    rng : numpy.random.Generator

    Returns
    -------
    dict
        From each pair that is joined in the release, or in one of the runs, to its share of runs.

    Raises
    ------
    ValueError
        If there is to be no run.

    Privacy
    -------
    Post-processing of the release: no data, no budget. Chapter 14, :prf:ref:`thm-table-pc`.

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
    >>> confidence = edge_confidence(release, runs=20, rng=np.random.default_rng(2))
    >>> confidence[frozenset("AE")]
    1.0
    """
    check_whole("runs", runs, 1)
    settings, names = dict(release.terms.settings), tuple(release.levels)
    rules = {name: settings.pop(name) for name in ("alpha", "least_effect", "least_share")}
    rules["joined"] = [names.index(name) for name in release.joined_levels]
    rules["most_noise"] = MOST_NOISE * np.sqrt(2)  # no more questions are refused
    count: Counter[frozenset[str]] = Counter()
    for _ in range(runs):
        oracle = TableOracle(redrawn(release.marginals, rng), **rules)
        count.update(search_tables(oracle, names, **settings).graph.skeleton)
    return {pair: count[pair] / runs for pair in release.graph.skeleton | set(count)}


def redrawn(marginals: Marginals, rng: np.random.Generator) -> Marginals:
    """Moments with fresh noise of the same deviations on top, and deviations to match.

    Parameters
    ----------
    marginals : Marginals
    rng : numpy.random.Generator

    Privacy
    -------
    Post-processing.
    """
    fresh = {}
    for subset, (values, deviation) in marginals.released.items():
        noisy = values + deviation * rng.standard_normal(values.shape)
        fresh[subset] = Moment(noisy, deviation * np.sqrt(2))
    return Marginals(marginals.n, marginals.levels, fresh)
