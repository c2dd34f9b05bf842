"""Parquet files: the same counts as in memory, and one clear line about whatever is wrong."""

import gc
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd import Dataset, Schema, graph_from_moments, load, read_parquet, table_pc
from dpcgd.datasets import disk_arrays, parquet_files, parquet_parts
from dpcgd.datasets.bit_columns import pack
from dpcgd.datasets.contingency_tables import Tables

pa = pytest.importorskip("pyarrow", reason="it is in the parquet extra")
from parquet_tables import questions, tables, written  # noqa: E402
from pyarrow import parquet  # noqa: E402

exactly = settings(derandomize=True, deadline=None, database=None, max_examples=60)
BIT = ["0", "1"]
AGE = {"edges": [15, 25, 50]}
CHANGED = "other records than at first; let nobody write"


def frame_of(data):
    columns = zip(data.levels.items(), data.codes.T, strict=True)
    return pd.DataFrame({name: np.array(of)[codes] for (name, of), codes in columns})


def write(folder, frame, name="people.parquet", **how):
    frame.to_parquet(folder / name, **how)
    return folder / name


@exactly
@given(st.data())
def test_counts_are_those_in_memory_to_the_last_record(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("table")
    expected = written(folder, data.draw(tables()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_parts, "BATCH", data.draw(st.integers(1, 100)))
        patch.setattr(parquet_parts, "PART", data.draw(st.integers(1, 200)))
        found = read_parquet(folder, expected.levels, spill=data.draw(st.booleans()))
    assert (found.n, found.variables) == (expected.n, expected.variables)
    asked = questions(expected.d)
    plain = [expected.counts(at) for at in asked]
    for answers in (found.counts_many(asked), Tables(found).counts_many(asked)):
        assert all(map(np.array_equal, answers, plain))
    assert all(map(np.array_equal, map(found.counts, asked), plain))
    assert all(map(np.array_equal, map(Tables(expected).counts, asked), plain))


def test_wide_tables_and_several_blocks_of_words_are_counted_like_the_whole(tmp_path):
    n = 300_000
    frame = frame_of(load("asia", n, rng=np.random.default_rng(0)))
    frame["constant"] = "one"
    frame["wide"] = (np.arange(n) % 70_000).astype(str)
    schema = {name: ["no", "yes"] for name in frame.columns[:8]}
    schema |= {"constant": ["one"], "wide": [str(k) for k in range(70_000)]}
    plain, asked = Dataset.from_pandas(frame, schema), [(0, 8), (8, 1, 2), (7, 3), (9,)]
    found = read_parquet(write(tmp_path, frame), schema)
    assert len(found.columns.weights) == n  # not collapsed
    assert all(map(np.array_equal, found.counts_many(asked), map(plain.counts, asked)))


def test_a_small_domain_is_kept_as_cells(tmp_path):
    data = load("asia", 20_000, rng=np.random.default_rng(0))
    path = write(tmp_path, frame_of(data), row_group_size=999)
    found = read_parquet(path, data.levels)
    assert len(found.columns.weights) <= 2**8
    assert found.n == 20_000
    assert np.array_equal(found.counts(range(8)), data.counts(range(8)))


VALUES = {
    "nullable": pd.array([1, None, 0], "Int64"),
    "bool": [True, False, True],
    "text": ["b", "", "a"],
    "category": pd.Categorical(["x", None, "y"], ["z", "y", "x"]),
    "float": [15.0, 49.9, 50.0],
    "gone": [16.0, None, 44.0],
    "small": np.array([15, 25, 50], np.int8),
    "single": np.array([15.1, 24.9, 25], np.float32),
    "told": ["15", "49.9", "25"],
}
LEVELS = {
    "nullable": {"levels": BIT, "missing": "unknown"},
    "bool": ["True", "False"],
    "text": ["a", "b", ""],
    "category": {"levels": ["x", "y"], "missing": "none"},
    "float": AGE,
    "gone": {**AGE, "missing": "unknown"},
    "small": AGE,
    "single": AGE,
    "told": AGE,
}


def test_values_become_what_they_become_of_a_frame(tmp_path):
    frame = pd.DataFrame(VALUES)
    plain = Dataset.from_pandas(frame, LEVELS)
    found = read_parquet(write(tmp_path, frame), LEVELS)
    for at in itertools.combinations(range(len(VALUES)), 2):
        assert np.array_equal(found.counts(at), plain.counts(at)), at
    assert (found.ordered, found.missing) == (plain.ordered, plain.missing)
    assert found.name == "people"


@exactly
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99), min_size=1),
    st.sampled_from(["clip", "refuse"]),
)
def test_numbers_go_where_their_text_would_go(tmp_path_factory, numbers, outside):
    frame = pd.DataFrame({"a": BIT[0], "x": np.array(numbers, float)})
    schema = {"a": BIT, "x": {"edges": [-5, 0.1, 3, 60], "outside": outside}}
    path = write(tmp_path_factory.mktemp("x"), frame)
    try:
        plain = Dataset.from_pandas(frame, schema)
    except ValueError as error:
        told = str(error).replace("the frame", str(path))
        with pytest.raises(ValueError) as refused:
            read_parquet(path, schema)
        assert str(refused.value) == told
    else:
        assert np.array_equal(read_parquet(path, schema).counts([1]), plain.counts([1]))


