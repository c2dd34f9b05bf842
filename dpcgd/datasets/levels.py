"""The levels that a variable may take: public, listed in order, each once."""

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType

import pandas as pd

from dpcgd.datasets.arguments import check_name, check_once

__all__ = ["check_level", "check_levels", "check_variables", "levels_of"]


def check_levels(levels: Mapping[str, Iterable]) -> Mapping[str, tuple[str, ...]]:
    """Return the public domain as a read-only mapping of names to tuples of strings.

    Raises
    ------
    ValueError
        If there are fewer than two variables, a name is no text, a variable has no level, or a
        level comes twice, is missing, nested or has blanks at its ends.
    """
    check_variables(levels)
    return MappingProxyType({name: levels_of(name, of) for name, of in levels.items()})


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


def levels_of(name: str, levels) -> tuple[str, ...]:
    """Return the levels of one variable as text.

    Raises
    ------
    ValueError
        If they are no list, there is none, or one comes twice or is no level.
    """
    if isinstance(levels, (str, bytes, Set, Mapping)) or not isinstance(levels, Iterable):
        raise ValueError(f"variable {name!r}: give its levels as a list, not {levels!r}")
    levels = tuple(check_level(name, level) for level in levels)
    if not levels:
        raise ValueError(f"variable {name!r} has no level; list every value it may take")
    check_once(levels, f"variable {name!r} lists level", "list each level once")
    return levels


def check_level(name: str, level) -> str:
    """Return one level as text.

    Raises
    ------
    ValueError
        If it is missing, nested or has blanks at its ends.
    """
    if isinstance(level, Iterable) and not isinstance(level, str):
        raise ValueError(f"variable {name!r} has {level!r} among its levels; list them one by one")
    if pd.isna(level):
        raise ValueError(
            f"variable {name!r} has the missing value {level} among its levels; take it out, or "
            "list '' if 'not known' is an answer"
        )
    text = str(level)
    if text != text.strip():
        raise ValueError(f"variable {name!r}: level {text!r} has blanks at its ends; take them out")
    return text
