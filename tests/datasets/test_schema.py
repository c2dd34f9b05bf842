"""One schema for every door: what it takes, what it refuses, and what becomes of values."""

import json
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from people import BIT, cases, refused

from dpcgd import (
    Dataset,
    Schema,
    draft_schema,
    draft_schema_from_data_not_private as draft_from_data,
    draft_schema_from_public_table as draft_from_public_table,
    load,
    read_csv,
)
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report

FULL = {
    "smoke": ["no", "yes"],
    "pain": {"levels": ["none", "some", "much"], "ordered": True, "missing": "unknown"},
    "age": {"edges": [15, 25.5, 50], "outside": "clip", "missing": "unknown"},
}


def with_age(**said):
    return {"a": BIT, "age": {"edges": [15, 25, 50], **said}}


def test_a_schema_that_is_spelled_out_is_the_same_schema():
    schema = Schema(FULL)
    again = Schema(json.loads(json.dumps(schema.to_dict())))
    assert again == schema == Schema.of(schema) == pickle.loads(pickle.dumps(schema))
    assert Schema(schema.variables) == schema != Schema(with_age())


def test_what_is_public_stands_on_the_data_set():
    values = {"smoke": ["yes", "no"], "pain": [None, "some"], "age": [np.nan, 70.5], "id": [1, 2]}
    data = Dataset.from_pandas(pd.DataFrame(values), FULL, ignore=["id"])
    assert data.codes.tolist() == [[1, 3, 2], [0, 1, 1]]
    assert data.levels["age"] == ("15 to 25.5", "25.5 to 50", "unknown")
    assert data.ordered == {"pain", "age"}
    assert dict(data.missing) == {"pain": "unknown", "age": "unknown"}
    again = pickle.loads(pickle.dumps(data))
    assert (again.ordered, again.missing) == (data.ordered, data.missing)
    mechanism = ComponentWise.from_epsilon(RandomizedResponse, data.cardinalities, 3.0)
    reports = report(data, mechanism, rng=np.random.default_rng(0))
    assert (reports.ordered, reports.missing) == (data.ordered, data.missing)
    assert load("asia", n=2, rng=np.random.default_rng(0)).ordered == frozenset()


edges_and_values = st.tuples(
    st.lists(st.integers(-50, 50).map(lambda k: k / 4), min_size=3, max_size=8, unique=True),
    st.lists(st.integers(-60, 60).map(lambda k: k / 4), min_size=1, max_size=30),
)


@settings(derandomize=True, max_examples=200)
@given(edges_and_values)
def test_numbers_go_to_the_level_between_their_edges(drawn):
    edges, values = sorted(drawn[0]), np.array(drawn[1])
    frame = pd.DataFrame({"a": [0] * len(values), "x": values})
    data = Dataset.from_pandas(frame, {"a": BIT, "x": {"edges": edges, "outside": "clip"}})
    for value, code in zip(np.clip(values, edges[0], edges[-1]), data.codes[:, 1], strict=True):
        assert edges[code] <= value <= edges[code + 1]
        assert value < edges[code + 1] or code == len(edges) - 2


WAYS = [
    [15, 25, 50],
    ["15", "25.0", "5e1"],
    ["+15.", "2.5E+1", "50.000"],
    pd.array([15, 25, 50], dtype="Int64"),
    np.array([15, 25, 50], np.float32),
    pd.Categorical([15, 25, 50]),
]


@pytest.mark.parametrize("values", WAYS)
def test_a_number_may_be_written_in_any_way(values):
    frame = pd.DataFrame({"a": [*BIT, "0"], "age": values, "x": ["0.3", "0.30", "0.2"]})
    schema = {**with_age(), "x": {"edges": [0.1, 0.2, 0.3, 0.4]}}
    assert Dataset.from_pandas(frame, schema).codes[:, 1:].tolist() == [[0, 2], [1, 2], [1, 1]]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "UTF8"])
