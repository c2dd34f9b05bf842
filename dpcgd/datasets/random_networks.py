"""Random Bayesian networks of many kinds, to choose settings and to train the edge model."""

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from dpcgd.datasets.bayesian_networks import Network

__all__ = ["MORE_TABLES", "SHAPES", "TABLES", "any_network", "mixed_levels", "random_network"]

SHAPES = ("sparse", "dense", "tree", "hubs", "layers", "chain")
"""Shapes of the graph; each variable has at most four parents."""


TABLES = ("strong", "mixed", "weak", "rare", "copies")
"""Kinds of probability tables.

The rows are far apart, of any kind, close together, with rare levels, or nearly deterministic.
"""


MORE_TABLES = ("ordered", "causes", "any")
"""Kinds of tables on which no setting was chosen; edge models are trained on them too.

Ordered levels that parents push up or down; causes that are each sufficient; a mixture with a kind
of its own for each variable.
"""


RARER = {"rare": 0.1, "copies": 0.1}

MIXTURES = {
    "mixed": {"strong": 0.4, "weak": 0.3, "rare": 0.15, "copies": 0.15},
    "any": {"ordered": 0.3, "causes": 0.2, "strong": 0.15, "weak": 0.15} | RARER,
}
"""Kinds of tables in a mixture, with their shares."""


MANY_LEVELS = 0.3
"""Share of networks of any kind in which some variables have up to 20 levels."""


MOST_PARENTS, MOST_ROWS = 4, 400


LEAST = 1e-4
"""The least probability of a level of an ordered variable or of an effect, up to rounding."""


Levels = Mapping[str, tuple[str, ...]]
"""The levels of each variable."""


def random_network(
    shape: str, tables: str, d: int, rng: np.random.Generator, *, levels: Levels | None = None
) -> Network:
    """A random network of d variables with two to six levels, or with given levels.

    Parameters
    ----------
    shape : str
        One of `SHAPES`.
    tables : str
        One of `TABLES` or `MORE_TABLES`.
    d : int
        Variables.
    rng : numpy.random.Generator
    levels : mapping of str to tuple of str, optional
        Levels of each of the d variables. A variable with a single level has no edges.

    Returns
    -------
    Network

    Raises
    ------
    ValueError
        If shape or tables are unknown, or `levels` does not have d variables.

    Examples
    --------
    >>> network = random_network("tree", "weak", 6, np.random.default_rng(0))
    >>> len(network.levels), network.graph.number_of_edges()
    (6, 5)
    """
    for given, known in ((shape, SHAPES), (tables, TABLES + MORE_TABLES)):
        if given not in known:
            raise ValueError(f"{given!r} is none of {', '.join(known)}")
    if levels is None:
        most = rng.choice([2, 3, 4, 6], p=[0.2, 0.3, 0.3, 0.2])
        levels = {f"v{i}": tuple("abcdef"[: rng.integers(2, most + 1)]) for i in range(d)}
    if len(levels) != d:
        raise ValueError(f"levels has {len(levels)} variables, not {d}; give each its levels")
    sizes, arcs = {v: len(levels[v]) for v in levels}, _arcs(shape, d, rng)
    order = rng.permutation(list(levels))
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(levels, ())
    for i, j in arcs:
        more = (*parents[order[j]], order[i])
        rows = math.prod(sizes[v] for v in more)
        apart = 1 in (sizes[order[i]], sizes[order[j]])
        if not apart and len(more) <= MOST_PARENTS and rows <= MOST_ROWS:
            parents[order[j]] = more
    made = {v: _table([sizes[p] for p in parents[v]], sizes[v], tables, rng) for v in levels}
    return Network(f"{shape}, {tables}", levels, parents, made)


def any_network(d: int, rng: np.random.Generator) -> Network:
    """A random network of any shape and any kind of tables; some variables may have many levels.

    Parameters
    ----------
    d : int
        Variables.
    rng : numpy.random.Generator

    Returns
    -------
    Network

    Examples
    --------
    >>> any_network(6, np.random.default_rng(0)).name
    'chain, ordered'
    """
    shape, tables = rng.choice(SHAPES), rng.choice(TABLES + MORE_TABLES)
    levels = mixed_levels(d, rng) if rng.random() < MANY_LEVELS else None
    return random_network(shape, tables, d, rng, levels=levels)


def mixed_levels(d: int, rng: np.random.Generator) -> dict[str, tuple[str, ...]]:
    """Levels of d variables: most have few, some have 5 to 20.

    Parameters
    ----------
    d : int
        Variables.
    rng : numpy.random.Generator

    Returns
    -------
    dict
        Map from each name to its levels, as for :func:`random_network`.

    Examples
    --------
    >>> levels = mixed_levels(200, np.random.default_rng(3))
    >>> sorted({len(of) for of in levels.values()})
    [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19]
    """
    most, many = rng.choice([2, 3, 4, 6]), rng.choice([0.1, 0.3])
    sizes = rng.integers(2, most + 1, size=d)
    large = np.exp(rng.uniform(math.log(5), math.log(20), size=d)).round().astype(int)
    sizes = np.where(rng.random(d) < many, large, sizes)
    return {f"v{i}": tuple(str(level) for level in range(size)) for i, size in enumerate(sizes)}


