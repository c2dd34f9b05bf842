"""A progress bar on a terminal for computations of more than two seconds."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

__all__ = ["progress"]

SECONDS = 2.0
"""Seconds before a bar is shown."""


def progress(steps: Iterable, title: str, total: int | None = None) -> Iterable:
    """Iterate over steps, with a progress bar if stderr is a terminal.

    Parameters
    ----------
    steps : iterable
    title : str
        Title of the bar.
    total : int, optional
        Number of steps, if the iterable has no length.

    Examples
    --------
    >>> list(progress(range(3), "counting"))
    [0, 1, 2]
    """
    silent = sys.stderr is None or not sys.stderr.isatty()
    return tqdm(steps, title, total, delay=SECONDS, leave=False, disable=silent)
