"""Figures of chapter 20: how cost and accuracy grow with the number of records."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, GREY, ORANGE, SERIES, styled

__all__ = ["growth", "least_epsilon"]


@styled
def growth(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    predicted: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> plt.Figure:
    """Plot costs against records: points as measured, lines as predicted.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (records, cost)
        From a panel's title, its unit, to what was measured, at most five series in all.
    predicted : mapping of str to (records, cost)
        A line for each series.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = plt.subplots(1, len(panels), figsize=(6.5, 3.4), layout="constrained")
    looks = iter((*SERIES, (ORANGE, "-", "v")))
    for axes, (title, series) in zip(grid, panels.items(), strict=True):
        for name, (n, cost) in series.items():
            color, line, marker = next(looks)
            axes.plot(*predicted[name], color=color, linestyle=line, linewidth=1.2)
            axes.plot(n, cost, marker, color=color, ms=5, markerfacecolor="white", label=name)
        axes.set(title=title, xscale="log", yscale="log", xlabel="records")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (0.12 * len(series)))  # room for the legend
        axes.legend(loc="upper left", handletextpad=0.2)
    return figure


@styled
def least_epsilon(f1: pd.DataFrame, lines: Mapping[str, Sequence[float]]) -> plt.Figure:
    """Draw F1 over records and epsilon as a map, with curves of epsilon over it.

    Parameters
    ----------
    f1 : DataFrame
        Mean F1; a row for each epsilon, increasing, and a column for each n, both on log grids.
    lines : mapping of str to sequence of float
        For each curve its epsilon at every n.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(5.9, 3.9), layout="constrained")
    n, epsilon = (np.array(list(index), float) for index in (f1.columns, f1.index))
    image = axes.pcolormesh(n, epsilon, f1.to_numpy(), cmap="cividis", vmin=0, vmax=1)
    for (name, values), line in zip(lines.items(), ("-", "--", ":"), strict=False):
        axes.plot(n, values, line, color="white", linewidth=3.4)
        axes.plot(n, values, line, color=BLACK, linewidth=1.5, label=name)
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel=r"guaranteed $\varepsilon$")
    axes.set_ylim(epsilon[0] / 1.8, epsilon[-1] * 1.8)
    figure.legend(loc="outside lower center", ncols=len(lines), handlelength=3)
    bar = figure.colorbar(image, ax=axes, label="mean skeleton F1")
    bar.outline.set_edgecolor(GREY)
    return figure