def _arcs(shape, d, rng) -> list[tuple[int, int]]:
    """Arcs from earlier to later variables, in random order."""
    if shape in ("sparse", "dense"):
        density = rng.uniform(*((0.7, 1.5) if shape == "sparse" else (1.5, 2.2)))
        pairs = [(i, j) for j in range(d) for i in range(j)]
        count = min(len(pairs), round(d * density))
        arcs = [pairs[k] for k in rng.choice(len(pairs), count, replace=False)]
    elif shape == "chain":
        back = rng.geometric(0.5, size=(d, 2))
        arcs = [(j - b, j) for j in range(d) for b in {*back[j]} if j >= b]
    elif shape == "tree":
        arcs = [(rng.integers(j), j) for j in range(1, d)]
    elif shape == "hubs":
        hubs = rng.permutation(d)[: max(1, d // 8)]
        arcs = [(min(h, j), max(h, j)) for j in range(d) for h in rng.choice(hubs, 2) if h != j]
        arcs = [arc for arc in dict.fromkeys(arcs) if rng.random() < 0.8]
    else:
        depth = np.sort(rng.integers(0, max(2, d // 5), d))
        above = [np.flatnonzero(depth == depth[j] - 1) for j in range(d)]
        arcs = [(i, j) for j in range(d) for i in rng.permutation(above[j])[: rng.integers(1, 4)]]
    unique = list(dict.fromkeys((int(i), int(j)) for i, j in arcs))
    return [unique[k] for k in rng.permutation(len(unique))]


def _table(parents, levels, kind, rng) -> np.ndarray:
    """One row of probabilities for each configuration of the parents."""
    if kind in MIXTURES:
        kind = rng.choice([*MIXTURES[kind]], p=[*MIXTURES[kind].values()])
    if kind == "ordered":
        return _ordered(parents, levels, rng)
    if kind == "causes":
        return _causes(parents, levels, rng)
    if kind == "strong":
        return rng.dirichlet(np.full(levels, rng.choice([0.3, 0.6, 1.0])), size=parents or None)
    if kind == "copies" and parents:
        other, first = rng.integers(levels, size=parents), np.arange(parents[0]) % levels
        slipped = np.where(rng.random(parents) < 0.15, other, 0)
        mostly = (_along(0, first, parents) + slipped) % levels
        slip = rng.uniform(0.005, 0.1)
        return np.eye(levels)[mostly] * (1 - slip) + slip / levels
    scores = _scores(parents, levels, kind, rng)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _scores(parents, levels, kind, rng) -> np.ndarray:
    """Additive effects of the parents, and a little interaction."""
    base = rng.normal(size=levels) * (0.5 if kind == "weak" else 1.0)
    if kind == "rare":
        base = base - 2.5 * (np.arange(levels) >= max(1, levels // 2))
    scores = np.broadcast_to(base, (*parents, levels)).copy()
    size = {"weak": 0.5, "rare": 1.5, "copies": 1.0}[kind]
    for axis, k in enumerate(parents):
        scores += _along(axis, size * rng.uniform(0.5, 1.5) * rng.normal(size=(k, levels)), parents)
    return scores + 0.3 * size * rng.normal(size=scores.shape)


def _ordered(parents, levels, rng) -> np.ndarray:
    """Cumulative logits of a score to which each parent adds by the rank of its level."""
    score = 0.2 * rng.normal(size=parents)
    for axis, k in enumerate(parents):
        push = rng.choice([-1, 1], p=[0.25, 0.75]) * math.exp(rng.uniform(*np.log([0.4, 4])))
        score = score + _along(axis, push * np.linspace(-1, 1, k), parents)
    cuts = np.sort(1.5 * rng.normal(size=levels - 1)) + 0.7 * rng.normal()
    return _steps(expit(cuts - score[..., None]))


def _causes(parents, levels, rng) -> np.ndarray:
    """Noisy-max: the highest of independent levels, one from each cause and one without causes."""
    leak = math.exp(rng.uniform(*np.log([0.002, 0.2] if parents else [0.02, 0.5])))
    below = _brought_about(leak, levels, rng)
    for axis, k in enumerate(parents):
        strengths = np.sort(rng.uniform(0.2, 1, k - 1)) * rng.uniform(0.3, 1)
        alone = [_brought_about(strength, levels, rng) for strength in (0, *strengths)]
        below = below * _along(axis, np.array(alone), parents)
    return _steps(below)


def _brought_about(strength, levels, rng) -> np.ndarray:
    """Probabilities that an effect is at most at each level, except the highest."""
    above = rng.dirichlet(np.ones(levels - 1)) if levels > 1 else np.empty(0)
    return np.cumsum([1 - strength, *strength * above])[:-1]


def _along(axis, values, parents) -> np.ndarray:
    """Values of the levels of one parent, shaped to broadcast over all parents."""
    shape = [k if a == axis else 1 for a, k in enumerate(parents)]
    return values.reshape(*shape, *values.shape[1:])


def _steps(below) -> np.ndarray:
    """Probabilities of levels from cumulative probabilities."""
    steps = np.diff(below, axis=-1, prepend=0, append=1)
    steps = np.maximum(steps, 0) + LEAST
    return steps / steps.sum(axis=-1, keepdims=True)
