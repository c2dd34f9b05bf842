"""What is fixed before a run: all of it is public, and goes with the release."""

import importlib.metadata
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import is_real
from dpcgd.privacy.sealed_file import digest_of

__all__ = ["Domain", "Terms", "public_domain", "public_rules", "told", "versions"]

Domain = Mapping[str, tuple]
"""Of each variable the levels, or the ends of its range."""

PACKAGES = ("dpcgd", "numpy", "opendp")
"""A release rests on them."""

KINDS = {
    "secure": "release",
    "seeded": "experiment, not a release",
    "none": "no privacy, not a release",
}


@cache
def versions() -> dict[str, str]:
    """Of Python and of the packages that a release rests on, as far as they are installed."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


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
        Labels of what proves the guarantee of this run; none where it is only claimed.
    rows_per_person : int
    settings : mapping
        Those that were used, by name; what is no number and no knowledge as text.
    rules : mapping
        Of each variable what its schema says: levels or edges, what becomes of values outside and
        of missing ones, whether there is an order. Of real values the range.
    versions : mapping
        Of Python and of the packages that ran.
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
    rules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    account_entry: str = ""

    @property
    def kind(self) -> str:
        """Whether this is a release, or an experiment that must not be published as one."""
        return KINDS[self.noise]

    @property
    def source(self) -> str:
        """Where the noise came from."""
        if self.noise == "secure":
            return f"OpenDP {self.versions.get('opendp')}, randomness of the operating system"
        return {"seeded": f"numpy {self.versions.get('numpy')}, a seed", "none": "none"}[self.noise]

    @property
    def digest(self) -> str:
        """SHA-256 of the domain."""
        return digest_of([[name, list(levels)] for name, levels in self.domain.items()])


def public_domain(data: Any) -> Domain:
    """The levels or ranges of a data set, as tuples."""
    if hasattr(data, "cardinalities"):
        return {name: tuple(levels) for name, levels in data.levels.items()}
    return {name: tuple(map(float, ends)) for name, ends in data.ranges.items()}


def public_rules(data: Any) -> Mapping[str, Mapping[str, Any]]:
    """What is public about each variable, as JSON holds it: all that codes need to be made again.

    Examples
    --------
    >>> from dpcgd.datasets.measurements import Measurements
    >>> public_rules(Measurements([[20.0, 1.5]], {"age": (0, 80), "height": (1, 2)}))["age"]
    {'range': [0.0, 80.0], 'outside': 'clip'}
    """
    if hasattr(data, "rules"):
        return data.rules
    domain = public_domain(data)
    if hasattr(data, "cardinalities"):
        return {name: {"levels": list(levels)} for name, levels in domain.items()}
    return {name: {"range": list(ends), "outside": "clip"} for name, ends in domain.items()}


def told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a release may hold them; None says nothing and is left out."""
    return {name: _told(value) for name, value in settings.items() if value is not None}


def _told(value):
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float) or hasattr(value, "arrays"):  # knowledge
        return value
    if is_real(value):
        return float(value)
    if is_dataclass(value):
        return repr(value)
    return getattr(value, "__name__", type(value).__name__)
