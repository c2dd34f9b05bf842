"""Figures that compare systems, budgets and papers: chapters 05 to 07, 10, 17, 18, 20 to 24."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from dpcgd.tables.plan import Plan
from dpcgd_book.figures import charts, style
from dpcgd_book.figures.style import BLACK, BLUE, GREY, ORANGE, SERIES
from dpcgd_book.results.graph_scores import Paired, over_networks

__all__ = ["NOBODY", "by_level", "difference_by_budget", "grid", "growth", "least_epsilon"]
__all__ += ["map_of_wins", "one_look", "plan", "schedules", "seconds_by_system", "staircase"]
__all__ += ["winners"]

Frames = Mapping[str, pd.DataFrame]
Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]

AHEAD = ("EM-PC ahead", "Priv-PC ahead")
"""What a difference above 0 and one below 0 say, usually."""


def difference_by_budget(
    paired: Mapping[float, Paired], by_network: pd.DataFrame, *, ahead: Sequence[str] = AHEAD
) -> Figure:
    """Plot how far one system is ahead of another, with a band of two standard errors.

    Parameters
    ----------
    paired : mapping of float to Paired
        From the guaranteed epsilon to the difference in F1.
    by_network : DataFrame
        The difference of each network: a row for each epsilon, a column for each network.
    ahead : (str, str)
        What a value above and a value below 0 means.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = style.subplots(size=(6.5, 3.6))
    budgets = list(paired)
    mean, error = np.array([(p.difference, 2 * p.error) for p in paired.values()]).T
    axes.axhline(0, color=BLACK, linewidth=0.9)
    band: dict[str, Any] = dict(color=BLUE, alpha=0.2, linewidth=0, label="two standard errors")
    axes.fill_between(budgets, mean - error, mean + error, **band)
    axes.plot(budgets, mean, color=BLUE, marker="o", label="mean over the networks")
    axes.plot(by_network, "o", ms=4.5, mfc="none", mec=GREY)[0].set_label("one network")
    for text, y, va in zip(ahead, (0.95, 0.05), ("top", "bottom"), strict=True):
        axes.text(0.99, y, text, va=va, ha="right", transform=axes.transAxes)
    axes.set(xscale="log", xlabel="guaranteed epsilon", ylabel="difference in skeleton F1")
    reach = 1.25 * max(np.nanmax(np.abs(by_network.to_numpy())), np.max(np.abs(mean) + error))
    if np.isfinite(reach):
        axes.set_ylim(-reach, reach)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def seconds_by_system(results: Mapping[str, Mapping]) -> Figure:
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
    figure, (above, below) = style.subplots(2, 1, size=(6.5, 6.6), sharex=True)
    peers = {name: pd.DataFrame(runs).loc["seconds"] for name, runs in results["peers"].items()}
    plain = {"dpcgd": pd.Series(ours["PC, chi squared"]), **peers}
    for (label, row), (color, line, marker) in zip(plain.items(), SERIES, strict=False):
        above.plot(row, color=color, linestyle=line, marker=marker, ms=5, label=label)
    for system, look in style.looks_of(("SVT-PC", "Priv-PC", "EM-PC")).items():
        below.plot(pd.Series(ours[system]), label=f"{system}, here", ms=5, **look)
        (line,) = below.plot(pd.Series(paper[system]), label=f"{system}, paper", ms=5, **look)
        line.set_markerfacecolor("white")
    for axes, title in ((above, "PC without privacy, same test"), (below, "private PC")):
        axes.set(title=title, yscale="log", ylabel="seconds a run")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        axes.grid(axis="y", color="#E4E4E4", linewidth=0.7)
        axes.axhline(1, color=BLACK, linewidth=0.7)
    below.tick_params(axis="x", rotation=30)
    return figure


