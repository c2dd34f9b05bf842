"""A variable's probabilities, given its parents, from what has been released of them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from dpcgd.moments.interactions import Marginals, subsets_of
from dpcgd.reading.max_entropy import has_few_terms, max_entropy, proportional_fit

__all__ = ["LARGEST_VARIANCE", "FamilyFit", "fit_family", "released_fit", "unreleased"]

LARGEST_VARIANCE = 0.25
"""Of a number between 0 and 1."""


class FamilyFit(NamedTuple):
    """Probabilities given the parents, and how sure they are.

    ``table`` has an axis for each parent and a last one for the variable, and ``variance`` is that
    of its entries. ``weights`` are the probabilities of the parents' levels.
    """

    table: np.ndarray
    variance: np.ndarray
    weights: np.ndarray


def unreleased(marginals: Marginals, family: Sequence[int]) -> int:
    """Degrees of freedom of a variable, given its parents, of which nothing was released.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released, clipped or not.
    family : sequence of int
        The parents, and the variable last.

    Examples
    --------
    >>> unreleased(Marginals(10, (3, 3, 2)), (0, 1, 2)), unreleased(Marginals(10, (3, 2)), (0, 1))
    (4, 0)
    """
    *parents, child = family
    levels = [marginals.levels[v] for v in parents]
    known = sum(marginals.levels[v] - 1 for v in parents)
    for subset in marginals.released:
        if len(subset) > 2 and child in subset and set(subset) <= set(family):
            known += math.prod(marginals.levels[v] - 1 for v in subset if v != child)
    return math.prod(levels) - 1 - known if marginals.levels[child] > 1 else 0


def fit_family(
    marginals: Marginals, family: Sequence[int], redraws: int, rng: np.random.Generator
) -> FamilyFit:
    """Fit a variable and its parents to all that has been released of them.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released, clipped or not.
    family : sequence of int
        The parents, and the variable last.
    redraws : int
        Of sampling and noise, where the table has to be fitted by maximum entropy.
    rng : numpy.random.Generator

    Returns
    -------
    FamilyFit
        Its variance comes from sampling and noise alone. It is the largest there is where the table
        is too large for more than a fit.

    Privacy
    -------
    Post-processing.
    """
    if all(tuple(sorted(part)) in marginals.released for part in subsets_of(tuple(family))):
        return released_fit(marginals, family)
    if not has_few_terms(marginals, family):
        logs = proportional_fit(marginals, family)
        table = softmax(logs, axis=-1)
        variance = np.broadcast_to(LARGEST_VARIANCE, table.shape)
        return FamilyFit(table, variance, np.exp(logsumexp(logs, axis=-1)))
    fit = max_entropy(marginals, family)
    table = np.exp(log_softmax(fit.logs, axis=-1))
    table = np.maximum(table, 1 / marginals.n**2 / table.size)  # no probability is zero
    table /= table.sum(axis=-1, keepdims=True)
    moved = softmax(fit.redrawn(redraws, rng), axis=-1) - table
    return FamilyFit(table, (moved**2).mean(axis=0), np.exp(logsumexp(fit.logs, axis=-1)))


def released_fit(marginals: Marginals, family: Sequence[int]) -> FamilyFit:
    """The same where every interaction has been released: exact but for noise and sampling.

    Notes
    -----
    The interactions of the parents alone make the weights. The others make the probabilities, times
    the weights, and their noise is independent of the former.
    """
    joint = marginals.table(*family)
    weights = joint.sum(axis=-1, keepdims=True)
    table, levels = joint / weights, joint.shape[-1]
    own, parents = _noise(marginals, family)
    noise = (own + (table - 1 / levels) ** 2 * parents) / weights**2
    sampling = table * (1 - table) / (marginals.n * weights)
    variance = np.minimum(sampling + noise, LARGEST_VARIANCE)
    return FamilyFit(table, variance, weights[..., 0])


def _noise(marginals, family) -> tuple[float, float]:
    """Variance of the noise in a cell from the variable's interactions, and that of a weight."""
    own = parents = 0.0
    for subset in subsets_of(tuple(family)):
        held = math.prod(1 - 1 / marginals.levels[v] for v in subset)
        left = math.prod(marginals.levels[v] for v in family if v not in subset)
        variance = marginals.moment(*subset).deviation ** 2 * held / left**2
        own += variance if family[-1] in subset else 0.0
        parents += 0.0 if family[-1] in subset else variance * marginals.levels[family[-1]] ** 2
    return own, parents
