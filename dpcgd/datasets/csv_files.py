"""Tables of people from comma-separated files, checked against a public schema."""

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

__all__ = ["read_csv"]

UTF_8 = "utf-8-sig"
"""This encoding reads UTF-8 with its mark or without."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""These marks between columns are recognised where another one was given."""

BATCH = 1 << 9
"""Rows whose texts are at hand at once."""

BLOCK = 1 << 20
"""Letters that Arrow gets at once."""


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
    r"""Read a table of people whose columns and levels are described by a public schema.

    Parameters
    ----------
    path : str or path
        A comma-separated file with a header, also one that gzip has compressed.
    schema : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes, or a JSON file of it: for each variable
        every level it may take, or the range or the edges of a number. It must come from metadata:
        a level list read off the data would tell who is in it.
    ignore : iterable of str
        Columns of the file to leave out, such as record numbers.
    columns : {"schema"}, optional
        Reads the schema's columns and no other. Every other one has to be in `ignore` unless given.
    name : str, optional
        What to call the data set; the file's name unless given.
    separator : str, optional
        The one character between two columns: ``";"``, ``"\t"`` for tabs.
    encoding : str, optional
        Such as ``"latin-1"``. UTF-8, with its mark or without, unless given.
    decimal : str, optional
        The decimal mark of numbers: ``"."`` or ``","``. A point unless given, or a comma if points
        part the thousands.
    thousands : str, optional
        The mark between thousands: a point, a comma, an apostrophe or a blank. None unless given.

    Returns
    -------
    Dataset
        Its variables are in the schema's order, whatever the order of the file's columns.

    Raises
    ------
    ValueError
        If the file or the schema cannot be read, the separator is no single character or the
        encoding is not known, a mark is none, the header has a name twice, the schema, `ignore`
        and the header do not name the same columns, a row has more or fewer values than the header,
        or a value is missing or outside its variable's levels. If neither `decimal` nor `thousands`
        is given and every point of a column may part decimals as well as thousands, as in 2.000 and
        3.500, and both readings fit the schema. Nothing is returned then.

    Notes
    -----
    The messages name records and values: they are for whoever holds the data, not for release.
    Each row counts once and as independent of the others: *Weights, and several rows a person* in
    the book's page on your own table says what that means for surveys.

    Where pyarrow is installed it takes the file apart, which is faster. What it refuses, and files
    with quotation marks where none belong, are then read row by row, as without it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clinic.csv"
    >>> _ = file.write_text("cough,smoke\nyes,no\nno,no\n")
    >>> data = read_csv(file, {"smoke": ["no", "yes"], "cough": ["no", "yes"]})
    >>> data.codes.tolist()
    [[0, 1], [0, 0]]
    """
    encoding = _check_format(separator, encoding)
    numerals = check_numerals(decimal, thousands)
    check_file(path, NO_PATH, allowed=[GZIP, *(UTF_16 if encoding != UTF_8 else ())])
    schema = Schema.of(schema)
    name = name or os.path.splitext(os.path.basename(os.fspath(path).removesuffix(".gz")))[0]

    def read(batches) -> Dataset:
        """The table, unless something is wrong."""
        readers = [Column(path, variable, numerals) for variable in schema.variables.values()]
        with _opened(path, encoding) as file:
            first_row = csv.reader(file, delimiter=separator)
            header = _header(path, first_row, schema, separator)
            check_columns(path, header, schema.variables, ignore, columns)
            parts = batches(file, header, readers, separator, first_row)
            codes = joined(progress(parts, f"reading {path}"), readers)
        if not len(codes):
            raise ValueError(f"{path} has a header but no record; give at least one")
        return Dataset.of_schema(codes, schema, name=name)

    with suppress(ImportError, ValueError):  # row by row all that is wrong has its number
        return read(_by_arrow)
    return read(_by_row)


