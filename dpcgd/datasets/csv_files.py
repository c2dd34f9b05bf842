"""Tables of people from comma-separated files, checked against a public schema."""

import codecs
import csv
import os
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpcgd.datasets.arguments import check_file
from dpcgd.datasets.columns import NO_PATH, check_columns
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.numerals import check_numerals
from dpcgd.datasets.schema import Schema

__all__ = ["read_csv"]

UTF_8 = "utf-8-sig"
"""With or without its mark."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


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
        every level it may take, or the edges of a number. It must come from metadata: a level list
        read off the data would tell who is in it.
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
    try:
        _check_header(path, schema, ignore, separator, encoding)
        frame = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            keep_default_na=False,
            usecols=list(schema.variables),
            encoding=encoding,
            compression=None,
        )
    except UnicodeError:
        told = f"{path} is not {encoding.upper().removesuffix('-SIG')} text"
        raise ValueError(f"{told}; save it as UTF-8, or pass its encoding") from None
    except csv.Error as error:  # what is between quotes has no end
        raise ValueError(f"{path}: {error}; close every quotation mark") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {error}; give every row as many values as the header") from None
    if frame.empty:
        raise ValueError(f"{path} has a header but no record; give at least one")
    return Dataset(
        schema.codes(path, frame, dict.fromkeys(schema.variables, numerals)),
        schema.levels,
        name=name or os.path.splitext(os.path.basename(path))[0],
        ordered=schema.ordered,
        missing=schema.missing,
        schema=schema,
    )


def _check_format(separator, encoding) -> str:
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n':
        raise ValueError(
            f"separator must be the one character between two columns, such as ';', "
            f"not {separator!r}"
        )
    try:
        "".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"encoding must be one that Python knows, such as 'latin-1', not {encoding!r}"
        ) from None
    return UTF_8 if codecs.lookup(encoding).name == "utf-8" else encoding


def _check_header(path, schema, ignore, separator, encoding):
    with open(path, encoding=encoding, newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        header = next(rows, [])
        _check_first_line(path, header, schema.levels, separator)
        check_columns(path, header, schema.variables, ignore)
        _check_rows(path, rows, len(header))


def _check_rows(path, rows, columns: int):
    """Refuse a row that is longer or shorter than the header, by its line and its record."""
    records = 0
    for row in rows:
        records += bool(row)  # a blank line is no record
        if row and len(row) != columns:
            raise ValueError(
                f"{path}, line {rows.line_num}, record {records}: the row has {len(row)} values "
                f"for {columns} columns; give every row as many values as the header"
            )


def _check_first_line(path, header, levels, separator):
    """Look for another separator and for values where the names should be."""
    if not header:
        raise ValueError(f"{path} is empty; give a header and at least one record")
    if header[0].startswith("sep="):
        raise ValueError(f"{path} begins with a line for Excel, {header[0]}; take that line out")
    for mark, called in SEPARATORS.items():
        if len(header) == 1 and mark in header[0] and mark != separator:
            raise ValueError(f"{path} has {called} between its columns; pass separator={mark!r}")
    values = {level for of in levels.values() for level in of}
    if values.issuperset(header) and not set(header) & set(levels):
        raise ValueError(
            f"{path} has values in its first line; put a header with the columns' names above it"
        )
