"""Small tables in Parquet files of all sorts, and the same records in memory."""

import itertools
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet

from dpcgd import Dataset


class Table(NamedTuple):
    """Levels and storage of each variable; records and row groups of each file."""

    levels: list[int]
    kinds: list[str]
    sizes: list[int]
    rows: list[int]
    seed: int


@st.composite
def tables(draw):
    """Some with more levels than a byte has bits, some files without a record."""
    levels = draw(st.lists(st.sampled_from([1, 2, 3, 5, 9, 300]), min_size=2, max_size=4))
    kinds = [draw(st.sampled_from(["whole", "text", "category"])) for _ in levels]
    sizes = draw(st.lists(st.integers(0, 200), min_size=1, max_size=3).filter(any))
    rows = [draw(st.integers(1, 150)) for _ in sizes]
    return Table(levels, kinds, sizes, rows, draw(st.integers(0, 2**32 - 1)))


def written(folder, table):
    """Write the files; the data set that they hold."""
    rng = np.random.default_rng(table.seed)
    codes = np.column_stack([rng.integers(of, size=sum(table.sizes)) for of in table.levels])
    parts = np.split(codes, np.cumsum(table.sizes)[:-1])
    for i, (part, rows) in enumerate(zip(parts, table.rows, strict=True)):
        columns = as_columns(part, table.levels, table.kinds)
        parquet.write_table(columns, folder / f"{i}.parquet", row_group_size=rows)
    return Dataset(codes, schema_of(table.levels))


def schema_of(levels):
    return {f"v{i}": [str(k) for k in range(of)] for i, of in enumerate(levels)}


def as_columns(codes, levels, kinds):
    """The same records as whole numbers, as text, or as numbers of what stands in a dictionary."""
    columns = {}
    for i, (column, of, kind) in enumerate(zip(codes.T, levels, kinds, strict=True)):
        names = pa.array([str(k) for k in range(of)])
        columns[f"v{i}"] = {
            "whole": lambda column=column: pa.array(column),
            "text": lambda column=column, names=names: names.take(pa.array(column)),
            "category": lambda column=column, names=names: pa.DictionaryArray.from_arrays(
                pa.array(column.astype(np.int32)), names
            ),
        }[kind]()
    return pa.table(columns)


def questions(d):
    return [at for k in (1, 2, 3) for at in itertools.permutations(range(d), min(k, d))][:30]
