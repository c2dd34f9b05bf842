"""Charts that several chapters draw: curves, rows, scores by system, distributions."""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from scipy import stats

from dpcgd_book.figures.style import BLACK, BLUE, GREY, SERIES, VERMILLION, legend, looks_of, panels

__all__ = ["curves", "f1_by_system", "null_distributions", "panel", "rows"]


def null_distributions(samples: Mapping[str, np.ndarray], *, critical: float) -> Figure:
    """Compare the statistic's distribution under independence with the standard normal.

    Parameters
    ----------
    samples : mapping of str to array
        Simulated values of z, named by what was simulated.
    critical : float
        The test's critical value for ``|z|``, marked on both sides.

    Returns
    -------
    matplotlib.figure.Figure
    """
    grid, normal = np.linspace(-4, 4, 401), "standard normal"
    figure, (axes,) = panels(1, 5.6, 3.8, ylabel="density")
    axes.fill_between(grid, stats.norm.pdf(grid), color="#DDDDDD", linewidth=0, label=normal)
    for (label, z), (color, line, _) in zip(samples.items(), SERIES, strict=False):
        width = max(1.06 * np.std(z) * len(z) ** -0.2, 1e-3)
        density = stats.norm.pdf(grid[:, None], z, width).mean(axis=1)
        axes.plot(grid, density, color=color, linestyle=line, label=label)
    for edge in (-critical, critical):
        axes.axvline(edge, color=BLACK, linestyle="--", linewidth=0.9)
    axes.set(xlim=(-4, 4), ylim=(0, None), xlabel="$z$ (no unit)")
    legend(figure, ncols=_legend_columns([*samples, normal], 5.6), handlelength=2)
    return figure


def curves(
    lines: Mapping[str, Mapping[str, tuple[Sequence[float], ...] | pd.Series]],
    *,
    xlabels: Sequence[str] = (),
    ylabel: str,
    log: str = "xy",
    points: Collection[str] = (),
    levels: Mapping[str, float] | None = None,
    crossings: Mapping[str, float] | None = None,
    span: tuple[float, float] | None = None,
    limits: tuple[float, float | None] | None = None,
    bands: bool = False,
    aside: float = 1.0,
) -> Figure:
    """Plot named curves in panels, two in a row. Curves of at most a dozen points have markers.

    Parameters
    ----------
    lines : mapping of str to mapping of str to (x, y), (x, y, error) or Series
        From a panel's title to its curves by name, at most four besides the systems of the book.
        An error is drawn as a bar up and down. A Series is drawn over its index; a table is a panel
        of its columns. Without `xlabels`, from a panel's horizontal label.
    xlabels : sequence of str, optional
        One for each panel.
    ylabel : str
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    points : collection of str
        Names of curves that are drawn as points without a line.
    levels, crossings : mapping of str to float, optional
        Named level lines and upright lines of every panel.
    span : (float, float), optional
        Of the horizontal axis; it is shaded.
    limits : (float, float or None), optional
        Of the vertical axis.
    bands : bool
        Whether the errors of lines are drawn as bands.
    aside : float
        Curves are moved sideways by this factor from one to the next, so that bars do not overlap.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(name for named in lines.values() for name in named))
    looks, levels, crossings = looks_of(names), levels or {}, crossings or {}
    shown = [*names, *levels, *crossings]
    wide, tall = (5.6, 3.5) if len(lines) == 1 else (6.5, 2.7)
    columns = _legend_columns(shown, wide)
    foot = 0.22 * -(-len(shown) // columns)
    figure, grid = panels(len(lines), wide, tall, foot=foot, ylabel=ylabel)
    for axes, (title, named), xlabel in zip(grid, lines.items(), xlabels or lines, strict=False):
        axes.set_title(title if xlabels else "")
        if span:
            axes.axvspan(*span, color="#EEEEEE", linewidth=0, zorder=0)
        for name, height in levels.items():
            axes.axhline(height, color=GREY, linestyle="--", linewidth=1, label=name, zorder=0)
        for place, (name, curve) in enumerate(named.items()):
            look = looks[name] | {"markerfacecolor": "white", "ms": 5, "label": name}
            look |= {"linestyle": ""} if name in points else {}
            _curve(axes, curve, look, bands, aside ** (place - (len(named.keys()) - 1) / 2))
        for (name, x), dash in zip(crossings.items(), cycle((":", "--", "-.", "-")), strict=False):
            axes.axvline(x, color=GREY, linestyle=dash, linewidth=1.1, label=name, zorder=0)
        axes.set(xlabel=xlabel, **{f"{side}scale": "log" for side in log}, ylim=limits)
    if any(shown):
        legend(figure, ncols=columns)
    return figure


def panel(
    lines: Mapping[str, tuple[Sequence[float], ...]], xlabel: str, ylabel: str, **settings: Any
) -> Figure:
    """Plot named curves in one panel.

    Parameters
    ----------
    lines : mapping of str to (x, y) or (x, y, error)
        The curves by name.
    xlabel, ylabel : str
    **settings
        As :func:`curves` takes them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return curves({"": lines}, xlabels=[xlabel], ylabel=ylabel, **settings)


def _curve(axes, curve, look, bands, aside):
    x, y, *error = (curve.index, curve) if isinstance(curve, pd.Series) else curve
    x = np.asarray(x) * aside
    if look["linestyle"] != "" and (len(x) > 12 or len(x) < 3):  # dense, or a level line
        look["marker"] = ""
    if error and bands and look["linestyle"] != "":
        low, high = np.subtract(y, error[0]), np.add(y, error[0])
        axes.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)
        error = []
    axes.errorbar(x, y, *error, capsize=2, **look)


