"""The table of a few variables that has the released interactions, and is else as even as can be.

That is a log-linear model with one term for each number that was released: the distribution of
largest entropy among those with these interactions.
"""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from dpcgd.moments.clipped_moments import ClippedMoments, rows_of, vectors_of
from dpcgd.moments.interactions import Marginals, Subset, contrasts, least_variance

__all__ = ["MaxEntropy", "has_few_terms", "max_entropy", "pair_table", "proportional_fit"]

MOST_ENTRIES = 1_000_000
"""Cells times terms of a table up to which Newton's method takes all terms as one matrix."""


CLIPPED = 0.2
"""Deviation of what clipping took from a product, as a share of the most that it can have taken."""


LEAST_PENALTY, MOST_PENALTY = 1e-8, 1e-3
"""Of the squares of coefficients. The variance of a term's noise lies between them as a rule."""


STEPS, CLOSE, SHORTEST = 100, 1e-10, 1e-9
"""Most Newton steps, the decrease at which they end, and the shortest part of a step."""


SWEEPS = 5
"""Rounds of proportional fitting."""


TINY = float(np.finfo(float).tiny)
"""The least number of full precision: nothing is divided by less."""


class MaxEntropy(NamedTuple):
    """A fitted table, and how far its logarithms may be off.

    ``logs`` are logarithms of probabilities, with an axis a variable. ``columns`` times ``spread``
    times independent standard normal numbers is how far sampling and noise move them.
    """

    logs: np.ndarray
    columns: np.ndarray
    spread: np.ndarray

    def redrawn(self, redraws: int, rng: np.random.Generator) -> np.ndarray:
        """Logarithms for other draws of sampling and noise, one after the other."""
        normal = rng.standard_normal((self.spread.shape[1], redraws))
        moved = self.columns @ (self.spread @ normal)
        return self.logs + moved.T.reshape(redraws, *self.logs.shape)


def has_few_terms(marginals: Marginals, variables: Sequence[int]) -> bool:
    """Whether :func:`max_entropy` can fit a table of these variables, by public facts."""
    subsets = _subsets(marginals, variables)
    terms = sum(math.prod(marginals.levels[v] - 1 for v in subset) for subset in subsets)
    return math.prod(marginals.levels[v] for v in variables) * max(1, terms) <= MOST_ENTRIES


def max_entropy(marginals: Marginals, variables: Sequence[int]) -> MaxEntropy:
    """The log-linear model whose expected terms are the released ones.

    Parameters
    ----------
    marginals : Marginals
        With these variables and their pairs released, clipped or not.
    variables : sequence of int

    Returns
    -------
    MaxEntropy

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Newton's method on the dual. The squares of the coefficients have a small penalty, about
    the variance of the noise: where noise has left no such table, they stay finite.
    """
    terms = [_term(marginals, variables, subset) for subset in _subsets(marginals, variables)]
    columns, means, deviations = map(np.hstack, zip(*terms, strict=True))
    means = np.clip(means, columns.min(axis=0), columns.max(axis=0))
    penalty = np.clip(deviations**2, LEAST_PENALTY, MOST_PENALTY)
    logs, curvature = _newton(columns, means, penalty)
    noise = np.linalg.solve(curvature, np.diag(deviations))
    root = np.linalg.cholesky(curvature)
    sampling = np.linalg.inv(root).T / math.sqrt(marginals.n)
    shape = [marginals.levels[v] for v in variables]
    return MaxEntropy(logs.reshape(shape), columns, np.hstack([noise, sampling]))


