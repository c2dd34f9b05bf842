"""A page about a release for its reviewer."""

import base64
import os
import re
from collections.abc import Mapping
from typing import Any

from dpcgd.graphs.cpdag import two_digits
from dpcgd.graphs.drawing import to_svg
from dpcgd.graphs.receipt import check_replaceable
from dpcgd.graphs.texts import render
from dpcgd.privacy.sealed_file import check_target, write_whole

__all__ = ["Page", "changed_places", "write_report"]

FORMS = {".html": "html.jinja", ".md": "markdown.jinja"}
"""Forms of a report, by the ending of its file."""


class Page(str):
    """A page as text; a notebook shows it as a page."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        kind = "html" if self.startswith("<!doctype html>") else "markdown"
        return {f"text/{kind}": str(self)}


def write_report(path: str | os.PathLike | None, release: Any, effects: Any = ()) -> Page:
    """Make the page of a release; see :meth:`dpcgd.graphs.release.Release.report`.

    Effects may be a function that computes them; without memory for that, the page says so.
    """
    form = FORMS[".html"] if path is None else form_of(path)
    picture = to_svg(release.graph)
    try:
        shown = effects() if callable(effects) else effects
    except MemoryError:
        shown = "No effects, for lack of memory; write this report again where there is more."
    text = render(
        "report.jinja",
        form=form,
        release=release,
        effects=shown,
        picture=picture,
        picture_base64=base64.b64encode(picture.encode()).decode(),
        changed_places=changed_places(release.answers.separating_sets if release.answers else {}),
        two_digits=two_digits,
        escaped=_escaped_for_markdown,
    )
    if path is not None:
        check_replaceable(path, text)
        write_whole(path, text)
    return Page(text)


def form_of(path: str | os.PathLike) -> str:
    """The template of a report, by the ending of its file.

    Raises
    ------
    ValueError
        If a report cannot have this ending, or no file can be written there.
    """
    ending = check_target(path).suffix.lower()
    if ending not in FORMS:
        raise ValueError(f"a report ends in {' or '.join(FORMS)}, not in {ending!r}")
    return FORMS[ending]


def changed_places(
    separating_sets: Mapping[frozenset[str], tuple[str, ...]],
) -> dict[str, list[frozenset[str]]]:
    """Find pairs of variables that separate each other from a third variable.

    Suppose that tests find y independent of x given z (and others), and of z given x (and these
    others). Then y should depend on neither x nor z, but earlier tests found that y depends on
    both. This happens if x and z are copies, because given one of them the other is constant. With
    noise it also happens if dependence is weak.

    Parameters
    ----------
    separating_sets : mapping
        Map from each separated pair to its separating set.

    Returns
    -------
    dict
        Map from each y to its pairs of x and z, sorted.

    Privacy
    -------
    This is post-processing of a release.

    Examples
    --------
    >>> apart = {frozenset("xy"): ("z",), frozenset("yz"): ("x",)}
    >>> [(y, [sorted(pair) for pair in pairs]) for y, pairs in changed_places(apart).items()]
    [('y', [['x', 'z']])]
    """
    changed: dict[str, set[frozenset[str]]] = {}
    for pair, given in separating_sets.items():
        for z in given:
            for x in pair:
                (y,) = pair - {x}
                reverse = separating_sets.get(frozenset((y, z)), ())
                if x in reverse and {*reverse} - {x} == {*given} - {z}:
                    changed.setdefault(y, set()).add(frozenset((x, z)))
    return {y: sorted(changed[y], key=sorted) for y in sorted(changed)}


def _escaped_for_markdown(text: Any) -> str:
    """Escape the characters that Markdown would take for markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(str(text).split()))
