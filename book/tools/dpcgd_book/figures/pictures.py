"""Figures of one test, one mechanism or one record: chapters 01 to 05, 08, 10, 11, 24, 25."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch

from dpcgd_book.figures import charts, style
from dpcgd_book.figures.style import BLACK, BLUE, GREEN, GREY, PURPLE, SERIES, VERMILLION

__all__ = ["broken_variants", "chances_of_choices", "change_against_claim", "channels", "margins"]
__all__ += ["noise_and_price", "parts_of_table", "reachable_doubles", "released_margins"]
__all__ += ["replaced_record", "reports", "rounds", "stratum_weights", "turning_test"]

Curves = Mapping[str, Sequence[float]]


def turning_test(
    statistics: Sequence[float], turning: tuple[float, float], *, critical: float, label: str
) -> Figure:
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
    figure, axes = style.subplots(size=(6.0, 3.6), layout="tight")
    ranks = np.arange(1, len(values) + 1)
    axes.plot(values, ranks, "o", color=BLUE, markerfacecolor="white", ms=4.5, mew=0.9)
    axes.set(xscale="log", xlabel="$|z|$ (no unit, log scale)", ylabel="tests of the run, sorted")
    rank = 1 + np.searchsorted(values, turning[0])
    axes.plot(turning[0], rank, "D", color=VERMILLION, ms=7)
    _shade_separated(axes, critical)
    for word, side in (("separated ", "right"), (" dependent", "left")):
        over = axes.get_xaxis_transform()
        axes.text(critical, 1.01, word, ha=side, va="bottom", fontsize=9.5, transform=over)
    arrow = dict(arrowstyle="-", color=VERMILLION, shrinkB=5, linewidth=0.9)
    axes.annotate("", (turning[0], rank), (0.3, 0.5), "data", "axes fraction", arrow)
    zoomed = axes.inset_axes((0.05, 0.58, 0.4, 0.24), facecolor="white", title=label)
    for value, word, marker, ms in zip(turning, ("before", "after"), "DX", (6, 7), strict=True):
        zoomed.plot(value, 0, marker, color=VERMILLION, ms=ms)
        zoomed.text(value, 0.35, word, ha="center", fontsize=9)
    ends = [(value, 0) for value in turning[::-1]]
    zoomed.annotate("", *ends, arrowprops=dict(arrowstyle="->", color=VERMILLION))
    reach = 1.6 * max(abs(value - critical) for value in turning)
    zoomed.set(xlim=(critical - reach, critical + reach), ylim=(-1, 1), yticks=[])
    _shade_separated(zoomed, critical)
    zoomed.set_xticks(turning, [f"{value:.3f}" for value in turning], fontsize=9)
    zoomed.spines[:].set(visible=True, color=GREY)
    return figure


def _shade_separated(axes, critical):
    low, high = axes.get_xlim()
    axes.axvspan(low, critical, color="#EDEDED", zorder=0, linewidth=0)
    axes.axvline(critical, color=BLACK, linestyle="--", linewidth=1)
    axes.set_xlim(low, high)


def noise_and_price(
    outputs: Sequence[float], densities: Curves, epsilon: float, tests: Sequence[int], spent: Curves
) -> Figure:
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
    figure = Figure((6.5, 4.4))
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2), height_ratios=(1.7, 1))
    top = figure.add_subplot(grid[0, 0])
    for (name, density), (color, line, _) in zip(densities.items(), SERIES, strict=False):
        top.plot(outputs, density, line, color=color, label=name)
    top.set(ylabel="density", title="One noisy answer", ylim=(0, 1.5 * top.dataLim.y1))
    top.legend(loc="upper center", fontsize=9)
    low = figure.add_subplot(grid[1, 0], sharex=top)
    first, second = map(np.asarray, densities.values())
    low.plot(outputs, np.log(first / second), color=BLACK)
    for end, name in ((epsilon, r"$\varepsilon$"), (-epsilon, r"$-\varepsilon$")):
        low.axhline(end, color=GREY, linewidth=1, linestyle=":")
        low.text(1.01, end, name, va="center", transform=low.get_yaxis_transform())
    low.set(xlabel="output", ylabel="log of ratio", ylim=(-1.5 * epsilon, 1.5 * epsilon))
    top.tick_params(labelbottom=False)
    _accountants(figure.add_subplot(grid[:, 1]), tests, spent)
    return figure


def _accountants(axes, tests, spent):
    """The epsilon that a number of tests costs, one line for each way of adding up."""
    colors, markers = (GREY, VERMILLION, PURPLE, BLUE, BLACK), ("s", "^", "D", "o", "")
    dashes: Any = ("--", "-.", ":", "-", (0, (6, 2)))
    for named, color, line, marker in zip(spent.items(), colors, dashes, markers, strict=False):
        name, epsilons = named
        axes.plot(tests, epsilons, c=color, ls=line, marker=marker, ms=4, markevery=5, label=name)
    axes.set(xscale="log", yscale="log", title="Many noisy answers")
    axes.set(xlabel="answers (log scale)", ylabel=r"$\varepsilon$ spent (log scale)")
    axes.legend(loc="upper left")


def broken_variants(broken: Mapping[str, tuple[float, float]], ways: Sequence[str]) -> Figure:
    """Draw the epsilon that each broken mechanism claims and the one that it has.

    Parameters
    ----------
    broken : mapping of str to (float, float)
        From a mechanism's name to its claim and what was shown.
    ways : sequence of str
        How each was shown.

    Returns
    -------
    matplotlib.figure.Figure
    """
    claims, shown = np.array(list(broken.values())).T
    rows = -np.arange(len(broken))
    figure, axes = style.subplots(size=(6.4, 2.5), layout="tight")
    axes.barh(rows, shown, height=0.55, color=VERMILLION)
    axes.vlines(claims, rows - 0.42, rows + 0.42, color=BLACK, linewidth=2, label="claimed")
    for row, value, way in zip(rows, shown, ways, strict=True):
        axes.text(value, float(row), f"  {way} {value:.2f}", va="center", fontsize=9.5)
    axes.set_yticks(rows, list(broken))
    axes.set(xlabel=r"$\varepsilon$", xlim=(0, 1.45 * shown.max()))
    axes.legend(loc="lower right")
    return figure


def reachable_doubles(hits: Mapping[str, Sequence[bool]], *, start: float) -> Figure:
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
    figure, axes = style.subplots(size=(6.4, 2.1))
    kinds = rows & ~shared, rows & shared, ~rows
    looks = (VERMILLION, "D", "from one only"), (BLUE, "o", "both"), (GREY, ".", "never")
    for where, (color, marker, label) in zip(kinds, looks, strict=True):
        row, column = np.nonzero(where)
        axes.plot(column, -row, marker, color=color, markersize=5.5, label=label)
    axes.set_yticks(-np.arange(len(rows)), list(hits))
    axes.set_ylim(-len(rows) + 0.5, 0.5)
    step = f"$2^{{{round(np.log2(np.spacing(start)))}}}$"
    axes.set_xlabel(f"double-precision number, counted from {start:g} in steps of {step}")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def replaced_record(before: np.ndarray, after: np.ndarray) -> Figure:
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
    figure = Figure((0.7 + (0.5 + 0.62 * wide) * strata, 1.0 + 0.55 * tall))
    _draw_tables(figure, before, after)
    return figure


def change_against_claim(
    before: np.ndarray, after: np.ndarray, title: str, ratios: Mapping[str, Mapping[str, float]]
) -> Figure:
    """Draw a replaced record, and below it how far each statistic moved by what was claimed.

    Parameters
    ----------
    before, after : integer arrays
        Axes x, y and one for the strata. They differ in one record.
    title : str
        What the replaced record did.
    ratios : mapping of str to mapping of str to float
        From each of two groups of claims to the ratio of each: the change that was seen over the
        sensitivity that is claimed. Those of the second group are written beside its points.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure((6.4, 6.6))
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.5, 4.1))
    top, bottom = parts
    _draw_tables(top, before, after)
    top.suptitle(title, fontsize=10.5)
    axes = bottom.subplots()
    names = [name for named in ratios.values() for name in named]
    looks = (BLUE, "o"), (VERMILLION, "D")
    for (group, named), (color, marker) in zip(ratios.items(), looks, strict=True):
        places = [-names.index(name) for name in named]
        axes.hlines(places, 1, list(named.values()), color=color, linewidth=1.2)
        axes.plot(list(named.values()), places, marker, color=color, ms=5, label=group)
    for place, ratio in zip(places, named.values(), strict=True):
        text = f"{ratio:,.1f}" if ratio < 10 else f"{ratio:,.0f}"
        away, side = ((8, 0), "left") if ratio >= 1 else ((-8, 0), "right")
        axes.annotate(text, (ratio, place), away, textcoords="offset points", ha=side, va="center")
    axes.axvline(1, color=BLACK, linewidth=0.9)
    axes.axhline(places[0] + 0.5, color=GREY, linewidth=0.6)
    axes.set_yticks(-np.arange(len(names)), names, fontsize=9.5)
    axes.set(xscale="log", xlim=(0.02, 4e4), xlabel="change / claimed sensitivity")
    axes.legend(loc="upper right")
    return figure


