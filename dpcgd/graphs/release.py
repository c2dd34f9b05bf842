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
        What ran and what it cost; ``ledger.budget`` is the promise.
    guarantee : str
        "proved", "claimed, not proved", or "none".
    separating_sets : dict
        For each removed pair the set that separated it.
    untested : frozenset
        Pairs that no test has separated and none has confirmed: knowledge, public facts or the end
        of the budget decided. Where they are kept they are edges; where they are dropped they are
        no edges, but nothing has shown them to be apart. Empty for systems without tests.
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
    untested: frozenset[frozenset[str]]
    tests: int
    stopped_early: bool
    seconds: float | None

    def __repr__(self):
        edges, arrows = len(self.graph.skeleton), len(self.graph.arrows)
        promise = self.ledger.budget or self.ledger.spent
        ended = ", stopped early" if self.stopped_early else ""
        kept, dropped = self.untested & self.graph.skeleton, self.untested - self.graph.skeleton
        never = f", {len(kept)} of them never tested" if kept else ""
        never += f" ({len(dropped)} pairs left out, never tested)" if dropped else ""
        return (
            f"{type(self).__name__}({self.guarantee}: epsilon = {promise.epsilon:.4g} at "
            f"delta = {promise.delta:g})\n"
            f"  {len(self.graph.variables)} variables, {edges} edges{never}, {arrows} directed\n"
            f"  {self.tests} tests{ended}"
        )