def staircase(steps: Frames, *, beside: Frames, rivals: Mapping[str, float]) -> Figure:
    """Plot scores as steps, each a bar from 0 with what it gains over the one before lit.

    Parameters
    ----------
    steps, beside : mapping of str to DataFrame
        From what is shown to runs with columns network and F1. Those beside are drawn below,
        compared with nothing.
    rivals : mapping of str to float
        Mean F1 of other systems, drawn as lines.

    Returns
    -------
    matplotlib.figure.Figure
    """
    both = {**steps, **beside}
    cells = {name: runs.groupby("network").F1 for name, runs in both.items()}
    means, errors = zip(*map(over_networks, cells.values()), strict=True)
    places = [i + 0.4 * (i >= len(steps)) for i in range(len(both))]
    before = [*np.maximum.accumulate([0.0, *means[: len(steps) - 1]]), *means[len(steps) :]]
    lit = np.maximum(0.0, np.subtract(means, before))
    figure, axes = style.subplots(size=(6.5, 4.0))
    axes.barh(places, means, 0.62, color="#D9D9D9", zorder=1)
    axes.barh(places, lit, 0.62, left=means - lit, color=ORANGE, zorder=1)
    for y, mean, error, cell in zip(places, means, errors, cells.values(), strict=True):
        axes.plot(cell.mean(), [y] * len(cell), "o", color=GREY, ms=3.5, mfc="white", zorder=3)
        axes.errorbar(mean, y, xerr=2 * error, color=BLACK, capsize=3, linewidth=1.4, zorder=4)
        axes.text(1.03, y, f"{mean:.2f}".lstrip("0"), va="center", fontsize=10.5, weight="bold")
    for name, look in style.looks_of(rivals.keys()).items():
        axes.axvline(rivals[name], c=look["color"], ls=look["linestyle"], label=name, zorder=2)
    axes.set(xlim=(0, 1.02), xlabel="skeleton F1 (bar: mean; circle: one network)")
    axes.set_yticks(places, list(both))
    axes.tick_params(axis="y", length=0, pad=8)
    axes.invert_yaxis()
    figure.legend(loc="outside upper right", ncols=2, handlelength=3.5)
    return figure


MEASURES = {"F1": "F1 (more is better)", "wrong": "wrong pairs (fewer are better)"}


def one_look(runs: pd.DataFrame, *, complete: Sequence[float], xlabel: str) -> Figure:
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
    lines: dict[str, dict] = {}
    ends = [runs.epsilon.min(), runs.epsilon.max()]
    for (column, title), level in zip(MEASURES.items(), complete, strict=True):
        lines[title] = {}
        for name, rows in runs.groupby("system", sort=False):
            groups = rows.groupby("epsilon")
            points = {e: over_networks(own.groupby("network")[column]) for e, own in groups}
            mean, error = np.transpose([*points.values()])
            lines[title][name] = [*points], mean, 2 * error
        lines[title]["complete graph"] = ends, [level, level]
    shown: dict[str, Any] = dict(xlabels=[xlabel] * 2, ylabel="mean over the networks", log="x")
    return charts.curves(lines, **shown, limits=(0, None), aside=1.04)


def schedules(runs: pd.DataFrame, names: Sequence[str]) -> Figure:
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
    series: dict = {column: {"": {}} for column in MEASURES}
    dots: dict = {column: {} for column in MEASURES}
    for column, name in product(MEASURES, names):
        rows = runs[runs.schedule == name]
        by_network = rows.groupby("network")[column]
        series[column][""][name], dots[column][name] = over_networks(by_network), by_network.mean()
    return charts.rows(series, xlabels=list(MEASURES.values()), dots=dots)


NOBODY = "nobody"
"""Who wins where a private graph is no better than a guess."""

MOST_NUMBERS = 12
"""The picture of a plan of so many variables has a number in each cell."""


