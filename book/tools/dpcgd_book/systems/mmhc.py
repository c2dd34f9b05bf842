"""Max-min hill climbing: find each variable's neighbours by tests, then climb a score over them."""

import math
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from operator import itemgetter

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.privacy.run import check_level
from dpcgd_book.systems.p_value_tests import IndependenceTest
from dpcgd_book.systems.scores import GraphScore, check_same_variables, completed

__all__ = ["hill_climb", "max_min_neighbours", "mmhc"]

PATIENCE = 15
"""Climbing stops after so many changes without a new best graph."""


TABU = 100
"""The last so many graphs are not visited again."""


def mmhc(score: GraphScore, test: IndependenceTest, *, alpha: float = 0.05) -> CPDAG:
    """Max-min hill climbing.

    Parameters
    ----------
    score : GraphScore
    test : IndependenceTest
        On the same variables.
    alpha : float
        Significance level of the tests, given up to three variables.

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
    >>> from dpcgd_book.systems.scores import BGe
    >>> values = np.random.default_rng(0).normal(size=(500, 3))
    >>> values[:, 2] += values[:, 0] + values[:, 1]
    >>> score, test = BGe.from_values(values, ["a", "b", "c"]), FisherZ.from_values(values)
    >>> print(mmhc(score, test, alpha=0.01))
    a -> c
    b -> c
    """
    check_same_variables(score, test)
    return completed(hill_climb(score, max_min_neighbours(test, alpha=alpha)), score.variables)


def max_min_neighbours(test: IndependenceTest, *, alpha: float, max_order: int = 3) -> np.ndarray:
    """Pairs of which each is among the other's parents and children, by the max-min heuristic.

    Returns
    -------
    boolean array, shape (d, d)
        Symmetric.
    """
    check_level(alpha)
    near = np.zeros((test.d, test.d), bool)
    for target in range(test.d):
        near[target, _neighbours(test, target, math.log(alpha), max_order)] = True
    return near & near.T


def _neighbours(test, target, log_alpha, max_order) -> list[int]:
    """Add the variable whose weakest dependence is strongest; then drop what others separate."""
    chosen: list[int] = []
    weakest = {v: test.log_p(target, v, ()) for v in range(test.d) if v != target}
    while weakest:
        strongest = min(weakest, key=weakest.__getitem__)
        if weakest.pop(strongest) > log_alpha:
            break
        for v in weakest:
            for given in _subsets(chosen, max_order - 1):  # those without it were tried before
                if weakest[v] > log_alpha:
                    break
                weakest[v] = max(weakest[v], test.log_p(target, v, (strongest, *given)))
        chosen.append(strongest)
    for v in list(chosen):
        others = [u for u in chosen if u != v]
        if any(test.log_p(target, v, s) > log_alpha for s in _subsets(others, max_order)):
            chosen.remove(v)
    return chosen


def _subsets(variables, most) -> Iterator[tuple[int, ...]]:
    for size in range(min(most, len(variables)) + 1):
        yield from combinations(variables, size)


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

    Notes
    -----
    Arcs are added, taken out and turned. The climb starts from no arc and goes on downhill for some
    steps, so as to leave small hills; it ends after 15 changes without a new best graph.

    Examples
    --------
    >>> from dpcgd_book.systems.scores import BGe
    >>> score = BGe(np.array([[1, 0.8], [0.8, 1]]), 100)
    >>> hill_climb(score, ~np.eye(2, dtype=bool)).sum()
    np.int64(1)
    """
    d = len(score.variables)
    local = cache(score.local)

    def family(arcs, child):
        return local(child, tuple(np.flatnonzero(arcs[:, child]).tolist()))

    here = best = np.zeros((d, d), bool)
    height, best_height, idle = 0.0, 0.0, 0
    visited = deque([here.tobytes()], TABU)
    while idle < PATIENCE:
        new = [way for way in _changes(here, allowed) if way[0].tobytes() not in visited]
        if not new:
            break
        ways = [(sum(family(arcs, c) - family(here, c) for c in own), arcs) for arcs, own in new]
        gain, here = max(reversed(ways), key=itemgetter(0))  # of equal ones the last
        height += gain
        visited.append(here.tobytes())
        idle += 1
        if height > best_height + 1e-9:
            best, best_height, idle = here, height, 0
    return best


def _changes(arcs, allowed) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Every DAG one change away, and whose parents changed."""
    flips = [flip for a, b in np.argwhere(arcs) for flip in ([(a, b)], [(a, b), (b, a)])]
    flips += [[(a, b)] for a, b in np.argwhere(allowed & ~arcs & ~arcs.T)]
    for flip in flips:
        other = arcs.copy()
        other[tuple(zip(*flip, strict=True))] ^= True
        cyclic = np.linalg.matrix_power(other.astype(float), len(arcs)).any()  # a walk of d steps
        if not cyclic and (other <= arcs | allowed).all():
            yield other, [child for _, child in flip]
