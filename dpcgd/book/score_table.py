"""The benchmark as a table on a page: plain without scripts, sorted and filtered with them."""

import html
import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

__all__ = ["cells_of", "score_table"]

KEYS = ["system", "network", "n", "epsilon"]
MEASURES = ["F1", "arrowhead F1", "SHD", "precision", "recall", "edges", "tests", "seconds"]
DIGITS = {"SHD": 1, "edges": 1, "tests": 0, "seconds": 2}


def cells_of(rows: pd.DataFrame, groups: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Means over runs of every cell of the table, and over the networks of each group.

    Parameters
    ----------
    rows : DataFrame
        Of runs, as ``make table`` keeps them. A run without a graph counts as the empty graph: a
        skeleton F1 of 0. In other columns it is left out.
    groups : mapping of str to sequence of str
        From a name to networks. A system that has no row of one of them has none of the group.

    Returns
    -------
    DataFrame
        A row for each system, network or group, n and epsilon: means, the standard error of F1
        (`error`), the number of runs (the least over a group), and how many networks it refused.
    """
    rows = rows.assign(refused=rows.F1.isna(), F1=rows.F1.fillna(0.0))
    of = rows.groupby(KEYS, sort=False)
    cells = of[MEASURES].mean().join(of.F1.agg(error="sem", runs="count")).join(of.refused.mean())
    cells = cells.reset_index()
    means = [_mean_over(cells, name, names) for name, names in groups.items()]
    return pd.concat([*means, cells], ignore_index=True)


def _mean_over(cells, name, networks):
    here = cells[cells.network.isin(networks)]
    of = here.groupby(["system", "n", "epsilon"], sort=False)
    found = of[MEASURES].mean()
    found["error"] = np.sqrt((here.error**2).groupby(_same(here)).sum(min_count=1)) / of.size()
    found["runs"], found["refused"] = of.runs.min(), of.refused.sum()
    found = found[of.size() == len(networks)]
    return found.reset_index().assign(network=name)


def _same(cells):
    return [cells.system, cells.n, cells.epsilon]


def score_table(
    cells: pd.DataFrame,
    *,
    shown: Mapping[str, object],
    families: Mapping[str, str],
    examples: Mapping[str, str],
    title: str,
) -> str:
    """A table of all systems, as HTML.

    Parameters
    ----------
    cells : DataFrame
        As from :func:`cells_of`, with systems without privacy at an infinite epsilon.
    shown : mapping
        The network, n and epsilon that the plain table has, and the page starts with.
    families : mapping of str to str
        From a system to what it does.
    examples : mapping of str to str
        From a group of networks to the one that a command repeats.
    title : str
        Of the table, for those who hear it.

    Returns
    -------
    str
        A table with one row a system; all other cells are in a block of JSON beside it, for
        ``_static/scores.js``.
    """
    listed = [_listed(row) for row in cells.to_dict("records")]
    here = cells[(cells.network == shown["network"]) & (cells.n == shown["n"])]
    here = here[(here.epsilon == shown["epsilon"]) | np.isinf(here.epsilon)]
    here = here.sort_values("F1", ascending=False)
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join(_row(row, families, examples) for row in here.to_dict("records"))
    data = {"cells": listed, "families": dict(families), "examples": dict(examples)}
    data["shown"] = dict(shown)
    safe = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    return (
        f'<div class="dp-scores"><table class="dataframe" aria-label="{html.escape(title)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<script type="application/json">{safe}</script></div>'
    )


COLUMNS: tuple[str, ...] = (
    "system",
    "what it does",
    "F1",
    "±",
    "arrowhead F1",
    "SHD",
    "precision",
    "recall",
)
COLUMNS += ("edges", "tests", "seconds", "runs", "a run of it: make table CASE=")
"""Of the page, in the order of _static/scores.js."""


def _listed(row) -> list:
    """A cell as the page's script reads it: keys, then numbers or null."""
    budget = "inf" if math.isinf(row["epsilon"]) else row["epsilon"]
    keys = [row["system"], row["network"], row["n"], budget]
    error = _number(row["error"], 3)
    means = [_number(row[name], DIGITS.get(name, 3)) for name in MEASURES]
    return [*keys, means[0], error, *means[1:], int(row["runs"])]


def _number(value, digits):
    return None if pd.isna(value) else round(float(value), digits)


def _row(row, families, examples) -> str:
    network = examples.get(row["network"], row["network"])
    case = f"{row['system']} {network} {row['epsilon']:g} {row['n']} 0"
    of = [f"{row[name]:.{DIGITS.get(name, 2)}f}" for name in MEASURES]
    error = f"{row['error']:.3f}"
    texts = [families[row["system"]], of[0], error, *of[1:], str(int(row["runs"])), case]
    texts = ["" if text == "nan" else html.escape(text) for text in texts]
    return (
        f"<tr><th>{html.escape(row['system'])}</th>"
        + "".join(f"<td>{text}</td>" for text in texts)
        + "</tr>"
    )
