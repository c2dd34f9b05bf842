"""The mothers of the 1980 census are those that were counted, and schemas fit their tables."""

import gzip
import hashlib

import pandas as pd
import pytest
from dpcgd_book.data.mothers import load_mothers, mothers_schema

from dpcgd.datasets.arguments import data_folder
from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.schema import Schema

FOLDER = data_folder() / "fertility"


@pytest.mark.parametrize(("folder", "table"), [("fertility", "mothers"), ("earnings", "earnings")])
def test_the_files_are_those_of_the_checksums(folder, table):
    folder = data_folder() / folder
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    rows = gzip.decompress((folder / f"{table}.csv.gz").read_bytes())
    found = {f"{table}.csv": rows, "schema.json": (folder / "schema.json").read_bytes()}
    assert sums == {name: hashlib.sha256(text).hexdigest() for name, text in found.items()}


def test_every_mother_has_a_row_and_no_record_is_counted_twice():
    counted = pd.read_csv(FOLDER / "mothers.csv.gz")
    assert not counted.drop(columns="mothers").duplicated().any()
    assert counted.mothers.min() >= 1
    mothers = load_mothers()
    assert len(mothers) == counted.mothers.sum() == 254_654
    again = mothers.groupby(list(mothers)).size().rename("mothers").reset_index()
    pd.testing.assert_frame_equal(again, counted)


def test_the_schema_fits():
    schema = Schema.of(mothers_schema())
    data = Dataset.from_pandas(load_mothers(), schema)
    assert (data.n, data.d) == (254_654, 8)
    assert schema.ordered == {"age", "work"}
    sizes = {name: len(levels) for name, levels in schema.levels.items() if len(levels) > 2}
    assert sizes == {"age": 4, "work": 4}


def test_the_schema_of_earnings_has_their_numbers():
    folder = data_folder() / "earnings"
    table = pd.read_csv(folder / "earnings.csv.gz")
    data = Dataset.from_pandas(table, folder / "schema.json")
    assert (data.n, data.numbers) == (15_992, ("age", "educ", "re74", "re75", "re78"))
