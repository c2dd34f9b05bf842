"""Columns of a table: taken by name, and their texts as positions in public levels."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_once
from dpcgd.datasets.levels import text_of
from dpcgd.datasets.numerals import POINT, Numerals
from dpcgd.datasets.variable import Variable

__all__ = ["FRAME", "NO_PATH", "Column", "check_columns", "check_frame", "frame_codes"]

FRAME = "the frame"
"""Messages call a table so that comes from no file."""

NO_PATH = "path must be the path of a file; for a DataFrame use Dataset.from_pandas"
"""A reader of files says so of anything else."""


class _Positions(dict[str, int]):
    """Positions of the texts of a column in the levels of its variable, by text."""

    def __init__(self, variable: Variable, numerals: Numerals):
        super().__init__()
        self._variable, self._numerals = variable, numerals

    def __missing__(self, text: str) -> int:
        self[text] = position = self._variable.position(text, self._numerals)
        return position


class Column:
    """One column of a table: what its texts stand for is looked up once for all that are alike.

    Parameters
    ----------
    source : str or path
        What messages call the table.
    variable : Variable
    numerals : Numerals or None
        How the texts write numbers, if somebody has said so.

    Examples
    --------
    >>> column = Column(FRAME, Variable("smoke", ("no", "yes")))
    >>> column.codes(["yes", "no", "yes"]).tolist()
    [1, 0, 1]
    """

    def __init__(self, source: Any, variable: Variable, numerals: Numerals | None = POINT):
        self.source, self.variable, self.numerals = source, variable, numerals
        self._smallest = np.min_scalar_type(-len(variable.levels))  # -1 is for what is refused
        self._known = _Positions(variable, numerals or POINT)

    def codes(self, texts: Sequence[str], first: int = 0) -> np.ndarray:
        """Codes of some records; a missing value is empty text.

        Parameters
        ----------
        texts : sequence of str
        first : int
            Number of the first of these records in the table.

        Raises
        ------
        ValueError
            If a value is missing where that is refused, outside the levels or edges, or no number
            where it should be one.
        """
        return self.checked(self.positions(texts), texts.__getitem__, first)

    def positions(self, texts: Sequence[str]) -> np.ndarray:
        """Positions of texts in the levels, -1 of what is refused."""
        return np.fromiter(map(self._known.__getitem__, texts), self._smallest, len(texts))

    def checked(self, codes: np.ndarray, text_at: Callable[[int], str], first: int) -> np.ndarray:
        """These codes of some records, unless one of them is -1.

        Raises
        ------
        ValueError
            If one is: the message names the record and the cure.
        """
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            self.check_points()
            numerals = self.numerals or POINT
            raise self.variable.refused(self.source, first + row, text_at(row), numerals)
        return codes

    def check_points(self):
        """Ask, if nobody has said how numbers are written, what can be read in two ways.

        Raises
        ------
        ValueError
            If every point so far may part thousands as well as decimals, and both fit.
        """
        if self.numerals is None:
            self.variable.check_points(self.source, self._known)


def frame_codes(frame, variables: Mapping[str, Variable]) -> np.ndarray:
    """Codes of the columns of a DataFrame, one column of the result for each variable.

    Raises
    ------
    ValueError
        If a value does not fit its variable, the points of a column of text may part thousands, or
        a categorical column stands in another order than its variable.
    """
    import pandas as pd

    codes = []
    for name, variable in variables.items():
        if variable.ordered and getattr(frame[name].dtype, "ordered", False):
            variable.check_order(FRAME, frame[name].dtype.categories)
        values = frame[name].astype(object)
        is_text = pd.api.types.infer_dtype(values, skipna=True) == "string"
        column = Column(FRAME, variable, None if is_text else POINT)
        codes.append(column.codes(list(map(text_of, values))))
        column.check_points()
    return np.column_stack(codes)


def check_frame(frame, public: Mapping, ignore: Iterable, where: str = "schema"):
    """Check that a DataFrame has the columns of the public variables and those to ignore.

    Raises
    ------
    ValueError
        If it is none, or as :func:`check_columns` does.
    """
    import pandas as pd

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
