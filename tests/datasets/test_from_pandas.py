"""Tables of pandas are taken by name, and refused where they would go by position."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dpcgd.datasets.dataset import Dataset
from dpcgd.datasets.measurements import Measurements

BIT = ("0", "1")
LEVELS = {"a": BIT, "b": ("0", "1", "2")}
FRAME = pd.DataFrame({"b": [2, 0], "id": [7, 8], "a": [1, 0]})
RANGES = {"age": (0, 80), "height": (1, 2)}
PEOPLE = pd.DataFrame({"height": [1.5, 2.5], "id": ["x", "y"], "age": [20, 30]})


def test_columns_go_by_name_and_not_by_position():
    data = Dataset.from_pandas(FRAME, LEVELS, ignore=["id"], name="toy")
    assert (data.variables, data.codes.tolist(), data.name) == (("a", "b"), [[1, 2], [0, 0]], "toy")
    people = Measurements.from_pandas(PEOPLE, RANGES, ignore=["id"], name="toy")
    assert (people.variables, people.name) == (("age", "height"), "toy")
    assert people.values.tolist() == [[20, 1.5], [30, 2]]


def test_the_true_graph_comes_along():
    truth = nx.DiGraph([("a", "b")])
    assert Dataset.from_pandas(FRAME, LEVELS, ignore=["id"], truth=truth).truth is truth
    truth = nx.DiGraph([("age", "height")])
    assert Measurements.from_pandas(PEOPLE, RANGES, ignore=["id"], truth=truth).truth is truth


class Table:
    """Any other table whose columns have names."""

    columns = ("a", "b")


@pytest.mark.parametrize("table", [FRAME[["a", "b"]], Table()])
def test_a_table_with_names_is_refused_where_columns_go_by_position(table):
    with pytest.raises(ValueError, match=r"codes must be an array.* use Dataset.from_pandas"):
        Dataset(table, LEVELS)
    with pytest.raises(ValueError, match=r"values must be an array.* use Measurements.from_pandas"):
        Measurements(table, RANGES)


@pytest.mark.parametrize("frame", [FRAME.to_numpy(), {"a": [0], "b": [1]}, FRAME["a"], None])
def test_what_is_no_dataframe_is_refused(frame):
    for read, public in ((Dataset.from_pandas, LEVELS), (Measurements.from_pandas, RANGES)):
        with pytest.raises(
            ValueError, match=r"DataFrame, not \w+; name the columns with pd.DataFr"
        ):
            read(frame, public)


@pytest.mark.parametrize(
    ("frame", "ignore", "cure"),
    [
        (FRAME, [], r"'id' of the frame is not in the {}; add it .* or pass ignore=\['id'\]"),
        (FRAME, ["idd"], "ignore names 'idd', which is no column of the frame; did you mean 'id'"),
        (FRAME, ["id", "a"], "'a' is both in the {} and in ignore; take it out of one of them"),
        (FRAME, "id", r"ignore must be a list of columns, not 'id'; give a list"),
        (FRAME[["b"]], [], "the frame has no column 'a', which is in the {}; add the column or"),
        (FRAME[["a", "b", "a"]], [], "the frame names column 'a' twice; rename one of the two"),
        (FRAME.set_axis(["a", 0, "b"], axis=1), [], "column 0 of the frame is not text; rename"),
        (FRAME.set_axis(["a", "id", "b "], axis=1), ["id"], "'b ' of the frame has blanks at its"),
    ],
)
def test_columns_are_the_variables_and_those_to_ignore(frame, ignore, cure):
    with pytest.raises(ValueError, match=cure.format("schema")):
        Dataset.from_pandas(frame, LEVELS, ignore=ignore)
    with pytest.raises(ValueError, match=cure.format("ranges")):
        Measurements.from_pandas(frame, {"a": (0, 1), "b": (0, 2)}, ignore=ignore)


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([1, 0], BIT),
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
        np.array([1, None], object),
        ["1", None],
        ["1", ""],
        pd.array([1, pd.NA], dtype="Int64"),
        pd.array(["1", pd.NA], dtype="string"),
        pd.Categorical(["1", None]),
        np.array(["1", np.nan], object),
    ],
)
def test_a_missing_value_is_missing_unless_the_empty_text_is_a_level(values):
    frame = pd.DataFrame({"a": values, "b": [2, 0]})
    levels = LEVELS | {"a": ("0", "1", "1.0")}
    cure = "the frame, record 2, column 'a': the value is missing; drop or impute such records"
    with pytest.raises(ValueError, match=cure):
        Dataset.from_pandas(frame, levels)
    levels["a"] += ("",)
    assert Dataset.from_pandas(frame, levels).codes[1, 0] == 3


def test_a_value_outside_the_levels_is_refused():
    cure = "the frame, record 2, column 'a': '3' is not among the levels 0, 1; correct the value or"
    with pytest.raises(ValueError, match=cure):
        Dataset.from_pandas(pd.DataFrame({"a": [1, 3], "b": [0, 0]}, index=[9, 9]), LEVELS)


def test_a_frame_without_records_is_refused():
    with pytest.raises(ValueError, match="is empty; give at least one record"):
        Dataset.from_pandas(pd.DataFrame({"a": [], "b": []}), LEVELS)
    with pytest.raises(ValueError, match="one row a record"):
        Measurements.from_pandas(PEOPLE[:0], RANGES, ignore=["id"])


def test_levels_and_ranges_are_checked_first():
    with pytest.raises(ValueError, match="schema must be a mapping"):
        Dataset.from_pandas(FRAME, ["a", "b"])
    with pytest.raises(ValueError, match="ranges must map"):
        Measurements.from_pandas(PEOPLE, [(0, 80), (1, 2)])


@pytest.mark.parametrize(
    "values", [["1", "2"], pd.Categorical([1, 2]), pd.to_datetime(["2020-01-01", "2020-01-02"])]
)
def test_a_column_of_no_numbers_is_refused(values):
    frame = PEOPLE.assign(age=values)
    cure = "column 'age' of the frame holds .*, not numbers; convert it with pd.to_numeric"
    with pytest.raises(ValueError, match=cure):
        Measurements.from_pandas(frame, RANGES, ignore=["id"])


@pytest.mark.parametrize("values", [[1, None], pd.array([1, pd.NA], dtype="Int64")])
def test_a_missing_number_is_refused(values):
    with pytest.raises(ValueError, match="missing or infinite; drop or impute such records first"):
        Measurements.from_pandas(PEOPLE.assign(age=values), RANGES, ignore=["id"])
