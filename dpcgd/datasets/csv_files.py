"""Tables of people from comma-separated files, checked against a public schema."""

import csv
import json
import os
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import check_file, check_once
from dpcgd.datasets.columns import check_columns, encode
from dpcgd.datasets.dataset import Dataset, check_levels

__all__ = ["read_csv"]


def read_csv(path, schema, *, ignore: Iterable[str] = (), name: str | None = None) -> Dataset:
    r"""Read a table of people whose columns and levels are described by a public schema.

    Parameters
    ----------
    path : str or path
        A comma-separated file with a header.
    schema : mapping of str to sequence, or str or path
        For each variable every level it may take, in natural order; or a JSON file that holds such
        a mapping. Levels are compared as text. They must come from metadata: a level list read off
        the data would tell who is in it.
    ignore : iterable of str
        Columns of the file to leave out, such as record numbers.
    name : str, optional
        What to call the data set; the file's name unless given.

    Returns
    -------
    Dataset
        Its variables are in the schema's order, whatever the order of the file's columns.

    Raises
    ------
    ValueError
        If the file or the schema cannot be read, the header has a name twice, the schema, `ignore`
        and the header do not name the same columns, or a value is missing or outside its variable's
        levels. Nothing is returned then.

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
    check_file(path, "path must be the path of a file; for a DataFrame use Dataset.from_pandas")
    levels = check_levels(_read_schema(schema))
    try:
        _check_header(path, levels, ignore)
        frame = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            usecols=list(levels),
            encoding="utf-8-sig",
            compression=None,
        )
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:  # what is between quotes has no end
        raise ValueError(f"{path}: {error}; close every quotation mark") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {error}; give every row as many values as the header") from None
    if frame.empty:
        raise ValueError(f"{path} has a header but no record; give at least one")
    codes = np.column_stack([encode(path, frame[name], of) for name, of in levels.items()])
    return Dataset(codes, levels, name=name or os.path.splitext(os.path.basename(path))[0])


def _read_schema(schema):
    if isinstance(schema, Mapping):
        return schema
    check_file(
        schema,
        "schema must be a mapping or the path of a JSON file; "
        "map each variable's name to the list of its levels",
    )
    try:
        with open(schema, encoding="utf-8-sig") as file:
            found = json.load(file, object_pairs_hook=_named_once)
    except UnicodeDecodeError:
        raise ValueError(f"{schema} is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"{schema}, line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {error.msg}; correct the JSON there") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"{schema} holds no mapping; map each variable's name to the list of its levels, "
            'as in {"smoke": ["no", "yes"]}'
        )
    return found


def _named_once(pairs):
    check_once([name for name, _ in pairs], "the schema names variable", "name it once")
    return dict(pairs)


def _check_header(path, levels, ignore):
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        _check_first_line(path, header, levels)
        check_columns(path, header, levels, ignore)
        ragged = next((row for row in rows if row and len(row) != len(header)), None)
    if ragged is not None:
        raise ValueError(
            f"{path}: a row has {len(ragged)} values for {len(header)} columns; "
            "give every row as many values as the header"
        )


def _check_first_line(path, header, levels):
    """Look for another separator and for values where the names should be."""
    if not header:
        raise ValueError(f"{path} is empty; give a header and at least one record")
    for mark, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0]:
            raise ValueError(f"{path} has {called} between its columns; save it with commas")
    values = {level for of in levels.values() for level in of}
    if values.issuperset(header) and not set(header) & set(levels):
        raise ValueError(
            f"{path} has values in its first line; put a header with the columns' names above it"
        )
