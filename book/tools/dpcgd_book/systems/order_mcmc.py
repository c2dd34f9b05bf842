"""Markov chains over the orders of variables: the best DAG that they meet."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, compress, product
from operator import or_
from typing import NamedTuple

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.budget import LEAST
from dpcgd_book.systems.p_value_tests import IndependenceTest, Level
from dpcgd_book.systems.scores import GraphScore, check_same_variables, completed

__all__ = ["BestDag", "iterative_mcmc", "order_mcmc"]

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
        return completed(self.arcs, self.variables)


def iterative_mcmc(
    score: GraphScore, test: IndependenceTest, *, alpha: float, rng: np.random.Generator
) -> BestDag:
    """Order chains over a space of parents that grows until the best DAG fits into it.

    Parameters
    ----------
    score : GraphScore
    test : IndependenceTest
        On the same variables; its PC skeleton is the first space.
    alpha : float
        Significance level of the tests, given up to three variables.
    rng : numpy.random.Generator

    Returns
    -------
    BestDag
        Of the last chain.

    Raises
    ------
    ValueError
        If score and test differ in their variables, or a variable has too many candidate parents.

    Notes
    -----
    Kuipers, Suter and Moffa (2022). Each chain may add one parent from outside its space to any
    variable; the arcs of the best DAG join the space, and a chain that adds none is the last.

    Examples
    --------
    >>> from dpcgd_book.systems.p_value_tests import FisherZ
    >>> from dpcgd_book.systems.scores import BGe
    >>> values = np.random.default_rng(0).normal(size=(500, 3))
    >>> values[:, 2] += values[:, 0] + values[:, 1]
    >>> score, test = BGe.from_values(values, ["a", "b", "c"]), FisherZ.from_values(values)
    >>> print(iterative_mcmc(score, test, alpha=0.01, rng=np.random.default_rng(1)).graph)
    a -> c
    b -> c
    """
    check_same_variables(score, test)
    candidates = search(Level(test, alpha), score.variables, max_order=3).graph.arcs
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
        If the candidates do not fit the score, or a variable has more than 14.

    Notes
    -----
    10 d² ln d orders are proposed: two variables change places, or one moves elsewhere, and both
    proposals are symmetric. An order's score is a sum over its DAGs. Friedman and Koller (2003) for
    the chain, Kuipers, Suter and Moffa (2022) for the restricted parents.

    Examples
    --------
    >>> from dpcgd_book.systems.scores import BGe
    >>> score = BGe(np.array([[1, 0.8], [0.8, 1]]), 100, ["a", "b"])
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
    if candidates.shape != (d, d):
        raise ValueError(f"{d} variables need a {d} by {d} array of candidates")
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
        self._go(order, math.log(self.rng.random() or LEAST))


def _befores(order) -> dict[int, int]:
    """For every child the bit mask of the variables before it."""
    masks = accumulate((1 << child for child in order), or_, initial=0)
    return dict(zip(order, masks, strict=False))
