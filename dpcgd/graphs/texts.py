"""Texts from the templates of this room, and the guarantee in words."""

from functools import cache
from typing import Any

from dpcgd.privacy.budget import Budget, growth
from dpcgd.privacy.events import Neighbours
from dpcgd.privacy.run import Terms

__all__ = ["guessing", "in_words", "not_protected", "render", "unit_of"]


def render(template: str, **values: Any) -> str:
    """Fill a template; every value is escaped for HTML and SVG.

    Parameters
    ----------
    template : str
        A file in ``dpcgd/graphs/templates``.
    **values
        Values for the names in the template.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Any:
    """Jinja's environment; jinja2 is loaded with the first text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("dpcgd.graphs")
    strict: Any = {"undefined": StrictUndefined, "autoescape": True, "trim_blocks": True}
    environment = Environment(loader=loader, **strict)
    functions = (growth, guessing, in_words, not_protected, unit_of)
    environment.globals |= {function.__name__: function for function in functions}
    return environment


def unit_of(terms: Terms) -> str:
    """The protected unit, in words."""
    rows = terms.rows_per_person
    return "one record" if rows == 1 else f"one person, of up to {rows} records"


def guessing(budget: Budget) -> float:
    """The largest probability that an attacker tells two equally likely records apart.

    Notes
    -----
    At most 1 - (1 - delta) / (1 + e^epsilon): chapter 01, the corollary on an attacker's advantage.

    Examples
    --------
    >>> round(guessing(Budget(1.0, 1e-6)), 3)
    0.731
    """
    return 1 - (1 - budget.delta) / (2 + growth(budget.epsilon))


def in_words(guarantee: str, budget: Budget | None, terms: Terms) -> list[str]:
    """The promise of a run, in sentences for the people in the data.

    Parameters
    ----------
    guarantee : str
        "proved", "claimed, not proved" or "none", as in a release.
    budget : Budget or None
    terms : Terms
    """
    changed = Neighbours.REPLACE_ONE.of(terms.rows_per_person)
    values = {"guarantee": guarantee, "budget": budget, "terms": terms, "changed": changed}
    return render("promise.jinja", **values).splitlines()


def not_protected(terms: Terms) -> list[str]:
    """The risks that the guarantee does not cover."""
    return render("not_protected.jinja", terms=terms).splitlines()
