"""A bar for whatever takes longer than two seconds, where a person looks on."""

import sys
from collections.abc import Iterable

from tqdm import tqdm

__all__ = ["progress"]

SECONDS = 2.0
"""What takes less says nothing."""


def progress(steps: Iterable, title: str, total: int | None = None) -> Iterable:
    """Go through steps; a terminal on stderr shows how far it is, and anything else nothing.

    Parameters
    ----------
    steps : iterable
    title : str
        What is done.
    total : int, optional
        How many steps, where the iterable does not say it.

    Examples
    --------
    >>> list(progress(range(3), "counting"))
    [0, 1, 2]
    """
    silent = sys.stderr is None or not sys.stderr.isatty()
    return tqdm(steps, title, total, delay=SECONDS, leave=False, disable=silent)
