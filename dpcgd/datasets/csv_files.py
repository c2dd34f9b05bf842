"""Tables about people from comma-separated files, checked against a public schema."""

import codecs
import csv
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TextIO

import numpy as np

from dpcgd.datasets.arguments import GZIP, UTF_16, check_file, first_bytes, refuses_weights
from dpcgd.datasets.columns import NO_PATH, Column, check_columns, coded, joined
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.progress import progress
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import Parts, check_numerals

__all__ = ["read_csv", "read_texts"]

UTF_8 = "utf-8-sig"
"""The default encoding: UTF-8, with a byte-order mark or without."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Other separators that are recognised and reported."""

BATCH = 1 << 9
"""Number of rows whose texts are in memory at once."""

BLOCK = 1 << 20
"""Number of characters that Arrow gets at once."""


@refuses_weights
def read_csv(
    path,
    schema: Any,
    *,
    ignore: Iterable[str] = (),
    columns: str | None = None,
    name: str | None = None,
    separator: str = ",",
    encoding: str = "utf-8",
    decimal: str | None = None,
    thousands: str | None = None,
) -> Dataset:
    r"""Read a table about people; a public schema describes its columns and levels.

    Parameters
    ----------
    path : str or path
        A comma-separated file with a header; it may be compressed by gzip.
    schema : Schema, mapping, str or path
        An argument of :class:`~dpcgd.datasets.schema.Schema`, or a JSON file of it: for each
        variable all its levels, or the range or the edges of a number. It must come from metadata:
        a list of levels that is read off the data would reveal who is in them.
    ignore : iterable of str
        Columns of the file to leave out, such as record numbers.
    columns : {"schema"}, optional
        Read only the schema's columns. Unless given, every other column must be in `ignore`.
    name : str, optional
        Name of the data set; the file's name unless given.
    separator : str, optional
        The character between two columns, such as ``";"``, or ``"\t"`` for tabs.
    encoding : str, optional
        An encoding such as ``"latin-1"``; UTF-8, with a byte-order mark or without, unless given.
    decimal : str, optional
        The decimal mark of numbers: ``"."`` or ``","``. By default a point, or a comma if points
        separate thousands.
    thousands : str, optional
        The mark between thousands: a point, a comma, an apostrophe or a blank. None unless given.

    Returns
    -------
    Dataset
        Its variables are in the schema's order, for any order of the file's columns.

    Raises
    ------
    ValueError
        If the file or the schema cannot be read, or an argument is unusable. If the header has a
        name twice, or schema, `ignore` and header do not name the same columns. If a row has more
        or fewer values than the header, or a value is missing or outside its variable's levels. If
        neither `decimal` nor `thousands` is given, every point of a column may separate decimals or
        thousands, as in 2.000 and 3.500, and both readings fit the schema.

    Notes
    -----
    Messages name records and values: they are for the data holder, not for release. Each row counts
    once, and as independent of the others. For surveys see *Weights, and several rows a person* in
    the book's page on your own table.

    If pyarrow is installed, it splits the file, which is faster. Files that it refuses, and files
    with misplaced quotation marks, are read row by row, as without pyarrow.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clinic.csv"
    >>> _ = file.write_text("cough,smoke\nyes,no\nno,no\n")
    >>> data = read_csv(file, {"smoke": ["no", "yes"], "cough": ["no", "yes"]})
    >>> data.codes.tolist()
    [[0, 1], [0, 0]]
    """
    encoding = _check_format(path, separator, encoding)
    numerals = check_numerals(decimal, thousands)
    schema = Schema.of(schema)
    name = name or os.path.splitext(os.path.basename(os.fspath(path).removesuffix(".gz")))[0]

    def read(batches) -> Dataset:
        """Read and check the table; the arguments have been checked."""
        readers = [Column(path, variable, numerals) for variable in schema.variables.values()]
        with _opened(path, encoding, separator, schema.levels) as (file, first_row, header):
            check_columns(path, header, schema.variables, ignore, columns)
            parts = batches(file, header, readers, separator, first_row)
            codes = joined(progress(parts, f"reading {path}"), readers)
        if not len(codes):
            raise ValueError(f"{path} has a header but no record; give at least one")
        return Dataset.of_schema(codes, schema, name=name)

    with suppress(ImportError, ValueError):  # row by row all that is wrong has its number
        return read(_by_arrow)
    return read(_by_row)


