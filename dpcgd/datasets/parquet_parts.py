"""Row groups of Parquet files: found, checked against a schema, decoded batch after batch."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpcgd.datasets.arguments import first_bytes
from dpcgd.datasets.bit_columns import CHANGED, Batch, BitColumns, pack, packed_bytes
from dpcgd.datasets.columns import as_text, check_columns
from dpcgd.datasets.schema import Schema
from dpcgd.datasets.variable import Variable

__all__ = ["Part", "batches_of", "pack_part", "parts_of"]

BATCH = 1 << 17
"""Records decoded at a time."""

PART = 1 << 22
"""Records from which on a part is no longer joined with the next row group."""

INDEX = re.compile("__index_level_[0-9]+__")
"""What pandas calls the numbers of the rows, where it stores them."""


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
            _check_type(path, name, file.schema_arrow.field(name).type)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    parts, begin, first, n = [], 0, 0, 0
    for group, size in enumerate(sizes):
        n += size
        if n >= PART or (n and group == len(sizes) - 1):
            parts.append(Part(path, range(begin, group + 1), first, n, stamp))
            begin, first, n = group + 1, first + n, 0
    return parts


def _stamp(path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    return status.st_size, status.st_mtime_ns


def _check_same(part: Part):
    if _stamp(part.path) != part.stamp:
        raise ValueError(f"{part.path}: {CHANGED}")


def _opened(path):
    import pyarrow as pa
    from pyarrow import parquet

    try:
        strings = _texts(parquet.read_schema(path))
        return parquet.ParquetFile(path, read_dictionary=strings)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _texts(fields) -> list[str]:
    """Columns of text: they are read as numbers of what they hold."""
    from pyarrow import types

    texts = (types.is_string, types.is_large_string)
    return [field.name for field in fields if any(is_text(field.type) for is_text in texts)]


def _unreadable(path, error) -> ValueError:
    told = (str(error).splitlines() or ["it is damaged"])[0].rstrip(".")
    return ValueError(f"{path} cannot be read: {told}; write the file anew")


def _check_type(path, name, kind):
    from pyarrow import types

    if types.is_nested(kind):
        raise ValueError(
            f"column {name!r} of {path} holds {kind}, more than one value a record; "
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
    columns = [_Column(part.path, variable) for variable in schema.variables.values()]
    first = part.first
    for batch in _decoded(part, list(schema.variables)):
        yield [column.codes(batch.column(column.variable.name), first) for column in columns]
        first += batch.num_rows
    _check_same(part)


def _decoded(part, names) -> Iterator[Any]:
    import pyarrow as pa

    with _opened(part.path) as file:
        try:
            yield from file.iter_batches(BATCH, row_groups=list(part.groups), columns=names)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(part.path, error) from None


class _Column:
    """A column of a file: what its values stand for is looked up once for all that look alike."""

    def __init__(self, path: str, variable: Variable):
        self.path, self.variable = path, variable
        self._small = np.min_scalar_type(-len(variable.levels))  # -1 is for what is refused
        self._held: Any = None
        self._positions = np.empty(0, self._small)

    def codes(self, values, first: int) -> np.ndarray:
        """Codes of a batch, whose first record has this number in the file."""
        if self.variable.edges is not None and _is_number(values.type):
            numbers = values.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            codes = self.variable.positions_of_numbers(numbers).astype(self._small)
        else:
            codes = self._looked_up(values)
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            raise self.variable.refused(self.path, first + row, _text_of(values[row]))
        return codes

    def _looked_up(self, values) -> np.ndarray:
        """By what the batch holds: numbers of different values, and those values."""
        kind = values.type
        if not hasattr(values, "indices"):
            values = values.dictionary_encode()
        at, held = values.indices, values.dictionary
        if self._held is None or not held.equals(self._held):
            texts = [*as_text(pd.Series(held.to_pandas(), dtype=object)), ""]  # last, the missing
            self._positions = self.variable.positions(texts).astype(self._small)
            if self.variable.ordered and getattr(kind, "ordered", False):
                self.variable.check_order(self.path, texts)
            self._held = held
        at = at.fill_null(len(held)) if at.null_count else at
        return self._positions.take(at.to_numpy())


def _is_number(kind) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind)


def _text_of(scalar) -> str:
    """As everywhere: one that is missing is empty text."""
    return as_text(pd.Series([scalar.as_py()], dtype=object)).iloc[0]


def pack_part(part: Part, schema: Schema) -> BitColumns:
    """The records of a part as bit columns.

    Raises
    ------
    ValueError
        As :func:`batches_of`, or if the part has more or fewer records than it had.
    """
    levels = tuple(map(len, schema.levels.values()))
    most = packed_bytes(levels, part.n)
    return pack(batches_of(part, schema), levels, part.n, most_bytes=most)
