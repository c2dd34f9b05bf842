"""The links between the theorems of the chapters and the code that rests on them.

A theorem's box may end in a line "In the package:" with links such as {py:func}`~dpcgd...laplace`,
and the docstring of that function then names the theorem, as :prf:ref:`thm-laplace`.
"""

import ast
import importlib
import inspect
import json
import pydoc
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "book" / "tools"

BOX = re.compile(r"^(`{3,})\{prf:(\w+)\}.*?^\1$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label: (\S+)$", re.MULTILINE)
LINK = re.compile(r"\{py:\w+\}`(?:[^`<]*<)?~?([\w.]+)>?`")
NAMED = re.compile(r":prf:ref:`([\w-]+)`")

THEOREMS = {"theorem", "lemma", "corollary", "proposition"}

FOLLOW_UPS = [
    "dpcgd.local.report.report",
    "dpcgd.reading.release.read",
    "dpcgd.reading.fit_network.fit_network",
    "dpcgd.reading.hill_climbing.climb",
]
"""Systems that return something else than a release."""

READ_BACK = {"dpcgd.reading.release.read_release", "dpcgd.reading.release.reread"}
"""They return a release that some system made."""


WITHOUT_CODE = {
    "cor-advantage": "it says what a guarantee is worth",
    "thm-curate-coin": "negative: why the package's test has no coin",
    "thm-curate-error": "about the published coin; what it shows is measured in the chapter",
    "thm-curate-flat": "negative: why the published bound cannot plan",
    "thm-curate-vacuous": "negative: what the published surrogate promises",
    "thm-grid": "for the chapter's own sampler; the package takes such noise from OpenDP",
    "thm-kernel-column": "a step in the proof of thm-hsic-test",
    "thm-neighbours": "the package has one relation and refuses events proved for the other",
    "thm-no-gain": "negative: why a sieve looks at all records",
    "thm-pc-not-private": "negative: why there are other systems than pc",
    "thm-regression-first": "for the chapter's comparison alone; the package has histogram_anm",
    "thm-stability": "the chapter shows that such a release almost never answers",
    "thm-tweak": "negative: why a sieve on z has no tweak",
}
"""Why nothing in the package rests on a theorem."""

NOT_PRIVATE = "not private"
REPRODUCTION = "claimed, not proved"
REPRODUCED = ("curate_pc", "em_pc", "noleaks", "priv_pc", "svt_pc")
WITHOUT_THEOREM = {
    **{f"dpcgd_book.systems.as_published.published_{name}": REPRODUCTION for name in REPRODUCED},
    "dpcgd.constraint.laplace_pc.pc": NOT_PRIVATE,
    "dpcgd.pairwise.anm.anm": NOT_PRIVATE,
    "dpcgd.score.notears.notears": NOT_PRIVATE,
    "dpcgd.local.geometric.UniformGeometric": "no claim: its level is read off its channel",
    "dpcgd.statistics.categorical_statistics.AdjustedChiSquared": "for pc; too large to be of use",
}
"""Why a system has no guarantee that a theorem could stand behind."""


class Box(NamedTuple):
    """A theorem, or another box with a label, and the code that it links to."""

    kind: str
    code: tuple[str, ...]


@cache
def boxes() -> dict[str, Box]:
    """Every box of the chapters that has a label."""
    paths = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    cells = (cell for path in paths for cell in json.loads(path.read_text())["cells"])
    prose = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return {label: box for text in prose for label, box in boxes_in(text).items()}


def boxes_in(text: str) -> dict[str, Box]:
    found = [(box, LABEL.search(box[0])) for box in BOX.finditer(text)]
    return {at[1]: Box(box[2], tuple(LINK.findall(box[0]))) for box, at in found if at}


@cache
def docstrings() -> dict[str, str]:
    """The docstring of every module, class, function, method and constant of the package."""
    parsed = ((ast.parse(path.read_text()), module_name(path)) for path in sources("*.py"))
    return {name: text for module in parsed for name, text in _documented(*module)}


