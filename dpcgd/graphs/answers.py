"""What a search was told, pair by pair."""

from typing import NamedTuple

__all__ = ["Answers"]


class Answers(NamedTuple):
    """What a search asked test by test, and what it was told.

    Attributes
    ----------
    separating_sets : dict
        For each removed pair the set that separated it.
    untested : frozenset
        Pairs that no test has separated and none has confirmed: knowledge, public facts or the end
        of the budget decided. Where they are kept they are edges; where they are dropped they are
        no edges, but nothing has shown them to be apart.
    tests : int
        Tests asked for.
    stopped_early : bool
        True if the budget ended before the search did.
    """

    separating_sets: dict[frozenset[str], tuple[str, ...]]
    untested: frozenset[frozenset[str]]
    tests: int
    stopped_early: bool
