"""Figures of chapters 08, 09 and 23: how often a private direction is right."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import PercentFormatter

from dpcgd_book.figures.style import BLACK, BLUE, GREEN, GREY, PURPLE, SKY, VERMILLION, styled

__all__ = ["chances", "printed_and_ours", "released_margins"]

LOOKS = {
    "proved": (BLUE, "-", "o"),
    "published": (VERMILLION, "--", "s"),
    "printed": (BLACK, "-", "^"),
    "simulated": (BLUE, "", "o"),
    "looked up": (GREEN, (0, (6, 5)), "D"),
}
"""Colour, line and marker by how a curve's name begins, the same in all figures of these pages."""


OTHERS = ((SKY, ":", "v"), (GREEN, "-.", "D"), (BLUE, "-", "o"), (PURPLE, (0, (1, 1)), "P"))
"""Of the other curves, in their order."""


def _look(name: str, place: int):
    known = (look for start, look in LOOKS.items() if name.startswith(start))
    return next(known, OTHERS[place % len(OTHERS)])


@styled
def chances(
    panels: Mapping[str, Mapping[str, Sequence]],
    *,
    xlabel: str | Sequence[str],
    limits: tuple[float, float] | None = None,
    points: Sequence[str] = (),
    marked: bool = False,
) -> plt.Figure:
    """Plot chances of the right direction, two panels in a row.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (x, y) or (x, y, error)
        From a panel's title to its curves by name; an error is drawn as a band, or as bars at
        points. The first panel has all names.
    xlabel : str or sequence of str
        Of all panels, or of each. The axis is logarithmic.
    limits : (float, float), optional
        Of the vertical axis.
    points : sequence of str
        Curves that are drawn as points without a line.
    marked : bool
        Whether lines have markers too.

    Returns
    -------
    matplotlib.figure.Figure
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(7.2 if columns > 1 else 6.4, 0.8 + 2.6 * rows),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    xlabels = [xlabel] * len(panels) if isinstance(xlabel, str) else xlabel
    for axes, (title, lines), below in zip(grid.flat, panels.items(), xlabels, strict=False):
        axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1, label="a coin", zorder=0)
        for place, (name, (x, y, *error)) in enumerate(lines.items()):
            color, line, marker = _look(name, place)
            if name in points:
                style = {"linestyle": "", "marker": marker, "capsize": 2, "ms": 5}
                bars = error[0] if error else None
                axes.errorbar(x, y, bars, color=color, mfc="white", label=name, **style)
                continue
            marks = {"marker": marker, "ms": 4.5, "mfc": "white"} if marked else {}
            axes.plot(x, y, color=color, linestyle=line, label=name, **marks)
            if error:
                low, high = np.subtract(y, error[0]), np.add(y, error[0])
                axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        axes.set(title=title, xscale="log", xlabel=below)
        if limits:
            axes.set_ylim(limits)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("chance of the right direction")
    _legend_below(figure, grid.flat[0])
    return figure


@styled
def printed_and_ours(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    ticks: Sequence[str],
    xlabel: str,
) -> plt.Figure:
    """Plot shares at a few budgets side by side, with bars, two panels in a row.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (shares, errors)
        From a panel's title to what is compared; the first panel has all names.
    ticks : sequence of str
        The budgets.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = -(-len(panels) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(7.2, 0.7 + 2.3 * rows), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, (title, lines) in zip(grid.flat, panels.items(), strict=False):
        axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1, label="a coin", zorder=0)
        for place, (name, (shares, errors)) in enumerate(lines.items()):
            color, _, marker = _look(name, place)
            at = np.arange(len(shares)) + 0.2 * (place - (len(lines) - 1) / 2)
            style = {"marker": marker, "linestyle": "", "ms": 5, "capsize": 2, "mfc": "white"}
            axes.errorbar(at, shares, errors, color=color, label=name, **style)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set(title=title, xlabel=xlabel)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in grid[:, 0]:
        axes.set_ylabel("right directions")
    _legend_below(figure, grid.flat[0])
    return figure


def _legend_below(figure, axes):
    lines, labels = axes.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=2, handlelength=3, fontsize=10)


@styled
def released_margins(
    margins: Sequence[float], exact: float, *, sides: tuple[str, str], xlabel: str
) -> plt.Figure:
    """Plot the differences of two scores that several private runs released, one a line.

    Parameters
    ----------
    margins : sequence of float
        One for each release; above 0 the direction is right.
    exact : float
        The difference without noise, drawn as a dashed line.
    sides : (str, str)
        What a difference below 0 and one above 0 say.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
    axes.axvline(0, color=BLACK, linewidth=0.9)
    axes.axvline(exact, color=GREEN, linestyle="--", label="without noise")
    looks = (BLUE, "o", "right", True), (VERMILLION, "s", "wrong", False)
    for color, marker, label, right in looks:
        here = [(m, i + 1) for i, m in enumerate(margins) if (m > 0) == right]
        for m, i in here:
            axes.plot([0, m], [i, i], color=color, linewidth=0.9)
        if here:
            margin, row = zip(*here, strict=True)
            axes.plot(margin, row, label=label, color=color, marker=marker, linestyle="", ms=7)
    reach = 1.15 * max(np.max(np.abs(margins)), abs(exact))
    count = len(margins)
    axes.set(xlim=(-reach, reach), ylim=(count + 0.6, -0.9), xlabel=xlabel, ylabel="release")
    axes.set_yticks([1, *range(5, count + 1, 5)])
    for place, ha, text in zip((-reach, reach), ("left", "right"), sides, strict=True):
        axes.text(place, -0.3, text, ha=ha, va="center")
    figure.legend(loc="outside lower center", ncols=3)
    return figure
