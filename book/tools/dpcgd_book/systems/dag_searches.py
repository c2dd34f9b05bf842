"""Searches for the best DAG by a score: max-min hill climbing, and Markov chains over orders.

Max-min hill climbing finds each variable's neighbours by tests, and then climbs the score over
them. A chain walks over the orders of the variables, and keeps the best DAG that it meets.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, combinations, compress, product
from operator import itemgetter, or_
from typing import NamedTuple

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.pc_search import Oracle, search
from dpcgd.privacy import budget, run
from dpcgd_book.systems.tests_and_scores import GraphScore, GSquare

__all__ = ["BestDag", "hill_climb", "iterative_mcmc", "max_min_neighbours", "mmhc", "order_mcmc"]

PATIENCE = 15
"""Climbing stops after so many changes without a new best graph."""


TABU = 100
"""The last so many graphs are not visited again."""


def mmhc(score: GraphScore, test: GSquare, *, alpha: float = 0.05) -> CPDAG:
    """Max-min hill climbing.

    Parameters
    ----------
    score : GraphScore
    test : GSquare
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
    >>> from dpcgd import Dataset
    >>> from dpcgd_book.systems.tests_and_scores import BDeu
    >>> a, b, noise = np.random.default_rng(0).integers(0, 3, (3, 2000))
    >>> levels = {"a": [*"012"], "b": [*"012"], "c": [*"0123456"]}
    >>> data = Dataset(np.column_stack([a, b, a + b + noise]), levels)
    >>> print(mmhc(BDeu(data), GSquare(data), alpha=0.01))
    a -> c
    b -> c
    """
    if test.d != len(score.variables):
        raise ValueError("score and test have other variables; make both from the same data")
    return _completed(hill_climb(score, max_min_neighbours(test, alpha=alpha)), score.variables)


def _completed(arcs, variables) -> CPDAG:
    """The completed form of the DAG with these arcs."""
    dag = nx.from_numpy_array(arcs, create_using=nx.DiGraph, edge_attr=None, nodelist=[*variables])
    return CPDAG.from_dag(dag)


def max_min_neighbours(test: GSquare, *, alpha: float, max_order: int = 3) -> np.ndarray:
    """Pairs of which each is among the other's parents and children, by the max-min heuristic.

    Returns
    -------
    boolean array, shape (d, d)
        Symmetric.
    """
    run.check_settings(None, alpha=alpha)
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
    return (few for size in range(most + 1) for few in combinations(variables, size))


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
    >>> from dpcgd_book.systems.tests_and_scores import BGe
    >>> x = np.arange(100)
    >>> score = BGe(np.column_stack([x, x**2]))
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


MOST_CANDIDATES = 14
"""A variable has at most so many candidate parents, for all their subsets are scored."""


class BestDag(NamedTuple):
    """The best DAG that fits an order the chain was in.

    Attributes
    ----------
    variables : tuple of str
    arcs : boolean array, shape (d, d)
    score : float
    """

    variables: Sequence[str]
    arcs: np.ndarray
    score: float

    @property
    def graph(self) -> CPDAG:
        """The completed form of the DAG."""
        return _completed(self.arcs, self.variables)


def iterative_mcmc(score: GraphScore, oracle: Oracle, *, rng: np.random.Generator) -> BestDag:
    """Order chains over a space of parents that grows until the best DAG fits into it.

    Parameters
    ----------
    score : GraphScore
    oracle : Oracle
        On the same variables; its PC skeleton, given up to three variables, is the first space.
    rng : numpy.random.Generator

    Returns
    -------
    BestDag
        Of the last chain.

    Raises
    ------
    ValueError
        If a variable has too many candidate parents.

    Notes
    -----
    Kuipers, Suter and Moffa (2022). Each chain may add one parent from outside its space to any
    variable; the arcs of the best DAG join the space, and a chain that adds none is the last.

    Examples
    --------
    >>> from dpcgd import Dataset
    >>> from dpcgd.constraint.laplace_pc import CorrelationOracle
    >>> from dpcgd.statistics.moment_matrices import FisherZ
    >>> from dpcgd_book.systems.tests_and_scores import BGe
    >>> values = np.random.default_rng(0).normal(size=(500, 3))
    >>> values[:, 2] += values[:, 0] + values[:, 1]
    >>> data = Dataset.of_numbers(values, dict.fromkeys("abc", (-9, 9)))
    >>> score, oracle = BGe(values, data.variables), CorrelationOracle(data, FisherZ(0.01))
    >>> print(iterative_mcmc(score, oracle, rng=np.random.default_rng(1)).graph)
    a -> c
    b -> c
    """
    candidates = search(oracle, score.variables, max_order=3).graph.arcs
    candidates = candidates | candidates.T
    while True:
        best = order_mcmc(score, candidates, rng=rng)
        if not (best.arcs & ~candidates).any():
            return best
        candidates = candidates | best.arcs


def order_mcmc(score: GraphScore, candidates: np.ndarray, *, rng: np.random.Generator) -> BestDag:
    """Walk over the orders of the variables, each weighed by all the DAGs that fit it.

    Parameters
    ----------
    score : GraphScore
        Of at most 63 variables: sets of them are bits of a whole number.
    candidates : boolean array, shape (d, d)
        ``candidates[a, b]``: a may be a parent of b. Any subset of a variable's candidates may be
        its parents, with at most one other variable.
    rng : numpy.random.Generator

    Returns
    -------
    BestDag

    Raises
    ------
    ValueError
        If a variable has more than 14 candidates.

    Notes
    -----
    10 d² ln d orders are proposed: two variables change places, or one moves elsewhere, and both
    proposals are symmetric. An order's score is a sum over its DAGs. Friedman and Koller (2003) for
    the chain, Kuipers, Suter and Moffa (2022) for the restricted parents.

    Examples
    --------
    >>> from dpcgd_book.systems.tests_and_scores import BGe
    >>> x = np.arange(100)
    >>> score = BGe(np.column_stack([x, x**2]), ["a", "b"])
    >>> print(order_mcmc(score, ~np.eye(2, dtype=bool), rng=np.random.default_rng(0)).graph)
    a -- b
    """
    d = len(score.variables)
    families = _families(score, np.asarray(candidates, bool))
    chain = _Chain(families, rng)
    for _ in range(max(100, int(10 * d**2 * math.log(d)))):
        chain.step()
    arcs = np.zeros((d, d), bool)
    for child, before in chain.best_befores.items():
        arcs[list(families[child].best_parents(before)), child] = True
    return BestDag(tuple(score.variables), arcs, chain.best)


def _families(score, candidates) -> "list[_Family]":
    d = len(score.variables)
    candidates = candidates & ~np.eye(d, dtype=bool)
    for variable, count in zip(score.variables, candidates.sum(axis=0), strict=True):
        if count > MOST_CANDIDATES:
            too_many = f"more than {MOST_CANDIDATES}; leave some out, or lower alpha"
            raise ValueError(f"variable {variable!r} has {count} candidate parents, {too_many}")
    return [_Family(score, child, candidates[:, child]) for child in range(d)]


class _Family:
    """Scores of all parent sets of one child, and their sum under any order.

    A set of variables is a bit mask; ``before`` is that of the variables before the child.
    """

    def __init__(self, score, child, candidate):
        near = np.flatnonzero(candidate).tolist()
        others = ([v] for v in range(len(candidate)) if not candidate[v] and v != child)
        subsets = [[*compress(near[::-1], bits)] for bits in product((0, 1), repeat=len(near))]
        self.parents = [tuple(sorted(few + more)) for more, few in product([[], *others], subsets)]
        self.scores = np.array([score.local(child, few) for few in self.parents])
        self.masks = np.array([sum(1 << v for v in few) for few in self.parents])
        self.under = cache(self._under)

    def _under(self, before: int) -> tuple[float, float]:
        """(log of the summed scores, best score) over the parent sets that fit."""
        scores = self.scores[self.masks & ~before == 0]
        return float(np.logaddexp.reduce(scores)), float(scores.max())

    def best_parents(self, before: int) -> tuple[int, ...]:
        """The best parent set that fits."""
        fitting = np.flatnonzero(self.masks & ~before == 0)
        return self.parents[fitting[np.argmax(self.scores[fitting])]]


class _Chain:
    """A Metropolis chain over orders, first to last."""

    def __init__(self, families: list[_Family], rng: np.random.Generator):
        self.families, self.rng = families, rng
        self.score = self.best = -math.inf
        self._go(rng.permutation(len(families)).tolist(), 0.0)

    def _go(self, order, least):
        """Go to an order, if that raises the logarithm of the summed scores by more than this."""
        befores = _befores(order)
        under = [self.families[child].under(before) for child, before in befores.items()]
        score, best = (math.fsum(scores) for scores in zip(*under, strict=True))
        if least < score - self.score:
            self.order, self.score = order, score
            if best > self.best:
                self.best, self.best_befores = best, befores

    def step(self):
        """Propose an order in which two variables change places or one moves; go there, or stay."""
        order = self.order.copy()
        first, second = self.rng.choice(len(order), 2, replace=False)
        if self.rng.random() < 0.5:
            order[first], order[second] = order[second], order[first]
        else:
            order.insert(second, order.pop(first))
        self._go(order, math.log(self.rng.random() or budget.LEAST))


def _befores(order) -> dict[int, int]:
    """For every child the bit mask of the variables before it."""
    masks = accumulate((1 << child for child in order), or_, initial=0)
    return dict(zip(order, masks, strict=False))