def _draw_tables(figure, before, after):
    """The records that two tables share, one grid for each stratum, and the replaced one.

    An arrow leads from the cell that loses a record to the cell that gains one.
    """
    shared = np.minimum(before, after)
    wide, tall, strata = shared.shape
    (row,) = figure.subplots(1, strata, squeeze=False)
    for stratum, axes in enumerate(row):
        cells = axes.pcolormesh(range(wide), range(tall), np.sign(shared[:, :, stratum]).T)
        cells.set(cmap="Greys", clim=(0, 5), edgecolor="#C8C8C8", linewidth=0.8)
        for x, y in np.argwhere(shared[:, :, stratum]):
            below = 0.31 * (before[x, y, stratum] != after[x, y, stratum])  # not on the mark
            count = f"{shared[x, y, stratum]:,}"
            axes.text(x, y - below, count, ha="center", va="center", fontsize=9.5)
        axes.set(xticks=range(wide), yticks=range(tall), xlabel="level of $x$", aspect="equal")
        axes.tick_params(length=0)
        axes.set_title(f"stratum {stratum}" if strata > 1 else "")
    row[0].set_ylabel("level of $y$")
    places = [np.argwhere(before - after == change)[0] for change in (1, -1)]
    marks = ("o", "white", "the record before"), ("D", VERMILLION, "and after")
    for (x, y, stratum), (marker, mfc, label) in zip(places, marks, strict=True):
        row[stratum].plot(x, y, marker, c=VERMILLION, mfc=mfc, ms=9, mew=1.8, label=label)
    (x, y, stratum), (u, v, other) = places
    ends: Any = dict(axesA=row[stratum], axesB=row[other], coordsA="data", coordsB="data")
    way: Any = dict(connectionstyle="arc3,rad=-0.12", arrowstyle="-|>", shrinkA=7, shrinkB=7)
    figure.add_artist(ConnectionPatch((x, y), (u, v), color=VERMILLION, lw=1.5, **ends, **way))
    figure.legend(loc="outside lower center", ncols=2)


