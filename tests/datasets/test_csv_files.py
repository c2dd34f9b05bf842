"""A CSV file is read in two ways, by Arrow and row by row: what they find is the same."""

import csv
import gzip
import io
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from people import BIT, LEVELS, csv_of, refused

from dpcgd import Dataset, Schema, plan, private_graph, read_csv, read_parquet, rehearse, table_pc
from dpcgd.datasets import csv_files

pytest.importorskip("pyarrow", reason="it is in the parquet extra")

often = settings(derandomize=True, database=None, max_examples=150)
WORDS = ["no", "", "über, all", 'the "1"', "two\nlines", "a\r\nb", "\ufeff", "NA", "1.0", "x'"]
AGES = ["0", "-0.0", "19.99", "20", "2e1", "+5", ".5", "39.", "007", "1e999", "?", "-9", "-9.0", ""]
AGE = {"edges": [-1, 20, 40, 60], "outside": "clip", "missing": ["none", "?", -9]}
AGE_CODES = [0, 0, 0, 1, 1, 0, 0, 1, 0, 2, 3, 3, 3, 3]
SCHEMA = {"word": WORDS, "age": AGE, "bit": BIT}


def rows_only(patch):
    """Take pyarrow away from whoever reads text."""
    patch.setitem(sys.modules, "pyarrow", None)


def arrow_only(patch):
    def refuse(*given):
        raise AssertionError("not read by Arrow")
        yield

    patch.setattr(csv_files, "_by_row", refuse)


def outcome(path, schema, **how):
    """The codes of a file, or what is said about it."""
    try:
        return read_csv(path, schema, **how).codes.tolist()
    except ValueError as error:
        return str(error)


def assert_both_ways_agree(path, schema, **how):
    by_arrow = outcome(path, schema, **how)
    with pytest.MonkeyPatch.context() as patch:
        rows_only(patch)
        assert by_arrow == outcome(path, schema, **how)


drawn_rows = st.lists(st.tuples(*map(st.sampled_from, (WORDS, AGES, BIT))), min_size=1)
FORMS = {
    "separator": st.sampled_from([",", ";", "\t", "|", "0"]),
    "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
}
ENDS = [(quoting, end) for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL) for end in ("\r\n", "\n")]
ENDS += [(csv.QUOTE_ALL, "\r")]  # with less the writer leaves out those around a line end


BLOCKS = st.sampled_from([60, 200, 1 << 20])


@often
@given(drawn_rows, st.fixed_dictionaries(FORMS), st.sampled_from(ENDS), BLOCKS, st.booleans())
@pytest.mark.parametrize("only", [arrow_only, rows_only])
def test_what_was_written_is_read(tmp_path_factory, only, rows, form, ends, block, packed):
    path = tmp_path_factory.mktemp("csv") / ("people.csv" + ".gz" * packed)
    text = io.StringIO(newline="")
    separator, (quoting, end) = form["separator"], ends
    lines = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
    lines.writerows([("id", "bit", "age", "word"), *((7, b, a, w) for w, a, b in rows)])
    content = (text.getvalue() + end).encode(form["encoding"])  # with a blank line
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        only(patch)
        patch.setattr(csv_files, "BLOCK", block)
        data = read_csv(path, SCHEMA, ignore=["id"], decimal=".", **form)
    right = [[WORDS.index(w), AGE_CODES[AGES.index(a)], int(b)] for w, a, b in rows]
    assert (data.codes.tolist(), data.name) == (right, "people")


PIECES = [*',",",\n\n\r"', "\r\n", '""', *WORDS, *AGES, " 0", "1", "0,1,1\n", "é,5", "9,\ufeff"]


@often
@given(st.lists(st.sampled_from(PIECES)), st.sampled_from([8, 30, 1 << 20]), st.booleans())
def test_both_ways_agree_on_any_text(tmp_path_factory, pieces, block, whole_schema):
    path = tmp_path_factory.mktemp("csv") / "people.csv"
    path.write_bytes(("word,age,bit\n" + "".join(pieces)).encode())
    how = {"columns": "schema", "decimal": None if whole_schema else "."}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", block)
        assert_both_ways_agree(path, SCHEMA if whole_schema else {"word": WORDS, "bit": BIT}, **how)


digits = st.from_regex(r"[+-]?[0-9]{0,4}[.,']?[0-9]{0,4}(e[0-9])?", fullmatch=True)
MARKS = [{}, {"decimal": "."}, {"decimal": ","}, {"thousands": "."}, {"thousands": ","}]
LARGE = {"edges": [-90, 0, 2, 1500, 9e6], "outside": "refuse", "missing": ["none", "1,5", 2.5]}


@often
@given(st.lists(digits, min_size=1, max_size=5), st.sampled_from(MARKS))
def test_both_ways_agree_on_numbers(tmp_path_factory, numbers, marks):
    path = tmp_path_factory.mktemp("csv") / "people.csv"
    path.write_text("x;b\n" + "".join(f"{number};0\n" for number in numbers))
    assert_both_ways_agree(path, {"x": LARGE, "b": BIT}, separator=";", **marks)


