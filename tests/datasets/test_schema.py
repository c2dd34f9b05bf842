"""One schema for every door: what it takes, what it refuses, and what becomes of values."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd import Dataset, Schema, load, read_csv
from dpcgd.datasets.measurements import Measurements
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report

BIT = ["0", "1"]
AGE = {"edges": [15, 25, 50]}
FULL = {
    "smoke": ["no", "yes"],
    "pain": {"levels": ["none", "some", "much"], "ordered": True, "missing": "unknown"},
    "age": {"edges": [15, 25.5, 50], "outside": "clip", "missing": "unknown"},
}


def with_age(**said):
    return {"a": BIT, "age": {**AGE, **said}}


def test_a_schema_says_levels_order_and_the_level_of_missing_values():
    schema = Schema(FULL)
    assert schema.levels == {
        "smoke": ("no", "yes"),
        "pain": ("none", "some", "much", "unknown"),
        "age": ("15 to 25.5", "25.5 to 50", "unknown"),
    }
    assert schema.ordered == {"pain", "age"}
    assert schema.missing == {"pain": "unknown", "age": "unknown"}


def test_a_schema_that_is_spelled_out_is_the_same_schema():
    schema = Schema(FULL)
    again = Schema(json.loads(json.dumps(schema.to_dict())))
    assert again == schema == Schema.of(schema) == pickle.loads(pickle.dumps(schema))
    assert Schema(schema.variables) == schema != Schema(with_age())


def test_what_is_public_stands_on_the_data_set():
    frame = pd.DataFrame(
        {"smoke": ["yes", "no"], "pain": [None, "some"], "age": [np.nan, 70.5], "id": [1, 2]}
    )
    data = Dataset.from_pandas(frame, FULL, ignore=["id"])
    assert data.codes.tolist() == [[1, 3, 2], [0, 1, 1]]
    assert data.ordered == {"pain", "age"}
    assert dict(data.missing) == {"pain": "unknown", "age": "unknown"}
    again = pickle.loads(pickle.dumps(data))
    assert (again.ordered, again.missing) == (data.ordered, data.missing)
    mechanism = ComponentWise.from_epsilon(RandomizedResponse, data.cardinalities, 3.0)
    reports = report(data, mechanism, rng=np.random.default_rng(0))
    assert (reports.ordered, reports.missing) == (data.ordered, data.missing)
    assert load("asia", n=2, rng=np.random.default_rng(0)).ordered == frozenset()


def test_bins_of_equal_width_stand_in_order():
    people = Measurements([[20.0, 1.5], [95.0, 1.9]], {"age": (0, 80), "height": (1, 2)})
    assert people.binned(4).ordered == {"age", "height"}


edges_and_values = st.tuples(
    st.lists(st.integers(-50, 50).map(lambda k: k / 4), min_size=3, max_size=8, unique=True),
    st.lists(st.integers(-60, 60).map(lambda k: k / 4), min_size=1, max_size=30),
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(edges_and_values)
def test_numbers_go_to_the_level_between_their_edges(drawn):
    edges, values = sorted(drawn[0]), np.array(drawn[1])
    frame = pd.DataFrame({"a": [0] * len(values), "x": values})
    data = Dataset.from_pandas(frame, {"a": BIT, "x": {"edges": edges, "outside": "clip"}})
    clipped = np.clip(values, edges[0], edges[-1])
    for value, code in zip(clipped, data.codes[:, 1], strict=True):
        assert edges[code] <= value <= edges[code + 1]
        assert value < edges[code + 1] or code == len(edges) - 2


@pytest.mark.parametrize(
    "values",
    [
        [15, 25, 50],
        ["15", "25.0", "5e1"],
        ["+15.", "2.5E+1", "50.000"],
        pd.array([15, 25, 50], dtype="Int64"),
        np.array([15, 25, 50], np.float32),
        pd.Categorical([15, 25, 50]),
    ],
)
def test_a_number_may_be_written_in_any_way(values):
    frame = pd.DataFrame({"a": [*BIT, "0"], "age": values})
    assert Dataset.from_pandas(frame, with_age()).codes[:, 1].tolist() == [0, 1, 1]


def test_edges_that_are_no_binary_fractions_hold_their_own_text():
    frame = pd.DataFrame({"a": ["0", "0"], "x": ["0.3", "0.30"]})
    schema = {"a": BIT, "x": {"edges": [0.1, 0.2, 0.3, 0.4]}}
    assert Dataset.from_pandas(frame, schema).codes[:, 1].tolist() == [2, 2]


def test_a_level_for_missing_values_may_be_one_that_is_listed():
    schema = {"a": BIT, "b": {"levels": ["don't know", "no", "yes"], "missing": "don't know"}}
    frame = pd.DataFrame({"a": BIT, "b": [None, "don't know"]})
    data = Dataset.from_pandas(frame, schema)
    assert data.codes[:, 1].tolist() == [0, 0]
    assert data.cardinalities == (2, 3)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "UTF8"])
def test_every_door_gives_the_same_data(tmp_path, separator, encoding):
    frame = pd.DataFrame(
        {"smoke": ["yes", "no"], "größe": ["übergroß", None], "age": [24.5, 25.5], "id": [1, 2]}
    )
    schema = {**FULL, "größe": {"levels": ["klein", "übergroß"], "missing": "unbekannt"}}
    del schema["pain"]
    table, described = tmp_path / "people.csv", tmp_path / "schema.json"
    frame.to_csv(table, sep=separator, encoding=encoding, index=False)
    described.write_text(json.dumps(schema))
    from_frame = Dataset.from_pandas(frame, schema, ignore=["id"])
    how = {"separator": separator, "encoding": encoding, "ignore": ["id"]}
    for given_as in (schema, described, str(described), Schema(schema)):
        data = read_csv(table, given_as, **how)
        assert np.array_equal(data.codes, from_frame.codes)
        assert (data.levels, data.ordered) == (from_frame.levels, from_frame.ordered)
        assert data.missing == from_frame.missing


def test_an_ordered_categorical_agrees_with_the_order_of_the_schema():
    levels = ["low", "middle", "high"]
    right = pd.Categorical(["low", "high"], ["low", "high", "never seen"], ordered=True)
    wrong = pd.Categorical(["low", "high"], ["high", "low"], ordered=True)
    schema = {"a": BIT, "b": {"levels": levels, "ordered": True}}
    data = Dataset.from_pandas(pd.DataFrame({"a": BIT, "b": right}), schema)
    assert data.codes[:, 1].tolist() == [0, 2]
    frame = pd.DataFrame({"a": BIT, "b": wrong})
    cure = "'b' of the frame is ordered as high, low, in the schema as low, high; give both one"
    with pytest.raises(ValueError, match=cure):
        Dataset.from_pandas(frame, schema)
    unordered = {"a": BIT, "b": levels}
    assert Dataset.from_pandas(frame, unordered).codes[:, 1].tolist() == [0, 2]


BAD_AGES = [
    ({"edges": [15, 25, 25]}, "edge 25 follows 25; list the edges from the lowest to"),
    ({"edges": [50, 25, 15]}, "edge 25 follows 50; list the edges from the lowest to"),
    ({"edges": [15, 25, float("inf")]}, "an edge must be a finite number, not inf"),
    ({"edges": [15, float("nan"), 50]}, "an edge must be a finite number, not nan"),
    ({"edges": [15, 25, 10**400]}, "an edge must be a finite number, not 1000"),
    ({"edges": [15, "25", 50]}, "an edge must be a finite number, not '25'"),
    ({"edges": [15, True, 50]}, "an edge must be a finite number, not True"),
    ({"edges": [15, None, 50]}, "an edge must be a finite number, not None"),
    ({"edges": []}, "has 0 edges; give three or more"),
    ({"edges": [15, 50]}, "has 2 edges; give three or more, two levels need three"),
    ({"edges": {15, 25, 50}}, "give its edges as a list, not {"),
    ({"edges": "15, 25, 50"}, "give its edges as a list, not '15, 25, 50'"),
    ({"edges": 5}, "give its edges as a list, not 5"),
    ({"outside": "drop"}, "outside must be 'clip' or 'refuse', not 'drop'"),
    ({"outside": None}, "outside must be 'clip' or 'refuse', not None"),
    *[
        ({"missing": missing}, "missing must be 'refuse' or the name of a level, not")
        for missing in (None, "", " ", True)
    ],
    ({"missing": " no"}, "level ' no' has blanks at its ends; take them out"),
    ({"ordered": "yes"}, "ordered must be true or false, not 'yes'"),
    ({"ordered": False}, "has edges and is said to have no order; take 'ordered' out"),
    ({"levels": ["15", "25"]}, "needs either levels or edges; list its levels, or give"),
    ({"bins": 3}, "a schema says nothing about 'bins'; take it out, what may be said"),
]
BAD_SCHEMAS = [
    *[(with_age(**entry), cure) for entry, cure in BAD_AGES],
    ({"a": BIT, "b": {"ordered": True}}, "'b' needs either levels or edges; list its levels, or"),
    *[
        ({"a": BIT, "b": levels}, "'b': give its levels as a list")
        for levels in ({}, {"0": "no"}, {"levels": "01"}, None)
    ],
    ({"a": BIT, "b": {"levels": []}}, "'b' has no level; list every value it may take"),
    ({"a": BIT, "b": {"levels": ["x", "x"]}}, "'b' lists level 'x' twice; list each level once"),
    ({"a": BIT, "b": {"levels": BIT, "outside": "clip"}}, "take 'outside' out"),
    ({"a": BIT, "b": {"levels": ["", "x"], "missing": "?"}}, "take '' out of its levels"),
    ({"a": BIT, "": BIT}, "a variable has an empty name; give it one"),
    ({"a": BIT, " b": BIT}, "the variable name ' b' has blanks at its ends; take them out"),
    ({"a": BIT, 7: BIT}, "the variable name 7 is not text; write it as '7'"),
    ({"a": BIT}, "a causal graph needs at least two variables, this has 1"),
]


def refused(do, cure):
    with pytest.raises(ValueError) as error:
        do()
    assert cure in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("schema", "cure"), BAD_SCHEMAS)
def test_a_schema_that_contradicts_itself_is_refused(schema, cure, tmp_path):
    refused(lambda: Schema(schema), cure)
    (tmp_path / "people.csv").write_text("a,age,b\n0,20,1\n")
    refused(lambda: read_csv(tmp_path / "people.csv", schema), cure)
    refused(lambda: Dataset.from_pandas(pd.DataFrame({"a": BIT}), schema), cure)


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        ("14.9", "record 2, column 'age': '14.9' is outside 15 to 50; correct the value, or let"),
        ("51", "record 2, column 'age': '51' is outside 15 to 50; correct the value, or let"),
        ("1e999", "'1e999' is outside 15 to 50"),
        ("old", "'old' is no number; correct the value, or list levels in place of edges"),
        ("nan", "'nan' is no number"),
        ("inf", "'inf' is no number"),
        ("1_6", "'1_6' is no number"),
        ("16,5", "'16,5' is no number"),
        (" 16", "' 16' is no number"),
        ("0x11", "'0x11' is no number"),
        ("", "record 2, column 'age': the value is missing; drop or impute such records first, or"),
        (None, "the value is missing"),
        (True, "'True' is no number"),
        (pd.Timestamp("2020-01-01"), "is no number"),
    ],
)
def test_a_value_that_is_no_number_between_the_edges_is_refused(value, cure):
    frame = pd.DataFrame({"a": [0, 1, 1], "age": np.array(["16", value, value], object)})
    refused(lambda: Dataset.from_pandas(frame, with_age()), cure)


def test_an_ordered_categorical_of_numbers_agrees_with_the_order_of_the_schema():
    schema = {"a": BIT, "b": {"levels": ["1", "2", "3"], "ordered": True, "missing": -9}}
    right = pd.Categorical([1.0, -9.0], [-9.0, 1.0, 2.0, 3.0], ordered=True)
    wrong = pd.Categorical([1.0, 3.0], [3.0, 1.0], ordered=True)
    data = Dataset.from_pandas(pd.DataFrame({"a": BIT, "b": right}), schema)
    assert data.codes[:, 1].tolist() == [0, 3]
    frame = pd.DataFrame({"a": BIT, "b": wrong})
    refused(lambda: Dataset.from_pandas(frame, schema), "is ordered as 3, 1, in the schema as 1, 3")


@pytest.mark.parametrize(
    ("how", "cure"),
    [
        ({"separator": ";;"}, "separator must be the one character between two columns, such as"),
        ({"separator": ""}, "separator must be the one character"),
        ({"separator": None}, "separator must be the one character"),
        ({"separator": '"'}, "separator must be the one character"),
        ({"separator": "\n"}, "separator must be the one character"),
        ({"separator": ";"}, "has commas between its columns; pass separator=','"),
        ({"encoding": "utf-9"}, "encoding must be one that Python knows, such as 'latin-1', not"),
        ({"encoding": "base64"}, "encoding must be one that Python knows"),
        ({"encoding": None}, "encoding must be one that Python knows"),
        ({"encoding": "ascii"}, "is not ASCII text; save it as UTF-8, or pass its encoding"),
        ({"encoding": "utf-16"}, "is not UTF-16 text; save it as UTF-8, or pass its encoding"),
    ],
)
def test_a_separator_or_an_encoding_that_does_not_fit_is_refused(tmp_path, how, cure):
    (tmp_path / "people.csv").write_text("a,ä\n0,1\n", encoding="utf-8")
    refused(lambda: read_csv(tmp_path / "people.csv", {"a": BIT, "ä": BIT}, **how), cure)


@pytest.mark.parametrize(
    ("public", "cure"),
    [
        ({"ordered": ["c"]}, "ordered names 'c', which is no variable; correct the name"),
        ({"ordered": "a"}, "ordered must be a list of variables, not 'a'; give a list"),
        ({"ordered": True}, "ordered must be a list of variables, not True; give a list"),
        ({"missing": {"c": "0"}}, "missing names 'c', which is no variable; correct the name"),
        ({"missing": {"a": "2"}}, "'a' has no level '2' for missing values; add it to the levels"),
        ({"missing": ["a"]}, "missing must map variables to levels, not ['a']; give a mapping"),
    ],
)
def test_an_order_of_what_is_not_there_is_refused(public, cure):
    refused(lambda: Dataset([[0, 1]], {"a": BIT, "b": BIT}, **public), cure)