def winners(rows: pd.DataFrame) -> pd.DataFrame:
    """Who is ahead in each cell of the map, and whether that beats a graph made without a look.

    Parameters
    ----------
    rows : DataFrame
        Columns d, n, epsilon, system, run, F1, SHD and, of the same networks, complete F1
        and empty SHD; a row without F1 is a refusal, and counts as the empty graph.

    Returns
    -------
    DataFrame
        A row for each d, n and epsilon: `best`, its mean F1; `ahead`, the systems that are within
        two paired standard errors of the best. `best` is "nobody" unless its F1 is above that of
        the complete graph, and its SHD below that of the empty one, by two standard errors each.
    """
    rows = rows.assign(F1=rows.F1.fillna(0.0), SHD=rows.SHD.fillna(rows["empty SHD"]))
    cells = []
    for key, runs in rows.groupby(["d", "n", "epsilon"]):
        f1, shd = (runs.pivot(index="run", columns="system", values=v) for v in ("F1", "SHD"))
        base, best = runs.groupby("run")[["complete F1", "empty SHD"]].first(), f1.mean().idxmax()
        lead, saved = f1[best] - base["complete F1"], base["empty SHD"] - shd[best]
        sure = all(x.mean() > 2 * x.sem() for x in (lead, saved))
        behind = (-f1).add(f1[best], axis=0)
        ahead = f1.columns[(behind.mean() <= 2 * behind.sem()) | (f1.columns == best)]
        winners = (best, list(ahead)) if sure else (NOBODY, [])
        cells.append([*key, f1[best].mean(), *winners])
    return pd.DataFrame(cells, columns=["d", "n", "epsilon", "F1", "best", "ahead"])


