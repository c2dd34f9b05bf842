"""What a second reading of a release looks at: each pair, given the edges that a first one found.

The first reading has to guess which variables matter for a pair. The second one knows how likely
each of them is a neighbour.
"""

import numpy as np

from dpcgd.moments.blocks import Blocks
from dpcgd.reading.pair_features import STRONGEST, LocalEvidence

__all__ = ["SECOND_FEATURES", "log_odds", "second_features"]

LEAST_LIKELY = 0.003
"""Pairs that are less likely edges are not read again."""


LIKELY, MOST_LIKELY = 0.5, 8
"""A pair is conditioned on the likely neighbours of either, and on so many at most."""


SUREST = 1e-4
"""Probabilities of an edge, or of none, are no smaller as log odds."""


SECOND_FEATURES = (
    "log odds",
    "least given two likely",
    "effect at the least given two likely",
    *(f"given the {k} likeliest" for k in STRONGEST),
    *(f"effect given the {k} likeliest" for k in STRONGEST),
    "left open by the likeliest",
    "likeliest path",
    "second likeliest path",
    "expected paths",
    "least given the neighbours of one",
    "most given the neighbours of one",
    "effect at the least given neighbours",
    "left open by neighbours",
    "fewer other edges",
    "more other edges",
    "higher rank",
    "lower rank",
    "expected edges a variable",
)
"""Of a pair, in the order of the columns of :func:`second_features`."""


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Of probabilities, none beyond one in ten thousand.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5])).round(2)
    array([-9.21,  0.  ])
    """
    p = np.clip(probabilities, SUREST, 1 - SUREST)
    return np.log(p / (1 - p))


def second_features(blocks: Blocks, likely: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers about each pair that a first reading does not rule out.

    Parameters
    ----------
    blocks : Blocks
        Of a release of all pairs.
    likely : array of shape (d, d)
        Of an edge, as the first reading has it; symmetric, and zero on the diagonal.

    Returns
    -------
    pairs : array of shape (k, 2)
        Variables by number, x < y.
    features : array of shape (k, number of features)
        A column for each of `SECOND_FEATURES`.

    Privacy
    -------
    Post-processing of what has been released.
    """
    pairs = np.argwhere(np.triu(likely, 1) > LEAST_LIKELY)
    x, y = pairs.T
    of = likely[x, y]
    local = LocalEvidence(blocks, likely)
    others = likely.sum(axis=1)[pairs] - of[:, None]
    ranks = np.argsort(np.argsort(-likely, axis=1, kind="stable"), axis=1)
    ranks = np.column_stack([ranks[x, y], ranks[y, x]])
    columns = [
        log_odds(of)[:, None],
        local.features(pairs),
        _paths(likely, pairs),
        _given_neighbours(local, likely, pairs.tolist()),
        np.sort(others, axis=1),
        np.sort(ranks, axis=1),
        np.full((len(pairs), 1), likely.sum() / 2 / len(likely)),
    ]
    return pairs, np.hstack(columns).astype(np.float32)


def _paths(likely, pairs) -> np.ndarray:
    """Through a third variable: the best path's weaker link, the next one's, and paths in all."""
    found = np.zeros((len(pairs), 3))
    for row, (x, y) in zip(found, pairs.tolist(), strict=True):
        weaker = np.minimum(likely[x], likely[y])  # 0 at x and at y
        *_, row[1], row[0] = np.sort(np.append(weaker, 0.0))
        row[2] = likely[x] @ likely[y]
    return found


def _given_neighbours(local, likely, pairs) -> np.ndarray:
    """The association given the likely neighbours of one end, and of the other."""
    near = [_likely_neighbours(row) for row in likely]
    sides = []
    for one, other in ((0, 1), (1, 0)):
        sets = ([v for v in near[pair[one]] if v != pair[other]] for pair in pairs)
        questions = [(*pair, of[:MOST_LIKELY]) for pair, of in zip(pairs, sets, strict=True)]
        sides.append(local.given(questions))
    a, b = sides
    least = np.where((a[:, 0] < b[:, 0])[:, None], a, b)
    most = np.maximum(a[:, 0], b[:, 0])
    return np.column_stack([least[:, 0], most, least[:, 1:]])


def _likely_neighbours(row) -> list[int]:
    """The likeliest first."""
    order = np.argsort(-row, kind="stable")[: MOST_LIKELY + 1]
    return [v for v in order.tolist() if row[v] > LIKELY]
