"""Columns of a table: taken by name, and their texts as positions in public levels."""

import difflib
import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_once, check_whole, is_real
from dpcgd.datasets.variable import POINT, Numerals, Variable, number_text, text_of

__all__ = [
    "Column",
    "as_table",
    "check_columns",
    "check_flat",
    "check_frame",
    "check_rows_per_person",
    "frame_codes",
    "joined",
]

POINTS_PART_THOUSANDS = Numerals(",", ".")
"""The other way to read a number with points."""

FRAME = "the frame"
"""Messages call a table so that comes from no file."""

SCHEMA = "schema"
"""Whoever asks for these columns wants those of the schema and no other."""

MOST_TEXTS = 1 << 16
"""A column that has met more different texts forgets them, and looks them up again."""

FEW_DIGITS = "^-?[0-9]{1,15}([%s][0-9]{0,15})?$"
"""Such numbers, with this decimal mark, are the same by all rules that read them."""

FIRST_POINTS = 100
"""So few numbers with points usually tell that these part decimals."""

NO_PATH = "path must be the path of a file; for a DataFrame use Dataset.from_pandas"
"""A reader of files says so of anything else."""


class Column(dict[str, int]):
    """One column of a table: positions of its texts, looked up once for all that are alike.

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
            If a value is missing where that is refused, outside the levels or edges, or no number
            where it should be one.
        """
        return self.checked(self.positions(texts), texts.__getitem__, first)

    def positions(self, texts: Sequence[str]) -> np.ndarray:
        """Positions of texts in the levels, -1 of what is refused."""
        return np.fromiter(map(self.__getitem__, texts), self._smallest, len(texts))

    def codes_of_arrow(self, values, first: int = 0) -> np.ndarray:
        """Codes of an Arrow array of records, as :meth:`codes` has them of texts.

        Numbers go between edges as they are; of all else the different values are looked up.

        Raises
        ------
        ValueError
            As there, or if an ordered dictionary stands in another order than the levels.

        Examples
        --------
        >>> import pyarrow as pa
        >>> age = Column(FRAME, Variable.from_schema("age", {"edges": [15, 25, 50]}))
        >>> age.codes_of_arrow(pa.array([24.5, 25])), age.codes_of_arrow(pa.array(["24.5", "+25"]))
        (array([0, 1], dtype=int8), array([0, 1], dtype=int8))
        """
        from pyarrow import types

        kind = values.type
        if self.variable.cuts is not None and (types.is_integer(kind) or types.is_floating(kind)):
            numbers = values.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            codes = self.variable.positions_of_numbers(numbers)
        else:
            if not types.is_dictionary(kind):
                values = values.dictionary_encode()
            if self.variable.ordered and getattr(kind, "ordered", False):
                self.check_order(map(text_of, values.dictionary.to_pylist()))
            different = values.dictionary
            if _is_text(different.type):
                different = different.cast("string")
            places = values.indices.cast("int32").fill_null(-1).to_numpy()
            seen = np.bincount(places + 1, minlength=len(different) + 1) > 0
            known = np.full(len(seen), self[""] if seen[0] else -1, self._smallest)
            known[:-1][seen[1:]] = self._positions_of_arrow(different.filter(seen[1:]))
            codes = known.take(places)
        return self.checked(codes, lambda row: text_of(values[row].as_py()), first)

    def _positions_of_arrow(self, texts) -> np.ndarray:
        """Positions of different values; numbers of few digits are read all together."""
        import pyarrow.compute as pc
        from pyarrow import array

        if self.variable.cuts is None or texts.type != "string":
            return self.positions([*map(text_of, texts.to_pylist())])
        mark = (self.numerals or POINT).decimal
        codes = [self.variable.missing or "", *self.variable.codes_of_missing]
        is_code = pc.is_in(texts, array(codes, "string"))
        plain = pc.and_not(pc.match_substring_regex(texts, FEW_DIGITS % mark), is_code)
        pointed = texts.filter(pc.and_(plain, pc.match_substring(texts, ".")))
        for some in (pointed[:FIRST_POINTS], pointed):
            if self._fits_both:
                self.positions(some.to_pylist())
        numbers = pc.replace_substring(texts.filter(plain), mark, ".").cast("float64")
        is_plain = plain.to_numpy(zero_copy_only=False)
        positions = np.empty(len(texts), self._smallest)
        positions[is_plain] = self.variable.positions_of_numbers(numbers.to_numpy())
        positions[~is_plain] = self.positions(texts.filter(pc.invert(plain)).to_pylist())
        return positions

    def checked(self, codes: np.ndarray, text_at: Callable[[int], str], first: int) -> np.ndarray:
        """These codes of some records, unless one of them is -1.

        Raises
        ------
        ValueError
            If one is: the message names the record and the cure.
        """
        if codes.min(initial=0) < 0:
            self.check_points()
            row = int(np.argmin(codes))
            where = f"{self.source}, record {first + row + 1}, column {self.variable.name!r}"
            raise ValueError(f"{where}: {self._refusal(text_at(row))}")
        return codes.astype(self._smallest, copy=False)

    def _refusal(self, text) -> str:
        """What is wrong with a value, in words for whoever holds the data."""
        cuts, cure = self.variable.cuts, "correct the value"
        marks = [self.numerals or POINT, POINT, POINTS_PART_THOUSANDS, Numerals(",")]
        is_number, *any_mark = (numerals.value(text) is not None for numerals in marks)
        if text == "":
            return "the value is missing; drop or impute such records, or give 'missing' a level"
        if cuts is None:
            levels = ", ".join(self.variable.levels)
            return f"{text!r} is not among the levels {levels}; {cure} or add it to the schema"
        if is_number:
            ends = " to ".join(map(number_text, (cuts[0], cuts[-1])))
            return f"{text!r} is outside {ends}; {cure}, or let outside be 'clip' in the schema"
        if any(any_mark):
            return f"{text!r} is no number with a decimal point; pass decimal= or thousands="
        return f"{text!r} is no number; {cure}, or list levels in the schema"

    def check_order(self, categories: Iterable):
        """Check that the categories of an ordered column stand in the order of the levels.

        Raises
        ------
        ValueError
            If they do not, those aside that are no level, or that of missing values.
        """
        levels = self.variable.levels
        positions = [self.variable.position(str(category)) for category in categories]
        names = [levels[position] for position in positions if position >= 0]
        names = [name for name in names if name != self.variable.missing]
        right = sorted(names, key=levels.index)
        if names != right:
            orders = f"{', '.join(names)}, in the schema as {', '.join(right)}; give both one order"
            raise ValueError(f"{self.variable.name!r} of {self.source} is ordered as {orders}")

    def check_points(self):
        """Ask, if nobody has said how numbers are written, what can be read in two ways.

        Raises
        ------
        ValueError
            If every point so far may part thousands as well as decimals, and both fit.
        """
        if self._fits_both and (text := self._pointed):
            both = f"{POINT.value(text):g} or {POINTS_PART_THOUSANDS.plain(text)}"
            where = f"{self.source}, column {self.variable.name!r}: {text!r} may be {both}"
            raise ValueError(f"{where}; pass decimal='.' or thousands='.', or use pd.to_numeric")


