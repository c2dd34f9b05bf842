"""Which way the edges of a skeleton point, as far as released pairs tell, and how sure that is.

Two neighbours of a variable that are not neighbours themselves either meet in it, a collider, or
are separated by sets that hold it. The log odds of each such triple come from a logistic model that
was fitted to simulated releases; graphs without cycles are then drawn with these odds, and an arrow
is as sure as it is frequent among the completed forms of what was drawn.
"""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dpcgd.graphs.cpdag import meek
from dpcgd.graphs.pc_search import Triple
from dpcgd.marginals.blocks import blocks_of, rows_of
from dpcgd.marginals.interactions import Marginals
from dpcgd.marginals.pair_features import LocalEvidence

__all__ = [
    "FEATURES",
    "arrow_confidence",
    "collider_log_odds",
    "expanded",
    "open_triples",
    "orient",
    "triple_features",
]

NEAR = 4
"""Strongest neighbours of either end that separating sets are made of."""


FEATURES = (
    "evidence at the least with the middle, less at the least without",
    "evidence at the least without the middle",
    "what the middle adds at the least without it",
    "what the middle adds at the least with it",
    "log-likelihood of independent ends, less of a product through the middle",
    "binary logarithm of the neighbours of the middle",
    "variables to make sets of",
)
"""Of a triple, in the order of the columns that the model reads; arsinh of the first five."""


WEIGHTS = np.array(
    [
        [0.1096, -0.2744, 0.08824, 0.2562, -0.08867, -1.657, 0.2039],
        [0.3324, 0.221, -0.1118, 0.3156, 0.6885, 5.83, -0.9731],
        [-0.6892, 0.4297, 0.9103, -0.4387, 0.03086, 0.6062, -0.4064],
    ]
)
"""Of the features, of their tanh and of tanh(feature / 2 - 1); scripts/make_orientation.py."""


INTERCEPT = -3.102


SHARPNESS = 0.8
"""The log odds are multiplied by this: triples share variables, and say some things twice."""


COOLING, DRAWS, APART = 60, 60, 2
"""Sweeps until draws count, draws, and sweeps from one to the next."""


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
    sure = arrow_confidence(marginals, joined, forbidden)
    arcs = joined & ~forbidden
    parents: list[set[int]] = [set() for _ in joined]
    for a, b in np.argwhere(arcs & ~arcs.T).tolist():
        parents[b].add(a)
    found = [(-sure[a, b], a, b) for a, b in np.argwhere(arcs & arcs.T & (sure > LEVEL)).tolist()]
    for _, a, b in sorted(found):
        if arcs[a, b] and not _leads(parents, b, a):
            parents[b].add(a)
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
    at first. Sharpened on simulated networks whose skeleton is known. Where an edge is wrong, its
    arrow is, too: :meth:`dpcgd.marginals.learned_pc.LearnedRelease.arrow_confidence` reckons with
    it, and chapter 15 shows how often it is right on fresh networks.
    """
    if forbidden is None:
        forbidden = np.zeros_like(joined)
    sure = np.zeros(joined.shape)
    if not joined.any():
        return sure
    odds = collider_log_odds(marginals, joined)
    known: dict[bytes, np.ndarray] = {}
    for parents in _drawn(joined, forbidden, odds):
        arcs = _colliders(parents, joined, forbidden)
        key = arcs.tobytes()
        if key not in known:
            arcs = meek(arcs, untested=forbidden & forbidden.T)
            known[key] = arcs & ~arcs.T
        sure += known[key]
    return sure / DRAWS


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
    rows = triple_features(marginals, joined, triples)
    parts = zip(expanded(rows), WEIGHTS, strict=True)
    log_odds = INTERCEPT + sum(part @ of for part, of in parts)
    return dict(zip(triples, np.asarray(log_odds).tolist(), strict=True))


def expanded(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the model is linear in: the features, and two squeezed versions of them."""
    return rows, np.tanh(rows), np.tanh(rows / 2 - 1)


def triple_features(marginals: Marginals, joined: np.ndarray, triples: list[Triple]) -> np.ndarray:
    """What the release says about each triple: a row each, a column for each of `FEATURES`.

    Parameters
    ----------
    marginals : Marginals
        With all pairs released.
    joined : boolean array of shape (d, d)
    triples : list of (x, middle, y)

    Returns
    -------
    array of shape (triples, features)

    Privacy
    -------
    Post-processing.
    """
    if not triples:
        return np.empty((0, len(FEATURES)))
    evidence = _Evidence(marginals, joined)
    return np.array([evidence.features(*triple) for triple in triples])


def open_triples(joined: np.ndarray) -> list[Triple]:
    """Two neighbours of a variable that are not joined, with the variable between them."""
    return [
        (x, c, y)
        for c in range(len(joined))
        for x, y in combinations(np.flatnonzero(joined[c]).tolist(), 2)
        if not joined[x, y]
    ]