def test_rows_that_pandas_numbers_are_no_column(tmp_path):
    frame = pd.DataFrame({"a": BIT, "b": BIT}, index=[7, 9])
    assert read_parquet(write(tmp_path, frame), {"a": BIT, "b": BIT}).n == 2


def test_files_are_read_by_name_and_a_list_as_it_is(tmp_path):
    for name in ("b.parquet", "a.parquet", "_metadata", ".part.parquet.crc"):
        write(tmp_path, pd.DataFrame({"a": BIT, "b": BIT}), name)
    schema = {"a": BIT, "b": BIT}
    assert read_parquet(tmp_path, schema).n == 4
    assert read_parquet([tmp_path / "a.parquet"], schema).n == 2
    assert read_parquet(tmp_path, schema).name == tmp_path.name


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
        content = good(folder).read_bytes()
        (folder / "people.parquet").write_bytes(
            content[:4] + bytes(start) + content[4 + start : end]
        )
        return folder / "people.parquet"

    return make


def beside_a_good_file(name, content):
    def make(folder):
        good(folder, name="a.parquet")
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
        return folder

    return make


def of_type(values):
    return lambda folder: write(folder, pa.table({"a": BIT, "b": values}).to_pandas())


WRONG = {
    "truncated": (cut_to(0, -20), "people.parquet cannot be read: .*; write the file anew$"),
    "damaged": (cut_to(196), "people.parquet cannot be read: .*; write the file anew$"),
    "last row group": (
        lambda folder: good(folder, bad=999),
        "people.parquet, record 1000, column 'b': '7' is not among the levels 0, 1; correct the",
    ),
    "one bad file": (
        lambda folder: [good(folder), good(folder, bad=997, name="b.parquet")],
        "b.parquet, record 998, column 'b': '7' is not among",
    ),
    "one other file": (beside_a_good_file("b.parquet", b"a,b\n0,1\n"), "read text with read_csv$"),
    "folders": (beside_a_good_file("year=2020", None), "year=2020; give a list of all files"),
    "empty folder": (lambda folder: folder, "has no file that ends in .parquet; correct the path"),
    "no file": (lambda folder: folder / "lost.parquet", "there is no file .*; correct the path$"),
    "no list": (lambda folder: [], "name at least one file$"),
    "no path": (lambda folder: 3, "paths must be the path of a Parquet file, of a folder of them"),
    "frame": (lambda folder: pd.DataFrame({"a": BIT}), "use Dataset.from_pandas$"),
    "twice": (
        lambda folder: [good(folder), folder / "." / "people.parquet"],
        "people.parquet is the same file as .*people.parquet; name each file once$",
    ),
    "the same object twice": (lambda folder: [good(folder)] * 2, "name each file once$"),
    "floats": (of_type([0.0, 1.5]), "record 2, column 'b': '1.5' is not among the levels 0, 1"),
    "lists": (of_type([["0"], ["1"]]), "column 'b' of .* holds list<.*>, more than one value a"),
    "nothing": (of_type([None, None]), "record 1, column 'b': the value is missing; drop or"),
    "no record": (
        lambda folder: write(folder, pd.DataFrame({"a": [], "b": []})),
        "people.parquet has no record, nor has any other file; give at least one$",
    ),
    "no column": (
        lambda folder: write(folder, pd.DataFrame({"a": BIT})),
        "people.parquet has no column 'b', which is in the schema; add the column",
    ),
    "another column": (
        lambda folder: write(folder, pd.DataFrame({"a": BIT, "b": BIT, "c": BIT})),
        r"column 'c' of .*people.parquet is not in the schema; .* or pass ignore=\['c'\]$",
    ),
}


