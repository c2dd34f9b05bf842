"""Parquet files: the same counts as in memory, and one clear line about whatever is wrong."""

import gc
import itertools
import os
import re
import resource
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from people import BIT, LEVELS, drawn, frame_of, levels_of, refused

from dpcgd import Dataset, Schema, read_parquet
from dpcgd.datasets import parquet_files
from dpcgd.datasets.contingency_tables import Tables

pa = pytest.importorskip("pyarrow", reason="it is in the parquet extra")
from pyarrow import parquet  # noqa: E402

exactly = settings(derandomize=True, database=None, max_examples=60)
AGE = {"edges": [15, 25, 50]}
CHANGED = "other records than at first; let nobody write"


def written(folder, draw):
    """Some files, perhaps without a record; the data set that they hold."""
    levels = draw(st.lists(st.sampled_from([1, 2, 3, 5, 9, 300]), min_size=2, max_size=4))
    kinds = [draw(st.sampled_from(["whole", "text", "category"])) for _ in levels]
    sizes = draw(st.lists(st.integers(0, 200), min_size=1, max_size=3).filter(any))
    data = drawn(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), levels, sum(sizes))
    for i, part in enumerate(np.split(data.codes, np.cumsum(sizes)[:-1])):
        rows = draw(st.integers(1, 150))
        columns = as_columns(part, levels, kinds)
        parquet.write_table(columns, folder / f"{i}.parquet", row_group_size=rows)
    return data


def as_columns(codes, levels, kinds):
    """The same records as whole numbers, as text, or as numbers of what stands in a dictionary."""
    columns = []
    for column, size, kind in zip(codes.T, levels, kinds, strict=True):
        names, places = pa.array([str(k) for k in range(size)]), pa.array(column.astype(np.int32))
        values = {"whole": places, "text": names.take(places)}
        columns.append(values.get(kind, pa.DictionaryArray.from_arrays(places, names)))
    return pa.table(columns, names=[*levels_of(levels)])


def write(folder, frame, name="people.parquet", **how):
    frame.to_parquet(folder / name, **how)
    return folder / name


@exactly
@given(st.data())
def test_counts_are_those_in_memory_to_the_last_record(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("table")
    expected = written(folder, data.draw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "BATCH", data.draw(st.integers(1, 100)))
        patch.setattr(parquet_files, "PART", data.draw(st.integers(1, 200)))
        found = read_parquet(folder, expected.levels, spill=data.draw(st.booleans()))
    assert (found.n, found.variables) == (expected.n, expected.variables)
    subsets = [itertools.permutations(range(expected.d), k) for k in (1, 2, min(3, expected.d))]
    asked = [*itertools.chain.from_iterable(subsets)][:30]
    plain = [expected.counts(at) for at in asked]
    for answers in (found.counts_many(asked), Tables(found).counts_many(asked)):
        assert all(map(np.array_equal, answers, plain))
    assert all(map(np.array_equal, map(found.counts, asked), plain))
    assert all(map(np.array_equal, map(Tables(expected).counts, asked), plain))


CATEGORIES = pd.Categorical(["x", None, "y"], ["z", "y", "x"])
COLUMNS = {
    "nullable": (pd.array([1, None, 0], "Int64"), {"levels": BIT, "missing": "unknown"}),
    "bool": ([True, False, True], ["True", "False"]),
    "text": (["b", "", "a"], ["a", "b", ""]),
    "category": (CATEGORIES, {"levels": ["x", "y"], "missing": "none"}),
    "float": ([15.0, 49.9, 50.0], AGE),
    "gone": ([16.0, None, 44.0], {**AGE, "missing": "unknown"}),
    "small": (np.array([15, 25, 50], np.int8), AGE),
    "single": (np.array([15.1, 24.9, 25], np.float32), AGE),
    "written": (["15", "49.9", "25"], AGE),
}


def test_values_become_what_they_become_of_a_frame(tmp_path):
    frame = pd.DataFrame({name: values for name, (values, _) in COLUMNS.items()})
    schema = {name: entry for name, (_, entry) in COLUMNS.items()}
    plain = Dataset.from_pandas(frame, schema)
    found = read_parquet(write(tmp_path, frame), schema)
    for at in itertools.combinations(range(len(COLUMNS)), 2):
        assert np.array_equal(found.counts(at), plain.counts(at)), at
    assert (found.ordered, found.missing) == (plain.ordered, plain.missing)
    assert found.name == "people"


any_number = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99)


