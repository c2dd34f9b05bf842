"""Tables of people from comma-separated files, checked against a public schema."""

import csv
import json
import os
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from dpcgd.datasets.dataset import Dataset, check_levels, check_once

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
        If the header has a name twice, the schema and the header do not name the same columns, or a
        value is missing or outside its variable's levels. Nothing is returned then.

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
    levels = check_levels(_read_schema(schema))
    try:
        _check_header(path, levels, set(ignore))
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, usecols=list(levels), encoding="utf-8-sig"
        )
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {error}; give every row as many values as the header") from None
    if frame.empty:
        raise ValueError(f"{path} has a header but no record; give at least one")
    codes = np.column_stack([_encode(path, frame[name], of) for name, of in levels.items()])
    return Dataset(codes, levels, name=name or os.path.splitext(os.path.basename(path))[0])


def _read_schema(schema):
    if isinstance(schema, Mapping):
        return schema
    with open(schema, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=_named_once)


def _named_once(pairs):
    check_once([name for name, _ in pairs], "the schema names variable {!r} twice; name it once")
    return dict(pairs)


def _check_header(path, levels, ignore):
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        ragged = next((row for row in rows if row and len(row) != len(header)), None)
    if not header:
        raise ValueError(f"{path} is empty; give a header and at least one record")
    check_once(header, f"{path} names column {{!r}} twice; rename one of the two")
    unknown = [name for name in header if name not in levels and name not in ignore]
    if unknown:
        raise ValueError(
            f"the schema misses column {unknown[0]!r} of {path}; "
            f"add its levels, or pass ignore=[{unknown[0]!r}]"
        )
    absent = [name for name in levels if name not in header]
    if absent:
        raise ValueError(
            f"{path} has no column {absent[0]!r}, which the schema lists; "
            "add the column or take it out of the schema"
        )
    if ragged is not None:
        raise ValueError(
            f"{path}: a row has {len(ragged)} values for {len(header)} columns; "
            "give every row as many values as the header"
        )


def _encode(path, column, levels) -> np.ndarray:
    codes = pd.Index(levels).get_indexer(column)
    if codes.min() >= 0:
        return codes
    row = int(np.argmin(codes))
    value = column.iloc[row]
    where = f"{path}, record {row + 1}, column {column.name!r}"
    if value == "":
        raise ValueError(
            f"{where}: the value is missing; drop or impute such records first, or list '' as a "
            "level if 'not known' is an answer"
        )
    raise ValueError(
        f"{where}: {value!r} is not among the levels {', '.join(levels)}; "
        "correct the value or add the level to the schema"
    )