def test_every_door_gives_the_same_data(tmp_path, separator, encoding):
    values = {"smoke": ["yes", "no"], "größe": ["übergroß", None], "age": [24.5, 25.5]}
    frame, size = pd.DataFrame({**values, "id": [1, 2]}), {"levels": ["klein", "übergroß"]}
    schema = {name: FULL[name] for name in ("smoke", "age")}
    schema["größe"] = {**size, "missing": "unbekannt"}
    table, described = tmp_path / "people.csv", tmp_path / "schema.json"
    frame.to_csv(table, sep=separator, encoding=encoding, index=False)
    described.write_text(json.dumps(schema))
    from_frame = Dataset.from_pandas(frame, schema, ignore=["id"])
    how = {"separator": separator, "encoding": encoding, "ignore": ["id"]}
    for given_as in (schema, described, str(described), Schema(schema)):
        data = read_csv(table, given_as, **how)
        assert np.array_equal(data.codes, from_frame.codes)
        assert (data.levels, data.ordered) == (from_frame.levels, from_frame.ordered)
        assert (data.missing, data.name) == (from_frame.missing, "people")


LOW, CODED = ["low", "high"], {"levels": ["1", "2", "3"], "missing": -9}
NAMED = {"levels": ["low", "middle", "high"]}
CATEGORICALS = [
    (NAMED, LOW, [*LOW, "never seen"], [0, 2], LOW[::-1], "high, low, in the schema as low, high;"),
    (CODED, [1.0, -9.0], [-9.0, 1.0, 2.0, 3.0], [0, 3], [3.0, 1.0], "3, 1, in the schema as 1, 3"),
]


@pytest.mark.parametrize(("said", "values", "order", "codes", "turned", "orders"), CATEGORICALS)
def test_an_ordered_categorical_agrees_with_the_schema(said, values, order, codes, turned, orders):
    schema = {"a": BIT, "b": {**said, "ordered": True}}
    frame = pd.DataFrame({"a": BIT, "b": pd.Categorical(values, order, ordered=True)})
    assert Dataset.from_pandas(frame, schema).codes[:, 1].tolist() == codes
    frame["b"] = pd.Categorical(turned[::-1], turned, ordered=True)
    refused(f"'b' of the frame is ordered as {orders}", Dataset.from_pandas, frame, schema)
    assert Dataset.from_pandas(frame, {"a": BIT, "b": said}).codes[:, 1].tolist() == [0, 2]


INF, NAN = float("inf"), float("nan")
NEEDS = "it needs levels, or the range or the edges of a number"
BAD_AGES = {
    "edge 25 follows 25; list them from lowest to highest": [{"edges": [15, 25, 25]}],
    "an edge must be a finite number, not '25'": [{"edges": [15, "25", 50]}],
    "has 2 edges; give three or more": [{"edges": [15, 50]}],
    "give its edges as a list, not": [{"edges": odd} for odd in ({15, 25, 50}, "15, 25", 5)],
    "outside must be 'clip' or 'refuse', not 'drop'": [{"outside": "drop"}],
    "missing must be 'refuse', the name": [{"missing": entry} for entry in (None, " ", True)],
    "ordered must be true or false, not 'yes'": [{"ordered": "yes"}],
    "'age': numbers have an order; take 'ordered' out": [{"ordered": False}],
    f"{NEEDS}; give one": [{"levels": ["15", "25"]}, {"range": [15, 50]}],
    "only a range has a scale; take 'scale' out": [{"scale": "log"}],
    "a schema says nothing about 'bins'; take it out": [{"bins": 3}],
}
for edge in (INF, NAN, 10**400, True, None):
    BAD_AGES[f"an edge must be a finite number, not {str(edge)[:5]}"] = [{"edges": [15, edge, 50]}]
