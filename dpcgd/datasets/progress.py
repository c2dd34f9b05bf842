"""A bar for whatever takes longer than two seconds, where a person looks on."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["progress"]

SECONDS = 2.0
"""What takes less says nothing."""

_T = TypeVar("_T")


def progress(
    steps: Iterable[_T], title: str, total: int | None = None, unit: str = " steps"
) -> Iterator[_T]:
    """Go through steps; a terminal on stderr shows how far it is, and anything else nothing.

    Parameters
    ----------
    steps : iterable
    title, unit : str
        What is done, and what is counted.
    total : int, optional
        Steps, where the iterable does not say it.

    Yields
    ------
    object
        Each step.

    Examples
    --------
    >>> list(progress(range(3), "counting"))
    [0, 1, 2]
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from steps
        return
    from tqdm import tqdm

    yield from tqdm(steps, title, total, delay=SECONDS, leave=False, unit=unit)
