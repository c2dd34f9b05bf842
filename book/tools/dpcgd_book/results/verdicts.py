"""Verdicts on the claims of papers whose runs a script has put on file: chapters 21 and 22."""

import pandas as pd

__all__ = ["judged", "lacking"]


def lacking(rows: pd.DataFrame, systems: list[str], networks: list[str], enough: int) -> str:
    """In words, on which networks one of these systems has too few runs; empty if on none.

    Examples
    --------
    >>> rows = pd.DataFrame({"system": "PC", "network": "asia", "run": [0, 1]})
    >>> lacking(rows, ["PC"], ["asia", "survey"], 2)
    'fewer than 2 runs on file: survey; '
    """
    runs = rows.groupby(["network", "system"]).run.nunique().unstack()
    runs = runs.reindex(networks, columns=systems).fillna(0)
    left = ", ".join(runs.index[(runs < enough).any(axis=1)])
    return f"fewer than {enough} runs on file: {left}; " if left else ""


def judged(lacks: str, holds: bool, fails: bool) -> str:
    """The verdict on a claim of a paper; none where runs are :func:`lacking`.

    Examples
    --------
    >>> judged("", False, False), judged("fewer than 2 runs on file: survey; ", True, False)
    ('holds with changes', 'cannot be compared')
    """
    if lacks:
        return "cannot be compared"
    return "holds" if holds else "fails" if fails else "holds with changes"
