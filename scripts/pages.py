"""What a chapter's page gets when the book is built: its time to read, links to the glossary."""

import json
import re
from collections import Counter
from typing import Any

import nbformat
import reading
from chapters import ROOT, Home

GLOSSARY = ROOT / "book" / "glossary.md"
MEASURED = ROOT / "book" / "stored" / "open_questions.json"
OTHER_FORMS = {
    "F1": ("F1 score",),
    "SHD": ("structural Hamming distance",),
    "d-separation": ("d-separated", "d-separates"),
    "faithful": ("faithfulness",),
    "sensitivity": ("sensitivities",),
    "stratum": ("strata",),
}
TAKEN = re.compile(
    r"(`{3,}|:{3,}).*?^\1 *$"  # directives and blocks of code
    r"|\$\$.*?\$\$|\$[^$]+\$|`[^`]*`"  # formulas, code
    r"|\{[a-z:]+\}`[^`]*`|!?\[[^\]]*\](?:\([^)]*\))?|<[^>]*>"  # roles, links, HTML
    r"|^#.*?$|^\([^)]*\)=$|^\|.*?$|\*\*[^*]*\*\*|\*[^*]+\*",  # headings, labels, tables, stress
    re.DOTALL | re.MULTILINE,
)


LEFT_BEHIND = {
    # ids that occur once for each box
    r' id="(?:proof|(?:proof|exercise|solution)-content)"': "",
    # without a title a proof is no fold, and stops the script for all folds after it
    r'(<div class="proof dropdown admonition"[^>]*>)\s*<p>Proof\. ': (
        r'\1<p class="admonition-title">Proof</p><p>'
    ),
    r"<h1>\s*</h1>": "",
    # twice on every page, from the network, and nothing here uses it
    r"<script[^>]*>const THEBE_JS_URL.*?</script>|<script[^>]*sphinx-thebe[^>]*></script>": "",
}
"""What the theme and its extensions leave on pages, and what stands there instead."""


def mend(folder) -> None:
    """Take out of the built pages what the theme leaves there."""
    for page in folder.rglob("*.html"):
        text = page.read_text()
        if page.name == "search.html":
            text = text.replace('id="search-input"', 'id="search-words"', 1)
        for pattern, instead in LEFT_BEHIND.items():
            text = re.sub(pattern, instead, text)
        page.write_text(text)


VERDICTS = "<!-- verdicts -->"
KINDS = ("holds", "holds with changes", "fails", "cannot be compared", "illustration")


def with_verdicts(text: str, at: Home, paths) -> str:
    """A page with all tables and figures of the papers where its mark stands, as recorded."""
    there = {path: at.result(path).read_text() for path in paths if at.result(path).exists()}
    found = {path: json.loads(text).get("verdicts", []) for path, text in there.items()}
    found = {path: rows for path, rows in found.items() if rows and "item" in rows[0]}
    count = Counter(row["verdict"] for rows in found.values() for row in rows)
    total = ", ".join(f"{count[kind]} **{kind}**" for kind in KINDS if count[kind])
    parts = [f"{sum(count.values())} entries: {total}."] if count else []
    for path, rows in found.items():
        title = nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].strip("# ")
        lines = [judged(**row) for row in rows]
        table = as_table(["in the paper", "what it shows", "verdict", "why"], lines)
        parts += [f"## [{title}](../notebooks/{path.name})", table]
    return text.replace(VERDICTS, "\n\n".join(parts))


def judged(item, shows, verdict, why, section) -> list[str]:
    """The line of one table or figure."""
    return [f"[{item}](#{section})", shows, f"**{verdict}**", why]


NUMBER = re.compile(r"\[\[([\w.]+):([^\]]+)\]\]")


def with_numbers(text: str, numbers: dict) -> str:
    """A page where marks such as [[clipping.most.0:+.3f]] have become numbers on file."""

    def written(mark) -> str:
        value: Any = numbers
        for key in mark[1].split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        return format(value, mark[2])

    return NUMBER.sub(written, text)


STATUSES = ("derived", "implemented", "attacked", "re-run", "answered", "not done")


def ledgers() -> list[dict]:
    """What each paper says, item by item, and where the book has it."""
    return [json.loads(f.read_text()) for f in sorted((ROOT / "book" / "coverage").glob("*.json"))]


def covered() -> dict[str, dict[str, int]]:
    """From each paper to how many of its items have which status."""
    found = {paper["name"]: dict.fromkeys(STATUSES, 0) for paper in ledgers()}
    for name, row in ((paper["name"], row) for paper in ledgers() for row in paper["items"]):
        found[name][row["status"]] += row.get("count", 1)
    return found


def with_coverage(text: str) -> str:
    """A page and, below it, the ledgers."""
    parts = [text, as_table(["", *STATUSES], [[n, *of.values()] for n, of in covered().items()])]
    columns = ["in the paper", "look for", "status", "in the book", "said in", "note"]
    for paper in ledgers():
        lines = [placed(**row) for row in paper["items"]]
        parts += [f"## {paper['name']}", f"{{cite:t}}`{paper['cite']}`", as_table(columns, lines)]
    return "\n\n".join(parts)


def placed(item, anchor, status, place, source, note="", count=1) -> list[str]:
    """The line of one item."""
    chapter, name = place.split("#")
    where = f"[{chapter[:2]}: {name.replace('-', ' ')}](../notebooks/{chapter}.ipynb#{name})"
    return [item, f"`{anchor}`".replace("|", "\\|"), f"**{status}**", where, source, note]


def as_table(columns, rows) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def terms() -> dict[str, str]:
    """From each form of a term, longest first, to the term; an added s is a form, too."""
    block = re.search(r"```{glossary}\n(.*?)```", GLOSSARY.read_text(), re.DOTALL)[1]
    named = re.findall(r"^(\S.*)$", block, re.MULTILINE)
    forms = {f: term for term in named for f in (term, f"{term}s", *OTHER_FORMS.get(term, ()))}
    return dict(sorted(forms.items(), key=lambda item: -len(item[0])))


def finished(path, source=None) -> nbformat.NotebookNode:
    """An executed chapter as its page is to show it."""
    book = nbformat.read(source or path, as_version=4)
    if not book.cells or book.cells[0].cell_type != "markdown":
        return book
    title, _, rest = book.cells[0].source.partition("\n")
    found = reading.measured(path)
    minutes = f"About {found['minutes']} minutes; {found['minutes_with_proofs']} with the proofs."
    book.cells[0].source = f"{title}\n\n*{minutes}*\n{rest}"
    link_first_uses([cell for cell in book.cells if cell.cell_type == "markdown"])
    return book


def link_first_uses(cells) -> None:
    """In running prose only: not in headings, formulas, code, tables or other links."""
    known = terms()
    left, of_form = {*known.values()}, {form.lower(): term for form, term in known.items()}
    forms = "|".join(map(re.escape, known))
    either = re.compile(rf"{TAKEN.pattern}|\b(?P<form>(?i:{forms}))\b", TAKEN.flags)

    def linked(place) -> str:
        form = place["form"] or ""
        term = of_form.get(form.lower())
        if term not in left:
            return place[0]
        left.remove(term)
        return f"{{term}}`{form} <{term}>`"

    for cell in cells:
        cell.source = either.sub(linked, cell.source)
