"""Columns of a table, taken by name, and their values as positions in public levels."""

import difflib
from collections.abc import Iterable, Mapping

import pandas as pd

from dpcgd.datasets.arguments import check_once

__all__ = [
    "FRAME",
    "NO_PATH",
    "as_text",
    "check_columns",
    "check_frame",
    "is_text",
    "wrong_value",
]

FRAME = "the frame"
"""What messages call a table that comes from no file."""

NO_PATH = "path must be the path of a file; for a DataFrame use Dataset.from_pandas"
"""What a reader of files says of anything else."""


def check_frame(frame, public: Mapping, ignore: Iterable, where: str = "schema"):
    """Check that a DataFrame has the columns of the public variables and those to ignore.

    Raises
    ------
    ValueError
        If it is none, or as :func:`check_columns` does.
    """
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"frame must be a pandas DataFrame, not {_kind_and_cure(frame)}")
    check_columns(FRAME, list(frame.columns), public, ignore, where)


def _kind_and_cure(frame) -> str:
    kind = type(frame)
    if hasattr(kind, "to_pandas"):
        package = kind.__module__.partition(".")[0]
        return f"a {kind.__name__} of {package}; convert it with frame.to_pandas()"
    return f"{kind.__name__}; name the columns with pd.DataFrame(values, columns=names)"


def check_columns(source, names: list, public: Mapping, ignore: Iterable, where: str = "schema"):
    """Check that a table has the columns of the public variables and those to ignore, each once.

    Parameters
    ----------
    source : str or path
        Where the table comes from.
    names : list
        The names of its columns.
    public : mapping
        From each variable to what is public about it.
    ignore : iterable of str
        Columns that are no variables.
    where : str
        What the messages call that mapping.

    Raises
    ------
    ValueError
        If a name comes twice, `ignore` is no list, names a variable or no column, or the other
        columns are not the variables.
    """
    check_once(names, f"{source} names column", "rename one of the two")
    ignore = _check_ignore(source, names, public, ignore, where)
    for name in names:
        if name not in public and name not in ignore:
            raise ValueError(_unknown(source, name, where))
    absent = [name for name in public if name not in names]
    if absent:
        raise ValueError(
            f"{source} has no column {absent[0]!r}, which is in the {where}; "
            f"add the column or take it out of the {where}"
        )


def _check_ignore(source, names, public, ignore, where) -> list:
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(
            f"ignore must be a list of columns, not {ignore!r}; give a list, such as ignore=['id']"
        )
    ignore = list(ignore)
    for name in ignore:
        if name not in names:
            near = difflib.get_close_matches(str(name), [str(other) for other in names], n=1)
            cure = f"did you mean {near[0]!r}?" if near else "take it out of ignore"
            raise ValueError(f"ignore names {name!r}, which is no column of {source}; {cure}")
        if name in public:
            raise ValueError(
                f"column {name!r} is both in the {where} and in ignore; take it out of one of them"
            )
    return ignore


def _unknown(source, name, where) -> str:
    if not isinstance(name, str):
        return (
            f"the name of column {name!r} of {source} is not text; "
            "rename the columns, as with frame.columns = frame.columns.map(str)"
        )
    if name != name.strip():
        return (
            f"the name of column {name!r} of {source} has blanks at its ends; "
            "take them out, and out of the values too"
        )
    return (
        f"column {name!r} of {source} is not in the {where}; "
        f"add it to the {where}, or pass ignore=[{name!r}]"
    )


def as_text(column: pd.Series) -> pd.Series:
    """The values as text; one that is missing is empty text, as in a file."""
    return column.astype(object).map(str).where(column.notna(), "")


def is_text(column: pd.Series) -> bool:
    """Whether all values are text, missing ones aside."""
    categories = getattr(column.dtype, "categories", None)
    values = column if categories is None else categories
    return pd.api.types.infer_dtype(values, skipna=True) == "string"


def wrong_value(source, name: str, row: int, value: str, says: str) -> ValueError:
    """What to raise about the value of a record, in words for whoever holds the data."""
    where = f"{source}, record {row + 1}, column {name!r}"
    if value == "":
        return ValueError(
            f"{where}: the value is missing; drop or impute such records first, or let the schema "
            "give missing values a level, as with 'missing': 'unknown'"
        )
    return ValueError(f"{where}: {value!r} {says}")
