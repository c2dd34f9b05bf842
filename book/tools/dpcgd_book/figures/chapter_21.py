"""Figure of chapter 21: ratios of a paper beside ours."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import NullFormatter

from dpcgd_book.figures.style import BLUE, GREY, VERMILLION, legend, styled

__all__ = ["ratios"]


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
    legend(figure, ncols=2, handlelength=2)
    return figure
