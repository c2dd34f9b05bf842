"""The papers' accounting: a reading afterwards, which is not a guarantee."""

from collections import Counter
from typing import Any, ClassVar

from dpcgd.privacy.budget import Budget, Spent, check_delta
from dpcgd.privacy.conversions import advanced_composition
from dpcgd.privacy.events import Event
from dpcgd.privacy.ledger import Ledger

__all__ = ["Odometer"]


class Odometer:
    """Never refuses; reads off afterwards what a run has cost, as the papers report it.

    The reading is not a guarantee: how much was spent depends on the data. A last above-threshold
    that has not fired is left out, as in the papers, although it ran too.

    Parameters
    ----------
    delta : float
        Split evenly over the kinds of mechanism.

    Raises
    ------
    ValueError
        If delta is not above 0 and below 1.
    """

    guarantee: ClassVar = "claimed, not proved"

    def __init__(self, delta: float):
        check_delta(delta)
        self.delta = delta
        self._events: list[Any] = []  # those with an epsilon

    @classmethod
    def for_budget(cls, budget: Budget) -> "Odometer":
        """One that reads off at the budget's delta; its epsilon is not enforced."""
        return cls(budget.delta)

    def keep(self, share: float) -> None:
        """Leave nothing unspent: there is no budget."""

    def spend(self, *events: Event):
        """Note events."""
        self._events.extend(events)

    @property
    def ledger(self) -> Ledger:
        """What has been noted so far."""
        unfinished = self._events and self._events[-1].mechanism == "above threshold"
        counts = Counter(self._events[:-1] if unfinished else self._events)
        kinds = max(1, len(counts))
        epsilon = sum(
            advanced_composition(event.epsilon, times, self.delta / kinds)
            for event, times in counts.items()
        )
        accountant = "odometer, advanced composition: claimed, not proved"
        return Ledger(tuple(self._events), Spent(epsilon, self.delta), None, accountant)
