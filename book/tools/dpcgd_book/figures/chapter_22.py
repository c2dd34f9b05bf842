"""Figure of chapter 22: systems on the paper's account, and at a guarantee."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, looks_of, styled

__all__ = ["two_accounts"]


@styled
def two_accounts(
    panels: Mapping[str, pd.DataFrame], xlabels: list[str], *, complete: float
) -> plt.Figure:
    """Plot mean F1 against a total, theirs and ours side by side.

    Parameters
    ----------
    panels : mapping of str to DataFrame
        From a panel's title to points with columns system, total, mean and error; bars are two
        standard errors. A system has the same look in both.
    xlabels : list of str
        What a total is.
    complete : float
        F1 of the complete graph.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(s for points in panels.values() for s in points.system))
    looks = looks_of(names)
    aside = 1.04 ** (np.arange(len(names)) - (len(names) - 1) / 2)
    figure, row = plt.subplots(1, 2, figsize=(6.5, 4.6), sharey=True, layout="constrained")
    for axes, (title, points), xlabel in zip(row, panels.items(), xlabels, strict=True):
        for place, name in enumerate(names):
            here = points[points.system == name]
            if len(here):
                x = here.total * aside[place]
                axes.errorbar(
                    x, here["mean"], 2 * here.error, ms=5, capsize=2, label=name, **looks[name]
                )
        axes.axhline(complete, color=BLACK, linewidth=1, linestyle=(0, (1, 3)))
        axes.set(title=title, xscale="log", xlabel=xlabel, ylim=(0, 1))
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
    row[0].set(ylabel="mean skeleton F1 over the networks")
    inside = dict(ha="right", va="top", fontsize=9.5)
    row[1].text(
        0.98, complete - 0.02, "complete graph", transform=row[1].get_yaxis_transform(), **inside
    )
    handles = {
        label: handle
        for axes in row
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, handlelength=3.4)
    return figure
