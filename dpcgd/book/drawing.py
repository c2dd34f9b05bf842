"""Graphs as pictures. Only notebooks import this: it needs matplotlib, an extra."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from dpcgd.book.style import BLACK, BLUE, GREY, VERMILLION, styled
from dpcgd.graphs.cpdag import CPDAG

__all__ = ["draw_graph", "layered_positions"]

EDGES: dict[str, dict[str, Any]] = {
    "same": dict(color=BLACK, linewidth=1.3, linestyle="-"),
    "extra": dict(color=VERMILLION, linewidth=3.2, linestyle="-"),
    "turned": dict(color=BLUE, linewidth=2.2, linestyle=(0, (4, 1, 1, 1))),
    "missing": dict(color=GREY, linewidth=1.3, linestyle=(0, (3, 3))),
}


ROW, HEIGHT = 0.82, 0.32
"""Inches between two layers of a drawn graph, and the height of a node."""

PAGE = 6.9
"""Inches that graphs side by side may take."""


@styled
def draw_graph(
    graphs: "nx.DiGraph | CPDAG | Mapping[str, nx.DiGraph | CPDAG]",
    *,
    reference: "nx.DiGraph | CPDAG | None" = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
    confidence: Mapping[frozenset[str], float] | None = None,
) -> plt.Figure:
    """Draw causal graphs, each variable at the same place, causes above effects.

    They stand side by side where a page has room for it, and below one another else.

    Parameters
    ----------
    graphs : networkx.DiGraph, CPDAG, or mapping of str to either
        The keys of a mapping become titles. A pair of opposite arcs is drawn as one plain line.
    reference : networkx.DiGraph or CPDAG, optional
        Edges that differ from it are marked: missing ones dashed and grey, extra ones thick and
        vermillion, those that point otherwise dash-dotted and blue. A DAG stands for its completed
        form, as in the scores of `CPDAG`.
    positions : mapping of str to (column, layer), optional
        Where each variable stands; :func:`layered_positions` of the reference, or of the first
        graph, unless given.
    confidence : mapping of frozenset to float, optional
        From a joined pair to a number up to 1, shown as the width of its line.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> truth = nx.DiGraph([("smoke", "lung"), ("smoke", "bronc")])
    >>> figure = draw_graph({"truth": truth, "class": CPDAG.from_dag(truth)})
    >>> [axes.get_title() for axes in figure.axes]
    ['truth', 'class']
    """
    graphs = dict(graphs) if isinstance(graphs, Mapping) else {"": graphs}
    places = positions or layered_positions(
        next(iter(graphs.values())) if reference is None else reference
    )
    spacing = max(0.72, max(map(_width, places)) + 0.16)
    places = {name: (x * spacing, -y * ROW) for name, (x, y) in places.items()}
    margin = np.array([spacing / 2, 0.26])
    low, high = np.min(list(places.values()), 0) - margin, np.max(list(places.values()), 0) + margin
    wide, tall = high - low
    foot, title_height = (0.0 if reference is None else 0.34), 0.28
    across = min(len(graphs), max(1, int(PAGE / wide)))
    rows = -(-len(graphs) // across)
    total = rows * (tall + title_height) + foot
    figure, grid = plt.subplots(rows, across, figsize=(wide * across, total), squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    kinds = set()
    for axes, (title, graph) in zip(grid.flat, graphs.items(), strict=False):
        axes.set(title=title, aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        kinds |= _draw_edges(axes, graph, reference, places, confidence or {})
        _draw_nodes(axes, places)
    _explain_edges(figure, kinds)
    around = dict(left=0, right=1, bottom=foot / total, top=1 - title_height / total)
    figure.subplots_adjust(**around, wspace=0.04, hspace=title_height / tall)
    return figure


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
    layers = [list(layer) for layer in nx.topological_generations(dag)]
    place: dict[str, tuple[float, float]] = {}
    for layer in layers:
        _centre(layer, place)
    for _ in range(8):
        for layer in (*layers, *reversed(layers)):
            mean = {v: np.mean([place[u][0] for u in nx.all_neighbors(dag, v)] or 0) for v in layer}
            layer.sort(key=mean.get)
            _centre(layer, place)
    return {v: (place[v][0], i) for i, layer in enumerate(layers) for v in layer}


def _centre(layer, place):
    for i, v in enumerate(layer):
        place[v] = (i - (len(layer) - 1) / 2, 0)


def _any_dag(graph) -> nx.DiGraph:
    """The directed edges, and every other one in column order unless that closes a cycle."""
    both = _as_digraph(graph)
    order = {v: i for i, v in enumerate(both)}
    dag = nx.DiGraph()
    dag.add_nodes_from(order)
    loose = [(a, b) for a, b in both.edges if both.has_edge(b, a)]
    fixed = [arc for arc in both.edges if arc not in set(loose)]
    for a, b in (*fixed, *sorted(loose, key=lambda arc: (order[arc[0]], order[arc[1]]))):
        if not nx.has_path(dag, b, a):
            dag.add_edge(a, b)
    return dag


def _as_digraph(graph) -> nx.DiGraph:
    return graph.to_networkx() if isinstance(graph, CPDAG) else graph


def _width(name) -> float:
    """Inches that a node needs for its name."""
    return 0.15 + 0.083 * len(name)


def _draw_nodes(axes, places):
    for name, (x, y) in places.items():
        wide = _width(name)
        box = FancyBboxPatch(
            (x - wide / 2, y - HEIGHT / 2),
            wide,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor="#F2F2F2",
            edgecolor=BLACK,
            linewidth=0.8,
            zorder=3,
        )
        axes.add_patch(box)
        axes.text(x, y, name, ha="center", va="center_baseline", fontsize=10.5, zorder=4)


def _draw_edges(axes, graph, reference, places, confidence) -> set[str]:
    arcs = set(_as_digraph(graph).edges)
    if reference is None:
        compared = arcs
    else:
        whole = reference if isinstance(reference, CPDAG) else CPDAG.from_dag(reference)
        compared = set(_as_digraph(whole).edges)
    kinds = set()
    for pair in {frozenset(arc) for arc in arcs | compared}:
        a, b = sorted(pair, key=list(places).index)
        here = {arc for arc in ((a, b), (b, a)) if arc in arcs}
        there = {arc for arc in ((a, b), (b, a)) if arc in compared}
        kind = _kind(here, there)
        start, end = next(iter(here)) if len(here) == 1 else (a, b)
        wide = {"linewidth": 0.4 + 3 * confidence[pair]} if here and pair in confidence else {}
        _draw_edge(axes, places, start, end, arrow=len(here) == 1, **EDGES[kind] | wide)
        kinds.add(kind)
    return kinds


def _kind(here, there) -> str:
    if here == there:
        return "same"
    if not here:
        return "missing"
    return "turned" if there else "extra"


def _draw_edge(axes, places, start, end, *, arrow, **line):
    bend = _least_bend(places, start, end)
    way = _way(places[start], places[end], bend)
    free = way[~_inside(way, places, (start, end)).any(axis=0)]
    axes.add_patch(
        FancyArrowPatch(
            free[0],
            free[-1],
            arrowstyle="-|>,head_length=4.6,head_width=2.3" if arrow else "-",
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=0,
            shrinkB=1 if arrow else 0,
            mutation_scale=1.6,
            zorder=1 if line["color"] == GREY else 2,
            **line,
        )
    )


def _way(start, end, bend, points=200) -> np.ndarray:
    """Points along matplotlib's arc3 curve between two places."""
    (x, y), (u, v) = start, end
    middle = ((x + u) / 2 + bend * (v - y), (y + v) / 2 - bend * (u - x))
    t = np.linspace(0, 1, points)[:, None]
    return (
        (1 - t) ** 2 * np.array(start) + 2 * t * (1 - t) * np.array(middle) + t**2 * np.array(end)
    )


def _inside(way, places, names, margin=0.0) -> np.ndarray:
    """Which points of a way lie in the boxes of these variables, a row for each."""
    half = np.array([(_width(name) / 2 + margin, HEIGHT / 2 + margin) for name in names])
    centre = np.array([places[name] for name in names])
    return (np.abs(way - centre[:, None]) < half[:, None]).all(axis=2)


def _least_bend(places, start, end) -> float:
    """The straightest of a few ways that crosses no other variable's box."""
    others = [name for name in places if name not in (start, end)]
    if not others:
        return 0.0

    def crossed(bend):
        return _inside(_way(places[start], places[end], bend), places, others, 0.03).any(1).sum()

    return min((0.0, 0.2, -0.2, 0.35, -0.35, 0.5, -0.5), key=crossed)


def _explain_edges(figure, kinds):
    words = {"extra": "extra edge", "turned": "direction differs", "missing": "missing edge"}
    lines = [Line2D([], [], label=text, **EDGES[k]) for k, text in words.items() if k in kinds]
    if lines:
        figure.legend(handles=lines, loc="lower center", ncols=len(lines), handlelength=3)
