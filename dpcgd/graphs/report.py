"""A page about a release for whoever has to review it."""

import base64
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from itertools import groupby
from typing import Any, NamedTuple

from dpcgd.graphs.certainty import two_digits
from dpcgd.graphs.changed_places import changed_places
from dpcgd.graphs.promise import in_words, not_protected, rules_in_words, unit_of
from dpcgd.graphs.svg import to_svg
from dpcgd.privacy.events import Neighbours
from dpcgd.privacy.sealed_file import check_target, write_whole
from dpcgd.privacy.terms import versions

__all__ = ["Page", "write_report"]

CITATION = (
    "The dpcgd authors: dpcgd: differentially private causal graph discovery, an executable book. "
    "Version {version}."
)
"""As in CITATION.cff."""

STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left}"
    "pre{background:#f4f4f4;padding:.8em;overflow:auto}svg,img{max-width:100%;height:auto}"
)

MEANING = {
    "confirmed": "joined, and every test that was made found dependence",
    "removed": "apart: a test found independence",
    "likely": "the probability of an edge is at least 1/2",
    "unlikely": "the probability of an edge is below 1/2",
    "joined": "joined; this system makes no test and gives no probability",
    "apart": "not joined; this system makes no test and gives no probability",
    "not testable": "public facts allowed no test",
    "not reached": "the budget ended before a first test",
    "known": "decided by knowledge, without a test",
}

APART = ("removed", "unlikely", "apart")


class Page(str):
    """A page as text; a notebook shows it as a page."""

    def _repr_html_(self) -> str | None:
        return str(self) if self.startswith("<!doctype html>") else None

    def _repr_markdown_(self) -> str | None:
        return None if self.startswith("<!doctype html>") else str(self)


class Section(NamedTuple):
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Any]


class Items(list):
    """Sentences in a list."""


class Table(list):
    """Rows; the first one is the heads."""


class Code(str):
    """Text as it is."""


class Picture(str):
    """An SVG element."""


def write_report(
    path: str | os.PathLike | None, of: Any, status: Mapping[frozenset[str], str]
) -> Page:
    """Make the page of a release; see :meth:`dpcgd.graphs.release.Release.report`."""
    ending = ".html" if path is None else check_target(path).suffix.lower()
    if ending not in RENDERERS:
        raise ValueError(f"a report ends in {' or '.join(RENDERERS)}, not in {ending!r}")
    page = Page(RENDERERS[ending](_title(of), list(_sections(of, status))))
    if path is not None:
        write_whole(path, page)
    return page


def _title(of) -> str:
    return f"A causal graph by {of.terms.system or 'a private run'}: {of.terms.kind}"


def _sections(of, status) -> Iterator[Section]:
    terms, budget = of.terms, of.ledger.budget
    yield Section("The graph", [Picture(to_svg(of.graph)), *_edges(of.graph), _ARROWS])
    yield Section("What was promised", [_promise(of), *in_words(of.guarantee, budget, terms)])
    yield Section("What was not protected", [Items(not_protected(terms))])
    yield Section("What became of each pair", [_counts(status), *_pairs(of, status)])
    yield Section("What ran, and what it cost", [Code(str(of.ledger))])
    yield Section("What was public beforehand", [_public(terms)])
    yield Section("How to cite", [_citation()])


_ARROWS = (
    "An arrow is a direction that follows from what was released, knowledge and the rules of "
    "orientation; a plain line is an edge whose direction is not known. An edge that is there may "
    "be wrong, and so may one that is missing: the noise that protects people is noise in these "
    "decisions too."
)


_EITHER = (
    "Both cannot be, for a test found that it depends on them. Copies of one column do this, and "
    "noise; an edge may be missing."
)


def _edges(graph) -> Iterator[Any]:
    """The edges as text, or with their probabilities, the likeliest first."""
    if graph.certainty is None:
        yield Code(str(graph))
        return
    yield from (f"Note: {remark}." for remark in graph.remarks)
    edges, arrows = graph.expected_right_edges, graph.expected_right_arrows
    missed = sum(graph.certainty.edges.values()) - edges
    yield (
        f"Expected number of right edges: {edges:.1f} of {len(graph.skeleton)}; of right arrows: "
        f"{arrows:.1f} of {len(graph.arrows)}. Expected number of edges among the pairs that are "
        f"not joined: {missed:.1f}."
    )
    frame = graph.to_frame()
    if len(frame):
        yield _probabilities(frame.sort_values("probability", ascending=False, kind="stable"))


