"""Figure of chapter 06: what each repair of CURATE gains."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd

from dpcgd.book.style import BLACK, BLUE, GREY, VERMILLION, styled

__all__ = ["staircase"]


@styled
def staircase(
    steps: pd.DataFrame, *, beside: pd.DataFrame, rivals: Mapping[str, float]
) -> plt.Figure:
    """Plot scores as steps, each a bar from 0 with what it gains over the one before lit.

    Parameters
    ----------
    steps, beside : DataFrame
        F1 by variant (rows, named as they are shown) and network (columns). Those beside are drawn
        below, compared with nothing.
    rivals : mapping of str to float
        Mean F1 of other systems, drawn as lines.

    Returns
    -------
    matplotlib.figure.Figure
    """
    both = pd.concat([steps, beside])
    means, places = both.mean(axis=1), [float(i) for i in range(len(steps))]
    places += [len(steps) + 0.4 + i for i in range(len(beside))]
    before = [*means.iloc[: len(steps)].cummax().shift(fill_value=0.0), *means.iloc[len(steps) :]]
    figure, axes = plt.subplots(figsize=(8.2, 3.9), layout="constrained")
    for y, mean, old, (_, row) in zip(places, means, before, both.iterrows(), strict=True):
        axes.barh(y, min(mean, old), 0.62, color="#D9D9D9", zorder=1)
        if mean > old:
            axes.barh(y, mean - old, 0.62, left=old, color=BLUE, alpha=0.75, zorder=1)
        axes.plot(row, [y] * len(row), "o", color=BLACK, ms=3, markerfacecolor="white", zorder=3)
        axes.text(1.04, y, f"{mean:.2f}".lstrip("0"), va="center", fontsize=10, weight="bold")
    styles = zip(((VERMILLION, "--"), (GREY, ":")), rivals.items(), strict=False)
    for (color, line), (name, mean) in styles:
        axes.axvline(mean, color=color, linestyle=line, linewidth=1.3, label=name, zorder=2)
    axes.set(xlim=(0, 1.02), xlabel="skeleton F1 (bar: mean; dot: one network)")
    axes.set_yticks(places, list(both.index))
    axes.tick_params(axis="y", length=0, pad=8)
    axes.invert_yaxis()
    figure.legend(loc="outside upper right", ncols=2)
    return figure
