"""Figures of chapter 10: estimates with their intervals."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from dpcgd.book.style import GREY, SERIES, styled

__all__ = ["intervals"]


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