def _newton(columns, means, penalty) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the probabilities, and the curvature of the dual there."""
    weights = np.zeros(len(means))
    loss, logs = _dual(columns, means, penalty, weights)
    for _ in range(STEPS):
        table = np.exp(logs)
        expected = table @ columns
        centred = columns - expected
        curvature = (centred.T * table) @ centred + np.diag(penalty)
        step = np.linalg.solve(curvature, expected - means + penalty * weights)
        decrease, part = step @ curvature @ step, 1.0
        if decrease < CLOSE:
            break
        while part > SHORTEST:
            new, moved = _dual(columns, means, penalty, weights - part * step)
            if new <= loss - part * decrease / 4:
                break
            part /= 2
        weights, loss, logs = weights - part * step, new, moved
    return logs, curvature


def _dual(columns, means, penalty, weights) -> tuple[float, np.ndarray]:
    """What is made as small as can be, and the logarithms of the probabilities."""
    logs = columns @ weights
    total = logsumexp(logs)
    return total - weights @ means + penalty @ weights**2 / 2, logs - total


def _subsets(marginals, variables) -> list[Subset]:
    """Subsets of these variables whose interaction has been released, clipped or not."""
    if isinstance(marginals, ClippedMoments):
        varying = [v for v in variables if marginals.levels[v] > 1]
        return [*combinations(variables, 1), *combinations(varying, 2)]
    return [part for part in marginals.released if part and set(part) <= set(variables)]


def _term(marginals, variables, subset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of an interaction over the cells of a table, its means, the noise's deviations."""
    axes = [v for v in variables if v in subset]
    if clipped := isinstance(marginals, ClippedMoments) and len(axes) == 2:
        values, deviations = _unclipped(marginals, *axes)
    else:
        values, deviations = marginals.moment(*axes)
    ones = {v: np.ones((marginals.levels[v], 1)) for v in variables}
    own = {v: vectors_of(marginals, v) if clipped else contrasts(marginals.levels[v]) for v in axes}
    columns = reduce(np.kron, (ones | own).values())
    return columns, values.ravel(), np.broadcast_to(deviations, values.shape).ravel()


def _unclipped(marginals, x, y) -> tuple[np.ndarray, np.ndarray]:
    """Moments of two variables without what clipping did, and how far they may be off.

    Clipping takes the same share of a record's products, whatever the variables. So what it took
    from a product of two has a square of at most what it took from the squares of both (Cauchy and
    Schwarz), and that follows from the single levels, which nothing has clipped.
    """
    rows = rows_of(marginals.levels)
    (left, lost), (right, also) = (_correction(marginals, v, rows[v]) for v in (x, y))
    values = left @ marginals.moments[rows[x], rows[y]] @ right.T
    noise = np.outer((left**2).sum(axis=1), (right**2).sum(axis=1)) * marginals.deviation**2
    return values, np.sqrt(noise + CLIPPED**2 * np.outer(lost, also))


def _correction(marginals, v, rows) -> tuple[np.ndarray, np.ndarray]:
    """What turns a variable's clipped moments with itself into unclipped ones, and their distance.

    Of the distance the diagonal.
    """
    vectors, own = vectors_of(marginals, v), marginals.moments[rows, rows]
    whole = (vectors.T * marginals.table(v)) @ vectors
    floor = least_variance(marginals.deviation, marginals.n)
    turned = _power(whole, 0.5, 0.0) @ _power(own, -0.5, floor)
    return turned, np.maximum(np.diag(whole - own), 0.0)


def _power(matrix, exponent, floor) -> np.ndarray:
    """Of a symmetric matrix, its eigenvalues no lower than the floor."""
    values, turned = np.linalg.eigh(matrix)
    return (turned * np.maximum(values, floor) ** exponent) @ turned.T


def proportional_fit(marginals: Marginals, variables: Sequence[int]) -> np.ndarray:
    """The same model for a table with many cells, by iterative proportional fitting to its pairs.

    Parameters
    ----------
    marginals : Marginals
        With these variables and their pairs released, clipped or not.
    variables : sequence of int

    Returns
    -------
    array
        Logarithms of probabilities, as near to the model as a few rounds come.

    Privacy
    -------
    Post-processing.
    """
    shape = [marginals.levels[v] for v in variables]
    pairs = [*combinations(range(len(variables)), 2)]
    wanted = [pair_table(marginals, variables[i], variables[j]) for i, j in pairs]
    fitted = np.full(shape, 1 / math.prod(shape))
    for _ in range(SWEEPS):
        for pair, table in zip(pairs, wanted, strict=True):
            others = tuple(i for i in range(len(variables)) if i not in pair)
            now = np.maximum(fitted.sum(axis=others), TINY)
            fitted *= np.expand_dims(table / now, others)
    return np.log(np.maximum(fitted, TINY))


def pair_table(marginals: Marginals, x: int, y: int) -> np.ndarray:
    """Probabilities of the levels of two variables; none is zero."""
    if (min(x, y), max(x, y)) in marginals.released:
        return marginals.table(x, y)
    return np.exp(max_entropy(marginals, (x, y)).logs)
