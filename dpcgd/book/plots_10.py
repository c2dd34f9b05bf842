"""Figures of chapter 10: channels with their privacy, and estimates with their intervals."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from dpcgd.book.style import GREY, SERIES, styled

__all__ = ["channels", "intervals"]


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
    size = (2.0 * len(panels) + 0.6, 3.3)
    figure, row = plt.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
    top = max(channel.max() for channel in panels.values())
    for axes, (name, channel) in zip(row[0], panels.items(), strict=True):
        image = axes.imshow(channel, cmap="Blues", vmin=0, vmax=top)
        ends = [0, len(channel) - 1]
        said = "\n".join(f"{value:.2f}  {what}" for what, value in numbers[name].items())
        axes.set(title=name.replace(", ", ",\n"), xticks=ends, yticks=ends)
        axes.set_xlabel(f"report\n{said}", linespacing=1.35, fontsize=9)
        axes.spines[:].set_visible(True)
    row[0][0].set_ylabel("record")
    figure.colorbar(image, ax=row[0], label="probability", shrink=0.6, aspect=14)
    return figure


@styled
def intervals(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple[float, float, float]]]],
    *,
    ylabel: str,
    lines: Mapping[str, Mapping[str, float]],
    columns: int = 2,
) -> plt.Figure:
    """Plot values with intervals over named categories, one small panel for each group.

    Parameters
    ----------
    panels : mapping of str to mapping of str to mapping of str to (value, low, high)
        From a panel's title to its series by name, at most four, to its categories.
    ylabel : str
    lines : mapping of str to mapping of str to float
        From a line's name, at most two, to its height in each panel.
    columns : int
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = -(-len(panels) // columns)
    size = (9, 2.6 * rows + 0.7)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, series) in zip(grid.flat, panels.items(), strict=False):
        for i, (name, values) in enumerate(series.items()):
            color, _, marker = SERIES[i]
            at = np.arange(len(values)) + 0.16 * (i - (len(series) - 1) / 2)
            middle, low, high = np.transpose(list(values.values()))
            bars = np.abs(np.array([low, high]) - middle)
            style = dict(color=color, marker=marker, ms=5, capsize=2, linestyle="")
            axes.errorbar(at, middle, bars, label=name, markerfacecolor="white", **style)
        for (name, heights), dashes in zip(lines.items(), ((0, (6, 2)), (0, (1, 1))), strict=False):
            style = dict(color=GREY, linewidth=1.2, zorder=0)
            axes.axhline(heights[title], label=name, linestyle=dashes, **style)
        axes.set_xticks(range(len(values)), [name.replace(" ", "\n", 1) for name in values])
        axes.set(title=title, xlim=(-0.5, len(values) - 0.5))
        axes.tick_params(axis="x", labelsize=8.5)
    figure.supylabel(ylabel)
    drawn = grid.flat[0].get_legend_handles_labels()
    figure.legend(*drawn, loc="outside upper center", ncols=6)
    return figure
