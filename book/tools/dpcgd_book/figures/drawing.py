"""Graphs as pictures."""

from collections.abc import Collection, Mapping
from textwrap import wrap
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.patheffects import withStroke

from dpcgd.graphs import drawing as layout
from dpcgd.graphs.cpdag import CPDAG
from dpcgd_book.figures.style import BLACK, BLUE, GREY, VERMILLION, subplots

__all__ = ["draw_graph", "sure_arrows"]

EDGES: dict[str, dict[str, Any]] = {
    "same": dict(color=BLACK, linewidth=1.3, linestyle="-"),
    "extra": dict(color=VERMILLION, linewidth=3.2, linestyle="-"),
    "turned": dict(color=BLUE, linewidth=2.2, linestyle=(0, (4, 1, 1, 1))),
    "missing": dict(color=GREY, linewidth=1.3, linestyle=(0, (3, 3))),
}


WORDS = {"extra": "extra edge", "turned": "direction differs", "missing": "missing edge"}
"""What edges that differ from a reference are called."""


PAGE = 6.9
"""Inches that graphs side by side may take."""


def draw_graph(
    graphs: "nx.DiGraph | CPDAG | Mapping[str, nx.DiGraph | CPDAG]",
    *,
    reference: "nx.DiGraph | CPDAG | None" = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
    confidence: Mapping[frozenset[str], float] | None = None,
) -> Figure:
    """Draw causal graphs, each variable at the same place, causes above effects.

    They stand side by side where a page has room for it, and below one another else. A graph with
    a certainty shows the probability of each edge and, after a stroke, that of its arrow.

    Parameters
    ----------
    graphs : networkx.DiGraph, CPDAG, or mapping of str to either
        The keys of a mapping become titles. A pair of opposite arcs is drawn as one plain line.
    reference : networkx.DiGraph or CPDAG, optional
        Edges that differ from it are marked: missing ones dashed and grey, extra ones thick and
        vermillion, those that point otherwise dash-dotted and blue. A DAG stands for its completed
        form, as in the scores of `CPDAG`.
    positions : mapping of str to (column, layer), optional
        Where each variable stands; :func:`~dpcgd.graphs.drawing.layered_positions` of the
        reference, or of the first graph, unless given.
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
    first = next(iter(graphs.values())) if reference is None else reference
    places, low, high = layout.in_inches(positions or layout.layered_positions(first))
    wide, tall = high - low
    titles = {_titled(title, graph, wide): graph for title, graph in graphs.items()}
    lines = max(title.count("\n") for title in titles)
    foot, title_height = (0.0 if reference is None else 0.34), 0.28 + 0.19 * lines
    across = min(len(graphs), max(1, int(PAGE / wide)))
    rows = -(-len(graphs) // across)
    total = rows * (tall + title_height) + foot
    figure, grid = subplots(rows, across, size=(wide * across, total), squeeze=False, layout="none")
    for axes in grid.flat:
        axes.set_axis_off()
    kinds = set()
    for axes, (title, graph) in zip(grid.flat, titles.items(), strict=False):
        axes.set(title=title, aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        kinds |= _draw_edges(axes, graph, reference, places, confidence or {})
        _label_edges(axes, graph, places)
        _draw_nodes(axes, places)
    looks = {text: EDGES[kind] for kind, text in WORDS.items() if kind in kinds}
    _explain(figure, looks, "lower center")
    around = dict(left=0, right=1, bottom=foot / total, top=1 - title_height / total)
    figure.subplots_adjust(**around, wspace=0.04, hspace=title_height / tall)
    return figure


def _titled(title, graph, wide) -> str:
    """A title, and below it what a graph with probabilities has to say of itself."""
    remarks = graph.remarks if isinstance(graph, CPDAG) else []
    below = [line for remark in remarks for line in wrap(remark, max(12, int(wide * 11)))]
    return "\n".join([title] * bool(title) + below)


def _label_edges(axes, graph, places):
    """The probabilities of a graph that has some, where its edges have room for them."""
    certain = isinstance(graph, CPDAG) and graph.certainty is not None
    taken = [*layout.on_screen([*places.values()])]
    size = np.clip(8 * axes.figure.get_figwidth() / PAGE, 8, 9.5)  # a wide picture is shrunk
    for ends in graph.edges if certain else ():
        way = layout.free_way(places, *(graph.variables[end] for end in ends))
        taken.append(layout.label_place(layout.on_screen(way), taken))
        place = taken[-1] / layout.on_screen((1, 1))
        label = axes.text(*place, graph.label(*ends, short=True), fontsize=size, zorder=5)
        label.set(ha="center", va="center")
        label.set_path_effects([withStroke(linewidth=4, foreground="white")])


def _draw_nodes(axes, places):
    for name, (x, y) in places.items():
        wide = layout.width_of(name)
        box = FancyBboxPatch((x - wide / 2, y - layout.HEIGHT / 2), wide, layout.HEIGHT, zorder=3)
        box.set_boxstyle("round,pad=0,rounding_size=0.12")
        box.set(facecolor="#F2F2F2", edgecolor=BLACK, linewidth=0.8)
        axes.add_patch(box)
        axes.text(x, y, name, ha="center", va="center_baseline", fontsize=10.5, zorder=4)


def _draw_edges(axes, graph, reference, places, confidence) -> set[str]:
    arcs = set(layout.as_digraph(graph).edges)
    if reference is not None and not isinstance(reference, CPDAG):
        reference = CPDAG.from_dag(reference)
    compared = arcs if reference is None else set(layout.as_digraph(reference).edges)
    kinds, place = set(), [*places].index
    for a, b in sorted({tuple(sorted(arc, key=place)) for arc in arcs | compared}):
        here, there = ({(a, b), (b, a)} & own for own in (arcs, compared))
        kind = "extra" if here else "missing"
        if here and there:
            kind = "same" if here == there else "turned"
        start, end = next(iter(here)) if len(here) == 1 else (a, b)
        sure = confidence.get(frozenset((a, b)))
        wide = {"linewidth": 0.4 + 3 * sure} if here and sure is not None else {}
        _draw_edge(axes, places, start, end, arrow=len(here) == 1, **EDGES[kind] | wide)
        kinds.add(kind)
    return kinds


def _draw_edge(axes, places, start, end, *, arrow, **line):
    bend, way = layout.least_bend(places, start, end), layout.free_way(places, start, end)
    head = "-|>,head_length=4.6,head_width=2.3" if arrow else "-"
    line |= dict(arrowstyle=head, shrinkA=0, shrinkB=1 if arrow else 0, mutation_scale=1.6)
    line |= dict(connectionstyle=f"arc3,rad={bend}", zorder=1 if line["color"] == GREY else 2)
    axes.add_patch(FancyArrowPatch(way[0], way[-1], **line))


def _explain(figure, looks, place):
    """What lines of each look stand for."""
    lines = [Line2D([], [], label=text, **look) for text, look in looks.items()]
    if lines:
        figure.legend(handles=lines, loc=place, ncols=len(lines), handlelength=3)


RIGHT: dict[str, Any] = {"color": BLACK, "linewidth": 1.6, "linestyle": "-"}
WRONG: dict[str, Any] = {"color": VERMILLION, "linewidth": 2.6, "linestyle": (0, (4, 1, 1, 1))}


def sure_arrows(
    graph: CPDAG, shares: Mapping[tuple[str, str], float], truth: CPDAG, part: Collection[str]
) -> Figure:
    """Draw a part of a graph beside what is true of it.

    Parameters
    ----------
    graph : CPDAG
        Edges without an arrow are plain lines.
    shares : mapping of (cause, effect) to float
        How sure each arrow is: the surer, the stronger its line.
    truth : CPDAG
        Arrows and edges that it does not have are vermillion; those that the graph lacks, dashed.
    part : collection of str
        Variables that are drawn, with the edges between them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    shown = truth.to_networkx()
    shown.remove_nodes_from({*shown} - {*part})
    places, low, high = layout.in_inches(layout.layered_positions(shown))
    figure, axes = subplots(size=tuple(high - low + (0, 0.4)))
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for start, end in map(sorted, truth.skeleton - graph.skeleton):
        if {start, end} <= {*part}:
            _draw_edge(axes, places, start, end, arrow=False, **EDGES["missing"])
    for ends in ((graph.variables[a], graph.variables[b]) for a, b in graph.edges):
        if {*ends} <= {*part}:
            arrow = ends in graph.arrows
            true = ends in truth.arrows if arrow else {*ends} in truth.skeleton
            dark = 0.2 + 0.8 * shares[ends] ** 2 if arrow else 1.0
            _draw_edge(axes, places, *ends, arrow=arrow, alpha=dark, **(RIGHT if true else WRONG))
    _draw_nodes(axes, places)
    looks = {"right": RIGHT, "wrong": WRONG, "missing edge": EDGES["missing"]}
    _explain(figure, looks, "outside lower center")
    return figure
