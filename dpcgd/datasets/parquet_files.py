"""Tables of people from Parquet files, where pyarrow is installed to read them."""

import importlib.util
import os
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpcgd.datasets.arguments import first_bytes
from dpcgd.datasets.columns import NO_PATH
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.schema import Schema

__all__ = ["read_parquet"]


def read_parquet(
    path, schema: Any, *, ignore: Iterable[str] = (), name: str | None = None
) -> Dataset:
    """Read a table of people from a Parquet file, as :func:`~dpcgd.datasets.csv_files.read_csv`.

    Parameters
    ----------
    path : str or path
        One Parquet file. It is read into memory by pandas, which needs pyarrow for that; dpcgd
        does not install it.
    schema, ignore, name
        As for :func:`~dpcgd.datasets.csv_files.read_csv`. Values are compared with the schema as
        :meth:`~dpcgd.datasets.dataset.Dataset.from_pandas` does.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If there is no pyarrow, or no such file, or it is no Parquet file, or as
        :meth:`~dpcgd.datasets.dataset.Dataset.from_pandas` does.
    """
    schema = Schema.of(schema)
    if first_bytes(path, NO_PATH) != b"PAR1":
        raise ValueError(f"{path} is no Parquet file; read text with read_csv")
    if importlib.util.find_spec("pyarrow") is None:
        raise ValueError(
            "reading Parquet files takes pyarrow; pip install pyarrow, or save the table as CSV"
        )
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError) as error:  # of pyarrow
        told = str(error).splitlines()[0]
        raise ValueError(f"{path} cannot be read: {told}; write the file anew") from None
    name = name or os.path.splitext(os.path.basename(path))[0]
    return Dataset.from_pandas(frame, schema, ignore=ignore, name=name)