PAIR = "a range is two finite numbers, the lower one first, not .*; give"
PAIRS = [0], [0, 1, 2], [1, 0], [0, INF], [0, 10**400], [0, "1"], [True, 2]
BAD_ENTRIES = {
    PAIR: [{"range": ends} for ends in PAIRS],
    "'b': give its range as a list, not": [{"range": ends} for ends in (80, "0 to 80", {0, 80})],
    "a log scale is well above 0, not from 0; begin it hi": [{"range": [0, 80], "scale": "log"}],
    "not from 1e-300; begin it higher, or leave 'sca": [{"range": [1e-300, 1e300], "scale": "log"}],
    "scale must be 'linear' or 'log', not 'ln'": [{"range": [1, 80], "scale": "ln"}],
    "scale must be 'linear' or 'log', not None": [{"range": [1, 80], "scale": None}],
    "'b': numbers have an order; take 'ordered' out": [{"range": [0, 80], "ordered": False}],
    "outside must be 'clip' or 'refuse', not 'drop'": [{"range": [0, 80], "outside": "drop"}],
    "lists missing code '-9' twice; list it once": [{"range": [0, 80], "missing": [-9, -9.0]}],
    NEEDS: [{"range": [0, 80], "levels": BIT}, {"ordered": True}, {"scale": "log"}],
    "'b': give its levels as a list": [{}, {"0": "no"}, {"levels": "01"}, None],
    "take 'outside' out": [{"levels": BIT, "outside": "clip"}],
}
BAD_SCHEMAS = [(with_age(**entry), cure) for entry, cure in cases(BAD_AGES)]
BAD_SCHEMAS += [({"a": BIT, "b": entry}, cure) for entry, cure in cases(BAD_ENTRIES)]


@pytest.mark.parametrize(("schema", "cure"), BAD_SCHEMAS)
def test_a_schema_that_contradicts_itself_is_refused(schema, cure, tmp_path):
    refused(cure, Schema, schema)
    (tmp_path / "people.csv").write_text("a,age,b\n0,20,1\n")
    refused(cure, read_csv, tmp_path / "people.csv", schema)
    refused(cure, Dataset.from_pandas, pd.DataFrame({"a": BIT}), schema)


NO_NUMBERS = [
    ("14.9", "record 2, column 'age': '14.9' is outside 15 to 50; correct the value, or let"),
    ("1e999", "'1e999' is outside 15 to 50"),
    ("old", "'old' is no number; correct the value, or list levels in the schema"),
    *[(odd, f"'{odd}' is no number") for odd in ("nan", "inf", "1_6", "16,5", "0x11")],
    (" 16", "' 16' has blanks at its ends; take them out$"),
    ("", "record 2, column 'age': the value is missing; drop or impute such records"),
    (True, "'True' is no number"),
    (pd.Timestamp("2020-01-01"), "is a date or a time"),
]


@pytest.mark.parametrize(("value", "cure"), NO_NUMBERS)
def test_a_value_that_is_no_number_between_the_edges_is_refused(value, cure):
    frame = pd.DataFrame({"a": [0, 1, 1], "age": np.array(["16", value, value], object)})
    refused(cure, Dataset.from_pandas, frame, with_age())


UNFIT = [
    *[({"separator": odd}, "must be the one char") for odd in (";;", "", None, '"', "\n")],
    ({"separator": ";"}, "has commas between its columns; pass separator=','"),
    *[({"encoding": odd}, "one that Python knows") for odd in ("utf-9", "base64", None)],
    ({"encoding": "ascii"}, "is not ASCII text; save it as UTF-8, or pass its encoding"),
    ({"encoding": "utf-16"}, "is not UTF-16 text; save it as UTF-8, or pass its encoding"),
]


@pytest.mark.parametrize(("how", "cure"), UNFIT)
def test_a_separator_or_an_encoding_that_does_not_fit_is_refused(tmp_path, how, cure):
    (tmp_path / "people.csv").write_text("a,ä\n0,1\n", encoding="utf-8")
    refused(cure, read_csv, tmp_path / "people.csv", {"a": BIT, "ä": BIT}, **how)


# --- drafts: from a codebook and, under a name that warns, from data