def _probabilities(frame) -> Table:
    marks = frame.directed.map({True: "->", False: "--"})
    edges = frame["from"] + " " + marks + " " + frame["to"]
    numbers = ("probability", "arrow_probability", "reverse_probability")
    columns = [edges, *(frame[name].map(two_digits) for name in numbers)]
    heads = ("edge", "probability of the edge", "of the arrow ->", "of the arrow <-")
    return Table([heads, *zip(*columns, strict=True)])


def _promise(of) -> Table:
    terms, budget = of.terms, of.ledger.budget
    return Table(
        [
            ("what", "value"),
            ("status", of.guarantee),
            ("kind", terms.kind),
            ("epsilon", f"{budget.epsilon:.6g}" if budget else "none promised"),
            ("delta", f"{budget.delta:.6g}" if budget else "none promised"),
            ("protected", unit_of(terms)),
            ("neighbours", Neighbours.REPLACE_ONE.of(terms.rows_per_person)),
            ("theorems of the book", ", ".join(terms.theorems) or "none"),
        ]
    )


def _counts(status) -> Table:
    times = Counter(status.values())
    rows = [(name, times[name], MEANING[name]) for name in MEANING if times[name]]
    return Table([("pairs that are", "times", "that is"), *rows])


def _pairs(of, status) -> Iterator[str]:
    """The pairs of each status but those that are apart, which are most."""
    shown = sorted((s, i) for i, s in enumerate(status.values()) if s not in APART)
    names = [" and ".join(n for n in of.graph.variables if n in pair) for pair in status]
    for name, group in groupby(shown, key=lambda one: one[0]):
        yield f"{name.capitalize()}: {', '.join(names[i] for _, i in group)}."
    for y, pairs in changed_places(of.answers.separating_sets if of.answers else {}).items():
        either = "; ".join(" and ".join(sorted(pair)) for pair in pairs)
        yield f"{y} is apart from two variables, from each given the other: {either}. {_EITHER}"


def _public(terms) -> Table:
    used = [(name, str(value)) for name, value in terms.settings.items()]
    return Table(
        [
            ("what", "value"),
            ("records", f"{terms.n:,}"),
            *rules_in_words(terms),
            ("sha256 of these levels or ranges", terms.digest),
            *used,
            ("noise", f"{terms.noise}: {terms.source}"),
            ("versions", ", ".join(f"{k} {v}" for k, v in terms.versions.items())),
        ]
    )


def _citation() -> str:
    return CITATION.format(version=versions().get("dpcgd", "unknown"))


def _html(title: str, sections: Sequence[Section]) -> str:
    parts = [f"<h2>{escape(s.title)}</h2>\n{''.join(map(_html_block, s.blocks))}" for s in sections]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>\n" + "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def _html_block(block) -> str:
    if isinstance(block, Picture):
        return f"<p>{block}</p>\n"
    if isinstance(block, Code):
        return f"<pre>{escape(block)}</pre>\n"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in block)}</ul>\n"
    if isinstance(block, Table):
        heads, *rows = block
        lines = [_row(heads, "th"), *(_row(row, "td") for row in rows)]
        return f"<table>{''.join(lines)}</table>\n"
    return f"<p>{escape(block)}</p>\n"


def _row(cells, tag) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def _markdown(title: str, sections: Sequence[Section]) -> str:
    parts = [f"## {s.title}\n\n" + "\n\n".join(map(_markdown_block, s.blocks)) for s in sections]
    return "\n\n".join([f"# {title}", *parts]) + "\n"


def _markdown_block(block) -> str:
    if isinstance(block, Picture):
        data = base64.b64encode(block.encode()).decode()
        title = unescape(block.partition("<title>")[2].partition("</title>")[0])
        return f"![{_escaped(title)}](data:image/svg+xml;base64,{data})"
    if isinstance(block, Code):
        return f"````text\n{block}\n````"
    if isinstance(block, Items):
        return "\n".join(f"- {_escaped(one)}" for one in block)
    if isinstance(block, Table):
        heads, *rows = ([_escaped(str(cell)) for cell in row] for row in block)
        lines = [heads, ["---"] * len(heads), *rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return _escaped(block)


def _escaped(text: str) -> str:
    """Names of variables must not become marks."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


RENDERERS = {".html": _html, ".md": _markdown}
