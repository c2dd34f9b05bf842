"""Hill climbing over DAGs, with a score that needs only released pairs."""

from itertools import permutations

import networkx as nx

from dpcgd.datasets.arguments import check_whole
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.reading.pair_features import dependence
from dpcgd.reading.pair_score import PairScore
from dpcgd.reading.release import MarginalRelease, check_moments

__all__ = ["climb"]

TIE = 1e-4
"""Gains that differ by less, in nats, count as equal. An arc often scores the same in both
directions; the last digit must not choose one, nor turn the arc again and again."""


def climb(release: MarginalRelease, *, most_parents: int = 4) -> CPDAG:
    """Add, remove and turn arcs one by one, each time with the largest gain, until none gains.

    Arcs are added only between variables that depend on each other with a probability of one half
    or more, by their own pair: to the score noise looks like dependence, where levels are rare.

    Parameters
    ----------
    release : MarginalRelease
    most_parents : int

    Returns
    -------
    CPDAG
        CPDAG of the DAG that was reached.

    Raises
    ------
    ValueError
        If the release holds no moments.

    Privacy
    -------
    Post-processing of the release. Chapter 14, :prf:ref:`thm-table-pc`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd import load
    >>> from dpcgd.tables.table_pc import table_pc
    >>> data = load("cancer", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> climb(release).skeleton_f1(data.truth)
    1.0
    """
    check_whole("most_parents", most_parents, 0)
    marginals, variables = check_moments(release).marginals, release.graph.variables
    score, dag, depend = PairScore(marginals), nx.DiGraph(), dependence(marginals) >= 1 / 2
    dag.add_nodes_from(range(len(variables)))
    while step := _best_step(score, dag, depend, most_parents):
        arc, new = step
        dag.remove_edges_from([arc])
        dag.add_edges_from(new)
    return CPDAG.from_dag(nx.relabel_nodes(dag, dict(enumerate(variables))))


def _best_step(score, dag, depend, most_parents) -> tuple | None:
    """(arc to remove, arcs to add) of the legal step with the largest gain; of equals the last."""
    best: list[tuple] = []
    for gain, arc, new in sorted(_steps(score, dag, depend), reverse=True):
        if gain < (best[0][0] - TIE if best else TIE):
            break
        changed = dag.copy()
        changed.remove_edges_from([arc])
        changed.add_edges_from(new)
        few = all(changed.in_degree(b) <= most_parents for _, b in new)
        if few and nx.is_directed_acyclic_graph(changed):
            best.append((gain, arc, new))
    return max((step[1:] for step in best), default=None)


def _steps(score, dag, depend) -> list[tuple]:
    """(gain, arc to remove, arcs to add) of all steps, legal or not."""
    parents = {v: frozenset(dag.predecessors(v)) for v in dag}
    steps = []
    for a, b in permutations(dag, 2):
        if a in parents[b]:
            less = score.family(b, parents[b] - {a}) - score.family(b, parents[b])
            turned = score.family(a, parents[a] | {b}) - score.family(a, parents[a])
            steps += [(less, (a, b), ()), (less + turned, (a, b), ((b, a),))]
        elif depend[a, b] and b not in parents[a]:
            more = score.family(b, parents[b] | {a}) - score.family(b, parents[b])
            steps.append((more, (a, b), ((a, b),)))
    return steps
