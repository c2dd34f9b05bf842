"""Figures of chapter 07: one look against many, and how to share a budget over steps."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, BLUE, GREY, looks_of, styled

__all__ = ["one_look", "schedules"]

APART = 1.04
"""Lines are moved sideways by this factor, so that those on each other can be told apart."""


@styled
def one_look(
    runs: pd.DataFrame,
    labels: Mapping[str, str],
    *,
    complete: tuple[float, float],
    xlabel: str,
) -> plt.Figure:
    """Plot mean F1 and mean wrong pairs against the budget, with two standard errors.

    Parameters
    ----------
    runs : DataFrame
        Columns system, network, epsilon, F1 and wrong, one row a run.
    labels : mapping of str to str
        What each system is called.
    complete : (float, float)
        F1 and wrong pairs of the complete graph.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(1, 2, figsize=(6.5, 4.0), layout="constrained")
    looks = looks_of(labels)
    titles = ("F1 (more is better)", "wrong pairs (fewer are better)")
    for axes, column, title, line in zip(row, ("F1", "wrong"), titles, complete, strict=True):
        for place, (system, label) in enumerate(labels.items()):
            mean, error = _over_networks(runs[runs.system == system], column)
            x = mean.index.to_numpy() * APART ** (place - 1)
            axes.errorbar(x, mean, 2 * error, ms=5, capsize=2.5, label=label, **looks[system])
        axes.axhline(line, color=BLACK, linewidth=1, linestyle=(0, (1, 3)), label="complete graph")
        axes.set(title=title, xscale="log", xlabel=xlabel, ylim=(0, None))
    row[0].set(ylabel="mean over the networks")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, handlelength=3.5)
    return figure


def _over_networks(runs, column):
    """The mean over the networks by epsilon, and its standard error over runs."""
    cells = runs.groupby(["epsilon", "network"])[column]
    mean = cells.mean().groupby("epsilon").mean()
    squares = (cells.sem().fillna(0.0) ** 2).groupby("epsilon")
    return mean, np.sqrt(squares.sum()) / squares.count()


@styled
def schedules(runs: pd.DataFrame, names: Sequence[str]) -> plt.Figure:
    """Plot F1 and wrong pairs of schedules, each a row, with two standard errors.

    Parameters
    ----------
    runs : DataFrame
        Columns schedule, network, epsilon, F1 and "wrong pairs", one row a run.
    names : sequence of str
        The schedules from top to bottom.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(1, 2, figsize=(6.5, 2.7), sharey=True, layout="constrained")
    for axes, column in zip(row, ("F1", "wrong pairs"), strict=True):
        for y, name in enumerate(names):
            here = runs[runs.schedule == name]
            dots = here.groupby("network")[column].mean()
            axes.plot(dots, [y] * len(dots), "o", color=GREY, ms=3.5, markerfacecolor="white")
            mean, error = _over_networks(here, column)
            axes.errorbar(
                mean, [y], xerr=2 * error, color=BLUE, marker="s", ms=6, capsize=3, linewidth=1.5
            )
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set(xlim=(0, None))
    row[0].set(xlabel="F1 (more is better)", yticks=range(len(names)), yticklabels=names)
    row[1].set(xlabel="wrong pairs (fewer are better)")
    row[0].invert_yaxis()
    return figure
