"""Texts made from the templates of this room."""

from functools import cache
from typing import Any

__all__ = ["render"]


def render(template: str, **values: Any) -> str:
    """Fill a template; every value is escaped for HTML and SVG.

    Parameters
    ----------
    template : str
        A file in ``dpcgd/graphs/templates``.
    **values
        What the template names.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Any:
    """Jinja's environment; jinja2 is loaded when something is rendered first."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("dpcgd.graphs")
    return Environment(loader=loader, undefined=StrictUndefined, autoescape=True, trim_blocks=True)