@exactly
@given(st.lists(any_number, min_size=1), st.sampled_from(["clip", "refuse"]))
def test_numbers_go_where_their_text_would_go(tmp_path_factory, numbers, outside):
    frame = pd.DataFrame({"a": BIT[0], "x": np.array(numbers, float)})
    schema = {"a": BIT, "x": {"edges": [-5, 0.1, 3, 60], "outside": outside}}
    path = write(tmp_path_factory.mktemp("x"), frame)
    try:
        plain = Dataset.from_pandas(frame, schema)
    except ValueError as error:
        told = str(error).replace("the frame", str(path))
        refused(f"^{re.escape(told)}$", read_parquet, path, schema)
    else:
        assert np.array_equal(read_parquet(path, schema).counts([1]), plain.counts([1]))


def test_files_are_read_by_name_and_a_list_as_it_is(tmp_path):
    for name in ("b.parquet", "a.parquet", "_metadata", ".part.parquet.crc"):
        write(tmp_path, pd.DataFrame(LEVELS, index=[7, 9]), name)  # whose index is no column
    found = read_parquet(tmp_path, LEVELS)
    assert (found.n, found.name) == (4, tmp_path.name)
    assert read_parquet([tmp_path / "a.parquet"], LEVELS).n == 2


# --- what is wrong


def good(tmp_path, n=1000, bad=None, name="people.parquet"):
    """A file of ten row groups; one value may be bad."""
    frame = pd.DataFrame({"a": [BIT[i % 2] for i in range(n)], "b": "0"})
    if bad is not None:
        frame.loc[bad, "b"] = "7"
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / name, row_group_size=n // 10)
    return tmp_path / name


def cut_to(start, end=None):
    """A file of which only a part is whole; its last bytes say what is in it."""

    def make(folder):
        path = good(folder)
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(start) + content[4 + start : end])
        return path

    return make


def beside_a_good_file(name, content):
    def make(folder):
        good(folder, name="a.parquet")
        (folder / name).write_bytes(content) if content else (folder / name).mkdir()
        return folder

    return make


def second_is_bad(folder):
    return [good(folder), good(folder, bad=997, name="b.parquet")]


def linked(folder):
    os.link(good(folder), folder / "again.parquet")
    return folder


def of_frame(**columns):
    return lambda folder: write(folder, pd.DataFrame(columns))


WRONG = [
    (cut_to(0, -20), "people.parquet cannot be read: .*; write the file anew$"),
    (cut_to(196), "people.parquet cannot be read: .*; write the file anew$"),
    (second_is_bad, "b.parquet, record 998, column 'b': '7' is not among"),
    (beside_a_good_file("b.parquet", b"a,b\n0,1\n"), "end in .csv$"),
    (beside_a_good_file("year=2020", None), "year=2020; put all files in one, or give a list"),
    (lambda folder: folder, "has no file that ends in .parquet; correct the path"),
    (lambda folder: folder / "lost.parquet", "there is no file .*; correct the path$"),
    (lambda folder: [], "name at least one file$"),
    (lambda folder: pd.DataFrame({"a": BIT}), "use Dataset.from_pandas$"),
    (lambda folder: [good(folder), folder / "." / "people.parquet"], "name each file once$"),
    (linked, "is the same file as .*; name each file once$"),
    (of_frame(a=BIT, b=[0.0, 1.5]), "record 2, column 'b': '1.5' is not among the levels 0, 1"),
    (of_frame(a=BIT, b=[["0"], ["1"]]), "column 'b' of .* holds list<.*>, no plain value a rec"),
    (of_frame(a=BIT, b=pd.period_range("2020", periods=2)), "'b' of .* holds .*, no plain value"),
    (of_frame(a=BIT, b=[None, None]), "record 1, column 'b': the value is missing; drop or"),
    (of_frame(a=[], b=[]), "people.parquet has no record, nor has any other file; give at least"),
    (of_frame(a=BIT, b=BIT, c=BIT), r"people.parquet is not in the schema; .* ignore=\['c'\]$"),
]


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder of temporary files."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


