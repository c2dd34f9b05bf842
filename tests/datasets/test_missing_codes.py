"""Codes of missing values are missing values in every format, and numbers are read as written."""

import json

import numpy as np
import pandas as pd
import pytest
from people import BIT, refused

from dpcgd import Dataset, Schema, draft_schema, load, read_csv, read_parquet
from dpcgd.datasets.parquet_files import pack_parts, parts_of

AGE = {"edges": [0, 10, 20], "outside": "clip"}


def of_csv(folder, values, schema, **how):
    pd.DataFrame({"a": values, "b": "0"}).to_csv(folder / "people.csv", index=False)
    return read_csv(folder / "people.csv", schema, **how).counts([0]).tolist()


def of_frame(folder, values, schema):
    return Dataset.from_pandas(pd.DataFrame({"a": values, "b": "0"}), schema).counts([0]).tolist()


def of_parquet(folder, values, schema):
    pytest.importorskip("pyarrow", reason="it is in the parquet extra")
    pd.DataFrame({"a": values, "b": "0"}).to_parquet(folder / "people.parquet")
    return read_parquet(folder / "people.parquet", schema).counts([0]).tolist()


def of_part(folder, values, schema):
    """What a worker of a cluster does."""
    of_parquet(folder, values, schema := Schema.of(schema))
    parts = parts_of(str(folder / "people.parquet"), schema, [])
    return pack_parts(parts, schema).counts([0]).tolist()


FORMATS = (of_csv, of_frame, of_parquet, of_part)

NUMBERS = {
    "floats": [5, 99, -9, None, 12],
    "text": ["5", "99", "-9", "", "12"],
    "nullable": pd.array([5, 99, -9, None, 12], "Int64"),
    "objects": np.array([5, 99.0, "-9", None, "12.0"], object),
    "categories": pd.Categorical([5, 99, -9, None, 12]),
}
"""One in each level of AGE, then the codes 99 and -9, and a gap."""


MISSING = [
    ("99", [2, 1, 2]),
    (99, [2, 1, 2]),
    ([-9, 99, "NA", "."], [1, 1, 3]),
    (["unknown", "-9.0", 99.0], [1, 1, 3]),
    ("unknown", [2, 2, 1]),
    (["0 to 10", 99, -9], [4, 1]),
]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("read", FORMATS)
@pytest.mark.parametrize(("missing", "counts"), MISSING)
def test_a_code_of_a_number_is_missing_in_every_format(tmp_path, read, kind, missing, counts):
    if kind == "objects" and read in (of_parquet, of_part):
        pytest.skip("a column of a file has one type")
    assert read(tmp_path, NUMBERS[kind], {"a": {**AGE, "missing": missing}, "b": BIT}) == counts


@pytest.mark.parametrize("read", FORMATS)
def test_a_code_of_text_is_missing_in_every_format(tmp_path, read):
    schema = {"a": {**AGE, "missing": ["unknown", "NA", "."]}, "b": BIT}
    assert read(tmp_path, ["5", "NA", "12", "", ".", "unknown"], schema) == [1, 1, 4]
    schema["a"]["missing"] = "NA"
    assert read(tmp_path, ["5", "NA", ""], schema) == [1, 0, 2]
    refused("record 1, column 'a': 'na' is no", read, tmp_path, ["na", "NA", ""], schema)


@pytest.mark.parametrize("read", FORMATS)
@pytest.mark.parametrize("values", [[1, 9, 2, -8, None], ["1", "9", "2", "-8", ""]])
def test_codes_beside_a_list_of_levels_are_missing(tmp_path, read, values):
    schema = {"a": {"levels": ["1", "2"], "missing": ["not said", 9, -8]}, "b": BIT}
    assert read(tmp_path, values, schema) == [1, 1, 3]
    schema["a"] = {"levels": ["9", "1", "2"], "missing": ["9", "-8"]}
    assert read(tmp_path, values, schema) == [3, 1, 1]


