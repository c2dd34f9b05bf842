"""Figures of chapter 05: greedy distances and running times."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from dpcgd.book.style import BLUE, GREY, SERIES, VERMILLION, styled

__all__ = ["greedy_and_true", "seconds_by_system"]


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
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), sharey=True, layout="constrained")
    theirs = {
        package: {name: of.get("seconds", math.nan) for name, of in networks.items()}
        for package, networks in results["peers"].items()
    }
    plain = {"dpcgd": ours["PC, chi squared"], **theirs}
    for (label, row), (color, line, marker) in zip(plain.items(), SERIES, strict=False):
        left.plot(*_by_network(row), color=color, linestyle=line, marker=marker, ms=4, label=label)
    for system, (color, _, marker) in zip(("SVT-PC", "Priv-PC", "EM-PC"), SERIES, strict=False):
        style = dict(color=color, marker=marker, ms=5)
        right.plot(*_by_network(ours[system]), label=f"{system}, dpcgd", **style)
        style |= dict(linestyle="--", markerfacecolor="white")
        right.plot(*_by_network(paper[system]), label=f"{system}, paper", **style)
    for axes, title in ((left, "PC without privacy, same test"), (right, "private PC")):
        axes.set(title=title, yscale="log")
        axes.tick_params(axis="x", rotation=40)
        axes.legend(loc="upper left")
    left.set_ylabel("seconds a run (log scale)")
    low, high = left.get_ylim()
    left.set_ylim(low, 30 * high)  # room for the legends
    return figure


def _by_network(row):
    return list(row), list(row.values())
