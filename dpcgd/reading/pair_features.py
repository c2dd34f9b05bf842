"""What one noisy release of all pairs says about each pair of variables, as numbers.

Everything here is computed from released moments, the deviations of their noise, n and the levels.
Each variable's contrasts are turned and scaled so that their covariance is the identity; what is
left of two variables is a block of correlations, and the variance of each entry is known.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcgd.moments.blocks import Blocks, blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.reading import _conditioning

__all__ = ["FEATURES", "LocalEvidence", "candidates", "pair_features"]

compiled: Any = _conditioning
"""Whose types, numba's own, know no arguments."""


RIDGES = (0.5, 2.0, 8.0)
"""In units of the noise's deviation times the root of the number of contrasts, which is half of
what noise adds to the largest eigenvalue."""


USUAL, SMALL = 0.05, 0.015
"""Deviations of a correlation where there is an edge, as the Bayes factors assume them."""


NEAREST = 8
"""A pair is looked at if either is among so many strongest of the other."""


LEAST_OPEN = 0.02
"""Share of a variance that counts as left open at least."""


STRONGEST = (1, 2, 3, 5)
"""Sizes of the sets of strongest neighbours that a pair is conditioned on."""


FEW = 3
"""Strongest neighbours of either that sets of two are made of."""


FEATURES = (
    "association",
    "weak association",
    "effect",
    *(f"partial, ridge {ridge:g}" for ridge in RIDGES),
    "partial, over the largest of either",
    "rank for one",
    "rank for the other",
    "least given one",
    "second least given one",
    "effect at the least given one",
    "least given two",
    "effect at the least given two",
    *(f"given the {k} strongest" for k in STRONGEST),
    *(f"effect given the {k} strongest" for k in STRONGEST),
    "left open",
    "strongest path",
    "variables",
    "records",
    "noise over sampling",
    "deviation of an entry",
    "levels of one",
    "levels of the other",
    "evenness of one",
    "evenness of the other",
    "clear pairs a variable",
)
"""Of a pair, in the order of the columns of :func:`pair_features`."""


def candidates(*strengths: np.ndarray) -> np.ndarray:
    """Pairs (x < y) of which one is among the nearest of the other; shape (pairs, 2)."""
    d = len(strengths[0])
    near = np.zeros((d, d), bool)
    for strength in strengths:
        ranked = strength - np.diag(np.full(d, np.inf))
        nearest = np.argsort(-ranked, axis=1, kind="stable")[:, : min(NEAREST, d - 1)]
        np.put_along_axis(near, nearest, True, axis=1)
    np.fill_diagonal(near, False)
    return np.argwhere(np.triu(near | near.T))


