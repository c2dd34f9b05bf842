"""Figures of chapter 05: two systems compared, greedy distances and running times."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, BLUE, GREY, LOOKS, SERIES, VERMILLION, styled

__all__ = ["chances_of_choices", "difference_by_budget", "greedy_and_true", "seconds_by_system"]


@styled
def difference_by_budget(
    paired: Mapping[float, Mapping[str, float]],
    by_network: pd.DataFrame,
    *,
    ahead: tuple[str, str] = ("EM-PC ahead", "Priv-PC ahead"),
) -> plt.Figure:
    """Plot how far one system is ahead of another, with a band of two standard errors.

    Parameters
    ----------
    paired : mapping of float to mapping
        From the guaranteed epsilon to ``difference`` and ``2 errors``, in F1.
    by_network : DataFrame
        The difference of each network: a row for each epsilon, a column for each network.
    ahead : (str, str)
        What a value above and a value below 0 means.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    budgets = list(paired)
    mean = np.array([paired[e]["difference"] for e in budgets])
    error = np.array([paired[e]["2 errors"] for e in budgets])
    axes.axhline(0, color=BLACK, linewidth=0.9)
    band: dict[str, Any] = dict(color=BLUE, alpha=0.2, linewidth=0, label="two standard errors")
    axes.fill_between(budgets, mean - error, mean + error, **band)
    axes.plot(budgets, mean, color=BLUE, marker="o", label="mean over the networks")
    circle: dict[str, Any] = dict(linestyle="", marker="o", ms=4.5, mfc="none", mec=GREY)
    for i, name in enumerate(by_network):
        label = "one network" if i == 0 else None
        axes.plot(by_network.index, by_network[name], **circle, label=label)
    side: dict[str, Any] = dict(transform=axes.transAxes, ha="right", color=BLACK)
    axes.text(0.99, 0.95, ahead[0], va="top", **side)
    axes.text(0.99, 0.05, ahead[1], va="bottom", **side)
    axes.set(xscale="log", xlabel="guaranteed epsilon", ylabel="difference in skeleton F1")
    reach = 1.25 * max(np.nanmax(np.abs(by_network.to_numpy())), np.max(np.abs(mean) + error))
    if np.isfinite(reach):
        axes.set_ylim(-reach, reach)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


@styled
def greedy_and_true(
    true: Sequence[float], greedy: Sequence[float], *, step: tuple[Sequence, Sequence]
) -> plt.Figure:
    """Plot what greed finds against the true distance, and one pair of neighbouring tables.

    Parameters
    ----------
    true, greedy : sequence of float
        Signed distances of the same tables.
    step : ((true, greedy), (true, greedy))
        Those of two neighbours, joined by a line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(5.8, 3.6), layout="constrained")
    axes.axline((0, 0), slope=1, color=GREY, linestyle="--", linewidth=1, label="equal")
    axes.plot(true, greedy, "o", color=BLUE, markerfacecolor="white", ms=5, label="a table")
    x, y = np.transpose(step)
    axes.plot(x, y, color=VERMILLION, marker="D", ms=6, label="two neighbours")
    axes.set(xlabel="true distance (records to replace)", ylabel="greedy score (records removed)")
    axes.legend()
    return figure


@styled
def seconds_by_system(results: Mapping[str, Mapping]) -> plt.Figure:
    """Plot the time of a run on each network: beside other packages, and beside a paper.

    Parameters
    ----------
    results : mapping
        A benchmark's ``seconds``, ``paper_seconds`` (system to network to seconds) and ``peers``
        (package to network to a mapping with ``seconds``, absent where it failed).

    Returns
    -------
    matplotlib.figure.Figure
    """
    ours, paper = results["seconds"], results["paper_seconds"]
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(6.5, 6.6), sharex=True, layout="constrained"
    )
    theirs = {
        package: {name: of.get("seconds", math.nan) for name, of in networks.items()}
        for package, networks in results["peers"].items()
    }
    plain = {"dpcgd": ours["PC, chi squared"], **theirs}
    for (label, row), (color, line, marker) in zip(plain.items(), SERIES, strict=False):
        above.plot(*_by_network(row), color=color, linestyle=line, marker=marker, ms=5, label=label)
    for system in ("SVT-PC", "Priv-PC", "EM-PC"):
        color, line, marker = LOOKS[system]
        style: dict[str, Any] = dict(color=color, marker=marker, ms=5, linestyle=line)
        below.plot(*_by_network(ours[system]), label=f"{system}, here", **style)
        style |= dict(markerfacecolor="white")
        below.plot(*_by_network(paper[system]), label=f"{system}, paper", **style)
    for axes, title in ((above, "PC without privacy, same test"), (below, "private PC")):
        axes.set(title=title, yscale="log", ylabel="seconds a run")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.7)
        axes.axhline(1, color=BLACK, linewidth=0.7)
    below.tick_params(axis="x", rotation=30)
    return figure


def _by_network(row):
    return list(row), list(row.values())


@styled
def chances_of_choices(panels: Mapping[str, pd.DataFrame]) -> plt.Figure:
    """Plot the probability of each candidate as bars, one panel for each choice.

    Parameters
    ----------
    panels : mapping of str to DataFrame
        From the name of the candidates to probabilities: a row for each candidate, a column for
        each budget.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(
        1, len(panels), figsize=(6.5, 3.3), sharey=True, layout="constrained"
    )
    fills = (("white", "////"), (BLUE, ""))
    for axes, (xlabel, chances) in zip(row, panels.items(), strict=True):
        places, width = np.arange(len(chances)), 0.8 / chances.shape[1]
        for i, (budget, (color, hatch)) in enumerate(zip(chances, fills, strict=True)):
            at = places + width * (i - (chances.shape[1] - 1) / 2)
            bars: dict[str, Any] = dict(color=color, hatch=hatch, edgecolor=BLUE, linewidth=0.9)
            axes.bar(at, chances[budget], width, label=budget, **bars)
        axes.set(xlabel=xlabel, ylim=(0, 1))
        axes.set_xticks(places, chances.index)
    row[0].set_ylabel("probability")
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
