"""Figure of chapter 01: a test that turns."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import BLACK, BLUE, GREY, VERMILLION, styled

__all__ = ["turning_test"]


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
    figure, axes = plt.subplots(figsize=(6.0, 3.6))
    ranks = np.arange(1, len(values) + 1)
    axes.plot(values, ranks, "o", color=BLUE, markerfacecolor="white", ms=4.5, mew=0.9)
    rank = 1 + np.searchsorted(values, turning[0])
    axes.plot(turning[0], rank, "D", color=VERMILLION, ms=7)
    axes.set_xscale("log")
    _shade_separated(axes, critical)
    for word, side in (("separated ", "right"), (" dependent", "left")):
        over = axes.get_xaxis_transform()
        axes.text(critical, 1.01, word, ha=side, va="bottom", fontsize=9.5, transform=over)
    axes.set(xlabel="$|z|$ (no unit, log scale)", ylabel="tests of the run, sorted")
    zoomed = axes.inset_axes((0.05, 0.58, 0.4, 0.24), facecolor="white", title=label)
    _zoom(zoomed, turning, critical)
    arrow = dict(arrowstyle="-", color=VERMILLION, shrinkB=5, linewidth=0.9)
    axes.annotate("", (turning[0], rank), (0.3, 0.5), "data", "axes fraction", arrow)
    figure.set_layout_engine("tight")
    return figure


def _shade_separated(axes, critical):
    low, high = axes.get_xlim()
    axes.axvspan(low, critical, color="#EDEDED", zorder=0, linewidth=0)
    axes.axvline(critical, color=BLACK, linestyle="--", linewidth=1)
    axes.set_xlim(low, high)


def _zoom(axes, turning, critical):
    before, after = turning
    reach = 1.6 * max(abs(before - critical), abs(after - critical))
    axes.annotate("", (after, 0), (before, 0), arrowprops=dict(arrowstyle="->", color=VERMILLION))
    axes.plot(before, 0, "D", color=VERMILLION, ms=6)
    axes.plot(after, 0, "X", color=VERMILLION, ms=7)
    for value, word in ((before, "before"), (after, "after")):
        axes.text(value, 0.35, word, ha="center", fontsize=9)
    axes.set(xlim=(critical - reach, critical + reach), ylim=(-1, 1), yticks=[])
    _shade_separated(axes, critical)
    axes.set_xticks([before, after], [f"{before:.3f}", f"{after:.3f}"], fontsize=9)
    for side in axes.spines.values():
        side.set(visible=True, color=GREY)
