"""Figures on local privacy: channels with their privacy, and results by mechanism and level."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import BLUE, GREEN, GREY, ORANGE, SERIES, VERMILLION, styled

__all__ = ["MECHANISMS", "by_level", "by_size", "channels"]

MECHANISMS = {
    "k-RR c-wise": (VERMILLION, "--", "s"),
    "k-RR combined": (ORANGE, ":", "D"),
    "Geo c-wise": (BLUE, "-", "o"),
    "Geo combined": (GREEN, "-.", "^"),
}
"""Colour, line style and marker of each mechanism, the same in every figure."""


@styled
def channels(
    panels: Mapping[str, np.ndarray], numbers: Mapping[str, Mapping[str, float]]
) -> plt.Figure:
    """Draw channels as heat maps, each with its numbers underneath.

    Parameters
    ----------
    panels : mapping of str to array
        From a mechanism's name to its channel: one row for each record, one column for each report.
    numbers : mapping of str to mapping of str to float
        From a mechanism's name to what is printed below it, by name.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = -(-len(panels) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(5.6, 3.5 * rows), squeeze=False, layout="constrained"
    )
    top = max(channel.max() for channel in panels.values())
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (name, channel) in zip(grid.flat, panels.items(), strict=False):
        image = axes.imshow(channel, cmap="Blues", vmin=0, vmax=top)
        ends = [0, len(channel) - 1]
        said = "\n".join(f"{value:.2f}  {what}" for what, value in numbers[name].items())
        axes.set(title=name, xticks=ends, yticks=ends)
        axes.set_xlabel(f"report\n{said}", linespacing=1.35)
        axes.spines[:].set_visible(True)
    for axes in grid[:, 0]:
        axes.set_ylabel("record")
    figure.colorbar(image, ax=grid, label="probability", shrink=0.5, aspect=20)
    return figure


@styled
def by_level(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple]]],
    *,
    ylabel: str | Sequence[str],
    xlabel: str = "",
    lines: Mapping[str, Mapping[str, float]] | None = None,
    apart: int = 0,
) -> plt.Figure:
    """Plot means and intervals of the four mechanisms over levels, two panels in a row.

    Parameters
    ----------
    panels : mapping of str to mapping of str to mapping of str to tuple
        From a panel's title to its mechanisms to their levels to (mean, spread) or (mean, low,
        high).
    ylabel : str or sequence of str
        One for all panels, or one for each.
    xlabel : str
    lines : mapping of str to mapping of str to float, optional
        From a line's name, at most two, to its height in each panel.
    apart : int
        So many of the first levels are another scale: a line parts them from the rest.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = -(-len(panels) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(7.4, 2.7 * rows + 0.6), squeeze=False, layout="constrained"
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    labels = [ylabel] * len(panels) if isinstance(ylabel, str) else ylabel
    for axes, (title, series), label in zip(grid.flat, panels.items(), labels, strict=False):
        names = list(dict.fromkeys(level for values in series.values() for level in values))
        for i, (mechanism, values) in enumerate(series.items()):
            color, line, marker = MECHANISMS.get(mechanism, SERIES[i % len(SERIES)])
            style = dict(color=color, marker=marker, ms=5, capsize=2, markerfacecolor="white")
            for part in filter(None, (names[apart:], names[:apart])):
                told = [level for level in part if level in values]
                at = [names.index(level) + 0.13 * (i - (len(series) - 1) / 2) for level in told]
                mean, low, high = _three([values[level] for level in told])
                shown = mechanism if part == names[apart:] else None
                bars = [mean - low, high - mean]
                axes.errorbar(at, mean, bars, linestyle=line, label=shown, **style)
        for (name, heights), dashes in zip((lines or {}).items(), ("-", (0, (1, 1))), strict=False):
            where = dict(color=GREY, linewidth=1.3, zorder=0, linestyle=dashes)
            axes.axhline(heights[title], label=name, **where)
        if apart:
            axes.axvline(apart - 0.5, color=GREY, linewidth=0.8)
        axes.set_xticks(range(len(names)), names)
        axes.set(title=title, xlim=(-0.5, len(names) - 0.5), ylabel=label, xlabel=xlabel)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _three(values):
    """Mean, low and high of each; from a spread if there are only two numbers."""
    both = [v if len(v) == 3 else (v[0], v[0] - v[1], v[0] + v[1]) for v in values]
    return np.nan_to_num(np.array(both, float).reshape(-1, 3).T)


@styled
def by_size(
    series: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]],
    *,
    xlabel: str,
    ylabel: str,
) -> plt.Figure:
    """Plot means with their spread against a number of reports.

    Parameters
    ----------
    series : mapping of str to (x, mean, spread)
        At most four.
    xlabel, ylabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for i, (name, (x, mean, spread)) in enumerate(series.items()):
        color, line, marker = SERIES[i]
        at = np.asarray(x) * 1.04 ** (i - (len(series) - 1) / 2)  # not on top of each other
        style: dict[str, Any] = dict(color=color, linestyle=line, marker=marker)
        axes.errorbar(
            at, mean, spread, label=name, ms=5, capsize=2, markerfacecolor="white", **style
        )
    axes.set(xlabel=xlabel, ylabel=ylabel, xscale="log")
    figure.legend(loc="outside upper center", ncols=4)
    return figure
