"""Drafts of schemas: from a codebook, and, under a name that warns, from data."""

import json

import numpy as np
import pandas as pd
import pytest

from dpcgd import Dataset, Schema, draft_schema, draft_schema_from_data_not_private

BIT = ["0", "1"]
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
    pain = {"levels": [*CODEBOOK["pain"], "not said"], "missing": "not said", "ordered": True}
    assert draft == {
        "age": {**plain, "edges": [15, 21.5, 28, 34.5, 41, 47.5, 54, 60.5, 67, 73.5, 80]},
        "weight": {**plain, "edges": [k / 10 for k in range(11)], "missing": "unknown"},
        "income": {**plain, "edges": [0, 1000, 5000]},
        "pain": pain,
        "smoke": {"levels": ["0", "1"], "missing": "refuse", "ordered": False},
    }
    assert Schema(json.loads(json.dumps(draft))).to_dict() == draft
    assert draft_schema(draft) == draft


def test_whole_numbers_with_gaps_are_drafted_as_whole_numbers():
    frame = pd.DataFrame({"a": [14.0, None, 2.0], "b": ["0", "1", "1"]})
    draft = draft_schema_from_data_not_private(frame)
    assert draft["a"]["levels"] == ["2", "14", "unknown"]
    assert Dataset.from_pandas(frame, draft).codes[:, 0].tolist() == [1, 2, 0]


def test_a_draft_from_data_reads_the_data():
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(30)],
            "age": np.arange(30) + 0.5,
            "rooms": pd.array([10, 9, None] * 10, dtype="Int64"),
            "smoke": ["yes", "no", None] * 10,
            "pain": pd.Categorical(["low", "high"] * 15, ["low", "high", "higher"], ordered=True),
        }
    )
    draft = draft_schema_from_data_not_private(frame, bins=2, ignore=["id"])
    assert list(draft) == ["age", "rooms", "smoke", "pain"]
    assert (draft["age"]["edges"], draft["age"]["outside"]) == ([0.5, 15, 29.5], "clip")
    assert draft["rooms"]["levels"] == ["9", "10", "unknown"]
    assert draft["smoke"]["levels"] == ["no", "yes", "unknown"]
    expected = {"levels": ["low", "high", "higher"], "missing": "refuse", "ordered": True}
    assert draft["pain"] == expected
    data = Dataset.from_pandas(frame, draft, ignore=["id"])
    assert data.codes[:3].tolist() == [[0, 1, 1, 0], [0, 0, 0, 1], [0, 2, 2, 0]]


FRAME = pd.DataFrame({"a": BIT, "b": BIT})


@pytest.mark.parametrize(
    ("columns", "settings", "cure"),
    [
        ({"a": {"range": [80, 15]}}, {}, "'a': a range is two finite numbers, the lower one first"),
        ({"a": {"range": [15, 15]}}, {}, "'a': a range is two finite numbers, the lower one first"),
        ({"a": {"range": [15]}}, {}, "'a': a range is two finite numbers"),
        ({"a": {"range": ["15", "80"]}}, {}, "'a': a range is two finite numbers"),
        ({"a": {"range": [0, float("nan")]}}, {}, "'a': a range is two finite numbers"),
        ({"a": {"range": [0, float("inf")]}}, {}, "'a': a range is two finite numbers"),
        ({"a": {"range": [0, 1], "levels": ["0"]}}, {}, "'a' needs either levels or edges"),
        ({"a": {"range": [0, 1]}}, {"bins": 1}, "bins must be at least 2, not 1"),
        ({"a": {"range": [0, 1]}}, {"bins": 2.5}, "bins must be a whole number"),
        ({"a": BIT}, {"ordered": ["c"]}, "ordered names 'c', which is no variable"),
        ({"a": ["0", "0"]}, {}, "list each level once"),
        ({"a": ["0"]}, {"missing": True}, "missing must be 'refuse' or the name of a level, not T"),
        (FRAME, {}, "columns must map each variable's name to its levels or range, not a DataF"),
        (["a", "b"], {}, "columns must map each variable's name to its levels or range, not a l"),
    ],
)
def test_a_codebook_that_makes_no_schema_is_refused(columns, settings, cure):
    columns = {**columns, "b": BIT} if isinstance(columns, dict) else columns
    with pytest.raises(ValueError, match=cure) as error:
        draft_schema(columns, **settings)
    assert "\n" not in str(error.value)


MANY = pd.DataFrame({"a": [f"p{i}" for i in range(21)], "b": range(21)})
INFINITE = pd.DataFrame({"a": [*range(30), np.inf], "b": ["0"] * 31})


@pytest.mark.parametrize(
    ("frame", "settings", "cure"),
    [
        ([[0, 1]], {}, "frame must be a pandas DataFrame, not list"),
        (FRAME, {"ignore": "a"}, "ignore must be a list of columns, not 'a'"),
        (FRAME, {"ignore": ["c"]}, "ignore names 'c', which is no column of the frame"),
        (FRAME, {"ignore": ["a"]}, "a causal graph needs at least two variables, this has 1"),
        (FRAME, {"bins": 0}, "bins must be at least 2"),
        (MANY, {}, r"'a' has 21 different values; pass ignore=\['a'\] if it names records"),
        (INFINITE, {}, "'a': a range is two finite numbers"),
        (pd.DataFrame({"a": [None, None], "b": BIT}), {}, "'a' has no level"),
    ],
)
def test_data_that_makes_no_schema_are_refused(frame, settings, cure):
    with pytest.raises(ValueError, match=cure) as error:
        draft_schema_from_data_not_private(frame, **settings)
    assert "\n" not in str(error.value)
