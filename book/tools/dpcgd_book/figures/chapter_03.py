"""Figures of chapter 03: a replaced record, changes against claims, the weights of strata."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import ConnectionPatch

from dpcgd_book.figures.style import BLACK, BLUE, GREY, VERMILLION, styled

__all__ = ["change_against_claim", "replaced_record", "stratum_weights"]


@styled
def replaced_record(before: np.ndarray, after: np.ndarray) -> plt.Figure:
    """Draw two neighbouring tables as one: the shared records, and where the replaced one goes.

    Parameters
    ----------
    before, after : integer arrays
        Axes x, y and, if any, one for the strata. They differ in one record.

    Returns
    -------
    matplotlib.figure.Figure
    """
    before, after = (table.reshape(*table.shape[:2], -1) for table in (before, after))
    wide, tall, strata = before.shape
    size = (1.2 + 0.62 * wide * strata + 0.5 * (strata - 1), 1.0 + 0.55 * tall)
    figure = plt.figure(figsize=size, layout="constrained")
    _draw_tables(figure, before, after)
    return figure


@styled
def change_against_claim(
    before: np.ndarray,
    after: np.ndarray,
    title: str,
    ratios: Mapping[str, Mapping[str, float]],
) -> plt.Figure:
    """Draw a replaced record, and below it how far each statistic moved by what was claimed.

    Parameters
    ----------
    before, after : integer arrays
        Axes x, y and one for the strata. They differ in one record.
    title : str
        What the replaced record did.
    ratios : mapping of str to mapping of str to float
        From a group of claims, at most two, to the ratio of each: the change that was seen over the
        sensitivity that is claimed.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = plt.figure(figsize=(6.4, 6.6), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.5, 4.1))
    top, bottom = parts
    _draw_tables(top, before, after)
    top.suptitle(title, fontsize=10.5)
    axes = bottom.subplots()
    rows = [(group, *row) for group, named in ratios.items() for row in named.items()]
    styles = dict(zip(ratios, ((BLUE, "o"), (VERMILLION, "D")), strict=False))
    places = np.arange(len(rows))[::-1]
    for place, (group, _, ratio) in zip(places, rows, strict=True):
        color, marker = styles[group]
        axes.plot(ratio, place, marker, color=color, ms=5, label=group)
        axes.plot([1, ratio], [place, place], color=color, linewidth=1.2)
        if group != rows[0][0]:
            text = f"{ratio:,.1f}" if ratio < 10 else f"{ratio:,.0f}"
            away, side = ((8, 0), "left") if ratio >= 1 else ((-8, 0), "right")
            beside: Any = dict(xytext=away, textcoords="offset points", ha=side, va="center")
            axes.annotate(text, (ratio, place), **beside)
    axes.axvline(1, color=BLACK, linewidth=0.9)
    axes.axhline(len(rows) - len(ratios[rows[0][0]]) - 0.5, color=GREY, linewidth=0.6)
    axes.set_yticks(places, [name for _, name, _ in rows], fontsize=9.5)
    axes.set(xscale="log", xlim=(0.02, 4e4), xlabel="change / claimed sensitivity")
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    axes.legend(handles.values(), handles, loc="upper right")
    return figure


def _draw_tables(figure, before, after):
    """The records that two tables share, one grid for each stratum, and the replaced one."""
    shared = np.minimum(before, after)
    wide, tall, strata = shared.shape
    row = figure.subplots(1, strata, squeeze=False)
    for stratum, axes in enumerate(row[0]):
        axes.imshow(np.sign(shared[:, :, stratum]).T, cmap="Greys", vmin=0, vmax=5, origin="lower")
        for x, y in np.argwhere(shared[:, :, stratum]):
            below = 0.31 * (before[x, y, stratum] != after[x, y, stratum])  # not on the mark
            count = f"{shared[x, y, stratum]:,}"
            axes.text(x, y - below, count, ha="center", va="center", fontsize=9.5)
        axes.set(xticks=range(wide), yticks=range(tall), xlabel="level of $x$")
        axes.set_xticks(np.arange(wide + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(tall + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#C8C8C8", linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.set_title(f"stratum {stratum}" if strata > 1 else "")
    row[0][0].set_ylabel("level of $y$")
    _arrow_of_the_record(figure, row[0], before - after)


def _arrow_of_the_record(figure, row, lost):
    """From the cell that loses a record to the cell that gains one."""
    places = [np.argwhere(lost == change)[0] for change in (1, -1)]
    marks = ("o", "white", "the record before"), ("D", VERMILLION, "and after")
    for (x, y, stratum), (marker, fill, label) in zip(places, marks, strict=True):
        row[stratum].plot(
            x, y, marker, color=VERMILLION, markerfacecolor=fill, ms=9, mew=1.8, label=label
        )
    (x, y, stratum), (u, v, other) = places
    ends: Any = dict(axesA=row[stratum], axesB=row[other], coordsA="data", coordsB="data")
    way: Any = dict(connectionstyle="arc3,rad=-0.12", arrowstyle="-|>", shrinkA=7, shrinkB=7)
    arrow = ConnectionPatch((x, y), (u, v), color=VERMILLION, linewidth=1.5, **ends, **way)
    figure.add_artist(arrow)
    figure.legend(loc="outside lower center", ncols=2)


@styled
def stratum_weights(rows: Mapping[str, Sequence[float]], notes: Sequence[str]) -> plt.Figure:
    """Draw the weight of each stratum in a statistic, one stacked bar for each data set.

    Parameters
    ----------
    rows : mapping of str to sequence of float
        From a bar's name to the weights of its strata.
    notes : sequence of str
        What to write behind each bar.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.4, 0.55 * len(rows) + 1.2))
    fills = ((BLUE, ""), ("#D9D9D9", "//"), ("white", "xx"))
    weights = np.array(list(rows.values()), float)
    ends, places = weights.cumsum(axis=1), np.arange(len(rows))[::-1]
    for stratum, (color, hatch) in enumerate(fills[: weights.shape[1]]):
        wide, name = weights[:, stratum], f"stratum {stratum}"
        bars: Any = dict(color=color, hatch=hatch, edgecolor=BLACK, linewidth=0.7, label=name)
        axes.barh(places, wide, 0.55, left=ends[:, stratum] - wide, **bars)
    for place, end, note in zip(places, ends[:, -1], notes, strict=True):
        axes.annotate(note, (end, place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, list(rows))
    axes.set(xlabel="weight $w(n_i)$ in the statistic (no unit)", xlim=(0, 1.5 * ends.max()))
    axes.legend(loc="upper right")
    figure.set_layout_engine("tight")
    return figure