@pytest.mark.parametrize("read", FORMATS)
def test_a_whole_number_with_gaps_is_its_level(tmp_path, read):
    values = [14, None, 2, 14]
    assert read(tmp_path, values, {"a": ["2", "14", ""], "b": BIT}) == [1, 2, 1]
    written = {"a": ["2.0", "2", "14", "14.0", ""], "b": BIT}
    assert read(tmp_path, values, written) == [1, 0, 0, 2, 1]
    for odd in (2.0, 2.5):  # nor is either the level ''
        cure = f"'{odd}' is not among the levels 14, ; correct the value"
        refused(cure, read, tmp_path, [14, None, odd], {"a": ["14", ""], "b": BIT})


def test_codes_stand_in_the_schema_and_on_the_data(tmp_path):
    said = {"a": {**AGE, "missing": ["unknown", -9, 99.0, "NA"]}, "b": BIT}
    schema = Schema(said)
    assert schema.levels["a"] == ("0 to 10", "10 to 20", "unknown")
    assert schema.to_dict()["a"]["missing"] == ["unknown", "-9", "99", "NA"]
    assert Schema(json.loads(json.dumps(schema.to_dict()))) == schema
    assert draft_schema(said)["a"] == schema.to_dict()["a"]
    data = Dataset.from_pandas(pd.DataFrame({"a": [5, 99], "b": BIT}), said)
    assert data.rules == json.loads(json.dumps(data.rules)) == schema.to_dict()
    assert dict(data.missing) == {"a": "unknown"}


def test_data_without_a_schema_have_rules_too():
    data = load("cancer", n=5, rng=np.random.default_rng(0))
    plain = {"levels": list(data.levels["Smoker"]), "missing": "refuse", "ordered": False}
    assert (data.rules["Smoker"], Schema(data.rules).levels) == (plain, data.levels)


NO_CODES = [], ["NA", ""], ["NA", None], ["refuse", 9], [True], np.nan, {"NA": 9}
CONTRADICTORY = [
    *[({**AGE, "missing": odd}, "missing must be 'refuse', the name of a l") for odd in NO_CODES],
    ({**AGE, "missing": [9, "9.0"]}, "'a' lists missing code '9' twice; list it once"),
    ({**AGE, "missing": ["unknown", " 9"]}, "level ' 9' has blanks at its ends; take them out"),
    ({**AGE, "missing": ["NA", "0 to 10"]}, "missing code '0 to 10' is level '0 to 10' too"),
    ({"levels": BIT, "missing": ["no", 1]}, "missing code '1' is level '1' too; take it out"),
    ({"levels": ["01", "02"], "missing": ["x", 1]}, "missing code '1' is level '01' too"),
    ({"levels": ["", "2"], "missing": ["x", 1]}, "two levels for missing values, '' and 'x'"),
]


@pytest.mark.parametrize(("entry", "cure"), CONTRADICTORY)
def test_codes_that_contradict_the_schema_are_refused(entry, cure):
    refused(cure, Schema, {"a": entry, "b": BIT})


# --- marks of numbers

WIDE = {"a": {"edges": [0, 3, 10, 3000, 9000]}, "b": BIT}


MARKS = [
    (["2.000", "3.500"], {"decimal": "."}, [1, 1, 0, 0]),
    (["2.000", "3.500"], {"thousands": "."}, [0, 0, 1, 1]),
    (["2.000,5", "3,5"], {"thousands": "."}, [0, 1, 1, 0]),
    (["2.000,5", "3500"], {"decimal": ",", "thousands": "."}, [0, 0, 1, 1]),
    (["2,000", "3,500"], {"decimal": ","}, [1, 1, 0, 0]),
    (["2,000", "3,500.5"], {"thousands": ","}, [0, 0, 1, 1]),
    (["2'000", "3.5"], {"thousands": "'"}, [0, 1, 1, 0]),
    (["2\u00a0000", "3,5"], {"decimal": ",", "thousands": "\u00a0"}, [0, 1, 1, 0]),
    (["2.000", "3.5"], {}, [1, 1, 0, 0]),
    (["0.500", "3.500"], {}, [1, 1, 0, 0]),
    (["2.000", "1.2345"], {}, [2, 0, 0, 0]),
    (["2.000", "9.500"], {}, [1, 1, 0, 0]),  # 9500 is outside, so only decimals fit
    (["2000", "3500"], {}, [0, 0, 1, 1]),
]


