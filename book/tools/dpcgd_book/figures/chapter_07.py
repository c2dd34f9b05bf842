"""Figures of chapter 07: one look against many, and how to share a budget over steps."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures import charts

__all__ = ["one_look", "schedules"]

MEASURES = {"F1": "F1 (more is better)", "wrong": "wrong pairs (fewer are better)"}


def one_look(runs: pd.DataFrame, *, complete: Sequence[float], xlabel: str) -> plt.Figure:
    """Plot mean F1 and mean wrong pairs against the budget, with two standard errors.

    Parameters
    ----------
    runs : DataFrame
        Columns system, network, epsilon, F1 and wrong, one row a run.
    complete : (float, float)
        F1 and wrong pairs of the complete graph.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    lines: dict[str, Mapping] = {}
    ends = [runs.epsilon.min(), runs.epsilon.max()]
    for (column, title), level in zip(MEASURES.items(), complete, strict=True):
        by_system = runs.groupby("system", sort=False)
        curves = {name: _over_networks(rows, column) for name, rows in by_system}
        drawn = {name: (mean.index, mean, 2 * error) for name, (mean, error) in curves.items()}
        lines[title] = {**drawn, "complete graph": (ends, [level, level])}
    ylabel = "mean over the networks"
    return charts.curves(
        lines, xlabels=[xlabel] * 2, ylabel=ylabel, log="x", limits=(0, None), aside=1.04
    )


def _over_networks(runs, column):
    """The mean over the networks by epsilon, and its standard error over runs."""
    cells = runs.groupby(["epsilon", "network"])[column]
    mean = cells.mean().groupby("epsilon").mean()
    squares = (cells.sem().fillna(0.0) ** 2).groupby("epsilon")
    return mean, np.sqrt(squares.sum()) / squares.count()


def schedules(runs: pd.DataFrame, names: Sequence[str]) -> plt.Figure:
    """Plot F1 and wrong pairs of schedules, each a row, with two standard errors.

    Parameters
    ----------
    runs : DataFrame
        Columns schedule, network, epsilon, F1 and wrong, one row a run at one epsilon.
    names : sequence of str
        The schedules from top to bottom.

    Returns
    -------
    matplotlib.figure.Figure
    """
    series, dots = {}, {}
    for column in MEASURES:
        rows = {name: runs[runs.schedule == name] for name in names}
        cells = {name: _over_networks(of_name, column) for name, of_name in rows.items()}
        series[column] = {"": {name: (m.iloc[0], e.iloc[0]) for name, (m, e) in cells.items()}}
        dots[column] = {k: of_name.groupby("network")[column].mean() for k, of_name in rows.items()}
    return charts.rows(series, xlabels=list(MEASURES.values()), dots=dots)
