"""A graph as a picture that any browser draws."""

from textwrap import wrap
from typing import Any

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.layout import HEIGHT, free_way, in_inches, layered_positions, width_of
from dpcgd.graphs.rendering import render

__all__ = ["to_svg"]

DOTS = 96
"""An inch on the screen."""

LABEL_SIZE = (42.0, 14.0)
"""The dots that a label takes."""

MARGIN, NARROWEST = 20.0, 300.0
"""The dots around a bent edge, and the least width of a picture with words."""

LINE_HEIGHT, LETTER_WIDTH = 15.0, 5.6
"""The size of the words below a graph, in dots."""

LEGEND = "Numbers: the probability of the edge / of its arrow. Dashed: less likely than not."
"""What a reader needs to read the labels."""


def to_svg(graph: CPDAG) -> str:
    """Draw a graph, causes above effects; an edge without direction is a plain line.

    With a certainty each edge shows its probability and, after a stroke, that of its arrow; an edge
    that is less likely than not is dashed.

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
    points = [_on_screen([low, high])]
    points += [edge["points"] + side for edge in edges for side in (-MARGIN, MARGIN)]
    left, top = np.concatenate(points).min(axis=0)
    width, height = np.concatenate(points).max(axis=0) - (left, top)
    lines = []
    if graph.certainty:
        width = max(width, NARROWEST)
        words = [*graph.remarks, LEGEND] if edges else graph.remarks
        lines = [line for word in words for line in wrap(word, int(width / LETTER_WIDTH) - 1)]
    nodes = [(name, *_on_screen(place), width_of(name) * DOTS) for name, place in places.items()]
    return render(
        "graph.svg",
        certainty=graph.certainty,
        remarks=graph.remarks,
        box=(left, top, width, height + LINE_HEIGHT * len(lines)),
        edges=edges,
        nodes=nodes,
        node_height=HEIGHT * DOTS,
        lines=[(top + height + LINE_HEIGHT * (i + 0.7), line) for i, line in enumerate(lines)],
    )


def _on_screen(points) -> np.ndarray:
    """Inches upwards become dots downwards."""
    return np.asarray(points) * (DOTS, -DOTS)


def _drawn_edges(graph, places) -> list[dict[str, Any]]:
    """Edges with their ways, and places for labels that are free of variables and other labels."""
    taken, edges = list(_on_screen(list(places.values()))), []
    for edge in graph.to_frame().to_dict("records"):
        way = _on_screen(free_way(places, edge["from"], edge["to"]))
        free = way[[len(way) * part // 20 for part in (10, 8, 12, 6, 14, 4, 16)]]
        taken.append(max(free, key=lambda place: _room(place, taken)))
        edges.append(edge | {"points": np.array([*way[::10], way[-1]]), "label": taken[-1]})
    return edges


def _room(place, taken) -> float:
    """How far the nearest of these is, in sizes of a label; at 1 the two do not touch."""
    return min(1.0, (np.abs(np.array(taken) - place) / LABEL_SIZE).max(axis=1).min())
