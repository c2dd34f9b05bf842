"""What a data set and a file of text accept, what they refuse, and which cure is named."""

import gzip
import io
import json
import zipfile

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from people import BIT, LEVELS, cases, csv_of, refused

from dpcgd import Dataset, from_bif, load, read_csv
from dpcgd.datasets.arguments import GZIP

NO_INTEGERS = [0.0, 1.0], [True, False], ["0", "1"], [0, None]
CODES = {
    "give at least one record": [np.zeros((0, 2), int), np.zeros((0, 2))],
    "differ in length; give all as many": [[[0, 1], [0]]],
    r"integers.*convert them with np.array\(codes, int\)": [[row] for row in NO_INTEGERS],
    "one column for each of the 2": [[0, 1], [[0, 1, 0]], [[0], [1]], [[[0, 1]]], 0],
}
OUTSIDE = [-1, 2, 256, 2**40, -(2**40)]
NO_VARIABLES = {
    "at least two variables, this has 1": [{"a": BIT}],
    "at least two variables, this has 0": [{}],
    "must be a mapping from each variable's name": [[("a", BIT), ("b", BIT)]],
    "variable name 1 is not text; write it as '1'": [{"a": BIT, 1: BIT}],
    "variable name None is not text": [{"a": BIT, None: BIT}],
    "variable name '' is empty": [{"a": BIT, "": BIT}],
    "has blanks at its ends": [{"a": BIT, "b\n": BIT}],
    "has a character that no report can hold": [{"a": BIT, f"b{c}b": BIT} for c in "\0\ufffe"],
}
NO_LEVELS = {
    "'b' lists level '1' twice; list each level once": [["0", "1", "1"]],
    "'b' has no level; list every value it may take": [[]],
    "'b': give its levels as a list": ["01", b"01", 2, None, {"0", "1"}, {"0": "no", "1": "yes"}],
    "'b': the missing value None is among its levels; take it out": [["0", None]],
    "missing value <NA>": [["0", pd.NA]],
    "'b': level ' 1' has blanks at its ends; take them out": [["0", " 1"]],
    "has a character that no report can hold; take it out": [["0", "\ud800"]],
    r"'b': \['1', '2'\] is among its levels; list them one by one": [["0", ["1", "2"]]],
}
TRUTHS = [
    (nx.DiGraph([("a", "b"), ("b", "c")]), "same variables; only one of them has c"),
    (nx.empty_graph(["a"], create_using=nx.DiGraph), "same variables; only one of them has b"),
    ([("a", "b")], r"make one with nx.DiGraph\(arcs\)"),
    (nx.DiGraph([("a", "b"), ("b", "a")]), "has a cycle; take one of its arcs out"),
]
PUBLIC = [
    ({"ordered": ["c"]}, "ordered names 'c', which is no variable; correct the name"),
    ({"ordered": "a"}, "ordered must be a list of variables, not 'a'; give a list"),
    ({"ordered": True}, "ordered must be a list of variables, not True; give a list"),
    ({"missing": {"c": "0"}}, "missing names 'c', which is no variable; correct the name"),
    ({"missing": {"a": "2"}}, "'a' has no level '2' for missing values; add it to the levels"),
    ({"missing": ["a"]}, r"missing must map variables to levels, not \['a'\]; give a mapping"),
]
NO_DATA_SETS = [
    *(((codes, LEVELS), {}, cure) for codes, cure in cases(CODES)),
    *((([[0, 1], [1, k]], LEVELS), {}, f"'b' has code {k}, not 0 to 1; add") for k in OUTSIDE),
    *((([[0] * len(levels)], levels), {}, cure) for levels, cure in cases(NO_VARIABLES)),
    *((([[0, 0]], {"a": BIT, "b": levels}), {}, cure) for levels, cure in cases(NO_LEVELS)),
    *((([[0, 1]], LEVELS), {"truth": truth}, cure) for truth, cure in TRUTHS),
    *((([[0, 1]], LEVELS), public, cure) for public, cure in PUBLIC),
]


@pytest.mark.parametrize(("given", "settings", "cure"), NO_DATA_SETS)
def test_what_makes_no_data_set_is_refused(given, settings, cure):
    refused(cure, Dataset, *given, **settings)


RAGGED = [
    ("a,b\n0,1\n1\n", "line 3, record 2: the row has 1 values for 2 columns; give every row"),
    ("a,b\n0,1\n\n0,1,1\n", "line 4, record 2: the row has 3 values for 2 columns"),
    ('a,b\n"0\n0",1\n1,0\n0,1,1\n', "line 5, record 3: the row has 3 values for 2 columns"),
    ("a,b\r0,1\r0\r", "line 3, record 2: the row has 1 values for 2 columns"),
]


