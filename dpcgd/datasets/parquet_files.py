"""Tables about people from Parquet files; this needs pyarrow.

Row groups are checked against a schema, decoded batch by batch, and packed.
"""

import importlib.util
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from dpcgd.datasets.arguments import first_bytes, refuses_weights
from dpcgd.datasets.bit_columns import CHANGED, BitColumns, PackedRecords, pack, packed_bytes, zeros
from dpcgd.datasets.cluster_records import ClusterRecords
from dpcgd.datasets.columns import Column, check_columns, coded
from dpcgd.datasets.progress import progress
from dpcgd.datasets.schema import Schema

__all__ = ["Part", "files_of", "pack_parts", "parts_of", "read_parquet", "zeros_on_disk"]

NO_PATH = (
    "paths must be the path of a Parquet file, of a folder of them, or a list of files; for a "
    "DataFrame use Dataset.from_pandas"
)
"""The message for any other argument."""

BATCH = 1 << 17
"""Number of records that are decoded at once."""

PART = 1 << 22
"""A part with at least this many records is not merged with the next row group."""

INDEX = re.compile("__index_level_[0-9]+__")
"""Pattern of the names that pandas gives to stored row numbers."""

CHUNK = 1 << 22
"""Number of bytes of zeros that are written at once."""


@refuses_weights
def read_parquet(
    paths,
    schema: Any,
    *,
    ignore: Iterable[str] = (),
    columns: str | None = None,
    name: str | None = None,
    spill: bool = False,
    client: Any = None,
) -> PackedRecords | ClusterRecords:
    """Read a table that may be larger than memory: only its packed bits are stored.

    Row groups are decoded batch by batch, compared with the schema, packed and dropped. A variable
    takes one bit a record for two levels, two bits for three or four levels, and so on. If the
    counts of all cells of the public domain take less memory, they are stored instead.

    Parameters
    ----------
    paths : str, path or list
        A Parquet file, a folder (all its files that end in .parquet), or several files. Together
        they hold one table; each record is in one file.
    schema, ignore, columns, name
        As for :func:`~dpcgd.datasets.csv_files.read_csv`. Values are compared with the schema as in
        :meth:`~dpcgd.datasets.dataset.Dataset.from_pandas`, except that whole numbers stay whole if
        some are missing.
    spill : bool
        Store the bits in a temporary file; the operating system keeps in memory what fits.
    client : distributed.Client, optional
        Client of a Dask cluster; its workers see the files under the same paths and store the bits.

    Returns
    -------
    PackedRecords or ClusterRecords
        Data that answer counts; most systems need nothing else. If a system needs records, use
        ``Dataset.from_pandas(pandas.read_parquet(path), schema)``.

    Raises
    ------
    ValueError
        If pyarrow is not installed. If a file is missing, damaged, given twice (also by a link), no
        Parquet file, or written while it is read. If its columns or values do not fit the schema,
        there is no record, or the disk is full. Nothing is stored then.

    Notes
    -----
    Messages name records and values: they are for the data holder, not for release.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clinic.parquet"
    >>> pd.DataFrame({"cough": ["yes", "no", "no"], "smoke": ["no", "no", "yes"]}).to_parquet(file)
    >>> data = read_parquet(file, {"smoke": ["no", "yes"], "cough": ["no", "yes"]})
    >>> data
    PackedRecords('clinic', n=3, d=2)
    >>> data.counts([0, 1])
    array([[1, 1],
           [1, 0]])
    """
    schema = Schema.of(schema)
    files = files_of(paths)
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError("this takes pyarrow; pip install pyarrow, or save the table as CSV")
    parts = list(chain.from_iterable(parts_of(file, schema, ignore, columns) for file in files))
    if not parts:
        raise ValueError(f"{files[0]} has no record, nor has any other file; give at least one")
    name = name or Path(paths if isinstance(paths, (str, os.PathLike)) else files[0]).resolve().stem
    if client is None:
        packed = pack_parts(parts, schema, zeros_on_disk if spill else zeros)
        return PackedRecords(packed, schema, name)
    if spill:
        raise ValueError("spill is for one machine; with a client, leave it out")
    packer = partial(pack_parts, schema=schema)
    return ClusterRecords(client, packer, [[part] for part in parts], schema, name)


def files_of(paths) -> list[str]:
    """The paths of all files, each once."""
    if isinstance(paths, (str, os.PathLike)):
        paths = _in_folder(Path(paths)) if os.path.isdir(paths) else [paths]
    elif not isinstance(paths, Iterable) or hasattr(paths, "columns"):
        raise ValueError(NO_PATH)
    names: dict[tuple[int, int], str] = {}
    for path in paths:
        first_bytes(path, NO_PATH)
        file = os.stat(path).st_dev, os.stat(path).st_ino
        if file in names:
            raise ValueError(f"{path} is the same file as {names[file]}; name each file once")
        names[file] = os.fspath(path)
    if not names:
        raise ValueError("paths is an empty list; name at least one file")
    return list(names.values())