@pytest.mark.parametrize("spill", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_told_in_one_line_and_nothing_is_left(tmp_path, monkeypatch, wrong, spill):
    make, told = WRONG[wrong]
    (tmp_path / "table").mkdir()
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    paths = make(tmp_path / "table")
    with pytest.raises(ValueError, match=told) as error:
        read_parquet(paths, {"a": BIT, "b": BIT}, spill=spill)
    assert "\n" not in str(error.value)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_categorical_in_another_order_than_the_schema_is_refused(tmp_path):
    column = pd.Categorical(["low", "high"], ["high", "low"], ordered=True)
    path = write(tmp_path, pd.DataFrame({"a": BIT, "b": column}))
    schema = {"a": BIT, "b": {"levels": ["low", "high"], "ordered": True}}
    with pytest.raises(ValueError, match="is ordered as high, low, in the schema as low, high; gi"):
        read_parquet(path, schema)


def test_without_pyarrow_it_is_named(tmp_path, monkeypatch):
    path = good(tmp_path)
    monkeypatch.setattr(parquet_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="takes pyarrow; pip install pyarrow, or save the table"):
        read_parquet(path, {"a": BIT, "b": BIT})


def test_a_file_that_is_written_while_a_table_is_read_is_noticed(tmp_path, monkeypatch):
    schema, path = Schema({"a": BIT, "b": BIT}), good(tmp_path)
    content = path.read_bytes()
    (part,) = parquet_parts.parts_of(str(path), schema, [])
    parquet_parts.pack_part(part, schema)
    for rewrite in (
        lambda: good(tmp_path, n=900),
        lambda: good(tmp_path, n=1100),
        lambda: path.write_bytes(content),  # of equal length
    ):
        rewrite()
        with pytest.raises(ValueError, match=CHANGED) as error:
            parquet_parts.pack_part(part, schema)
        assert "\n" not in str(error.value)
    decoded = parquet_parts._decoded

    def written_meanwhile(part, names):
        yield from decoded(part, names)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(parquet_parts, "_decoded", written_meanwhile)
    with pytest.raises(ValueError, match=CHANGED):
        read_parquet(path, schema)


def test_one_file_by_two_names_is_refused(tmp_path):
    path, schema = good(tmp_path), {"a": BIT, "b": BIT}
    os.link(path, tmp_path / "again.parquet")
    for paths in (tmp_path, [path, tmp_path / "again.parquet"]):
        with pytest.raises(ValueError, match=r"is the same file as .*; name each file once$"):
            read_parquet(paths, schema)
    assert read_parquet(path, schema).n == 1000


def test_other_records_have_another_digest():
    one, other = (
        pack([[codes, codes]], (2, 2), 3, most_bytes=0) for codes in np.eye(3, dtype=int)[:2]
    )
    assert one.digest == pack([[np.eye(3, dtype=int)[0]] * 2], (2, 2), 3, most_bytes=0).digest
    assert one.digest != other.digest
    few = pack([[np.array([0, 1]), np.array([0, 1])]], (2, 2), 2, most_bytes=1 << 20)
    more = pack([[np.array([0, 1, 1]), np.array([0, 1, 1])]], (2, 2), 3, most_bytes=1 << 20)
    assert few.digest != more.digest


# --- on disk


def wide_file(tmp_path, n=50_000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.integers(4, size=n).astype(str) for j in range(12)})
    frame.to_parquet(tmp_path / "wide.parquet")
    return tmp_path / "wide.parquet", {name: list("0123") for name in frame}


def test_a_spilled_table_is_on_disk_and_goes_with_the_object(tmp_path, monkeypatch):
    path, schema = wide_file(tmp_path)
    made = []
    plain = disk_arrays.tempfile.TemporaryFile

    def watched(**how):
        made.append(plain(**how))
        return made[-1]

    monkeypatch.setattr(disk_arrays.tempfile, "TemporaryFile", watched)
    data = read_parquet(path, schema, spill=True)
    assert made[0].closed  # what is mapped stays
    assert np.array_equal(data.counts([0, 5]), read_parquet(path, schema).counts([0, 5]))
    if sys.platform == "linux":
        gc.collect()
        held = Path("/proc/self/maps").read_text()
        before = held.count("(deleted)")
        del data
        gc.collect()
        assert Path("/proc/self/maps").read_text().count("(deleted)") == before - 1


LIMITED = """
import resource, sys
from dpcgd import read_parquet
from dpcgd.datasets import disk_arrays
disk_arrays.CHUNK = 50_000
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    read_parquet(sys.argv[1], {f"x{j}": list("0123") for j in range(12)}, spill=True)
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", [1000, 120_001])
def test_a_file_that_may_not_grow_is_told_in_one_line(tmp_path, room):
    path, _ = wide_file(tmp_path)
    (tmp_path / "scratch").mkdir()
    here = {**os.environ, "TMPDIR": str(tmp_path / "scratch"), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", LIMITED, path, str(room)]
    ran = subprocess.run(command, capture_output=True, text=True, env=here, check=True)
    assert re.search(r"no room for 150,\d+ bytes: .*; free some room", ran.stdout), ran.stderr
    assert ran.stdout.count("\n") == 1
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(("name", "system"), [("survey", table_pc), ("sachs", graph_from_moments)])
def test_a_run_on_files_is_the_run_on_the_data_set(tmp_path, name, system):
    data = load(name, 30_000, rng=np.random.default_rng(0))
    frame = frame_of(data)
    path = write(tmp_path, frame)
    one, other = (
        system(table, epsilon=1.0, rng=np.random.default_rng(1))
        for table in (data, read_parquet(path, data.levels))
    )
    assert one.graph == other.graph
    assert one.ledger == other.ledger
    assert one.terms == other.terms
