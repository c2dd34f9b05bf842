"""The picture on the home page: released graphs and F1 against epsilon, with a slider.

python scripts/home_picture.py            # draws book/home_picture.html from the stored results
python scripts/home_picture.py measure    # measures them anew, in some minutes, and draws

The drawing needs no network. Without JavaScript, and in print, it stands at epsilon = 1.
"""

import json
import math
import platform
import sys
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template

import numpy as np
from chapters import ROOT
from dpcgd_book.figures.style import LOOKS
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


def edge(a, b, directed, kind, at) -> str:
    (x0, y0), (x1, y1) = at[a], at[b]
    length = math.hypot(x1 - x0, y1 - y0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    ends = x0 + 24 * dx, y0 + 15 * dy, x1 - 26 * dx, y1 - 17 * dy
    line = '<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"{}/>'
    return line.format(kind, *ends, f' marker-end="url(#dp-{kind})"' if directed else "")


def drawing(edges, truth, at) -> str:
    """Found edges, solid where they are true and red where not; missed ones dotted."""
    found = {frozenset((a, b)) for a, b, _ in edges}
    true = {frozenset((a, b)) for a, b, _ in truth}
    kinds = ((*e, "right" if frozenset(e[:2]) in true else "wrong") for e in edges)
    missed = ((a, b, False, "missed") for a, b, _ in truth if frozenset((a, b)) not in found)
    return "".join(edge(*e, at) for e in (*kinds, *missed))


def nodes(at) -> str:
    text = '<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>'
    return "".join(text.format(x, y + 4, escape(v)) for v, (x, y) in at.items())


def across(epsilon) -> float:
    low, high = math.log(EPSILONS[0]), math.log(EPSILONS[-1])
    return 46 + 470 * (math.log(epsilon) - low) / (high - low)


def down(f1) -> float:
    return 16 + 200 * (1 - f1)


def text_at(x, y, anchor, words) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def chart(stored) -> str:
    """F1 against epsilon, a line a system, its name at its end."""
    parts, level = [], down(stored["without_privacy"])
    for f1 in (0, 0.25, 0.5, 0.75, 1):
        y = f"{down(f1):.0f}"
        parts.append(f'<line class="grid" x1="46" x2="516" y1="{y}" y2="{y}"/>')
        parts.append(text_at(40, down(f1) + 4, "end", f"{f1:g}"))
    parts += [text_at(across(e), 234, "middle", f"{e:g}") for e in EPSILONS]
    parts.append(f'<line class="plain" x1="46" x2="516" y1="{level}" y2="{level}"/>')
    parts.append(text_at(281, 250, "middle", "epsilon, guaranteed (log scale)"))
    last = sorted(SYSTEMS, key=lambda s: -stored["f1"][s][-1])
    labels = spread([down(stored["f1"][s][-1]) for s in last])
    for system, label in zip(last, labels, strict=True):
        points = [*zip(EPSILONS, stored["f1"][system], stored["error"][system], strict=True)]
        path = " ".join(f"{across(e):.1f},{down(f1):.1f}" for e, f1, _ in points)
        parts.append(f'<polyline points="{path}" style="stroke:{COLOURS[system]}"/>')
        parts += [whisker(*point, COLOURS[system]) for point in points]
        style = f'style="fill:{COLOURS[system]}"'
        parts.append(f'<text x="524" y="{label + 4:.0f}" {style}>{system}</text>')
    return "".join(parts)


def whisker(epsilon, f1, error, colour) -> str:
    """Two standard errors up and down."""
    x, ends = across(epsilon), (down(min(1, f1 + 2 * error)), down(max(0, f1 - 2 * error)))
    line = '<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" style="stroke:{3}"/>'
    return line.format(x, *ends, colour)


def spread(heights, gap=15.0) -> list[float]:
    """Places for labels, top to bottom, that do not lie on each other."""
    kept: list[float] = []
    for height in heights:
        kept.append(max(height, kept[-1] + gap if kept else 0))
    over = max(0.0, kept[-1] - 222)
    return [height - over for height in kept]


def drawn(stored: dict) -> str:
    """The fragment of the home page."""
    at, truth, first = places(stored["variables"]), stored["truth"], EPSILONS.index(SHOWN)
    f1, marker = stored["f1"]["table_pc"], f"{across(SHOWN):.1f}"
    states = "".join(
        f'<g class="dp-state" data-f1="{score:.2f}"{"" if i == first else " hidden"}>'
        f"{drawing(edges, truth, at)}</g>"
        for i, (edges, score) in enumerate(zip(stored["graphs"], f1, strict=True))
    )
    template = Template(Path(__file__).with_suffix(".html").read_text())
    return template.substitute(
        arrows="".join(ARROW.format(kind=kind) for kind in ("right", "wrong", "truth")),
        truth="".join(edge(*e, "truth", at) for e in truth) + nodes(at),
        states=states + nodes(at),
        chart=chart(stored)
        + f'<line id="dp-marker" x1="{marker}" x2="{marker}" y1="16" y2="216"/>',
        last=len(EPSILONS) - 1,
        first=first,
        epsilons=json.dumps(EPSILONS),
        across=json.dumps([round(across(e), 1) for e in EPSILONS]),
        shown_f1=f"{f1[first]:.2f}",
        network=NETWORK,
        runs=RUNS,
        n=f"{N:,}",
    )


ARROW = (
    '<marker id="dp-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path class="{kind}" d="M0,0 L8,4 L0,8 z"/></marker>'
)


def main(what: str = "draw"):
    if what == "measure":
        STORED.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(drawn(json.loads(STORED.read_text())))
    print(PAGE)


if __name__ == "__main__":
    main(*sys.argv[1:])
