"""Drawings of graphs as SVG: positions of variables, curves of edges."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import networkx as nx
import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.texts import render

__all__ = ["free_way", "in_inches", "label_place", "layered_positions", "least_bend", "on_screen"]
__all__ += ["to_svg", "width_of"]

ROW, HEIGHT = 0.82, 0.32
"""Distance of two layers, and height of a node, in inches."""

BENDS = (0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5)
"""Bends of an edge; the first one that avoids all other variables is taken."""

WIDEST = 12
"""If more variables than this have no edge, they are drawn in rows below the others."""

DOTS = 96
"""Pixels of an inch on the screen."""

LABEL_SIZE = (42.0, 14.0)
"""Width and height of a label, in pixels."""

MARGIN, NARROWEST = 20.0, 300.0
"""The margin around a bent edge, and the least width of a picture with words, in pixels."""

LINE_HEIGHT, LETTER_WIDTH = 15.0, 5.6
"""Height of a line and width of a letter in the words below a graph, in pixels."""

LEGEND = "Numbers: the probability of the edge / of its arrow. Dashed: less likely than not."
"""The legend of the labels."""


def to_svg(graph: CPDAG) -> str:
    """Draw a graph, causes above effects; an edge without direction is a plain line.

    With a certainty each edge shows its probability and, after a slash, the probability of its
    arrow. An edge with a probability below one half is dashed.

    Parameters
    ----------
    graph : CPDAG

    Returns
    -------
    str
        An ``svg`` element.

    Examples
    --------
    >>> picture = to_svg(CPDAG(("rain", "wet"), np.array([[False, True], [False, False]])))
    >>> picture.count("<rect"), picture.count("<polyline"), picture.count("marker-end")
    (2, 1, 1)
    """
    places, low, high = in_inches(layered_positions(graph))
    edges = _drawn_edges(graph, places)
    around = (edge["points"] + side for edge in edges for side in (-MARGIN, MARGIN))
    points = np.concatenate([on_screen([low, high]), *around])
    (left, top), (width, height) = points.min(axis=0), np.ptp(points, axis=0)
    lines = []
    if graph.certainty:
        width = max(width, NARROWEST)
        words = [*graph.remarks, LEGEND] if edges else graph.remarks
        lines = [line for word in words for line in wrap(word, int(width / LETTER_WIDTH) - 1)]
    nodes = [(name, *on_screen(place), width_of(name) * DOTS) for name, place in places.items()]
    return render(
        "graph.svg",
        graph=graph,
        box=(left, top, width, height + LINE_HEIGHT * len(lines)),
        edges=edges,
        nodes=nodes,
        node_height=HEIGHT * DOTS,
        lines=[(top + height + LINE_HEIGHT * (i + 0.7), line) for i, line in enumerate(lines)],
    )


def on_screen(points) -> np.ndarray:
    """Convert inches upwards to pixels downwards."""
    return np.asarray(points) * (DOTS, -DOTS)


def _drawn_edges(graph, places) -> list[dict[str, Any]]:
    """Edges with their curves, and places for labels that avoid variables and other labels."""
    taken, edges = list(on_screen(list(places.values()))), []
    for ends, edge in zip(graph.edges, graph.to_frame().to_dict("records"), strict=True):
        way = on_screen(free_way(places, edge["from"], edge["to"]))
        taken.append(label_place(way, taken))
        words = {"label": graph.label(*ends, short=True), "label_place": taken[-1]}
        edges.append(edge | words | {"points": np.array([*way[::10], way[-1]])})
    return edges


def label_place(way, taken) -> np.ndarray:
    """The place on a curve that is farthest from these, up to where two labels do not touch."""
    free = way[[len(way) * part // 20 for part in (10, 8, 12, 6, 14, 4, 16)]]
    apart = (np.abs(free[:, None] - taken) / LABEL_SIZE).max(axis=2).min(axis=1)
    return free[np.minimum(apart, 1.0).argmax()]


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
    The layer of a variable is the length of the longest path to it. Inside a layer, variables are
    sorted repeatedly by the mean column of their neighbours (Sugiyama's heuristic). networkx has
    layouts by layers, but none that sorts them.

    Examples
    --------
    >>> layered_positions(nx.DiGraph([("smoke", "lung"), ("smoke", "bronc")]))["smoke"]
    (0.0, 0)
    """
    dag = _any_dag(graph)
    alone = list(nx.isolates(dag))
    alone = alone if len(alone) > WIDEST else []
    dag.remove_nodes_from(alone)
    layers = list(map(list, nx.topological_generations(dag)))
    columns = {v: x for layer in layers for v, x in _columns(layer)}
    for layer in (*layers, *reversed(layers)) * 8:
        layer.sort(key=lambda v: np.mean([columns[u] for u in nx.all_neighbors(dag, v)] or 0))
        columns.update(_columns(layer))
    layers += (alone[i : i + WIDEST] for i in range(0, len(alone), WIDEST))
    return {v: (x, i) for i, layer in enumerate(layers) for v, x in _columns(layer)}


