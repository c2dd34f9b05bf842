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

import numpy as np
from chapters import ROOT
from dpcgd_book.figures.style import LOOKS
from joblib import Parallel, delayed

import dpcgd

STORED, PAGE = ROOT / "book" / "stored" / "home_picture.json", ROOT / "book" / "home_picture.html"
NETWORK, N, DELTA, RUNS, SHOWN = "sachs", 100_000, 1e-6, 10, 1.0
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SYSTEMS = (
    "table_pc",
    "gram_notears",
    "priv_pc",
    "em_pc",
    "curate_pc",
    "noleaks",
    "svt_pc",
    "laplace_pc",
)
COLOURS = dict(zip(SYSTEMS, (colour for colour, *_ in LOOKS.values()), strict=False))
"""The colours of the book's figures, in their order; each line carries its name too."""


# --- measure ------------------------------------------------------------------------------------


def measured() -> dict:
    """Mean F1 of every system, its spread, and the graphs of one run of the table system."""
    rows = Parallel(-1)(
        delayed(one)(s, e, k) for s in SYSTEMS for e in EPSILONS for k in range(RUNS)
    )
    scores = {
        s: {e: [f for a, b, f, _ in rows if (a, b) == (s, e)] for e in EPSILONS} for s in SYSTEMS
    }
    graphs = {e: g for s, e, _, g in rows[::RUNS] if s == "table_pc"}
    data = dpcgd.load(NETWORK, n=N, rng=np.random.default_rng(0))
    return {
        "made_by": "python scripts/home_picture.py measure",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("dpcgd", "numpy", "scipy")}
        | {"python": platform.python_version()},
        "settings": {"network": NETWORK, "n": N, "delta": DELTA, "runs": RUNS},
        "variables": list(data.variables),
        "truth": sorted([a, b, True] for a, b in data.truth.edges),
        "without_privacy": dpcgd.pc(data).graph.skeleton_f1(data.truth),
        "f1": {s: [round(float(np.mean(of)), 4) for of in scores[s].values()] for s in SYSTEMS},
        "error": {s: [round(standard_error(of), 4) for of in scores[s].values()] for s in SYSTEMS},
        "graphs": [graphs[e] for e in EPSILONS],
    }


def standard_error(values) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def one(system: str, epsilon: float, run: int) -> tuple:
    """A run on a sample of its own: the system, its epsilon, the skeleton's F1, the graph."""
    data = dpcgd.load(NETWORK, n=N, rng=np.random.default_rng([1, run]))
    how = {"epsilon": epsilon, "delta": DELTA, "rng": np.random.default_rng([2, run])}
    release = getattr(dpcgd, system)(data, **how)
    return system, epsilon, release.graph.skeleton_f1(data.truth), pieces(release.graph)


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


def chart(found) -> str:
    """F1 against epsilon, a line a system, its name at its end."""
    ticks = (
        f'<line class="grid" x1="46" x2="516" y1="{down(f):.0f}" y2="{down(f):.0f}"/>'
        f'<text x="40" y="{down(f) + 4:.0f}" text-anchor="end">{f:g}</text>'
        for f in (0, 0.25, 0.5, 0.75, 1)
    )
    steps = (
        f'<text x="{across(e):.0f}" y="234" text-anchor="middle">{e:g}</text>' for e in EPSILONS
    )
    level = down(found["without_privacy"])
    parts = [*ticks, *steps, f'<line class="plain" x1="46" x2="516" y1="{level}" y2="{level}"/>']
    parts.append(
        '<text x="281" y="250" text-anchor="middle">epsilon, guaranteed (log scale)</text>'
    )
    last = sorted(SYSTEMS, key=lambda s: -found["f1"][s][-1])
    labels = spread([down(found["f1"][s][-1]) for s in last])
    for system, label in zip(last, labels, strict=True):
        colour, f1 = COLOURS[system], found["f1"][system]
        path = " ".join(f"{across(e):.1f},{down(f):.1f}" for e, f in zip(EPSILONS, f1, strict=True))
        parts.append(f'<polyline points="{path}" style="stroke:{colour}"/>')
        parts += [
            whisker(*of, colour) for of in zip(EPSILONS, f1, found["error"][system], strict=True)
        ]
        parts.append(f'<text x="524" y="{label + 4:.0f}" style="fill:{colour}">{system}</text>')
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


def drawn(found: dict) -> str:
    """The fragment of the home page."""
    at, truth, first = places(found["variables"]), found["truth"], EPSILONS.index(SHOWN)
    states = "".join(
        f'<g class="dp-state" data-f1="{f1:.2f}"{"" if i == first else " hidden"}>'
        f"{drawing(edges, truth, at)}</g>"
        for i, (edges, f1) in enumerate(zip(found["graphs"], found["f1"]["table_pc"], strict=True))
    )
    marker = across(SHOWN)
    return TEMPLATE.format(
        arrows="".join(ARROW.format(kind=kind) for kind in ("right", "wrong", "truth")),
        truth="".join(edge(*e, "truth", at) for e in truth) + nodes(at),
        states=states + nodes(at),
        chart=chart(found)
        + f'<line id="dp-marker" x1="{marker:.1f}" x2="{marker:.1f}" y1="16" y2="216"/>',
        last=len(EPSILONS) - 1,
        first=first,
        epsilons=json.dumps(EPSILONS),
        across=json.dumps([round(across(e), 1) for e in EPSILONS]),
        shown_f1=found["f1"]["table_pc"][first],
        **found["settings"],
    )