@pytest.mark.parametrize(("text", "where"), RAGGED)
def test_a_ragged_row_is_named_by_its_line_and_record(tmp_path, text, where):
    for empty in ([], [""]):  # a short row is refused where empty text is a level too
        schema = {"a": [*BIT, "0\n0"], "b": [*BIT, *empty]}
        refused(f"clinic.csv, {where}", csv_of, tmp_path, text, schema)


ODD = ["01", "1.5", "1.", "1e0", "01.0", "NA", "nan", "2"]
TABLES = [
    ("a,b\n" + 5000 * "0,1\n" + "1,7\n" + 900 * "1,1\n", "record 5001, column 'b': '7' is not"),
    ("a,b\n0,1\n,1\n", "record 2, column 'a': the value is missing; drop or impute such"),
    ('a,b\n0,1\n0,"1\n1,0\n', "close every quotation mark"),
    ("a,b,c\n0,1,2\n", r"'c' of .*clinic.csv is not in the schema; .* or pass ignore=\['c'\]"),
    ("a\n0\n", "has no column 'b', which is in the schema; add the column or take it out"),
    *[(text, "has a header but no record; give") for text in ("a,b", "a,b\n", "a,b\r\n\r\n")],
    *[(text, "is empty; give a header and at least one rec") for text in ("", "\n", "\ufeff")],
    ("a;b\n0;1\n", "has semicolons between its columns; pass separator=';'$"),
    ('"a";"b"\n0;1\n', "has semicolons between its columns; pass separator=';'$"),
    ("sep=;\na;b\n0;1\n", "take that line out$"),
    ("a\tb\n0\t1\n", r"pass separator='\\t'$"),
    ("a, b\n0, 1\n", "' b' of .* has blanks at the ends of its name; take them out"),
    ("0,1\n1,1\n", "has values in its first line; put a header"),
    ('a,b\n0,"' + 200_000 * "1", "close every quotation mark$"),
    ("a,c\n" + 100_000 * "0,1\n" + "\udce9,1,1\n", "'c' of .* is not in the schema"),
    *((f"a,b\n0,1\n0,{odd}\n", f"record 2, column 'b': {odd!r} is not .* add it") for odd in ODD),
    ("a,b\n0,1\n0, 1\n", "record 2, column 'b': ' 1' has blanks at its ends; take them out$"),
]


@pytest.mark.parametrize(("text", "cure"), TABLES)
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, cure):
    refused(cure, csv_of, tmp_path, text)


ODD_WORDS = [
    ("None", "NA", "", "nan", "null", "NULL", "N/A"),
    ("1", "1.0", "01", "1e0", "-1", "0x1", "inf"),
    ("True", "true", "FALSE", "False"),
]


@pytest.mark.parametrize("words", ODD_WORDS)
def test_words_that_programs_often_read_as_something_else_may_be_levels(tmp_path, words):
    text = "a,b\n" + "".join(f"{word},1\n" for word in words)
    assert csv_of(tmp_path, text, {"a": words, "b": BIT}) == [[i, 1] for i in range(len(words))]


WORDS = ("0, or less", 'the "1"', "two\nlines")
IN_MARKS = 'a,"b"\n"0, or less",1\n"the ""1""",0\n"two\nlines",1\n'
WRITTEN = [
    ('a,b\n"",1\n,0\n', {"a": ("x", ""), "b": BIT}, [], [[1, 1], [1, 0]]),
    ("a,b\n2,0\n1,1\n", {"a": (1, 2), "b": range(2)}, [], [[1, 0], [0, 1]]),
    ('\ufeff"a",b\n1,0\n', LEVELS, [], [[1, 0]]),
    ("größe,b\nüber,1\n", {"größe": ("über",), "b": BIT}, [], [[0, 1]]),
    ("a,b\r\n0,1\r\n1,0\r\n", LEVELS, [], [[0, 1], [1, 0]]),
    ("id,a,note,b\n7,0,,1\n7,1,NA,0\n", LEVELS, ["id", "note"], [[0, 1], [1, 0]]),
    (IN_MARKS, {"a": WORDS, "b": BIT}, [], [[0, 1], [1, 0], [2, 1]]),
]


@pytest.mark.parametrize(("text", "schema", "ignore", "codes"), WRITTEN)
def test_a_table_is_read_as_it_is_written(tmp_path, text, schema, ignore, codes):
    assert csv_of(tmp_path, text, schema, ignore=ignore) == codes


def test_codes_and_levels_are_read_only_copies():
    codes, levels = np.array([[0, 1], [1, 1]], np.uint8, order="F"), {"a": ["0", "1"], "b": BIT}
    data = Dataset(codes, levels)
    assert not np.shares_memory(codes, data.codes)
    with pytest.raises(ValueError, match="read-only"):
        data.codes[0, 0] = 1
    levels["a"].append("2")
    assert dict(data.levels) == {"a": ("0", "1"), "b": ("0", "1")}
    with pytest.raises(TypeError):
        data.levels["a"] = ("0",)


