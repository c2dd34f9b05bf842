"""Figures of chapter 21: ratios of a paper beside ours, and scores by what was read."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import NullFormatter

from dpcgd_book.figures.style import BLUE, GREY, LOOKS, VERMILLION, styled

__all__ = ["f1_by_reading", "ratios"]


@styled
def ratios(panels: Mapping[str, Mapping[str, pd.Series]], *, title: str) -> plt.Figure:
    """Plot what a paper prints beside what we measure, one row for each network.

    Parameters
    ----------
    panels : mapping of str to mapping
        From a panel's axis label to ``paper`` and ``ours``, both by network.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(
        1, len(panels), figsize=(6.5, 3.3), sharey=True, layout="constrained"
    )
    for axes, (label, both) in zip(row, panels.items(), strict=True):
        names = list(both["paper"].index)[::-1]
        paper, ours = (both[source].reindex(names) for source in ("paper", "ours"))
        place = np.arange(len(names))
        axes.axvline(1, color=GREY, linewidth=1)
        axes.hlines(place, paper, ours, color=GREY, linewidth=1)
        look: dict[str, Any] = dict(linestyle="", ms=7)
        axes.plot(paper, place, marker="s", color=VERMILLION, mfc="white", label="paper", **look)
        axes.plot(ours, place, marker="o", color=BLUE, label="ours", **look)
        axes.set(xscale="log", xlabel=label, yticks=place, yticklabels=names)
        low, high = axes.get_xlim()
        steps = (1, 2, 5) if high < 100 * low else (1,)
        axes.set_xticks([k * 10.0**d for d in range(-3, 5) for k in steps])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(low, high)
    figure.suptitle(title, fontsize=10.5)
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


@styled
def f1_by_reading(
    lines: Mapping[str, pd.DataFrame], span: tuple[float, float], *, xlabel: str
) -> plt.Figure:
    """Plot mean F1 with a band of two standard errors against a total read after the run.

    Parameters
    ----------
    lines : mapping of str to DataFrame
        From a system to ``mean`` and ``error``, indexed by the total.
    span : (float, float)
        The totals that the paper's figure shows, shaded.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    axes.axvspan(*span, color="#EEEEEE", linewidth=0, zorder=0)
    for system, line in lines.items():
        color, style, marker = LOOKS[system]
        low, high = line["mean"] - 2 * line.error, line["mean"] + 2 * line.error
        axes.fill_between(line.index, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(
            line.index,
            line["mean"],
            color=color,
            linestyle=style,
            marker=marker,
            ms=5,
            label=system,
        )
    axes.set(xscale="log", xlabel=xlabel, ylabel="mean skeleton F1", ylim=(0, 1.02))
    figure.legend(loc="outside upper center", ncols=len(lines), handlelength=3)
    return figure
