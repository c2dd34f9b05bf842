"""The look of the book's figures.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, and no figure relies on
colour alone.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import matplotlib.pyplot as plt

__all__ = ["BLACK", "BLUE", "GREEN", "GREY", "PURPLE", "SERIES", "VERMILLION", "styled"]

BLACK, GREY, BLUE = "#000000", "#8C8C8C", "#0072B2"
"""Okabe and Ito's black and blue, and a grey."""


VERMILLION, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
"""Okabe and Ito's vermillion, bluish green and reddish purple."""


SERIES = tuple(zip((BLUE, VERMILLION, GREEN, PURPLE), ("-", "--", "-.", ":"), "osD^", strict=True))
"""Colour, line style and marker of the first, second, ... series of a figure."""


STYLE: dict[Any, Any] = {
    "font.size": 10,
    "figure.dpi": 140,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def styled(draw: Callable[..., plt.Figure]) -> Callable[..., plt.Figure]:
    """Draw in the book's style and close the figure, which a notebook would show at once."""

    @wraps(draw)
    def drawn(*args, **kwargs):
        with plt.rc_context(STYLE):
            figure = draw(*args, **kwargs)
        plt.close(figure)
        return figure

    return drawn
