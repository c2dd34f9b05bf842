"""Which way the edges of a skeleton point, as far as released pairs tell, and how sure that is.

Two neighbours of a variable that are not neighbours themselves either meet in it, a collider, or
are separated by sets that hold it. The log odds of each such triple come from boosted trees,
trained on simulated releases; graphs without cycles are then drawn with these odds, and an arrow is
as sure as it is frequent among the completed forms of what was drawn.
"""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from scipy.special import logit

from dpcgd.graphs.cpdag import meek
from dpcgd.graphs.pc_search import Triple
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.reading.pair_features import Columns, LocalEvidence, columns_of
from dpcgd.reading.reader import trained_on

__all__ = [
    "arrow_confidence",
    "collider_log_odds",
    "open_triples",
    "orient",
    "pointed",
    "triple_features",
]

NEAR = 4
"""Strongest neighbours of either end that separating sets are made of."""


COOLING, DRAWS, APART = 60, 60, 2
"""Sweeps until draws count, draws, and sweeps from one to the next."""


WEAKEST = 1e-6
"""Added to squared correlations, whose logarithms are taken."""


HOTTEST = 10.0
"""How much more temperature there is at first."""


LEVEL = 0.4
"""An edge gets an arrow that is surer than this: for F1, an arrow left out costs more than one
too many."""


def orient(marginals: Marginals, joined: np.ndarray, forbidden: np.ndarray) -> np.ndarray:
    """Arrows of a skeleton where they are sure enough, the surest first.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    joined, forbidden : boolean array of shape (d, d)

    Returns
    -------
    boolean array of shape (d, d)
        An arc each way for an edge without direction; the arrows form no cycle but one that
        forbidden arcs force.

    Privacy
    -------
    Post-processing.
    """
    return pointed(arrow_confidence(marginals, joined, forbidden), joined, forbidden, LEVEL)


def pointed(
    sure: np.ndarray, joined: np.ndarray, forbidden: np.ndarray, level: float
) -> np.ndarray:
    """Arrows of a skeleton that are surer than a level, the surest first.

    Parameters
    ----------
    sure : array of shape (d, d)
        Of a -> b at [a, b].
    joined, forbidden : boolean array of shape (d, d)
    level : float

    Returns
    -------
    boolean array of shape (d, d)
        As of :func:`orient`.
    """
    arcs = joined & ~forbidden
    parents = _bits((arcs & ~arcs.T).T)
    open_arcs = np.argwhere(arcs & arcs.T & (sure > level)).tolist()
    for _, a, b in sorted((-sure[a, b], a, b) for a, b in open_arcs):
        if arcs[a, b] and not leads(parents, b, a):
            parents[b] |= 1 << a
            arcs[b, a] = False
    return arcs


def arrow_confidence(
    marginals: Marginals, joined: np.ndarray, forbidden: np.ndarray | None = None
) -> np.ndarray:
    """How likely the completed form of the true graph has each arrow, given the release.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    joined : boolean array of shape (d, d)
        The skeleton.
    forbidden : boolean array of shape (d, d), optional

    Returns
    -------
    array of shape (d, d)
        Of a -> b at [a, b]; 0 where nothing is joined. What a - b lacks to 1 in both directions
        together is the chance of an edge without direction.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing. What is drawn has a seed of its own: one release, one answer.

    Notes
    -----
    Reversals of single arcs, accepted by the odds of the triples that change (Metropolis), cooled
    at first: :prf:ref:`thm-drawn-graphs`. Where an edge is wrong, its arrow is, too; so
    :attr:`~dpcgd.reading.release.MarginalRelease.arrow_shares` multiplies both probabilities. The
    chapter on arrows shows how often arrows are right on fresh networks.
    """
    if forbidden is None:
        forbidden = np.zeros_like(joined)
    if not joined.any():
        return np.zeros(joined.shape)
    odds = collider_log_odds(marginals, joined)
    graphs = np.array([_array(bits) for bits in drawn_graphs(joined, forbidden, odds)])
    arcs = completed(graphs, joined, forbidden)
    return (arcs & ~arcs.swapaxes(1, 2)).mean(axis=0)