CODEBOOK = {
    "age": {"range": [15, 80]},
    "weight": {"range": [0, 1], "missing": "unknown"},
    "income": {"edges": [0, 1000, 5000]},
    "pain": ["none", "some", "much"],
    "smoke": {"levels": [0, 1], "missing": "refuse"},
}


def test_a_draft_from_a_codebook_spells_everything_out():
    draft = draft_schema(CODEBOOK, bins=10, ordered=["pain"], missing="not said", outside="clip")
    plain = {"outside": "clip", "missing": "not said", "ordered": True}
    assert draft == {
        "age": {**plain, "edges": [15, 21.5, 28, 34.5, 41, 47.5, 54, 60.5, 67, 73.5, 80]},
        "weight": {**plain, "edges": [k / 10 for k in range(11)], "missing": "unknown"},
        "income": {**plain, "edges": [0, 1000, 5000]},
        "pain": {"levels": [*CODEBOOK["pain"], "not said"], "missing": "not said", "ordered": True},
        "smoke": {"levels": ["0", "1"], "missing": "refuse", "ordered": False},
    }
    assert Schema(json.loads(json.dumps(draft))).to_dict() == draft == draft_schema(draft)
    number = draft_schema(CODEBOOK, missing="not said")["age"]
    plain = {"missing": "not said", "ordered": True}
    assert number == {"range": [15, 80], "scale": "linear", "outside": "refuse", **plain}
    assert draft_schema({"age": number, "pain": ["none"]})["age"] == number


def test_a_draft_from_data_reads_the_data():
    pain = pd.Categorical(["low", "high"] * 15, ["low", "high", "higher"], ordered=True)
    values = {"id": [f"p{i}" for i in range(30)], "age": np.arange(30) + 0.5}
    values |= {"rooms": pd.array([10, 9, None] * 10, dtype="Int64"), "beds": [14.0, None, 2.0] * 10}
    frame = pd.DataFrame({**values, "smoke": ["yes", "no", None] * 10, "pain": pain})
    draft = draft_from_data(frame, bins=2, ignore=["id"])
    assert list(draft) == ["age", "rooms", "beds", "smoke", "pain"]
    assert (draft["age"]["edges"], draft["age"]["outside"]) == ([0.5, 15, 29.5], "clip")
    levels = [draft[name]["levels"] for name in ("rooms", "beds", "smoke")]
    assert levels == [["9", "10", "unknown"], ["2", "14", "unknown"], ["no", "yes", "unknown"]]
    expected = {"levels": ["low", "high", "higher"], "missing": "refuse", "ordered": True}
    assert draft["pain"] == expected
    data = Dataset.from_pandas(frame, draft, ignore=["id"])
    assert data.codes[:3].tolist() == [[0, 1, 1, 1, 0], [0, 0, 2, 0, 1], [0, 2, 0, 2, 0]]
    assert draft_from_data(frame, ignore=["id"])["age"]["range"] == [0.5, 29.5]
    frame["age"] = [f"{age:.1f}".replace(".", ",") for age in frame["age"]]
    assert draft_from_public_table(frame, bins=2, ignore=["id"])["age"]["edges"] == [0, 15, 30]


FRAME = pd.DataFrame({"a": BIT, "b": BIT})


ENDS = [80, 15], [15, 15], [15], ["15", "80"], [0, NAN], [0, INF]
NO_CODEBOOKS = [
    *[({"a": {"range": ends}}, {}, "'a': " + PAIR) for ends in ENDS],
    ({"a": {"range": "15"}}, {}, "'a': give its range as a list"),
    ({"a": {"range": [0, 1], "levels": ["0"]}}, {}, "'a': it needs levels, or the range or"),
    ({"a": {"range": [1, 9], "scale": "log"}}, {"bins": 2}, "only a range has a scale; take"),
    ({"a": {"range": [0, 1]}}, {"bins": 1}, "bins must be a whole number, at least 2, not 1"),
    ({"a": {"range": [0, 1]}}, {"bins": 2.5}, "bins must be a whole number"),
    ({"a": BIT}, {"ordered": ["c"]}, "ordered names 'c', which is no variable"),
]


