"""Figures of chapter 16: what variants change, and shares by group."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, BLUE, VERMILLION, styled

__all__ = ["changes", "shares"]


@styled
def changes(series: Mapping[str, Mapping[str, Mapping[str, float]]], *, xlabel: str) -> plt.Figure:
    """Plot a paired difference for each variant, a point for each of at most two series.

    Parameters
    ----------
    series : mapping of str to mapping of str to mapping
        From a series to its variants to "mean" and "error", the standard error; bars are twice
        that. Variants stand in the order of the first series.
    xlabel : str
        What differs.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(next(iter(series.values())))
    figure, axes = plt.subplots(figsize=(6.2, 0.36 * len(names) + 1.2), layout="constrained")
    places = -np.arange(len(names))
    looks = ((BLUE, "o", 0.13), (VERMILLION, "s", -0.13))
    for (label, variants), (color, marker, aside) in zip(series.items(), looks, strict=False):
        mean = [variants[name]["mean"] for name in names]
        error = [2 * variants[name]["error"] for name in names]
        axes.errorbar(
            mean, places + aside, xerr=error, fmt=marker, color=color, ms=5, capsize=2, label=label
        )
    axes.axvline(0, color=BLACK, linewidth=0.9)
    axes.set_yticks(places, names)
    axes.set_xlabel(xlabel)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper right", ncols=2)
    return figure


@styled
def shares(share: pd.Series, error: Sequence[float], *, xlabel: str, ylabel: str) -> plt.Figure:
    """Plot a share for each group, with two standard errors up and down.

    Parameters
    ----------
    share : Series
        Indexed by the groups' names.
    error : sequence of float
        The standard errors.
    xlabel, ylabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    bars = 2 * np.asarray(error)
    axes.bar(range(len(share)), share, color="#9CC7E3", edgecolor=BLUE, width=0.6)
    axes.errorbar(range(len(share)), share, bars, fmt="none", ecolor=BLACK, capsize=4)
    axes.set_xticks(range(len(share)), list(share.index))
    axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, 1.05))
    return figure
