"""The ledger: what ran, in order, and what it cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import Event

__all__ = ["Ledger"]


@dataclass(frozen=True)
class Ledger:
    """What ran, in order, and what it cost.

    Attributes
    ----------
    events : tuple
        Each mechanism that ran, at the price for one record.
    spent : Spent
        What was used by the end, ``(epsilon, delta)``, for the unit of the budget. For planning
        only: where a run chooses by its own answers when to stop, this is no guarantee (chapter
        02). The budget is one, and budgets add up over releases.
    budget : Budget or None
        The promise; None where nothing was enforced.
    accountant : str
        How the total was reached.
    whole : str
        What the whole run satisfies, as its filter enforced it: in rho, or as a pure epsilon.
    """

    COLUMNS: ClassVar = ("mechanism", "times", "each", "rho in all")

    events: tuple[Event, ...]
    spent: Spent
    budget: Budget | None
    accountant: str
    whole: str = ""

    def to_frame(self):
        """The ledger as a pandas table, one row for each kind of mechanism, in order."""
        kinds: dict[tuple[str, type], list[Event]] = {}
        for event in self.events:
            name = ", ".join(filter(None, (event.mechanism, event.label)))
            kinds.setdefault((name, type(event)), []).append(event)
        rows = [
            (name, len(events), prices_of(events), _in_all(map(zcdp_rho, events)))
            for (name, _), events in kinds.items()
        ]
        return pd.DataFrame(rows, columns=self.COLUMNS)

    def __str__(self):
        lines = ["{:<18}{:>6}  {:<34}{:>11}".format(*self.COLUMNS)]
        rows = self.to_frame().itertuples(index=False)
        lines += ["{:<18}{:>6}  {:<34}{:>11.6f}".format(*row) for row in rows]
        used = f"epsilon = {self.spent.epsilon:.4g} at delta = {self.spent.delta:g}"
        if self.budget:
            promise = f"({self.budget.epsilon:g}, {self.budget.delta:g})"
            unit = "; prices are of one record" if self.budget.rows_per_person > 1 else ""
            lines.append(f"promised {promise} by a {self.accountant}{unit}")
            lines += [self.whole] if self.whole else []
            lines.append(f"used so far, for planning: {used}")
        else:
            lines.append(f"nothing is promised; a reading of {used} ({self.accountant})")
        return "\n".join(lines)


def _in_all(costs) -> float:
    """Their sum; infinite where it is too large a number."""
    try:
        return math.fsum(costs)
    except OverflowError:
        return math.inf


def prices_of(events) -> str:
    """What each of these events cost, as the parameters they were run with."""
    shown = []
    for name in events[0].parameters:
        values = [getattr(event, name) for event in events]
        low, high = f"{min(values):.4g}", f"{max(values):.4g}"
        shown.append(f"{name.replace('_', ' ')} = {low}" + ("" if low == high else f" to {high}"))
    return ", ".join(shown)
