"""Real-valued data with public ranges: clipped, refused, scaled, binned."""

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from people import BIT, refused

from dpcgd import Dataset
from dpcgd.datasets.measurements import Measurements

RANGES = {"age": (0, 80), "height": (1, 2)}


def test_values_outside_a_range_go_to_its_nearer_end():
    data = Measurements([[-5.0, 3.0], [40.0, 1.25]], RANGES)
    assert data.values.tolist() == [[0, 2], [40, 1.25]]
    assert data.scaled.tolist() == [[-1, 1], [0, -0.5]]


def test_values_are_a_copy_that_cannot_be_changed():
    values = np.array([[1.0, 1.0], [2.0, 2.0]])
    data = Measurements(values, RANGES)
    values[0, 0] = 9
    assert data.values[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 3


ROW = [[1.0, 1.0]]
LARGEST = np.finfo(float).max


@pytest.mark.parametrize(
    ("values", "ranges", "cure"),
    [
        ([[1.0, np.nan]], RANGES, "missing or infinite"),
        ([[1.0, None]], RANGES, "missing or infinite; drop or impute"),
        ([[1.0]], RANGES, "one column for each of the 2"),
        (np.empty((0, 2)), RANGES, "one row a record"),
        ([[1.0, 1.0], [1.0]], RANGES, "differ in length; give all as many"),
        ([["1", "1"]], RANGES, r"must be numbers, not text .* convert them first"),
        (np.array([["1", 1]], object), RANGES, "must be numbers, not text"),
        (np.array([[1, 1]], "datetime64[s]"), RANGES, "must be numbers, not text or other objects"),
        (ROW, {"age": (0, 80)}, "at least two variables"),
        *[
            (ROW, {"age": ends, "height": (1, 2)}, r"'age': a range is two finite .* give \(low, ")
            for ends in (
                *((0, 0), (0, np.nan), (-LARGEST, LARGEST), (0.0, 5e-324), (80, 0)),
                *(("1", "2"), (1, 1.5, 2)),
            )
        ],
        *[
            (ROW, {"age": ends, "height": (1, 2)}, "'age': give its range as a list, not")
            for ends in (2, "12", {1, 2})
        ],
        (ROW, {"age": (0, 80), 2: (1, 2)}, "write it as '2'"),
        (ROW, {"age": (0, 80), "b ": (1, 2)}, "'b ' is empty or has blanks at its ends"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_input_is_refused_with_its_cure(values, ranges, cure):
    refused(cure, Measurements, values, ranges)


def test_ends_and_values_may_be_any_numbers():
    ends = {"age": [np.int8(0), Fraction(160, 2)], "height": np.array([1, 2])}
    data = Measurements(np.array([[Decimal(20), 1.5]], object), ends)
    assert (dict(data.ranges), data.values.tolist()) == (RANGES, [[20, 1.5]])


def test_codes_become_level_numbers():
    levels = {"smoke": ("no", "yes"), "pain": ("0", "1", "2"), "all": ("yes",)}
    data = Measurements.from_codes(Dataset([[0, 2, 0], [1, 0, 0]], levels))
    assert data.values.tolist() == [[0, 2, 0], [1, 0, 0]]
    assert data.scaled.tolist() == [[-1, 1, -1], [1, -1, -1]]
    assert data.ranges["all"] == (0, 1)


def test_bins_are_equally_wide_and_hold_both_ends():
    data = Measurements([[0.0, 1.0], [19.9, 1.5], [80.0, 2.0]], RANGES)
    assert data.binned(4).codes.tolist() == [[0, 0], [0, 2], [3, 3]]
    assert (data.binned(1).cardinalities, data.binned(4).ordered) == ((1, 1), {"age", "height"})
    for bins in (0, 4.0, "4", True, None):
        refused("bins must be .*at least 1, not", data.binned, bins)


# --- tables of pandas are taken by name, of values and of codes

LEVELS = {"a": BIT, "b": ("0", "1", "2")}
FRAME = pd.DataFrame({"b": [2, 0], "id": [7, 8], "a": [1, 0]})
PEOPLE = pd.DataFrame({"height": [1.5, 2.5], "id": ["x", "y"], "age": [20, 30]})


def test_columns_go_by_name_and_not_by_position():
    truth = nx.DiGraph([("a", "b")])
    data = Dataset.from_pandas(FRAME, LEVELS, ignore=["id"], truth=truth, name="toy")
    assert (data.variables, data.codes.tolist(), data.name) == (("a", "b"), [[1, 2], [0, 0]], "toy")
    assert data.truth is truth
    truth = nx.DiGraph([("age", "height")])
    people = Measurements.from_pandas(PEOPLE, RANGES, ignore=["id"], truth=truth, name="toy")
    assert people.truth is truth
    assert (people.variables, people.name) == (("age", "height"), "toy")
    assert people.values.tolist() == [[20, 1.5], [30, 2]]


class Table:
    """Any other table whose columns have names."""

    columns = ("a", "b")


@pytest.mark.parametrize("table", [FRAME[["a", "b"]], Table()])
def test_a_table_with_names_is_refused_where_columns_go_by_position(table):
    refused("codes must be an array.* use Dataset.from_pandas", Dataset, table, LEVELS)
    refused("values must be an array.* use Measurements.from_pandas", Measurements, table, RANGES)


@pytest.mark.parametrize("frame", [FRAME.to_numpy(), {"a": [0], "b": [1]}, FRAME["a"], None])
def test_what_is_no_dataframe_is_refused(frame):
    for read, public in ((Dataset.from_pandas, LEVELS), (Measurements.from_pandas, RANGES)):
        refused(r"DataFrame, not .*; name the columns with pd.DataFrame", read, frame, public)


@pytest.mark.parametrize(
    ("frame", "ignore", "cure"),
    [
        (FRAME, [], r"'id' of the frame is not in the {}; add it .* or pass ignore=\['id'\]"),
        (FRAME, ["idd"], "ignore names 'idd', which is no column of the frame; did you mean 'id'"),
        (FRAME, ["id", "a"], "'a' is in ignore and in the {}; take it out of one"),
        (FRAME, "id", r"ignore must be a list of columns, such as"),
        (FRAME[["b"]], [], "the frame has no column 'a', which is in the {}; add the column or"),
        (FRAME[["a", "b", "a"]], [], "the frame names column 'a' twice; rename one of the two"),
        (FRAME.set_axis(["a", 0, "b"], axis=1), [], "0 of the frame has a name that is not text"),
        (FRAME.set_axis(["a", "id", "b "], axis=1), ["id"], "has blanks at the ends of its name"),
    ],
)
def test_columns_are_the_variables_and_those_to_ignore(frame, ignore, cure):
    ranges = {"a": (0, 1), "b": (0, 2)}
    refused(cure.format("schema"), Dataset.from_pandas, frame, LEVELS, ignore=ignore)
    refused(cure.format("ranges"), Measurements.from_pandas, frame, ranges, ignore=ignore)


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["1", "0"], BIT),
        (np.array([1, 0], np.uint8), BIT),
        (pd.array([1, 0], dtype="Int64"), BIT),
        (pd.Categorical(["1", "0"], categories=["1", "0"]), BIT),
        (pd.Categorical([1, 0]), BIT),
        ([True, False], ("False", "True")),
        (pd.array([True, False], dtype="boolean"), (False, True)),
        ([1.5, 0.5], ("0.5", "1.5")),
        (np.array(["1", 0], object), BIT),
        ([1, 0], (0, 1)),
    ],
)
def test_values_are_compared_as_text(values, levels):
    frame = pd.DataFrame({"a": values, "b": [2, 0]})
    codes = Dataset.from_pandas(frame, LEVELS | {"a": levels}).codes
    assert codes.tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        ["1", None],
        ["1", ""],
        pd.array(["1", pd.NA], dtype="string"),
        pd.Categorical(["1", None]),
        np.array(["1", np.nan], object),
    ],
)
def test_a_missing_value_is_missing_unless_the_empty_text_is_a_level(values):
    frame = pd.DataFrame({"a": values, "b": [2, 0]})
    levels = LEVELS | {"a": ("0", "1", "1.0")}
    cure = "the frame, record 2, column 'a': the value is missing; drop or impute such records"
    refused(cure, Dataset.from_pandas, frame, levels)
    levels["a"] += ("",)
    assert Dataset.from_pandas(frame, levels).codes[1, 0] == 3