def collider_log_odds(marginals: Marginals, joined: np.ndarray) -> dict[Triple, float]:
    """Log odds of a collider in each variable that two others, not joined, are joined to.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    joined : boolean array of shape (d, d)

    Returns
    -------
    dict
        From (x, middle, y).

    Privacy
    -------
    Post-processing.
    """
    triples = open_triples(joined)
    trees = trained_on("colliders.json").trees["trees"]
    log_odds = trees.log_odds(triple_features(marginals, joined, triples))
    return dict(zip(triples, log_odds.tolist(), strict=True))


def triple_features(marginals: Marginals, joined: np.ndarray, triples: list[Triple]) -> Columns:
    """What the release says about each triple: numbers by name, a row each.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    joined : boolean array of shape (d, d)
    triples : list of (x, middle, y)

    Returns
    -------
    dict
        From the name of each to its column.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    The log-likelihood among them is that of :prf:ref:`thm-triple-product`. Evidence and
    log-likelihood are taken by arsinh; correlations, squared and summed over contrasts, noise and
    records by their logarithms.
    """
    blocks = blocks_of(marginals)
    effects = blocks.sums(blocks.correlations**2)
    strength, near = np.log10(effects + WEAKEST), joined.sum(axis=1)
    x, c, y = np.array(triples, int).reshape(-1, 3).T
    noise = float(np.median(blocks.variances))
    local = LocalEvidence(blocks, np.where(joined, effects, 0.0))
    others = [_others(local, joined, *triple) for triple in triples]
    numbers = {
        **_given_sets(local, triples, others),
        "log-likelihood of independent ends, less of a product through the middle": [
            _likelihood(blocks, *triple) for triple in triples
        ],
        "neighbours of the middle": near[c],
        "variables to make sets of": [*map(len, others)],
        "correlation with the middle, the weaker": np.minimum(strength[x, c], strength[c, y]),
        "correlation with the middle, the stronger": np.maximum(strength[x, c], strength[c, y]),
        "correlation of the ends": strength[x, y],
        "neighbours of an end, the fewer": np.minimum(near[x], near[y]),
        "neighbours of an end, the more": np.maximum(near[x], near[y]),
        "neighbours of both ends": (joined.astype(int) @ joined)[x, y],
        "noise over sampling": math.log10(noise * blocks.n),
        "records": math.log10(blocks.n),
    }
    return columns_of(numbers, len(triples))


def open_triples(joined: np.ndarray) -> list[Triple]:
    """Two neighbours of a variable that are not joined, with the variable between them."""
    return [
        (x, c, y)
        for c in range(len(joined))
        for x, y in combinations(np.flatnonzero(joined[c]).tolist(), 2)
        if not joined[x, y]
    ]


def _given_sets(local, triples, others) -> Columns:
    """What sets of others with the middle and without it leave of the ends."""
    sets = [[s for k in range(3) for s in combinations(near, k)] for near in others]
    middles = [c for _, c, _ in triples]
    with_c = [[(*s, c) for s in few if len(s) < 2] for c, few in zip(middles, sets, strict=True)]
    without, apart = _least(local, triples, sets)
    held, apart_with_c = _least(local, triples, with_c)
    added, _ = _least(local, triples, [[(*s, c)] for c, s in zip(middles, apart, strict=True)])
    taken, _ = _least(local, triples, [[s[:-1]] for s in apart_with_c])
    return {
        "evidence at the least with the middle, less at the least without": held - without,
        "evidence at the least without the middle": without,
        "what the middle adds at the least without it": added - without,
        "what the middle adds at the least with it": held - taken,
    }