@pytest.mark.parametrize(("values", "how", "counts"), MARKS)
def test_marks_of_numbers_are_read_as_they_are_said_to_be(tmp_path, values, how, counts):
    assert of_csv(tmp_path, values, WIDE, **how) == counts


UNCLEAR = [
    (["2.000", "3.500"], WIDE),
    (["2.000", "4", "", "-9"], {"a": {**AGE, "missing": ["NA", -9]}, "b": BIT}),
    (["2.000", "2"], {"a": ["2", "2000"], "b": BIT}),
    (["2.000", "2000"], {"a": ["2000"], "b": BIT}),
]


@pytest.mark.parametrize("read", [of_csv, of_frame])
@pytest.mark.parametrize(("values", "schema"), UNCLEAR)
def test_points_that_can_be_read_both_ways_are_asked_about(tmp_path, read, values, schema):
    cure = r"column 'a': '2.000' may be 2 or 2000; pass decimal='.' or thousands='.'"
    refused(cure, read, tmp_path, values, schema)


def test_numbers_that_are_no_text_are_read_as_they_are(tmp_path):
    for values in ([2.125, 3.5], pd.Categorical([2.125, 3.125])):
        assert of_frame(tmp_path, values, WIDE) == [1, 1, 0, 0]


def test_a_mark_holds_for_whole_levels_and_codes_too(tmp_path):
    schema = {"a": {"levels": ["14", "2.5", "2000"], "missing": ["NA", -9]}, "b": BIT}
    values = ["14,0", "2,5", "2.000", "-9,0", ""]
    assert of_csv(tmp_path, values, schema, decimal=",", thousands=".") == [1, 1, 1, 2]


UNFIT = [
    ("2,5", {}, "'2,5' is no number in this notation; pass decimal=','"),
    ("1,234.50", {}, "pass thousands=','"),
    ("NA", {}, r'"missing": \["unknown", "NA"\]'),
    ("2.5", {"decimal": ","}, "'2.5' is no number"),
    ("20.00", {"thousands": "."}, "'20.00' is no number"),
    ("1_000", {"thousands": ","}, "'1_000' is no number"),
    ("\u0661\u0664", {}, "is no number"),
    ("inf", {}, "'inf' is no number"),
    ("1", {"decimal": "x"}, "decimal must be '.' or ',', not 'x'"),
    ("1", {"thousands": "0"}, "thousands must be one of"),
    ("1", {"decimal": ".", "thousands": "."}, "decimal and thousands are both '.'; let them"),
]


@pytest.mark.parametrize(("value", "how", "cure"), UNFIT)
def test_marks_that_do_not_fit_are_refused(tmp_path, value, how, cure):
    refused(cure, of_csv, tmp_path, [value], WIDE, **how)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("read", [of_frame, of_parquet])
def test_a_code_is_missing_in_columns_of_either_precision(tmp_path, read, precision):
    schema = {"a": {**AGE, "missing": ["unknown", 99.9]}, "b": BIT}
    assert read(tmp_path, np.array([5, 99.9, np.nan], precision), schema) == [1, 0, 2]


@pytest.mark.parametrize("read", [of_frame, of_parquet])
def test_a_whole_number_is_not_taken_for_a_code_that_single_precision_rounds_to_it(tmp_path, read):
    schema = {"a": {"edges": [0, 6e7, 2e8], "missing": ["unknown", 99_999_999, 1e39]}, "b": BIT}
    assert read(tmp_path, np.array([1e8, 99_999_999, 5]), schema) == [1, 1, 1]