def pair_features(marginals: Marginals) -> tuple[np.ndarray, np.ndarray]:
    """Numbers about each pair that may be an edge.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.

    Returns
    -------
    pairs : array of shape (k, 2)
        Variables by number, x < y. Pairs that are not here are far from being an edge.
    features : array of shape (k, number of features)
        A column for each of `FEATURES`.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    blocks = blocks_of(marginals)
    return marginals.worked_out(("features",), lambda: features_of(marginals, blocks))


def features_of(singles: Marginals, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """The same from blocks; `singles` has the single variables."""
    everywhere = _everywhere(blocks)
    partial = everywhere["partial, ridge 2"]
    pairs = candidates(partial, everywhere["least given one"])
    local = LocalEvidence(blocks, partial)
    near = local.features(pairs)
    x, y = pairs.T
    columns = [values[x, y] for values in everywhere.values()]
    ranks = np.argsort(np.argsort(-partial, axis=1), axis=1)
    low, high = np.minimum(ranks[x, y], ranks[y, x]), np.maximum(ranks[x, y], ranks[y, x])
    context = _context(singles, blocks, everywhere["association"])
    shared = np.broadcast_to(context["shared"], (len(pairs), len(context["shared"])))
    of = {name: np.sort(context[name][pairs], axis=1) for name in ("levels", "evenness")}
    table = {
        **dict(zip(everywhere, columns, strict=True)),
        "rank for one": low,
        "rank for the other": high,
        **dict(zip(_LOCAL, near.T, strict=True)),
        **dict(zip(_SHARED, shared.T, strict=True)),
        **{f"{k} of one": v[:, 0] for k, v in of.items()},
        **{f"{k} of the other": v[:, 1] for k, v in of.items()},
    }
    return pairs, np.column_stack([table[name] for name in FEATURES]).astype(np.float32)


_LOCAL = (
    "least given two",
    "effect at the least given two",
    *(f"given the {k} strongest" for k in STRONGEST),
    *(f"effect given the {k} strongest" for k in STRONGEST),
    "left open",
)
_SHARED = (
    "variables",
    "records",
    "noise over sampling",
    "deviation of an entry",
    "clear pairs a variable",
)


def _everywhere(blocks) -> dict[str, np.ndarray]:
    """What is computed for all pairs at once, (d, d) each."""
    b, v, sums = blocks.correlations, blocks.variances, blocks.sums
    squares = b**2
    found = {
        "association": np.arcsinh(sums(_evidence(squares, v))),
        "weak association": np.arcsinh(sums(_evidence(squares, v, SMALL))),
        "effect": _effect(sums, squares, v),
    }
    found |= {f"partial, ridge {c:g}": _partial(blocks, c) for c in RIDGES}
    partial = found["partial, ridge 2"]
    largest = np.maximum(partial.max(axis=1)[:, None], partial.max(axis=1))
    found["partial, over the largest of either"] = partial / np.maximum(largest, 1e-12)
    return found | _given_one(blocks, found)


def _partial(blocks, ridge) -> np.ndarray:
    """Squared partial correlations given all others, from a ridge-regularised inverse.

    In released units the noise of all entries is alike; what is lost in it does not count.
    """
    sampling = np.diag(blocks.covariances).mean() / math.sqrt(blocks.n)
    noise = math.hypot(float(blocks.deviations.max(initial=0.0)), sampling)
    extra = ridge * noise * math.sqrt(len(blocks.covariances))
    values, vectors = np.linalg.eigh(blocks.covariances)
    precision = (vectors / np.maximum(values + extra, extra / 2)) @ vectors.T
    scale = np.zeros_like(precision)
    for start, end in zip(blocks.starts, [*blocks.starts[1:], len(precision)], strict=True):
        own, turned = np.linalg.eigh(precision[start:end, start:end])
        known = np.clip(1 - extra * own, 0, 1)  # 0 where a variance is lost in the ridge
        scale[start:end, start:end] = (turned * (known / np.sqrt(own))) @ turned.T
    found = blocks.sums((scale @ precision @ scale) ** 2)
    np.fill_diagonal(found, 0.0)
    return found


def _given_one(blocks, found) -> dict[str, np.ndarray]:
    """The least association given one other variable, the next, and the strongest path."""
    both = found["association"], found["effect"]
    values = compiled.given_one(*blocks.arrays, *both, LEAST_OPEN, USUAL)
    names = ("least given one", "second least given one", "effect at the least given one")
    return dict(zip((*names, "strongest path"), values, strict=True))


class LocalEvidence:
    """Conditional associations of single pairs, given sets of strong neighbours.

    Parameters
    ----------
    blocks : Blocks
    strength : array of shape (d, d)
        Of each variable's neighbours.
    """

    def __init__(self, blocks, strength):
        self.arrays = blocks.arrays
        self.order = np.argsort(-strength, axis=1, kind="stable")
        noise = blocks.variances * ~np.eye(len(blocks.noise), dtype=bool)
        self.ridge = np.sqrt(noise.mean(axis=1))

    def features(self, pairs: np.ndarray) -> np.ndarray:
        """The columns of some pairs that take sets of their own, shape (pairs, columns)."""
        how = self.order, np.array(STRONGEST), FEW, self.ridge, LEAST_OPEN, USUAL
        return compiled.local_features(*self.arrays, pairs, *how)

    def given(self, questions: Sequence[tuple[int, int, Sequence[int]]]) -> np.ndarray:
        """Of x and y given some others, a row for each question.

        How surprising the association is, its effect, and what is left open of x or y.
        """
        sets = [[len(s), *s] for _, _, s in questions]
        padded = np.zeros((len(sets), max(map(len, sets), default=1)), int)
        for row, s in zip(padded, sets, strict=True):
            row[: len(s)] = s
        pairs = np.array([(x, y) for x, y, _ in questions], int).reshape(-1, 2)
        how = self.ridge, LEAST_OPEN, USUAL
        return compiled.associations_given(*self.arrays, pairs, padded, *how)


def _effect(sums, squares, variance) -> np.ndarray:
    """Squared correlation in all, where noise is small beside a usual effect."""
    return sums((squares - variance) * (USUAL**2 / (variance + USUAL**2)))


def _evidence(squares, variance, size=USUAL) -> np.ndarray:
    """Twice the log Bayes factor of each entry: of a normal effect of this size against none."""
    signal = size**2 / (variance + size**2)
    return squares / variance * signal + np.log1p(-signal)


def _context(marginals, blocks, association) -> dict[str, np.ndarray]:
    """What holds for the whole release, and for each variable."""
    n, levels = marginals.n, np.array(marginals.levels)
    off = ~np.eye(len(blocks.correlations), dtype=bool)
    typical = float(np.median(blocks.variances[off])) if off.any() else 1 / n
    d = len(levels)
    tables = [marginals.table(v) for v in range(d)]
    evenness = np.array([-(p @ np.log(p)) / math.log(max(2, len(p))) for p in tables])
    clear = np.sum(np.triu(association, 1) > math.asinh(10)) / d
    return {
        "shared": np.array(
            [d, math.log10(n), math.log10(typical * n), math.log10(typical) / 2, clear]
        ),
        "levels": levels,
        "evenness": evenness,
    }
