"""A Sphinx extension: chapters have the numbers of their files, wherever the contents list them."""

import re
from pathlib import PurePosixPath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector

__all__ = ["chapter_number", "setup"]


def chapter_number(page: str) -> int | None:
    """The number that a page's file name begins with; None for a page that is no chapter.

    Parameters
    ----------
    page : str
        Its name in the book, without ending.

    Returns
    -------
    int or None

    Examples
    --------
    >>> chapter_number("notebooks/06_curate"), chapter_number("book/glossary")
    (6, None)
    """
    match = re.match(r"(\d\d)_", PurePosixPath(page).name)
    return int(match[1]) if match else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx number chapters by their files, and other pages not at all.

    Sphinx numbers by position. Figures, theorems and exercises get their chapter's number, and
    that is put right just before.
    """
    by_position = TocTreeCollector.assign_figure_numbers

    def by_file(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
        for page in list(env.toc_secnumbers):
            _renumber(env, page)
        return by_position(self, env)

    TocTreeCollector.assign_figure_numbers = by_file  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _renumber(env: BuildEnvironment, page: str) -> None:
    """Give a page's headings its own number in front, or take theirs away."""
    chapter, numbers = chapter_number(page), env.toc_secnumbers.pop(page)
    for heading in [*env.tocs[page].findall(nodes.reference), env.titles[page]]:
        number = heading.attributes.pop("secnumber", None)
        if number and chapter is not None:
            heading["secnumber"] = [chapter, *number[1:]]
    if chapter is not None:
        own = {anchor: old and (chapter, *old[1:]) for anchor, old in numbers.items()}
        env.toc_secnumbers[page] = own
