"""A page about a release for whoever has to review it."""

import base64
import os
import re
from collections.abc import Mapping
from typing import Any

from dpcgd.graphs.certainty import two_digits
from dpcgd.graphs.changed_places import changed_places
from dpcgd.graphs.promise import in_words, not_protected, unit_of
from dpcgd.graphs.rendering import render
from dpcgd.graphs.svg import to_svg
from dpcgd.privacy.sealed_file import check_target, write_whole

__all__ = ["Page", "write_report"]

FORMS = {".html": "html.jinja", ".md": "markdown.jinja"}
"""A report is written in one of these forms, by the ending of its file."""


class Page(str):
    """A page as text; a notebook shows it as a page."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        kind = "html" if self.startswith("<!doctype html>") else "markdown"
        return {f"text/{kind}": str(self)}


def write_report(
    path: str | os.PathLike | None, release: Any, status: Mapping[frozenset[str], str]
) -> Page:
    """Make the page of a release; see :meth:`dpcgd.graphs.release.Release.report`."""
    ending = ".html" if path is None else check_target(path).suffix.lower()
    if ending not in FORMS:
        raise ValueError(f"a report ends in {' or '.join(FORMS)}, not in {ending!r}")
    terms, picture = release.terms, to_svg(release.graph)
    text = render(
        "report.jinja",
        form=FORMS[ending],
        release=release,
        status=status,
        picture=picture,
        picture_base64=base64.b64encode(picture.encode()).decode(),
        promise=in_words(release.guarantee, release.ledger.budget, terms),
        not_protected=not_protected(terms),
        unit=unit_of(terms),
        changed_places=changed_places(release.answers.separating_sets if release.answers else {}),
        two_digits=two_digits,
        escaped=_escaped_for_markdown,
    )
    if path is not None:
        write_whole(path, text)
    return Page(text)


def _escaped_for_markdown(text: Any) -> str:
    """Names of variables must not become marks."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(str(text).split()))
