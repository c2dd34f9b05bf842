"""Which way the edges of a skeleton point, as far as released pairs tell, and how sure that is.

Two neighbours of a variable that are not neighbours themselves either meet in it, a collider, or
are separated by sets that hold it. The log odds of each such triple come from boosted trees,
trained on simulated releases; graphs without cycles are then drawn with these odds, and an arrow is
as sure as it is frequent among the completed forms of what was drawn.
"""

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np

from dpcgd.graphs.pc_search import Triple
from dpcgd.moments.blocks import blocks_of, rows_of
from dpcgd.moments.interactions import Marginals
from dpcgd.reading.pair_features import LocalEvidence
from dpcgd.reading.trees import Trees, trained_on, trees_of

__all__ = [
    "FEATURES",
    "arrow_confidence",
    "collider_log_odds",
    "collider_trees",
    "open_triples",
    "orient",
    "pointed",
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
    "neighbours of the middle",
    "variables to make sets of",
    "correlation with the middle, the weaker",
    "correlation with the middle, the stronger",
    "correlation of the ends",
    "neighbours of an end, the fewer",
    "neighbours of an end, the more",
    "neighbours of both ends",
    "noise over sampling",
    "records",
)
"""Of a triple, in the order of the columns that the trees read. The first five are taken by arsinh;
correlations, squared and summed over contrasts, noise and records by their logarithms."""


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
    times = np.zeros(joined.shape, np.int64)
    if joined.any():
        odds = collider_log_odds(marginals, joined)
        graphs = np.array([_array(bits) for bits in drawn_graphs(joined, forbidden, odds)])
        arcs = completed(graphs, joined, forbidden)
        times += (arcs & ~arcs.swapaxes(1, 2)).sum(axis=0)
    return times / DRAWS


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
    log_odds = collider_trees().log_odds(triple_features(marginals, joined, triples))
    return dict(zip(triples, log_odds.tolist(), strict=True))


