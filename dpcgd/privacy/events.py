"""Events: the mechanisms of a run, as an accountant sees them.

Labels distinguish parts of a run in its ledger, such as the orders of a search; they cost nothing.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from dpcgd.datasets.arguments import as_doubles

__all__ = ["Event", "Neighbours"]
__all__ += ["ApproximateEvent", "BoundedRangeEvent", "GaussianEvent", "PureEvent"]


class Neighbours(Enum):
    """Definitions of neighbours: when two data sets count as differing in one record."""

    REPLACE_ONE = "replace one record"
    ADD_OR_REMOVE_ONE = "add or remove one record"

    def of(self, rows_per_person: int) -> str:
        """The definition in words, if a person has up to `rows_per_person` rows.

        Examples
        --------
        >>> Neighbours.REPLACE_ONE.of(3)
        'replace up to 3 records, all of one person'
        """
        several = f"up to {rows_per_person} records, all of one person"
        return self.value.replace("one record", several) if rows_per_person > 1 else self.value


class _Priced:
    """An event; the parameters that give its price are doubles."""

    parameters: ClassVar[tuple[str, ...]]

    def __post_init__(self):
        as_doubles(self, self.parameters)


@dataclass(frozen=True)
class _PricedByEpsilon(_Priced):
    mechanism: str
    epsilon: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    label: str = ""
    delta: ClassVar[float] = 0.0
    parameters: ClassVar[tuple[str, ...]] = ("epsilon",)


class PureEvent(_PricedByEpsilon):
    """An (epsilon, 0)-differentially private mechanism ran."""


class BoundedRangeEvent(_PricedByEpsilon):
    """A mechanism ran whose privacy loss has a range of at most epsilon: the exponential one."""


@dataclass(frozen=True)
class GaussianEvent(_Priced):
    """Gaussian noise was added; `noise_multiplier` is its deviation over the L2 sensitivity."""

    mechanism: str
    noise_multiplier: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    label: str = ""
    delta: ClassVar[float] = 0.0
    parameters: ClassVar[tuple[str, ...]] = ("noise_multiplier",)


@dataclass(frozen=True)
class ApproximateEvent(_Priced):
    """A mechanism ran that was (epsilon, 0)-private except with probability delta."""

    mechanism: str
    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    label: str = ""
    parameters: ClassVar[tuple[str, ...]] = ("epsilon", "delta")


Event = PureEvent | BoundedRangeEvent | GaussianEvent | ApproximateEvent
"""Any kind of event."""
