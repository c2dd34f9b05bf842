"""Figures of chapter 18: what a plan says of each pair."""

import matplotlib.pyplot as plt

from dpcgd.tables.plan import Plan
from dpcgd_book.figures.style import styled

__all__ = ["plan"]


@styled
def plan(planned: Plan) -> plt.Figure:
    """Draw a plan: the smallest correlation that is found, for each pair of variables.

    Parameters
    ----------
    planned : Plan

    Returns
    -------
    matplotlib.figure.Figure
    """
    side = 2.6 + 0.32 * min(12, len(planned.levels))
    figure, axes = plt.subplots(figsize=(side + 0.9, side), layout="constrained")
    planned.plot(axes)
    return figure