def as_table(frame):
    """A DataFrame of pandas as it is, and of any other with an Arrow stream its batches.

    Raises
    ------
    ValueError
        If it is neither, or there is no pyarrow to read the stream.
    """
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    kind = f"{type(frame).__name__} of {type(frame).__module__.partition('.')[0]}"
    cure = "name the columns with pd.DataFrame(values, columns=names)"
    if hasattr(frame, "__arrow_c_stream__"):
        if importlib.util.find_spec("pyarrow") is None:
            raise ValueError(f"a {kind} takes pyarrow; pip install pyarrow")
        from pyarrow import RecordBatchReader

        with suppress(ValueError):  # it is one column
            return RecordBatchReader.from_stream(frame)
    elif method := next((m for m in ("to_pandas", "collect") if hasattr(type(frame), m)), ""):
        cure = f"convert it with frame.{method}()"
    raise ValueError(f"frame must be a pandas DataFrame, not a {kind}; {cure}")


def _is_text(kind) -> bool:
    """Whether an Arrow type holds texts, or numbers of texts in a dictionary."""
    return "string" in str(kind)


def check_flat(source, fields: Iterable) -> None:
    """Refuse a field of an Arrow schema that holds several values a record.

    Raises
    ------
    ValueError
        With the field's name.
    """
    from pyarrow import types

    for field in fields:
        if types.is_nested(field.type):
            problem = f"column {field.name!r} of {source} holds {field.type}, more than one value"
            raise ValueError(f"{problem} a record; make a column of each")


def joined(batches: Sequence[Sequence[np.ndarray]], width: int) -> np.ndarray:
    """Codes of batches, each a column a variable, as one array."""
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    return np.column_stack(columns) if columns else np.empty((0, width), np.uint8)


def frame_codes(table, variables: Mapping[str, Variable]) -> np.ndarray:
    """Codes of the columns of a table, one column of the result for each variable.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.RecordBatchReader
        What :func:`as_table` returns.
    variables : mapping of str to Variable

    Raises
    ------
    ValueError
        If a value does not fit its variable, the points of a column of text may part thousands, or
        a categorical column stands in another order than its variable.
    """
    if hasattr(table, "columns"):
        return np.column_stack([_frame_column(table[name], v) for name, v in variables.items()])
    fields = [table.schema.field(name) for name in variables]
    check_flat(FRAME, fields)
    marks = [None if _is_text(field.type) else POINT for field in fields]
    columns = [Column(FRAME, *pair) for pair in zip(variables.values(), marks, strict=True)]
    batches: list[list[np.ndarray]] = []
    first = 0
    for batch in table:
        batches.append([c.codes_of_arrow(batch.column(c.variable.name), first) for c in columns])
        first += batch.num_rows
    for column in columns:
        column.check_points()
    return joined(batches, len(columns))


