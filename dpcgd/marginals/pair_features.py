"""What one noisy release of all pairs says about each pair of variables, as numbers.

Everything here is computed from released moments, the deviations of their noise, n and the levels.
Each variable's contrasts are turned and scaled so that their covariance is the identity; what is
left of two variables is a block of correlations, and the variance of each entry is known.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dpcgd.marginals.interactions import Marginals

__all__ = ["FEATURES", "Blocks", "LocalEvidence", "blocks_of", "candidates", "pair_features"]

RIDGES = (0.5, 2.0, 8.0)
"""In units of the noise's deviation times the root of the number of contrasts, which is half of
what noise adds to the largest eigenvalue."""


USUAL, SMALL = 0.05, 0.015
"""Deviations of a correlation where there is an edge, as the Bayes factors assume them."""


NEAREST = 8
"""A pair is looked at if either is among so many strongest of the other."""


LEAST_OPEN = 0.02
"""Share of a variance that counts as left open at least."""


LARGEST = 1e6
"""Of correlations, covariances and their noise: beyond, there is nothing but noise."""


STRONGEST = (1, 2, 3, 5)
"""Sizes of the sets of strongest neighbours that a pair is conditioned on."""


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


class Blocks(NamedTuple):
    """Correlations of all scaled contrasts, (D, D), and the variance that noise gives each entry.

    A variable's block with itself is the identity. ``covariances`` and the ``deviations`` of their
    noise are those of the contrasts as they were released. ``starts`` says where each variable's
    rows begin.
    """

    correlations: np.ndarray
    noise: np.ndarray
    covariances: np.ndarray
    deviations: np.ndarray
    n: int
    starts: np.ndarray

    @property
    def variances(self) -> np.ndarray:
        """Of each entry, from noise and from sampling independent variables."""
        return self.noise + 1 / self.n

    def sums(self, entries: np.ndarray) -> np.ndarray:
        """Sums over the blocks: from (D, D) to (d, d)."""
        return np.add.reduceat(np.add.reduceat(entries, self.starts, 0), self.starts, 1)


def blocks_of(marginals: Marginals) -> Blocks:
    """The released moments as correlations, worked out once.

    Raises
    ------
    KeyError
        If a pair has not been released.
    """
    return marginals.worked_out(("blocks",), lambda: _blocks(marginals))


def _blocks(marginals) -> Blocks:
    # a variable of one level has no contrasts; a constant stands in for it
    d, widths = len(marginals.levels), [max(1, of - 1) for of in marginals.levels]
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int)
    at = [slice(s, s + w) for s, w in zip(starts, widths, strict=True)]
    size = int(sum(widths))
    correlations, noise, covariances, deviations = np.zeros((4, size, size))
    means = [marginals.moment(v).values for v in range(d)]
    scales = [_scale(marginals, v) for v in range(d)]
    wide = [(scale**2).sum(axis=1) for scale in scales]
    varying = [v for v in range(d) if marginals.levels[v] > 1]
    for x, y in combinations(varying, 2):
        pair = marginals.moment(x, y)
        block = at[x], at[y]
        covariances[block] = pair.values - np.outer(means[x], means[y])
        deviations[block] = pair.deviation
        correlations[block] = scales[x] @ covariances[block] @ scales[y].T
        noise[block] = pair.deviation**2 * np.outer(wide[x], wide[y])
    parts = (correlations, noise, covariances, deviations)
    both = [np.clip(entries + entries.T, -LARGEST, LARGEST) for entries in parts]
    for v in range(d):
        both[0][at[v], at[v]] = np.eye(widths[v])
        both[2][at[v], at[v]] = marginals.variance(v) if v in varying else 1.0
    names = ("correlations", "noise", "covariances", "deviations")
    return Blocks(**dict(zip(names, both, strict=True)), n=marginals.n, starts=starts)


def _scale(marginals, v) -> np.ndarray:
    """Turns a variable's contrasts into uncorrelated ones of variance one, one a row."""
    values, vectors = np.linalg.eigh(marginals.variance(v))
    floor = max(3 * marginals.moment(v).deviation, 1 / marginals.n)
    return (vectors / np.sqrt(np.maximum(values, floor))).T


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
    everywhere = _everywhere(blocks)
    partial = everywhere["partial, ridge 2"]
    pairs = candidates(partial, everywhere["least given one"])
    local = LocalEvidence(blocks, partial)
    near = np.array([local.features(x, y) for x, y in pairs]).reshape(len(pairs), -1)
    x, y = pairs.T
    columns = [values[x, y] for values in everywhere.values()]
    ranks = np.argsort(np.argsort(-partial, axis=1), axis=1)
    low, high = np.minimum(ranks[x, y], ranks[y, x]), np.maximum(ranks[x, y], ranks[y, x])
    context = _context(marginals, blocks, everywhere["association"])
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
    b, v, sums = blocks.correlations, blocks.noise, blocks.sums
    d = len(blocks.starts)
    association, effect = found["association"], found["effect"]
    least, second = association.copy(), np.full((d, d), np.inf)
    at_least, path = effect.copy(), np.zeros((d, d))
    ends = [*blocks.starts[1:], len(b)]
    for z in range(d):
        of = slice(blocks.starts[z], ends[z])
        squares = b[:, of] ** 2
        left_open = np.clip(1 - squares.sum(axis=1), LEAST_OPEN, 1)
        both = np.outer(left_open, left_open)
        through = squares @ v[of]
        variance = v + through + through.T + both / blocks.n
        left = (b - b[:, of] @ b[of]) ** 2
        surprise = np.arcsinh(sums(_evidence(left / both, variance / both)))
        size = _effect(sums, left / both, variance / both)
        aside = np.ones((d, d), bool)
        aside[z] = aside[:, z] = False
        below = aside & (surprise < least)
        second = np.where(below, least, np.where(aside, np.minimum(second, surprise), second))
        least, at_least = np.where(below, surprise, least), np.where(below, size, at_least)
        strength = np.minimum.outer(effect[:, z], effect[z])
        path = np.where(aside, np.maximum(path, strength), path)
    return {
        "least given one": least,
        "second least given one": np.where(np.isfinite(second), second, association),
        "effect at the least given one": at_least,
        "strongest path": path,
    }


