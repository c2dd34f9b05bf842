"""Charts that several chapters draw: curves, scores by system, distributions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from dpcgd_book.figures.style import BLACK, GREY, SERIES, looks_of, styled

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
    figure, axes = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
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
    columns = _legend_columns([*samples, "standard normal"], 5.6)
    figure.legend(loc="outside lower center", ncols=columns)
    return figure


@styled
def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], ...]]],
    *,
    xlabels: Sequence[str],
    ylabel: str,
    log: str = "xy",
    points: Sequence[str] = (),
) -> plt.Figure:
    """Plot named curves in panels, two in a row. Curves of at most a dozen points have markers.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (x, y) or (x, y, error)
        From a panel's title to its curves by name, at most four besides the systems of the book.
        An error is drawn as a bar up and down. The first panel has all names.
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
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    looks, rows = looks_of(names), -(-len(panels) // 2)
    size = (5.6, 3.5) if len(panels) == 1 else (6.5, 2.7 * rows)
    columns = _legend_columns(names, size[0])
    legend = -(-len(names) // columns)
    figure, grid = plt.subplots(
        rows,
        min(2, len(panels)),
        figsize=(size[0], size[1] + 0.22 * legend),
        squeeze=False,
        layout="constrained",
    )
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, lines), xlabel in zip(grid.flat, panels.items(), xlabels, strict=False):
        for name, (x, y, *error) in lines.items():
            look = dict(looks[name], markerfacecolor="white", ms=5, label=name)
            if name in points:
                look["linestyle"] = ""
            elif len(x) > 12 or len(x) < 3:  # dense, or a level line
                look["marker"] = ""
            axes.errorbar(x, y, *error, capsize=2, **look)
        axes.set(title=title, xlabel=xlabel)
        axes.set_xscale("log" if "x" in log else "linear")
        axes.set_yscale("log" if "y" in log else "linear")
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    if any(names):
        handles = dict(zip(*grid.flat[0].get_legend_handles_labels()[::-1], strict=True))
        where: dict[str, Any] = dict(loc="outside lower center", ncols=columns, handlelength=3)
        figure.legend(handles.values(), handles, **where)
    return figure


def _legend_columns(names, inches) -> int:
    """As many as fit beside one another."""
    widest = 0.75 + 0.07 * max((len(name.replace("$", "")) for name in names), default=0)
    return max(1, min(3, int(inches / widest)))


@styled
def f1_by_system(
    scores: pd.DataFrame,
    ceilings: Mapping[str, float],
    *,
    xlabel: str,
    limits: tuple[float, float] | None = None,
    bars: str = "deviation",
) -> plt.Figure:
    """Plot F1 against a budget, one small panel for each network, one line for each system.

    Parameters
    ----------
    scores : DataFrame
        Columns network, system, epsilon, total and F1, one row a run. Runs of one epsilon make one
        point, at their mean total; systems are drawn a little beside one another.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a line.
    xlabel : str
        What a total is.
    limits : (float, float), optional
        Smallest and largest total shown.
    bars : str
        "deviation", the standard deviation of the runs, or "error", twice the standard error of
        their mean.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names, systems = (list(dict.fromkeys(of)) for of in (scores.network, scores.system))
    looks = looks_of(systems)
    aside = dict(zip(systems, 1.035 ** (np.arange(len(systems)) - len(systems) / 2), strict=True))
    rows = -(-len(names) // 2)
    figure, grid = plt.subplots(
        rows,
        min(2, len(names)),
        figsize=(6.5, 1.9 * rows + 0.6),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        here = scores[scores.network == name]
        for system, runs in here.groupby("system", sort=False):
            _line_with_bars(axes, runs.groupby("epsilon"), bars, aside[system], looks[system])
        axes.axhline(ceilings[name], color=GREY, linestyle="-", linewidth=1.4, zorder=0)
        axes.set(title=name, xscale="log", xlim=limits, ylim=(0, 1.05))
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
    figure.supxlabel(xlabel, fontsize=10.5)
    figure.supylabel("skeleton F1", fontsize=10.5)
    handles = [Line2D([], [], ms=5, label=s, **looks[s]) for s in systems]
    free = grid.flat[-1] if grid.size > len(names) else None
    if free is None:
        figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.4)
    else:
        free.legend(handles=handles, loc="upper center", handlelength=3.4, labelspacing=0.35)
    return figure


def _line_with_bars(axes, runs, bars, aside, look):
    spread = runs.F1.std(ddof=0) if bars == "deviation" else 2 * runs.F1.sem()
    total = runs.total.mean() * aside
    axes.errorbar(
        total, runs.F1.mean(), spread, ms=4, capsize=1.5, linewidth=1.2, elinewidth=0.8, **look
    )