def _legend_columns(names, inches) -> int:
    """As many as fit beside one another."""
    widest = 0.75 + 0.07 * max((len(name.replace("$", "")) for name in names), default=0)
    return max(1, min(3, int(inches / widest)))


def rows(
    series: Mapping[str, Mapping[str, Mapping[str, float | tuple[float, ...]]]],
    *,
    xlabels: Sequence[str] = (),
    line: tuple[str, float] = ("", 0.0),
    dots: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    better: str = "",
    log: bool = False,
) -> Figure:
    """Plot numbers in named rows, with bars of two standard errors to both sides.

    Parameters
    ----------
    series : mapping of str to mapping of str to mapping of str to float or tuple
        From a panel to its series, at most two, to the rows from top to bottom. The first series
        of the first panel has all rows. A row is a number, (number, error) or, with the ends of
        its bar, (number, low, high); if an end is infinite, it says that nothing is identified.
    xlabels : sequence of str, optional
        One for each panel; the panels' names unless given.
    line : (str, float)
        The name and the place of an upright line.
    dots : mapping of str to mapping of str to sequence of float, optional
        From a panel to its rows to numbers that are drawn as small circles.
    better : str
        "right" shades what is right of the line.
    log : bool
        Whether the horizontal axes are logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
    """
    first = next(iter(next(iter(series.values())).values()))
    places = {name: -place for place, name in enumerate(first)}
    looks = ((0.13, "o", BLUE), (-0.13, "D", VERMILLION))
    figure, grid = panels(len(series), 6.5, 0.33 * len(first) + 1.2, sharey=True)
    for axes, (panel, named), xlabel in zip(grid, series.items(), xlabels or series, strict=True):
        for name, numbers in (dots or {}).get(panel, {}).items():
            axes.plot(numbers, [places[name]] * len(numbers), "o", color=GREY, ms=3.5, mfc="white")
        for (aside, fmt, color), (label, values) in zip(looks, named.items(), strict=False):
            y = [places[name] + aside * (len(named) - 1) for name in values]
            number, *error = np.transpose([*map(np.atleast_1d, values.values())])
            bars = np.abs(np.subtract(error, number)) if len(error) == 2 else None
            bars = 2 * error[0] if len(error) == 1 else bars
            endless = np.isinf(error).any(axis=0)
            number = np.where(endless, np.nan, number)
            axes.errorbar(number, y, None, bars, fmt, color=color, ms=5, capsize=2, label=label)
            for place in np.extract(endless, y):
                axes.text(0, place, " not identified", va="center")
        axes.axvline(line[1], color=BLACK, linewidth=0.9, label=line[0] or None)
        if log:
            axes.set_xscale("log", subs=())
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
        else:
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
        if better == "right":
            axes.set_xlim(axes.get_xlim())  # what is shaded does not widen it
            axes.axvspan(line[1], axes.get_xlim()[1], color="#E8E8E8", linewidth=0, zorder=0)
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
        axes.set(xlabel=xlabel, axisbelow=True)
        axes.set_yticks(list(places.values()), list(places))
    if any(label for named in series.values() for label in named):
        legend(figure, ncols=3)
    return figure


def f1_by_system(
    scores: pd.DataFrame,
    ceilings: Mapping[str, float],
    *,
    xlabel: str,
    limits: tuple[float, float] | None = None,
    bars: str = "deviation",
) -> Figure:
    """Plot F1 against a budget, one small panel for each network, one line for each system.

    Parameters
    ----------
    scores : DataFrame
        Columns network, system, epsilon, total and F1, one row a run. Runs of one epsilon make one
        point, at their mean total; systems are drawn a little beside one another.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a line.
    xlabel : str
        What a total is.
    limits : (float, float), optional
        Smallest and largest total shown.
    bars : str
        "deviation", the standard deviation of the runs, or "error", twice the standard error of
        their mean.

    Returns
    -------
    matplotlib.figure.Figure
    """
    systems, names = list(dict.fromkeys(scores.system)), scores.network.unique()
    looks = looks_of(systems)
    figure, grid = panels(len(names), 6.5, 1.9, foot=0.6, sharex=True, sharey=True)
    for axes, (name, here) in zip(grid, scores.groupby("network", sort=False), strict=True):
        for system, runs in here.groupby("system", sort=False):
            points = runs.groupby("epsilon")
            spread = points.F1.std(ddof=0) if bars == "deviation" else 2 * points.F1.sem()
            look = looks[system] | dict(ms=4, capsize=1.5, linewidth=1.2, elinewidth=0.8)
            x = points.total.mean() * 1.035 ** (systems.index(system) - len(systems) / 2)
            axes.errorbar(x, points.F1.mean(), spread, **look)
        axes.axhline(ceilings[name], color=GREY, linestyle="-", linewidth=1.4, zorder=0)
        axes.set(title=name, xscale="log", xlim=limits, ylim=(0, 1.05))
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.6)
    figure.supxlabel(xlabel, fontsize=10.5)
    figure.supylabel("skeleton F1", fontsize=10.5)
    handles = [Line2D([], [], ms=5, label=s, **looks[s]) for s in systems]
    if free := figure.axes[len(names) :]:
        free[0].legend(handles=handles, handlelength=3.4, loc="upper center", labelspacing=0.35)
    else:
        figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.4)
    return figure
