"""A graph as a picture that any browser draws, without another package."""

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


def to_svg(graph: CPDAG) -> str:
    """Draw a graph, causes above effects; an edge without direction is a plain line.

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
    wide, tall = (high - low) * DOTS
    lines = [_edge(graph, places, low, high, a, b) for a, b in graph.edges]
    boxes = [_node(name, at, low, high) for name, at in places.items()]
    size = f'width="{wide:.0f}" height="{tall:.0f}" viewBox="0 0 {wide:.1f} {tall:.1f}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    return "\n".join([opening, "<title>The released graph</title>", *lines, *boxes, "</svg>"])


def _on_screen(points, low, high) -> np.ndarray:
    """Inches upwards become dots downwards."""
    x, y = np.asarray(points, float).T
    return np.stack([x - low[0], high[1] - y], axis=-1) * DOTS


def _edge(graph, places, low, high, a, b) -> str:
    start, end = graph.variables[a], graph.variables[b]
    way = way_between(places[start], places[end], least_bend(places, start, end))
    free = way[~is_inside(way, places, (start, end)).any(axis=0)]
    points = _on_screen(free, low, high)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[::10].tolist() + points[-1:].tolist())
    line = f'<polyline points="{path}" fill="none" stroke="#000" stroke-width="1.3"/>'
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
