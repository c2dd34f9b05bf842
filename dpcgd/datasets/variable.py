"""One variable of a table: its public description, and the level of each text.

Levels and codes of missing values are public; each is listed once.
"""

import math
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_handled, check_once, is_real, is_whole

__all__ = ["REFUSE", "Numerals", "Parts", "Variable", "as_list", "check_levels", "number_text"]
__all__ += ["text_of"]

REFUSE = "refuse"
"""The rule by which a missing value, or a value outside the edges, refuses the table."""

KEYS = ("levels", "edges", "range", "scale", "outside", "missing", "ordered")
"""The entries that a schema may have for a variable."""

PARTS = 1 << 15
"""Number of equal parts of a range; a number is stored as one of them."""

SCALES = ("linear", "log")
"""The parts of a range have equal width, or equal logarithmic width."""

SHORTEST = 1e-300
"""The least length of half a range; values divided by it are still finite."""

OUTSIDE = ("clip", REFUSE)
"""Rules for a number outside the edges: it goes to the nearer end, or the table is refused."""

UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML holds, and so no figure of a report."""

MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}
"""A value that is not text is missing if it prints as one of these."""


DECIMALS = (".", ",")
"""Possible decimal marks."""

THOUSANDS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")
"""Possible marks between thousands; the last three are blanks."""

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
"""Pattern of the text of a whole number, also if a program wrote it with a decimal point."""


@dataclass(frozen=True)
class Numerals:
    """A notation of numbers.

    Attributes
    ----------
    decimal : str
    thousands : str
        Empty if thousands are not separated.

    Examples
    --------
    >>> Numerals(",", ".").value("2.000,5"), Numerals(",", ".").value("2.0")
    (2000.5, None)
    >>> Numerals().whole("14.0"), Numerals().whole("014.0")
    ('14', None)
    """

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def _pattern(self) -> re.Pattern:
        mark, part = re.escape(self.decimal), re.escape(self.thousands)
        plain = rf"(?:[0-9]+{mark}?[0-9]*|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        parted = rf"[1-9][0-9]{{0,2}}(?:{part}[0-9]{{3}})+(?:{mark}[0-9]*)?"
        return re.compile(rf"[+-]?(?:{plain}|{parted})" if part else rf"[+-]?{plain}")

    def plain(self, text: str) -> str | None:
        """The number as text with a decimal point and no other mark; None for other text."""
        if not self._pattern.fullmatch(text):
            return None
        whole = text.replace(self.thousands, "") if self.thousands else text
        return whole.replace(self.decimal, ".")

    def value(self, text: str) -> float | None:
        """The number, or None for other text."""
        plain = self.plain(text)
        return None if plain is None else float(plain) + 0.0  # no negative zero

    def whole(self, text: str) -> str | None:
        """The digits of a whole number; None for other text, or with leading zeros."""
        match = WHOLE.fullmatch(self.plain(text) or "")
        return None if match is None else "0" if match[1] == "-0" else match[1]


POINT = Numerals()
"""The default notation of numbers."""


def check_numerals(decimal: str | None, thousands: str | None) -> Numerals | None:
    """Return the notation of a file's numbers; None if neither mark is given.

    Raises
    ------
    ValueError
        If a mark is not possible, or both are the same.
    """
    if decimal is None and thousands is None:
        return None
    if decimal is None:
        decimal = "," if thousands == "." else "."
    if decimal not in DECIMALS:
        raise ValueError(f"decimal must be '.' or ',', not {decimal!r}")
    if thousands is not None and thousands not in THOUSANDS:
        marks = ", ".join(map(repr, THOUSANDS))
        raise ValueError(f"thousands must be one of {marks}, not {thousands!r}")
    if decimal == thousands:
        raise ValueError(f"decimal and thousands are both {decimal!r}; let them differ")
    return Numerals(decimal, thousands or "")


def text_of(value: object) -> str:
    """A value of a table as text; a missing value is empty text, as in a file.

    Examples
    --------
    >>> text_of(1.0), text_of(float("nan")), text_of("nan"), text_of(None)
    ('1.0', '', 'nan', '')
    """
    text = str(value)
    return "" if text in MISSING and not isinstance(value, str) else text


def number_text(number: Any) -> str:
    """The shortest text of a number, without a decimal point if it is whole."""
    if is_whole(number):
        return str(int(number))
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def check_variables(public: object, values: str = "levels") -> None:
    """Refuse an argument that is no mapping from names of at least two variables.

    Raises
    ------
    ValueError
        If it is no such mapping, or a name is not text, is empty or has blanks at its ends.
    """
    if not isinstance(public, Mapping):
        raise ValueError(f"{values} must be a mapping from each variable's name to its {values}")
    if len(public) < 2:
        raise ValueError(f"a causal graph needs at least two variables, this has {len(public)}")
    for name in public:
        if not isinstance(name, str):
            raise ValueError(f"the variable name {name!r} is not text; write it as '{name}'")
        if not name or name != name.strip():
            raise ValueError(f"variable name {name!r} is empty or has blanks at its ends; mend it")
        if UNPRINTABLE.search(name):
            raise ValueError(f"variable name {name!r} has a character that no report can hold")


def check_levels(levels: Mapping[str, Iterable]) -> Mapping[str, Sequence[str]]:
    """Return the public domain as a read-only mapping of names to tuples of strings.

    Raises
    ------
    ValueError
        If there are fewer than two variables, a name is no text, a variable has no level, or a
        level occurs twice, is missing, nested or has blanks at its ends.
    """
    check_variables(levels)
    checked: dict[str, Sequence[str]] = {}
    for name, own in levels.items():
        checked[name] = own if isinstance(own, Parts) else _listed(name, own)
    return MappingProxyType(checked)


@dataclass(frozen=True)
class Parts(Sequence[str]):
    """The parts of a number's range, as a sequence of names that are made on demand.

    Attributes
    ----------
    low, high : float
        Public ends of the range.
    scale : str
        "linear" or "log": parts of equal width, or of equal logarithmic width.
    missing : str or None
        The level of missing values, which comes last.

    Examples
    --------
    >>> parts = Parts(0.0, 32768.0, missing="unknown")
    >>> len(parts), parts[0], parts[-1]
    (32769, '0 to 1', 'unknown')
    >>> parts.values([0, 16384]).tolist(), parts.half
    ([0.5, 16384.5], 16384.0)
    """

    low: float
    high: float
    scale: str = SCALES[0]
    missing: str | None = None

    @cached_property
    def edges(self) -> np.ndarray:
        """The start of each part, and the end of the last one."""
        spaced = np.geomspace if self.scale == "log" else np.linspace
        return spaced(self.low, self.high, PARTS + 1)

    @property
    def half(self) -> float:
        """Half of the range, or half of the range of the logarithms."""
        is_log = self.scale == "log"
        return (math.log(self.high / self.low) if is_log else self.high - self.low) / 2

    def values(self, places) -> np.ndarray:
        """The numbers in the middle of these parts; positions between parts give numbers too."""
        shares = (np.asarray(places) + 0.5) / PARTS
        if self.scale == "log":
            return self.low ** (1 - shares) * self.high**shares
        return self.low + (self.high - self.low) * shares

    def joined(self, bins: int) -> tuple[str, ...]:
        """Names of the bins when the range is cut into `bins`, and the level of missing values."""
        cuts = self.values(np.arange(bins + 1) * PARTS / bins - 0.5)
        ends = [number_text(float(f"{cut:.12g}")) for cut in cuts]
        names = [f"{low} to {high}" for low, high in pairwise(ends)]
        if len({*names}) < bins:  # bins so narrow that their names with twelve digits are equal
            names = [f"part {number} of {bins}" for number in range(1, bins + 1)]
        return (*names, *(() if self.missing is None else (self.missing,)))

    def __contains__(self, level: object) -> bool:
        return level is not None and (level == self.missing or super().__contains__(level))

    def __reduce__(self):  # without the edges
        return Parts, (self.low, self.high, self.scale, self.missing)

    def __len__(self) -> int:
        return PARTS + (self.missing is not None)

    def __getitem__(self, position):
        number = range(len(self))[position]
        if number == PARTS:
            return self.missing
        return " to ".join(map(number_text, self.edges[number : number + 2]))


@dataclass(frozen=True)
class Variable:
    """The public description of a variable, as in :class:`~dpcgd.datasets.schema.Schema`.

    Attributes
    ----------
    name : str
    levels : sequence of str
        All levels, with that of missing values; :class:`Parts` for a number with a range.
    ordered : bool
        Whether the levels are in order (except that of missing values).
    missing : str or None
        The level of missing values. Without one, a missing value is refused.
    edges : tuple of float or None
        For a number: the start of each level, and the end of the last one.
    outside : str
        "clip" or "refuse": the rule for a number outside the edges.
    codes_of_missing : tuple of str
        Codes of missing values, beside the name of their level and an empty cell. Numbers among
        them are compared as numbers.

    Examples
    --------
    >>> age = Variable.from_schema("age", {"edges": [15, 25, 50], "missing": "unknown"})
    >>> age.levels, age.ordered
    (('15 to 25', '25 to 50', 'unknown'), True)
    >>> [age.position(text) for text in ("15", "24.9", "25", "50", "", "60")]
    [0, 0, 1, 1, 2, -1]
    """

    name: str
    levels: Sequence[str]
    ordered: bool = False
    missing: str | None = None
    edges: tuple[float, ...] | None = None
    outside: str = REFUSE
    codes_of_missing: tuple[str, ...] = ()

    @classmethod
    def from_schema(cls, name: str, entry: Any) -> "Variable":
        """Make a variable from its entry in a schema: a list of levels, or a mapping.

        Raises
        ------
        ValueError
            If the entry has unknown keys, or contradicts itself.
        """
        if isinstance(entry, Variable):
            return replace(entry, name=name)
        if not isinstance(entry, Mapping) or not set(KEYS) & set(entry):
            return cls(name, _listed(name, entry))
        _check_keys(name, entry)
        edges = _edges(name, entry["edges"]) if "edges" in entry else None
        between = tuple(f"{number_text(a)} to {number_text(b)}" for a, b in pairwise(edges or ()))
        levels: Sequence[str] = _listed(name, entry["levels"]) if "levels" in entry else between
        missing, *codes = _missing_codes(name, entry.get("missing", REFUSE), levels) or [None]
        if "range" in entry:
            levels = _parts(name, entry, missing)
        elif missing is not None and missing not in levels:
            levels = (*levels, missing)
        ordered, outside = entry.get("ordered", "levels" not in entry), entry.get("outside", REFUSE)
        return cls(name, levels, ordered, missing, edges, outside, tuple(codes))

    def as_schema(self) -> dict[str, Any]:
        """The complete entry of a schema, with defaults; JSON can hold it."""
        if isinstance(self.levels, Parts):
            ends = [self.levels.low, self.levels.high]
            entry: dict[str, Any] = {"range": ends, "scale": self.levels.scale}
        else:
            entry = {"edges": list(self.edges)} if self.edges else {"levels": list(self.levels)}
        if self.cuts is not None:
            entry |= {"outside": self.outside}
        missing: Any = self.missing or REFUSE
        if self.codes_of_missing:
            missing = [self.missing, *self.codes_of_missing]
        return {**entry, "missing": missing, "ordered": self.ordered or self.cuts is not None}

    @property
    def cuts(self) -> Any:
        """The start of each bin or part of a number, and the end of the last one."""
        return self.levels.edges if isinstance(self.levels, Parts) else self.edges

    @cached_property
    def _index(self) -> dict[str, int]:
        if isinstance(self.levels, Parts):  # only the last is looked up by its name
            return {self.levels.missing or "": PARTS}
        return {level: position for position, level in enumerate(self.levels)}

    @cached_property
    def _missing_numbers(self) -> frozenset[float]:
        """The codes of missing values that are numbers, and fractions in single precision, too."""
        values = map(POINT.value, (self.missing or "", *self.codes_of_missing))
        numbers = {value for value in values if value is not None}
        return frozenset(numbers | {float(np.float32(x)) for x in numbers if not x.is_integer()})

    def _position_of_text(self, text: str) -> int | None:
        """The position of the level, or of the code of missing values, with exactly this text."""
        if self.missing is not None and text in ("", self.missing, *self.codes_of_missing):
            return self._index[self.missing]
        return self._index.get(text) if self.cuts is None else None

    def is_plain_number(self, text: str) -> bool:
        """Whether a text is a number with a decimal point, but no level or code."""
        return self._position_of_text(text) is None and POINT.value(text) is not None

    def position(self, text: str, numerals: Numerals = POINT) -> int:
        """The position of a value in the levels, or -1 if it is refused; empty text is missing."""
        position = self._position_of_text(text)
        if position is not None:
            return position
        number = numerals.value(text)
        if number is None:
            return -1
        if number in self._missing_numbers:
            return self._index[self.missing or ""]
        if (cuts := self.cuts) is not None:
            inside = self.outside != REFUSE or cuts[0] <= number <= cuts[-1]
            return bisect_right(cuts, number, 1, len(cuts) - 1) - 1 if inside else -1
        for level in (numerals.plain(text), numerals.whole(text)):
            if level in self._index:  # 14.0 is the level "14" where "14.0" is none: gaps make it so
                return self._index[level]
        return -1

    def positions_of_numbers(self, values: np.ndarray) -> np.ndarray:
        """The positions of numbers between the cuts; values that are no number are missing."""
        cuts = np.asarray(self.cuts)
        positions = np.searchsorted(cuts[1:-1], values, side="right")
        refused = ~np.isfinite(values)
        if self.outside == REFUSE:
            refused |= (values < cuts[0]) | (values > cuts[-1])
        positions[refused] = -1
        if self.missing is not None:
            missing = np.isnan(values) | np.isin(values, list(self._missing_numbers))
            positions[missing] = self._index[self.missing]
        return positions


def _check_keys(name, entry):
    """Check the entries of a variable in a schema, except levels, edges and missing values."""
    odd = [key for key in entry if key not in KEYS]
    ordered, outside = entry.get("ordered", True), entry.get("outside", REFUSE)
    check_handled(odd, f"variable {name!r}: ")
    if odd:
        problem = f"a schema says nothing about {odd[0]!r}; take it out, it knows {', '.join(KEYS)}"
    elif sum(key in entry for key in ("levels", "edges", "range")) != 1:
        problem = "it needs levels, or the range or the edges of a number; give one of them"
    elif "scale" in entry and "range" not in entry:
        problem = "only a range has a scale; take 'scale' out"
    elif entry.get("scale", SCALES[0]) not in SCALES:
        problem = f"scale must be 'linear' or 'log', not {entry['scale']!r}"
    elif not isinstance(ordered, bool):
        problem = f"ordered must be true or false, not {ordered!r}"
    elif "levels" in entry and "outside" in entry:
        problem = "it has levels, and nothing is outside of them; take 'outside' out"
    elif "levels" not in entry and not ordered:
        problem = "numbers have an order; take 'ordered' out"
    elif outside not in OUTSIDE:
        problem = f"outside must be 'clip' or 'refuse', not {outside!r}"
    else:
        return
    raise ValueError(f"variable {name!r}: {problem}")


def as_list(name: str, values: object, what: str) -> list:
    """Return the list in a variable's entry.

    Raises
    ------
    ValueError
        If it is text, has no order, or is no collection of values.
    """
    if isinstance(values, (str, bytes, Set, Mapping)) or not isinstance(values, Iterable):
        check_handled(values if isinstance(values, Mapping) else [values], f"variable {name!r}: ")
        raise ValueError(f"variable {name!r}: give its {what} as a list, not {values!r}")
    return list(values)


def check_range(name: str, ends: object) -> tuple[float, float]:
    """Return the ends of the range of a number.

    Raises
    ------
    ValueError
        If they are not two numbers in order, or their distance is no finite number.
    """
    pair = as_list(name, ends, "range")
    fit = len(pair) == 2 and all(is_real(x) and abs(x) <= sys.float_info.max for x in pair)
    low, high = map(float, pair) if fit else (1.0, 0.0)
    if not SHORTEST <= (high - low) / 2 < math.inf:
        right = "two finite numbers, the lower one first"
        raise ValueError(f"variable {name!r}: a range is {right}, not {ends!r}; give (low, high)")
    return low, high


def _listed(name, levels) -> tuple[str, ...]:
    """The levels of one variable as text; refuse an empty list and repeated levels."""
    texts = tuple(_level(name, level) for level in as_list(name, levels, "levels"))
    if not texts:
        raise ValueError(f"variable {name!r} has no level; list every value it may take")
    check_once(texts, f"variable {name!r} lists level", "list each level once")
    return texts


def _level(name, level) -> str:
    text = text_of(level)
    if isinstance(level, Iterable) and not isinstance(level, str):
        problem = f"{level!r} is among its levels; list them one by one"
    elif not text and not isinstance(level, str):
        problem = f"the missing value {level} is among its levels; take it out, or list ''"
    elif text != text.strip():
        problem = f"level {text!r} has blanks at its ends; take them out"
    elif UNPRINTABLE.search(text):
        problem = f"level {text!r} has a character that no report can hold; take it out"
    else:
        return text
    raise ValueError(f"variable {name!r}: {problem}")


def _parts(name, entry, missing) -> Parts:
    """The parts of a number's range; refuse a log scale if the range is not above 0."""
    low, high = check_range(name, entry["range"])
    scale = entry.get("scale", SCALES[0])
    if scale == "log" and not (low > 0 and high / low < math.inf):
        problem = f"a range on a log scale is well above 0, not from {number_text(low)}"
        raise ValueError(f"variable {name!r}: {problem}; begin it higher, or leave 'scale' out")
    return Parts(low, high, scale, missing)


