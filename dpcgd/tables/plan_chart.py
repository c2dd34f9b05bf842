"""Pictures of a plan and of a rehearsal, on axes that matplotlib gives."""

from typing import Any

import numpy as np

__all__ = ["draw_plan", "draw_rehearsal"]

MOST_NUMBERS = 12
"""Variables up to which each cell holds its number."""


def draw_plan(plan: Any, ax: Any) -> None:
    """Draw the smallest correlation that is found, for each pair of variables.

    Parameters
    ----------
    plan : Plan
    ax : matplotlib.axes.Axes
        Above the diagonal the test of a pair, below it the tests given one more variable. A cell
        without colour cannot be tested, or nothing that two groups can do would be found.
    """
    names, frame = list(plan.levels), plan.to_frame()
    at = {name: i for i, name in enumerate(names)}
    smallest = np.full((len(names), len(names)), np.nan)
    for row in frame.itertuples():
        smallest[at[row.x], at[row.y]] = row.correlation
        smallest[at[row.y], at[row.x]] = row.partial_correlation
    image = ax.imshow(np.ma.masked_invalid(smallest), cmap="viridis_r", vmin=0)
    if len(names) <= MOST_NUMBERS:
        middle = np.max(smallest, initial=0, where=np.isfinite(smallest)) / 2
        for (i, j), value in np.ndenumerate(smallest):
            if i != j:
                told = "none" if np.isnan(value) else f"{value:.2g}".replace("0.", ".", 1)
                color = "white" if value > middle else "black"
                ax.text(j, i, told, ha="center", va="center", color=color, fontsize=8)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.set_title("above the diagonal: a pair; below: given one more", fontsize=9)
    ax.figure.colorbar(image, ax=ax, label=f"correlation found with probability {plan.power:g}")


def draw_rehearsal(rehearsal: Any, ax: Any) -> None:
    """Draw the scores of each run as points, and their means as bars.

    Parameters
    ----------
    rehearsal : Rehearsal
    ax : matplotlib.axes.Axes
    """
    frame = rehearsal.to_frame()
    for place, name in enumerate(("precision", "recall", "f1")):
        ax.bar(place, frame[name].mean(), color="#DDDDDD", width=0.6)
        spread = np.linspace(-0.2, 0.2, len(frame)) if len(frame) > 1 else np.zeros(1)
        ax.plot(place + spread, frame[name], "o", color="#0072B2")
    ax.set_xticks(range(3), ("precision", "recall", "F1"))
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("of edges, without direction")
    ax.set_title(rehearsal.title.replace(": ", "\n", 1), fontsize=9)
