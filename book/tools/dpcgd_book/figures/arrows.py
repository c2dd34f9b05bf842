"""Figure of the chapter on arrows: a part of a graph, its arrows as dark as they are sure."""

from collections.abc import Collection, Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.graphs.drawing import in_inches, layered_positions
from dpcgd_book.figures.drawing import EDGES, _draw_edge, _draw_nodes
from dpcgd_book.figures.style import BLACK, VERMILLION, styled

__all__ = ["sure_arrows"]

RIGHT: dict[str, Any] = {"color": BLACK, "linewidth": 1.6, "linestyle": "-"}
WRONG: dict[str, Any] = {"color": VERMILLION, "linewidth": 2.6, "linestyle": (0, (4, 1, 1, 1))}


@styled
def sure_arrows(
    graph: CPDAG,
    shares: Mapping[tuple[str, str], float],
    truth: CPDAG,
    part: Collection[str],
) -> plt.Figure:
    """Draw a part of a graph beside what is true of it.

    Parameters
    ----------
    graph : CPDAG
        Edges without an arrow are plain lines.
    shares : mapping of (cause, effect) to float
        How sure each arrow is: the surer, the darker.
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
    places, low, high = in_inches(layered_positions(shown))
    figure, axes = plt.subplots(figsize=tuple(high - low + (0, 0.4)), layout="constrained")
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for start, end in (sorted(pair) for pair in truth.skeleton - graph.skeleton):
        if {start, end} <= {*part}:
            _draw_edge(axes, places, start, end, arrow=False, **EDGES["missing"])
    for a, b in graph.edges:
        start, end = graph.variables[a], graph.variables[b]
        if {start, end} <= {*part}:
            arrow = (start, end) in graph.arrows
            true = (start, end) in truth.arrows if arrow else {start, end} in truth.skeleton
            dark = 0.2 + 0.8 * shares[start, end] ** 2 if arrow else 1.0
            look = (RIGHT if true else WRONG) | {"alpha": dark, "arrow": arrow}
            _draw_edge(axes, places, start, end, **look)
    _draw_nodes(axes, places)
    looks = {"right": RIGHT, "wrong": WRONG, "missing edge": EDGES["missing"]}
    lines = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=3, handlelength=3)
    return figure
