"""Tables of people from comma-separated files, checked against a public schema."""

import codecs
import csv
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.columns import NO_PATH, Column, check_columns
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


def read_csv(
    path,
    schema: Any,
    *,
    ignore: Iterable[str] = (),
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
        A comma-separated file with a header.
    schema : Schema, mapping, str or path
        What :class:`~dpcgd.datasets.schema.Schema` takes, or a JSON file of it: for each variable
        every level it may take, or the range or the edges of a number. It must come from metadata:
        a level list read off the data would tell who is in it.
    ignore : iterable of str
        Columns of the file to leave out, such as record numbers.
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
    check_file(path, NO_PATH, utf_16=encoding != UTF_8)
    schema = Schema.of(schema)
    columns = [Column(path, variable, numerals) for variable in schema.variables.values()]
    batches: list[list[np.ndarray]] = []
    try:
        with open(path, encoding=encoding, newline="") as file:
            first_row = csv.reader(file, delimiter=separator)
            header = _header(path, first_row, schema, separator)
            check_columns(path, header, schema.variables, ignore)
            rows = csv.reader(file, delimiter=separator, strict=True)
            records = _records(path, rows, len(header), first_row.line_num)
            parts = iter(lambda: list(islice(records, BATCH)), [])
            for batch in progress(parts, f"reading {path}"):
                texts = dict(zip(header, zip(*batch, strict=True), strict=True))
                first = BATCH * len(batches)
                batches.append([c.codes(texts[c.variable.name], first) for c in columns])
    except UnicodeError:
        problem = f"{path} is not {encoding.upper().removesuffix('-SIG')} text"
        raise ValueError(f"{problem}; save it as UTF-8, or pass its encoding") from None
    except csv.Error as error:  # what is between quotes has no end
        raise ValueError(f"{path}: {error}; close every quotation mark") from None
    if not batches:
        raise ValueError(f"{path} has a header but no record; give at least one")
    for column in columns:
        column.check_points()
    codes = np.column_stack([np.concatenate(parts) for parts in zip(*batches, strict=True)])
    name = name or os.path.splitext(os.path.basename(path))[0]
    return Dataset.of_schema(codes, schema, name=name)


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


def _records(path, rows, width, lines) -> Iterator[list[str]]:
    """All rows but blank ones; one that is longer or shorter than the header is refused."""
    for record, row in enumerate(filter(None, rows), 1):
        if len(row) != width:
            where = f"{path}, line {lines + rows.line_num}, record {record}"
            problem = f"the row has {len(row)} values for {width} columns"
            raise ValueError(f"{where}: {problem}; give every row as many values as the header")
        yield row
