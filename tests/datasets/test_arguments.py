"""Numbers of records, generators and files that are not what they should be."""

import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng

from dpcgd.datasets.bif import from_bif
from dpcgd.datasets.csv_files import read_csv
from dpcgd.datasets.published_networks import load

BIT = ["0", "1"]
LEVELS = {"a": BIT, "b": BIT}


@pytest.mark.parametrize("n", [1.5, 10.0, "10", True, np.True_, None, np.nan, [10]])
def test_a_number_of_records_is_a_whole_number(n):
    with pytest.raises(ValueError, match=r"^n must be a whole number, at least 1, not "):
        load("asia", n, rng=default_rng(0))


@pytest.mark.parametrize("n", [0, -1, np.int64(0)])
def test_there_is_at_least_one_record(n):
    with pytest.raises(ValueError, match=f"^n must be at least 1, not {n}$"):
        load("asia", n, rng=default_rng(0))


def test_a_number_of_numpy_is_a_number():
    assert load("asia", np.uint8(7), rng=default_rng(0)).n == 7


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0), np.random, default_rng])
def test_a_source_of_randomness_is_a_generator(rng):
    with pytest.raises(ValueError, match=r"^rng must be a numpy Generator, .*default_rng\(seed\)$"):
        load("asia", 10, rng=rng)


READS = [from_bif, lambda path: read_csv(path, LEVELS), lambda path: read_csv(__file__, path)]
"""The last reads the schema."""


def refused(read, path, cure):
    with pytest.raises(ValueError, match=cure) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("read", READS)
def test_a_missing_file_and_a_folder_are_refused(tmp_path, read):
    for given in (str, lambda path: path):
        refused(read, given(tmp_path / "lost"), "there is no file .*lost; correct the path$")
        refused(read, given(tmp_path), f"{tmp_path} is a folder; give the path of a file in it$")


def zipped(inside):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(inside, "a,b\n0,1\n")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        (gzip.compress(b"a,b\n0,1\n"), "unpack it first$"),
        (zipped("a.csv"), "unpack it or save its sheet as CSV$"),
        (zipped("xl/workbook.xml"), "unpack it or save its sheet as CSV$"),
        ("a,b\n0,1\n".encode("utf-16"), "save it as UTF-8$"),
        (b"\xfe\xff" + "a,b\n".encode("utf-16-be"), "save it as UTF-8$"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "save its sheet as CSV$"),
        (b"PAR1\0\0", "read it with read_parquet$"),
    ],
)
@pytest.mark.parametrize("read", READS)
def test_a_file_that_is_no_plain_text_is_recognised_by_its_content(tmp_path, read, content, cure):
    for name in ("file.csv", "file"):
        (tmp_path / name).write_bytes(content)
        refused(read, tmp_path / name, cure)


@pytest.mark.parametrize("name", ["clinic.csv.gz", "clinic.zip", "clinic.xlsx", "clinic"])
def test_plain_text_may_have_any_name(tmp_path, name):
    (tmp_path / name).write_text("a,b\n0,1\n")
    assert read_csv(tmp_path / name, LEVELS).codes.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("read", "cure"),
    list(zip(READS, ["give it as text$", "use Dataset.from_pandas$", "map each"], strict=True)),
)
def test_what_is_no_path_is_refused(read, cure):
    with open(__file__) as file:
        for path in (pd.DataFrame(LEVELS), io.StringIO("a,b\n0,1\n"), None, ["a"], 7, file):
            refused(read, path, cure)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("a;b\n0;1\n", "has semicolons between its columns; pass separator=';'$"),
        ('"a";"b"\n0;1\n', "has semicolons between its columns; pass separator=';'$"),
        ("sep=;\na;b\n0;1\n", "take that line out$"),
        ("a\tb\n0\t1\n", r"pass separator='\\t'$"),
        ("a, b\n0, 1\n", "' b' of .* has blanks at its ends; take them out, and out"),
        ("a ,b\n0,1\n", "'a ' of .* has blanks at its ends; take them out, and out"),
        ("0,1\n1,1\n", "has values in its first line; put a header"),
        ("0,0\n1,1\n", "has values in its first line; put a header"),
        ('a,b\n0,"' + 200_000 * "1", "close every quotation mark$"),
    ],
)
def test_another_kind_of_table_is_recognised(tmp_path, text, cure):
    (tmp_path / "clinic.csv").write_text(text)
    refused(READS[1], tmp_path / "clinic.csv", cure)


def test_a_header_is_checked_before_what_is_below_it_is_read(tmp_path):
    (tmp_path / "clinic.csv").write_bytes(b"a,c\n" + 100_000 * b"0,1\n" + b"\xe9,1,1\n")
    refused(READS[1], tmp_path / "clinic.csv", "'c' of .* is not in the schema")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ('{"a": ["0"],\n "b": ["0"}', "schema.json, line 2, column 11: .*; correct the JSON"),
        ("", "line 1, column 1: .*; correct the JSON there$"),
        ('["a", "b"]', "map each variable's name to the list of its levels, as"),
        ("null", "map each variable's name to the list of its levels"),
        ('{"a": ["0"], "b": [["0", "1"]]}', "'b' has .* list them one by one$"),
        ('{"a": ["0"], "b": [{"0": "no"}]}', "'b' has .* list them one by one$"),
        ('{"a": ["0"], "b": {"0": "no"}}', "'b': give its levels as a list"),
        ('{"a": ["0"], "b": [null]}', "missing value None among its levels; take it out"),
        ('{"a": ["0"], "b": [NaN]}', "missing value nan among its levels; take it out"),
        ('{"a": ["0"], "b": ["0", "1"], "a": ["0", "1"]}', "names 'a' twice; name it once"),
        ('{"a": ["0"], "b": {"edges": [1, 2], "edges": [1, 2]}}', "names 'edges' twice"),
        ('{"a": ["0"], "b": {"edges": [1, 2, 1e999]}}', "an edge must be a finite number"),
        ('{"a": ["0"], "b": {"edges": [1, 2, NaN]}}', "an edge must be a finite number"),
        ('{"a": ["\xe9"]}', "schema.json is not UTF-8 text; save it as UTF-8$"),
    ],
)
def test_a_schema_file_is_a_mapping_to_lists(tmp_path, text, cure):
    (tmp_path / "schema.json").write_text(text, encoding="latin-1")
    refused(READS[2], tmp_path / "schema.json", cure)


def test_a_schema_file_may_have_the_mark_of_utf_8(tmp_path):
    table, schema = tmp_path / "clinic.csv", tmp_path / "schema.json"
    table.write_text("a,b\n0,1\n")
    schema.write_text(json.dumps(LEVELS), encoding="utf-8-sig")
    assert read_csv(table, schema).codes.tolist() == [[0, 1]]
