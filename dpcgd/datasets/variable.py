"""One variable of a table of people: what its schema says, and which level each value is."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import is_real
from dpcgd.datasets.levels import REFUSE, as_list, levels_of, missing_codes, number_text
from dpcgd.datasets.numerals import POINT, POINTS_PART_THOUSANDS, Numerals

__all__ = ["Variable"]

KEYS = ("levels", "edges", "outside", "missing", "ordered")
"""A schema may say these things about a variable."""

OUTSIDE = ("clip", REFUSE)
"""A number outside the edges goes to the nearer end, or the table is refused."""


@dataclass(frozen=True)
class Variable:
    """What is public about one variable; :class:`~dpcgd.datasets.schema.Schema` has the format.

    Attributes
    ----------
    name : str
    levels : tuple of str
        All of them, that of missing values too.
    ordered : bool
        Whether the levels stand in order (that of missing values aside).
    missing : str or None
        The level of missing values. Without one, a missing value is refused.
    edges : tuple of float or None
        Of a number: where its levels begin, and where the last one ends.
    outside : str
        "clip" or "refuse": what becomes of a number outside the edges.
    codes_of_missing : tuple of str
        Values that stand for a missing one beside the name of its level and an empty cell.
        Numbers among them are compared as numbers.

    Examples
    --------
    >>> age = Variable.from_schema("age", {"edges": [15, 25, 50], "missing": "unknown"})
    >>> age.levels, age.ordered
    (('15 to 25', '25 to 50', 'unknown'), True)
    >>> [age.position(text) for text in ("15", "24.9", "25", "50", "", "60")]
    [0, 0, 1, 1, 2, -1]
    """

    name: str
    levels: tuple[str, ...]
    ordered: bool = False
    missing: str | None = None
    edges: tuple[float, ...] | None = None
    outside: str = REFUSE
    codes_of_missing: tuple[str, ...] = ()

    @classmethod
    def from_schema(cls, name: str, entry: Any) -> "Variable":
        """Check what a schema says about a variable: a list of levels, or a mapping.

        Raises
        ------
        ValueError
            If it says nothing that it may, or contradicts itself.
        """
        if isinstance(entry, Variable):
            return replace(entry, name=name)
        if not isinstance(entry, Mapping) or not set(KEYS) & set(entry):
            return cls(name, levels_of(name, entry))
        for key in entry:
            if key not in KEYS:
                raise ValueError(
                    f"variable {name!r}: a schema says nothing about {key!r}; take it out, what "
                    f"may be said is {', '.join(KEYS)}"
                )
        if ("levels" in entry) == ("edges" in entry):
            raise ValueError(
                f"variable {name!r} needs either levels or edges; list its levels, or give the "
                "edges of a number"
            )
        ordered = entry.get("ordered", "edges" in entry)
        if not isinstance(ordered, bool):
            raise ValueError(f"variable {name!r}: ordered must be true or false, not {ordered!r}")
        plain = _number(name, entry) if "edges" in entry else _listed(name, entry)
        return replace(plain.with_missing(entry.get("missing", REFUSE)), ordered=ordered)

    def with_missing(self, entry: Any) -> "Variable":
        """The same with a level for missing values, added to the others if it is not there."""
        codes = missing_codes(self.name, entry, self.levels)
        if not codes:
            return self
        level, *others = codes
        if "" in self.levels:
            raise ValueError(
                f"variable {self.name!r} has two levels for missing values, '' and {level!r}; "
                "take '' out of its levels"
            )
        levels = self.levels if level in self.levels else (*self.levels, level)
        return replace(self, levels=levels, missing=level, codes_of_missing=tuple(others))

    def as_schema(self) -> dict[str, Any]:
        """What a schema says about it, nothing left out; JSON can hold it."""
        entry: dict[str, Any] = {"levels": list(self.levels)}
        if self.edges is not None:
            entry = {"edges": list(self.edges), "outside": self.outside}
        missing: Any = self.missing or REFUSE
        if self.codes_of_missing:
            missing = [self.missing, *self.codes_of_missing]
        return {**entry, "missing": missing, "ordered": self.ordered}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {level: position for position, level in enumerate(self.levels)}

    @cached_property
    def _missing_numbers(self) -> frozenset[float]:
        """As numbers of double precision, and as those of single precision that columns hold."""
        values = map(POINT.value, (self.missing or "", *self.codes_of_missing))
        numbers = [value for value in values if value is not None]
        return frozenset([*numbers, *(float(np.float32(number)) for number in numbers)])

    def _position_of_text(self, text: str) -> int | None:
        """The position of a level, or of a code of missing values, that is written like this."""
        if self.missing is not None and text in ("", self.missing, *self.codes_of_missing):
            return self._index[self.missing]
        return self._index.get(text) if self.edges is None else None

    def position(self, text: str, numerals: Numerals = POINT) -> int:
        """The position of a value in the levels, -1 if it is refused; empty text is missing."""
        position = self._position_of_text(text)
        if position is not None:
            return position
        number = numerals.value(text)
        if number is None:
            return -1
        if number in self._missing_numbers:
            return self._index[self.missing or ""]
        if self.edges is None:  # 14.0 is the level "14" where "14.0" is none: gaps make it so
            plain = self._index.get(numerals.plain(text) or "", -1)
            return plain if plain >= 0 else self._index.get(numerals.whole(text) or "", -1)
        if self.outside == REFUSE and not self.edges[0] <= number <= self.edges[-1]:
            return -1
        return bisect_right(self.edges[1:-1], number)

    def positions_of_numbers(self, values: np.ndarray) -> np.ndarray:
        """The same of numbers, where there are edges; what is no number is missing."""
        edges = self.edges or ()
        positions = np.searchsorted(edges[1:-1], values, side="right")
        refused = ~np.isfinite(values)
        if self.outside == REFUSE:
            refused |= (values < edges[0]) | (values > edges[-1])
        positions[refused] = -1
        if self.missing is not None:
            missing = np.isnan(values) | np.isin(values, list(self._missing_numbers))
            positions[missing] = self._index[self.missing]
        return positions

    def refused(self, source, row: int, value: str, numerals: Numerals = POINT) -> ValueError:
        """What to raise about a value that is refused, in words for whoever holds the data."""
        where = f"{source}, record {row + 1}, column {self.name!r}"
        if value == "":
            return ValueError(
                f"{where}: the value is missing; drop or impute such records first, or let the "
                "schema give missing values a level, as with 'missing': 'unknown'"
            )
        return ValueError(f"{where}: {value!r} {self._refusal(value, numerals)}")

    def _refusal(self, value, numerals) -> str:
        if self.edges is None:
            says = "is not among the levels " + ", ".join(self.levels)
            return says + "; correct the value or add the level to the schema"
        if numerals.value(value) is not None:
            ends = f"{number_text(self.edges[0])} to {number_text(self.edges[-1])}"
            return f"is outside {ends}; correct the value, or let outside be 'clip' in the schema"
        if any(Numerals(*marks).value(value) is not None for marks in ((",", "."), (".", ","))):
            return "is no number with a decimal point; pass decimal= or thousands= to read_csv"
        return "is no number; correct the value, or list levels in place of edges"

    def check_order(self, source, categories: Iterable):
        """Check that the categories of an ordered column stand in the order of the levels.

        Raises
        ------
        ValueError
            If they do not, those aside that are no level, or that of missing values.
        """
        apart = (-1, self._index.get(self.missing or ""))
        positions = [self.position(str(category)) for category in categories]
        names = [self.levels[position] for position in positions if position not in apart]
        right = sorted(names, key=self.levels.index)
        if self.edges is None and names != right:
            raise ValueError(
                f"column {self.name!r} of {source} is ordered as {', '.join(names)}, in the schema "
                f"as {', '.join(right)}; give both one order"
            )

    def check_points(self, source, texts: Iterable[str]):
        """Check that points part decimals and cannot part thousands as well.

        Raises
        ------
        ValueError
            If every point may part thousands, and what the texts then say fits the variable too.
        """
        texts = [text for text in texts if "." in text and self._position_of_text(text) is None]
        texts = [text for text in texts if POINT.value(text) is not None]
        if not texts or any(self.position(text, POINTS_PART_THOUSANDS) < 0 for text in texts):
            return
        whole = POINTS_PART_THOUSANDS.plain(texts[0])
        raise ValueError(
            f"{source}, column {self.name!r}: {texts[0]!r} may be {POINT.value(texts[0]):g} or "
            f"{whole}; pass decimal='.' or thousands='.' to read_csv, or convert the column of a "
            "frame with pd.to_numeric"
        )


def _listed(name, entry) -> Variable:
    if "outside" in entry:
        raise ValueError(
            f"variable {name!r} has levels and no edges to be outside of; take 'outside' out"
        )
    return Variable(name, levels_of(name, entry["levels"]))


def _number(name, entry) -> Variable:
    if not entry.get("ordered", True):
        raise ValueError(
            f"variable {name!r} has edges and is said to have no order; take 'ordered' out, "
            "numbers have one"
        )
    outside = entry.get("outside", REFUSE)
    if outside not in OUTSIDE:
        raise ValueError(f"variable {name!r}: outside must be 'clip' or 'refuse', not {outside!r}")
    edges = [_edge(name, edge) for edge in as_list(name, entry["edges"], "edges")]
    if len(edges) < 3:
        raise ValueError(
            f"variable {name!r} has {len(edges)} edges; give three or more, two levels need three"
        )
    for low, high in pairwise(edges):
        if not low < high:
            raise ValueError(
                f"variable {name!r}: edge {number_text(high)} follows {number_text(low)}; "
                "list the edges from the lowest to the highest, each once"
            )
    levels = tuple(f"{number_text(low)} to {number_text(high)}" for low, high in pairwise(edges))
    return Variable(name, levels, edges=tuple(edges), outside=outside)


def _edge(name, edge) -> float:
    try:
        number = float(edge) + 0.0 if is_real(edge) else math.nan  # no negative zero
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"variable {name!r}: an edge must be a finite number, not {edge!r}")
    return number