class _Evidence:
    """How strongly two variables hang together given sets of their neighbours."""

    def __init__(self, marginals, joined):
        self.blocks, self.joined = blocks_of(marginals), joined
        strength = np.where(joined, self.blocks.sums(self.blocks.correlations**2), 0.0)
        self.local = LocalEvidence(self.blocks, strength)
        _, self.at = rows_of(marginals.levels)
        self.known: dict[tuple, float] = {}

    def given(self, x, y, s) -> float:
        key = (x, y, frozenset(s))
        if key not in self.known:
            self.known[key] = self.local.given(x, y, s)[0]
        return self.known[key]

    def features(self, x, c, y) -> list[float]:
        near = [v for a in (x, y) for v in self.local.order[a][:NEAR].tolist() if self.joined[a, v]]
        others = [v for v in dict.fromkeys(near) if v not in (x, y, c)]
        sets = [s for k in range(3) for s in combinations(others, k)]
        without, least = min((self.given(x, y, s), s) for s in sets)
        with_c, rest = min((self.given(x, y, (*s, c)), s) for s in sets if len(s) < 2)
        return [
            with_c - without,
            without,
            self.given(x, y, (*least, c)) - without,
            with_c - self.given(x, y, rest),
            self._likelihood(x, c, y),
            math.log2(self.joined[c].sum()),
            float(len(others)),
        ]

    def _likelihood(self, x, c, y) -> float:
        """Of correlations of 0 between the ends, less of the product of those with the middle."""
        b, at = self.blocks.correlations, self.at
        found, spread = b[at[x], at[y]], self.blocks.variances[at[x], at[y]]
        product = b[at[x], at[c]] @ b[at[c], at[y]]
        return math.asinh(float((((found - product) ** 2 - found**2) / (2 * spread)).sum()))


def _drawn(joined, forbidden, odds) -> Iterator[list[set[int]]]:
    """The parents of each variable in graphs drawn by the odds of their triples."""
    rng, parents = np.random.default_rng(0), _first(joined, forbidden)
    edges = np.argwhere(np.triu(joined)).tolist()
    for sweep in range(COOLING + DRAWS * APART):
        heat = 1 + HOTTEST * max(0.0, 1 - sweep / COOLING) ** 2
        chosen = rng.integers(len(edges), size=len(edges)).tolist()
        least = (heat / SHARPNESS * np.log1p(-rng.random(len(edges)))).tolist()
        for at, needed in zip(chosen, least, strict=True):
            a, b = edges[at]
            _turn(parents, a, b, forbidden, odds, needed)
        if sweep >= COOLING and (sweep - COOLING) % APART == 0:
            yield parents


def _turn(parents, a, b, forbidden, odds, needed):
    """Turn the arc between a and b if its triples gain as much, and no cycle comes of it."""
    if a not in parents[b]:
        a, b = b, a
    if forbidden[b, a]:
        return
    lost = sum(_log_odds(odds, a, b, other) for other in parents[b] if other != a)
    gained = sum(_log_odds(odds, b, a, other) for other in parents[a])
    if gained - lost < needed:
        return
    parents[b].remove(a)
    if _leads(parents, a, b):
        parents[b].add(a)
    else:
        parents[a].add(b)


def _log_odds(odds, x, c, y) -> float:
    """0 where the two ends are joined: nothing is to be seen then."""
    return odds.get((min(x, y), c, max(x, y)), 0.0)


def _leads(parents, a, b) -> bool:
    """Whether a directed path leads from a to b."""
    seen, left = {b}, [b]
    while left:
        for v in parents[left.pop()]:
            if v == a:
                return True
            if v not in seen:
                seen.add(v)
                left.append(v)
    return False


def _first(joined, forbidden) -> list[set[int]]:
    """Parents in a graph without cycles that has no forbidden arc, if there is one."""
    forced = joined & forbidden.T & ~forbidden
    left, parents = list(range(len(joined))), [set[int]() for _ in joined]
    while left:
        v = min(left, key=lambda v: int(forced[left, v].sum()))
        left.remove(v)
        for w in left:
            if joined[v, w]:
                parents[w].add(v)
    return parents


def _colliders(parents, joined, forbidden) -> np.ndarray:
    """The skeleton with the arrows into the colliders of a graph, and those that are known."""
    arcs, apart = joined & ~forbidden, ~(joined | (forbidden & forbidden.T))
    for c, of in enumerate(parents):
        for a, b in combinations(sorted(of), 2):
            if apart[a, b]:
                for v in (a, b):
                    arcs[c, v] &= not arcs[v, c]
    return arcs
