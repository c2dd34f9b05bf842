"""Columns of a table by name, with their texts as positions in public levels."""

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_once, check_whole, is_real
from dpcgd.datasets.variable import POINT, Numerals, Variable, number_text, text_of

__all__ = ["Column", "as_table", "check_columns", "check_rows_per_person", "frame_codes"]

POINTS_PART_THOUSANDS = Numerals(",", ".")
"""The second way to read a number with points: they separate thousands."""

NOTATIONS = {("decimal", "."): POINT, ("decimal", ","): Numerals(",")}
NOTATIONS |= {("thousands", "."): POINTS_PART_THOUSANDS, ("thousands", ","): Numerals(".", ",")}
"""Notations of numbers, by the argument of a file that asks for it, and the mark."""

FRAME = "the frame"
"""The name in messages of a table that comes from no file."""

MOST_TEXTS = 1 << 16
"""The most different texts that a column remembers; after more, it looks all up again."""

FEW_DIGITS = "^-?[0-9]{1,15}([.][0-9]{0,15})?$"
"""Pattern of numbers that all rules read in the same way."""

DATE = re.compile(r"\d{1,4}([-./:])\d{1,2}\1\d{1,4}(?![\d.])")
"""The beginning of a date or of a time of day with seconds, and not that of a network address."""

ALIKE = ("boolean", "categorical", "integer", "string")
"""Kinds of columns whose values are equal only if their texts are."""

NO_PATH = "path must be the path of a file; for a DataFrame use Dataset.from_pandas"
"""The message of a function that reads files, for any other argument."""