MANY = pd.DataFrame({"a": [f"p{i}" for i in range(21)], "b": range(21)})
INFINITE = pd.DataFrame({"a": [*range(30), np.inf], "b": ["0"] * 31})


NO_FRAMES = [
    ([[0, 1]], {}, "frame must be a pandas DataFrame, not a list"),
    (FRAME, {"ignore": "a"}, "ignore must be a list of columns"),
    (FRAME, {"ignore": ["a"]}, "a causal graph needs at least two variables, this has 1"),
    (FRAME, {"bins": 0}, "bins must be a whole number, at least 2"),
    (MANY, {}, r"'a' has 21 different values; pass ignore=\['a'\] if it names records"),
    (INFINITE, {}, "'a': a range is two finite numbers"),
    (pd.DataFrame({"a": [None, None], "b": BIT}), {}, "'a' has no level"),
]


NO_DRAFTS = [
    *[(draft_schema, {**columns, "b": BIT}, how, cure) for columns, how, cure in NO_CODEBOOKS],
    (draft_schema, FRAME, {}, "columns must map each variable to its levels or range, not a DataF"),
    *[(draft_from_data, *case) for case in NO_FRAMES],
    (draft_from_public_table, FRAME, {"bins": 1}, "bins must be a whole number, at least 2"),
]


@pytest.mark.parametrize(("draft", "columns", "settings", "cure"), NO_DRAFTS)
def test_what_makes_no_schema_is_refused(draft, columns, settings, cure):
    refused(cure, draft, columns, **settings)


# --- a schema from a public table


def census(n=5_000):
    """Ages, skewed incomes some of which are missing, small numbers and a category."""
    rng = np.random.default_rng(0)
    income = np.round(rng.lognormal(10, 1, n), 2)
    income[::9] = np.nan
    frame = pd.DataFrame({"id": range(n), "age": rng.integers(17, 94, n), "income": income})
    frame["change"], frame["year"] = rng.normal(0, 0.002, n), rng.integers(1991, 2019, n)
    return frame.assign(children=rng.integers(0, 5, n), sex=rng.choice(["f", "m"], n))


def test_a_range_from_a_public_table_has_round_ends_that_hold_all_of_it():
    frame = census()
    draft = draft_from_public_table(frame, ignore=["id"])
    assert draft["age"]["range"] == [10, 100]
    for name in ("age", "income", "change"):
        low, high = draft[name]["range"]
        assert low <= frame[name].min() <= frame[name].max() <= high
        assert (float(f"{low:.1g}"), float(f"{high:.1g}")) == (low, high)
        assert draft[name]["outside"] == "clip"
    assert (draft["income"]["missing"], draft["children"]["levels"]) == ("unknown", list("01234"))
    later = frame.assign(age=frame.age + 50, sex="m")  # next year's table
    assert Dataset.from_pandas(later, draft, ignore=["id"]).n == len(frame)


@pytest.mark.parametrize("bins", [2, 4, 7])
def test_bins_from_a_public_table_are_about_equally_common_and_round(bins):
    frame = census()
    draft = draft_from_public_table(frame, bins=bins, ignore=["id"])
    data = Dataset.from_pandas(frame, draft, ignore=["id"])
    for name in ("age", "income", "change", "year"):
        edges = draft[name]["edges"]
        assert len(edges) <= bins + 1
        assert "range" not in draft[name]
        digits = 4 if name == "year" else 3
        assert all(float(f"{edge:.{digits}g}") == edge for edge in edges)
        shares = data.counts([data.variables.index(name)])[: len(edges) - 1]
        assert shares.max() < 1.4 * shares.sum() / bins
    assert Schema(draft).to_dict() == draft
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    assert draft_from_public_table(arrow, bins=bins, ignore=["id"]) == draft
