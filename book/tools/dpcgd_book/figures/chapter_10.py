"""Figures on local privacy: channels with their privacy, and results by mechanism and level."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import GREY, legend, looks_of, panels, styled

__all__ = ["by_level", "channels"]


@styled
def channels(
    named: Mapping[str, np.ndarray], numbers: Mapping[str, Mapping[str, float]]
) -> plt.Figure:
    """Draw channels as heat maps, each with its numbers underneath.

    Parameters
    ----------
    named : mapping of str to array
        From a mechanism's name to its channel: one row for each record, one column for each report.
    numbers : mapping of str to mapping of str to float
        From a mechanism's name to what is printed below it, by name.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = panels(len(named), 5.6, 3.5, ylabel="record")
    top = max(channel.max() for channel in named.values())
    for axes, (name, channel) in zip(grid, named.items(), strict=True):
        image = axes.imshow(channel, cmap="Blues", vmin=0, vmax=top)
        ends = [0, len(channel) - 1]
        said = "\n".join(f"{value:.2f}  {what}" for what, value in numbers[name].items())
        axes.set(title=name, xticks=ends, yticks=ends)
        axes.set_xlabel(f"report\n{said}", linespacing=1.35)
        axes.spines[:].set_visible(True)
    figure.colorbar(image, ax=grid, label="probability", shrink=0.5, aspect=20)
    return figure


@styled
def by_level(
    named: Mapping[str, Mapping[str, Mapping[str, tuple]]],
    *,
    ylabel: str | Sequence[str],
    xlabel: str = "",
    lines: Mapping[str, Mapping[str, float]] | None = None,
    apart: int = 0,
    limits: tuple[float, float] | None = None,
    joined: bool = True,
) -> plt.Figure:
    """Plot means and intervals of the four mechanisms over levels, two panels in a row.

    Parameters
    ----------
    named : mapping of str to mapping of str to mapping of str to tuple
        From a panel's title to its mechanisms to their levels to (mean, spread) or (mean, low,
        high).
    ylabel : str or sequence of str
        One for all panels, or one for each.
    xlabel : str
    lines : mapping of str to mapping of str to float, optional
        From a line's name, at most two, to its height in each panel.
    apart : int
        So many of the first levels are another scale: a line parts them from the rest.
    limits : (float, float), optional
        Of the vertical axis, in all panels.
    joined : bool
        Whether a line joins the levels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = panels(len(named), 7.4, 2.7, foot=0.6)
    labels = [ylabel] * len(named) if isinstance(ylabel, str) else ylabel
    for axes, (title, series), label in zip(grid, named.items(), labels, strict=True):
        names = list(dict.fromkeys(level for values in series.values() for level in values))
        for i, (mechanism, look) in enumerate(looks_of(series).items()):
            style: dict[str, Any] = {**look, "ms": 5, "capsize": 2, "markerfacecolor": "white"}
            style["linestyle"] = look["linestyle"] if joined else ""
            for part in filter(None, (names[apart:], names[:apart])):
                shown = [level for level in part if level in series[mechanism]]
                x = [names.index(level) + 0.13 * (i - (len(series) - 1) / 2) for level in shown]
                mean, low, high = _three([series[mechanism][level] for level in shown])
                name = mechanism if part == names[apart:] else None
                axes.errorbar(x, mean, [mean - low, high - mean], label=name, **style)
        for (name, heights), dashes in zip((lines or {}).items(), ("-", (0, (1, 1))), strict=False):
            where: dict[str, Any] = dict(linewidth=1.3, zorder=0, linestyle=dashes, label=name)
            axes.axhline(heights[title], color=GREY, **where)
        if apart:
            axes.axvline(apart - 0.5, color=GREY, linewidth=0.8)
        if limits:
            axes.set_ylim(*limits)
        axes.set_xticks(range(len(names)), names)
        axes.set(title=title, xlim=(-0.5, len(names) - 0.5), ylabel=label, xlabel=xlabel)
    legend(figure, "outside upper center", ncols=3)
    return figure


def _three(values):
    """Mean, low and high of each; from a spread if there are only two numbers."""
    both = [v if len(v) == 3 else (v[0], v[0] - v[1], v[0] + v[1]) for v in values]
    return np.nan_to_num(np.array(both, float).reshape(-1, 3).T)