def test_what_does_not_fit_is_refused():
    cure = "the frame, record 2, column 'a': '3' is not among the levels 0, 1; correct the value"
    frame = pd.DataFrame({"a": [1, 3], "b": [0, 0]}, index=[9, 9])
    refused(cure, Dataset.from_pandas, frame, LEVELS)
    refused("is empty; give at least one record", Dataset.from_pandas, frame[:0], LEVELS)
    refused("schema must be a mapping", Dataset.from_pandas, FRAME, ["a", "b"])
    refused("one row a record", Measurements.from_pandas, PEOPLE[:0], RANGES, ignore=["id"])
    refused("ranges must be a mapping", Measurements.from_pandas, PEOPLE, [(0, 80), (1, 2)])
    odd = nx.DiGraph([("age", "weight")])
    refused("the ranges must name the same variables", Measurements, ROW, RANGES, odd)


class DataFrame:
    """One of another library."""

    def to_pandas(self): ...


def test_a_frame_of_another_library_is_named_with_the_cure(monkeypatch):
    monkeypatch.setattr(DataFrame, "__module__", "polars.dataframe.frame")
    cure = r"not a DataFrame of polars; convert it with frame.to_pandas"
    refused(cure, Dataset.from_pandas, DataFrame(), LEVELS)


GONE = "missing or infinite; drop or impute such records first"
NO_NUMBERS = "column 'age' of the frame holds .*, not numbers; convert it with pd.to_numeric"


@pytest.mark.parametrize(
    ("values", "cure"),
    [
        (["1", "2"], NO_NUMBERS),
        (pd.Categorical([1, 2]), NO_NUMBERS),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), NO_NUMBERS),
        ([1, None], GONE),
        (pd.array([1, pd.NA], dtype="Int64"), GONE),
    ],
)
def test_a_column_of_no_numbers_and_a_missing_number_are_refused(values, cure):
    frame = PEOPLE.assign(age=values)
    refused(cure, Measurements.from_pandas, frame, RANGES, ignore=["id"])
