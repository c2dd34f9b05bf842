"""The direction of each edge of a skeleton, with its probability, from released pairs.

Two neighbours of a variable that are not joined themselves either both point to it, a collider, or
are separated by sets that contain it. The log odds of a collider at each such triple come from
boosted trees, which were trained on simulated releases; tables with numbers have their own. One
feature is the share of graphs with this collider, among graphs drawn by the likelihood of whole
families. Graphs without cycles are then drawn with these odds. The probability of an arrow is its
share among the CPDAGs of the drawn graphs.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
from scipy.special import logit

from dpcgd.graphs.cpdag import meek
from dpcgd.graphs.pc_search import Triple
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.moments.interactions import Marginals
from dpcgd.reading.pair_features import Columns, LocalEvidence, columns_of
from dpcgd.reading.pair_score import PairScore
from dpcgd.reading.reader import trained_on

__all__ = ["arrow_confidence", "bits_of", "collider_log_odds", "open_triples", "pointed"]
__all__ += ["triple_features"]

NEAR = 4
"""Number of strongest neighbours of either end that separating sets are made of."""


COOLING, DRAWS, APART = 60, 60, 2
"""Sweeps before the first draw, number of draws, and sweeps between two draws."""


WEAKEST = 1e-6
"""Constant that is added to squared correlations before their logarithms are taken."""


HOTTEST = 10.0
"""Additional temperature at the start of the walk."""


def pointed(
    sure: np.ndarray, joined: np.ndarray, forbidden: np.ndarray, level: float | None = None
) -> np.ndarray:
    """Arrows of a skeleton, the most probable first: each edge gets its likeliest mark.

    Parameters
    ----------
    sure : array of shape (d, d)
        The probability of a -> b is at [a, b].
    joined, forbidden : boolean array of shape (d, d)
    level : float, optional
        Arrows with a larger probability are drawn, whatever the other marks; this serves F1.

    Returns
    -------
    boolean array of shape (d, d)
        An undirected edge has both arcs. The arrows form no cycle, unless forbidden arcs force
        one.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    If a pair is truly joined, a wrong mark costs one in SHD, whichever mark it is. So the likeliest
    mark has the least expected SHD.
    """
    likelier = sure > (np.maximum(sure.T, 1 - sure - sure.T) if level is None else level)
    arcs = joined & ~forbidden
    parents = bits_of(arcs & ~arcs.T)
    open_arcs = np.argwhere(arcs & arcs.T & likelier).tolist()
    for _, a, b in sorted((-sure[a, b], a, b) for a, b in open_arcs):
        if arcs[a, b] and not leads(parents, b, a):
            parents[b] |= 1 << a
            arcs[b, a] = False
    return arcs


def arrow_confidence(
    marginals: Marginals, joined: np.ndarray, forbidden: np.ndarray | None = None, missed: float = 0
) -> np.ndarray:
    """The probability of each arrow in the CPDAG of the true graph, given the release.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.
    joined : boolean array of shape (d, d)
        The skeleton.
    forbidden : boolean array of shape (d, d), optional
    missed : float
        The share of the expected edges that the skeleton has not.

    Returns
    -------
    array of shape (d, d)
        The probability of a -> b is at [a, b]; it is 0 if the pair is not joined. The rest to 1, of
        both directions together, is the probability of an undirected edge.

    Raises
    ------
    KeyError
        If a pair has not been released.

    Privacy
    -------
    Post-processing. What is drawn has a seed of its own: one release, one answer.

    Notes
    -----
    Single arcs are reversed, and a reversal is accepted by the odds of the triples that change,
    with cooling at first: :prf:ref:`thm-drawn-graphs`. What gives an edge its direction may be an
    edge at one of its ends that the skeleton has not. So an edge that a drawn graph leaves
    undirected counts as an arrow, either way, with the share of edges that are missed times the
    share of edges with a direction. If an edge is wrong, its arrow is wrong too; so
    :attr:`~dpcgd.reading.release.MarginalRelease.arrow_shares` multiplies both probabilities. The
    chapter on arrows shows how often arrows are right on fresh networks.
    """
    forbidden = np.zeros_like(joined) if forbidden is None else forbidden
    if not joined.any():
        return np.zeros(joined.shape)
    odds = collider_log_odds(marginals, joined)
    arcs = completed(drawn_graphs(joined, forbidden, by_colliders(odds)), joined, forbidden)
    both = arcs & arcs.swapaxes(1, 2)
    directed = 1 - both.sum() / (len(both) * joined.sum())
    return np.where(both, min(missed * directed, 1 / 2), arcs).mean(axis=0)


def collider_log_odds(marginals: Marginals, joined: np.ndarray) -> dict[Triple, float]:
    """Log odds of a collider in each variable with two neighbours that are not joined.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.
    joined : boolean array of shape (d, d)

    Returns
    -------
    dict
        Map from (x, middle, y) to the log odds.

    Privacy
    -------
    Post-processing.
    """
    triples, trees = open_triples(joined), trained_on("colliders.json").trees
    own = trees["numbers" if getattr(marginals, "numbers", None) else "categories"]
    log_odds = own.log_odds(triple_features(marginals, joined, triples))
    return dict(zip(triples, log_odds.tolist(), strict=True))


def triple_features(marginals: Marginals, joined: np.ndarray, triples: list[Triple]) -> Columns:
    """Features of each triple, from the release: columns by name, with a row for each triple.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released.
    joined : boolean array of shape (d, d)
    triples : list of (x, middle, y)

    Returns
    -------
    dict
        Map from the name of each feature to its column.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    The log-likelihood among the features is that of :prf:ref:`thm-triple-product`. Evidence and
    log-likelihood are transformed by arsinh. Squared correlations summed over contrasts, noise and
    the number of records are transformed by logarithms.
    """
    blocks = blocks_of(marginals)
    effects = blocks.sums(blocks.correlations**2)
    strength, near = np.log10(effects + WEAKEST), joined.sum(axis=1)
    x, c, y = np.array(triples, int).reshape(-1, 3).T
    noise = float(np.median(blocks.variances))
    local = LocalEvidence(blocks, np.where(joined, effects, 0.0))
    others = [_others(local, joined, *triple) for triple in triples]
    likelihood = [_likelihood(blocks, *triple) for triple in triples]
    graphs = drawn_graphs(joined, np.zeros_like(joined), by_families(marginals))
    numbers = {
        **_given_sets(local, triples, others),
        "share of likely families that meet": (graphs[:, c, x] & graphs[:, c, y]).mean(axis=0),
        "share of likely families that part": (graphs[:, x, c] & graphs[:, y, c]).mean(axis=0),
        "log-likelihood of independent ends, less of a product through the middle": likelihood,
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
    """Triples of two neighbours of a variable, which are not joined, and this middle variable."""
    return [
        (x, c, y)
        for c in range(len(joined))
        for x, y in combinations(np.flatnonzero(joined[c]).tolist(), 2)
        if not joined[x, y]
    ]


def _given_sets(local, triples, others) -> Columns:
    """Evidence between the ends of triples given sets of others, with and without the middle."""
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
    """The least evidence between the ends of each triple over its sets, and the set."""
    asked = [(x, y, s) for (x, _, y), few in zip(triples, sets, strict=True) for s in few]
    evidence = iter(local.given(asked)[:, 0].tolist())
    least = [min((next(evidence), s) for s in few) for few in sets]
    return np.array([value for value, _ in least]), [where for _, where in least]


def _others(local, joined, x, c, y) -> list[int]:
    """Variables that the separating sets of a triple are made of."""
    near = [v for a in (x, y) for v in local.nearest[a][:NEAR] if joined[a, v]]
    return [v for v in dict.fromkeys(near) if v not in (x, y, c)]


def _likelihood(blocks, x, c, y) -> float:
    """Log-likelihood of uncorrelated ends, minus that of a product of correlations, as arsinh."""
    b, (x, c, y) = blocks.correlations, (blocks.rows[v] for v in (x, c, y))
    ends, spread = b[x, y], blocks.variances[x, y]
    product = b[x, c] @ b[c, y]
    return math.asinh(float((((ends - product) ** 2 - ends**2) / (2 * spread)).sum()))


Gain = Callable[[list[int], int, int], float]
"""Function of parents as bits and an arc a -> b: the log odds of turning the arc."""


def by_colliders(odds: dict[Triple, float]) -> Gain:
    """The gain of a turned arc, from the log odds of colliders at (x, middle, y)."""
    beside: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (x, c, y), value in sorted(odds.items()):
        beside.setdefault((c, x), []).append((y, value))
        beside.setdefault((c, y), []).append((x, value))
    beside = {key: sorted(others) for key, others in beside.items()}

    def gain(parents, a, b):
        gained = sum([value for v, value in beside.get((a, b), ()) if parents[a] >> v & 1])
        return gained - sum([value for v, value in beside.get((b, a), ()) if parents[b] >> v & 1])

    return gain


def by_families(marginals: Marginals) -> Gain:
    """The gain of a turned arc, from the likelihood of each variable's parents in pairs."""
    score = PairScore(marginals)

    @cache
    def family(v, bits):
        return score.log_odds(v, frozenset(u for u in range(bits.bit_length()) if bits >> u & 1))

    def gain(parents, a, b):
        before = family(a, parents[a]) + family(b, parents[b])
        return family(a, parents[a] | 1 << b) + family(b, parents[b] ^ 1 << a) - before

    return gain


