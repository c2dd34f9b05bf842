"""Codes of missing values, such as 99 or "NA": what a schema may say about them."""

import math
from collections.abc import Sequence
from typing import Any

from dpcgd.datasets.arguments import check_once, is_real, is_whole
from dpcgd.datasets.levels import check_level
from dpcgd.datasets.numerals import POINT

__all__ = ["REFUSE", "check_apart", "missing_codes", "number_text"]

REFUSE = "refuse"
"""A schema says this where such a value refuses the table."""


def missing_codes(name: str, said: Any) -> tuple[str, ...]:
    """Return the codes of missing values as text; the first one names their level.

    Parameters
    ----------
    name : str
        The variable.
    said : str, number or list of them
        ``"refuse"`` has no codes.

    Raises
    ------
    ValueError
        If it is none of these, or a code comes twice: numbers are compared as numbers.
    """
    if isinstance(said, str) and said == REFUSE:
        return ()
    codes = list(said) if isinstance(said, (list, tuple)) else [said]
    if not codes or not all(map(_is_code, codes)):
        raise ValueError(
            f"variable {name!r}: missing must be 'refuse' or the name of a level, not {said!r}; "
            "name one, such as 'unknown', or list the codes, such as ['unknown', -9]"
        )
    texts = tuple(number_text(code) if is_real(code) else check_level(name, code) for code in codes)
    check_once(map(_compared, texts), f"variable {name!r} lists missing code", "list it once")
    return texts


def check_apart(name: str, codes: Sequence[str], levels: Sequence[str]):
    """Check that no code of missing values is a level too, but for the name of their own level.

    Raises
    ------
    ValueError
        If one is, or is the same number.
    """
    held = {_compared(level): level for level in levels if level != codes[0]}
    for code in codes:
        level = held.get(_compared(code))
        if level is not None:
            raise ValueError(
                f"variable {name!r}: missing code {code!r} is level {level!r} too; take it out of "
                "one of the two lists"
            )


def number_text(number) -> str:
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
