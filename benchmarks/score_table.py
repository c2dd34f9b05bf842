"""The benchmark as a table on a page: plain without scripts, sorted and filtered with them."""

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from dpcgd_book.results.graph_scores import SCORES

KEYS = ["system", "network", "n", "epsilon"]
MEASURES = ["F1", "arrowhead F1", "SHD", "precision", "recall", "edges", "tests", "seconds"]
"""In the order of the page."""

NUMBERS = ["F1", "error", "behind", "behind error", *MEASURES[1:], "runs"]
DIGITS = dict(zip(NUMBERS, (2, 3, 2, 3, 2, 1, 2, 2, 1, 0, 2, 0), strict=True))
"""Of a cell, in the order of the page, and how many digits are shown."""
EXACT = dict.fromkeys(NUMBERS, 3) | {"SHD": 1, "edges": 1, "tests": 0, "seconds": 2, "runs": 0}
"""How many the page sorts by."""


def cells_of(
    rows: pd.DataFrame, groups: Mapping[str, Sequence[str]], ranked: Sequence[str]
) -> pd.DataFrame:
    """Means over runs of every cell of the table, and over the networks of each group.

    Parameters
    ----------
    rows : DataFrame
        Of runs, as ``make table`` keeps them; see :func:`refusals_as_empty`.
    groups : mapping of str to sequence of str
        From a name to networks. A system that has no row of one of them has none of the group.
    ranked : sequence of str
        Systems of which one is the best of a network, n and epsilon.

    Returns
    -------
    DataFrame
        A row for each system, network or group, n and epsilon: means, the standard error of F1
        (`error`; none of a single run), the number of runs (the least over a group), how many
        networks it refused, and how far its F1 is behind that of the best, paired by records, with
        its standard error.
    """
    rows = refusals_as_empty(rows)
    by_cell = rows.groupby(KEYS, sort=False)
    cells = by_cell[[*MEASURES, "refused"]].mean().join(by_cell.F1.agg(error="sem", runs="count"))
    cells = cells.reset_index()
    means = [_mean_over(cells, name, names) for name, names in groups.items()]
    cells = pd.concat([*means, cells], ignore_index=True)
    every = dict(groups) | {name: [name] for name in rows.network.unique()}
    own = rows[rows.system.isin(ranked)]
    wide = own.pivot(index=["n", "epsilon", "network", "run"], columns="system", values="F1")
    behind = [
        [name, *key, *found]
        for name, names in every.items()
        for key, here in wide[wide.index.isin(names, "network")].groupby(["n", "epsilon"])
        for found in _behind(here, len(names))
    ]
    told = ["network", "n", "epsilon", "system", "behind", "behind error"]
    return cells.merge(pd.DataFrame(behind, columns=told), how="left", on=KEYS)


def refusals_as_empty(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs without a graph with the scores of the empty graph.

    Parameters
    ----------
    rows : DataFrame
        Of runs. The system named "empty" tells the scores; without its rows only F1 is known, 0.

    Returns
    -------
    DataFrame
        With one column more, `refused`.
    """
    refused = rows.F1.isna()
    empty = rows[rows.system == "empty"].drop_duplicates("network").set_index("network")
    of_empty = empty.reindex(rows.network)[[*SCORES]].set_axis(rows.index).fillna({"F1": 0.0})
    return rows.assign(refused=refused, **rows[[*SCORES]].mask(refused, of_empty))


def _behind(wide, networks) -> Iterator[tuple[str, float, float]]:
    """The best of these systems less each of them, on the same records."""
    means = wide.groupby("network").mean()
    whole = means.columns[means.count() == networks]
    if whole.empty:
        return
    best = means[whole].mean().idxmax()
    apart = wide[whole].rsub(wide[best], axis=0).groupby("network")
    mean = apart.mean()
    error = np.sqrt((apart.sem() ** 2).sum(skipna=False)) / networks
    for system in whole[mean.count() == networks]:
        yield system, float(mean[system].mean()), float(error[system])


def _mean_over(cells, name, networks):
    here = cells[cells.network.isin(networks)].assign(square=lambda own: own.error**2)
    groups = here.groupby(["system", "n", "epsilon"], sort=False)
    means = groups[MEASURES].mean()
    means["error"] = np.sqrt(groups.square.sum(min_count=len(networks))) / groups.size()
    means["runs"], means["refused"] = groups.runs.min(), groups.refused.sum()
    return means[groups.size() == len(networks)].reset_index().assign(network=name)


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
    here = cells[(cells.network == shown["network"]) & (cells.n == shown["n"])]
    here = here[(here.epsilon == shown["epsilon"]) | np.isinf(here.epsilon)]
    here = here.sort_values("F1", ascending=False)
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join(_row(row, families, examples) for row in here.to_dict("records"))
    listed = []
    for row in cells[KEYS + NUMBERS].replace(math.inf, "inf").itertuples(False, None):
        values = zip(row[len(KEYS) :], EXACT.values(), strict=True)
        numbers = (None if pd.isna(value) else round(value, digits) for value, digits in values)
        listed.append([*row[: len(KEYS)], *numbers])
    facts = {"shown": shown, "families": families, "examples": examples}
    data = {"cells": listed} | {name: dict(fact) for name, fact in facts.items()}
    safe = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    return (
        f'<div class="dp-scores"><table class="dataframe" aria-label="{html.escape(title)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f'<script type="application/json">{safe}</script></div>'
    )


COLUMNS = (
    *("system", "what it does", "F1", "±", "behind the best", "±", "arrowhead F1", "SHD"),
    *("precision", "recall", "edges", "tests", "seconds", "runs"),
    "a run of it: make table CASE=",
)
"""Of the page, in the order of _static/scores.js."""


def _row(row, families, examples) -> str:
    network = examples.get(row["network"], row["network"])
    case = f"{row['system']} {network} {row['epsilon']:g} {row['n']} 0"
    numbers = (f"{row[name]:.{digits}f}" for name, digits in DIGITS.items())
    texts = [families[row["system"]], *numbers, case]
    texts = ["" if text == "nan" else html.escape(text) for text in texts]
    cells = "".join(f"<td>{text}</td>" for text in texts)
    return f"<tr><th>{html.escape(row['system'])}</th>{cells}</tr>"