def _columns(layer) -> list[tuple[str, float]]:
    """Each variable of a layer with its column; the middle of the layer is column 0."""
    return [(v, i - (len(layer) - 1) / 2) for i, v in enumerate(layer)]


def _any_dag(graph) -> nx.DiGraph:
    """The directed edges, and the undirected ones in column order unless that closes a cycle."""
    both = as_digraph(graph)
    dag = nx.create_empty_copy(both)
    for a, b in sorted(both.edges, key=lambda arc: both.has_edge(arc[1], arc[0])):
        if not nx.has_path(dag, b, a):
            dag.add_edge(a, b)
    return dag


def as_digraph(graph) -> nx.DiGraph:
    """The graph as a networkx DiGraph."""
    return graph.to_networkx() if isinstance(graph, CPDAG) else graph


def in_inches(places: Mapping) -> tuple[dict[str, tuple[float, float]], np.ndarray, np.ndarray]:
    """Positions in inches from columns and layers, and two corners of the picture."""
    spacing = max(0.72, max(map(width_of, places)) + 0.16)
    there = {name: (x * spacing, -y * ROW) for name, (x, y) in places.items()}
    margin, points = (spacing / 2, 0.26), np.array(list(there.values()))
    return there, points.min(axis=0) - margin, points.max(axis=0) + margin


def width_of(name) -> float:
    """Width of a node with its name, in inches."""
    return 0.15 + sum(0.105 if letter.isupper() else 0.083 for letter in name)


def way_between(start, end, bend, points=200) -> np.ndarray:
    """Points along matplotlib's arc3 curve between two places."""
    start, end = np.array(start), np.array(end)
    across, up = end - start
    middle = (start + end) / 2 + bend * np.array([up, -across])
    t = np.linspace(0, 1, points)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def is_inside(way, places, names, margin=0.0) -> np.ndarray:
    """Which points of a curve are in the boxes of these variables, a row for each variable."""
    half = np.array([(width_of(name), HEIGHT) for name in names]) / 2 + margin
    centre = np.array([places[name] for name in names])
    return (np.abs(way - centre[:, None]) < half[:, None]).all(axis=2)


def least_bend(places, start, end) -> float:
    """The straightest of a few curves that crosses no other variable's box."""
    others = [name for name in places if name not in (start, end)]

    def boxes_crossed(bend):
        way = way_between(places[start], places[end], bend)
        return is_inside(way, places, others, margin=0.03).any(axis=1).sum()

    return min(BENDS, key=boxes_crossed) if others else 0.0


def free_way(places, start, end) -> np.ndarray:
    """Points along the drawn edge between two variables, outside their boxes."""
    way = way_between(places[start], places[end], least_bend(places, start, end))
    return way[~is_inside(way, places, (start, end)).any(axis=0)]
