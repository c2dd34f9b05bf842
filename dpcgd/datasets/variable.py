"""One variable of a table of people: what its schema says, and how its values become codes."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import is_real
from dpcgd.datasets.columns import wrong_value
from dpcgd.datasets.levels import check_level, levels_of

__all__ = ["REFUSE", "Variable"]

KEYS = ("levels", "edges", "outside", "missing", "ordered")
"""What a schema may say about a variable."""

REFUSE = "refuse"
"""What a schema says where such a value refuses the table."""

OUTSIDE = ("clip", REFUSE)
"""A number outside the edges goes to the nearer end, or the table is refused."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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

    def with_missing(self, level: Any) -> "Variable":
        """The same with missing values at this level, added to the others if it is not there."""
        if level == REFUSE:
            return self
        if not isinstance(level, str) or not level.strip():
            raise ValueError(
                f"variable {self.name!r}: missing must be 'refuse' or the name of a level, not "
                f"{level!r}; name one, such as 'unknown'"
            )
        if "" in self.levels:
            raise ValueError(
                f"variable {self.name!r} has two levels for missing values, '' and {level!r}; "
                "take '' out of its levels"
            )
        check_level(self.name, level)
        added = () if level in self.levels else (level,)
        return replace(self, levels=self.levels + added, missing=level)

    def as_schema(self) -> dict[str, Any]:
        """What a schema says about it, nothing left out; JSON can hold it."""
        said: dict[str, Any] = {"levels": list(self.levels)}
        if self.edges is not None:
            said = {"edges": list(self.edges), "outside": self.outside}
        return {**said, "missing": self.missing or REFUSE, "ordered": self.ordered}

    def codes(self, source, column: pd.Series) -> np.ndarray:
        """Positions of a column of text in the levels.

        Raises
        ------
        ValueError
            If a value is missing where that is refused, outside the levels or edges, or no number
            where it should be one.
        """
        codes = self.positions(column)
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            raise self.refused(source, row, column.iloc[row])
        return codes

    def positions(self, column: pd.Series) -> np.ndarray:
        """Positions of a column of text in the levels, -1 of what is refused."""
        if self.edges is not None:
            column = self._binned(column)
        if self.missing is not None:
            column = column.where(column != "", self.missing)
        return pd.Index(self.levels).get_indexer(column)

    def positions_of_numbers(self, values: np.ndarray) -> np.ndarray:
        """The same of numbers, where there are edges; what is no number is missing."""
        edges = self.edges or ()
        found = np.searchsorted(edges[1:-1], values, side="right")
        refused = ~np.isfinite(values)
        if self.outside == REFUSE:
            refused |= (values < edges[0]) | (values > edges[-1])
        found[refused] = -1
        if self.missing is not None:
            found[np.isnan(values)] = self.levels.index(self.missing)
        return found

    def refused(self, source, row: int, value: str) -> ValueError:
        """What to raise about a value that is refused, in words for whoever holds the data."""
        if self.edges is not None:
            says = self._refusal(value)
        else:
            says = f"is not among the levels {', '.join(self.levels)}; {self._cure(value)}"
        return wrong_value(source, self.name, row, value, says)

    def _cure(self, value: str) -> str:
        if value.endswith(".0") and value[:-2] in self.levels:
            whole = value[:-2]
            return f"for whole numbers, such as {whole}, convert the column with astype('Int64')"
        return "correct the value or add the level to the schema"

    def _binned(self, column) -> pd.Series:
        """The level of each number; what is missing stays so."""
        at, values = pd.factorize(column)
        levels = np.array([self._level_of(value) for value in values], object)
        return pd.Series(levels[at], name=column.name)

    def _level_of(self, value: str) -> str | None:
        """None for what is no number, or outside where that is refused."""
        if value == "" or not NUMBER.fullmatch(value):
            return "" if value == "" else None
        number, edges = float(value), self.edges or ()
        if self.outside == REFUSE and not edges[0] <= number <= edges[-1]:
            return None
        return self.levels[bisect_right(edges[1:-1], number)]

    def _refusal(self, value: str) -> str:
        if not NUMBER.fullmatch(value):
            return "is no number; correct the value, or list levels in place of edges"
        ends = f"{_text(self.edges[0])} to {_text(self.edges[-1])}" if self.edges else ""
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
    levels = tuple(f"{_text(low)} to {_text(high)}" for low, high in pairwise(edges))
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
                f"variable {name!r}: edge {_text(high)} follows {_text(low)}; "
                "list the edges from the lowest to the highest, each once"
            )
    return floats


def _float(number) -> float:
    try:
        return float(number) + 0.0  # no negative zero
    except OverflowError:
        return math.inf


def _text(edge: float) -> str:
    return str(int(edge)) if edge.is_integer() and abs(edge) < 1e15 else repr(edge)
