"""What one noisy release of all pairs says about each pair of variables, as numbers.

Everything here is computed from released moments, the deviations of their noise, n and the levels.
Each variable's contrasts are turned and scaled so that their covariance is the identity; what is
left of two variables is a block of correlations, and the variance of each entry is known.
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from dpcgd.moments.blocks import Blocks, blocks_of
from dpcgd.moments.interactions import Marginals

__all__ = ["FEATURES", "LocalEvidence", "candidates", "pair_features"]

RIDGES = (0.5, 2.0, 8.0)
"""In units of the noise's deviation times the root of the number of contrasts, which is half of
what noise adds to the largest eigenvalue."""


USUAL, SMALL = 0.05, 0.015
"""Deviations of a correlation where there is an edge, as the Bayes factors assume them."""


NEAREST = 8
"""A pair is looked at if either is among so many strongest of the other."""


LEAST_OPEN = 0.02
"""Share of a variance that counts as left open at least."""


MOST_NUMBERS = 1 << 20
"""So many numbers of matrices are worked out at once, at most."""


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
    evidence, effect = map(sums, _told(squares, v))
    found = {
        "association": np.arcsinh(evidence),
        "weak association": np.arcsinh(sums(_told(squares, v, SMALL)[0])),
        "effect": effect,
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
    b, v, effect = blocks.correlations, blocks.noise, found["effect"]
    ends = [*blocks.starts[1:].tolist(), len(b)]
    least, at_least = found["association"].copy(), effect.copy()
    second, path = np.full_like(least, np.inf), np.zeros_like(least)
    for z, at in enumerate(map(slice, blocks.starts.tolist(), ends)):
        open_share = np.clip(1 - (b[:, at] ** 2).sum(axis=1), LEAST_OPEN, 1.0)
        both = np.outer(open_share, open_share)
        through = b[:, at] ** 2 @ v[at]
        q = (b - b[:, at] @ b[at]) / np.sqrt(both)
        variance = (v + through + through.T) / both + 1 / blocks.n
        evidence, size = _told(q**2, variance)
        evidence, size = np.arcsinh(blocks.sums(evidence)), blocks.sums(size)
        other = np.ones(least.shape, bool)
        other[z], other[:, z] = False, False
        smallest = other & (evidence < least)
        second = np.where(other, np.minimum(second, np.maximum(least, evidence)), second)
        least, at_least = np.where(smallest, evidence, least), np.where(smallest, size, at_least)
        weaker = np.minimum.outer(effect[z], effect[z])
        path = np.where(other, np.maximum(path, weaker), path)
    second = np.where(np.isfinite(second), second, found["association"])
    names = ("least given one", "second least given one", "effect at the least given one")
    values = (np.triu(value, 1) for value in (least, second, at_least, path))
    return {k: u + u.T for k, u in zip((*names, "strongest path"), values, strict=True)}


class LocalEvidence:
    """Conditional associations of single pairs, given sets of strong neighbours.

    Parameters
    ----------
    blocks : Blocks
    strength : array of shape (d, d)
        Of each variable's neighbours.
    """

    def __init__(self, blocks, strength):
        self.order = np.argsort(-strength, axis=1, kind="stable")
        noise = blocks.variances * ~np.eye(len(blocks.noise), dtype=bool)
        self.ridge = np.sqrt(noise.mean(axis=1))
        self.n, size = blocks.n, len(blocks.noise)
        self.correlations, self.noise = (
            np.pad(kind, (0, 1)) for kind in (blocks.correlations, blocks.noise)
        )
        widths = np.diff(blocks.starts, append=size)
        number = np.arange(widths.max())
        rows = blocks.starts[:, None] + number
        self.rows = np.append(
            np.where(number < widths[:, None], rows, size), [[size] * len(number)], 0
        )

    def features(self, pairs: np.ndarray) -> np.ndarray:
        """The columns of some pairs that take sets of their own, shape (pairs, columns)."""
        questions, starts = [], [0]
        for x, y in pairs.tolist():
            near = [[v for v in self.order[a].tolist() if v not in (x, y)] for a in (x, y)]
            sets = [dict.fromkeys(near[0][:k] + near[1][:k]) for k in (*STRONGEST, FEW)]
            questions += [(x, y, tuple(s)) for s in sets[:-1]]
            questions += [(x, y, two) for two in combinations(sets[-1], 2)]
            starts.append(len(questions))
        told, rows, many = self.given(questions), [], len(STRONGEST)
        for start, end in pairwise(starts):
            strongest, twos = told[start : start + many], told[start + many : end]
            least = twos[twos[:, 0].argmin()] if len(twos) else strongest[0]
            rows.append([*least[:2], *strongest[:, 0], *strongest[:, 1], strongest[1, 2]])
        return np.array(rows).reshape(len(pairs), 3 + 2 * many)

    def given(self, questions: Sequence[tuple[int, int, Sequence[int]]]) -> np.ndarray:
        """Of x and y given some others, a row for each question.

        How surprising the association is, its effect, and what is left open of x or y.
        """
        x, y = (np.array([question[side] for question in questions], int) for side in (0, 1))
        sets = [question[2] for question in questions]
        most = max(map(len, sets), default=0)
        padded = np.array([[*s, *[-1] * (most - len(s))] for s in sets], int).reshape(len(x), most)
        rows = self.rows[padded].reshape(len(x), most * self.rows.shape[1])
        rows.sort(axis=1)  # those that stand for none are last
        sizes = (rows < len(self.ridge)).sum(axis=1)
        told = np.empty((len(x), 3))
        for size in np.unique(sizes).tolist():
            alike = np.flatnonzero(sizes == size)
            parts = -(-len(alike) * max(size, 1) ** 2 // MOST_NUMBERS)
            for some in np.array_split(alike, parts):
                told[some] = self._alike(x[some], y[some], rows[some, :size])
        return told

    def _alike(self, x, y, given) -> np.ndarray:
        """The same given equally many rows of correlations each."""
        b, v, size = self.correlations, self.noise, given.shape[1]
        inner = b[given[:, :, None], given[:, None]]
        inner[:, range(size), range(size)] += self.ridge[given] * math.sqrt(size)
        x, y = self.rows[x], self.rows[y]
        to_x, to_y = b[given[:, :, None], x[:, None]], b[given[:, :, None], y[:, None]]
        slopes = _solved(inner, np.concatenate([to_x, to_y], axis=2))
        slope_x, slope_y = slopes[:, :, : x.shape[1]], slopes[:, :, x.shape[1] :]
        open_x, open_y = self._left_open(x, to_x, slope_x), self._left_open(y, to_y, slope_y)
        q = b[x[:, :, None], y[:, None]] - to_x.swapaxes(1, 2) @ slope_y
        variance = v[x[:, :, None], y[:, None]] + v[x[:, :, None], given[:, None]] @ slope_y**2
        variance += (v[y[:, :, None], given[:, None]] @ slope_x**2).swapaxes(1, 2)
        both = (open_x * open_y)[:, None, None]
        real = (x < len(self.ridge))[:, :, None] & (y < len(self.ridge))[:, None]
        evidence, effect = (
            (part * real).sum(axis=(1, 2))
            for part in _told(q**2 / both, variance / both + 1 / self.n)
        )
        return np.column_stack([np.arcsinh(evidence), effect, np.minimum(open_x, open_y)])

    def _left_open(self, rows, cross, slopes) -> np.ndarray:
        """Share of the variance of these rows that the others leave open."""
        left = np.clip(1 - (cross * slopes).sum(axis=1), LEAST_OPEN, 1.0)
        real = rows < len(self.ridge)
        return (left * real).sum(axis=1) / real.sum(axis=1)


def _solved(matrices, right) -> np.ndarray:
    """Solutions of linear equations; of least squares where there is none."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices) @ right


def _told(squares, variance, size=USUAL) -> tuple[np.ndarray, np.ndarray]:
    """Twice the log Bayes factor of entries, of a normal effect against none, and the effect."""
    signal = size**2 / (variance + size**2)
    return squares / variance * signal + np.log1p(-signal), (squares - variance) * signal


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
