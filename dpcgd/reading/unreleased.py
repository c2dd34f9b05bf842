"""How strong interactions are that have not been released, judged by those that have."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from dpcgd.moments.interactions import Marginals
from dpcgd.reading.family_fit import FamilyFit, fit_family, released_fit, unreleased
from dpcgd.reading.max_entropy import has_few_terms

__all__ = ["strength_of_interactions", "unreleased_variance"]

FEWEST = 20
"""Records that a cell is expected to have if it is to tell how strong interactions are."""


LEAST_CELLS = 1.0
"""Cells that must tell it, each weighed by the share of its variance that noise leaves alone."""


USUAL, USUAL_CELLS = 0.16, 4.0
"""Strength on random networks, and the number of cells that it counts for."""


def unreleased_variance(marginals: Marginals, family: Sequence[int], fit: FamilyFit) -> np.ndarray:
    """Variance of probabilities from interactions that are as strong as the released ones.

    Parameters
    ----------
    marginals : Marginals
    family : sequence of int
        The parents, and the variable last.
    fit : FamilyFit

    Returns
    -------
    array
        One number for each level of the variable: how much the released interactions with its
        parents move its probability, for as many degrees of freedom as have not been released.

    Privacy
    -------
    Post-processing.
    """
    parents = tuple(range(len(family) - 1))
    weights = fit.weights[..., None]
    mean = (weights * fit.table).sum(axis=parents)
    moved = (weights * (fit.table - mean) ** 2).sum(axis=parents)
    left = unreleased(marginals, family)
    known = math.prod(marginals.levels[v] for v in family[:-1]) - 1 - left
    return moved * left / max(1, known)


def strength_of_interactions(
    marginals: Marginals, families: Iterable[Sequence[int]], redraws: int, rng: np.random.Generator
) -> float | None:
    """How far triples of a variable and two parents lie from what their pairs make likely.

    Parameters
    ----------
    marginals : Marginals
    families : iterable of sequence of int
        The parents, and the variable last.
    redraws : int
    rng : numpy.random.Generator

    Returns
    -------
    float or None
        Mean square of the distance, over what :func:`unreleased_variance` says of pairs; 1 if
        interactions of three variables are as strong as those of two. None if no triple tells.

    Privacy
    -------
    Post-processing.
    """
    low = {part: moment for part, moment in marginals.released.items() if 0 < len(part) < 3}
    pairs = Marginals(marginals.n, marginals.levels, low)
    triples = [(*two, child) for *parents, child in families for two in combinations(parents, 2)]
    triples = [triple for triple in triples if tuple(sorted(triple)) in marginals.released]
    sums = [
        _compared(marginals, pairs, triple, redraws, rng)
        for triple in triples
        if has_few_terms(pairs, triple)
    ]
    moved, expected, cells = np.sum(sums, axis=0) if sums else (0.0, 0.0, 0.0)
    if not cells > LEAST_CELLS:
        return None
    return max(0.0, (cells * moved / expected + USUAL_CELLS * USUAL) / (cells + USUAL_CELLS))


def _compared(marginals, pairs, triple, redraws, rng) -> tuple[float, float, float]:
    """Square distance of a triple beyond its noise, what pairs say of it, and the cells it has."""
    exact, fit = released_fit(marginals, triple), fit_family(pairs, triple, redraws, rng)
    noise = np.maximum(exact.variance - fit.variance, 0.0)
    size = unreleased_variance(pairs, triple, fit)
    many = marginals.n * exact.weights[..., None] * exact.table > FEWEST
    weight = many * size / (size + noise + np.finfo(float).tiny)
    moved = weight * ((exact.table - fit.table) ** 2 - noise)
    return float(moved.sum()), float((weight * size).sum()), float(weight.sum())
