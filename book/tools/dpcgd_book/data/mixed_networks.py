"""Networks of numbers and categories: linear models, published ones, and six random families."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.random import Generator

from dpcgd import Dataset, Schema
from dpcgd.datasets.arguments import check_whole
from dpcgd.datasets.random_networks import SHAPES, random_network

__all__ = ["FAMILIES", "GAUSSIAN_NETWORKS", "GaussianNetwork", "MixedNetwork"]
__all__ += ["gaussian_network", "random_mixed_network", "random_sem", "standardised"]

GAUSSIAN_NETWORKS = ("ecoli70", "magic-niab")
"""Linear Gaussian networks that pgmpy ships: genes of a bacterium, and traits of wheat."""

FAMILIES = ("linear", "skewed", "monotone", "shapes", "spread", "mixed")
"""What causes do to numbers, and what their errors are.

Linear effects and normal errors; the same with other errors; curves that rise; curves of any shape;
errors that grow with a cause; and linear effects among categories and numbers, some of which are
exponentials.
"""

DEVIATIONS = 4
"""A sampled variable's public range ends this many of its standard deviations from its mean."""

END = 20.0
"""A number's public range ends so many of its deviations from its mean."""

PILOT = 20_000
"""A random number is standardised by so many records that belong to its network."""

RISING = (
    np.tanh,
    lambda score: np.exp(np.minimum(score, 3)) / 2,
    lambda score: np.sign(score) * np.sqrt(np.abs(score)),
    lambda score: np.maximum(score, 0),
)
SHAPED = (
    lambda score: (score**2 - 1) / 1.4,
    lambda score: np.abs(score) * 1.6 - 1.3,
    lambda score: 1.3 * np.sin(2 * score),
    np.tanh,
    lambda score: score,
)
CURVES = {"monotone": (1.3, RISING), "shapes": (1.0, SHAPED)}
"""Steepness and curves of the families whose effects are no lines."""
ERRORS = (
    lambda n, rng: rng.normal(size=n),
    lambda n, rng: rng.uniform(-1.7, 1.7, n),
    lambda n, rng: rng.laplace(size=n) / 1.41,
    lambda n, rng: rng.exponential(size=n) - 1,
    lambda n, rng: rng.standard_t(5, size=n) / 1.29,
)
"""Errors of mean zero and deviation one; all but the first are not normal."""

Effect = Callable[[np.ndarray], np.ndarray]
Draw = Callable[[Mapping[str, np.ndarray], int, Generator], np.ndarray]
"""Values of a variable from those of the variables before it."""


class GaussianNetwork:
    """Numbers that are linear in their parents, with normal errors, and of mean zero.

    Parameters
    ----------
    name : str
    graph : networkx.DiGraph
    weights : array of shape (d, d)
        ``weights[a, b]`` is the effect of a on b; 0 where there is no arc.
    errors : array of shape (d,)
        Deviation of what is left of each variable, given its parents.

    Attributes
    ----------
    covariance : array of shape (d, d)
        Of the variables, exactly.
    ends : sequence of float
        A variable's public range ends so far from its mean.
    """

    def __init__(self, name: str, graph: nx.DiGraph, weights: np.ndarray, errors: np.ndarray):
        self.name, self.graph, self.weights, self.errors = name, graph, weights, errors
        self._effects = errors[:, None] * np.linalg.inv(np.eye(len(weights)) - weights)
        self.covariance = self._effects.T @ self._effects
        self.ends: Sequence[float] = [END] * len(weights)

    def sample(self, n: int, *, rng: Generator, exponentials_to: float | None = None) -> Dataset:
        """Draw n independent records, with public ranges.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
        exponentials_to : float, optional
            The exponential of every value, in a range from 0 to here.

        Raises
        ------
        ValueError
            If n is no whole number of 1 or more.

        Examples
        --------
        >>> network = gaussian_network("magic-niab")
        >>> network.sample(10, rng=np.random.default_rng(0))
        Dataset('magic-niab', n=10, d=44, 66 true edges)
        """
        check_whole("n", n, 1)
        values = rng.standard_normal((n, len(self.weights))) @ self._effects
        ranges = {v: (-end, end) for v, end in zip(self.graph, self.ends, strict=True)}
        if exponentials_to is not None:
            values, ranges = np.exp(values), dict.fromkeys(self.graph, (0.0, exponentials_to))
        return Dataset.of_numbers(values, ranges, self.graph, self.name)


