"""A guarantee in words: what it means, and what it does not cover."""

import math

from dpcgd.privacy.budget import Budget, growth
from dpcgd.privacy.events import Neighbours
from dpcgd.privacy.run import Terms

__all__ = ["guessing", "in_words", "not_protected", "unit_of"]


def unit_of(terms: Terms) -> str:
    """Who is protected."""
    rows = terms.rows_per_person
    return "one record" if rows == 1 else f"one person, of up to {rows} records"


def guessing(budget: Budget) -> float:
    """The most often that an attacker can tell two equally likely records apart.

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
    """What a run promises, as sentences for the people in the data.

    Parameters
    ----------
    guarantee : str
        "proved", "claimed, not proved" or "none", as a release has it.
    budget : Budget or None
    terms : Terms
    """
    if guarantee == "none" or budget is None:
        return ["Nothing is proved about what this run reveals of the people in its data."]
    changed = Neighbours.REPLACE_ONE.of(terms.rows_per_person)
    factor = 1 + growth(budget.epsilon)
    times = f"{factor:.4g}" if math.isfinite(factor) else f"e^{budget.epsilon:.4g}"
    sentences = [
        f"The run is ({budget.epsilon:.6g}, {budget.delta:.6g})-differentially private for "
        f"{unit_of(terms)}. Two tables are neighbours if one becomes the other when you {changed}.",
        f"If one person's data had been different, no set of results would have been more than "
        f"{times} times as probable, plus {budget.delta:.6g}.",
        "Suppose that an attacker knows all other records, and has to tell apart two equally "
        f"likely possibilities for one person's data. The attacker guesses right at most "
        f"{100 * guessing(budget):.4g}% of the time; without the release, 50%.",
    ]
    doubt = "This guarantee is claimed and not proved; do not rely on it."
    return sentences if guarantee == "proved" else [doubt, *sentences]


def not_protected(terms: Terms) -> list[str]:
    """What the guarantee does not cover."""
    sentences = [
        f"That the run took place, on {terms.n:,} records; the names of the variables, and their "
        "levels or ranges. They are public.",
        "The number of records: neighbours replace records. A person with more than "
        f"{terms.rows_per_person} of them is protected less.",
        "How long the run took, and messages about input that was refused. They are for the data "
        "holder only.",
        "What is true of the population: it can be learned, and says something about everybody, in "
        "the data or not.",
        "Other releases about the same people. Their budgets have to be added to this one.",
        "Choices made after a look at the data, such as variables, levels or settings.",
    ]
    seeded = (
        "The noise came from a seed: whoever knows the seed can subtract it, and its low bits may "
        "betray the values. This is an experiment, not a release."
    )
    return sentences if terms.noise == "secure" else [*sentences, seeded]