def drawn_graphs(joined: np.ndarray, forbidden: np.ndarray, gain: Gain) -> np.ndarray:
    """Graphs drawn by their odds; the entry at [graph, b, a] says whether a is a parent of b.

    Parameters
    ----------
    joined, forbidden : boolean array of shape (d, d)
    gain : callable
        The result of :func:`by_colliders` or of :func:`by_families`.
    """
    rng, parents = np.random.default_rng(0), bits_of(_first(joined, forbidden).T)
    edges, banned = np.argwhere(np.triu(joined)).tolist(), forbidden.tolist()
    drawn = []
    for sweep in range(COOLING + DRAWS * APART):
        heat = 1 + HOTTEST * max(0.0, 1 - sweep / COOLING) ** 2
        chosen = rng.integers(max(1, len(edges)), size=len(edges)).tolist()
        needed = (heat * logit(rng.random(len(edges)))).tolist()
        for edge, least in zip(chosen, needed, strict=True):
            start, end = edges[edge]
            _turn(parents, start, end, least, banned, gain)
        if sweep >= COOLING and (sweep - COOLING) % APART == 0:
            drawn.append(_array(parents))
    return np.array(drawn)


def _turn(parents, a, b, least, banned, gain):
    """Turn an arc if this gains at least so much, and closes no cycle."""
    if not parents[b] >> a & 1:
        a, b = b, a
    if banned[b][a] or gain(parents, a, b) < least:
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
    """Arcs of the CPDAGs of graphs: colliders, known arcs, and the arrows that these force.

    Parameters
    ----------
    graphs : boolean array of shape (k, d, d)
        The entry at [b, a] of a graph says whether a is a parent of b.
    joined, forbidden : boolean array of shape (d, d)

    Returns
    -------
    boolean array of shape (k, d, d)
        An undirected edge has both arcs.
    """
    possible, apart = joined & ~forbidden, ~(joined | forbidden & forbidden.T)
    np.fill_diagonal(apart, False)
    collides = graphs & (graphs.astype(np.float32) @ apart > 0)
    arcs = possible & ~(collides & possible.T)
    return np.array([meek(some, untested=forbidden & forbidden.T) for some in arcs])


def _array(bits) -> np.ndarray:
    """Parents of each variable as a boolean array, a row for each variable, from bits."""
    return np.array([[row >> v & 1 for v in range(len(bits))] for row in bits], bool)


def bits_of(arcs: np.ndarray) -> list[int]:
    """Parents of each variable as the bits of a whole number, from a boolean array of arcs.

    Examples
    --------
    >>> bits_of(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], bool))
    [0, 0, 3]
    """
    return [sum(1 << v for v in np.flatnonzero(parents).tolist()) for parents in arcs.T]


def _first(joined, forbidden) -> np.ndarray:
    """Parents in a graph without cycles and without forbidden arcs, if there is such a graph."""
    forced = joined & forbidden.T & ~forbidden
    left, parents = list(range(len(joined))), np.zeros_like(joined)
    while left:
        v = min(left, key=lambda v: int(forced[left, v].sum()))
        left.remove(v)
        parents[left, v] = joined[v, left]
    return parents
