"""Charts for the chapters. Only notebooks import this: it needs matplotlib, an extra.

Every function returns a closed matplotlib Figure: a notebook shows it where the text wants it.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import ConnectionPatch

from dpcgd.book.style import BLACK, BLUE, GREY, PURPLE, SERIES, VERMILLION, styled

__all__ = [
    "accountants",
    "curves",
    "error_curves",
    "f1_by_epsilon",
    "f1_by_system",
    "greedy_and_true",
    "intervals",
    "leaky_fraction",
    "loss_by_hits",
    "margins",
    "null_distributions",
    "reachable_doubles",
    "replaced_record",
    "seconds_by_system",
    "stratum_weights",
    "turning_test",
]


@styled
def turning_test(
    statistics: Sequence[float],
    turning: tuple[float, float],
    *,
    critical: float,
    label: str,
) -> plt.Figure:
    """Show the statistics of all tests of a run, and one that a changed record carries across.

    Parameters
    ----------
    statistics : sequence of float
        ``|z|`` of every test of the run; values below 0.01 are drawn there.
    turning : (float, float)
        ``|z|`` of the test whose answer turns, before and after the change.
    critical : float
        Below it a pair counts as separated.
    label : str
        What the turning test asks.

    Returns
    -------
    matplotlib.figure.Figure
    """
    values = np.maximum(np.sort(statistics), 0.01)
    figure, axes = plt.subplots(figsize=(6.6, 3.4))
    ranks = np.arange(1, len(values) + 1)
    axes.plot(values, ranks, "o", color=BLUE, markerfacecolor="white", ms=4.5, mew=0.9)
    rank = 1 + np.searchsorted(values, turning[0])
    axes.plot(turning[0], rank, "D", color=VERMILLION, ms=7)
    axes.set_xscale("log")
    _mark_critical(axes, critical)
    axes.set(xlabel="$|z|$ (no unit, log scale)", ylabel="tests of the run, sorted")
    zoomed = axes.inset_axes((0.05, 0.6, 0.36, 0.24), facecolor="white", title=label)
    _zoom(zoomed, turning, critical)
    axes.annotate(
        "",
        (turning[0], rank),
        (0.3, 0.5),
        textcoords="axes fraction",
        arrowprops=dict(arrowstyle="-", color=VERMILLION, shrinkB=5, linewidth=0.9),
    )
    figure.set_layout_engine("tight")
    return figure


def _mark_critical(axes, critical):
    low, high = axes.get_xlim()
    axes.axvspan(low, critical, color="#EDEDED", zorder=0, linewidth=0)
    axes.axvline(critical, color=BLACK, linestyle="--", linewidth=1)
    axes.set_xlim(low, high)
    over = axes.get_xaxis_transform()
    axes.text(critical, 1.01, "separated ", ha="right", va="bottom", fontsize=9, transform=over)
    axes.text(critical, 1.01, " dependent", ha="left", va="bottom", fontsize=9, transform=over)


def _zoom(axes, turning, critical):
    before, after = turning
    reach = 1.6 * max(abs(before - critical), abs(after - critical))
    axes.annotate("", (after, 0), (before, 0), arrowprops=dict(arrowstyle="->", color=VERMILLION))
    axes.plot(before, 0, "D", color=VERMILLION, ms=6)
    axes.plot(after, 0, "X", color=VERMILLION, ms=7)
    for value, word in ((before, "before"), (after, "after")):
        axes.text(value, 0.35, word, ha="center", fontsize=8)
    axes.axvspan(critical - reach, critical, color="#EDEDED", zorder=0, linewidth=0)
    axes.axvline(critical, color=BLACK, linestyle="--", linewidth=1)
    axes.set(xlim=(critical - reach, critical + reach), ylim=(-1, 1), yticks=[])
    axes.set_xticks([before, after], [f"{before:.3f}", f"{after:.3f}"], fontsize=8)
    for side in axes.spines.values():
        side.set(visible=True, color=GREY)


@styled
def leaky_fraction(
    series: Mapping[str, Sequence], *, crossings: Mapping[str, float] | None = None
) -> plt.Figure:
    """Plot the share of data sets that one replaced record gives away, against their size.

    Parameters
    ----------
    series : mapping of str to sequence of (n, share, low, high)
        One line each, with the ends of the confidence interval.
    crossings : mapping of str to float, optional
        Named sample sizes to mark, such as those at which a test's expected statistic passes its
        critical value.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(6.8, 3.5))
    for (label, points), (color, line, marker) in zip(series.items(), SERIES, strict=False):
        n, share, low, high = np.transpose(points)
        n = n * (1.0 if color == SERIES[0][0] else 1.05)  # beside the first, not on top of it
        bars = np.maximum(0, [share - low, high - share])
        axes.errorbar(
            n, share, bars, color=color, linestyle=line, marker=marker, capsize=3, label=label
        )
    marks = {} if crossings is None else dict(crossings)
    for (label, n), style in zip(marks.items(), itertools.cycle((":", "--", "-.", "-"))):
        axes.axvline(n, color=GREY, linestyle=style, linewidth=1.1, label=label, zorder=0)
    axes.set(
        xscale="log",
        ylim=(0, None),
        xlabel="records $n$ (log scale)",
        ylabel="share of data sets",
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_layout_engine("tight")
    return figure


@styled
def null_distributions(samples: Mapping[str, np.ndarray], *, critical: float) -> plt.Figure:
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
    grid = np.linspace(-4, 4, 401)
    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    normal = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    axes.fill_between(grid, normal, color="#DDDDDD", linewidth=0, label="standard normal")
    for (label, z), (color, line, _) in zip(samples.items(), SERIES, strict=False):
        width = max(1.06 * np.std(z) * len(z) ** -0.2, 1e-3)
        density = np.exp(-(((grid[:, None] - z) / width) ** 2) / 2).mean(axis=1)
        scale = width * math.sqrt(2 * math.pi)
        axes.plot(grid, density / scale, color=color, linestyle=line, label=label)
    for edge in (-critical, critical):
        axes.axvline(edge, color=BLACK, linestyle="--", linewidth=0.9)
    axes.set(xlim=(-4, 4), ylim=(0, None), xlabel="$z$ (no unit)", ylabel="density")
    axes.legend(loc="upper right")
    figure.set_layout_engine("tight")
    return figure


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
    figure, row = plt.subplots(1, len(panels), figsize=(8.4, 3.3), layout="constrained")
    for axes, (title, (distances, exact, bound)) in zip(row, panels.items(), strict=True):
        axes.semilogy(distances, exact, color=BLUE, label="exact")
        axes.semilogy(distances, bound, color=VERMILLION, linestyle="--", label="printed bound")
        axes.set(title=title, xlabel="distance from threshold / sensitivity", ylim=(1e-4, 1.2))
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
    figure, axes = plt.subplots(figsize=(6.8, 3.3), layout="constrained")
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
def f1_by_epsilon(scores: pd.DataFrame, ceilings: Mapping[str, float]) -> plt.Figure:
    """Plot F1 against epsilon with deviations, one small panel for each network.

    Parameters
    ----------
    scores : DataFrame
        Columns network, epsilon and F1, one row a run.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(scores.network))
    figure, grid = plt.subplots(
        2, -(-len(names) // 2), figsize=(9, 4.6), sharey=True, layout="constrained"
    )
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.flat, names, strict=False):
        runs = scores[scores.network == name].groupby("epsilon").F1
        mean, spread = runs.mean(), runs.std(ddof=0)
        axes.errorbar(mean.index, mean, spread, color=BLUE, marker="o", ms=4, capsize=3)
        axes.axhline(ceilings[name], color=VERMILLION, linestyle="--")
        axes.set(title=name, xscale="log", ylim=(0, 1.05))
    figure.supxlabel("guaranteed epsilon (delta = 1e-6)")
    figure.supylabel("skeleton F1")
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
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    return figure


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
    shared = np.minimum(before, after)
    wide, tall, strata = shared.shape
    size = (1.2 + 0.62 * wide * strata + 0.5 * (strata - 1), 1.0 + 0.55 * tall)
    figure, row = plt.subplots(1, strata, figsize=size, squeeze=False, layout="constrained")
    for stratum, axes in enumerate(row[0]):
        axes.imshow(np.sign(shared[:, :, stratum]).T, cmap="Greys", vmin=0, vmax=5, origin="lower")
        for x, y in np.argwhere(shared[:, :, stratum]):
            beside = 0.3 * (before[x, y, stratum] != after[x, y, stratum])  # not below the mark
            count = f"{shared[x, y, stratum]:,}"
            axes.text(x + beside, y, count, ha="center", va="center", fontsize=8)
        axes.set(xticks=range(wide), yticks=range(tall), xlabel="level of $x$")
        axes.set_xticks(np.arange(wide + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(tall + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#C8C8C8", linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.set_title(f"stratum {stratum}" if strata > 1 else "")
    row[0][0].set_ylabel("level of $y$")
    _arrow_of_the_record(figure, row[0], before - after)
    return figure


def _arrow_of_the_record(figure, row, lost):
    """From the cell that loses a record to the cell that gains one."""
    places = [np.argwhere(lost == change)[0] for change in (1, -1)]
    marks = ("o", "white", "the record before"), ("D", VERMILLION, "and after")
    for (x, y, stratum), (marker, fill, label) in zip(places, marks, strict=True):
        row[stratum].plot(
            x, y, marker, color=VERMILLION, markerfacecolor=fill, ms=9, mew=1.8, label=label
        )
    (x, y, stratum), (u, v, other) = places
    arrow = ConnectionPatch(
        (x, y),
        (u, v),
        "data",
        "data",
        axesA=row[stratum],
        axesB=row[other],
        arrowstyle="-|>",
        shrinkA=7,
        shrinkB=7,
        color=VERMILLION,
        linewidth=1.5,
        connectionstyle="arc3,rad=-0.12",
    )
    figure.add_artist(arrow)
    figure.legend(loc="outside lower center", ncols=2)


@styled
def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    *,
    xlabels: Sequence[str],
    ylabel: str,
    log: str = "xy",
    points: Sequence[str] = (),
) -> plt.Figure:
    """Plot named curves in panels side by side.

    Parameters
    ----------
    panels : mapping of str to mapping of str to (x, y)
        From a panel's title to its curves by name, at most four. The first panel has all names.
    xlabels : sequence of str
        One for each panel.
    ylabel : str
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    points : sequence of str
        Names of curves that are drawn as points without a line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    wide = 7.6 if len(panels) == 1 else 4.4 * len(panels)
    figure, row = plt.subplots(
        1, len(panels), figsize=(wide, 3.6), squeeze=False, layout="constrained"
    )
    for axes, (title, lines), xlabel in zip(row[0], panels.items(), xlabels, strict=True):
        for (name, (x, y)), (color, line, marker) in zip(lines.items(), SERIES, strict=False):
            style = {"linestyle": "", "marker": marker} if name in points else {"linestyle": line}
            axes.plot(x, y, color=color, label=name, ms=5, markerfacecolor="white", **style)
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.set_xscale("log" if "x" in log else "linear")
        axes.set_yscale("log" if "y" in log else "linear")
    lines = row[0][0].get_lines()  # the first panel has all curves
    if len(panels) == 1:
        figure.legend(handles=lines, loc="outside right upper")
    else:
        figure.legend(handles=lines, loc="outside lower center", ncols=4)
    return figure


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
    figure, axes = plt.subplots(figsize=(7.6, 0.5 * len(rows) + 1.1))
    fills = ((BLUE, ""), ("#D9D9D9", "//"), ("white", "xx"))
    weights = np.array(list(rows.values()), float)
    ends, places = weights.cumsum(axis=1), np.arange(len(rows))[::-1]
    for stratum, (color, hatch) in enumerate(fills[: weights.shape[1]]):
        axes.barh(
            places,
            weights[:, stratum],
            left=ends[:, stratum] - weights[:, stratum],
            color=color,
            hatch=hatch,
            edgecolor=BLACK,
            height=0.55,
            linewidth=0.7,
            label=f"stratum {stratum}",
        )
    for place, end, note in zip(places, ends[:, -1], notes, strict=True):
        axes.annotate(note, (end, place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, list(rows))
    axes.set(xlabel="weight $w(n_i)$ in the statistic (no unit)", xlim=(0, 1.5 * ends.max()))
    axes.legend(loc="upper right")
    figure.set_layout_engine("tight")
    return figure


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
def f1_by_system(
    scores: pd.DataFrame,
    ceilings: Mapping[str, float],
    *,
    xlabel: str,
    limits: tuple[float, float] | None = None,
) -> plt.Figure:
    """Plot F1 against a budget, one small panel for each network, one line for each system.

    Parameters
    ----------
    scores : DataFrame
        Columns network, system, epsilon, total and F1, one row a run. Runs of one epsilon make one
        point, at their mean total; the bars are standard deviations.
    ceilings : mapping of str to float
        The non-private score of each network, drawn as a line.
    xlabel : str
        What a total is.
    limits : (float, float), optional
        Smallest and largest total shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(scores.network))
    figure, grid = plt.subplots(
        2, -(-len(names) // 2), figsize=(9, 5.2), sharex=True, sharey=True, layout="constrained"
    )
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    styles = (*SERIES[:3], (BLACK, "-", "^"), (PURPLE, (0, (1, 1)), "v"))
    styles += (("#56B4E9", (0, (5, 1)), "P"), ("#E69F00", (0, (3, 1, 1, 1)), "X"))
    for axes, name in zip(grid.flat, names, strict=False):
        here = scores[scores.network == name]
        for (system, runs), style in zip(here.groupby("system", sort=False), styles, strict=False):
            _line_with_bars(axes, system, runs.groupby("epsilon"), style)
        axes.axhline(ceilings[name], color=GREY, linestyle="-", linewidth=1, zorder=0)
        axes.set(title=name, xscale="log", xlim=limits, ylim=(0, 1.05))
    figure.supxlabel(xlabel)
    figure.supylabel("skeleton F1")
    lines, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels), handlelength=3)
    return figure


def _line_with_bars(axes, label, runs, style):
    color, line, marker = style
    settings = dict(color=color, linestyle=line, marker=marker, ms=3.5, capsize=2, linewidth=1.2)
    spread = runs.F1.std(ddof=0)
    axes.errorbar(runs.total.mean(), runs.F1.mean(), spread, label=label, **settings)


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


@styled
def intervals(
    panels: Mapping[str, Mapping[str, Mapping[str, tuple[float, float, float]]]],
    *,
    ylabel: str,
    lines: Mapping[str, Mapping[str, float]],
    columns: int = 2,
) -> plt.Figure:
    """Plot values with intervals over named categories, one small panel for each group.

    Parameters
    ----------
    panels : mapping of str to mapping of str to mapping of str to (value, low, high)
        From a panel's title to its series by name, at most four, to its categories.
    ylabel : str
    lines : mapping of str to mapping of str to float
        From a line's name, at most two, to its height in each panel.
    columns : int
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = -(-len(panels) // columns)
    size = (9, 2.6 * rows + 0.7)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, series) in zip(grid.flat, panels.items(), strict=False):
        for i, (name, values) in enumerate(series.items()):
            color, _, marker = SERIES[i]
            at = np.arange(len(values)) + 0.16 * (i - (len(series) - 1) / 2)
            middle, low, high = np.transpose(list(values.values()))
            bars = np.abs(np.array([low, high]) - middle)
            style = dict(color=color, marker=marker, ms=5, capsize=2, linestyle="")
            axes.errorbar(at, middle, bars, label=name, markerfacecolor="white", **style)
        for (name, heights), dashes in zip(lines.items(), ((0, (6, 2)), (0, (1, 1))), strict=False):
            style = dict(color=GREY, linewidth=1.2, zorder=0)
            axes.axhline(heights[title], label=name, linestyle=dashes, **style)
        axes.set_xticks(range(len(values)), [name.replace(" ", "\n", 1) for name in values])
        axes.set(title=title, xlim=(-0.5, len(values) - 0.5))
        axes.tick_params(axis="x", labelsize=8.5)
    figure.supylabel(ylabel)
    drawn = grid.flat[0].get_legend_handles_labels()
    figure.legend(*drawn, loc="outside upper center", ncols=6)
    return figure