def stratum_weights(rows: Curves, notes: Sequence[str]) -> Figure:
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
    figure, axes = style.subplots(size=(6.4, 0.55 * len(rows) + 1.2), layout="tight")
    fills = ((BLUE, ""), ("#D9D9D9", "//"), ("white", "xx"))
    ends, places = np.zeros(len(rows)), np.arange(len(rows))[::-1]
    for stratum, weights in enumerate(zip(*rows.values(), strict=True)):
        color, hatch = fills[stratum]
        bars = axes.barh(places, weights, 0.55, ends, color=color, hatch=hatch, ec=BLACK, lw=0.7)
        bars.set_label(f"stratum {stratum}")
        ends += weights
    for place, end, note in zip(places, ends, notes, strict=True):
        axes.annotate(note, (end, place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, list(rows))
    axes.set(xlabel="weight $w(n_i)$ in the statistic (no unit)", xlim=(0, 1.5 * ends.max()))
    axes.legend(loc="upper right")
    return figure


def margins(distances: Curves, noise: float) -> Figure:
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
    lines = {k: (sorted(v), np.linspace(0, 1, len(v)).tolist()) for k, v in distances.items()}
    labels = "distance from threshold / sensitivity", "fraction of pairs below"
    figure = charts.panel(lines, *labels, log="", span=(-noise, noise), crossings={"threshold": 0})
    figure.axes[0].set_xscale("symlog", linthresh=10)
    figure.axes[0].autoscale(axis="x")
    return figure


def rounds(noise: Curves, queries: Sequence[float]) -> Figure:
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
    figure, row = style.panels(len(noise), 6.5, 3.6, ylabel="value / sensitivity", sharey=True)
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
        answer = "none"
        if fired is not None:
            examined = queries[fired] + rest[fired + 1]
            (mark,) = axes.plot(fired + 1.25, examined, "D", color=GREEN, ms=7, label="examination")
            mark.set(markerfacecolor="white", markeredgewidth=1.6)
            answer = f"query {fired + 1}" if examined >= 0 else answer
        axes.set(title=f"{title}, result: {answer}", xlabel="query", xticks=places)
        axes.set_xlim(0.5, len(queries) + 0.5)
    style.legend(figure, ncols=4, handlelength=2)
    return figure


def released_margins(
    margins: Sequence[float], exact: float, *, sides: tuple[str, str], xlabel: str
) -> Figure:
    """Plot the differences of two scores that several private runs released, one a line.

    Parameters
    ----------
    margins : sequence of float
        One for each release; above 0 the direction is right.
    exact : float
        The difference without noise, drawn as a dashed line.
    sides : (str, str)
        What a difference below 0 and one above 0 say.
    xlabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = style.subplots(size=(6.5, 3.2))
    axes.axvline(0, color=BLACK, linewidth=0.9)
    axes.axvline(exact, color=GREEN, linestyle="--", label="without noise")
    values, rows = np.array(margins), np.arange(len(margins)) + 1
    looks = (BLUE, "o", "right", values > 0), (VERMILLION, "s", "wrong", values <= 0)
    for color, marker, label, here in looks:
        axes.hlines(rows[here], 0, values[here], color=color, linewidth=0.9)
        axes.plot(values[here], rows[here], marker, color=color, ms=7, label=label * any(here))
    reach = 1.15 * max(np.max(np.abs(values)), abs(exact))
    axes.set(xlim=(-reach, reach), ylim=(rows[-1] + 0.6, -0.9), xlabel=xlabel, ylabel="release")
    axes.set_yticks([1, *rows[4::5]])
    for place, ha, text in zip((-reach, reach), ("left", "right"), sides, strict=True):
        axes.text(place, -0.3, text, ha=ha, va="center")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def chances_of_choices(panels: Mapping[str, pd.DataFrame]) -> Figure:
    """Plot the probability of each candidate as bars, one panel for each choice.

    Parameters
    ----------
    panels : mapping of str to DataFrame
        From the name of the candidates to probabilities: a row for each candidate, a column for
        each budget.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = style.panels(len(panels), 6.5, 3.3, ylabel="probability", sharey=True)
    look: dict[str, Any] = dict(width=0.8, color=["white", BLUE], edgecolor=BLUE, linewidth=0.9)
    for axes, (xlabel, chances) in zip(row, panels.items(), strict=True):
        chances.plot.bar(ax=axes, rot=0, legend=False, **look)
        for bar in axes.containers[0]:
            bar.set_hatch("////")
        axes.set(xlabel=xlabel, ylim=(0, 1))
    style.legend(figure, "outside upper center", ncols=2, handlelength=2)
    return figure


def parts_of_table(parts: Mapping[str, np.ndarray]) -> Figure:
    """Draw a table of two variables and the parts that add up to it, side by side.

    Parameters
    ----------
    parts : mapping of str to array
        From a title to numbers of records, the table first. Negative numbers are red.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, row = style.subplots(1, len(parts), size=(6.5, 1.9))
    top = max(np.abs(part).max() for part in parts.values())
    for axes, (title, part) in zip(row, parts.items(), strict=True):
        axes.imshow(part, cmap="RdBu", vmin=-top, vmax=top)
        for (i, j), number in np.ndenumerate(part):
            color = "white" if abs(number) > 0.6 * top else BLACK
            axes.text(j, i, f"{number:.4g}", ha="center", va="center", fontsize=9, color=color)
        axes.set(title=title, xticks=[], yticks=[])
    return figure


def channels(named: Mapping[str, np.ndarray], numbers: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw channels as heat maps, each with its numbers underneath.

    Parameters
    ----------
    named : mapping of str to array
        From a mechanism's name to its channel: one row for each record, one column for each report.
    numbers : mapping of str to mapping of str to float
        From a mechanism's name to what is printed below it, by name.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, grid = style.panels(len(named), 5.6, 3.5, ylabel="record")
    top = max(channel.max() for channel in named.values())
    for axes, (name, channel) in zip(grid, named.items(), strict=True):
        image = axes.imshow(channel, cmap="Blues", vmin=0, vmax=top)
        said = [f"{value:.2f}  {what}" for what, value in numbers[name].items()]
        axes.set(title=name, xticks=[0, len(channel) - 1], yticks=[0, len(channel) - 1])
        axes.set_xlabel("\n".join(["report", *said]), linespacing=1.35)
        axes.spines[:].set_visible(True)
    figure.colorbar(image, ax=grid, label="probability", shrink=0.5, aspect=20)
    return figure


def reports(named: Mapping[str, np.ndarray], record: Sequence[int]) -> Figure:
    """Draw where the reports of one record of four variables go.

    Parameters
    ----------
    named : mapping of str to array of four dimensions
        From a mechanism's name to the probability of each report.
    record : sequence of int
        Of four; it is marked.

    Returns
    -------
    matplotlib.figure.Figure
    """
    tables = list(named.values())
    a, b, c, d = tables[0].shape
    ylabel = "variable 1,\nwithin it variable 3"
    figure, row = style.panels(len(named), 6.5, 2.3, foot=0.4, ylabel=ylabel)
    norm = LogNorm(np.min(tables), np.max(tables))
    for panel, (name, table) in zip(row, named.items(), strict=True):
        flat = table.transpose(0, 2, 1, 3).reshape(a * c, b * d)
        image = panel.imshow(flat, cmap="Blues", norm=norm, aspect="auto")
        panel.hlines(np.arange(c, a * c, c) - 0.5, -0.5, b * d - 0.5, color=GREY, linewidth=0.8)
        panel.vlines(np.arange(d, b * d, d) - 0.5, -0.5, a * c - 0.5, color=GREY, linewidth=0.8)
        x, y = record[1] * d + record[3], record[0] * c + record[2]
        panel.plot(x, y, marker="o", ms=6, markerfacecolor="none", color=BLACK)
        panel.set(title=name, xticks=[], yticks=[], xlabel="variable 2, within it variable 4")
        panel.spines[:].set_visible(True)
    figure.colorbar(image, ax=row, label="probability of the report")
    return figure
