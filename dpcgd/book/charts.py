"""Charts that several chapters draw: curves, scores by system, distributions."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd.book.style import BLACK, GREY, SERIES, look_of, styled

__all__ = ["curves", "f1_by_system", "null_distributions"]


@styled
def null_distributions(samples: Mapping[str, np.ndarray], *, critical: float) -> plt.Figure:
    """Compare the statistic's distribution under independence with the standard normal.

    Parameters
    ----------
    samples : mapping of str to array
        Simulated values of z, named by what was simulated.
    critical : float
        The test's critical value for ``|z|``, marked on both sides.

    Returns
    -------
    matplotlib.figure.Figure
    """
    grid = np.linspace(-4, 4, 401)
    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    axes.fill_between(grid, normal, color="#DDDDDD", linewidth=0, label="standard normal")
    for (label, z), (color, line, _) in zip(samples.items(), SERIES, strict=False):
        width = max(1.06 * np.std(z) * len(z) ** -0.2, 1e-3)
        density = np.exp(-(((grid[:, None] - z) / width) ** 2) / 2).mean(axis=1)
        scale = width * math.sqrt(2 * math.pi)
        axes.plot(grid, density / scale, color=color, linestyle=line, label=label)
    for edge in (-critical, critical):
        axes.axvline(edge, color=BLACK, linestyle="--", linewidth=0.9)
    axes.set(xlim=(-4, 4), ylim=(0, None), xlabel="$z$ (no unit)", ylabel="density")
    axes.legend(loc="upper right")
    figure.set_layout_engine("tight")
    return figure


@styled
def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    xlabels: Sequence[str],
    ylabel: str,
    log: str = "xy",
    points: Sequence[str] = (),
) -> plt.Figure:
    """Plot named curves in panels side by side.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (x, y)
        From a panel's title to its curves by name, at most four. The first panel has all names.
    xlabels : sequence of str
        One for each panel.
    ylabel : str
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    points : sequence of str
        Names of curves that are drawn as points without a line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    wide = 7.6 if len(panels) == 1 else 4.4 * len(panels)
    figure, row = plt.subplots(
        1, len(panels), figsize=(wide, 3.6), squeeze=False, layout="constrained"
    )
    for axes, (title, lines), xlabel in zip(row[0], panels.items(), xlabels, strict=True):
        for place, (name, (x, y)) in enumerate(lines.items()):
            color, line, marker = look_of(name, place)
            style = {"linestyle": "", "marker": marker} if name in points else {"linestyle": line}
            axes.plot(x, y, color=color, label=name, ms=5, markerfacecolor="white", **style)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.set_xscale("log" if "x" in log else "linear")
        axes.set_yscale("log" if "y" in log else "linear")
    lines = row[0][0].get_lines()  # the first panel has all curves
    if len(panels) == 1:
        figure.legend(handles=lines, loc="outside right upper")
    else:
        figure.legend(handles=lines, loc="outside lower center", ncols=4)
    return figure


@styled
def f1_by_system(
    scores: pd.DataFrame,
    ceilings: Mapping[str, float],
    *,
    xlabel: str,
    limits: tuple[float, float] | None = None,
) -> plt.Figure:
    """Plot F1 against a budget, one small panel for each network, one line for each system.

    Parameters
    ----------
    scores : DataFrame
        Columns network, system, epsilon, total and F1, one row a run. Runs of one epsilon make one
        point, at their mean total; the bars are standard deviations.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a line.
    xlabel : str
        What a total is.
    limits : (float, float), optional
        Smallest and largest total shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(scores.network))
    figure, grid = plt.subplots(
        2, -(-len(names) // 2), figsize=(9, 5.2), sharex=True, sharey=True, layout="constrained"
    )
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        here = scores[scores.network == name]
        for place, (system, runs) in enumerate(here.groupby("system", sort=False)):
            _line_with_bars(axes, system, runs.groupby("epsilon"), look_of(system, place))
        axes.axhline(ceilings[name], color=GREY, linestyle="-", linewidth=1, zorder=0)
        axes.set(title=name, xscale="log", xlim=limits, ylim=(0, 1.05))
    figure.supxlabel(xlabel)
    figure.supylabel("skeleton F1")
    lines, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels), handlelength=3)
    return figure


def _line_with_bars(axes, label, runs, style):
    color, line, marker = style
    settings = dict(color=color, linestyle=line, marker=marker, ms=3.5, capsize=2, linewidth=1.2)
    spread = runs.F1.std(ddof=0)
    axes.errorbar(runs.total.mean(), runs.F1.mean(), spread, label=label, **settings)
