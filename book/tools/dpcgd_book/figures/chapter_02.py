"""Figures of chapter 02: noise, accountants, broken mechanisms, and the doubles noise reaches."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import BLACK, BLUE, GREY, PURPLE, VERMILLION, styled

__all__ = ["broken_variants", "noise_and_price", "reachable_doubles"]


@styled
def noise_and_price(
    outputs: Sequence[float],
    densities: Mapping[str, Sequence[float]],
    epsilon: float,
    tests: Sequence[int],
    spent: Mapping[str, Sequence[float]],
) -> plt.Figure:
    """Draw what two neighbours' noisy answers look like, and what many such answers cost.

    Parameters
    ----------
    outputs : sequence of float
    densities : mapping of str to sequence of float
        From the name of each of two data sets to the density of every output.
    epsilon : float
        The most that the logarithms of the two differ.
    tests : sequence of int
    spent : mapping of str to sequence of float
        From an accountant's name to its epsilon after each number of tests.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = plt.figure(figsize=(6.8, 4.4), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2), height_ratios=(1.7, 1))
    top = figure.add_subplot(grid[0, 0])
    looks = ((BLUE, "-"), (VERMILLION, "--"))
    for (name, density), (color, line) in zip(densities.items(), looks, strict=True):
        top.plot(outputs, density, line, color=color, label=name)
    highest = max(map(max, densities.values()))
    top.set(ylabel="density", ylim=(0, 1.5 * highest), title="One noisy answer")
    top.legend(loc="upper center", fontsize=9)
    low = figure.add_subplot(grid[1, 0], sharex=top)
    first, second = map(np.asarray, densities.values())
    low.plot(outputs, np.log(first / second), color=BLACK)
    for end, name in ((epsilon, r"$\varepsilon$"), (-epsilon, r"$-\varepsilon$")):
        low.axhline(end, color=GREY, linewidth=1, linestyle=":")
        low.text(1.01, end, name, va="center", transform=low.get_yaxis_transform())
    low.set(xlabel="output", ylabel="log of ratio", ylim=(-1.5 * epsilon, 1.5 * epsilon))
    plt.setp(top.get_xticklabels(), visible=False)
    _accountants(figure.add_subplot(grid[:, 1]), tests, spent)
    return figure


def _accountants(axes, tests, spent):
    """The epsilon that a number of tests costs, one line for each way of adding up."""
    colors, markers = itertools.cycle((GREY, VERMILLION, PURPLE, BLUE, BLACK)), ("s", "^", "D", "o")
    dashes: Any = ("--", "-.", ":", "-", (0, (6, 2)))
    looks = zip(colors, itertools.cycle(dashes), itertools.cycle((*markers, "")), strict=False)
    for (name, epsilons), (color, line, marker) in zip(spent.items(), looks, strict=False):
        look: dict[str, Any] = dict(color=color, linestyle=line, marker=marker, ms=4, markevery=5)
        axes.plot(tests, epsilons, label=name, **look)
    axes.set(xscale="log", yscale="log", title="Many noisy answers")
    axes.set(xlabel="answers (log scale)", ylabel=r"$\varepsilon$ spent (log scale)")
    axes.legend(loc="upper left")


@styled
def broken_variants(broken: Mapping[str, tuple[float, float]], how: Sequence[str]) -> plt.Figure:
    """Draw the epsilon that each broken mechanism claims and the one that it has.

    Parameters
    ----------
    broken : mapping of str to (float, float)
        From a mechanism's name to its claim and what was shown.
    how : sequence of str
        How each was shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    claims, shown = np.array(list(broken.values())).T
    rows = -np.arange(len(broken))
    figure, axes = plt.subplots(figsize=(6.4, 2.5))
    axes.barh(rows, shown, height=0.55, color=VERMILLION)
    axes.vlines(claims, rows - 0.42, rows + 0.42, color=BLACK, linewidth=2, label="claimed")
    for row, value, way in zip(rows, shown, how, strict=True):
        axes.text(value, float(row), f"  {way} {value:.2f}", va="center", fontsize=9.5)
    axes.set_yticks(rows, list(broken))
    axes.set(xlabel=r"$\varepsilon$", xlim=(0, 1.45 * shown.max()))
    axes.legend(loc="lower right")
    figure.set_layout_engine("tight")
    return figure


@styled
def reachable_doubles(hits: Mapping[str, Sequence[bool]], *, start: float) -> plt.Figure:
    """Mark which of some consecutive double-precision numbers can be outputs, one row a data set.

    Parameters
    ----------
    hits : mapping of str to sequence of bool
        From the name of a row to whether each number is reachable.
    start : float
        The first of the numbers.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = np.array(list(hits.values()), bool)
    shared = rows.all(axis=0)
    figure, axes = plt.subplots(figsize=(6.4, 2.1), layout="constrained")
    kinds = ((rows & ~shared, VERMILLION, "D", "from one only"), (rows & shared, BLUE, "o", "both"))
    for where, color, marker, label in kinds:
        row, column = np.nonzero(where)
        axes.plot(column, -row, marker, color=color, markersize=5.5, label=label)
    row, column = np.nonzero(~rows)
    axes.plot(column, -row, ".", color=GREY, markersize=3, label="never")
    axes.set_yticks(-np.arange(len(rows)), list(hits))
    axes.set(ylim=(-len(rows) + 0.5, 0.5))
    step = f"$2^{{{round(math.log2(math.ulp(start)))}}}$"
    axes.set_xlabel(f"double-precision number, counted from {start:g} in steps of {step}")
    figure.legend(loc="outside upper center", ncols=3)
    return figure