def map_of_wins(cells: pd.DataFrame, letters: Mapping[str, str]) -> Figure:
    """Draw who wins over records and epsilon, one panel for each number of variables.

    Parameters
    ----------
    cells : DataFrame
        As from :func:`winners`.
    letters : mapping of str to str
        One letter for each system. A cell has those of all that are ahead, and the best one's F1.

    Returns
    -------
    matplotlib.figure.Figure
    """
    sizes, records, budgets = (sorted(set(cells[key])) for key in ("d", "n", "epsilon"))
    colors = {name: look["color"] for name, look in style.looks_of(letters).items()}
    colors[NOBODY] = "#D4D4D4"
    figure, grid = style.subplots(1, len(sizes), size=(6.5, 3.4), sharey=True, squeeze=False)
    for axes, d in zip(grid.flat, sizes, strict=True):
        for cell in cells[cells.d == d].itertuples():
            x, y = records.index(cell.n), budgets.index(cell.epsilon)
            place = x - 0.5, y - 0.5
            axes.add_patch(Rectangle(place, 1, 1, color=colors[cell.best], alpha=0.75, lw=0))
            ahead = "".join(letter for s, letter in letters.items() if s in cell.ahead)
            text = f"{ahead}\n{cell.F1:.2f}".lstrip("0") if ahead else "-"
            axes.text(x, y, text, ha="center", va="center", fontsize=7.5, linespacing=1.0)
        axes.set(title=f"{d} variables", xlim=(-0.5, len(records) - 0.5))
        axes.set_xticks(range(len(records)), [f"$10^{{{round(np.log10(n))}}}$" for n in records])
        axes.set_yticks(range(len(budgets)), [f"{e:g}" for e in budgets])
        axes.set_ylim(-0.5, len(budgets) - 0.5)
        axes.tick_params(length=0)
    grid[0, 0].set_ylabel("guaranteed epsilon")
    grid[0, len(sizes) // 2].set_xlabel("records")
    names = [f"{letter}: {s}" for s, letter in letters.items()] + ["-: nobody, so do not"]
    handles = [Patch(color=color, alpha=0.75) for color in colors.values()]
    figure.legend(handles, names, loc="outside lower center", ncols=len(handles))
    return figure


def plan(planned: Plan) -> Figure:
    """Draw a plan: the smallest correlation that is found, for each pair of variables.

    Above the diagonal stands the test of a pair, below it the tests given one more variable. A cell
    without colour cannot be tested, or nothing that two groups can do would be found.

    Parameters
    ----------
    planned : Plan

    Returns
    -------
    matplotlib.figure.Figure
    """
    names, frame = list(planned.levels), planned.to_frame()
    side = 2.6 + 0.32 * min(MOST_NUMBERS, len(names))
    figure, axes = style.subplots(size=(side + 0.9, side))
    smallest, above = np.full((len(names),) * 2, np.nan), np.triu_indices(len(names), 1)
    smallest[above], smallest.T[above] = frame.correlation, frame.partial_correlation
    image = axes.imshow(smallest, cmap="viridis_r", vmin=0)
    if len(names) <= MOST_NUMBERS:
        middle = np.max(smallest, initial=0, where=np.isfinite(smallest)) / 2
        for (i, j), value in np.ndenumerate(smallest):
            if i != j:
                text = "none" if np.isnan(value) else f"{value:.2g}".replace("0.", ".", 1)
                color = "white" if value > middle else "black"
                axes.text(j, i, text, ha="center", va="center", color=color, fontsize=8)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set_title("above the diagonal: a pair; below: given one more", fontsize=9)
    figure.colorbar(image, ax=axes, label=f"correlation found with probability {planned.power:g}")
    return figure


def growth(panels: Mapping[str, Curves], predicted: Curves) -> Figure:
    """Plot costs against records: points as measured, lines as predicted.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (records, cost)
        From a panel's title, its unit, to what was measured, at most five series in all.
    predicted : mapping of str to (records, cost)
        A line for each series.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = style.subplots(1, len(panels), size=(6.5, 3.4))
    looks = iter((*SERIES, (ORANGE, "-", "v")))
    for axes, (title, series) in zip(grid, panels.items(), strict=True):
        for name, (n, cost) in series.items():
            color, line, marker = next(looks)
            axes.plot(*predicted[name], color=color, linestyle=line, linewidth=1.2)
            axes.plot(n, cost, marker, color=color, ms=5, markerfacecolor="white", label=name)
        axes.set(title=title, xscale="log", yscale="log", xlabel="records")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (0.12 * len(series)))  # room for the legend
        axes.legend(loc="upper left", handletextpad=0.2)
    return figure


def least_epsilon(f1: pd.DataFrame, lines: Mapping[str, Sequence[float]]) -> Figure:
    """Draw F1 over records and epsilon as a map, with curves of epsilon over it.

    Parameters
    ----------
    f1 : DataFrame
        Mean F1; a row for each epsilon, increasing, and a column for each n, both on log grids.
    lines : mapping of str to sequence of float
        For each curve its epsilon at every n.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = style.subplots(size=(5.9, 3.9))
    n, epsilon = (np.array(list(index), float) for index in (f1.columns, f1.index))
    image = axes.pcolormesh(n, epsilon, f1.to_numpy(), cmap="cividis", vmin=0, vmax=1)
    for (name, values), line in zip(lines.items(), ("-", "--", ":"), strict=False):
        axes.plot(n, values, line, color="white", linewidth=3.4)
        axes.plot(n, values, line, color=BLACK, linewidth=1.5, label=name)
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel=r"guaranteed $\varepsilon$")
    axes.set_ylim(epsilon[0] / 1.8, epsilon[-1] * 1.8)
    figure.legend(loc="outside lower center", ncols=len(lines), handlelength=3)
    figure.colorbar(image, ax=axes, label="mean skeleton F1").outline.set_edgecolor(GREY)
    return figure


