"""Tables of pandas are taken by name, and their values as text."""

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from people import BIT, refused

from dpcgd import Dataset, draft_schema_from_data_not_private
from dpcgd.datasets import columns

LEVELS = {"a": BIT, "b": ("0", "1", "2")}
FRAME = pd.DataFrame({"b": [2, 0], "id": [7, 8], "a": [1, 0]})


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
    cure = " must be an array.* use Dataset.from_pandas"
    refused("codes" + cure, Dataset, table, LEVELS)
    refused("values" + cure, Dataset.of_numbers, table, {"age": (0, 80), "height": (1, 2)})


NO_LEVEL = "the frame, record 2, column 'a': '3' is not among the levels 0, 1; correct the value"
NO_FRAMES = FRAME.to_numpy(), {"a": [0], "b": [1]}, FRAME["a"], None
UNFIT = [
    *[(odd, [], r"DataFrame, not .*; name the columns with pd.DataFrame") for odd in NO_FRAMES],
    (FRAME.assign(a=[1, 3]).set_axis([9, 9]), ["id"], NO_LEVEL),
    (FRAME[:0], ["id"], "is empty; give at least one record"),
    (FRAME, [], r"'id' of the frame is not in the schema; add it .* or pass ignore=\['id'\]"),
    (FRAME, ["idd"], "'idd' is no column of the frame; did you mean 'id'"),
    (FRAME, ["id", "a"], "'a' is in ignore and in the schema; take it out of one"),
    (FRAME, [["id", "a"]], r"\['id', 'a'\] is no column"),
    *[(FRAME, odd, "ignore must be a list of columns, such as") for odd in ("id", None)],
    (FRAME[["b"]], [], "the frame has no column 'a', which is in the schema; add the"),
    (FRAME[["a", "b", "a"]], [], "the frame names column 'a' twice; rename one of the two"),
    (FRAME.set_axis(["a", 0, "b"], axis=1), [], "0 of the frame has a name that is not text"),
    (FRAME.set_axis(["a", "id", "b "], axis=1), ["id"], "has blanks at the ends of its name"),
]


@pytest.mark.parametrize(("frame", "ignore", "cure"), UNFIT)
def test_columns_are_the_variables_and_those_to_ignore(frame, ignore, cure):
    refused(cure, Dataset.from_pandas, frame, LEVELS, ignore=ignore)


TYPES = [
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
]


@pytest.mark.parametrize(("values", "levels"), TYPES)
def test_values_are_compared_as_text(values, levels):
    frame = pd.DataFrame({"a": values, "b": [2, 0]})
    assert Dataset.from_pandas(frame, LEVELS | {"a": levels}).codes.tolist() == [[1, 2], [0, 0]]


WITH_A_GAP = [
    [1, None],
    ["1", None],
    ["1", ""],
    pd.array(["1", pd.NA], dtype="string"),
    pd.Categorical(["1", None]),
    np.array(["1", np.nan], object),
]


@pytest.mark.parametrize("values", WITH_A_GAP)
def test_a_missing_value_is_missing_unless_the_empty_text_is_a_level(values):
    frame = pd.DataFrame({"a": values, "b": [2, 0]})
    levels = LEVELS | {"a": ("0", "1", "1.0")}
    cure = "the frame, record 2, column 'a': the value is missing; drop or impute such records"
    refused(cure, Dataset.from_pandas, frame, levels)
    levels["a"] += ("",)
    assert Dataset.from_pandas(frame, levels).codes[1, 0] == 3


def test_a_frame_of_another_library_is_named_with_the_cure():
    frame = type("DataFrame", (), {"__module__": "polars.dataframe.frame", "to_pandas": None})()
    cure = r"not a DataFrame of polars; install pyarrow, or convert it with frame.to_pandas"
    refused(cure, Dataset.from_pandas, frame, LEVELS)


def test_categories_are_looked_up_once_however_many_rows_there_are(monkeypatch):
    asked = []
    monkeypatch.setattr(columns, "text_of", lambda value: asked.append(value) or str(value))
    rows = np.arange(9000) % 2
    frame = pd.DataFrame({"a": pd.Categorical.from_codes(rows, BIT), "b": pd.Series(rows)})
    assert np.array_equal(Dataset.from_pandas(frame, LEVELS).codes, np.column_stack([rows, rows]))
    assert len(asked) < 20


def test_categories_that_no_row_has_say_nothing():
    frame = pd.DataFrame({"a": pd.Categorical(["2.000", None], ["7", "1.5", "2.000"]), "b": BIT})
    schema = {"a": {"edges": [0, 3, 3000], "missing": "none"}, "b": BIT}
    refused("'2.000' may be 2 or 2000; pass decimal=", Dataset.from_pandas, frame, schema)
    for text, code in (("1.5", 0), ("2000", 1)):
        frame["a"] = pd.Categorical([text, None], ["7", text, "2.000"])
        assert Dataset.from_pandas(frame, schema).codes[:, 0].tolist() == [code, 2]