def _frame_column(values, variable: Variable) -> np.ndarray:
    """Codes of one column: numbers go between edges as they are, all else by its text."""
    kind = values.dtype
    if variable.cuts is not None and getattr(kind, "kind", "") in "iuf":
        codes = variable.positions_of_numbers(values.to_numpy(float, na_value=np.nan))
        return Column(FRAME, variable).checked(codes, lambda row: text_of(values.iloc[row]), 0)
    places, different = _different(values)
    texts = [*map(text_of, different), ""]  # last, that of missing values
    is_text = all(isinstance(value, str) for value in different if text_of(value))
    column = Column(FRAME, variable, None if is_text else POINT)
    if variable.ordered and variable.cuts is None and getattr(kind, "ordered", False):
        column.check_order(kind.categories)
    codes = column.positions(texts).take(places)
    codes = column.checked(codes, lambda row: texts[places[row]], 0)
    column.check_points()
    return codes


def _different(values) -> tuple[np.ndarray, list]:
    """Of each value its place among the different ones, -1 if it is missing, and those.

    They stand as they first come. Where values may be equal and have different texts, such as 1
    and True among objects, each row has a place of its own.
    """
    import pandas as pd

    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        places, seen = pd.factorize(values.cat.codes)
        categories = [*kind.categories.astype(object), None]
        return places, [categories[code] for code in seen]
    if kind in (np.float32, np.float64):
        places, bits = pd.factorize(values.to_numpy().view(f"i{kind.itemsize}"))
        return places, [*bits.view(kind).astype(object)]
    if kind.kind in "iub" or pd.api.types.infer_dtype(values, skipna=True) == "string":
        places, different = pd.factorize(values)
        return places, [*different.astype(object)]
    return np.arange(len(values)), [*values.astype(object)]


def check_frame(table, public: Mapping, ignore: Iterable, columns: str | None = None):
    """Check that a table has the columns of the public variables and those to ignore.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.RecordBatchReader
        What :func:`as_table` returns.
    public, ignore, columns
        As for :func:`check_columns`.

    Raises
    ------
    ValueError
        As :func:`check_columns` does.
    """
    names = table.columns if hasattr(table, "columns") else table.schema.names
    check_columns(FRAME, list(names), public, ignore, columns)


def check_columns(
    source, names: list, public: Mapping, ignore: Iterable, columns: str | None = None
):
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
    columns : {"schema"}, optional
        Whether to ignore whatever is no variable.

    Raises
    ------
    ValueError
        If a name comes twice, `ignore` is no list, names a variable or no column, the other
        columns are not the variables, or `columns` is something else.
    """
    if columns not in (None, SCHEMA):
        cure = "to read fewer, take variables out of the schema"
        raise ValueError(f"columns must be 'schema', or be left out, not {columns!r}; {cure}")
    check_once(names, f"{source} names column", "rename one of the two")
    if isinstance(ignore, str) or not isinstance(ignore, Iterable):
        raise ValueError(f"ignore must be a list of columns, such as ['id'], not {ignore!r}")
    ignore = list(ignore)
    for name in ignore:
        if name not in names:
            near = difflib.get_close_matches(str(name), map(str, names), n=1)
            cure = f"did you mean {near[0]!r}?" if near else "take it out of ignore"
            raise ValueError(f"ignore names {name!r}, which is no column of {source}; {cure}")
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
    """Check that nobody has more rows than a public bound.

    Parameters
    ----------
    ids : iterable
        Of each row whose it is, such as the column of a DataFrame. Ids are compared as text
        without blanks at its ends: 7 and ``"7"`` are one person. A number that is whole is that
        whole number, also as text: 7.0 and ``"7.0"`` are person 7 too, since a column with gaps is
        written like this. ``"07"`` is another person.
    rows_per_person : int
        The bound, fixed without a look at the table.
    n : int, optional
        The number of records, to be compared with the number of ids.

    Raises
    ------
    ValueError
        If somebody has more; the message does not say who, or how many. If a row is nobody's, as
        its id is missing or blank, there is no row, there are not `n`, or `ids` is a table, a
        text, or a set or a mapping, which do not have an entry for each row.

    Privacy
    -------
    None: whether the table is refused depends on the records. The curator checks before the run,
    repairs by a rule that was fixed beforehand (keep the k earliest rows of each person, say), and
    tells nobody of the outcome. Whoever has too many rows would not be protected by the run.

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
        raise ValueError(f"{problem}; keep so many of each by a rule fixed beforehand")


def _counted(ids) -> Counter:
    """How often each id stands in the one column that is given."""
    no_column = isinstance(ids, (str, bytes, Mapping, Set)) or hasattr(ids, "columns")
    if no_column or not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) != 1:
        raise ValueError(NO_COLUMN)
    try:
        return Counter(value.as_py() if hasattr(value, "as_py") else value for value in ids)
    except TypeError:  # an entry is a list or a row
        raise ValueError(NO_COLUMN) from None


def _person(value: Any) -> str | tuple:
    """What two ids of one person have in common."""
    if isinstance(value, tuple):
        return tuple(map(_person, value))
    if is_real(value) and math.isfinite(value) and value == int(value):
        return str(int(value))
    text = text_of(value).strip()
    if not text:
        raise ValueError("a row belongs to nobody; give it the id of its person, or drop it")
    return POINT.whole(text) or text
