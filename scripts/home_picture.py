"""The picture on the home page: a true graph, released ones by a slider, and F1 against epsilon.

python scripts/home_picture.py            # draws book/home_picture.html from stored results
python scripts/home_picture.py measure    # releases the graphs anew, in a minute, and draws

The curves are the rows of chapter 17's table. The drawing needs no network. Without JavaScript, and
in print, it stands at epsilon = 1.
"""

import json
import math
import sys
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from chapters import ROOT
from dpcgd_book.figures.style import looks_of
from dpcgd_book.results.stored import origin, rows_on_file, stored_folder
from jinja2 import Template

import dpcgd
from dpcgd.graphs import drawing as layout
from dpcgd.graphs.cpdag import two_digits

STORED, PAGE = ROOT / "book" / "stored" / "home_picture.json", ROOT / "book" / "home_picture.html"
TABLE = "17_which_one_should_i_use"
NETWORK, N, DELTA, SHOWN = "asia", 100_000, 1e-6, 1.0
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SYSTEMS = {
    "dag_posterior": "private_graph",
    "table_pc": "table_pc",
    "graph_from_moments": "graph_from_moments",
    "MST+PC": "synthetic records, PC",
    "Gram-NOTEARS": "Gram NOTEARS",
    "EM-PC": "EM-PC",
    "CURATE-PC": "CURATE",
    "Priv-PC": "Priv-PC",
    "NoLeaks": "NoLeaks",
}
"""Names in the table of chapter 17, and on the picture. On so few variables `private_graph` is
`dag_posterior`."""
WITHOUT_DATA = ("complete", "empty")
EVERY = 10
"""One point of so many along an edge is drawn."""
WIDTH = 2.2
"""Of a curve."""


# --- measure ------------------------------------------------------------------------------------


def measured() -> dict:
    """The true graph, and one release of the same records at each epsilon."""
    data = dpcgd.load(NETWORK, n=N, rng=np.random.default_rng(0))
    return {
        **origin("python scripts/home_picture.py measure"),
        "settings": {"network": NETWORK, "n": N, "delta": DELTA},
        "variables": list(data.variables),
        "truth": sorted(data.truth.edges),
        "graphs": [released(data, epsilon) for epsilon in EPSILONS],
    }


def released(data, epsilon: float) -> dict:
    """F1 of the edges, and each edge: its ends, whether it has an arrow, how likely that is."""
    rng = np.random.default_rng(1)
    graph = dpcgd.private_graph(data, epsilon=epsilon, delta=DELTA, rng=rng).graph
    rows = graph.to_frame()
    likely = rows["arrow_probability"].where(rows["directed"], rows["probability"])
    columns = (rows["from"], rows["to"], rows["directed"].map(bool), likely.round(4))
    edges = [list(edge) for edge in zip(*columns, strict=True)]
    return {"F1": round(graph.skeleton_f1(data.truth), 4), "edges": edges}


# --- draw ---------------------------------------------------------------------------------------


def edge(places, start, end, kind, arrow=True, likely=None) -> tuple:
    """How an edge looks, its way, and what is written beside its middle."""
    way = layout.on_screen(layout.free_way(places, start, end))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*way[::EVERY], way[-1]])
    x, y = way[len(way) // 2]
    words = None if likely is None else two_digits(likely)
    return kind, arrow, points, f"{x:.1f}", f"{y + 3:.1f}", words


def drawing(edges, truth, places) -> list[tuple]:
    """Released edges: right, or wrong because the truth has another arrow or none; missed ones."""
    joined = {frozenset(arc) for arc in truth}
    there = {frozenset(ends) for *ends, _, _ in edges}
    lines = []
    for a, b, arrow, likely in edges:
        right = (a, b) in truth if arrow else frozenset((a, b)) in joined
        lines.append(edge(places, a, b, "right" if right else "wrong", arrow, likely))
    missed = [arc for arc in truth if frozenset(arc) not in there]
    return [edge(places, *arc, "missed", False) for arc in missed] + lines


def across(epsilon) -> float:
    low, high = math.log(EPSILONS[0]), math.log(EPSILONS[-1])
    return 62 + 400 * (math.log(epsilon) - low) / (high - low)


def down(f1) -> float:
    return 16 + 200 * (1 - f1)


def rows_of_table() -> pd.DataFrame:
    rows = rows_on_file(stored_folder() / TABLE, "table")
    return rows[(rows.network == NETWORK) & (rows.n == N)].dropna(subset="F1")


def best_without_privacy(rows) -> tuple[str, float]:
    """The system with the largest mean F1 on the records as they are."""
    known = rows[np.isinf(rows.epsilon) & ~rows.system.isin(WITHOUT_DATA)]
    means = known.groupby("system").F1.mean()
    return means.idxmax(), float(means.max())


def lines_of(rows) -> Iterator[tuple]:
    """Each system with its look, the place of its name at the line's end, and its points."""
    by_cell = rows.groupby(["system", "epsilon"]).F1.agg(["mean", "sem"])
    ends = {system: by_cell.loc[system].loc[EPSILONS[-1], "mean"] for system in SYSTEMS}
    falling = sorted(SYSTEMS, key=ends.get, reverse=True)
    labels = spread([down(ends[system]) for system in falling])
    looks = looks_of(SYSTEMS.values())
    for system, label in zip(falling, labels, strict=True):
        points = [(e, *by_cell.loc[system].loc[e]) for e in EPSILONS]
        yield SYSTEMS[system], *drawn_as(looks[SYSTEMS[system]]), label, points


def drawn_as(look) -> tuple[str, str]:
    """Colour and dashes of a curve of the book's figures, as a page has them."""
    line = look["linestyle"]
    dashes = "none" if line == "-" else " ".join(f"{WIDTH * part:g}" for part in line[1])
    return look["color"], dashes


def spread(heights, gap=16.5) -> list[float]:
    """Places for labels, top to bottom, that do not lie on each other."""
    kept = [*accumulate(heights, lambda above, height: max(height, above + gap))]
    return [height - max(0.0, kept[-1] - 222) for height in kept]


def drawn(stored: dict, rows: pd.DataFrame) -> str:
    """The fragment of the home page."""
    truth = [tuple(arc) for arc in stored["truth"]]
    places, low, high = layout.in_inches(layout.layered_positions(nx.DiGraph(truth)))
    corner, other = layout.on_screen([low, high])
    box = (corner[0], other[1], other[0] - corner[0], corner[1] - other[1])
    best, level = best_without_privacy(rows)
    template = Template(Path(__file__).with_suffix(".html").read_text(), keep_trailing_newline=True)
    return template.render(
        nodes=[(v, *layout.on_screen(places[v]), layout.width_of(v) * layout.DOTS) for v in places],
        node_height=layout.HEIGHT * layout.DOTS,
        box=" ".join(f"{part:.0f}" for part in box),
        truth=[edge(places, *arc, "truth") for arc in truth],
        states=[(g["F1"], drawing(g["edges"], truth, places)) for g in stored["graphs"]],
        lines=list(lines_of(rows)),
        width=WIDTH,
        level=down(level),
        best=best,
        epsilons=EPSILONS,
        first=EPSILONS.index(SHOWN),
        network=NETWORK,
        runs=rows[rows.system.isin(SYSTEMS)].run.nunique(),
        n=N,
        across=across,
        down=down,
    )


def main(what: str = "draw"):
    if what == "measure":
        STORED.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(drawn(json.loads(STORED.read_text()), rows_of_table()))
    print(PAGE)


if __name__ == "__main__":
    main(*sys.argv[1:])
