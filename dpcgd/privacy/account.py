"""What an account is: mechanisms pay it before they look at the data."""

import math
from typing import ClassVar, Protocol

from dpcgd.privacy.budget import Spent
from dpcgd.privacy.events import Event
from dpcgd.privacy.ledger import Ledger

__all__ = ["Account", "NoPrivacy"]


class Account(Protocol):
    """An account pays for the mechanisms of a run."""

    @property
    def guarantee(self) -> str:
        """What a release may say of a run that this account paid for."""

    def spend(self, *events: Event) -> None:
        """Pay for events that are about to run, or raise BudgetSpent."""

    @property
    def ledger(self) -> Ledger:
        """What has been paid so far."""


class NoPrivacy:
    """The account of a run without privacy: nothing is counted, and nothing promised."""

    guarantee: ClassVar[str] = "none"

    def spend(self, *events: Event) -> None:
        """Count nothing."""

    @property
    def ledger(self) -> Ledger:
        """An empty one, with an infinite total."""
        return Ledger((), Spent(math.inf, 1.0), None, "no privacy")
