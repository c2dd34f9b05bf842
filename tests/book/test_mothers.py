"""The mothers of the 1980 census are those that were counted, and schemas fit their tables."""

import pandas as pd
from dpcgd_book.data.mothers import load_mothers, mothers_schema

from dpcgd import Dataset, Schema
from dpcgd.datasets.arguments import data_folder


def test_every_mother_has_a_row_and_no_record_is_counted_twice():
    counted = pd.read_csv(data_folder() / "fertility" / "mothers.csv.gz")
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
    data = Dataset.from_pandas(pd.read_csv(folder / "earnings.csv.gz"), folder / "schema.json")
    assert (data.n, data.numbers) == (15_992, ("age", "educ", "re74", "re75", "re78"))