@pytest.mark.parametrize("spill", [False, True])
@pytest.mark.parametrize(("make", "cure"), WRONG)
def test_what_is_wrong_is_told_and_nothing_is_left(scratch, tmp_path, make, cure, spill):
    (tmp_path / "table").mkdir()
    refused(cure, read_parquet, make(tmp_path / "table"), LEVELS, spill=spill)
    assert list(scratch.iterdir()) == []


def test_a_categorical_in_another_order_than_the_schema_is_refused(tmp_path):
    column = pd.Categorical(["low", "high"], ["high", "low"], ordered=True)
    path = write(tmp_path, pd.DataFrame({"a": BIT, "b": column}))
    schema = {"a": BIT, "b": {"levels": ["low", "high"], "ordered": True}}
    refused("is ordered as high, low, in the schema as low, high; gi", read_parquet, path, schema)


def test_without_pyarrow_it_is_named(tmp_path, monkeypatch):
    path = good(tmp_path)
    monkeypatch.setattr(parquet_files.importlib.util, "find_spec", lambda name: None)
    refused("takes pyarrow; pip install pyarrow, or save", read_parquet, path, LEVELS)


def test_a_file_that_is_written_while_a_table_is_read_is_noticed(tmp_path, monkeypatch):
    schema, path = Schema(LEVELS), good(tmp_path)
    content = path.read_bytes()
    parts = parquet_files.parts_of(str(path), schema, [])
    parquet_files.pack_parts(parts, schema)
    for other in (good(tmp_path, n=900, name="less"), good(tmp_path, n=1100, name="more"), None):
        path.write_bytes(other.read_bytes() if other else content)  # at last of equal length
        refused(CHANGED, parquet_files.pack_parts, parts, schema)
    decoded = parquet_files._decoded

    def written_meanwhile(part, names):
        yield from decoded(part, names)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(parquet_files, "_decoded", written_meanwhile)
    refused(CHANGED, read_parquet, path, schema)


# --- on disk


def wide_file(tmp_path, n=50_000):
    data = drawn(np.random.default_rng(0), [4] * 12, n)
    return write(tmp_path, frame_of(data), "wide.parquet"), data.levels


def test_a_spilled_table_is_on_disk_and_goes_with_the_object(tmp_path, monkeypatch):
    path, schema = wide_file(tmp_path)
    file = parquet_files.tempfile.TemporaryFile()
    monkeypatch.setattr(parquet_files.tempfile, "TemporaryFile", lambda **how: file)
    data = read_parquet(path, schema, spill=True)
    assert file.closed  # what is mapped stays
    assert np.array_equal(data.counts([0, 5]), read_parquet(path, schema).counts([0, 5]))
    if sys.platform == "linux":
        gc.collect()
        before = Path("/proc/self/maps").read_text().count("(deleted)")
        del data
        gc.collect()
        assert Path("/proc/self/maps").read_text().count("(deleted)") == before - 1


@pytest.mark.parametrize("room", [1000, 120_001])
def test_a_file_that_may_not_grow_is_told_in_one_line(scratch, tmp_path, monkeypatch, room):
    path, schema = wide_file(tmp_path)
    read_parquet(path, schema, spill=True)  # what is compiled may be kept on disk too
    monkeypatch.setattr(parquet_files, "CHUNK", 50_000)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, usual[1]))
    try:
        cure = r"no room for 150,\d+ bytes: .*; free some room"
        refused(cure, read_parquet, path, schema, spill=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert list(scratch.iterdir()) == []
