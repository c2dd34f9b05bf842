"""Figures of chapter 04: margins, and rounds of sieve-and-examine."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import BLACK, BLUE, GREEN, GREY, SERIES, VERMILLION, legend, styled

__all__ = ["margins", "rounds"]


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
        answer = "nothing"
        if fired is not None:
            examined = queries[fired] + rest[fired + 1]
            look: dict[str, Any] = dict(marker="D", color=GREEN, mfc="white", ms=7, mew=1.6)
            axes.plot(fired + 1.25, examined, linestyle="", label="examination", **look)
            answer = f"query {fired + 1}" if examined >= 0 else answer
        axes.set(title=f"{title}, told: {answer}", xlabel="query", xticks=places)
        axes.set_xlim(0.5, len(queries) + 0.5)
    row[0].set_ylabel("value / sensitivity")
    legend(figure, ncols=4, handlelength=2)
    return figure