def gaussian_network(name: str) -> GaussianNetwork:
    """A linear Gaussian network that pgmpy ships, read from its file without loading pgmpy.

    Parameters
    ----------
    name : str
        One of `GAUSSIAN_NETWORKS`.

    Returns
    -------
    GaussianNetwork
        With all variables in units of their exact deviations from their exact means.

    Raises
    ------
    ValueError
        If it is none of them.

    Examples
    --------
    >>> network = gaussian_network("ecoli70")
    >>> len(network.graph), network.graph.number_of_edges()
    (46, 70)
    """
    if name not in GAUSSIAN_NETWORKS:
        raise ValueError(f"no network is called {name!r}; take {' or '.join(GAUSSIAN_NETWORKS)}")
    inside = f"pgmpy/utils/example_models/{name}.json"
    content = json.loads(Path(str(distribution("pgmpy").locate_file(inside))).read_text())
    models, graph = content["cpds"], nx.empty_graph(content["nodes"], nx.DiGraph)
    for a, b in content["arcs"]:
        graph.add_edge(a, b, effect=np.ravel(models[b]["coefficients"][a])[0])  # or a list of one
    weights = nx.to_numpy_array(graph, weight="effect")
    errors = np.sqrt([np.ravel(models[v]["variance"])[0] for v in graph])
    return standardised(GaussianNetwork(name, nx.freeze(graph), weights, errors))


def standardised(network: GaussianNetwork) -> GaussianNetwork:
    """The same variables, each in units of its exact deviation."""
    deviations = np.sqrt(np.diag(network.covariance))
    weights = network.weights * deviations[:, None] / deviations
    return GaussianNetwork(network.name, network.graph, weights, network.errors / deviations)


def random_sem(d: int, arcs: int, *, rng: np.random.Generator) -> GaussianNetwork:
    """Draw a model over a random graph with so many arcs.

    Parameters
    ----------
    d : int
        Variables.
    arcs : int
        Arcs, placed uniformly among the pairs and directed along a random order.
    rng : numpy.random.Generator

    Returns
    -------
    GaussianNetwork
        Weights uniform in [-2, -0.5] and [0.5, 2], as in Zheng et al. (2018).

    Raises
    ------
    ValueError
        If so many arcs do not fit.

    Examples
    --------
    >>> random_sem(10, 20, rng=np.random.default_rng(0)).graph.number_of_edges()
    20
    """
    first, second = np.triu_indices(d, 1)
    if arcs > len(first):
        raise ValueError(f"{d} variables have at most {len(first)} arcs, not {arcs}")
    chosen = rng.choice(len(first), arcs, replace=False)
    weights = np.zeros((d, d))
    weights[first[chosen], second[chosen]] = rng.uniform(0.5, 2, arcs) * rng.choice([-1, 1], arcs)
    order = rng.permutation(d)
    weights, names = weights[np.ix_(order, order)], [f"x{i}" for i in range(d)]
    graph = nx.from_numpy_array(weights, create_using=nx.DiGraph, edge_attr=None, nodelist=names)
    model = GaussianNetwork("linear SEM", nx.freeze(graph), weights, np.ones(d))
    model.ends = (DEVIATIONS * np.sqrt(np.diag(model.covariance))).tolist()
    return model


class MixedNetwork(NamedTuple):
    """Numbers and categories that follow from their parents.

    Attributes
    ----------
    name : str
    graph : networkx.DiGraph
    levels : mapping of str to sequence of str
        Of the variables that are categories.
    draws : mapping of str to callable
        What draws each variable, parents first. Numbers have mean zero and variance one.
    """

    name: str
    graph: nx.DiGraph
    levels: Mapping[str, list[str]]
    draws: Mapping[str, Draw]

    def values(self, n: int, *, rng: Generator) -> dict[str, np.ndarray]:
        """Numbers and codes of n independent records."""
        values: dict[str, np.ndarray] = {}
        for v, draw in self.draws.items():
            values[v] = draw(values, n, rng)
        return values

    def sample(self, n: int, *, rng: Generator) -> Dataset:
        """Draw n independent records; a range ends 20 deviations on either side of the mean.

        Examples
        --------
        >>> network = random_mixed_network("mixed", 8, np.random.default_rng(0))
        >>> data = network.sample(10, rng=np.random.default_rng(1))
        >>> data, data.numbers
        (Dataset('mixed', n=10, d=8, 11 true edges), ('v0', 'v2', 'v4'))
        """
        values = self.values(n, rng=rng)
        number = {"range": (-END, END), "outside": "clip"}
        schema = Schema({v: self.levels.get(v, number) for v in self.graph})
        for v in self.graph.nodes - self.levels.keys():
            values[v] = schema.variables[v].positions_of_numbers(values[v])
        codes = np.column_stack([values[v] for v in self.graph])
        return Dataset.of_schema(codes, schema, self.graph, self.name)