MARKER = '<line id="dp-marker" x1="{x:.1f}" x2="{x:.1f}" y1="16" y2="216"/>'
ARROW = (
    '<marker id="dp-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path class="{kind}" d="M0,0 L8,4 L0,8 z"/></marker>'
)
TEMPLATE = """<!-- drawn by scripts/home_picture.py; do not edit -->
<figure id="dp-home">
<style>
#dp-home {{ margin: 0 0 1rem; --right: #0072B2; --wrong: #D55E00; --quiet: #8c8c8c; }}
#dp-home svg {{ max-width: 100%; height: auto; font: 13px sans-serif; fill: currentColor; }}
#dp-home .pair {{ display: flex; flex-wrap: wrap; gap: 0 1rem; }}
#dp-home .pair div {{ flex: 1 1 300px; min-width: 0; }}
#dp-home .pair p {{ margin: 0; font-weight: 600; }}
#dp-home line {{ stroke-width: 1.8; }}
#dp-home line.right {{ stroke: var(--right); }} #dp-home path.right {{ fill: var(--right); }}
#dp-home line.wrong {{ stroke: var(--wrong); stroke-dasharray: 6 3; }}
#dp-home path.wrong {{ fill: var(--wrong); }}
#dp-home line.missed {{ stroke: var(--quiet); stroke-dasharray: 1 5; stroke-linecap: round; }}
#dp-home line.truth {{ stroke: currentColor; }} #dp-home path.truth {{ fill: currentColor; }}
#dp-home line.grid {{ stroke: var(--quiet); stroke-width: .4; }}
#dp-home line.plain {{ stroke: currentColor; stroke-width: 1; stroke-dasharray: 7 4; }}
#dp-home #dp-marker {{ stroke: var(--quiet); stroke-width: 6; opacity: .35; }}
#dp-home polyline {{ fill: none; stroke-width: 2.2; }}
#dp-home input {{ width: 100%; }}
#dp-home .dp-state[hidden] {{ display: none; }}
#dp-home .dp-slider {{ display: block; margin: .5rem 0; }}
@media print {{ #dp-home .dp-slider {{ display: none; }} }}
</style>
<div class="pair">
<div><p>the true graph</p>
<svg viewBox="0 0 340 310" role="img" aria-label="The true causal graph of eleven proteins.">
<defs>{arrows}</defs>{truth}</svg></div>
<div><p>released at epsilon = <output id="dp-epsilon">1</output>,
mean F1 <output id="dp-f1">{shown_f1:.2f}</output></p>
<svg viewBox="0 0 340 310" role="img" aria-label="The released graph at this epsilon.">
{states}</svg></div>
</div>
<label class="dp-slider">epsilon: drag, or use the arrow keys
<input id="dp-range" type="range" min="0" max="{last}" value="{first}" step="1"
 aria-describedby="dp-caption"></label>
<svg viewBox="0 0 620 256" role="img"
 aria-label="Skeleton F1 against the guaranteed epsilon for eight private systems.">{chart}</svg>
<figcaption id="dp-caption">Above: the network {network}, and the graph that
<code>table_pc</code> releases about {n:,} records at the guarantee (epsilon, 10<sup>-6</sup>).
Blue edges are right, orange dashed ones wrong, dotted ones missed. Below: every private system
of the book at the same guarantee, the mean of {runs} runs and two standard errors; the dashed
line is PC without privacy.</figcaption>
<script>
(function () {{
  var epsilons = {epsilons}, across = {across};
  var range = document.getElementById("dp-range"), marker = document.getElementById("dp-marker");
  var states = document.querySelectorAll("#dp-home .dp-state");
  function show() {{
    var k = Number(range.value);
    states.forEach(function (state, i) {{ state.toggleAttribute("hidden", i !== k); }});
    document.getElementById("dp-epsilon").textContent = epsilons[k];
    document.getElementById("dp-f1").textContent = states[k].dataset.f1;
    range.setAttribute("aria-valuetext", "epsilon " + epsilons[k]);
    marker.setAttribute("x1", across[k]); marker.setAttribute("x2", across[k]);
  }}
  range.addEventListener("input", show);
  show();
}})();
</script>
</figure>
"""


def main(what: str = "draw"):
    if what == "measure":
        STORED.write_text(json.dumps(measured(), indent=1) + "\n")
    PAGE.write_text(drawn(json.loads(STORED.read_text())))
    print(PAGE)


if __name__ == "__main__":
    main(*sys.argv[1:])
