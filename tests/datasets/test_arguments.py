"""Numbers of records, generators and files that are not what they should be."""

import gzip
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.data.cause_effect_pairs import load_pair, synthetic_pair
from dpcgd_book.data.linear_sems import LinearSEM, random_sem
from numpy.random import default_rng

from dpcgd.datasets.bif import from_bif
from dpcgd.datasets.csv_files import read_csv
from dpcgd.datasets.published_networks import load

BIT = ["0", "1"]
LEVELS = {"a": BIT, "b": BIT}
CHAIN = LinearSEM(np.triu(np.ones((3, 3)), 1))

DRAWS = [
    lambda n, rng: load("asia", n, rng=rng),
    lambda n, rng: CHAIN.sample(n, rng=rng),
    lambda n, rng: synthetic_pair(n, rng=rng),
]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("n", [1.5, 10.0, "10", True, np.True_, None, np.nan, [10]])
def test_a_number_of_records_is_a_whole_number(draw, n):
    with pytest.raises(ValueError, match=r"^n must be a whole number, at least 1, not "):
        draw(n, default_rng(0))


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("n", [0, -1, np.int64(0)])
def test_there_is_at_least_one_record(draw, n):
    with pytest.raises(ValueError, match=f"^n must be at least 1, not {n}$"):
        draw(n, default_rng(0))


@pytest.mark.parametrize("draw", DRAWS)
def test_a_number_of_numpy_is_a_number(draw):
    assert draw(np.uint8(7), default_rng(0)).n == 7


@pytest.mark.parametrize(
    "draw",
    [
        *DRAWS,
        lambda n, rng: random_sem(3, 2, rng=rng),
        lambda n, rng: load_pair(1, rng=rng if rng is not None else "None"),
    ],
)
@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0), np.random, default_rng])
def test_a_source_of_randomness_is_a_generator(draw, rng):
    cure = r"^rng must be a numpy Generator, not \w+; pass rng=np.random.default_rng\(seed\)$"
    with pytest.raises(ValueError, match=cure):
        draw(10, rng)


def test_a_pair_needs_no_generator():
    assert load_pair(1, rng=None).variables == ("x", "y")


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


@pytest.mark.parametrize(
    ("content", "cure"),
    [
        (gzip.compress(b"a,b\n0,1\n"), "is compressed with gzip; unpack it first$"),
        ("a,b\n0,1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8$"),
        (b"\xfe\xff" + "a,b\n".encode("utf-16-be"), "is UTF-16 text; save it as UTF-8$"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "is an Excel workbook; save its sheet as CSV$"),
    ],
)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("name", ["file.csv", "file.csv.gz", "file.xls", "file"])
def test_a_file_that_is_no_plain_text_is_recognised_by_its_content(
    tmp_path, read, name, content, cure
):
    (tmp_path / name).write_bytes(content)
    refused(read, tmp_path / name, cure)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(("name", "inside"), [("a.zip", "a.csv"), ("a.xlsx", "xl/workbook.xml")])
def test_an_archive_and_a_workbook_are_recognised(tmp_path, read, name, inside):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr(inside, "a,b\n0,1\n")
    refused(read, tmp_path / name, "is a zip archive or an Excel workbook; unpack it or save its")


@pytest.mark.parametrize("name", ["clinic.csv.gz", "clinic.zip", "clinic.xlsx", "clinic"])
def test_plain_text_may_have_any_name(tmp_path, name):
    (tmp_path / name).write_text("a,b\n0,1\n")
    assert read_csv(tmp_path / name, LEVELS).codes.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("read", "cure"),
    [
        (READS[0], "^path must be the path of a file; give it as text$"),
        (READS[1], "^path must be the path of a file; for a DataFrame use Dataset.from_pandas$"),
        (READS[2], "^schema must be a mapping or the path of a JSON file; map each"),
    ],
)
@pytest.mark.parametrize("path", [pd.DataFrame(LEVELS), io.StringIO("a,b\n0,1\n"), None, ["a"], 7])
def test_what_is_no_path_is_refused(read, cure, path):
    refused(read, path, cure)


def test_an_open_file_is_refused():
    with open(__file__) as file:
        refused(READS[1], file, "must be the path of a file; for a DataFrame use")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("a;b\n0;1\n", "has semicolons between its columns; pass separator=';'$"),
        ('"a";"b"\n0;1\n', "has semicolons between its columns; pass separator=';'$"),
        ("sep=;\na;b\n0;1\n", "begins with a line for Excel, sep=;; take that line out$"),
        ("a\tb\n0\t1\n", r"has tabs between its columns; pass separator='\\t'$"),
        (
            "a, b\n0, 1\n",
            "name of column ' b' of .* has blanks at its ends; take them out, and out",
        ),
        ("a ,b\n0,1\n", "name of column 'a ' of .* has blanks at its ends; take them out, and out"),
        ("0,1\n1,1\n", "has values in its first line; put a header with .* names above it$"),
        ("0,0\n1,1\n", "has values in its first line; put a header with .* names above it$"),
        ('a,b\n0,"' + 200_000 * "1", "field larger than .*; close every quotation mark$"),
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
        (
            '{"a": ["0"],\n "b": ["0"}',
            r"schema.json, line 2, column 11: .*; correct the JSON there$",
        ),
        ("", "line 1, column 1: Expecting value; correct the JSON there$"),
        ('["a", "b"]', "holds no mapping; map each variable's name to the list of its levels, as"),
        ("null", "holds no mapping; map each variable's name to the list of its levels"),
        ('{"a": ["0"], "b": [["0", "1"]]}', "'b' has .* among its levels; list them one by one$"),
        ('{"a": ["0"], "b": [{"0": "no"}]}', "'b' has .* among its levels; list them one by one$"),
        ('{"a": ["0"], "b": {"0": "no"}}', "'b': give its levels as a list, not {'0': 'no'}$"),
        ('{"a": ["0"], "b": [null]}', "missing value None among its levels; take it out"),
        ('{"a": ["0"], "b": [NaN]}', "missing value nan among its levels; take it out"),
    ],
)
def test_a_schema_file_is_a_mapping_to_lists(tmp_path, text, cure):
    (tmp_path / "schema.json").write_text(text)
    refused(READS[2], tmp_path / "schema.json", cure)


def test_a_schema_file_is_utf_8_text_with_or_without_its_mark(tmp_path):
    table, schema = tmp_path / "clinic.csv", tmp_path / "schema.json"
    table.write_text("a,b\n0,1\n")
    schema.write_text(json.dumps(LEVELS), encoding="utf-8-sig")
    assert read_csv(table, schema).codes.tolist() == [[0, 1]]
    schema.write_bytes(b'{"a": ["\xe9"]}')
    refused(READS[2], schema, "schema.json is not UTF-8 text; save it as UTF-8$")