class Column(dict[str, int]):
    """One column of a table, with the positions of its texts; equal texts are looked up once.

    Parameters
    ----------
    source : str or path
        The name of the table in messages.
    variable : Variable
    numerals : Numerals or None
        How the texts write numbers, if an argument says so.

    Examples
    --------
    >>> column = Column(FRAME, Variable("smoke", ("no", "yes")))
    >>> column.codes(["yes", "no", "yes"]).tolist()
    [1, 0, 1]
    """

    def __init__(self, source: Any, variable: Variable, numerals: Numerals | None = POINT):
        super().__init__()
        self.source, self.variable, self.numerals = source, variable, numerals
        self._smallest = np.min_scalar_type(-len(variable.levels))  # -1 is for what is refused
        self._fits_both = numerals is None  # as far as is known
        self._pointed = ""  # the first number with a point

    def __missing__(self, text: str) -> int:
        if len(self) >= MOST_TEXTS:
            self.clear()
        self[text] = position = self.variable.position(text, self.numerals or POINT)
        if self._fits_both and "." in text and self.variable.is_plain_number(text):
            self._fits_both = self.variable.position(text, POINTS_PART_THOUSANDS) >= 0
            self._pointed = self._pointed or text
        return position

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
            If a missing value is refused, or a value is outside the levels or edges, or no number.
        """
        return self.checked(self.positions(texts), texts.__getitem__, first)

    def positions(self, texts: Sequence[str]) -> np.ndarray:
        """Positions of texts in the levels, -1 for refused texts."""
        return np.fromiter(map(self.__getitem__, texts), self._smallest, len(texts))

    def codes_of_arrow(self, values, first: int = 0) -> np.ndarray:
        """Codes of an Arrow array of records, as :meth:`codes` gives them for texts.

        Numbers are compared with edges directly; other values are looked up by their text.

        Raises
        ------
        ValueError
            As for :meth:`codes`, or if a record holds several values, or an ordered dictionary has
            another order than the levels.

        Examples
        --------
        >>> import pyarrow as pa
        >>> age = Column(FRAME, Variable.from_schema("age", {"edges": [15, 25, 50]}))
        >>> age.codes_of_arrow(pa.array([24.5, 25])), age.codes_of_arrow(pa.array(["24.5", "+25"]))
        (array([0, 1], dtype=int8), array([0, 1], dtype=int8))
        """
        from pyarrow import BaseExtensionType, types

        if types.is_nested(kind := values.type) or isinstance(kind, BaseExtensionType):
            problem = f"column {self.variable.name!r} of {self.source} holds {kind}"
            raise ValueError(f"{problem}, no plain value a record; make plain columns of it")
        if self.variable.cuts is not None and (types.is_integer(kind) or types.is_floating(kind)):
            numbers = values.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            codes = self.variable.positions_of_numbers(numbers)
        else:
            if not types.is_dictionary(kind):
                values = values.dictionary_encode()
            different, places = values.dictionary, values.indices.cast("int32")
            if self.variable.ordered and getattr(kind, "ordered", False):
                self.check_order(map(text_of, different.to_pylist()))
            if places.null_count:  # to fill them, to_numpy and scalars load pandas
                places = places.fill_null(-1)
            every = np.append(self._positions_of_arrow(different), self[""])  # last, the missing
            codes = every.take(np.from_dlpack(places).astype(int))
        return self.checked(codes, lambda row: text_of(values[row].as_py()), first)

    def _positions_of_arrow(self, different) -> np.ndarray:
        """Positions of an array of values; numbers of few digits are read together."""
        texts = [*map(text_of, different.to_pylist())]
        asks = self._fits_both and any("." in text for text in texts)
        is_text = "string" in str(different.type) and not different.null_count
        if not is_text or asks or self.variable.cuts is None or self.numerals not in (None, POINT):
            return self.positions(texts)
        from pyarrow.compute import match_substring_regex

        plain = match_substring_regex(different := different.cast("string"), FEW_DIGITS)
        is_plain = np.array(plain.to_pylist(), bool)
        positions = np.empty(len(texts), self._smallest)
        numbers = np.from_dlpack(different.filter(plain).cast("float64"))
        positions[is_plain] = self.variable.positions_of_numbers(numbers)
        positions[~is_plain] = self.positions([texts[i] for i in np.flatnonzero(~is_plain)])
        return positions

    def checked(self, codes: np.ndarray, text_at: Callable[[int], str], first: int) -> np.ndarray:
        """The codes of some records; refuse a code of -1.

        Raises
        ------
        ValueError
            If a code is -1; the message names the record and the cure.
        """
        if codes.min(initial=0) < 0:
            self.check_points()
            row = int(np.argmin(codes))
            where = f"{self.source}, record {first + row + 1}, column {self.variable.name!r}"
            raise ValueError(f"{where}: {self._refusal(text_at(row))}")
        return codes.astype(self._smallest, copy=False)

    def _refusal(self, text) -> str:
        """Why a value is refused, in words for the data holder."""
        cuts, cure = self.variable.cuts, "correct the value"
        fits = [
            f"{argument}={mark!r}"
            for (argument, mark), numerals in NOTATIONS.items()
            if mark in text and numerals.plain(text)
        ]
        if text == "":
            return "the value is missing; drop or impute such records, or give 'missing' a level"
        if text != text.strip():
            return f"{text!r} has blanks at its ends; take them out"
        if cuts is None:
            levels = ", ".join(self.variable.levels)
            return f"{text!r} is not among the levels {levels}; {cure} or add it to the schema"
        if (self.numerals or POINT).plain(text):
            ends = " to ".join(map(number_text, (cuts[0], cuts[-1])))
            return f"{text!r} is outside {ends}; {cure}, or let outside be 'clip' in the schema"
        if fits:
            cure = "use a decimal point" if self.source == FRAME else f"pass {' or '.join(fits)}"
            return f"{text!r} is no number in this notation; {cure}"
        if DATE.match(text):
            return f"{text!r} is a date or a time; put a number of days or hours in its place"
        missing = f'"missing": ["{self.variable.missing or "unknown"}", "{text}"]'
        return f"{text!r} is no number; {cure}, or list levels in the schema, or {missing}"

    def check_order(self, categories: Iterable):
        """Check that the categories of an ordered column are in the order of the levels.

        Raises
        ------
        ValueError
            If they are not. Categories that are no level, and that of missing values, do not count.
        """
        levels = self.variable.levels
        positions = [self.variable.position(str(category)) for category in categories]
        known = [p for p in positions if p >= 0 and levels[p] != self.variable.missing]
        if known != sorted(known):
            names, right = (", ".join(levels[p] for p in order) for order in (known, sorted(known)))
            orders = f"{names}, in the schema as {right}; give both one order"
            raise ValueError(f"{self.variable.name!r} of {self.source} is ordered as {orders}")

    def check_points(self):
        """Refuse numbers that can be read in two ways, if no argument says how numbers are written.

        Raises
        ------
        ValueError
            If every point so far may separate thousands as well as decimals, and both readings fit.
        """
        if self._fits_both and (text := self._pointed):
            both = f"{POINT.value(text):g} or {POINTS_PART_THOUSANDS.plain(text)}"
            where = f"{self.source}, column {self.variable.name!r}: {text!r} may be {both}"
            raise ValueError(f"{where}; pass decimal='.' or thousands='.', or use pd.to_numeric")


def as_table(frame):
    """A pandas DataFrame, or the batches of another table with an Arrow stream.

    Raises
    ------
    ValueError
        If the table is neither, or pyarrow is not installed.
    """
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    with suppress(ImportError, TypeError, ValueError):  # it is no table, or there is no pyarrow
        from pyarrow import RecordBatchReader

        return RecordBatchReader.from_stream(frame)
    kind = f"{type(frame).__name__} of {type(frame).__module__.partition('.')[0]}"
    cure = "name the columns with pd.DataFrame(values, columns=names)"
    if hasattr(frame, "to_pandas"):
        cure = "install pyarrow, or convert it with frame.to_pandas()"
    raise ValueError(f"frame must be a pandas DataFrame, not a {kind}; {cure}")


def frame_codes(table, variables: Mapping[str, Variable], *which) -> np.ndarray:
    """Codes of the columns of a table, one column of the result for each variable.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.RecordBatchReader
        The result of :func:`as_table`.
    variables : mapping of str to Variable
    *which
        The columns to ignore, as for :func:`check_columns`.

    Raises
    ------
    ValueError
        If the columns are not the variables, a value does not fit its variable, the points of a
        column of text may separate thousands, or a categorical column has another order than its
        variable.
    """
    is_pandas = hasattr(table, "columns")
    names = table.columns if is_pandas else table.schema.names
    check_columns(FRAME, list(names), variables, *which)
    if is_pandas:
        return np.column_stack([_frame_column(table[name], v) for name, v in variables.items()])
    kinds = [str(table.schema.field(name).type) for name in variables]
    pairs = zip(variables.values(), kinds, strict=True)
    columns = [Column(FRAME, v, None if "string" in kind else POINT) for v, kind in pairs]
    return joined(coded(table, columns), columns)


def coded(batches: Iterable, columns: Sequence[Column], first: int = 0) -> Iterator[list]:
    """Codes of Arrow batches; the first batch begins with this record of the table."""
    for batch in batches:
        yield [c.codes_of_arrow(batch.column(c.variable.name), first) for c in columns]
        first += batch.num_rows


def joined(batches: Iterable[list[np.ndarray]], columns: Sequence[Column]) -> np.ndarray:
    """Codes of all batches, each an array a column; refuse points that may separate thousands."""
    empty = [np.empty(0, np.uint8)] * len(columns)
    codes = np.column_stack([*map(np.concatenate, zip(empty, *batches, strict=True))])
    for column in columns:
        column.check_points()
    return codes


def _frame_column(values, variable: Variable) -> np.ndarray:
    """Codes of one column: numbers are compared with edges directly, other values by their text."""
    import pandas as pd

    kind, infer = values.dtype, partial(pd.api.types.infer_dtype, skipna=True)
    if variable.cuts is not None and kind.kind in "iuf":
        codes = variable.positions_of_numbers(values.to_numpy(float, na_value=np.nan))
        return Column(FRAME, variable).checked(codes, lambda row: text_of(values.iloc[row]), 0)
    places = np.arange(len(values))
    if infer(values) in ALIKE:
        places, values = pd.factorize(values)
    texts = [*map(text_of, values := values.astype(object)), ""]  # last, the missing
    column = Column(FRAME, variable, None if infer(values) == "string" else POINT)
    if variable.ordered and variable.cuts is None and getattr(kind, "ordered", False):
        column.check_order(kind.categories)
    codes = column.positions(texts).take(places)
    column.checked(codes, lambda row: texts[places[row]], 0)
    column.check_points()
    return codes


def check_columns(source, names: list, public: Mapping, ignore: Iterable, columns: Any = None):
    """Check that a table has exactly the public variables and the ignored columns, each once.

    Parameters
    ----------
    source : str or path
        The source of the table.
    names : list
        The names of its columns.
    public : mapping
        Map from each variable to its public description.
    ignore : iterable of str
        Columns that are no variables.
    columns : {"schema"}, optional
        Whether to ignore all columns that are no variable.

    Raises
    ------
    ValueError
        If a name occurs twice, `ignore` is no list, or names a variable or no column, the other
        columns are not the variables, or `columns` has another value.
    """
    if columns not in (None, "schema"):
        raise ValueError(f"columns must be 'schema', or be left out, not {columns!r}")
    check_once(names, f"{source} names column", "rename one of the two")
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(f"ignore must be a list of columns, such as ['id'], not {ignore!r}")
    ignore = list(ignore)
    for name in ignore:
        if name not in names:
            near = difflib.get_close_matches(str(name), map(str, names), n=1)
            cure = f"did you mean {near[0]!r}?" if near else "correct the name"
            raise ValueError(f"ignore or ids: {name!r} is no column of {source}; {cure}")
        if name in public:
            raise ValueError(f"column {name!r} is in ignore and in the schema; take it out of one")
    for name in names:
        if columns is None and name not in public and name not in ignore:
            raise ValueError(f"column {name!r} of {source} {_unknown(name)}")
    cure = "add the column or take it out of the schema"
    for name in public:
        if name not in names:
            raise ValueError(f"{source} has no column {name!r}, which is in the schema; {cure}")


def _unknown(name) -> str:
    if not isinstance(name, str):
        return "has a name that is not text; rename it: frame.columns = frame.columns.map(str)"
    if name != name.strip():
        return "has blanks at the ends of its name; take them out, and out of the values too"
    cure = "add it to the schema, pass columns='schema'"
    return f"is not in the schema; {cure}, or pass ignore=[{name!r}]"


NO_COLUMN = "ids must be one column, an entry a row; give the column of a DataFrame"


def check_rows_per_person(ids: Iterable, rows_per_person: int, n: int | None = None) -> None:
    """Check that no person has more rows than a public bound.

    Parameters
    ----------
    ids : iterable
        The person of each row, such as the column of a DataFrame. Ids are compared as text without
        blanks at its ends: 7 and ``"7"`` are one person. Decimals with a whole value count as whole
        numbers: 7.0 and ``"7.0"`` are also person 7, because columns with gaps are written like
        this. ``"07"`` is another person.
    rows_per_person : int
        The bound, fixed without using the table.
    n : int, optional
        The number of records, which must equal the number of ids.

    Raises
    ------
    ValueError
        If a person has more rows; the message does not say who, or how many. If an id is missing or
        blank, there are no rows, or not `n`, or `ids` is a table, a text, a set or a mapping.

    Privacy
    -------
    None: the refusal depends on the records. The curator checks before the run, repairs by a rule
    that was fixed beforehand (such as keeping the k earliest rows of each person), and publishes
    nothing about the outcome. The run would not protect a person with too many rows.

    Notes
    -----
    A bound protects people with several rows, but does not correct inference: tests, probabilities
    and error bars treat every row as a different person. See the book's page on your own table.

    Examples
    --------
    >>> check_rows_per_person(["ann", "bob", "ann"], 2)
    >>> check_rows_per_person(["ann", "bob", "ann"], 1)
    Traceback (most recent call last):
    ...
    ValueError: a person has more rows than rows_per_person = 1; keep so many of each by ...
    """
    check_whole("rows_per_person", rows_per_person, 1)
    counted = _counted(ids)
    total = counted.total()
    if total == 0:
        raise ValueError("ids is empty; give an entry for each row of the table")
    if n is not None and total != n:
        raise ValueError(f"ids has {total} entries for {n} records; give one for each row")
    rows: Counter = Counter()
    for value, count in counted.items():
        rows[_person(value)] += count
    if max(rows.values()) > rows_per_person:
        problem = f"a person has more rows than rows_per_person = {rows_per_person}"
        raise ValueError(f"{problem}; keep so many of each by a rule, or give a larger bound")


def _counted(ids) -> Counter:
    """The frequency of each id in the single given column."""
    no_column = isinstance(ids, (str, bytes, Mapping, Set)) or hasattr(ids, "columns")
    if no_column or not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) != 1:
        raise ValueError(NO_COLUMN)
    try:
        return Counter(value.as_py() if hasattr(value, "as_py") else value for value in ids)
    except TypeError:  # an entry is a list or a row
        raise ValueError(NO_COLUMN) from None


def _person(value: Any) -> str | tuple:
    """An id in a form that is equal for all ids of one person."""
    if isinstance(value, tuple):
        return tuple(map(_person, value))
    if is_real(value) and math.isfinite(value) and value == int(value):
        return str(int(value))
    text = text_of(value).strip()
    if not text:
        raise ValueError("a row belongs to nobody; give it the id of its person, or drop it")
    return POINT.whole(text) or text