ODD = ['a"b,1\n0,1\n', '0,1\n"0"x,1\n', '"0""x,1\n0,1\n', '0,1\n0,"1\n', '""0,1\n', '0,1\n"']


@pytest.mark.parametrize("text", [*ODD, "0," + 70_000 * "11" + "\n"])
def test_quotation_marks_where_none_belong_are_left_to_the_slower_way(tmp_path, text, monkeypatch):
    arrow_only(monkeypatch)
    schema = {"a": [*BIT, 'a"b', "0x"], "b": BIT}
    refused("not read by Arrow", csv_of, tmp_path, "a,b\n" + text, schema, kind=AssertionError)


def test_a_column_of_many_numbers_is_read_as_they_are(tmp_path, monkeypatch):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(30, 20, 100_000).round(6), "b": "0"})
    frame.to_csv(tmp_path / "people.csv", index=False)
    schema = {"x": {"range": [0, 60], "outside": "clip"}, "b": BIT}
    arrow_only(monkeypatch)
    codes = read_csv(tmp_path / "people.csv", schema).codes
    assert np.array_equal(codes, Dataset.from_pandas(frame, schema).codes)


def test_points_are_asked_about_in_the_last_of_many_blocks_too(tmp_path, monkeypatch):
    schema = {"a": BIT, "x": {"edges": [0, 3, 3000, 9000]}}
    text = "a,x\n" + 400 * "0,2.000\n" + "1,3.{}00\n"
    monkeypatch.setattr(csv_files, "BLOCK", 100)
    refused("'2.000' may be 2 or 2000; pass decimal=", csv_of, tmp_path, text.format(5), schema)
    assert csv_of(tmp_path, text.format(55), schema)[-1] == [1, 1]


def test_a_packed_file_that_is_damaged_is_refused(tmp_path):
    packed = gzip.compress(b"a,b\n" + 5000 * b"0,1\n" + b"1,1\n", mtime=0)
    path = tmp_path / "people.csv.gz"
    for content in (packed[:-12], packed[:20] + b"??" + packed[22:], packed[:-8] + bytes(8)):
        path.write_bytes(content)
        refused("is damaged and cannot be unpacked; pack it anew", read_csv, path, LEVELS)


def doors(folder):
    """Each way to read one table."""
    frame = pd.DataFrame({"b": BIT, "note": ["x", None], "a": ["1", "0"], "id": [7, 8]})
    frame.to_csv(folder / "people.csv", index=False)
    frame.to_parquet(folder / "people.parquet")
    yield lambda **how: read_csv(folder / "people.csv", LEVELS, **how)
    yield lambda **how: read_parquet(folder / "people.parquet", LEVELS, **how)
    yield lambda **how: Dataset.from_pandas(frame, LEVELS, **how)


def test_the_schema_alone_may_say_which_columns_are_read(tmp_path):
    for door in doors(tmp_path):
        assert door(columns="schema").counts([0, 1]).tolist() == [[0, 1], [1, 0]]
        assert door(columns="schema", ignore=["id"]).n == 2
        refused("'note' of .* is not in the schema; .* columns='schema', or pass ignore", door)
        refused("'ids' is no column", door, columns="schema", ignore=["ids"])
        refused("columns must be 'schema', or be left out, not", door, columns=["a", "b"])


# --- what is not handled

WEIGHTS = [{"levels": BIT, "weights": True}, {"weights": True}, "sample_weight"]


@pytest.mark.parametrize("entry", [*WEIGHTS, {"clusters": "village"}])
def test_a_schema_that_names_weights_or_clusters_is_refused_with_the_reason(entry):
    refused("'c': .*handled: .*(weights out|one row a cluster)", Schema, {**LEVELS, "c": entry})


HERE, SOON = {"epsilon": 1.0}, {"epsilon": 1.0, "rng": np.random.default_rng(0)}
RUNS = [partial(system, Dataset([[0, 1]], LEVELS), **HERE) for system in (table_pc, private_graph)]
READERS = [partial(read, "a", LEVELS) for read in (read_csv, read_parquet, Dataset.from_pandas)]
ASKED = [partial(plan, LEVELS, 100, **HERE), partial(rehearse, LEVELS, 100, **SOON)]


@pytest.mark.parametrize("call", [*RUNS, *READERS, *ASKED])
def test_weights_and_clusters_are_refused_with_the_reason(call):
    cure = "'weights' is not handled: every row counts once.* leave the weights out"
    refused(cure, call, weights=[1])
    refused("'clusters' is not handled: .*one row a cluster", call, clusters="village")


@pytest.mark.parametrize("call", [*RUNS, *READERS])
def test_other_settings_are_refused_as_ever(call):
    refused("unexpected keyword argument 'rate'", call, rate=1, kind=TypeError)


def test_a_column_may_be_called_weight():
    names = {"weight": ["low", "high"], "cluster": {"range": [0, 9]}}
    assert [*Schema(names).levels] == ["weight", "cluster"]
