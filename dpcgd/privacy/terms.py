"""What is fixed before a run: all of it is public, and goes with the release."""

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import is_real, is_whole
from dpcgd.privacy.sealed_file import digest_of

__all__ = ["Domain", "Terms", "public_domain", "told"]

Domain = Mapping[str, tuple]
"""Of each variable the levels, or the ends of its range."""

KINDS = {
    "secure": "release",
    "seeded": "experiment, not a release",
    "none": "no privacy, not a release",
}


@dataclass(frozen=True)
class Terms:
    """What was fixed before a run. No mechanism has to cover it, for no record had a say in it.

    Attributes
    ----------
    noise : str
        "secure", "seeded" (whoever knows the seed knows the noise), or "none".
    n : int
        Records.
    domain : mapping
        Of each variable the levels, or the ends of its range.
    system : str
        Who ran.
    theorems : tuple of str
        Labels of what proves the guarantee; none where it is only claimed.
    rows_per_person : int
    settings : mapping
        Those that were given, by name; what is no number and no knowledge as text.
    account_entry : str
        Of the reservation that paid, in an account file; empty without one.

    Examples
    --------
    >>> Terms("seeded", 100, {"x": ("no", "yes"), "y": ("no", "yes")}).kind
    'experiment, not a release'
    """

    noise: str
    n: int
    domain: Domain
    system: str = ""
    theorems: tuple[str, ...] = ()
    rows_per_person: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    account_entry: str = ""

    @property
    def kind(self) -> str:
        """Whether this is a release, or an experiment that must not be published as one."""
        return KINDS[self.noise]

    @property
    def digest(self) -> str:
        """SHA-256 of the domain."""
        return digest_of([[name, list(of)] for name, of in self.domain.items()])


def public_domain(data: Any) -> Domain:
    """The levels or ranges of a data set, as tuples."""
    if hasattr(data, "cardinalities"):
        return {name: tuple(levels) for name, levels in data.levels.items()}
    return {name: tuple(map(float, ends)) for name, ends in data.ranges.items()}


def told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a release may hold them; those that were left to their defaults are left out."""
    return {name: _told(value) for name, value in settings.items() if value is not None}


def _told(value):
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if is_whole(value):
        return int(value)
    if is_real(value):
        return float(value)
    if isinstance(value, str) or hasattr(value, "arrays"):  # knowledge
        return value
    return repr(value) if is_dataclass(value) else type(value).__name__
