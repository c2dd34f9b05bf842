"""One variable of a table of people: what its schema says, and how its values become codes."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import is_real
from dpcgd.datasets.columns import wrong_value
from dpcgd.datasets.levels import levels_of
from dpcgd.datasets.missing_codes import REFUSE, check_apart, missing_codes, number_text
from dpcgd.datasets.numerals import POINT, POINTS_PART_THOUSANDS, Numerals

__all__ = ["Variable"]

KEYS = ("levels", "edges", "outside", "missing", "ordered")
"""What a schema may say about a variable."""

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
    >>> age.codes("the frame", pd.Series(["15", "24.9", "25", "50", ""], name="age")).tolist()
    [0, 0, 1, 1, 2]
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
        ordered = _ordered(name, entry)
        plain = _number(name, entry) if "edges" in entry else _listed(name, entry)
        return replace(plain.with_missing(entry.get("missing", REFUSE)), ordered=ordered)

    def with_missing(self, said: Any) -> "Variable":
        """The same with a level for missing values, added to the others if it is not there."""
        codes = missing_codes(self.name, said)
        if not codes:
            return self
        level = codes[0]
        if "" in self.levels:
            raise ValueError(
                f"variable {self.name!r} has two levels for missing values, '' and {level!r}; "
                "take '' out of its levels"
            )
        check_apart(self.name, codes, self.levels)
        added = () if level in self.levels else (level,)
        return replace(
            self, levels=self.levels + added, missing=level, codes_of_missing=tuple(codes[1:])
        )

    def as_schema(self) -> dict[str, Any]:
        """What a schema says about it, nothing left out; JSON can hold it."""
        said: dict[str, Any] = {"levels": list(self.levels)}
        if self.edges is not None:
            said = {"edges": list(self.edges), "outside": self.outside}
        missing: Any = self.missing or REFUSE
        if self.codes_of_missing:
            missing = [self.missing, *self.codes_of_missing]
        return {**said, "missing": missing, "ordered": self.ordered}

    def codes(self, source, column: pd.Series, numerals: Numerals | None = POINT) -> np.ndarray:
        """Positions of a column of text in the levels.

        Parameters
        ----------
        source : str or path
            What messages call the table.
        column : Series of str
            A missing value is empty text.
        numerals : Numerals or None
            How the text writes numbers, if somebody has said so.

        Raises
        ------
        ValueError
            If a value is missing where that is refused, outside the levels or edges, or no number
            where it should be one. Without numerals, if every point in the column may part
            thousands as well as decimals, and what it then says fits the variable too.
        """
        codes = self._as_listed(column)
        if codes.min(initial=0) < 0:
            at, values = pd.factorize(column)
            if numerals is None:
                self._check_points(source, values)
            codes = self.positions(values, numerals or POINT).take(at)
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            raise self.refused(source, row, column.iloc[row], numerals or POINT)
        return codes

    def positions(self, values: Iterable[str], numerals: Numerals = POINT) -> np.ndarray:
        """Positions of different texts in the levels, -1 of what is refused."""
        return np.array([self._position(value, numerals) for value in values], int)

    def _as_listed(self, column) -> np.ndarray:
        """The same where all of them are levels as they are written, which is looked up faster."""
        if self.edges is not None:
            return np.full(1, -1)
        return pd.Index(self.levels).get_indexer(column)

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
            positions[missing] = self.levels.index(self.missing)
        return positions

    def refused(self, source, row: int, value: str, numerals: Numerals = POINT) -> ValueError:
        """What to raise about a value that is refused, in words for whoever holds the data."""
        says = "is not among the levels " + ", ".join(self.levels)
        says += "; correct the value or add the level to the schema"
        if self.edges is not None:
            says = self._refusal(value, numerals)
        return wrong_value(source, self.name, row, value, says)

    def check_order(self, source, categories: Iterable):
        """Check that the categories of an ordered column stand in the order of the levels.

        Raises
        ------
        ValueError
            If they do not, those aside that are no level, or that of missing values.
        """
        apart = (-1, self._index.get(self.missing or ""))
        positions = [self._position(str(category), POINT) for category in categories]
        theirs = [position for position in positions if position not in apart]
        if self.edges is None and theirs != sorted(theirs):
            raise ValueError(
                f"column {self.name!r} of {source} is ordered as {self._listed(theirs)}, in the "
                f"schema as {self._listed(sorted(theirs))}; give both one order"
            )

    def _listed(self, positions) -> str:
        return ", ".join(self.levels[position] for position in positions)

    def _check_points(self, source, values: Iterable[str]):
        texts = [text for text in values if "." in text and self._by_text(text) is None]
        texts = [text for text in texts if POINT.value(text) is not None]
        if not texts or any(self._position(text, POINTS_PART_THOUSANDS) < 0 for text in texts):
            return
        whole = POINTS_PART_THOUSANDS.plain(texts[0])
        raise ValueError(
            f"{source}, column {self.name!r}: {texts[0]!r} may be {POINT.value(texts[0]):g} or "
            f"{whole}; pass decimal='.' or thousands='.' to read_csv, or convert the column of a "
            "frame with pd.to_numeric"
        )

    @cached_property
    def _index(self) -> dict[str, int]:
        return {level: position for position, level in enumerate(self.levels)}

    @cached_property
    def _missing_numbers(self) -> frozenset[float]:
        """As numbers of double precision, and as those of single precision that columns hold."""
        values = map(POINT.value, (self.missing or "", *self.codes_of_missing))
        numbers = [value for value in values if value is not None]
        return frozenset([*numbers, *(float(np.float32(number)) for number in numbers)])

    def _by_text(self, value: str) -> int | None:
        """The position of what is a level, or a code of missing values, as it is written."""
        if self.missing is not None and value in ("", self.missing, *self.codes_of_missing):
            return self._index[self.missing]
        return self._index.get(value) if self.edges is None else None

    def _position(self, value: str, numerals: Numerals) -> int:
        position = self._by_text(value)
        if position is not None:
            return position
        number = numerals.value(value)
        if number is None:
            return -1
        if number in self._missing_numbers:
            return self._index[self.missing or ""]
        if self.edges is None:
            return self._of_number_text(value, numerals)
        if self.outside == REFUSE and not self.edges[0] <= number <= self.edges[-1]:
            return -1
        return bisect_right(self.edges[1:-1], number)

    def _of_number_text(self, value, numerals) -> int:
        """Levels are text, but 14.0 is the level "14" where "14.0" is none: gaps make it so."""
        plain = self._index.get(numerals.plain(value) or "", -1)
        return plain if plain >= 0 else self._index.get(numerals.whole(value) or "", -1)

    def _refusal(self, value: str, numerals: Numerals) -> str:
        if numerals.value(value) is None:
            if any(Numerals(*marks).value(value) is not None for marks in ((",", "."), (".", ","))):
                return "is no number with a decimal point; pass decimal= or thousands= to read_csv"
            return "is no number; correct the value, or list levels in place of edges"
        edges = self.edges or (math.nan,)
        ends = f"{number_text(edges[0])} to {number_text(edges[-1])}"
        return f"is outside {ends}; correct the value, or let outside be 'clip' in the schema"


def _ordered(name, entry) -> bool:
    ordered = entry.get("ordered", "edges" in entry)
    if not isinstance(ordered, bool):
        raise ValueError(f"variable {name!r}: ordered must be true or false, not {ordered!r}")
    if "edges" in entry and not ordered:
        raise ValueError(
            f"variable {name!r} has edges and is said to have no order; take 'ordered' out, "
            "numbers have one"
        )
    return ordered


def _listed(name, entry) -> Variable:
    if "outside" in entry:
        raise ValueError(
            f"variable {name!r} has levels and no edges to be outside of; take 'outside' out"
        )
    return Variable(name, levels_of(name, entry["levels"]))


def _number(name, entry) -> Variable:
    outside = entry.get("outside", REFUSE)
    if outside not in OUTSIDE:
        raise ValueError(f"variable {name!r}: outside must be 'clip' or 'refuse', not {outside!r}")
    edges = check_edges(name, entry["edges"])
    levels = tuple(f"{number_text(low)} to {number_text(high)}" for low, high in pairwise(edges))
    return Variable(name, levels, edges=edges, outside=outside)


def check_edges(name: str, edges: Any) -> tuple[float, ...]:
    """Return the edges of a number as floats.

    Raises
    ------
    ValueError
        If they are no list of three finite numbers or more, each larger than the one before.
    """
    if isinstance(edges, (str, bytes, Set, Mapping)) or not isinstance(edges, Iterable):
        raise ValueError(f"variable {name!r}: give its edges as a list, not {edges!r}")
    edges = list(edges)
    for edge in edges:
        if not is_real(edge) or not math.isfinite(_float(edge)):
            raise ValueError(f"variable {name!r}: an edge must be a finite number, not {edge!r}")
    if len(edges) < 3:
        raise ValueError(
            f"variable {name!r} has {len(edges)} edges; give three or more, two levels need three"
        )
    floats = tuple(map(_float, edges))
    for low, high in pairwise(floats):
        if not low < high:
            raise ValueError(
                f"variable {name!r}: edge {number_text(high)} follows {number_text(low)}; "
                "list the edges from the lowest to the highest, each once"
            )
    return floats


def _float(number) -> float:
    try:
        return float(number) + 0.0  # no negative zero
    except OverflowError:
        return math.inf
