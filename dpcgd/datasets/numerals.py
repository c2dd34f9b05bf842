"""How text writes a number: its decimal mark, and what parts its thousands."""

import re
from dataclasses import dataclass
from functools import cached_property

__all__ = ["POINT", "POINTS_PART_THOUSANDS", "Numerals", "check_numerals"]

DECIMALS = (".", ",")
"""A decimal mark is one of these."""

THOUSANDS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")
"""A mark between thousands is one of these; the last three are blanks."""

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
"""The text of a whole number, also where a program wrote it with a decimal point."""


@dataclass(frozen=True)
class Numerals:
    """A way to write numbers.

    Attributes
    ----------
    decimal : str
    thousands : str
        Empty text if nothing parts the thousands.

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
        """The same number with a decimal point and nothing else; None of what is no number."""
        if not self._pattern.fullmatch(text):
            return None
        whole = text.replace(self.thousands, "") if self.thousands else text
        return whole.replace(self.decimal, ".")

    def value(self, text: str) -> float | None:
        """The number, or None of what is none."""
        plain = self.plain(text)
        return None if plain is None else float(plain) + 0.0  # no negative zero

    def whole(self, text: str) -> str | None:
        """The digits of a whole number, or None of what is none, or has zeros in front."""
        match = WHOLE.fullmatch(self.plain(text) or "")
        return None if match is None else "0" if match[1] == "-0" else match[1]


POINT = Numerals()
"""Numbers are written like this unless somebody says otherwise."""

POINTS_PART_THOUSANDS = Numerals(",", ".")
"""The other way to read a number with points."""


def check_numerals(decimal: str | None, thousands: str | None) -> Numerals | None:
    """Return how a file writes numbers, None where nothing is said about it.

    Raises
    ------
    ValueError
        If a mark is none, or both are the same.
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
