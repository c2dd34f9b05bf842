"""A guarantee in words: what it means, and what it does not cover."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpcgd.privacy.budget import Budget
from dpcgd.privacy.doubles import growth
from dpcgd.privacy.events import Neighbours
from dpcgd.privacy.terms import Terms

__all__ = ["guessing", "in_words", "not_protected", "rules_in_words", "unit_of"]


def unit_of(terms: Terms) -> str:
    """Who is protected."""
    if terms.rows_per_person == 1:
        return "one record"
    return f"one person, of up to {terms.rows_per_person} records"


def guessing(budget: Budget) -> float:
    """How often an attacker is right who has to tell two equally likely records apart, at most.

    Notes
    -----
    At most 1 - (1 - delta) / (1 + e^epsilon): chapter 02, the corollary on an attacker's advantage.

    Examples
    --------
    >>> round(guessing(Budget(1.0, 1e-6)), 3)
    0.731
    """
    return 1 - (1 - budget.delta) / (2 + growth(budget.epsilon))


def in_words(guarantee: str, budget: Budget | None, terms: Terms) -> list[str]:
    """What a run promises, as sentences for whoever is in the data.

    Parameters
    ----------
    guarantee : str
        Of the release.
    budget : Budget or None
    terms : Terms
    """
    if guarantee == "none" or budget is None:
        return ["Nothing is proved about what this run tells about the people in its data."]
    changed = Neighbours.REPLACE_ONE.of(terms.rows_per_person)
    whose = "record" if terms.rows_per_person == 1 else "records"
    epsilon, delta, right = budget.epsilon, budget.delta, 100 * guessing(budget)
    sentences = [
        f"The run is ({epsilon:.6g}, {delta:.6g})-differentially private for {unit_of(terms)}: two "
        f"tables are neighbours if you get from one to the other when you {changed}.",
        f"Whatever one person's {whose} had been instead, no set of results would have been more "
        f"than {_factor(epsilon)} times as probable, plus {delta:.6g}.",
        "An attacker who knows all other records, and has to tell two equally likely possibilities "
        f"for one person's {whose} apart, guesses right at most {right:.4g}% of the time; without "
        "the release, 50%.",
    ]
    if guarantee != "proved":
        sentences.insert(0, "This guarantee is claimed and not proved; do not rely on it.")
    return sentences


def _factor(epsilon: float) -> str:
    factor = 1 + growth(epsilon)
    return f"{factor:.4g}" if math.isfinite(factor) else f"e^{epsilon:.4g}"


def rules_in_words(terms: Terms) -> list[tuple[str, str]]:
    """Each variable, and how its values became levels: what a second person needs to do it again.

    Examples
    --------
    >>> rules = {"age": {"edges": [0, 50, 80], "outside": "clip", "missing": ["unknown", "-9"]}}
    >>> rules_in_words(Terms("seeded", 9, {"age": ("0 to 50", "50 to 80", "unknown")}, rules=rules))
    [('age', "0 to 50, 50 to 80, unknown; a number outside is in the nearer ... are 'unknown'")]
    """
    return [
        (name, "; ".join([_values(values), *_rule(terms.rules.get(name, {}))]))
        for name, values in terms.domain.items()
    ]


def _values(values) -> str:
    """Levels, or the ends of a range."""
    return ", ".join(map(str, values))


def _rule(rule: Mapping[str, Any]) -> Iterator[str]:
    if rule.get("ordered") and "edges" not in rule:
        yield "in this order"
    if "outside" in rule:
        clipped = "is in the nearer end" if rule["outside"] == "clip" else "was refused"
        yield f"a number outside {clipped}"
    if "missing" in rule:
        yield _missing(rule["missing"])


def _missing(said: Any) -> str:
    if said == "refuse":
        return "a missing value was refused"
    level, *codes = [said] if isinstance(said, str) else said
    listed = f" and {', '.join(map(str, codes))}" if codes else ""
    return f"missing values{listed} are {level!r}"


def not_protected(terms: Terms) -> list[str]:
    """What the guarantee does not cover."""
    rows = terms.rows_per_person
    found = [
        f"That the run took place, on {terms.n:,} records; the names of the variables, and their "
        "levels or ranges. They are public.",
        "Neighbours replace records: how many there are is not protected. People with more than "
        f"{rows} record{'s' if rows > 1 else ''} in the table are promised less.",
        "How long the run took, and messages about input that was refused. They are for the data "
        "holder only.",
        "What is true of the population: it can be learned, and says something about everybody, in "
        "the data or not.",
        "Other releases about the same people. Their budgets have to be added to this one.",
        "Choices made after a look at the data, such as variables, levels or settings.",
    ]
    if terms.noise != "secure":
        found.append(
            "The noise came from a seed: whoever knows the seed can take it off, and its low bits "
            "may betray the values. This is an experiment, not a release."
        )
    return found
