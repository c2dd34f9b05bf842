"""Figures on re-run local privacy: grids of results, and one record's reports."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm

from dpcgd_book.figures.style import BLACK, GREY, panels, styled

__all__ = ["grid", "reports"]


@styled
def grid(values: pd.DataFrame, *, unit: str, digits: int, best: str) -> plt.Figure:
    """Draw a table of means as a heat map, with the numbers in its cells.

    Parameters
    ----------
    values : DataFrame
        Two levels of columns, group and level; not a number where nothing was run.
    unit : str
        What a number is.
    digits : int
    best : {"high", "low"}
        Which end is the good one; it is drawn dark.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows, columns = values.shape
    figure, axes = plt.subplots(figsize=(7.4, 0.25 * rows + 1.3), layout="constrained")
    shown = values.to_numpy(float)
    cmap = plt.get_cmap("Blues" if best == "high" else "Blues_r").with_extremes(bad="white")
    low, high = np.nanmin(shown), np.nanmax(shown)
    room = max(high - low, 1e-9)
    ends = (low, high + 0.6 * room) if best == "high" else (low - 0.6 * room, high)
    axes.imshow(np.ma.masked_invalid(shown), cmap=cmap, vmin=ends[0], vmax=ends[1], aspect="auto")
    for (i, j), value in np.ndenumerate(shown):
        text = "\N{EN DASH}" if np.isnan(value) else f"{value:.{digits}f}".removeprefix("0")
        axes.text(j, i, text, ha="center", va="center", fontsize=9.5, color=BLACK)
    groups = [group for group, _ in values.columns]
    for j in range(1, columns):
        if groups[j] != groups[j - 1]:
            axes.axvline(j - 0.5, color="white", linewidth=4)
            axes.axvline(j - 0.5, color=GREY, linewidth=0.8)
    axes.set_yticks(range(rows), list(values.index))
    axes.set_xticks(range(columns), [level for _, level in values.columns])
    axes.set_xlabel(f"attacker's success $p_{{\\max}}$; in the cells: {unit}")
    above = axes.secondary_xaxis("top")
    names = list(dict.fromkeys(groups))
    middles = [np.mean([j for j, g in enumerate(groups) if g == name]) for name in names]
    above.set_xticks(middles, [name.replace(" ", "\n", 1) for name in names])
    for bare in (axes, above):
        bare.tick_params(length=0)
        bare.spines[:].set_visible(False)
    return figure


@styled
def reports(named: Mapping[str, np.ndarray], record: Sequence[int]) -> plt.Figure:
    """Draw where the reports of one record of four variables go.

    Parameters
    ----------
    named : mapping of str to array of four dimensions
        From a mechanism's name to the probability of each report.
    record : sequence of int
        Of four; it is marked.

    Returns
    -------
    matplotlib.figure.Figure
    """
    a, b, c, d = next(iter(named.values())).shape
    figure, row = panels(len(named), 7.4, 2.3, foot=0.4, ylabel="variable 1,\nwithin it variable 3")
    tables = list(named.values())
    norm = LogNorm(min(table.min() for table in tables), max(table.max() for table in tables))
    for panel, (name, table) in zip(row, named.items(), strict=True):
        flat = table.transpose(0, 2, 1, 3).reshape(a * c, b * d)
        image = panel.imshow(flat, cmap="Blues", norm=norm, aspect="auto")
        for line in range(1, a):
            panel.axhline(line * c - 0.5, color=GREY, linewidth=0.8)
        for line in range(1, b):
            panel.axvline(line * d - 0.5, color=GREY, linewidth=0.8)
        place = (record[1] * d + record[3], record[0] * c + record[2])
        panel.plot(*place, marker="o", ms=6, markerfacecolor="none", color=BLACK)
        panel.set(title=name, xticks=[], yticks=[], xlabel="variable 2, within it variable 4")
        panel.spines[:].set_visible(True)
    figure.colorbar(image, ax=row, label="probability of the report")
    return figure