def module_name(path: Path) -> str:
    root = TOOLS if path.is_relative_to(TOOLS) else ROOT
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str):
    yield name, ast.get_docstring(node) or ""
    for child, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from _documented(child, f"{name}.{child.name}")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            text = getattr(after.value, "value", "") if isinstance(after, ast.Expr) else ""
            targets = getattr(child, "targets", [getattr(child, "target", None)])
            constants = (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
            yield from ((f"{name}.{constant.id}", str(text)) for constant in constants)


@cache
def mentions() -> dict[str, set[str]]:
    """The labels in each docstring that has any."""
    found = {name: set(NAMED.findall(text)) for name, text in docstrings().items()}
    return {name: labels for name, labels in found.items() if labels}


def broken(boxes: Mapping[str, Box], mentions: Mapping[str, set[str]]) -> list[str]:
    """What is wrong with links that lead nowhere, or are there in one direction only."""
    there = {(label, name) for label, box in boxes.items() for name in box.code}
    back = {(label, name) for name, labels in mentions.items() for label in labels}
    problems = {
        "{0} links to {1}, which is not there": {pair for pair in there if at(pair[1]) is None},
        "{1} does not name {0}, which links to it": there - back,
        "{1} names {0}, which is not there": {pair for pair in back if pair[0] not in boxes},
        "{0} does not link to {1}, which names it": back - there,
    }
    return sorted(text.format(*pair) for text, pairs in problems.items() for pair in pairs)


at = pydoc.locate
"""The module of this name, or what lies in one; None if there is no such thing."""


def theorems_without_code() -> list[str]:
    """Theorems that link to nothing in the package, for no reason given above."""
    return [label for label in unlinked() if label not in WITHOUT_CODE]


def systems_without_theorem() -> list[str]:
    """Systems, mechanisms and sensitivities that name no theorem, for no reason given above."""
    return [name for name in nameless() if name not in WITHOUT_THEOREM]


def unlinked() -> list[str]:
    """Labels of all theorems that link to nothing in the package."""
    return [label for label, box in boxes().items() if box.kind in THEOREMS and not box.code]


def nameless() -> list[str]:
    """What a theorem could stand behind, and names none."""
    all_of_them = {*systems(), *mechanisms(), *sensitivities()}
    return sorted(name for name in all_of_them if not mentions().get(name, set()) & boxes().keys())


def systems() -> list[str]:
    """Public functions that make a release, and a few that do not or go on from one."""
    made = (name for name, it in public() if _releases(it) and name not in READ_BACK)
    return [*made, *FOLLOW_UPS]


def _releases(it: object) -> bool:
    returned = inspect.signature(it).return_annotation if inspect.isfunction(it) else None
    return getattr(returned, "__name__", str(returned)).endswith("Release")


def mechanisms() -> list[str]:
    """Those that an account pays for, and those that everybody runs alone."""
    paid = [name for name, _ in public("dpcgd.privacy.mechanisms.")]
    return paid + [name for name, it in public("dpcgd.local.") if hasattr(it, "from_p_max")]


def sensitivities() -> list[str]:
    """Statistics and moments that tell how far one record moves them."""
    rooms = [*public("dpcgd.statistics."), *public("dpcgd.moments.interactions.")]
    return [name for name, it in rooms if _has_sensitivity(name, it)]


def _has_sensitivity(name: str, it: object) -> bool:
    if "Privacy\n-------" in docstrings().get(name, "") or name.endswith("_sensitivity"):
        return True
    return hasattr(it, "sensitivity") and Protocol not in it.__bases__


def public(within: str = "dpcgd") -> Iterator[tuple[str, object]]:
    """What the public modules list in ``__all__``, with the whole name."""
    for module in (module for module in modules() if f"{module}.".startswith(within)):
        listed = getattr(importlib.import_module(module), "__all__", ())
        yield from ((f"{module}.{name}", at(f"{module}.{name}")) for name in listed)


def modules() -> list[str]:
    """Public modules in the rooms of the package, and of the book's tools."""
    return [module_name(path) for path in sources("*/[a-z]*.py")]


def sources(pattern: str) -> list[Path]:
    """Files of the package and of the book's tools."""
    folders = ROOT / "dpcgd", TOOLS / "dpcgd_book"
    return [path for folder in folders for path in sorted(folder.rglob(pattern))]
