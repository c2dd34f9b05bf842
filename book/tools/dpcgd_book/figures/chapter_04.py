"""Figures of chapter 04: margins, errors and the loss of odometers."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, BLUE, GREEN, GREY, LOOKS, SERIES, VERMILLION, styled

__all__ = [
    "error_curves",
    "f1_by_epsilon",
    "loss_by_hits",
    "margins",
    "mean_f1_by_epsilon",
    "rounds",
]

_COLOR, _LINE, _MARKER = LOOKS["Priv-PC"]
_ON_Z: dict[str, Any] = {"color": _COLOR, "marker": _MARKER, "linestyle": _LINE}
_ON_P: dict[str, Any] = {"color": _COLOR, "marker": "o", "linestyle": ":", "mfc": "white"}
"""Both are Priv-PC: one colour, told apart by line and marker."""


@styled
def error_curves(panels: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> plt.Figure:
    """Plot exact error probabilities beside printed bounds, one panel each.

    Parameters
    ----------
    panels : mapping of str to three arrays
        From a title to distances from the threshold, exact probabilities, bounds.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(1, len(panels), figsize=(7.2, 3.3), layout="constrained")
    for axes, (title, (distances, exact, bound)) in zip(row, panels.items(), strict=True):
        axes.semilogy(distances, exact, color=BLUE, label="exact")
        axes.semilogy(distances, bound, color=VERMILLION, linestyle="--", label="printed bound")
        axes.set(title=title, xlabel="distance / sensitivity", ylim=(1e-4, 1.2))
        axes.set_ylabel("probability of the error")
        axes.legend()
    return figure


@styled
def margins(distances: Mapping[str, Sequence[float]], noise: float) -> plt.Figure:
    """Plot sorted distances from a threshold, in sensitivities, one line for each statistic.

    Parameters
    ----------
    distances : mapping of str to sequence of float
        From a statistic's name to the distances of all pairs.
    noise : float
        Half-width of a band, in the same unit.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.3), layout="constrained")
    axes.axvspan(-noise, noise, color="#E4E4E4", linewidth=0, label="noise scale")
    axes.axvline(0, color=GREY, linewidth=0.8)
    for (name, values), (color, line, _) in zip(distances.items(), SERIES, strict=False):
        rank = np.linspace(0, 1, len(values))
        axes.plot(np.sort(values), rank, color=color, linestyle=line, label=name)
    axes.set_xscale("symlog", linthresh=10)
    axes.set(xlabel="distance from threshold / sensitivity", ylabel="fraction of pairs below")
    axes.legend(loc="upper left")
    return figure


@styled
def mean_f1_by_epsilon(lines: Mapping[str, pd.DataFrame], ceiling: float) -> plt.Figure:
    """Plot the mean over networks against epsilon, with bars of two standard errors.

    Parameters
    ----------
    lines : mapping of str to DataFrame
        Two of them: on z and on the p-value. Columns ``mean`` and ``error``, indexed by epsilon.
    ceiling : float
        The mean without privacy, drawn as a dashed line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
    axes.axhline(ceiling, color=GREY, linestyle="--", label="PC without privacy")
    for (label, line), look in zip(lines.items(), (_ON_Z, _ON_P), strict=True):
        two = 2 * line.error
        axes.errorbar(line.index, line["mean"], two, label=label, ms=6, capsize=3, **look)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="guaranteed epsilon", ylabel="mean skeleton F1")
    figure.legend(loc="outside upper center", ncols=3, handlelength=3)
    return figure