def by_level(
    named: Mapping[str, Mapping[str, Mapping[str, tuple]]],
    *,
    ylabel: str | Sequence[str],
    xlabel: str = "",
    lines: Mapping[str, Mapping[str, float]] | None = None,
    apart: int = 0,
    limits: tuple[float, float] | None = None,
    joined: bool = True,
) -> Figure:
    """Plot means and intervals of the four mechanisms over levels, two panels in a row.

    Parameters
    ----------
    named : mapping of str to mapping of str to mapping of str to tuple
        From a panel's title to its mechanisms to their levels to (mean, spread) or (mean, low,
        high).
    ylabel : str or sequence of str
        One for all panels, or one for each.
    xlabel : str
    lines : mapping of str to mapping of str to float, optional
        From a line's name, at most two, to its height in each panel.
    apart : int
        So many of the first levels are another scale: a line parts them from the rest.
    limits : (float, float), optional
        Of the vertical axis, in all panels.
    joined : bool
        Whether a line joins the levels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = style.panels(len(named), 6.5, 2.7, foot=0.6)
    labels = [ylabel] * len(named) if isinstance(ylabel, str) else ylabel
    for axes, (title, series), label in zip(grid, named.items(), labels, strict=True):
        names = list(dict.fromkeys(level for values in series.values() for level in values))
        for i, (mechanism, look) in enumerate(style.looks_of(series).items()):
            look |= {"ms": 5, "capsize": 2, "markerfacecolor": "white"}
            look |= {} if joined else {"linestyle": ""}
            for part in (names[:apart], names[apart:]):
                shown = {level: v for level, v in series[mechanism].items() if level in part}
                x = [names.index(level) + 0.13 * (i - (len(series) - 1) / 2) for level in shown]
                both = [
                    v if len(v) == 3 else (v[0], v[0] - v[1], v[0] + v[1]) for v in shown.values()
                ]
                mean, low, high = np.nan_to_num(np.array(both, float).reshape(-1, 3).T)
                axes.errorbar(x, mean, [mean - low, high - mean], label=mechanism, **look)
        for (name, heights), dashes in zip((lines or {}).items(), ("-", (0, (1, 1))), strict=False):
            axes.axhline(heights[title], c=GREY, ls=dashes, lw=1.3, label=name, zorder=0)
        if apart:
            axes.axvline(apart - 0.5, color=GREY, linewidth=0.8)
        axes.set_xticks(range(len(names)), names)
        axes.set(title=title, xlim=(-0.5, len(names) - 0.5), ylim=limits)
        axes.set(xlabel=xlabel, ylabel=label)
    style.legend(figure, "outside upper center", ncols=3)
    return figure


def grid(values: pd.DataFrame, *, unit: str, digits: int, best: str) -> Figure:
    """Draw a table of means as a heat map, with the numbers in its cells.

    Parameters
    ----------
    values : DataFrame
        Two levels of columns, group and level; not a number where nothing was run.
    unit : str
        What a number is.
    digits : int
    best : {"high", "low"}
        Which end is the good one; it is drawn in a strong blue.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows, columns = values.shape
    figure, axes = style.subplots(size=(7.4, 0.25 * rows + 1.3))
    shown = values.to_numpy(float)
    image = axes.imshow(shown, cmap="Blues" if best == "high" else "Blues_r", aspect="auto")
    low, high = image.get_clim()
    room = 0.6 * max(high - low, 1e-9)
    image.set_clim((low, high + room) if best == "high" else (low - room, high))
    for (i, j), value in np.ndenumerate(shown):
        text = "\N{EN DASH}" if np.isnan(value) else f"{value:.{digits}f}".removeprefix("0")
        axes.text(j, i, text, ha="center", va="center", fontsize=9.5, color=BLACK)
    groups, levels = zip(*values.columns, strict=True)
    places = pd.Series(range(columns)).groupby(list(groups), sort=False).agg(["min", "mean"])
    for start in places["min"][1:]:
        axes.axvline(start - 0.5, color="white", linewidth=4)
        axes.axvline(start - 0.5, color=GREY, linewidth=0.8)
    axes.set_yticks(range(rows), list(values.index))
    axes.set_xticks(range(columns), levels)
    axes.set_xlabel(f"attacker's success $p_{{\\max}}$; in the cells: {unit}")
    above = axes.secondary_xaxis("top")
    above.set_xticks(places["mean"], places.index.str.replace(" ", "\n", n=1))
    for bare in (axes, above):
        bare.tick_params(length=0)
        bare.spines[:].set_visible(False)
    return figure
