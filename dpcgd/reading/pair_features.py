"""Features of each pair of variables, from one noisy release of all pairs.

All features are computed from released moments, the deviations of their noise, n and the levels.
The contrasts of each variable are rotated and scaled so that their covariance is the identity. The
correlations of two variables then form a block, and the variance of each entry is known.

The first reading has to guess which variables matter for a pair. The second reading knows how
likely each of them is a neighbour.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise, permutations, zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from dpcgd.moments.clipped_moments import Blocks, blocks_of
from dpcgd.moments.interactions import Marginals, NoisyTable, contrasts

__all__ = ["Columns", "PRIOR", "LocalEvidence", "candidates", "columns_of", "dependence"]
__all__ += ["interplay", "least_noise", "log_odds", "pair_features", "second_features"]

Columns = dict[str, np.ndarray]
"""Features of pairs or triples by name, in single precision: a row for each pair or triple."""


RIDGES = (0.5, 2.0, 8.0)
"""Ridges, in units of the noise's deviation times the root of the number of contrasts. This unit is
half of what noise adds to the largest eigenvalue."""


LEAST_RIDGE = 1e-12
"""The least ridge; without it there would be none if nothing varies and there is no noise."""


USUAL, SMALL = 0.05, 0.015
"""Deviations of a correlation at an edge, as the Bayes factors assume them."""


PRIOR = 0.09
"""Prior probability of an edge, 2 e^-3 / (1 + 2 e^-3) as in a graph posterior of two variables."""


PSEUDO_PAIRS = 1.1
"""Number of pairs that the prior is worth when the share of dependent pairs is estimated."""


EFFECTS = np.geomspace(0.01, 0.6, 8)
"""Deviations of a correlation between dependent variables, all with the same prior probability."""


STEPS = 100
"""Steps of the estimate of the share of dependent pairs; each cuts its error by the same factor."""


LARGEST = 300.0
"""Bound on log-likelihood ratios, so that their exponentials are finite numbers."""


SHORTENED = 0.003
"""The largest correlation, nearly, that shortening of long records gives independent variables. It
was measured with skewed variables at a million records."""


SEEN = 0.2
"""If the noise of all entries of a pair deviates by more, the model does not see public facts. All
pairs of a table share these facts, and a model would recognise tables by them."""


NEAREST = 8
"""A pair is a candidate if either is among so many strongest neighbours of the other."""


NEAR = 24
"""Number of strongest neighbours of a third variable whose pairs are compared given it."""


LEAST_OPEN = 0.02
"""The least share of a variance that counts as unexplained."""


MOST_NUMBERS = 1 << 20
"""The largest number of entries of matrices that are computed at once."""


NARROW = 32
"""Variables of up to so many entries are padded alike, wider ones to twice as many, and so on."""

STRONGEST = (1, 2, 3, 5)
"""Sizes of the sets of strongest neighbours that a pair is conditioned on."""


FEW = 3
"""Number of strongest neighbours of either variable that sets of two are made of."""


FIRST_NAMES = ("least given two", "strongest", "left open")
SECOND_NAMES = ("least given two likely", "likeliest", "left open by the likeliest")
"""Parts of the names of the columns of :meth:`LocalEvidence.features`, for each reading."""


LEAST_LIKELY = 0.003
"""The least probability of an edge for a pair to be read a second time."""


LIKELY, MOST_LIKELY = 0.5, 8
"""The least probability of a neighbour to be conditioned on, and the largest number of them."""


SUREST = 1e-4
"""The least probability of an edge, and of no edge, for log odds."""


def columns_of(numbers: Mapping[str, ArrayLike], rows: int) -> Columns:
    """Columns with so many rows; a single number fills its column.

    Examples
    --------
    >>> columns_of({"variables": 3, "effect": [0.5, 0.25]}, 2)["variables"]
    array([3., 3.], dtype=float32)
    """
    single = {name: np.asarray(values, np.float32) for name, values in numbers.items()}
    return {name: np.broadcast_to(values, rows) for name, values in single.items()}


def _of_both(what, *values) -> dict[str, np.ndarray]:
    """Two columns for pairs: the smaller of two numbers and the larger one."""
    return {f"{what} one": np.minimum(*values), f"{what} the other": np.maximum(*values)}


def candidates(*strengths: np.ndarray) -> np.ndarray:
    """Pairs (x < y) with one variable among the nearest of the other; shape (pairs, 2)."""
    d = len(strengths[0])
    near = np.zeros((d, d), bool)
    for strength in strengths:
        ranked = strength - np.diag(np.full(d, np.inf))
        nearest = np.argsort(-ranked, axis=1, kind="stable")[:, :NEAREST]
        np.put_along_axis(near, nearest, True, axis=1)
    return np.argwhere(np.triu(near | near.T, 1))


def pair_features(marginals: Marginals) -> tuple[np.ndarray, Columns]:
    """Features of each pair that may be an edge, computed once.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.

    Returns
    -------
    pairs : array of shape (k, 2)
        Variables by number, x < y. Pairs that are left out are far from being an edge.
    features : dict
        Map from the name of each feature to its column.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.
    """
    return marginals.worked_out(("features",), lambda: _features_of(marginals))


def _features_of(marginals) -> tuple[np.ndarray, Columns]:
    blocks, d = blocks_of(marginals), len(marginals.levels)
    squares = blocks.correlations**2
    evidence, effect = map(blocks.sums, _evidence_and_effect(squares, blocks.variances))
    weak_evidence, _ = map(blocks.sums, _evidence_and_effect(squares, blocks.variances, SMALL))
    association = np.arcsinh(evidence)
    partials = _partials(blocks)
    partial = partials["partial, ridge 2"]
    largest = np.maximum(partial.max(axis=1)[:, None], partial.max(axis=1))
    relative = partial / np.maximum(largest, 1e-12)
    least, second, at_least, path = _given_one(blocks, association, effect)
    pairs = candidates(partial, least)
    x, y = pairs.T
    ranks = np.argsort(np.argsort(-partial, axis=1), axis=1)
    levels, tables = np.array(marginals.levels), map(marginals.table, range(d))
    evenness = np.array([-(p @ np.log(p)) / math.log(max(2, len(p))) for p in tables])
    kept = np.array(marginals.widths) / np.maximum(levels - 1, 1)
    noise = least_noise(blocks)[x, y]
    seen = noise < SEEN**2
    numbers = {
        "log odds of dependence": np.where(seen, logit(dependence(marginals)[x, y]), 0.0),
        "association": association[x, y],
        "weak association": np.arcsinh(weak_evidence)[x, y],
        "effect": effect[x, y],
        **{name: values[x, y] for name, values in partials.items()},
        "partial, over the largest of either": relative[x, y],
        **_of_both("rank for", ranks[x, y], ranks[y, x]),
        "least given one": least[x, y],
        "second least given one": second[x, y],
        "effect at the least given one": at_least[x, y],
        **LocalEvidence(blocks, partial).features(pairs),
        "strongest path": path[x, y],
        "variables": d,
        "records": seen * math.log10(blocks.n),
        "noise over sampling": seen * np.log10(noise * blocks.n),
        "deviation of an entry": np.log10(np.minimum(noise, 1.0)) / 2,
        **_of_both("levels of", *levels[pairs].T),
        **_of_both("share of contrasts kept of", *(seen * kept[pairs].T)),
        **_of_both("evenness of", *evenness[pairs].T),
        "clear pairs a variable": np.sum(np.triu(association, 1) > math.asinh(10)) / d,
    }
    return pairs, columns_of(numbers, len(pairs))


def dependence(marginals: Marginals) -> np.ndarray:
    """Probability that two variables depend on each other, from their released pair alone.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.

    Returns
    -------
    array of shape (d, d)
        Symmetric. It is the prior if the noise hides everything, near zero if the release shows
        that there is no association, and near one if it shows an association.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Empirical Bayes: the share of dependent pairs is the likeliest for this release, and at most the
    prior. Chapter 12.
    """
    blocks = blocks_of(marginals)
    ratios = np.triu(_log_ratio(blocks.correlations, blocks.variances, blocks.sums), 1)
    ratios += ratios.T  # the halves of the blocks may differ in last digits
    pairs = np.triu_indices(len(ratios), 1)
    share = PRIOR
    for _ in range(STEPS):
        likely = expit(logit(share) + ratios[pairs])
        share = (PRIOR * PSEUDO_PAIRS + likely.sum()) / (PSEUDO_PAIRS + len(pairs[0]))
    return expit(logit(min(share, PRIOR)) + np.clip(ratios, -LARGEST, LARGEST / 10))


def interplay(table: NoisyTable) -> np.ndarray:
    """Log-likelihood ratio of an interaction of two variables with some third one.

    An exclusive or has no dependent pair; it shows only in such an interaction.

    Parameters
    ----------
    table : NoisyTable

    Returns
    -------
    array of shape (d, d)
        Symmetric; the mean likelihood ratio over third variables, as a logarithm. It is minus
        infinity without a third variable that has two levels or more.

    Privacy
    -------
    Post-processing.
    """
    d, n = len(table.levels), table.n
    total = np.full((d, d), -np.inf)
    scaled = {
        v: (contrasts(levels) - table.moment(v).values)
        @ table.uncorrelated(v, table.least_variance(v))
        for v, levels in enumerate(table.levels)
        if levels > 1
    }
    for triple in combinations(scaled, 3):
        margin = table.counts.sum(axis=tuple({*range(d)} - {*triple}))
        own = [scaled[v] for v in triple]
        correlations = np.einsum("xyz,xa,yb,zc->abc", margin / n, *own)
        wide = np.einsum("a,b,c->abc", *((columns**2).sum(axis=0) for columns in own))
        noise = table.moment(*triple).deviation ** 2 * wide
        ratio = _log_ratio(correlations, noise + wide / n**2 + 1 / n, np.sum)
        for pair in permutations(triple, 2):
            total[pair] = np.logaddexp(total[pair], ratio)
    return total - math.log(max(1, d - 2))


def _log_ratio(correlations, variances, sums) -> Any:
    """Log-likelihood ratio of dependence to independence for each block of correlations.

    Under dependence the effect is in all entries of the block alike, or in one of them. `sums`
    gives the sum over each block.
    """
    entries = sums(np.ones_like(variances))
    total = np.full_like(entries, -np.inf)
    variances = variances + SHORTENED**2
    for effect in EFFECTS:
        signal = effect**2 / (variances + effect**2)
        entry = (correlations**2 / variances * signal + np.log1p(-signal)) / 2
        together = sums(entry)
        alone = np.log(sums(np.exp(np.minimum(entry, LARGEST))) / entries)
        total = np.logaddexp.reduce([total, together, alone])
    return total - np.log(2 * len(EFFECTS))


def least_noise(blocks: Blocks) -> np.ndarray:
    """The least variance of an entry in the block of each pair; shape (d, d)."""
    starts = [rows.start for rows in blocks.rows]
    return np.minimum.reduceat(np.minimum.reduceat(blocks.variances, starts, 0), starts, 1)


def _partials(blocks) -> Columns:
    """Squared partial correlations given all other variables, from inverses with a ridge.

    In released units the noise of all entries is the same. Variance below the noise does not count.
    """
    sampling = np.diag(blocks.covariances).mean() / math.sqrt(blocks.n)
    noise = math.hypot(float(blocks.deviations.max()), sampling)
    values, vectors = np.linalg.eigh(blocks.covariances)
    unit = noise * math.sqrt(len(values))
    return {
        f"partial, ridge {ridge:g}": _partial(blocks, values, vectors, ridge * unit)
        for ridge in RIDGES
    }


def _partial(blocks, values, vectors, ridge) -> np.ndarray:
    extra = max(LEAST_RIDGE, ridge)
    scaled = (vectors / np.maximum(values + extra, extra / 2)) @ vectors.T
    scales = []
    for rows in blocks.rows:
        own, turned = np.linalg.eigh(scaled[rows, rows])
        known = np.clip(1 - extra * own, 0, 1)  # 0 if the ridge hides a variance
        scales.append((turned * (known / np.sqrt(own))) @ turned.T)
    for rows, scale in zip(blocks.rows, scales, strict=True):
        scaled[rows] = scale @ scaled[rows]
    for rows, scale in zip(blocks.rows, scales, strict=True):
        scaled[:, rows] = scaled[:, rows] @ scale
    squares = blocks.sums(scaled**2)
    np.fill_diagonal(squares, 0.0)
    return squares


def _given_one(blocks, association, effect) -> list[np.ndarray]:
    """Given one other variable: the least association, the next, its effect, the strongest path."""
    least, at_least = association.copy(), effect.copy()
    second, path = np.full_like(least, np.inf), np.zeros_like(least)
    for z in range(len(blocks.rows)):
        near = np.sort(np.argsort(-effect[z], kind="stable")[: NEAR + 1])
        near = near[near != z]
        pairs = np.ix_(near, near)
        evidence, size = _given_this(blocks, z, near)
        smaller = evidence < least[pairs]
        second[pairs] = np.minimum(second[pairs], np.maximum(least[pairs], evidence))
        least[pairs] = np.where(smaller, evidence, least[pairs])
        at_least[pairs] = np.where(smaller, size, at_least[pairs])
        path[pairs] = np.maximum(path[pairs], np.minimum.outer(effect[z, near], effect[z, near]))
    second = np.where(np.isfinite(second), second, association)
    upper = [np.triu(values, 1) for values in (least, second, at_least, path)]
    return [values + values.T for values in upper]


def _given_this(blocks, z, near) -> tuple[np.ndarray, np.ndarray]:
    """The associations and effects of all pairs of some variables, given one variable."""
    some = np.concatenate([np.arange(len(blocks.noise))[blocks.rows[v]] for v in near])
    starts = np.cumsum([0, *(blocks.rows[v].stop - blocks.rows[v].start for v in near[:-1])])
    own = blocks.rows[z]
    inner, to_z = blocks.correlations[np.ix_(some, some)], blocks.correlations[some, own]
    noise, blurred = blocks.noise[np.ix_(some, some)], blocks.noise[some, own]
    open_share = np.clip(1 - (to_z**2).sum(axis=1), LEAST_OPEN, 1.0)
    both = np.outer(open_share, open_share)
    through = to_z**2 @ blurred.T
    q = (inner - to_z @ to_z.T) / np.sqrt(both)
    parts = _evidence_and_effect(q**2, (noise + through + through.T) / both + 1 / blocks.n)
    evidence, size = (np.add.reduceat(np.add.reduceat(p, starts, 0), starts, 1) for p in parts)
    return np.arcsinh(evidence), size


class LocalEvidence:
    """Conditional associations of single pairs, given sets of strong neighbours.

    Parameters
    ----------
    blocks : Blocks
    strength : array of shape (d, d)
        Strength of each pair as neighbours.
    """

    def __init__(self, blocks, strength):
        self.nearest = np.argsort(-strength, axis=1, kind="stable").tolist()
        noise = blocks.variances * ~np.eye(len(blocks.noise), dtype=bool)
        self.ridge = np.sqrt(noise.mean(axis=1))
        self.n, size = blocks.n, len(blocks.noise)
        self.correlations = np.pad(blocks.correlations, (0, 1))
        self.noise = np.pad(blocks.noise, (0, 1))
        of_each = [range(size)[rows] for rows in blocks.rows]
        self.rows = np.array([*zip(*zip_longest(*of_each, (), fillvalue=size), strict=True)])
        self.sizes = (self.rows < size).sum(axis=1)
        doubled = NARROW << np.ceil(np.log2(np.maximum(self.sizes / NARROW, 1))).astype(int)
        self.padded_to = np.minimum(doubled, self.rows.shape[1])

    def features(self, pairs: np.ndarray, names: Sequence[str] = FIRST_NAMES) -> Columns:
        """Columns of pairs that take conditioning sets of their own; `names` are parts of names."""
        two, nearest, left = names
        kinds = [two, f"effect at the {two}", *(f"given the {k} {nearest}" for k in STRONGEST)]
        kinds += [*(f"effect given the {k} {nearest}" for k in STRONGEST), left]
        questions, starts = [], [0]
        for x, y in pairs.tolist():
            near = [[v for v in self.nearest[a] if v not in (x, y)] for a in (x, y)]
            sets = [dict.fromkeys(near[0][:k] + near[1][:k]) for k in (*STRONGEST, FEW)]
            questions += [(x, y, tuple(s)) for s in sets[:-1]]
            questions += [(x, y, two) for two in combinations(sets[-1], 2)]
            starts.append(len(questions))
        answers, rows, many = self.given(questions), [], len(STRONGEST)
        for start, end in pairwise(starts):
            strongest, twos = answers[start : start + many], answers[start + many : end]
            least = twos[twos[:, 0].argmin()] if len(twos) else strongest[0]
            rows.append([*least[:2], *strongest[:, 0], *strongest[:, 1], strongest[1, 2]])
        return dict(zip(kinds, np.array(rows).reshape(-1, len(kinds)).T, strict=True))

    def given(self, questions: Sequence[tuple[int, int, Sequence[int]]]) -> np.ndarray:
        """Association of x and y given some others, a row for each question.

        The columns are the evidence, the effect, and the unexplained share of x or y.
        """
        x, y = (np.array([question[side] for question in questions], int) for side in (0, 1))
        sets = [question[2] for question in questions]
        most = max([1, *map(len, sets)])
        padded = np.array([[*s, *[-1] * (most - len(s))] for s in sets], int).reshape(len(x), most)
        kinds = np.array([self.sizes[padded].sum(axis=1), self.padded_to[x], self.padded_to[y]])
        answers = np.empty((len(x), 3))
        for kind in np.unique(kinds, axis=1).T:
            size, wide_x, wide_y = kind.tolist()
            alike = np.flatnonzero((kind == kinds.T).all(axis=1))
            parts = -(-len(alike) * kind.max().item() ** 2 // MOST_NUMBERS)
            for some in np.array_split(alike, parts):
                given = np.sort(self.rows[padded[some]].reshape(len(some), -1))
                own = self.rows[x[some], :wide_x], self.rows[y[some], :wide_y]
                answers[some] = self._alike(*own, given[:, :size])  # padding comes last
        return answers

    def _alike(self, x, y, given) -> np.ndarray:
        """The answers to questions given equally many rows; `x` and `y` are rows, padded."""
        b, v, size = self.correlations, self.noise, given.shape[1]
        inner = b[given[:, :, None], given[:, None]]
        inner[:, range(size), range(size)] += self.ridge[given] * math.sqrt(size)
        to_x, to_y = b[given[:, :, None], x[:, None]], b[given[:, :, None], y[:, None]]
        slopes = _solved(inner, np.concatenate([to_x, to_y], axis=2))
        slope_x, slope_y = slopes[:, :, : x.shape[1]], slopes[:, :, x.shape[1] :]
        open_x, open_y = self._left_open(x, to_x, slope_x), self._left_open(y, to_y, slope_y)
        q = b[x[:, :, None], y[:, None]] - to_x.swapaxes(1, 2) @ slope_y
        variance = v[x[:, :, None], y[:, None]] + v[x[:, :, None], given[:, None]] @ slope_y**2
        variance += (v[y[:, :, None], given[:, None]] @ slope_x**2).swapaxes(1, 2)
        both = (open_x * open_y)[:, None, None]
        real = (x < len(self.ridge))[:, :, None] & (y < len(self.ridge))[:, None]
        parts = _evidence_and_effect(q**2 / both, variance / both + 1 / self.n)
        evidence, effect = ((part * real).sum(axis=(1, 2)) for part in parts)
        return np.column_stack([np.arcsinh(evidence), effect, np.minimum(open_x, open_y)])

    def _left_open(self, rows, cross, slopes) -> np.ndarray:
        """Share of the variance of these rows that the other rows do not explain."""
        left = np.clip(1 - (cross * slopes).sum(axis=1), LEAST_OPEN, 1.0)
        real = rows < len(self.ridge)
        return (left * real).sum(axis=1) / real.sum(axis=1)


def _solved(matrices, right) -> np.ndarray:
    """Solutions of linear equations; least-squares solutions if a matrix is singular."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(matrices) @ right


