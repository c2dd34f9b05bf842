"""What a run releases."""

from dataclasses import dataclass

from dpcgd.graphs.cpdag import CPDAG
from dpcgd.privacy.ledger import Ledger

__all__ = ["Release"]


@dataclass(frozen=True)
class Release:
    """What a run lets out. With a proved guarantee, all but `seconds` came through a mechanism.

    Attributes
    ----------
    graph : CPDAG
    ledger : Ledger
        What ran and what it cost; ``ledger.spent`` is (epsilon, delta).
    guarantee : str
        "proved", "claimed, not proved", or "none".
    separating_sets : dict
        For each removed pair the set that separated it.
    tests : int
        Tests asked for.
    stopped_early : bool
        True if the budget ended before the search did.
    seconds : float or None
        Wall time. It depends on the data and no mechanism covers it, so a secure run has none.
    """

    graph: CPDAG
    ledger: Ledger
    guarantee: str
    separating_sets: dict[frozenset[str], tuple[str, ...]]
    tests: int
    stopped_early: bool
    seconds: float | None