def _edges(name, listed) -> tuple[float, ...]:
    """The edges of the levels of a number, checked."""
    given = as_list(name, listed, "edges")
    if odd := [edge for edge in given if not (is_real(edge) and abs(edge) <= sys.float_info.max)]:
        raise ValueError(f"variable {name!r}: an edge must be a finite number, not {odd[0]!r}")
    edges = tuple(float(edge) + 0.0 for edge in given)  # no negative zero
    if len(edges) < 3:
        raise ValueError(f"variable {name!r} has {len(edges)} edges; give three or more")
    for low, high in pairwise(edges):
        if not low < high:
            problem = f"edge {number_text(high)} follows {number_text(low)}"
            raise ValueError(f"variable {name!r}: {problem}; list them from lowest to highest")
    return edges


def _missing_codes(name, entry, levels) -> list:
    """The codes of missing values as text; the first one names their level.

    "refuse" has no codes. Codes may not equal each other or levels, numbers compared as numbers.
    """
    if isinstance(entry, str) and entry == REFUSE:
        return []
    codes = list(entry) if isinstance(entry, (list, tuple)) else [entry]
    if not codes or not all(map(_is_code, codes)):
        right = "'refuse', the name of a level or a list such as ['unknown', -9]"
        raise ValueError(f"variable {name!r}: missing must be {right}, not {entry!r}")
    texts = [number_text(code) if is_real(code) else _level(name, code) for code in codes]
    check_once(map(_compared, texts), f"variable {name!r} lists missing code", "list it once")
    others = {_compared(level): level for level in levels if level != texts[0]}
    for code in texts:
        if (level := others.get(_compared(code))) is not None:
            problem = f"missing code {code!r} is level {level!r} too"
            raise ValueError(f"variable {name!r}: {problem}; take it out of one of the two lists")
    if "" in levels:
        problem = f"has two levels for missing values, '' and {texts[0]!r}"
        raise ValueError(f"variable {name!r} {problem}; take '' out of its levels")
    return texts


def _is_code(code) -> bool:
    if isinstance(code, str):
        return bool(code.strip()) and code != REFUSE
    return is_whole(code) or (is_real(code) and math.isfinite(code))


def _compared(text: str) -> str:
    number = POINT.value(text)
    return text if number is None else number_text(number)
