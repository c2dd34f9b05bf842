"""Runs on file, once more: from the same seed the same code gives the same result."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from dpcgd_book.results.sweep import sweep

__all__ = ["as_written", "by_cell", "repeats", "telling"]

WITHIN = 1e-4
"""How far a repeated result may be from that on file, relatively.

A file has six digits, and on another processor an optimiser ends in others after the fifth.
"""


def repeats(
    task: Callable[..., dict], rows: pd.DataFrame, keys: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """These runs again, each from its seed, beside what is on file.

    Parameters
    ----------
    task : callable
        Called as ``task(**case)``; returns a dictionary of numbers, texts and None.
    rows : DataFrame
        Of a table on file.
    keys : sequence of str
        The columns that make a case; run and seed among them.
    columns : sequence of str
        The results that have to come out again.

    Returns
    -------
    DataFrame
        The case, and the first of its results that differs, or else the first: its name in
        `column`, its values in `on file` and `now`. `same` says that less than half of them differ:
        where a run has many results, a last digit somewhere flips one of them.

    Examples
    --------
    >>> rows = pd.DataFrame({"run": [0, 1], "seed": 0, "F1": [0.5, 0.25]})
    >>> again = repeats(lambda run, seed: {"F1": 0.5}, rows, ["run", "seed"], ["F1"])
    >>> again["same"].tolist()
    [True, False]
    """
    cases = [as_written(case) for case in rows[list(keys)].to_dict("records")]
    found = []
    for case, row in zip(sweep(task, cases), rows.to_dict("records"), strict=True):
        off = [name for name in columns if not _same(row[name], case.get(name))]
        name = [*off, *columns][0]
        told = {"column": name, "on file": row[name], "now": case.get(name)}
        told["same"] = 2 * len(off) < len(columns)
        found.append({key: case[key] for key in keys} | told)
    return pd.DataFrame(found, columns=[*keys, "column", "on file", "now", "same"])


def telling(rows: pd.DataFrame, cell: Sequence[str], compare: str) -> pd.Series:
    """Which runs would show a change of the noise.

    Noise shows where the runs of a cell differ: not where all are right and not where all find
    nothing. These are the cells that vary at least as much as half of those that vary at all.

    Parameters
    ----------
    rows : DataFrame
    cell : sequence of str
        The columns in which the runs of a cell are alike.
    compare : str
        A result, a number.

    Returns
    -------
    Series of bool
        One for each row; all of them if no cell varies.

    Examples
    --------
    >>> rows = pd.DataFrame({"epsilon": [1, 1, 9, 9], "F1": [0.2, 0.6, 1.0, 1.0]})
    >>> telling(rows, ["epsilon"], "F1").tolist()
    [True, True, False, False]
    """
    varies = by_cell(rows, cell)[compare].transform("var")
    varies = varies.where(rows[compare].notna(), 0.0).fillna(0.0)
    some = varies > 0
    return varies >= varies[some].median() if some.any() else rows[compare].notna()


def by_cell(rows: pd.DataFrame, cell: Sequence[str]):
    """Rows grouped by these columns; all of them in one group if there are none."""
    return rows.groupby(list(cell) if len(cell) else lambda _: 0, dropna=False)


def as_written(case: dict) -> dict:
    """A case of a table as a chapter writes it: Python's own numbers, whole ones as int.

    Examples
    --------
    >>> as_written({"epsilon": np.float64(1.0), "network": "asia"})
    {'epsilon': 1, 'network': 'asia'}
    """
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in case.items()}
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in plain.items()}


def _same(old, new) -> bool:
    if pd.isna(old) or new is None or pd.isna(new):
        return pd.isna(old) and (new is None or pd.isna(new))
    if isinstance(old, str) or isinstance(new, str):
        return str(old) == str(new)
    return math.isclose(old, new, rel_tol=WITHIN, abs_tol=1e-9)