@styled
def f1_by_epsilon(scores: pd.DataFrame, ceilings: Mapping[str, float]) -> plt.Figure:
    """Plot F1 against epsilon with standard deviations, one small panel for each network.

    Parameters
    ----------
    scores : DataFrame
        Columns statistic, network, epsilon and F1, one row a run; one line for each statistic.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a dashed line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(scores.network))
    rows = -(-(len(names) + 1) // 2)
    figure, grid = plt.subplots(
        rows,
        2,
        figsize=(6.5, 1.9 * rows),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        here = scores[scores.network == name].groupby("statistic", sort=False)
        for place, ((statistic, runs), look) in enumerate(zip(here, (_ON_Z, _ON_P), strict=False)):
            f1 = runs.groupby("epsilon").F1
            mean, spread = f1.mean(), f1.std(ddof=0)
            at = mean.index * 1.06 ** (2 * place - 1)  # side by side, where they would overlap
            axes.errorbar(at, mean, spread, label=statistic, ms=5, capsize=3, **look)
        axes.axhline(ceilings[name], color=BLACK, linestyle="--", lw=1, label="without privacy")
        axes.set(title=name, xscale="log", ylim=(0, 1.05))
        axes.tick_params(labelbottom=True)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    grid.flat[-1].legend(handles, labels, loc="center", handlelength=3)
    figure.supxlabel("guaranteed epsilon", fontsize=10)
    figure.supylabel("skeleton F1", fontsize=10)
    return figure


@styled
def loss_by_hits(hits: Sequence[int], loss: Sequence[float], epsilon: float) -> plt.Figure:
    """Plot the privacy loss of one threshold that answers several hits.

    Parameters
    ----------
    hits : sequence of int
    loss : sequence of float
        In nats.
    epsilon : float
        What was promised, drawn as a line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(5.8, 3.1), layout="constrained")
    axes.plot(hits, loss, color=BLUE, marker="o", ms=4, label="exact loss")
    axes.axhline(epsilon, color=VERMILLION, linestyle="--", label="promised")
    axes.set(xlabel="hits answered from one threshold", ylabel="privacy loss (nats)")
    axes.set_ylim(0, None)
    axes.locator_params(axis="x", integer=True)
    axes.legend()
    return figure


@styled
def rounds(noise: Mapping[str, Sequence[float]], queries: Sequence[float]) -> plt.Figure:
    """Plot runs of sieve-and-examine, noisy queries against a noisy threshold, one panel each.

    Parameters
    ----------
    noise : mapping of str to sequence of float
        From a panel's title to the noise in the order of its draws: of the threshold, of each query
        that was asked, of the examination if the sieve has fired.
    queries : sequence of float
        Without noise; the threshold without noise is 0.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = plt.subplots(1, len(noise), figsize=(6.5, 3.6), sharey=True, layout="constrained")
    for axes, (title, (threshold, *rest)) in zip(row, noise.items(), strict=True):
        asked = [query + extra for query, extra in zip(queries, rest, strict=False)]
        fired = next((k for k, seen in enumerate(asked) if seen >= threshold), None)
        asked = asked if fired is None else asked[: fired + 1]
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axhline(threshold, color=VERMILLION, linestyle="--", label="noisy threshold")
        places = np.arange(1, len(queries) + 1)
        axes.plot(places, queries, "_", color=BLACK, ms=17, mew=2, label="query")
        axes.vlines(places[: len(asked)], queries[: len(asked)], asked, color=BLUE, linewidth=0.9)
        axes.plot(places[: len(asked)], asked, "o", color=BLUE, ms=7, label="noisy query")
        told = "nothing"
        if fired is not None:
            examined = queries[fired] + rest[fired + 1]
            look: dict[str, Any] = dict(marker="D", color=GREEN, mfc="white", ms=7, mew=1.6)
            axes.plot(fired + 1.25, examined, linestyle="", label="examination", **look)
            told = f"query {fired + 1}" if examined >= 0 else told
        axes.set(title=f"{title}, told: {told}", xlabel="query", xticks=places)
        axes.set_xlim(0.5, len(queries) + 0.5)
    row[0].set_ylabel("value / sensitivity")
    known: dict[str, Any] = {}
    for axes in row:
        lines, labels = axes.get_legend_handles_labels()
        known |= dict(zip(labels, lines, strict=True))
    figure.legend(known.values(), known, loc="outside lower center", ncols=4)
    return figure