class LocalEvidence:
    """Conditional associations of single pairs, given sets of strong neighbours.

    Parameters
    ----------
    blocks : Blocks
    strength : array of shape (d, d)
        Of each variable's neighbours.
    """

    def __init__(self, blocks, strength):
        self.blocks = blocks
        self.order = np.argsort(-strength, axis=1, kind="stable")
        ends = [*blocks.starts[1:], len(blocks.correlations)]
        self.at = [np.arange(s, e) for s, e in zip(blocks.starts, ends, strict=True)]
        noise = blocks.variances * ~np.eye(len(blocks.noise), dtype=bool)
        self.ridge = np.sqrt(noise.mean(axis=1))

    def features(self, x, y) -> list[float]:
        """The columns of a pair that take sets of its own."""
        mine, theirs = ([v for v in self.order[a] if v not in (x, y)] for a in (x, y))
        sets = [dict.fromkeys([*mine[:k], *theirs[:k]]) for k in STRONGEST]
        strong = [self.given(x, y, tuple(s)) for s in sets]
        few = dict.fromkeys([*mine[:3], *theirs[:3]])
        least = min((self.given(x, y, s) for s in combinations(few, 2)), default=strong[0])
        return [*least[:2], *(s[0] for s in strong), *(s[1] for s in strong), strong[1][2]]

    def given(self, x, y, s) -> tuple[float, float, float]:
        """How surprising the association is, its effect, and what is left open of x or y."""
        b, v = self.blocks.correlations, self.blocks.noise
        of = np.concatenate([np.empty(0, int), *(self.at[z] for z in s)])
        (to_x, open_x), (to_y, open_y) = (self.regressed(self.at[a], of) for a in (x, y))
        at = self.at[x], self.at[y]
        q = b[np.ix_(*at)] - b[np.ix_(at[0], of)] @ to_y
        noise = v[np.ix_(*at)] + v[np.ix_(at[0], of)] @ to_y**2 + (v[np.ix_(at[1], of)] @ to_x**2).T
        variance = noise + open_x * open_y / self.blocks.n
        squares, variance = q**2 / (open_x * open_y), variance / (open_x * open_y)
        evidence = math.asinh(np.sum(_evidence(squares, variance)))
        return evidence, float(_effect(np.sum, squares, variance)), min(open_x, open_y)

    def regressed(self, at, of) -> tuple[np.ndarray, float]:
        """Slopes on other contrasts, with a ridge for their noise, and the variance left open."""
        b = self.blocks.correlations
        inner = b[np.ix_(of, of)] + np.diag(self.ridge[of] * math.sqrt(len(of)))
        slopes = np.linalg.solve(inner, b[np.ix_(of, at)])
        explained = np.sum(b[np.ix_(of, at)] * slopes, axis=0)
        return slopes, float(np.clip(1 - explained, LEAST_OPEN, 1).mean())


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
