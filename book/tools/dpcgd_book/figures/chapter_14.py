"""Figure of chapter 14: shares by group."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcgd_book.figures.style import BLACK, BLUE, styled

__all__ = ["shares"]


@styled
def shares(share: pd.Series, error: Sequence[float], *, xlabel: str, ylabel: str) -> plt.Figure:
    """Plot a share for each group, with two standard errors up and down.

    Parameters
    ----------
    share : Series
        Indexed by the groups' names.
    error : sequence of float
        The standard errors.
    xlabel, ylabel : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    bars = 2 * np.asarray(error)
    axes.bar(range(len(share)), share, color="#9CC7E3", edgecolor=BLUE, width=0.6)
    axes.errorbar(range(len(share)), share, bars, fmt="none", ecolor=BLACK, capsize=4)
    axes.set_xticks(range(len(share)), list(share.index))
    axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, 1.05))
    return figure
