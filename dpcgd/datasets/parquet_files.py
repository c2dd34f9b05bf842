"""Tables of people from Parquet files, where pyarrow is installed to read them.

Row groups are checked against a schema, decoded batch after batch, and packed.
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

__all__ = ["Part", "pack_parts", "parts_of", "read_parquet", "zeros_on_disk"]

NO_PATH = (
    "paths must be the path of a Parquet file, of a folder of them, or a list of files; for a "
    "DataFrame use Dataset.from_pandas"
)
"""What is said of anything else."""

BATCH = 1 << 17
"""Records decoded at a time."""

PART = 1 << 22
"""A part with this many records is no longer joined with the next row group."""

INDEX = re.compile("__index_level_[0-9]+__")
"""Pandas names the numbers of the rows like this, where it stores them."""

CHUNK = 1 << 22
"""Bytes of zeros written at a time."""


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
    """Read a table of people that may be larger than memory: only its packed bits are kept.

    Row groups are decoded batch after batch, compared with the schema, packed and let go. A record
    takes one bit for two levels, two for three or four, and so on; where the public domain has so
    few cells that their counts take less, those are kept instead.

    Parameters
    ----------
    paths : str, path or list
        A Parquet file, a folder (all its files that end in .parquet), or several files. They hold
        one table: each record is in one of them.
    schema, ignore, columns, name
        As for :func:`~dpcgd.datasets.csv_files.read_csv`. Values are compared with the schema as
        :meth:`~dpcgd.datasets.dataset.Dataset.from_pandas` does, but whole numbers stay whole where
        some are missing.
    spill : bool
        Keep the bits in a temporary file, of which the system holds in memory what fits.
    client : distributed.Client, optional
        Of a Dask cluster, whose workers see the files under the same paths and keep the bits.

    Returns
    -------
    PackedRecords or ClusterRecords
        Answers counts, which is all that most systems ask for. Where records must be at hand, use
        ``Dataset.from_pandas(pandas.read_parquet(path), schema)``.

    Raises
    ------
    ValueError
        If there is no pyarrow, a file is missing, damaged, given twice (by a link too), no Parquet
        file or written while it is read, its columns are not those of the schema, a value is
        outside it, there is no record, or no room on disk. Nothing is kept then.

    Notes
    -----
    The messages name records and values: they are for whoever holds the data, not for release.

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
    files = _files(paths)
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError("this takes pyarrow; pip install pyarrow, or save the table as CSV")
    parts = list(chain.from_iterable(parts_of(file, schema, ignore, columns) for file in files))
    if not parts:
        raise ValueError(f"{files[0]} has no record, nor has any other file; give at least one")
    named = paths if isinstance(paths, (str, os.PathLike)) else files[0]
    name = name or Path(named).resolve().stem
    if client is None:
        packed = pack_parts(parts, schema, zeros_on_disk if spill else zeros)
        return PackedRecords(packed, schema, name)
    if spill:
        raise ValueError("spill is for one machine; with a client, leave it out")
    packer = partial(pack_parts, schema=schema)
    return ClusterRecords(client, packer, [[part] for part in parts], schema, name)


def _files(paths) -> list[str]:
    """All files, each once."""
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
    """In the order of their names; what begins with a dot or a low line is none of the table."""
    entries = [entry for entry in sorted(folder.iterdir()) if entry.name[0] not in "._"]
    if inside := next(filter(Path.is_dir, entries), None):
        raise ValueError(f"{folder} has a folder in it, {inside.name}; give a list of all files")
    files = [entry for entry in entries if entry.suffix == ".parquet"]
    if not files:
        raise ValueError(f"{folder} has no file that ends in .parquet; correct the path")
    return files


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


def parts_of(
    path: str, schema: Schema, ignore: Iterable[str], columns: str | None = None
) -> list[Part]:
    """The parts of a file whose columns are those of the schema; only its end is read.

    Parameters
    ----------
    path : str
    schema : Schema
    ignore, columns
        As for :func:`~dpcgd.datasets.csv_files.read_csv`.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    if first_bytes(path, NO_PATH) != b"PAR1":
        raise ValueError(f"{path} is no Parquet file; read text with read_csv")
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
        If a file is damaged or was written since its parts were found, or at the first value that
        does not fit its variable.
    """
    sizes, n = tuple(map(len, schema.levels.values())), sum(part.n for part in parts)
    batches = chain.from_iterable(_batches(part, schema) for part in parts)
    return pack(batches, sizes, n, most_bytes=packed_bytes(sizes, n), allocate=allocate)


def _batches(part, schema) -> Iterator[list[np.ndarray]]:
    """Codes of the records of a part, some at a time."""
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
    """An array of zeros in a temporary file that goes when the array goes, whatever happens.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy type

    Raises
    ------
    ValueError
        If the disk has no room for it; the file is gone then.

    Notes
    -----
    The zeros are written out, so that a full disk is found here and not at some later page. The
    folder is that of ``tempfile``: the environment variable ``TMPDIR`` names another.

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
