"""Figures of chapter 02: accountants, readings, and the doubles that noise can reach."""

import itertools
import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from dpcgd.book.style import BLACK, BLUE, GREY, PURPLE, VERMILLION, styled

__all__ = ["accountants", "over_the_stated_delta", "reachable_doubles"]


@styled
def accountants(tests: Sequence[int], spent: Mapping[str, Sequence[float]]) -> plt.Figure:
    """Plot the epsilon that a number of tests costs, one line for each way of adding up.

    Parameters
    ----------
    tests : sequence of int
    spent : mapping of str to sequence of float
        From an accountant's name to its epsilon after each number of tests.

    Returns
    -------
    matplotlib.figure.Figure
    """
    styles = (
        (GREY, "--", "s"),
        (VERMILLION, "-.", "^"),
        (PURPLE, ":", "D"),
        (BLUE, "-", "o"),
        (BLACK, (0, (6, 2)), ""),
    )
    figure, axes = plt.subplots(figsize=(6.8, 4.0))
    named = zip(spent.items(), itertools.cycle(styles), strict=False)
    for (name, epsilons), (color, line, marker) in named:
        axes.plot(
            tests,
            epsilons,
            color=color,
            linestyle=line,
            marker=marker,
            markersize=4,
            markevery=5,
            label=name,
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="tests $k$ (log scale)",
        ylabel=r"$\varepsilon$ spent (log scale)",
    )
    axes.legend(loc="upper left")
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
    figure, axes = plt.subplots(figsize=(7.2, 1.7))
    kinds = ((rows & ~shared, VERMILLION, "D", "from one only"), (rows & shared, BLUE, "o", "both"))
    for where, color, marker, label in kinds:
        row, column = np.nonzero(where)
        axes.plot(column, -row, marker, color=color, markersize=5.5, label=label)
    row, column = np.nonzero(~rows)
    axes.plot(column, -row, ".", color=GREY, markersize=3, label="never")
    axes.set_yticks(-np.arange(len(rows)), list(hits))
    axes.set(ylim=(-len(rows) + 0.5, 0.5))
    exponent = round(math.log2(math.ulp(start)))
    axes.set_xlabel(
        f"double-precision number, counted from {start:g} in steps of $2^{{{exponent}}}$"
    )
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.set_layout_engine("tight")
    return figure


@styled
def over_the_stated_delta(
    answers: Sequence[int], times: Mapping[str, Sequence[float]]
) -> plt.Figure:
    """Plot an exact delta over the stated one, one line a way to end.

    Parameters
    ----------
    answers : sequence of int
    times : mapping of str to sequence of float
        From the name of a line to the ratio at each number of answers.

    Returns
    -------
    matplotlib.figure.Figure
    """
    looks = ((VERMILLION, "-", "o"), (VERMILLION, "--", "s"), (BLUE, "-", "o"), (BLUE, "--", "s"))
    figure, axes = plt.subplots(figsize=(6.8, 3.2))
    for (name, ratios), (color, line, marker) in zip(times.items(), looks, strict=True):
        axes.plot(answers, ratios, line, color=color, marker=marker, markersize=4, label=name)
    axes.axhline(1, color=GREY, linewidth=1)
    axes.set(
        xscale="log",
        ylim=(0, None),
        xlabel="answers at most (log scale)",
        ylabel=r"exact $\delta$ / stated $\delta$",
    )
    axes.legend(loc="upper left")
    figure.set_layout_engine("tight")
    return figure
