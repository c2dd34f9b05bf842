"""Where the variables of a drawn graph stand, and how its edges run between them."""

from collections.abc import Mapping

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG

__all__ = [
    "Places",
    "as_digraph",
    "in_inches",
    "is_inside",
    "layered_positions",
    "least_bend",
    "way_between",
    "width_of",
]

ROW, HEIGHT = 0.82, 0.32
"""Inches between two layers of a drawn graph, and the height of a node."""

Places = Mapping[str, tuple[float, float]]
"""Where each variable stands."""


WIDEST = 12
"""More variables than this without an edge stand in rows of their own, below the others."""


def layered_positions(graph: "nx.DiGraph | CPDAG") -> dict[str, tuple[float, float]]:
    """Give each variable a column and a layer, so that arrows point down and seldom cross.

    Parameters
    ----------
    graph : networkx.DiGraph or CPDAG

    Returns
    -------
    dict
        (column, layer) of each variable; layer 0 is on top.

    Notes
    -----
    A layer is the longest way from a variable without causes; the order inside a layer comes from
    repeatedly sorting by the mean column of the neighbours (Sugiyama's heuristic).

    Examples
    --------
    >>> layered_positions(nx.DiGraph([("smoke", "lung"), ("smoke", "bronc")]))["smoke"]
    (0.0, 0)
    """
    dag = _any_dag(graph)
    alone = sorted(nx.isolates(dag), key=list(dag).index)
    if len(alone) <= WIDEST:
        alone = []
    dag.remove_nodes_from(alone)
    layers = [list(layer) for layer in nx.topological_generations(dag)]
    place: dict[str, tuple[float, float]] = {}
    for layer in layers:
        _centre(layer, place)
    for _ in range(8):
        for layer in (*layers, *reversed(layers)):
            mean = {v: np.mean([place[u][0] for u in nx.all_neighbors(dag, v)] or 0) for v in layer}
            layer.sort(key=mean.get)
            _centre(layer, place)
    for rest in (alone[i : i + WIDEST] for i in range(0, len(alone), WIDEST)):
        layers.append(rest)
        _centre(rest, place)
    return {v: (place[v][0], i) for i, layer in enumerate(layers) for v in layer}


def _centre(layer, place):
    for i, v in enumerate(layer):
        place[v] = (i - (len(layer) - 1) / 2, 0)


def _any_dag(graph) -> nx.DiGraph:
    """The directed edges, and every other one in column order unless that closes a cycle."""
    both = as_digraph(graph)
    order = {v: i for i, v in enumerate(both)}
    dag = nx.DiGraph()
    dag.add_nodes_from(order)
    loose = [(a, b) for a, b in both.edges if both.has_edge(b, a)]
    fixed = [arc for arc in both.edges if arc not in set(loose)]
    for a, b in (*fixed, *sorted(loose, key=lambda arc: (order[arc[0]], order[arc[1]]))):
        if not nx.has_path(dag, b, a):
            dag.add_edge(a, b)
    return dag


def as_digraph(graph) -> nx.DiGraph:
    """A graph as networkx has it."""
    return graph.to_networkx() if isinstance(graph, CPDAG) else graph


def in_inches(places: Places) -> tuple[dict[str, tuple[float, float]], np.ndarray, np.ndarray]:
    """Places by column and layer as places in inches, and two corners of the picture."""
    spacing = max(0.72, max(map(width_of, places)) + 0.16)
    there = {name: (x * spacing, -y * ROW) for name, (x, y) in places.items()}
    margin = np.array([spacing / 2, 0.26])
    ends = np.array(list(there.values()))
    return there, ends.min(0) - margin, ends.max(0) + margin


def width_of(name) -> float:
    """Inches that a node needs for its name."""
    return 0.15 + 0.083 * len(name)


def way_between(start, end, bend, points=200) -> np.ndarray:
    """Points along matplotlib's arc3 curve between two places."""
    (x, y), (u, v) = start, end
    middle = ((x + u) / 2 + bend * (v - y), (y + v) / 2 - bend * (u - x))
    t = np.linspace(0, 1, points)[:, None]
    return (
        (1 - t) ** 2 * np.array(start) + 2 * t * (1 - t) * np.array(middle) + t**2 * np.array(end)
    )


def is_inside(way, places, names, margin=0.0) -> np.ndarray:
    """Which points of a way lie in the boxes of these variables, a row for each."""
    half = np.array([(width_of(name) / 2 + margin, HEIGHT / 2 + margin) for name in names])
    centre = np.array([places[name] for name in names])
    return (np.abs(way - centre[:, None]) < half[:, None]).all(axis=2)


def least_bend(places, start, end) -> float:
    """The straightest of a few ways that crosses no other variable's box."""
    others = [name for name in places if name not in (start, end)]
    if not others:
        return 0.0

    def crossed(bend):
        way = way_between(places[start], places[end], bend)
        return is_inside(way, places, others, 0.03).any(1).sum()

    return min((0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5), key=crossed)