def random_mixed_network(
    family: str, d: int, rng: Generator, graph: nx.DiGraph | None = None
) -> MixedNetwork:
    """A network of d variables of one of the `FAMILIES`, with a graph of any shape.

    Parameters
    ----------
    family : str
    d : int
    rng : numpy.random.Generator
    graph : networkx.DiGraph, optional
        In place of a random one.

    Returns
    -------
    MixedNetwork

    Raises
    ------
    ValueError
        If there is no such family.

    Examples
    --------
    >>> random_mixed_network("shapes", 8, np.random.default_rng(0)).graph.number_of_edges()
    11
    """
    if family not in FAMILIES:
        raise ValueError(f"no family is called {family!r}; take one of {', '.join(FAMILIES)}")
    if graph is None:
        levels = {f"v{i}": ("0", "1") for i in range(d)}  # only the graph is taken
        graph = random_network(str(rng.choice(SHAPES)), "weak", d, rng, levels=levels).graph
    is_category = rng.random(d) < (0.5 if family == "mixed" else 0.0)
    sizes = {v: int(rng.integers(2, 6)) for v, yes in zip(graph, is_category, strict=True) if yes}
    draws: dict[str, Draw] = {}
    pilot: dict[str, np.ndarray] = {}
    for v in nx.topological_sort(graph):
        parents = sorted(graph.predecessors(v))
        if v in sizes:
            draws[v] = _category(parents, sizes, sizes[v], rng)
        else:
            draws[v] = _standardised(_number(family, parents, sizes, rng), pilot, rng)
            if family == "mixed" and rng.random() < 0.3:
                draws[v] = _standardised(_exponential(draws[v]), pilot, rng)
        pilot[v] = draws[v](pilot, PILOT, rng)
    texts = {v: [str(level) for level in range(size)] for v, size in sizes.items()}
    return MixedNetwork(family, nx.freeze(graph), texts, draws)


def _weight(rng) -> float:
    return rng.choice([-1, 1]) * rng.uniform(0.3, 1.2)


def _curve(family, rng) -> Effect:
    """The effect of a number on a number; only some families have curves to draw from."""
    slope, curves = CURVES.get(family, (1.0, (lambda score: score,)))
    weight, curve = slope * _weight(rng), curves[rng.integers(len(curves))]
    return lambda score: weight * curve(score)


def _by_level(size, rng) -> Effect:
    """The effect of a category on a number."""
    effects = rng.normal(size=size)
    effects = (effects - effects.mean()) / max(effects.std(), 0.3) * rng.uniform(0.3, 1.2)
    return lambda codes: effects[codes]


def _number(family, parents, sizes, rng) -> Draw:
    """A number: effects of its parents and an error, which a number among them may spread."""
    effects = {p: _by_level(sizes[p], rng) if p in sizes else _curve(family, rng) for p in parents}
    errors = ERRORS[rng.integers(1, len(ERRORS)) if family == "skewed" else 0]
    spreading = str(rng.choice(parents)) if family == "spread" and parents else None
    rate = rng.choice([-0.5, 0.5])

    def draw(values, n, rng):
        drawn = errors(n, rng)
        if spreading:
            drawn = drawn * np.exp(np.clip(rate * values[spreading], -1.5, 1.5))
        return sum((effect(values[p]) for p, effect in effects.items()), drawn)

    return draw


def _exponential(draw) -> Draw:
    return lambda values, n, rng: np.exp(np.clip(draw(values, n, rng), -4, 4))


def _standardised(draw, pilot, rng) -> Draw:
    """The same number with mean zero and variance one in a pilot sample."""
    drawn = draw(pilot, PILOT, rng)
    mean, deviation = drawn.mean(), drawn.std()
    return lambda values, n, rng: (draw(values, n, rng) - mean) / deviation


def _category(parents, sizes, size, rng) -> Draw:
    """A category: its levels' log odds are sums of effects of its parents."""
    base = rng.normal(size=size) * 0.7
    effects = {p: _log_odds(sizes.get(p), size, rng) for p in parents}

    def draw(values, n, rng):
        odds = sum((effect(values[p]) for p, effect in effects.items()), np.tile(base, (n, 1)))
        return np.argmax(odds + rng.gumbel(size=(n, size)), axis=1)

    return draw


def _log_odds(parent_size, size, rng) -> Effect:
    """The effect of a parent, a number if it has no size, on the log odds of each level."""
    if parent_size is not None:
        table = rng.normal(size=(parent_size, size)) * rng.uniform(0.5, 1.5)
        return lambda codes: table[codes]
    slopes = _weight(rng) * rng.normal(size=size) * 1.3
    return lambda score: np.outer(score, slopes)
