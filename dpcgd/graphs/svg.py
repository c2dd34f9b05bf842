"""A graph as a picture that any browser draws, without another package."""

from textwrap import wrap
from xml.sax.saxutils import escape

import numpy as np

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.layout import (
    HEIGHT,
    in_inches,
    is_inside,
    layered_positions,
    least_bend,
    way_between,
    width_of,
)

__all__ = ["to_svg"]

DOTS = 96
"""An inch on the screen."""

HEAD = 7.0
"""Length of an arrow's head."""

LEFT, LINE, LETTER = 6.0, 15.0, 5.6
"""Where the lines below a graph begin, how far apart they are, and how wide their letters are."""

LABEL, ASIDE, NARROWEST = (42.0, 14.0), 20.0, 300.0
"""Dots that a label takes, and those around a bent edge and across a picture with words."""

HALO = 'text-anchor="middle" stroke="#fff" stroke-width="3" paint-order="stroke"'
"""The style of a label that lies on a line."""

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
    >>> picture.count("<rect"), picture.count("<polyline"), picture.count("<polygon")
    (2, 1, 1)
    """
    places, low, high = in_inches(layered_positions(graph))
    ways = [_way(graph, places, low, high, a, b) for a, b in graph.edges]
    (left, top), (right, bottom) = _corners(ways, (high - low) * DOTS)
    right = max(right, left + NARROWEST) if graph.certainty else right
    words = _words(graph, right - left)
    parts = [_edge(graph, *edge, way) for edge, way in zip(graph.edges, ways, strict=True)]
    parts += [_node(name, at, low, high) for name, at in places.items()]
    parts += _labels(graph, ways, places, low, high)
    parts += [_text(left + LEFT, bottom + LINE * (i + 0.7), w, 11) for i, w in enumerate(words)]
    wide, tall = right - left, bottom - top + LINE * len(words)
    view = f'viewBox="{left:.1f} {top:.1f} {wide:.1f} {tall:.1f}"'
    size = f'width="{wide:.0f}" height="{tall:.0f}" {view}'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    title = ": ".join(filter(None, ["The released graph", "; ".join(graph.remarks)]))
    return "\n".join([opening, f"<title>{escape(title)}</title>", *parts, "</svg>"])


def _corners(ways, size) -> tuple[np.ndarray, np.ndarray]:
    """Two corners of a picture of at least this size that no bent edge leaves."""
    ends = [np.zeros((1, 2)), size[None], *(way + side for way in ways for side in (-ASIDE, ASIDE))]
    points = np.concatenate(ends)
    return points.min(axis=0), points.max(axis=0)


def _words(graph, wide) -> list[str]:
    """What stands below the graph, in lines that fit."""
    if graph.certainty is None:
        return []
    legend = [LEGEND] if graph.edges else []
    most = max(20, int((wide - LEFT) / LETTER))
    return [line for text in [*graph.remarks, *legend] for line in wrap(text, most)]


def _labels(graph, ways, places, low, high) -> list[str]:
    """The probabilities of each edge on its way, clear of variables and of each other."""
    if graph.certainty is None:
        return []
    taken = list(_on_screen(list(places.values()), low, high))
    for way in ways:
        free = way[[len(way) * part // 20 for part in (10, 8, 12, 6, 14, 4, 16)]]
        taken.append(max(free, key=lambda place: _room(place, taken)))
    shown = zip(graph.edges, taken[len(places) :], strict=True)
    return [_text(x, y + 3, graph.label(a, b, short=True), 9, HALO) for (a, b), (x, y) in shown]


def _room(place, taken) -> float:
    """How far the nearest of these is, in sizes of a label; at 1 the two do not touch."""
    return min([1.0, *(float((np.abs(place - other) / LABEL).max()) for other in taken)])


def _text(x, y, words, size, style='text-anchor="start"') -> str:
    face = f'font-family="sans-serif" font-size="{size}" {style}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {face}>{escape(words)}</text>'


def _on_screen(points, low, high) -> np.ndarray:
    """Inches upwards become dots downwards."""
    x, y = np.asarray(points, float).T
    return np.stack([x - low[0], high[1] - y], axis=-1) * DOTS


def _way(graph, places, low, high, a, b) -> np.ndarray:
    """Points along an edge, outside the boxes of its ends."""
    start, end = graph.variables[a], graph.variables[b]
    way = way_between(places[start], places[end], least_bend(places, start, end))
    return _on_screen(way[~is_inside(way, places, (start, end)).any(axis=0)], low, high)


def _edge(graph, a, b, points) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[::10].tolist() + points[-1:].tolist())
    pair = frozenset((graph.variables[a], graph.variables[b]))
    weak = graph.certainty is not None and graph.certainty.edges[pair] < 0.5
    stroke = 'stroke="#000" stroke-width="1.3"' + (' stroke-dasharray="4 3"' if weak else "")
    line = f'<polyline points="{path}" fill="none" {stroke}/>'
    return line if graph.arcs[b, a] else line + _head(points)


def _head(points) -> str:
    """A triangle at the end of a way."""
    ahead = points[-1] - points[-min(len(points), 12)]
    ahead = ahead / max(float(np.hypot(*ahead)), 1e-9) * HEAD
    aside = np.array([-ahead[1], ahead[0]]) / 2
    corners = points[-1], points[-1] - ahead + aside, points[-1] - ahead - aside
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}" fill="#000"/>'


def _node(name, at, low, high) -> str:
    (x, y), wide, tall = _on_screen(at, low, high), width_of(name) * DOTS, HEIGHT * DOTS
    place = f'x="{x - wide / 2:.1f}" y="{y - tall / 2:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
    box = f'<rect {place} rx="8" fill="#f2f2f2" stroke="#000" stroke-width="0.8"/>'
    how = 'font-family="sans-serif" font-size="13" text-anchor="middle"'
    return f'{box}<text x="{x:.1f}" y="{y + 4.5:.1f}" {how}>{escape(name)}</text>'
