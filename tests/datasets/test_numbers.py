"""Numbers with a public range: kept as parts of it, whichever way they come in."""

import json
import pickle
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from known_tables import numbers_in
from people import BIT, cases, refused

from dpcgd import Dataset, Schema, read_csv, read_parquet
from dpcgd.datasets.variable import PARTS, Parts

RANGES = {"age": (0, 80), "height": (1, 2)}


def test_values_outside_a_range_go_to_its_nearer_end():
    data = Dataset.of_numbers([[-5.0, 3.0], [40.0, 1.25]], RANGES)
    assert data.codes.tolist() == [[0, PARTS - 1], [PARTS // 2, PARTS // 4]]
    assert data.scaled == pytest.approx(np.array([[-1, 1], [0, -0.5]]), abs=1 / PARTS)
    assert (data.numbers, data.half_widths.tolist()) == (("age", "height"), [40, 0.5])


ends = st.sampled_from([(0.0, 80.0), (-1e9, 1e-3), (1e-300, 1e-6), (7.0, 7.0000001), (0.1, 1e5)])


@settings(derandomize=True, max_examples=200)
@given(ends, st.booleans(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_number_is_kept_to_half_a_part(ends, is_log, shares):
    low, high = ends
    scale = "log" if is_log and low > 0 else "linear"
    values = np.clip(low + (high - low) * np.array(shares), low, high)
    schema = {"a": BIT, "x": {"range": ends, "scale": scale}}
    data = Dataset.from_pandas(pd.DataFrame({"a": BIT[0], "x": values}), schema)
    found, half = numbers_in(data)["x"], data.half_widths[1] / PARTS
    away = np.log(found / values) if scale == "log" else found - values
    assert np.abs(away).max() <= half * (1 + 1e-6) + 1e-15 * (high if scale == "linear" else 1)
    assert ((low <= found) & (found <= high)).all()
    assert np.abs(data.scaled[:, 1]).max() < 1


ROW = [[1.0, 1.0]]
LARGEST = np.finfo(float).max
ENDS = [(0, 0), (0, np.nan), (-LARGEST, LARGEST), (0.0, 5e-324), (80, 0), ("1", "2"), (1, 1.5, 2)]


WORDS = [["1", "1"]], np.array([["1", 1]], object), np.array([[1, 1]], "datetime64[s]")
BAD_VALUES = {
    "missing or infinite; drop or impute": [[[1.0, np.nan]], [[1.0, None]]],
    "one column for each of the 2": [[[1.0]]],
    "one row a record": [np.empty((0, 2))],
    "differ in length; give all as many": [[[1.0, 1.0], [1.0]]],
    "must be numbers, not text or other objects; convert them first": WORDS,
}
BAD_ENDS = {
    r"'age': a range is two finite .* give \(low, ": ENDS,
    "'age': give its range as a list": [2, "12", {1, 2}],
}
BAD_RANGES = {
    "at least two variables": [{"age": (0, 80)}],
    "ranges must be a mapping": [[(0, 80), (1, 2)]],
    "write it as '2'": [{"age": (0, 80), 2: (1, 2)}],
    "'b ' is empty or has blanks at its ends": [{"age": (0, 80), "b ": (1, 2)}],
}
BAD = [(values, RANGES, cure) for values, cure in cases(BAD_VALUES)]
BAD += [(ROW, {**RANGES, "age": ends}, cure) for ends, cure in cases(BAD_ENDS)]
BAD += [(ROW, ranges, cure) for ranges, cure in cases(BAD_RANGES)]


@pytest.mark.parametrize(("values", "ranges", "cure"), BAD)
@pytest.mark.filterwarnings("error")
def test_bad_input_is_refused_with_its_cure(values, ranges, cure):
    refused(cure, Dataset.of_numbers, values, ranges)


def test_ends_and_values_may_be_any_numbers():
    ends = {"age": [np.int8(0), Fraction(160, 2)], "height": np.array([1, 2])}
    values, truth = np.array([[Decimal(20), 1.5]], object), nx.DiGraph([("age", "height")])
    data = Dataset.of_numbers(values, ends, truth, "toy")
    assert (data.codes.tolist(), data.truth, data.name) == ([[8192, 16384]], truth, "toy")
    assert data.levels["age"] == Parts(0.0, 80.0)
    refused("same variables", Dataset.of_numbers, ROW, RANGES, nx.DiGraph([("age", "weight")]))


def test_level_numbers_of_categories_are_scaled_too():
    levels = {"smoke": ("no", "yes"), "pain": ("0", "1", "2"), "all": ("yes",), "x": Parts(0, 8)}
    data = Dataset([[0, 2, 0, 0], [1, 0, 0, PARTS - 1]], levels)
    last = 1 - 1 / PARTS
    assert data.scaled.tolist() == [[-1, 1, -1, -last], [1, -1, -1, last]]
    assert data.half_widths.tolist() == [0.5, 1, 0.5, 4]


@pytest.mark.parametrize("bins", [1, 2, 5, 7, 12, 16, 100])
def test_bins_begin_where_edges_begin(bins):
    """Whole numbers on an edge too, where a part lies in two bins."""
    values, edges = np.arange(0, 421), np.linspace(0, 420, bins + 1)
    data = Dataset.of_numbers(np.column_stack([values, values]), {"a": (0, 420), "b": (0, 999)})
    expected = np.minimum(np.searchsorted(edges, values, side="right") - 1, bins - 1)
    assert data.binned(bins).codes[:, 0].tolist() == expected.tolist()


def test_numbers_of_a_mixed_table_are_binned_and_the_rest_stays():
    levels = {"a": BIT, "x": Parts(0.0, 10.0, missing="unknown"), "y": Parts(1e9, 1e9 + 1e-6)}
    data = Dataset([[1, PARTS, 0], [0, PARTS - 1, 9]], levels)
    assert (data.ordered, data.missing) == ({"x", "y"}, {"x": "unknown"})
    found = data.binned(4)
    assert found.levels["x"] == ("0 to 2.5", "2.5 to 5", "5 to 7.5", "7.5 to 10", "unknown")
    assert (found.levels["y"][0], found.codes.tolist()) == ("part 1 of 4", [[1, 4, 0], [0, 3, 0]])
    assert (found.ordered, found.missing, found.numbers) == ({"x", "y"}, {"x": "unknown"}, ())
    assert data.binned(10**6).codes[0, 1] == 10**6
    for bins in (0, 4.0, "4", True, None):
        refused("bins must be .*at least 1, not", data.binned, bins)
    refused("'x' may be missing, and is needed here; drop or", lambda: data.scaled)
    for missing in ({"x": "0 to 1"}, {"x": None}, {"y": "unknown"}, {"y": None}):
        refused("has no level .* for missing values", Dataset, [[0] * 3], levels, missing=missing)


# --- every door


SCHEMA = {
    "a": BIT,
    "age": {"range": [0, 80]},
    "change": {"range": [-1, 1], "outside": "clip", "missing": ["unknown", -9, "NA"]},
    "income": {"range": [1, 1e6], "scale": "log", "outside": "clip"},
}


def people(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(BIT, n), "age": 80 * rng.random(n)})
    frame["change"] = rng.choice([-9, np.nan, -2, 0.1, 1, 3], n) * rng.choice([1, 0.3], n)
    frame.loc[:9, "change"] = [-9, np.nan, *np.linspace(-1, 1, 8)]
    frame["income"] = 10.0 ** rng.integers(-1, 8, n)
    frame.loc[0:40, "age"] = np.linspace(0, 80, 41)
    return frame


def test_every_door_gives_the_same_parts(tmp_path):
    pytest.importorskip("pyarrow", reason="it is in the parquet extra")
    frame = people()
    plain = Dataset.from_pandas(frame, SCHEMA)
    assert plain.codes[:3, 2].tolist() == [PARTS, PARTS, 0]
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(Schema(SCHEMA).to_dict()))
    for schema in (SCHEMA, tmp_path / "schema.json"):
        read = read_csv(tmp_path / "people.csv", schema)
        assert np.array_equal(read.codes, plain.codes)
        assert (read.levels, read.rules) == (plain.levels, plain.rules)
    (tmp_path / "parts").mkdir()
    for i in range(2):
        frame[i::2].to_parquet(tmp_path / "parts" / f"{i}.parquet", row_group_size=70)
    packed = read_parquet(tmp_path / "parts", SCHEMA)
    for asked in ([0, 1], [2, 0], [3, 0]):
        assert np.array_equal(packed.counts(asked), plain.counts(asked))
    assert (packed.levels, packed.missing) == (plain.levels, {"change": "unknown"})
    ranges = {"age": (5, 60), "income": (0, 1e3)}
    clipped = {name: {"range": ends, "outside": "clip"} for name, ends in ranges.items()}
    of_numbers = Dataset.of_numbers(frame[[*ranges]].to_numpy(), ranges)
    assert np.array_equal(of_numbers.codes, Dataset.from_pandas(frame[[*ranges]], clipped).codes)


NO_NUMBERS = [
    ("age", 80.1, "record 2, column 'age': '80.1' is outside 0 to 80; .* outside be 'clip'"),
    ("age", None, "record 2, column 'age': the value is missing; drop or impute"),
    ("age", "old", "'old' is no number; correct the value, or list levels in the schema"),
    ("income", np.inf, "'inf' is no number"),
    ("change", "N/A", "'N/A' is no number"),
    ("age", pd.Timestamp("2020-01-01"), "is a date or a time; put a number of days"),
    ("age", "192.168.0.1", "is no number"),
]


@pytest.mark.parametrize(("column", "value", "cure"), NO_NUMBERS)
def test_a_value_that_is_no_number_in_the_range_is_refused(column, value, cure):
    frame = people().astype(object)
    frame.loc[1, column] = value
    refused(cure, Dataset.from_pandas, frame, SCHEMA)


def test_parts_are_described_and_never_listed(tmp_path, monkeypatch):
    schema = Schema({"a": BIT, "x": SCHEMA["change"], "y": SCHEMA["income"]})
    data = Dataset.of_schema([[0, 1, 2], [1, PARTS, 0]], schema)
    (tmp_path / "people.csv").write_text("a,x,y\n0,0.5,10\n")
    monkeypatch.setattr(Parts, "__getitem__", lambda parts, place: pytest.fail("it was listed"))
    assert read_csv(tmp_path / "people.csv", schema).n == 1
    again, other = pickle.loads(pickle.dumps(data)), Parts(-1.0, 1.0, missing="unknown")
    assert (again.levels, again.schema, again.missing) == (data.levels, schema, data.missing)
    assert data.levels["x"] == other != Parts(-1.0, 1.0)
    assert (other.edges.size, len(pickle.dumps(other)) < 200) == (PARTS + 1, True)
    assert ("unknown" in other, None in Parts(0.0, 1.0)) == (True, False)
