"""Figures of chapter 17: who wins where, and F1 over epsilon."""

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.patches import Patch

from dpcgd_book.figures.style import BLUE, GREEN, ORANGE, styled

__all__ = ["NOBODY", "map_of_wins", "winners"]

NOBODY = "nobody"
"""Who wins where a private graph is no better than a guess."""

NONE, TIED = "#D4D4D4", 2.0
COLORS = (BLUE, ORANGE, GREEN)


def winners(rows: pd.DataFrame) -> pd.DataFrame:
    """Who is ahead in each cell of the map, and whether that beats a graph made without a look.

    Parameters
    ----------
    rows : DataFrame
        Columns d, n, epsilon, system, run, F1, SHD and, of the same networks, complete F1
        and empty SHD; a row without F1 is a refusal, and counts as the empty graph.

    Returns
    -------
    DataFrame
        A row for each d, n and epsilon: `best`, its mean F1; `lead`, over the complete graph's F1;
        `saved`, what it has less in SHD than the empty graph; `ahead`, the systems that are within
        two paired standard errors of the best. `best` is "nobody" unless its F1 is above that of
        the complete graph, and its SHD below that of the empty one, by two standard errors each.
    """
    rows = rows.assign(F1=rows.F1.fillna(0.0), SHD=rows.SHD.fillna(rows["empty SHD"]))
    found = []
    for key, of in rows.groupby(["d", "n", "epsilon"]):
        f1, shd = (of.pivot(index="run", columns="system", values=v) for v in _READ)
        base = of.groupby("run")[["complete F1", "empty SHD"]].first()
        best = f1.mean().idxmax()
        lead, saved = f1[best] - base["complete F1"], base["empty SHD"] - shd[best]
        sure = all(x.mean() > TIED * x.sem() for x in (lead, saved))
        behind = {s: f1[best] - f1[s] for s in f1}
        ahead = [s for s, x in behind.items() if x.mean() <= TIED * x.sem() or s == best]
        found.append([*key, best if sure else NOBODY, f1[best].mean(), lead.mean()])
        found[-1] += [saved.mean(), ahead if sure else []]
    columns = ["d", "n", "epsilon", "best", "F1", "lead", "saved", "ahead"]
    return pd.DataFrame(found, columns=columns)


_READ = ("F1", "SHD")


@styled
def map_of_wins(cells: pd.DataFrame, letters: Mapping[str, str]) -> plt.Figure:
    """Draw who wins over records and epsilon, one panel for each number of variables.

    Parameters
    ----------
    cells : DataFrame
        As from :func:`winners`.
    letters : mapping of str to str
        One letter for each system. A cell has those of all that are ahead, and the best one's F1.

    Returns
    -------
    matplotlib.figure.Figure
    """
    sizes, records = sorted(set(cells.d)), sorted(set(cells.n))
    budgets = sorted(set(cells.epsilon))
    colors = dict(zip(letters, COLORS, strict=False)) | {NOBODY: NONE}
    figure, grid = plt.subplots(
        1, len(sizes), figsize=(6.5, 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, d in zip(grid.flat, sizes, strict=True):
        for cell in cells[cells.d == d].itertuples():
            x, y = records.index(cell.n), budgets.index(cell.epsilon)
            color = colors[cell.best]
            axes.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=color, alpha=0.75, lw=0))
            told = "".join(letter for s, letter in letters.items() if s in cell.ahead)
            text = f"{told}\n{cell.F1:.2f}".lstrip("0") if told else "-"
            axes.text(x, y, text, ha="center", va="center", fontsize=7.5, linespacing=1.0)
        axes.set(title=f"{d} variables", xlim=(-0.5, len(records) - 0.5))
        axes.set_xticks(range(len(records)), [f"$10^{{{round(math.log10(n))}}}$" for n in records])
        axes.set_yticks(range(len(budgets)), [f"{e:g}" for e in budgets])
        axes.set_ylim(-0.5, len(budgets) - 0.5)
        axes.tick_params(length=0)
    grid[0, 0].set_ylabel("guaranteed epsilon")
    grid[0, len(sizes) // 2].set_xlabel("records")
    names = {s: f"{letter}: {s}" for s, letter in letters.items()} | {
        NOBODY: "-: nobody, so do not"
    }
    handles = [Patch(color=colors[s], alpha=0.75, label=text) for s, text in names.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure
