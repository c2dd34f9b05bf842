"""Figure of chapter 08: margins that private runs released."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from dpcgd_book.figures.style import BLACK, BLUE, GREEN, VERMILLION, styled

__all__ = ["released_margins"]


@styled
def released_margins(
    margins: Sequence[float], exact: float, *, sides: tuple[str, str], xlabel: str
) -> plt.Figure:
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
    figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
    axes.axvline(0, color=BLACK, linewidth=0.9)
    axes.axvline(exact, color=GREEN, linestyle="--", label="without noise")
    looks = (BLUE, "o", "right", True), (VERMILLION, "s", "wrong", False)
    for color, marker, label, right in looks:
        here = [(m, i + 1) for i, m in enumerate(margins) if (m > 0) == right]
        for m, i in here:
            axes.plot([0, m], [i, i], color=color, linewidth=0.9)
        if here:
            margin, row = zip(*here, strict=True)
            axes.plot(margin, row, label=label, color=color, marker=marker, linestyle="", ms=7)
    reach = 1.15 * max(np.max(np.abs(margins)), abs(exact))
    count = len(margins)
    axes.set(xlim=(-reach, reach), ylim=(count + 0.6, -0.9), xlabel=xlabel, ylabel="release")
    axes.set_yticks([1, *range(5, count + 1, 5)])
    for place, ha, text in zip((-reach, reach), ("left", "right"), sides, strict=True):
        axes.text(place, -0.3, text, ha=ha, va="center")
    figure.legend(loc="outside lower center", ncols=3)
    return figure