TYPES = [(1, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "u4")]


@pytest.mark.parametrize(("size", "kind"), TYPES)
def test_codes_take_the_smallest_type_that_holds_the_public_levels(size, kind):
    data = Dataset([[0, 0], [size - 1, 0]], {"a": range(size), "b": BIT})
    assert (data.codes.dtype, data.codes[1, 0]) == (np.dtype(kind), size - 1)


# --- numbers of records, generators and files that are not what they should be


@pytest.mark.parametrize("n", [1.5, 10.0, "10", True, np.True_, None, np.nan, [10], 0, np.int64(0)])
def test_a_number_of_records_is_a_whole_number(n):
    refused("^n must be .*at least 1, not ", load, "asia", n, rng=default_rng(0))
    assert load("asia", np.uint8(7), rng=default_rng(0)).n == 7


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0), np.random, default_rng])
def test_a_source_of_randomness_is_a_generator(rng):
    refused(r"^rng must be a numpy Generator, .*default_rng\(seed\)$", load, "asia", 10, rng=rng)


READS = [from_bif, lambda path: read_csv(path, LEVELS), lambda path: read_csv(__file__, path)]
"""The last reads the schema."""


@pytest.mark.parametrize("read", READS)
def test_a_missing_file_and_a_folder_are_refused(tmp_path, read):
    for given in (str, lambda path: path):
        refused("there is no file .*lost; correct the path$", read, given(tmp_path / "lost"))
        refused(f"{tmp_path} is a folder; give the path of a file", read, given(tmp_path))


def zipped(inside):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(inside), "a,b\n0,1\n")
    return file.getvalue()


NO_TEXT = [
    (gzip.compress(b"a,b\n0,1\n", mtime=0), "unpack it first$"),
    (zipped("xl/workbook.xml"), "unpack it or save its sheet as CSV$"),
    ("a,b\n0,1\n".encode("utf-16"), "save it as UTF-8, or pass encoding='utf-16' for a table$"),
    (b"\xfe\xff" + "a,b\n".encode("utf-16-be"), "save it as UTF-8, or .* for a table$"),
    (bytes.fromhex("d0cf11e0a1b11ae1"), "save its sheet as CSV$"),
    (b"PAR1\0\0", "let its name end in .parquet, or read it with read_parquet$"),
]


@pytest.mark.parametrize(("content", "cure"), NO_TEXT)
@pytest.mark.parametrize("read", READS)
def test_a_file_that_is_no_plain_text_is_recognised_by_its_content(tmp_path, read, content, cure):
    if read is READS[1] and content.startswith(GZIP):
        pytest.skip("a table may be compressed")
    for name in ("file.csv", "file"):
        (tmp_path / name).write_bytes(content)
        refused(cure, read, tmp_path / name)


CURES = ["give it as text$", "use Dataset.from_pandas$", "^schema must be a mapping .*map each"]


@pytest.mark.parametrize(("read", "cure"), list(zip(READS, CURES, strict=True)))
def test_what_is_no_path_is_refused(read, cure):
    with open(__file__) as file:
        for path in (pd.DataFrame(LEVELS), io.StringIO("a,b\n0,1\n"), None, ["a"], 7, file):
            refused(cure, read, path)


NO_SCHEMAS = [
    ('{"a": ["0"],\n "b": ["0"}', "schema.json, line 2, column 11: .*; correct the JSON"),
    ("", "line 1, column 1: .*; correct the JSON there$"),
    ('["a", "b"]', "map each variable's name to the list of its levels, as"),
    ('{"a": ["0"], "b": [NaN]}', "missing value nan is among its levels; take it out"),
    ('{"a": ["0"], "b": ["0", "1"], "a": ["0", "1"]}', "names 'a' twice; name it once"),
    ('{"a": ["0"], "b": {"edges": [1, 2], "edges": [1, 2]}}', "names 'edges' twice"),
    ('{"a": ["0"], "b": {"edges": [1, 2, 1e999]}}', "an edge must be a finite number"),
    ('{"a": ["\xe9"]}', "schema.json is not UTF-8 text; save it as UTF-8$"),
]


@pytest.mark.parametrize(("text", "cure"), NO_SCHEMAS)
def test_a_schema_file_is_a_mapping_to_lists(tmp_path, text, cure):
    (tmp_path / "schema.json").write_text(text, encoding="latin-1")
    refused(cure, READS[2], tmp_path / "schema.json")


def test_a_schema_file_may_have_the_mark_of_utf_8(tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(LEVELS), encoding="utf-8-sig")
    assert csv_of(tmp_path, "a,b\n0,1\n", tmp_path / "schema.json") == [[0, 1]]