def _least(local, triples, sets) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The least evidence that any of its sets leaves between the ends of each triple, and where."""
    asked = [(x, y, s) for (x, _, y), few in zip(triples, sets, strict=True) for s in few]
    evidence = iter(local.given(asked)[:, 0].tolist())
    least = [min((next(evidence), s) for s in few) for few in sets]
    return np.array([value for value, _ in least]), [where for _, where in least]


def _others(local, joined, x, c, y) -> list[int]:
    """What separating sets are made of."""
    near = [v for a in (x, y) for v in local.nearest[a][:NEAR] if joined[a, v]]
    return [v for v in dict.fromkeys(near) if v not in (x, y, c)]


def _likelihood(blocks, x, c, y) -> float:
    """Of correlations of 0 between the ends, less of the product of those with the middle."""
    b, (x, c, y) = blocks.correlations, (blocks.rows[v] for v in (x, c, y))
    ends, spread = b[x, y], blocks.variances[x, y]
    product = b[x, c] @ b[c, y]
    return math.asinh(float((((ends - product) ** 2 - ends**2) / (2 * spread)).sum()))


def drawn_graphs(
    joined: np.ndarray, forbidden: np.ndarray, odds: dict[Triple, float]
) -> Iterator[list[int]]:
    """Graphs drawn by the odds of their colliders: the parents of each variable, as bits.

    Parameters
    ----------
    joined, forbidden : boolean array of shape (d, d)
    odds : dict
        Log odds of a collider, from (x, middle, y).
    """
    rng, parents = np.random.default_rng(0), _bits(_first(joined, forbidden))
    edges, banned = np.argwhere(np.triu(joined)).tolist(), forbidden.tolist()
    beside: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (x, c, y), value in sorted(odds.items()):
        beside.setdefault((c, x), []).append((y, value))
        beside.setdefault((c, y), []).append((x, value))
    beside = {key: sorted(others) for key, others in beside.items()}
    for sweep in range(COOLING + DRAWS * APART):
        heat = 1 + HOTTEST * max(0.0, 1 - sweep / COOLING) ** 2
        chosen = rng.integers(len(edges), size=len(edges)).tolist()
        draws = rng.random(len(edges))  # a lone edge would turn at each step
        needed = (heat * (logit(draws) if len(edges) == 1 else np.log1p(-draws))).tolist()
        for edge, least in zip(chosen, needed, strict=True):
            a, b = edges[edge]
            _turn(parents, a, b, least, banned, beside)
        if sweep >= COOLING and (sweep - COOLING) % APART == 0:
            yield parents


def _turn(parents, a, b, least, banned, beside):
    """Turn an arc if its triples gain as much as is needed, and no cycle comes of it."""
    if not parents[b] >> a & 1:
        a, b = b, a
    if banned[b][a]:
        return
    gained = sum([value for v, value in beside.get((a, b), ()) if parents[a] >> v & 1])
    lost = sum([value for v, value in beside.get((b, a), ()) if parents[b] >> v & 1])
    if gained - lost < least:
        return
    parents[b] ^= 1 << a
    if leads(parents, a, b):
        parents[b] ^= 1 << a
    else:
        parents[a] ^= 1 << b


def leads(parents: list[int], a: int, b: int) -> bool:
    """Whether a is an ancestor of b; `parents` are bits.

    Examples
    --------
    >>> leads([0, 1, 2], 0, 2), leads([0, 1, 2], 2, 0)
    (True, False)
    """
    above = left = parents[b]
    while left and not above >> a & 1:
        v = left.bit_length() - 1
        new = parents[v] & ~above
        above |= new
        left = left ^ 1 << v | new
    return bool(above >> a & 1)


def completed(graphs: np.ndarray, joined: np.ndarray, forbidden: np.ndarray) -> np.ndarray:
    """Arcs of the completed forms of graphs: colliders, what is known, and what these force.

    Parameters
    ----------
    graphs : boolean array of shape (k, d, d)
        Whether a is a parent of b at [b, a].
    joined, forbidden : boolean array of shape (d, d)

    Returns
    -------
    boolean array of shape (k, d, d)
        An arc each way for an edge without direction.
    """
    possible, apart = joined & ~forbidden, ~(joined | forbidden & forbidden.T)
    np.fill_diagonal(apart, False)
    collides = graphs & (graphs.astype(np.float32) @ apart > 0)
    arcs = possible & ~(collides & possible.T)
    return np.array([meek(some, untested=forbidden & forbidden.T) for some in arcs])


def _array(bits) -> np.ndarray:
    """Parents of each variable, a row each, from bits."""
    return np.array([[row >> v & 1 for v in range(len(bits))] for row in bits], bool)


def _bits(parents) -> list[int]:
    """Parents of each variable as bits, from a row each."""
    return [sum(1 << v for v in np.flatnonzero(row).tolist()) for row in parents]


def _first(joined, forbidden) -> np.ndarray:
    """Parents in a graph without cycles that has no forbidden arc, if there is one."""
    forced = joined & forbidden.T & ~forbidden
    left, parents = list(range(len(joined))), np.zeros_like(joined)
    while left:
        v = min(left, key=lambda v: int(forced[left, v].sum()))
        left.remove(v)
        parents[left, v] = joined[v, left]
    return parents