def _in_folder(folder: Path) -> list[Path]:
    """The files of a folder, by name; names with a leading dot or underscore are left out."""
    entries = [entry for entry in sorted(folder.iterdir()) if entry.name[0] not in "._"]
    if inside := next(filter(Path.is_dir, entries), None):
        cure = "put all files in one, or give a list"
        raise ValueError(f"{folder} has a folder in it, {inside.name}; {cure}")
    files = [entry for entry in entries if entry.suffix == ".parquet"]
    if not files:
        raise ValueError(f"{folder} has no file that ends in .parquet; correct the path")
    return files


@dataclass(frozen=True)
class Part:
    """Consecutive row groups of a Parquet file.

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


def parts_of(
    path: str, schema: Schema, ignore: Iterable[str], columns: str | None = None
) -> list[Part]:
    """The parts of a file, whose columns must fit the schema; only the file's end is read.

    Parameters
    ----------
    path : str
    schema : Schema
    ignore, columns
        As for :func:`~dpcgd.datasets.csv_files.read_csv`.

    Raises
    ------
    ValueError
        If it is no Parquet file with these columns.
    """
    if first_bytes(path, NO_PATH) != b"PAR1":
        raise ValueError(f"{path} is no Parquet file; let the name of a CSV file end in .csv")
    stamp = _stamp(path)
    with _opened(path) as file:
        names = [name for name in file.schema_arrow.names if not INDEX.fullmatch(name)]
        check_columns(path, names, schema.variables, ignore, columns)
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


@contextmanager
def _readable(path):
    """Raise errors of reading a file as one line."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or ["it is damaged"])[0].rstrip(".")
        raise ValueError(f"{path} cannot be read: {reason}; write the file anew") from None


def _opened(path):
    """Open a file; its columns of text are read as dictionaries."""
    from pyarrow import parquet

    with _readable(path):
        fields = parquet.read_schema(path)
        texts = [f.name for f in fields if str(f.type) in ("string", "large_string")]
        return parquet.ParquetFile(path, read_dictionary=texts)


def pack_parts(
    parts: Sequence[Part], schema: Schema, allocate: Callable[..., np.ndarray] = zeros
) -> BitColumns:
    """The records of some parts as bit columns.

    Parameters
    ----------
    parts : sequence of Part
    schema : Schema
    allocate : callable
        From a shape and a type to an array of zeros for the bits.

    Raises
    ------
    ValueError
        If a file is damaged or has changed meanwhile, or a value does not fit its variable.
    """
    sizes, n = tuple(map(len, schema.levels.values())), sum(part.n for part in parts)
    batches = chain.from_iterable(_batches(part, schema) for part in parts)
    return pack(batches, sizes, n, most_bytes=packed_bytes(sizes, n), allocate=allocate)


def _batches(part, schema) -> Iterator[list[np.ndarray]]:
    """Codes of the records of a part, batch by batch."""
    _check_same(part)
    columns = [Column(part.path, variable) for variable in schema.variables.values()]
    decoded, number = _decoded(part, list(schema.variables)), math.ceil(part.n / BATCH)
    yield from coded(progress(decoded, f"reading {part.path}", number), columns, part.first)
    _check_same(part)


def _check_same(part):
    if _stamp(part.path) != part.stamp:
        raise ValueError(f"{part.path}: {CHANGED}")


def _decoded(part, names) -> Iterator:
    with _opened(part.path) as file, _readable(part.path):
        yield from file.iter_batches(BATCH, row_groups=list(part.groups), columns=names)


def zeros_on_disk(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of zeros in a temporary file, which is deleted with the array in any case.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy type

    Raises
    ------
    ValueError
        If the disk has no room; the file is deleted then.

    Notes
    -----
    The zeros are written, so that a full disk is noticed here and not later. The folder is that of
    ``tempfile``; the environment variable ``TMPDIR`` chooses another.

    Examples
    --------
    >>> zeros_on_disk((2, 3), np.uint64).sum()
    np.uint64(0)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            for start in range(0, size, CHUNK):
                file.write(bytes(min(CHUNK, size - start)))
            file.flush()
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        problem = f"{tempfile.gettempdir()} has no room for {size:,} bytes: {error.strerror}"
        raise ValueError(f"{problem}; free some room, or let TMPDIR name another folder") from None
