"""Tables of people from Parquet files, where pyarrow is installed to read them."""

import importlib.util
import os
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from dpcgd.datasets.arguments import first_bytes
from dpcgd.datasets.bit_columns import BitColumns, PackedRecords, pack, packed_bytes, zeros
from dpcgd.datasets.cluster_records import ClusterRecords
from dpcgd.datasets.disk_arrays import zeros_on_disk
from dpcgd.datasets.parquet_parts import Part, batches_of, parts_of
from dpcgd.datasets.schema import Schema

__all__ = ["read_parquet"]

NO_PATH = (
    "paths must be the path of a Parquet file, of a folder of them, or a list of files; for a "
    "DataFrame use Dataset.from_pandas"
)
"""What is said of anything else."""


def read_parquet(
    paths,
    schema: Any,
    *,
    ignore: Iterable[str] = (),
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
    schema, ignore, name
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
        raise ValueError(
            "reading Parquet files takes pyarrow; pip install pyarrow, or save the table as CSV"
        )
    parts = list(chain.from_iterable(parts_of(file, schema, ignore) for file in files))
    if not parts:
        raise ValueError(f"{files[0]} has no record, nor has any other file; give at least one")
    named = Path(paths if isinstance(paths, (str, os.PathLike)) else files[0])
    name = name or named.resolve().stem
    if client is not None:
        _check_cluster(client, spill)
        return ClusterRecords(client, parts, schema, name)
    return PackedRecords(_packed(parts, schema, spill), schema, name)


def _packed(parts: Sequence[Part], schema: Schema, spill: bool) -> BitColumns:
    sizes, n = schema.cardinalities, sum(part.n for part in parts)
    batches = chain.from_iterable(batches_of(part, schema) for part in parts)
    allocate = zeros_on_disk if spill else zeros
    return pack(batches, sizes, n, most_bytes=packed_bytes(sizes, n), allocate=allocate)


def _files(paths) -> list[str]:
    """All files, each once."""
    if isinstance(paths, (str, os.PathLike)):
        files = _in_folder(Path(paths)) if os.path.isdir(paths) else [os.fspath(paths)]
    elif isinstance(paths, Iterable) and not hasattr(paths, "columns"):
        files = list(paths)
    else:
        raise ValueError(NO_PATH)
    if not files:
        raise ValueError("paths is an empty list; name at least one file")
    names: dict[tuple[int, int], Any] = {}
    for path in files:
        first_bytes(path, NO_PATH)
        file = os.stat(path).st_dev, os.stat(path).st_ino
        if file in names:
            raise ValueError(f"{path} is the same file as {names[file]}; name each file once")
        names[file] = path
    return [os.fspath(path) for path in files]


def _in_folder(folder: Path) -> list[str]:
    """In the order of their names; what begins with a dot or a low line is none of the table."""
    entries = [entry for entry in sorted(folder.iterdir()) if entry.name[0] not in "._"]
    below = [entry for entry in entries if entry.is_dir()]
    if below:
        raise ValueError(
            f"{folder} has a folder in it, {below[0].name}; give a list of all files instead"
        )
    files = [str(entry) for entry in entries if entry.suffix == ".parquet"]
    if not files:
        raise ValueError(f"{folder} has no file that ends in .parquet; correct the path")
    return files


def _check_cluster(client, spill):
    if importlib.util.find_spec("distributed") is None:
        raise ValueError("a cluster takes distributed; pip install distributed, or pass no client")
    from distributed import Client

    if not isinstance(client, Client):
        raise ValueError(
            f"client must be a distributed.Client, not a {type(client).__name__}; make one with "
            "Client(address)"
        )
    if spill:
        raise ValueError("spill is for one machine; with a client, leave it out")
