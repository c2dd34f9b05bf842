"""Max-min hill climbing: find each variable's neighbours by tests, then climb a score over them."""

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd_book.systems.p_value_tests import IndependenceTest
from dpcgd_book.systems.scores import GraphScore

__all__ = ["hill_climb", "max_min_neighbours", "mmhc"]

PATIENCE = 15
"""Changes without a new best graph after which climbing stops."""


TABU = 100
"""So many of the last graphs are not visited again."""


def mmhc(
    score: GraphScore, test: IndependenceTest, *, alpha: float = 0.05, max_order: int = 3
) -> CPDAG:
    """Max-min hill climbing.

    Parameters
    ----------
    score : GraphScore
    test : IndependenceTest
        On the same variables.
    alpha : float
        Level of the tests.
    max_order : int
        Largest conditioning set.

    Returns
    -------
    CPDAG
        Completed form of the best DAG.

    Raises
    ------
    ValueError
        If score and test differ in their variables, or alpha is no level.

    Notes
    -----
    Tsamardinos, Brown and Aliferis (2006).

    Examples
    --------
    >>> from dpcgd_book.systems.p_value_tests import FisherZ
    >>> from dpcgd_book.systems.scores import BIC
    >>> values = np.random.default_rng(0).normal(size=(500, 3))
    >>> values[:, 2] += values[:, 0] + values[:, 1]
    >>> score, test = BIC.from_values(values, ["a", "b", "c"]), FisherZ.from_values(values)
    >>> print(mmhc(score, test, alpha=0.01))
    a -> c
    b -> c
    """
    if test.d != len(score.variables):
        raise ValueError(
            f"the score has {len(score.variables)} variables and the test {test.d}; "
            "make both from the same data"
        )
    allowed = max_min_neighbours(test, alpha=alpha, max_order=max_order)
    arcs = hill_climb(score, allowed)
    graph = nx.DiGraph()
    graph.add_nodes_from(score.variables)
    found = np.argwhere(arcs)
    graph.add_edges_from((score.variables[a], score.variables[b]) for a, b in found)
    return CPDAG.from_dag(graph)


def max_min_neighbours(
    test: IndependenceTest, *, alpha: float = 0.05, max_order: int = 3
) -> np.ndarray:
    """Pairs of which each is among the other's parents and children, by the max-min heuristic.

    Returns
    -------
    boolean array, shape (d, d)
        Symmetric.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is a level between 0 and 1, not {alpha}")
    found = np.zeros((test.d, test.d), bool)
    for target in range(test.d):
        found[target, _neighbours(test, target, math.log(alpha), max_order)] = True
    return found & found.T


def _neighbours(test, target, log_alpha, max_order) -> list[int]:
    """Add the variable whose weakest dependence is strongest; then drop what others separate."""
    chosen: list[int] = []
    weakest = {v: test.log_p(target, v, ()) for v in range(test.d) if v != target}
    while weakest:
        strongest = min(weakest, key=weakest.__getitem__)
        if weakest.pop(strongest) > log_alpha:
            break
        for v in weakest:
            for given in _with(strongest, chosen, max_order):
                if weakest[v] > log_alpha:
                    break
                weakest[v] = max(weakest[v], test.log_p(target, v, given))
        chosen.append(strongest)
    for v in list(chosen):
        others = [u for u in chosen if u != v]
        if any(test.log_p(target, v, s) > log_alpha for s in _subsets(others, max_order)):
            chosen.remove(v)
    return chosen


def _subsets(variables, most) -> Iterator[tuple[int, ...]]:
    for size in range(min(most, len(variables)) + 1):
        yield from combinations(variables, size)


def _with(new, old, most) -> Iterator[tuple[int, ...]]:
    """The subsets that hold the new variable: the others were tried before it came."""
    if most > 0:
        yield from ((new, *given) for given in _subsets(old, most - 1))


def hill_climb(score: GraphScore, allowed: np.ndarray) -> np.ndarray:
    """Change one arc at a time, to the best graph not visited lately.

    Parameters
    ----------
    score : GraphScore
    allowed : boolean array, shape (d, d)
        ``allowed[a, b]``: the arc a -> b may be added.

    Returns
    -------
    boolean array, shape (d, d)
        The best DAG met: its arcs.

    Raises
    ------
    ValueError
        If the array does not fit the score.

    Notes
    -----
    Arcs are added, taken out and turned. The climb starts from no arc and goes on downhill for some
    steps, so as to leave small hills; it ends after 15 changes without a new best graph.

    Examples
    --------
    >>> from dpcgd_book.systems.scores import BIC
    >>> score = BIC(np.array([[1, 0.8], [0.8, 1]]), 100)
    >>> hill_climb(score, ~np.eye(2, dtype=bool)).sum()
    np.int64(1)
    """
    d = len(score.variables)
    allowed = np.asarray(allowed, bool)
    if allowed.shape != (d, d):
        raise ValueError(f"{d} variables need a {d} by {d} array of allowed arcs")
    local = cache(lambda child, parents: score.local(child, parents))

    def family(arcs, child):
        return local(child, tuple(np.flatnonzero(arcs[:, child]).tolist()))

    here, height, best, best_height = np.zeros((d, d), bool), 0.0, np.zeros((d, d), bool), 0.0
    visited, idle = [here.tobytes()], 0
    while idle < PATIENCE:
        ways: list[tuple] = []
        for changed, children in _changes(here, allowed):
            if changed.tobytes() not in visited[-TABU:]:
                gain = sum(family(changed, c) - family(here, c) for c in children)
                ways.append((gain, len(ways), changed))
        if not ways:
            break
        gain, _, here = max(ways)
        height += gain
        visited.append(here.tobytes())
        idle += 1
        if height > best_height + 1e-9:
            best, best_height, idle = here, height, 0
    return best


def _changes(arcs, allowed) -> Iterator[tuple[np.ndarray, tuple[int, ...]]]:
    """Every DAG one change away, and whose parents changed."""
    for a, b in np.argwhere(arcs):
        without = arcs.copy()
        without[a, b] = False
        yield without, (b,)
        if allowed[b, a] and not _reaches(without, a, b):
            turned = without.copy()
            turned[b, a] = True
            yield turned, (a, b)
    for a, b in np.argwhere(allowed & ~arcs & ~arcs.T):
        if a != b and not _reaches(arcs, b, a):
            added = arcs.copy()
            added[a, b] = True
            yield added, (b,)


def _reaches(arcs, start, end) -> bool:
    """Whether a directed path leads from one to the other."""
    seen, edge = {start}, [start]
    while edge:
        edge = [v for u in edge for v in np.flatnonzero(arcs[u]).tolist() if v not in seen]
        seen.update(edge)
    return end in seen