# --- tables with an Arrow stream

VALUES = {
    "word": ["yes", None, "no", "yes"],
    "whole": [14, None, 2, 14],
    "age": [15.0, 24.9, None, 50.0],
    "written": ["15", "24.9", "", "5e1"],
    "true": [True, False, True, True],
}
STREAMED = {
    "word": {"levels": ["no", "yes"], "missing": "unknown"},
    "whole": ["2", "14", ""],
    "age": {"edges": [15, 25, 50], "missing": ["gone", 24.9]},
    "written": {"range": [15, 50], "missing": "gone"},
    "true": ["False", "True"],
}
CODES = [[1, 1, 0, 0, 1], [2, 2, 2, 9268, 0], [0, 0, 2, 32768, 1], [1, 1, 1, 32767, 1]]


def of_arrow(values, categories=("word",)):
    table = pytest.importorskip("pyarrow", reason="it is in the parquet extra").table(values)
    for name in categories:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].dictionary_encode())
    return table


def of_duckdb(values):
    return pytest.importorskip("duckdb").connect().from_arrow(of_arrow(values, ()))


def of_polars(values):
    pytest.importorskip("pyarrow", reason="it is in the parquet extra")
    polars = pytest.importorskip("polars", reason="it is no dependency")
    frame = polars.DataFrame(values)
    if "word" in frame.columns:
        frame = frame.with_columns(polars.col("word").cast(polars.Enum(["no", "yes"])))
    return frame


class Stream:
    """All that a table needs to have."""

    def __init__(self, values):
        self.table = of_arrow(values)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.to_reader(2).__arrow_c_stream__(requested_schema)


KINDS = (of_arrow, of_duckdb, of_polars, Stream)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_an_arrow_stream_is_a_frame(kind):
    data = Dataset.from_pandas(kind(VALUES), STREAMED)
    plain = Dataset.from_pandas(pd.DataFrame(VALUES), STREAMED)
    assert data.codes.tolist() == plain.codes.tolist() == CODES
    few = {name: STREAMED[name] for name in ("true", "whole")}
    assert Dataset.from_pandas(kind(VALUES), few, columns="schema").codes[0].tolist() == [1, 1]
    draft = draft_schema_from_data_not_private(kind(VALUES), ignore=["written"])
    assert draft["whole"]["levels"] == ["2", "14", "unknown"]


WRONG = [
    ({"whole": [14, 2, 3, 2]}, "the frame, record 3, column 'whole': '3' is not among the lev"),
    ({"age": [15.0, 16.0, 17.0, 60.0]}, "record 4, column 'age': '60.0' is outside 15 to 50;"),
    ({"written": ["", "", "", "?"]}, "record 4, column 'written': .* is no number; correct"),
    ({"true": [True, None, None, True]}, "record 2, column 'true': the value is missing; drop"),
    ({"true": [[1], [], [2], [3]]}, "'true' of the frame holds .*, no plain value a rec"),
    ({"more": [0, 0, 0, 0]}, "'more' of the frame is not in the schema; add it"),
    ({name: values[:0] for name, values in VALUES.items()}, "is empty; give at least one rec"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("values", "cure"), WRONG)
def test_what_is_wrong_with_a_stream_is_said_as_of_a_frame(kind, values, cure):
    refused(cure, Dataset.from_pandas, kind({**VALUES, **values}), STREAMED)


def test_points_and_orders_of_a_stream_are_asked_about():
    schema = {"a": {"edges": [0, 3, 3000]}, "b": {"levels": ["low", "high"], "ordered": True}}
    values = {"a": ["2.000", "1.000"], "b": ["low", "high"]}
    for table in (of_arrow(values, ["a"]), of_arrow(values, [])):
        refused("'2.000' may be 2 or 2000; pass dec", Dataset.from_pandas, table, schema)
    values = {"a": [2, 1], "b": pd.Categorical(["low", "high"], ["high", "low"], ordered=True)}
    table = of_arrow(pd.DataFrame(values), ())
    refused("'b' of the frame is ordered as high, low, in", Dataset.from_pandas, table, schema)


def test_a_single_column_and_a_stream_without_pyarrow_are_refused(monkeypatch):
    stream = Stream(VALUES)
    refused("pandas DataFrame, not a ChunkedArray", Dataset.from_pandas, stream.table[0], STREAMED)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused("must be a pandas DataFrame, not a Stream", Dataset.from_pandas, stream, STREAMED)
