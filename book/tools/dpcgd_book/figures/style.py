"""The look of the book's figures.

Most colours are Okabe and Ito's, which colour-blind readers can tell apart. No figure relies on
colour alone: each curve has its own marker or line style too.
"""

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import use

__all__ = ["BLACK", "BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "SKY", "VERMILLION", "LOOKS"]
__all__ += ["SERIES", "legend", "looks_of", "panels", "subplots"]

BLACK, GREY, BLUE = "#000000", "#8C8C8C", "#0072B2"
"""Okabe and Ito's black and blue, and a grey."""


VERMILLION, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
"""Okabe and Ito's vermillion, bluish green and reddish purple."""


ORANGE, SKY, OLIVE = "#E69F00", "#56B4E9", "#7F6A00"
"""Okabe and Ito's orange and sky blue, and a dark yellow that is seen on white."""


BROWN, INDIGO, WINE = "#8C510A", "#332288", "#882255"
LIME, MAGENTA = "#7DB300", "#E7298A"
"""Five more colours, for systems beyond Okabe and Ito's eight."""


CRIMSON, SALMON, COBALT, TEAL = "#B2182B", "#EF8A62", "#4169E1", "#1B9E9E"
"""Of channels: randomised response is warm, geometric noise is cold."""


SERIES = tuple(zip((BLUE, VERMILLION, GREEN, PURPLE), ("-", "--", "-.", ":"), "osD^", strict=True))
"""Colour, line style and marker of the first, second, ... series of a figure."""


BY_SCORES = ("CURATE, score", "CURATE, 30 gradients", "CURATE by scores")
"""Names in figures of the CURATE that learns by gradients instead of tests."""


Look = tuple[str, Any, str]

LOOKS: dict[str, Look] = {
    "private_graph": (BLACK, "-", "p"),
    "table_pc": (BLUE, (0, (10, 1.5)), "o"),
    "graph_from_moments": (BROWN, (0, (8, 2, 2, 2)), "h"),
    "dag_posterior": (WINE, (0, (7, 1, 1, 1, 1, 1)), "d"),
    "Gram NOTEARS": (VERMILLION, (0, (4, 1.6)), "s"),
    "Priv-PC": (GREEN, (0, (6, 1.6, 1, 1.6)), "D"),
    "EM-PC": (PURPLE, (0, (1, 1.6)), "^"),
    "CURATE": (ORANGE, (0, (3, 1, 1, 1)), "v"),
    **dict.fromkeys(BY_SCORES, (MAGENTA, (0, (2, 1)), "x")),
    "NoLeaks": (SKY, (0, (5, 1)), "P"),
    "SVT-PC": (OLIVE, (0, (1, 1)), "X"),
    "Laplace-PC": (INDIGO, (0, (6, 2)), "<"),
    **dict.fromkeys(("MST", "MST+PC", "synthetic records"), (LIME, (0, (3, 3)), "*")),
    "k-RR c-wise": (CRIMSON, "--", "^"),
    "k-RR combined": (SALMON, ":", "s"),
    "Geo c-wise": (COBALT, "-", "D"),
    "Geo combined": (TEAL, "-.", "o"),
}
"""Colour, line style and marker of each system and channel, the same in every figure.

No two share a colour. No two systems share a line style or a marker; nor do the four channels,
which never stand in one figure with a system.
"""


BESIDE: dict[str, Look] = {
    **dict.fromkeys(("PC", "best"), (GREY, "--", "")),
    "complete graph": (GREY, ":", ""),
    **dict.fromkeys(("proved constant", "proved constants", "proved bound"), (BLUE, "-", "o")),
    **dict.fromkeys(("published constant", "published constants"), (VERMILLION, "--", "s")),
    "published bound": (VERMILLION, "--", "s"),
    "printed": (BLACK, "-", "^"),
    "simulated": (BLUE, "", "o"),
    "looked up": (GREEN, (0, (6, 5)), "D"),
}
"""What systems are compared with: search without privacy, and the graph that joins all pairs.

Below that, what a paper's constants give, and what ours give.
"""


def looks_of(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Settings of each curve of a figure; two variants of one system are told apart.

    What follows a system's name and a comma is a variant. Variants share their system's colour. The
    second has another line and marker, and markers are white inside. Curves that the book has no
    look for take the first series whose colour no other curve has.

    Parameters
    ----------
    names : iterable of str
        In the order in which they are drawn.

    Returns
    -------
    dict of str to dict
        From a name to settings that matplotlib's ``plot`` takes.

    Examples
    --------
    >>> looks = looks_of(["Priv-PC", "CURATE", "CURATE, published", "a guess"])
    >>> [look["marker"] for look in looks.values()]
    ['D', 'v', '>', 'o']
    """
    known = LOOKS | BESIDE
    system_of = {name: _system(name, known) for name in names}
    taken = {known[system][0] for system in system_of.values() if system in known}
    others: dict[str, Look] = {}
    for look in (*SERIES, *LOOKS.values()):
        others.setdefault(look[0], look)
    free = cycle(look for color, look in others.items() if color not in taken)
    looks: dict[str, dict[str, Any]] = {}
    for place, (name, system) in enumerate(system_of.items()):
        color, line, marker = known[system] if system in known else next(free)
        fill, earlier = color, [*system_of.values()][:place].count(system)
        if earlier and system in LOOKS:
            line, marker = VARIANTS[(earlier - 1) % len(VARIANTS)]
            fill = "white"
        looks[name] = dict(color=color, linestyle=line, marker=marker, markerfacecolor=fill)
    return looks


def _system(name, known) -> str:
    """What a curve is a variant of: the longest name that has a look and ends before a comma."""
    parts = name.split(",")
    starts = (",".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((start for start in starts if start in known), name)


VARIANTS: tuple[tuple[Any, str], ...] = (((0, (5, 1.5)), ">"), ((0, (1, 1.2)), "p"))
"""Line style and marker of a system's second and third variant in one figure."""


use(Path(__file__).with_name("book.mplstyle"))


def subplots(
    rows: int = 1, columns: int = 1, *, size: tuple, layout: Any = None, **shared: Any
) -> tuple[Figure, Any]:
    """A figure and its axes, as pyplot's, which would keep it open: a notebook shows it at once.

    Parameters
    ----------
    rows, columns : int
    size : (float, float)
        Inches of the figure.
    layout : str, optional
        The style's unless given.
    **shared
        `sharex`, `sharey` and `squeeze`, as matplotlib takes them.
    """
    figure = Figure(size, layout=layout)
    return figure, figure.subplots(rows, columns, **shared)


def panels(
    count: int, wide: float, tall: float, *, foot: float = 0.0, ylabel: str = "", **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, at most two in a row, and their axes.

    Parameters
    ----------
    count : int
    wide : float
        Inches of the figure.
    tall : float
        Inches of a row.
    foot : float
        Inches for a legend.
    ylabel : str
        What the first panel of each row has at its side.
    **shared
        `sharex` and `sharey`, as matplotlib takes them.
    """
    rows, columns = -(-count // 2), min(2, count)
    figure, grid = subplots(rows, columns, size=(wide, tall * rows + foot), squeeze=False, **shared)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    return figure, list(grid.flat[:count])


def legend(figure: Figure, place: str = "outside lower center", **settings: Any) -> None:
    """Explain every name in a figure once, outside of its panels."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        handles |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend([*handles.values()], [*handles], **{"loc": place, "handlelength": 3, **settings})


if shell := get_ipython():  # figures of a notebook as vectors
    shell.run_line_magic("matplotlib", "inline")
    shell.run_line_magic("config", "InlineBackend.figure_formats = ['svg']")