@contextmanager
def _opened(path, encoding) -> Iterator[TextIO]:
    """The text of a file, unpacked if need be; what is wrong with it is said in one line."""
    start = gzip.open if first_bytes(path, NO_PATH).startswith(GZIP) else open
    try:
        with start(path, "rt", encoding=encoding, newline="") as file:
            yield file
    except UnicodeError:
        problem = f"{path} is not {encoding.upper().removesuffix('-SIG')} text"
        raise ValueError(f"{problem}; save it as UTF-8, or pass its encoding") from None
    except csv.Error as error:  # what is between quotes has no end
        raise ValueError(f"{path}: {error}; close every quotation mark") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path} is damaged and cannot be unpacked; pack it anew") from None


def _by_arrow(file, header, columns, separator, _) -> Iterator[list[np.ndarray]]:
    """Codes of some records after others: Arrow finds the different texts, we look those up."""
    from pyarrow import BufferReader, dictionary, int32, string
    from pyarrow import csv as arrow

    names = [column.variable.name for column in columns]
    texts = dict.fromkeys(names, dictionary(int32(), string()))
    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = arrow.ConvertOptions(column_types=texts, include_columns=names, null_values=[])
    for block in _blocks(file, separator):
        whole = arrow.ReadOptions(column_names=header, block_size=len(block) + 1)
        table = arrow.read_csv(BufferReader(block), whole, parse, convert)
        yield from coded(table.to_batches(), columns)


def _blocks(file, separator) -> Iterator[bytes]:
    """Whole records as UTF-8, each block after a line end.

    Raises
    ------
    ValueError
        Where it takes a close look to see where a record ends.
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
    """Where the last record ends that is whole; the block begins with a line end.

    Every second quotation mark closes what the one before has opened, if there is nothing else
    between it and the next separator, line end or quotation mark. All readers agree then.
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


def _check_format(separator, encoding) -> str:
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n':
        right = "the one character between two columns, such as ';'"
        raise ValueError(f"separator must be {right}, not {separator!r}")
    try:
        "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        right = "one that Python knows, such as 'latin-1'"
        raise ValueError(f"encoding must be {right}, not {encoding!r}") from None
    return UTF_8 if codecs.lookup(encoding).name == "utf-8" else encoding


def _header(path, first_row, schema, separator) -> list[str]:
    """The names in the first line, unless there is another separator or no header."""
    header: list[str] = next(first_row, [])
    if not header:
        raise ValueError(f"{path} is empty; give a header and at least one record")
    if header[0].startswith("sep="):
        raise ValueError(f"{path} begins with a line for Excel, {header[0]}; take that line out")
    for mark, marks in SEPARATORS.items():
        if len(header) == 1 and mark in header[0] and mark != separator:
            raise ValueError(f"{path} has {marks} between its columns; pass separator={mark!r}")
    listed = (levels for levels in schema.levels.values() if not isinstance(levels, Parts))
    values = {level for levels in listed for level in levels}
    if values.issuperset(header) and not set(header) & set(schema.levels):
        raise ValueError(f"{path} has values in its first line; put a header above them")
    return header


def _by_row(file, header, columns, separator, first_row) -> Iterator[list[np.ndarray]]:
    """The same row by row: slower, but with the number of each record at hand."""
    rows = csv.reader(file, delimiter=separator, strict=True)
    records, first = _records(columns[0].source, rows, len(header), first_row.line_num), 0
    while batch := list(islice(records, BATCH)):
        texts = dict(zip(header, zip(*batch, strict=True), strict=True))
        yield [column.codes(texts[column.variable.name], first) for column in columns]
        first += len(batch)


def _records(path, rows, width, lines) -> Iterator[list[str]]:
    """All rows but blank ones; one that is longer or shorter than the header is refused."""
    for record, row in enumerate(filter(None, rows), 1):
        if len(row) != width:
            where = f"{path}, line {lines + rows.line_num}, record {record}"
            problem = f"the row has {len(row)} values for {width} columns"
            raise ValueError(f"{where}: {problem}; give every row as many values as the header")
        yield row