@cache
def collider_trees() -> Trees:
    """The trees that come with the package; ``make colliders`` trains them.

    Raises
    ------
    ValueError
        If they were trained on other features than this package computes.
    """
    return trees_of(trained_on("colliders.json", FEATURES)["trees"])


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

    Notes
    -----
    The log-likelihood among them is that of :prf:ref:`thm-triple-product`.
    """
    if not triples:
        return np.empty((0, len(FEATURES)))
    evidence = _Evidence(marginals, joined)
    return np.hstack([evidence.given_sets(triples), evidence.around(triples)]).astype(np.float32)


def open_triples(joined: np.ndarray) -> list[Triple]:
    """Two neighbours of a variable that are not joined, with the variable between them."""
    return [
        (x, c, y)
        for c in range(len(joined))
        for x, y in combinations(np.flatnonzero(joined[c]).tolist(), 2)
        if not joined[x, y]
    ]


class _Evidence:
    """How strongly two variables hang together, also given sets of their neighbours."""

    def __init__(self, marginals, joined):
        self.blocks, self.joined = blocks_of(marginals), joined
        self.effects = self.blocks.sums(self.blocks.correlations**2)
        self.local = LocalEvidence(self.blocks, np.where(joined, self.effects, 0.0))
        _, self.at = rows_of(marginals.levels)
        self.known: dict[tuple, float] = {}

    def around(self, triples) -> np.ndarray:
        """How strong the links of each triple are, and how many neighbours its ends have."""
        x, c, y = np.array(triples).T
        strength = np.log10(self.effects + WEAKEST)
        links = np.sort([strength[x, c], strength[c, y]], axis=0)
        near, both = self.joined.sum(axis=1), self.joined.astype(int) @ self.joined
        n, noise = self.blocks.n, float(np.median(self.blocks.variances))
        shared = np.broadcast_to([math.log10(noise * n), math.log10(n)], (len(triples), 2))
        ends = np.sort([near[x], near[y]], axis=0)
        return np.column_stack([*links, strength[x, y], *ends, both[x, y], shared])

    def given_sets(self, triples) -> np.ndarray:
        """What sets with the middle and without it leave of the ends, a row for each triple."""
        others = {triple: self._others(*triple) for triple in triples}
        sets = {t: [s for k in range(3) for s in combinations(others[t], k)] for t in triples}
        with_c = {(x, c, y): [(*s, c) for s in sets[x, c, y] if len(s) < 2] for x, c, y in triples}
        self._learn((x, y, s) for x, c, y in triples for s in (*sets[x, c, y], *with_c[x, c, y]))
        least = {(x, c, y): self._least(x, y, sets[x, c, y]) for x, c, y in triples}
        self._learn((x, y, (*least[x, c, y][1], c)) for x, c, y in triples)
        rows = []
        for t in triples:
            x, c, y = t
            (without, s), (held, with_s) = least[t], self._least(x, y, with_c[t])
            told = [
                held - without,
                without,
                self._given(x, y, (*s, c)) - without,
                held - self._given(x, y, with_s[:-1]),
            ]
            sizes = self.joined[c].sum(), len(others[t])
            rows.append([*told, self._likelihood(x, c, y), *sizes])
        return np.array(rows)

    def _others(self, x, c, y) -> list[int]:
        """What separating sets are made of."""
        near = [v for a in (x, y) for v in self.local.order[a][:NEAR].tolist() if self.joined[a, v]]
        return [v for v in dict.fromkeys(near) if v not in (x, y, c)]

    def _learn(self, questions):
        """Work out together what is not known yet."""
        new = {(x, y, frozenset(s)): (x, y, s) for x, y, s in reversed([*questions])}
        new = {key: asked for key, asked in new.items() if key not in self.known}
        evidence = self.local.given([*new.values()])[:, 0].tolist()
        self.known |= zip(new, evidence, strict=True)

    def _given(self, x, y, s) -> float:
        return self.known[x, y, frozenset(s)]

    def _least(self, x, y, sets) -> tuple[float, tuple[int, ...]]:
        return min((self._given(x, y, s), s) for s in sets)

    def _likelihood(self, x, c, y) -> float:
        """Of correlations of 0 between the ends, less of the product of those with the middle."""
        b, at = self.blocks.correlations, self.at
        found, spread = b[at[x], at[y]], self.blocks.variances[at[x], at[y]]
        product = b[at[x], at[c]] @ b[at[c], at[y]]
        return math.asinh(float((((found - product) ** 2 - found**2) / (2 * spread)).sum()))


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
        needed = (heat * np.log1p(-rng.random(len(edges)))).tolist()
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

    What :func:`~dpcgd.graphs.cpdag.meek` makes of each, of all together.

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
    return _forced(possible & ~(collides & possible.T), apart)


def _forced(arcs, apart) -> np.ndarray:
    """Take away arcs by Meek's rules until none is forced; what is forced both ways stays."""
    while True:
        back = arcs.swapaxes(1, 2)
        directed, undirected = arcs & ~back, arcs & back
        graph, a, b = np.nonzero(undirected)
        into_b, apart_b = directed.swapaxes(1, 2)[graph, b], apart[b]
        beside_a = undirected[graph, a]
        forced = (directed.swapaxes(1, 2)[graph, a] & apart_b).any(axis=1)
        forced |= (directed[graph, a] & into_b).any(axis=1)
        ends = beside_a & into_b
        forced |= ((ends.astype(np.float32) @ apart > 0) & ends).any(axis=1)
        start, stop = beside_a & apart_b, (arcs | back)[graph, a] & into_b
        for i in np.flatnonzero(start.any(axis=1) & stop.any(axis=1) & ~forced):
            forced[i] = directed[graph[i]][np.ix_(start[i], stop[i])].any()
        both = np.zeros(arcs.shape, bool)
        both[graph, a, b] = forced
        turned = both & ~both.swapaxes(1, 2)
        if not turned.any():
            return arcs
        arcs = arcs & ~turned.swapaxes(1, 2)


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