def read_texts(path, columns: list[str] | None, separator: str, encoding: str):
    """Columns of a file as the texts that :func:`read_csv` sees, in a frame of pandas.

    Parameters
    ----------
    path : path
    columns : list of str or None
        Columns to read, or all.
    separator, encoding : str
        As for :func:`read_csv`.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    import pandas as pd

    encoding = _check_format(path, separator, encoding)
    with _opened(path, encoding, separator, {}) as (file, first_row, header):
        places = [header.index(name) for name in columns or header]
        records = _records(path, file, separator, len(header), first_row)
        texts = [[row[place] or None for place in places] for row in records]
    return pd.DataFrame(texts, columns=columns or header, dtype=object)


@contextmanager
def _opened(path, encoding, separator, known) -> Iterator[tuple[TextIO, Any, list[str]]]:
    """The text of a file, unpacked if needed, after its header; errors have one line."""
    start = gzip.open if first_bytes(path, NO_PATH).startswith(GZIP) else open
    try:
        with start(path, "rt", encoding=encoding, newline="") as file:
            first_row = csv.reader(file, delimiter=separator)
            yield file, first_row, _header(path, first_row, known, separator)
    except UnicodeError:
        problem = f"{path} is not {encoding.upper().removesuffix('-SIG')} text"
        raise ValueError(f"{problem}; save it as UTF-8, or pass its encoding") from None
    except csv.Error as error:  # what is between quotes has no end
        raise ValueError(f"{path}: {error}; close every quotation mark") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path} is damaged and cannot be unpacked; pack it anew") from None


def _by_arrow(file, header, columns, separator, _) -> Iterator[list[np.ndarray]]:
    """Codes of records, in batches: Arrow finds the different texts, and we look these up."""
    from pyarrow import BufferReader, csv as arrow, dictionary, int32, string

    names = [column.variable.name for column in columns]
    texts = dict.fromkeys(names, dictionary(int32(), string()))
    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = arrow.ConvertOptions(column_types=texts, include_columns=names, null_values=[])
    for block in _blocks(file, separator):
        whole = arrow.ReadOptions(column_names=header, block_size=len(block) + 1)
        table = arrow.read_csv(BufferReader(block), whole, parse, convert)
        yield from coded(table.to_batches(), columns)


def _blocks(file, separator) -> Iterator[bytes]:
    """Blocks of whole records as UTF-8; each block begins with a line end.

    Raises
    ------
    ValueError
        If the end of a record is not certain.
    """
    rest, text = b"", "some"
    while text:
        text = file.read(BLOCK)
        block = b"\n" + rest + (text.encode() or b"\n")
        end = _end_of_records(block, separator)
        if end == 1 or (end < len(block) and not text):
            raise ValueError("a quotation mark is open")
        yield block[:end]
        rest = block[end:]


def _end_of_records(block, separator) -> int:
    """The end of the last whole record in a block that begins with a line end.

    If a separator, a line end or another quotation mark follows directly, every second quotation
    mark closes the quotation of the mark before it. All readers agree on such files.
    """
    letters = np.frombuffer(block, np.uint8)
    is_quote = letters == ord('"')
    is_end = (letters == ord("\n")) | (letters == ord("\r"))
    ends = np.flatnonzero(is_end & ~np.logical_xor.accumulate(is_quote))
    quotes = np.flatnonzero(is_quote[: ends[-1]])
    beside = letters[np.concatenate([quotes[::2] - 1, quotes[1::2] + 1])]
    belongs = np.isin(beside, [*map(ord, {separator, '"', "\n", "\r"})]).all()
    if not belongs or np.diff(ends).max(initial=0) > csv.field_size_limit():
        raise ValueError("a quotation mark stands where none belongs, or far from the next one")
    return int(ends[-1]) + 1


def _check_format(path, separator, encoding) -> str:
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n':
        right = "the one character between two columns, such as ';'"
        raise ValueError(f"separator must be {right}, not {separator!r}")
    try:
        "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        right = "one that Python knows, such as 'latin-1'"
        raise ValueError(f"encoding must be {right}, not {encoding!r}") from None
    encoding = UTF_8 if codecs.lookup(encoding).name == "utf-8" else encoding
    check_file(path, NO_PATH, allowed=[GZIP, *(UTF_16 if encoding != UTF_8 else ())])
    return encoding


def _header(path, first_row, known, separator) -> list[str]:
    """The names in the first line; refuse another separator or a missing header."""
    header: list[str] = next(first_row, [])
    if not header:
        raise ValueError(f"{path} is empty; give a header and at least one record")
    if header[0].startswith("sep="):
        raise ValueError(f"{path} begins with a line for Excel, {header[0]}; take that line out")
    for mark, marks in SEPARATORS.items():
        if len(header) == 1 and mark in header[0] and mark != separator:
            raise ValueError(f"{path} has {marks} between its columns; pass separator={mark!r}")
    listed = (levels for levels in known.values() if not isinstance(levels, Parts))
    values = {level for levels in listed for level in levels}
    if values.issuperset(header) and not set(header) & set(known):
        raise ValueError(f"{path} has values in its first line; put a header above them")
    return header


def _by_row(file, header, columns, separator, first_row) -> Iterator[list[np.ndarray]]:
    """Read the table row by row: slower, but each record's number is known."""
    records, first = _records(columns[0].source, file, separator, len(header), first_row), 0
    while batch := list(islice(records, BATCH)):
        texts = dict(zip(header, zip(*batch, strict=True), strict=True))
        yield [column.codes(texts[column.variable.name], first) for column in columns]
        first += len(batch)


def _records(path, file, separator, width, first_row) -> Iterator[list[str]]:
    """All rows that are not blank; refuse rows that are longer or shorter than the header."""
    rows = csv.reader(file, delimiter=separator, strict=True)
    for record, row in enumerate(filter(None, rows), 1):
        if len(row) != width:
            where = f"{path}, line {first_row.line_num + rows.line_num}, record {record}"
            problem = f"the row has {len(row)} values for {width} columns"
            raise ValueError(f"{where}: {problem}; give every row as many values as the header")
        yield row
