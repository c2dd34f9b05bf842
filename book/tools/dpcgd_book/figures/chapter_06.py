"""Figure of chapter 06: what each repair of CURATE gains."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, GREY, ORANGE, look_of, styled

__all__ = ["staircase"]


@styled
def staircase(
    steps: Mapping[str, pd.DataFrame],
    *,
    beside: Mapping[str, pd.DataFrame],
    rivals: Mapping[str, float],
) -> plt.Figure:
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
    means = [float(cell.mean().mean()) for cell in cells.values()]
    errors = [float(np.sqrt((c.sem() ** 2).sum()) / c.ngroups) for c in cells.values()]
    places = [float(i) for i in range(len(steps))]
    places += [len(steps) + 0.4 + i for i in range(len(beside))]
    before = [max([0.0, *means[:i]]) for i in range(len(steps))] + means[len(steps) :]
    figure, axes = plt.subplots(figsize=(6.8, 4.0), layout="constrained")
    rows = zip(places, means, errors, before, cells.values(), strict=True)
    for y, mean, error, old, cell in rows:
        axes.barh(y, min(mean, old), 0.62, color="#D9D9D9", zorder=1)
        if mean > old:
            axes.barh(y, mean - old, 0.62, left=old, color=ORANGE, zorder=1)
        dots = cell.mean()
        axes.plot(dots, [y] * len(dots), "o", color=GREY, ms=3.5, markerfacecolor="white", zorder=3)
        axes.errorbar(mean, y, xerr=2 * error, color=BLACK, capsize=3, linewidth=1.4, zorder=4)
        axes.text(1.03, y, f"{mean:.2f}".lstrip("0"), va="center", fontsize=10.5, weight="bold")
    for place, (name, mean) in enumerate(rivals.items()):
        color, line, _ = look_of(name, place)
        axes.axvline(mean, color=color, linestyle=line, linewidth=1.6, label=name, zorder=2)
    axes.set(xlim=(0, 1.02), xlabel="skeleton F1 (bar: mean; circle: one network)")
    axes.set_yticks(places, list(both))
    axes.tick_params(axis="y", length=0, pad=8)
    axes.invert_yaxis()
    figure.legend(loc="outside upper right", ncols=2, handlelength=3.5)
    return figure