def _evidence_and_effect(squares, variance, size=USUAL) -> tuple[np.ndarray, np.ndarray]:
    """Twice the log Bayes factor of a normal effect against none, by entry, and the effect."""
    signal = size**2 / (variance + size**2)
    return squares / variance * signal + np.log1p(-signal), (squares - variance) * signal


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Log odds of probabilities, after these are clipped at one in ten thousand.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5])).round(2)
    array([-9.21,  0.  ])
    """
    p = np.clip(probabilities, SUREST, 1 - SUREST)
    return np.log(p / (1 - p))


def second_features(blocks: Blocks, likely: np.ndarray) -> tuple[np.ndarray, Columns]:
    """Features of each pair that the first reading does not rule out.

    Parameters
    ----------
    blocks : Blocks
        The blocks of a release of all pairs.
    likely : array of shape (d, d)
        Probabilities of edges from the first reading; symmetric, and zero on the diagonal.

    Returns
    -------
    pairs : array of shape (k, 2)
        Variables by number, x < y.
    features : dict
        Map from the name of each feature to its column.

    Privacy
    -------
    Post-processing of what has been released.
    """
    pairs = np.argwhere(np.triu(likely, 1) > LEAST_LIKELY)
    x, y = pairs.T
    own = likely[x, y]
    local = LocalEvidence(blocks, likely)
    others = likely.sum(axis=1)[pairs] - own[:, None]
    ranks = np.argsort(np.argsort(-likely, axis=1, kind="stable"), axis=1)
    weaker = np.sort(np.minimum(likely[x], likely[y]), axis=1)  # it is 0 at x and at y
    numbers = {
        "log odds": log_odds(own),
        **local.features(pairs, SECOND_NAMES),
        "likeliest path": weaker[:, -1],
        "second likeliest path": weaker[:, -2],
        "expected paths": [likely[a] @ likely[b] for a, b in pairs],
        **_given_neighbours(local, likely, pairs.tolist()),
        "fewer other edges": others.min(axis=1),
        "more other edges": others.max(axis=1),
        "higher rank": np.minimum(ranks[x, y], ranks[y, x]),
        "lower rank": np.maximum(ranks[x, y], ranks[y, x]),
        "expected edges a variable": likely.sum() / 2 / len(likely),
    }
    return pairs, columns_of(numbers, len(pairs))


def _given_neighbours(local, likely, pairs) -> Columns:
    """The associations given the likely neighbours of either end of a pair."""
    near = [[v for v in order if likely[a, v] > LIKELY] for a, order in enumerate(local.nearest)]
    sides = []
    for end, other in ((0, 1), (1, 0)):
        sets = ([v for v in near[pair[end]] if v != pair[other]] for pair in pairs)
        questions = [(*pair, s[:MOST_LIKELY]) for pair, s in zip(pairs, sets, strict=True)]
        sides.append(local.given(questions))
    a, b = sides
    least = np.where((a[:, 0] < b[:, 0])[:, None], a, b)
    return {
        "least given the neighbours of one": least[:, 0],
        "most given the neighbours of one": np.maximum(a[:, 0], b[:, 0]),
        "effect at the least given neighbours": least[:, 1],
        "left open by neighbours": least[:, 2],
    }
