"""Row groups of Parquet files: found, checked against a schema, decoded batch after batch."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dpcgd.datasets.arguments import first_bytes
from dpcgd.datasets.bit_columns import CHANGED, Batch, BitColumns, pack, packed_bytes
from dpcgd.datasets.columns import Column, check_columns
from dpcgd.datasets.levels import text_of
from dpcgd.datasets.schema import Schema

__all__ = ["Part", "batches_of", "pack_part", "parts_of"]

BATCH = 1 << 17
"""Records decoded at a time."""

PART = 1 << 22
"""A part with this many records is no longer joined with the next row group."""

INDEX = re.compile("__index_level_[0-9]+__")
"""Pandas names the numbers of the rows like this, where it stores them."""


@dataclass(frozen=True)
class Part:
    """Some row groups of a Parquet file that follow each other.

    Attributes
    ----------
    path : str
    groups : range
        Numbers of the row groups.
    first : int
        Number of their first record in the file.
    n : int
        Records.
    stamp : tuple of int
        The size of the file in bytes, and when it was last written, in nanoseconds.
    """

    path: str
    groups: range
    first: int
    n: int
    stamp: tuple[int, int]


def parts_of(path: str, schema: Schema, ignore: Iterable[str]) -> list[Part]:
    """The parts of a file whose columns are those of the schema; only its end is read.

    Parameters
    ----------
    path : str
    schema : Schema
    ignore : iterable of str
        Columns that are no variables.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    if first_bytes(path, "") != b"PAR1":
        raise ValueError(f"{path} is no Parquet file; read text with read_csv")
    stamp = _stamp(path)
    with _opened(path) as file:
        names = [name for name in file.schema_arrow.names if not INDEX.fullmatch(name)]
        check_columns(path, names, schema.variables, ignore)
        for name in schema.variables:
            _check_type(path, file.schema_arrow.field(name))
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    parts, begin, first, n = [], 0, 0, 0
    for group, size in enumerate(sizes):
        n += size
        if n >= PART or (n and group == len(sizes) - 1):
            parts.append(Part(path, range(begin, group + 1), first, n, stamp))
            begin, first, n = group + 1, first + n, 0
    return parts


def _stamp(path) -> tuple[int, int]:
    with _readable(path):
        status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _check_same(part: Part):
    if _stamp(part.path) != part.stamp:
        raise ValueError(f"{part.path}: {CHANGED}")


@contextmanager
def _readable(path):
    """Say in one line what keeps a file from being read."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or ["it is damaged"])[0].rstrip(".")
        raise ValueError(f"{path} cannot be read: {reason}; write the file anew") from None


def _opened(path):
    """A file; its columns of text are read as numbers of different texts."""
    from pyarrow import parquet

    with _readable(path):
        texts = [
            field.name
            for field in parquet.read_schema(path)
            if str(field.type) in ("string", "large_string")
        ]
        return parquet.ParquetFile(path, read_dictionary=texts)


def _check_type(path, field):
    from pyarrow import types

    if types.is_nested(field.type):
        raise ValueError(
            f"column {field.name!r} of {path} holds {field.type}, more than one value a record; "
            "make a column of each"
        )


def batches_of(part: Part, schema: Schema) -> Iterator[Batch]:
    """Codes of the records of a part, some at a time.

    Raises
    ------
    ValueError
        If the file is damaged or was written since the part was found, or at the first value that
        does not fit its variable.
    """
    _check_same(part)
    columns = [Column(part.path, variable) for variable in schema.variables.values()]
    first = part.first
    for batch in _decoded(part, list(schema.variables)):
        yield [_codes(column, batch.column(column.variable.name), first) for column in columns]
        first += batch.num_rows
    _check_same(part)


def _decoded(part, names) -> Iterator:
    with _opened(part.path) as file, _readable(part.path):
        yield from file.iter_batches(BATCH, row_groups=list(part.groups), columns=names)


def _codes(column: Column, values, first: int) -> np.ndarray:
    """Codes of a batch, whose first record has this number in the file.

    Numbers go between edges as they are; of all else the different values are looked up.
    """
    from pyarrow import types

    variable, kind = column.variable, values.type
    if variable.edges is not None and (types.is_integer(kind) or types.is_floating(kind)):
        numbers = values.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        codes = variable.positions_of_numbers(numbers)
    else:
        if not types.is_dictionary(kind):
            values = values.dictionary_encode()
        texts = [*map(text_of, values.dictionary.to_pylist()), ""]  # last, the missing
        if variable.ordered and getattr(kind, "ordered", False):
            variable.check_order(column.source, texts)
        places = values.indices.fill_null(len(texts) - 1)
        codes = column.positions(texts).take(places.to_numpy())
    return column.checked(codes, lambda row: text_of(values[row].as_py()), first)


def pack_part(part: Part, schema: Schema) -> BitColumns:
    """The records of a part as bit columns.

    Raises
    ------
    ValueError
        As :func:`batches_of`, or if the part has more or fewer records than it had.
    """
    most = packed_bytes(schema.cardinalities, part.n)
    return pack(batches_of(part, schema), schema.cardinalities, part.n, most_bytes=most)
