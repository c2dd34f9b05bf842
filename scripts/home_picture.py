"""The picture on the home page: released graphs and F1 against epsilon, with a slider.

python scripts/home_picture.py            # draws book/home_picture.html from the stored results
python scripts/home_picture.py measure    # measures them anew, in some minutes, and draws

The drawing needs no network. Without JavaScript, and in print, it stands at epsilon = 1.
"""

import json
import math
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from chapters import ROOT
from dpcgd_book.figures.style import LOOKS
from jinja2 import Template
from joblib import Parallel, delayed

import dpcgd

STORED, PAGE = ROOT / "book" / "stored" / "home_picture.json", ROOT / "book" / "home_picture.html"
NETWORK, N, DELTA, RUNS, SHOWN = "sachs", 100_000, 1e-6, 10, 1.0
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SYSTEMS = ("table_pc", "gram_notears", "priv_pc", "em_pc")
SYSTEMS += ("curate_pc", "noleaks", "svt_pc", "laplace_pc")
COLOURS = dict(zip(SYSTEMS, (colour for colour, *_ in LOOKS.values()), strict=False))
"""The colours of the book's figures, in their order; each line carries its name too."""


# --- measure ------------------------------------------------------------------------------------


def measured() -> dict:
    """Mean F1 of every system, its spread, and the graphs of one run of the table system."""
    cases = [(s, e, k) for s in SYSTEMS for e in EPSILONS for k in range(RUNS)]
    runs = dict(zip(cases, Parallel(-1)(delayed(run)(*case) for case in cases), strict=True))
    data = dpcgd.load(NETWORK, n=N, rng=np.random.default_rng(0))
    versions = {name: version(name) for name in ("dpcgd", "numpy", "scipy")}
    shape = len(SYSTEMS), len(EPSILONS), RUNS
    f1 = np.reshape([score for score, _ in runs.values()], shape)
    mean, error = f1.mean(2).round(4), (f1.std(2, ddof=1) / math.sqrt(RUNS)).round(4)
    return {
        "made_by": "python scripts/home_picture.py measure",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions | {"python": platform.python_version()},
        "settings": {"network": NETWORK, "n": N, "delta": DELTA, "runs": RUNS},
        "variables": list(data.variables),
        "truth": sorted([a, b, True] for a, b in data.truth.edges),
        "without_privacy": dpcgd.pc(data).graph.skeleton_f1(data.truth),
        "f1": dict(zip(SYSTEMS, mean.tolist(), strict=True)),
        "error": dict(zip(SYSTEMS, error.tolist(), strict=True)),
        "graphs": [runs["table_pc", e, 0][1] for e in EPSILONS],
    }


def run(system: str, epsilon: float, number: int) -> tuple[float, list]:
    """The skeleton's F1 and the graph of a run on a sample of its own."""
    data = dpcgd.load(NETWORK, n=N, rng=np.random.default_rng([1, number]))
    noise = np.random.default_rng([2, number])
    release = getattr(dpcgd, system)(data, epsilon=epsilon, delta=DELTA, rng=noise)
    return release.graph.skeleton_f1(data.truth), pieces(release.graph)


def pieces(graph) -> list[list]:
    """Edges as [from, to, directed]."""
    arrows = graph.arrows
    plain = (sorted(pair) for pair in graph.skeleton)
    lines = [[a, b, False] for a, b in plain if not {(a, b), (b, a)} & arrows]
    return sorted([[a, b, True] for a, b in arrows] + lines)


# --- draw ---------------------------------------------------------------------------------------


def places(names) -> dict[str, tuple[float, float]]:
    """On a circle, so that no edge passes behind a third variable."""
    turn = 2 * math.pi / len(names)
    at = ((math.sin(i * turn), -math.cos(i * turn)) for i in range(len(names)))
    return {v: (170 + 120 * x, 155 + 118 * y) for v, (x, y) in zip(names, at, strict=True)}


def edge(a, b, directed, kind, at) -> tuple:
    """How the edge looks, and its two ends: beside the names."""
    (x0, y0), (x1, y1) = at[a], at[b]
    length = math.hypot(x1 - x0, y1 - y0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    return kind, directed, x0 + 24 * dx, y0 + 15 * dy, x1 - 26 * dx, y1 - 17 * dy


def drawing(edges, truth, at) -> list[tuple]:
    """Released edges, solid where they are true and red where not; missed ones dotted."""
    released, true = ({frozenset((a, b)) for a, b, _ in graph} for graph in (edges, truth))
    kinds = [(*e, "right" if frozenset(e[:2]) in true else "wrong") for e in edges]
    missed = [(a, b, False, "missed") for a, b, _ in truth if frozenset((a, b)) not in released]
    return [edge(*e, at) for e in kinds + missed]


def across(epsilon) -> float:
    low, high = math.log(EPSILONS[0]), math.log(EPSILONS[-1])
    return 46 + 470 * (math.log(epsilon) - low) / (high - low)


def down(f1) -> float:
    return 16 + 200 * (1 - f1)


def lines_of(stored) -> Iterator[tuple]:
    """Each system with its colour, the place of its name at the line's end, and its points."""
    last = sorted(SYSTEMS, key=lambda s: -stored["f1"][s][-1])
    labels = spread([down(stored["f1"][s][-1]) for s in last])
    for system, label in zip(last, labels, strict=True):
        points = zip(EPSILONS, stored["f1"][system], stored["error"][system], strict=True)
        yield system, COLOURS[system], label, [*points]


def spread(heights, gap=15.0) -> list[float]:
    """Places for labels, top to bottom, that do not lie on each other."""
    kept: list[float] = []
    for height in heights:
        kept.append(max(height, kept[-1] + gap if kept else 0))
    over = max(0.0, kept[-1] - 222)
    return [height - over for height in kept]


def drawn(stored: dict) -> str:
    """The fragment of the home page."""
    at, truth, f1 = places(stored["variables"]), stored["truth"], stored["f1"]["table_pc"]
    edges = [drawing(graph, truth, at) for graph in stored["graphs"]]
    template = Template(Path(__file__).with_suffix(".html").read_text(), keep_trailing_newline=True)
    return template.render(
        places=at,
        truth=[edge(*e, "truth", at) for e in truth],
        states=list(zip(f1, edges, strict=True)),
        lines=list(lines_of(stored)),
        level=down(stored["without_privacy"]),
        epsilons=EPSILONS,
        first=EPSILONS.index(SHOWN),
        network=NETWORK,
        runs=RUNS,
        n=N,
        across=across,
        down=down,
    )


def main(what: str = "draw"):
    if what == "measure":
        STORED.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(drawn(json.loads(STORED.read_text())))
    print(PAGE)


if __name__ == "__main__":
    main(*sys.argv[1:])
