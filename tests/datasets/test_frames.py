"""Tables of pandas are taken by name, and their values as text."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from people import BIT, refused

from dpcgd import Dataset

LEVELS = {"a": BIT, "b": ("0", "1", "2")}
FRAME = pd.DataFrame({"b": [2, 0], "id": [7, 8], "a": [1, 0]})
RANGES = {"age": (0, 80), "height": (1, 2)}


def test_columns_go_by_name_and_not_by_position():
    truth = nx.DiGraph([("a", "b")])
    data = Dataset.from_pandas(FRAME, LEVELS, ignore=["id"], truth=truth, name="toy")
    assert (data.variables, data.codes.tolist(), data.name) == (("a", "b"), [[1, 2], [0, 0]], "toy")
    assert data.truth is truth


class Table:
    """Any other table whose columns have names."""

    columns = ("a", "b")


@pytest.mark.parametrize("table", [FRAME[["a", "b"]], Table()])
def test_a_table_with_names_is_refused_where_columns_go_by_position(table):
    refused("codes must be an array.* use Dataset.from_pandas", Dataset, table, LEVELS)
    cure = "values must be an array.* use Dataset.from_pandas"
    refused(cure, Dataset.of_numbers, table, RANGES)


@pytest.mark.parametrize("frame", [FRAME.to_numpy(), {"a": [0], "b": [1]}, FRAME["a"], None])
def test_what_is_no_dataframe_is_refused(frame):
    cure = r"DataFrame, not .*; name the columns with pd.DataFrame"
    refused(cure, Dataset.from_pandas, frame, LEVELS)


@pytest.mark.parametrize(
    ("frame", "ignore", "cure"),
    [
        (FRAME, [], r"'id' of the frame is not in the schema; add it .* or pass ignore=\['id'\]"),
        (FRAME, ["idd"], "ignore names 'idd', which is no column of the frame; did you mean 'id'"),
        (FRAME, ["id", "a"], "'a' is in ignore and in the schema; take it out of one"),
        (FRAME, "id", r"ignore must be a list of columns, such as"),
        (FRAME[["b"]], [], "the frame has no column 'a', which is in the schema; add the"),
        (FRAME[["a", "b", "a"]], [], "the frame names column 'a' twice; rename one of the two"),
        (FRAME.set_axis(["a", 0, "b"], axis=1), [], "0 of the frame has a name that is not text"),
        (FRAME.set_axis(["a", "id", "b "], axis=1), ["id"], "has blanks at the ends of its name"),
    ],
)
def test_columns_are_the_variables_and_those_to_ignore(frame, ignore, cure):
    refused(cure, Dataset.from_pandas, frame, LEVELS, ignore=ignore)


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


class DataFrame:
    """One of another library."""

    def to_pandas(self): ...


def test_a_frame_of_another_library_is_named_with_the_cure(monkeypatch):
    monkeypatch.setattr(DataFrame, "__module__", "polars.dataframe.frame")
    cure = r"not a DataFrame of polars; convert it with frame.to_pandas"
    refused(cure, Dataset.from_pandas, DataFrame(), LEVELS)
