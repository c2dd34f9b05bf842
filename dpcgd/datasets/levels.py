"""The levels that a variable may take and the codes of its missing values: public, each once."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

from dpcgd.datasets.arguments import check_name, check_once, is_real, is_whole
from dpcgd.datasets.numerals import POINT

__all__ = ["REFUSE", "check_levels", "levels_of", "missing_codes", "number_text", "text_of"]

REFUSE = "refuse"
"""A schema says this where a missing value, or one outside the edges, refuses the table."""

MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}
"""A value that is no text and prints like one of these is missing."""


def text_of(value: object) -> str:
    """The text of a value of a table; a missing value is empty text, as in a file.

    Examples
    --------
    >>> text_of(1.0), text_of(float("nan")), text_of("nan"), text_of(None)
    ('1.0', '', 'nan', '')
    """
    text = str(value)
    return "" if text in MISSING and not isinstance(value, str) else text


def check_levels(levels: Mapping[str, Iterable]) -> Mapping[str, tuple[str, ...]]:
    """Return the public domain as a read-only mapping of names to tuples of strings.

    Raises
    ------
    ValueError
        If there are fewer than two variables, a name is no text, a variable has no level, or a
        level comes twice, is missing, nested or has blanks at its ends.
    """
    check_variables(levels)
    return MappingProxyType({name: levels_of(name, listed) for name, listed in levels.items()})


def check_variables(public: object) -> None:
    """Refuse what is no mapping from the names of at least two variables.

    Raises
    ------
    ValueError
        If it is none.
    """
    if not isinstance(public, Mapping):
        raise ValueError(
            "levels must be a mapping from each variable's name to the list of its levels"
        )
    if len(public) < 2:
        raise ValueError(f"a causal graph needs at least two variables, this has {len(public)}")
    for name in public:
        check_name(name)


def as_list(name: str, values: Any, what: str) -> list:
    """Return values that stand in order as a list.

    Raises
    ------
    ValueError
        If they are text, have no order or are no several values.
    """
    if isinstance(values, (str, bytes, Set, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"variable {name!r}: give its {what} as a list, not {values!r}")
    return list(values)


def levels_of(name: str, levels: Any) -> tuple[str, ...]:
    """Return the levels of one variable as text.

    Raises
    ------
    ValueError
        If they are no list, there is none, or one comes twice or is no level.
    """
    texts = tuple(_level(name, level) for level in as_list(name, levels, "levels"))
    if not texts:
        raise ValueError(f"variable {name!r} has no level; list every value it may take")
    check_once(texts, f"variable {name!r} lists level", "list each level once")
    return texts


def _level(name, level) -> str:
    if isinstance(level, Iterable) and not isinstance(level, str):
        raise ValueError(f"variable {name!r} has {level!r} among its levels; list them one by one")
    text = text_of(level)
    if not text and not isinstance(level, str):
        raise ValueError(
            f"variable {name!r} has the missing value {level} among its levels; take it out, or "
            "list '' if 'not known' is an answer"
        )
    if text != text.strip():
        raise ValueError(f"variable {name!r}: level {text!r} has blanks at its ends; take them out")
    return text


def missing_codes(name: str, entry: Any, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of missing values as text; the first one names their level.

    Parameters
    ----------
    name : str
        The variable.
    entry : str, number or list of them
        What the schema says. ``"refuse"`` has no codes.
    levels : sequence of str
        No code is one of them, except the name of the level of missing values.

    Raises
    ------
    ValueError
        If it is none of these, or a code comes twice or is a level: numbers are compared as
        numbers.
    """
    if isinstance(entry, str) and entry == REFUSE:
        return ()
    codes = list(entry) if isinstance(entry, (list, tuple)) else [entry]
    if not codes or not all(map(_is_code, codes)):
        raise ValueError(
            f"variable {name!r}: missing must be 'refuse' or the name of a level, not {entry!r}; "
            "name one, such as 'unknown', or list the codes, such as ['unknown', -9]"
        )
    texts = tuple(number_text(code) if is_real(code) else _level(name, code) for code in codes)
    check_once(map(_compared, texts), f"variable {name!r} lists missing code", "list it once")
    others = {_compared(level): level for level in levels if level != texts[0]}
    for code in texts:
        if (level := others.get(_compared(code))) is not None:
            raise ValueError(
                f"variable {name!r}: missing code {code!r} is level {level!r} too; take it out of "
                "one of the two lists"
            )
    return texts


def number_text(number: Any) -> str:
    """The shortest text of a number, without a decimal point where it is whole."""
    if is_whole(number):
        return str(int(number))
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _is_code(code) -> bool:
    if isinstance(code, str):
        return bool(code.strip()) and code != REFUSE
    return is_whole(code) or (is_real(code) and math.isfinite(code))


def _compared(text: str) -> str:
    number = POINT.value(text)
    return text if number is None else number_text(number)
