"""What a data set accepts, what it refuses, and which cure the refusal names."""

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dpcgd.datasets.csv_files import read_csv
from dpcgd.datasets.dataset import Dataset

BIT = ("0", "1")
LEVELS = {"a": BIT, "b": BIT}
ONLY_A = nx.empty_graph(["a"], create_using=nx.DiGraph)


def write(folder, text, name="clinic.csv"):
    file = folder / name
    file.write_bytes(text.encode())
    return file


def refused(folder, text, cure, schema=LEVELS, **options):
    with pytest.raises(ValueError, match=cure) as error:
        read_csv(write(folder, text), schema, **options)
    assert "\n" not in str(error.value)


def accepted(folder, text, schema=LEVELS, **options):
    return read_csv(write(folder, text), schema, **options).codes.tolist()


@pytest.mark.parametrize(
    ("codes", "cure"),
    [
        (np.zeros((0, 2), int), "give at least one record"),
        (np.zeros((0, 2)), "give at least one record"),
        ([[0, 1], [0]], "rows of codes differ in length; give all as many"),
        *[
            (
                codes,
                r"must be integers .* convert them with np.array\(codes, int\), and values with",
            )
            for codes in (
                [[0.0, 1.0]],
                [[True, False]],
                [["0", "1"]],
                np.array([[0, 1]], object),
                [[0, None]],
            )
        ],
        *[
            (codes, "one row a record and one column for each of the 2")
            for codes in ([0, 1], [[0, 1, 0]], [[0], [1]], [[[0, 1]]], 0)
        ],
        *[
            (
                [[0, 1], [1, code]],
                f"'b' has code {code},.*codes 0 to 1; add the level to the schema",
            )
            for code in (-1, 2, 256, 2**40, -(2**40))
        ],
    ],
)
def test_codes_that_are_none_are_refused(codes, cure):
    with pytest.raises(ValueError, match=cure):
        Dataset(codes, LEVELS)


@pytest.mark.parametrize(
    ("levels", "cure"),
    [
        ({"a": BIT}, "at least two variables, this has 1"),
        ({}, "at least two variables, this has 0"),
        ([("a", BIT), ("b", BIT)], "must be a mapping from each variable's name"),
        ({"a": BIT, "b": ("0", "1", "1")}, "'b' lists level '1' twice; list each level once"),
        ({"a": BIT, "b": (1, "1")}, "list each level once"),
        ({"a": BIT, "b": ()}, "'b' has no level; list every value it may take"),
        *[
            ({"a": BIT, "b": levels}, "'b': give its levels as a list")
            for levels in ("01", b"01", 2, None, {"0": "no", "1": "yes"}, {"0", "1"})
        ],
        *[
            ({"a": BIT, name: BIT}, cure)
            for name, cure in [
                (1, "variable name 1 is not text; write it as '1'"),
                (None, "variable name None is not text"),
                ("", "a variable has an empty name; give it one"),
                (" b", "variable name ' b' has blanks at its ends; take them out"),
                ("b\n", "has blanks at its ends; take them out"),
            ]
        ],
        *[
            ({"a": BIT, "b": ["0", level]}, cure)
            for level, cure in [
                (None, "'b' has the missing value None among its levels; take it out, or list ''"),
                (float("nan"), "missing value nan among its levels; take it out"),
                (pd.NA, "missing value <NA> among its levels; take it out"),
                (" 1", "'b': level ' 1' has blanks at its ends; take them out"),
                ("1\n", "has blanks at its ends; take them out"),
                (["1", "2"], r"'b' has \['1', '2'\] among its levels; list them one by one"),
                (b"1", "among its levels; list them one by one"),
            ]
        ],
    ],
)
def test_levels_that_are_none_are_refused(levels, cure):
    with pytest.raises(ValueError, match=cure):
        Dataset([[0] * len(levels)], levels)


def test_levels_given_as_booleans_are_read_as_their_text():
    data = Dataset([[0, 1]], {"a": [False, True], "b": [np.False_, np.True_]})
    assert set(data.levels.values()) == {("False", "True")}


@pytest.mark.parametrize(
    ("truth", "cure"),
    [
        (nx.DiGraph([("a", "b"), ("b", "c")]), "same variables; only one of them has c"),
        (ONLY_A, "same variables; only one of them has b"),
        (nx.Graph([("a", "b")]), r"make one with networkx.DiGraph\(arcs\)"),
        ([("a", "b")], r"make one with networkx.DiGraph\(arcs\)"),
        (np.eye(2), r"make one with networkx.DiGraph\(arcs\)"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), "has a cycle; take one of its arcs out"),
        (nx.DiGraph([("a", "b"), ("a", "a")]), "has a cycle; take one of its arcs out"),
    ],
)
def test_a_truth_that_is_none_is_refused(truth, cure):
    with pytest.raises(ValueError, match=cure):
        Dataset([[0, 1]], LEVELS, truth=truth)


@pytest.mark.parametrize("value", [" 1", "01", "1.5", "1.", "1e0", "01.0", "NA", "nan", "2"])
def test_values_are_compared_as_text(tmp_path, value):
    cure = (
        f"clinic.csv, record 2, column 'b': {value!r} is not among the levels 0, 1; .* to the sch"
    )
    refused(tmp_path, f"a,b\n0,1\n0,{value}\n", cure)


def test_a_record_far_down_is_named_by_its_number(tmp_path):
    cure = "record 5001, column 'b': '7' is not"
    refused(tmp_path, "a,b\n" + 5000 * "0,1\n" + "1,7\n" + 900 * "1,1\n", cure)


def test_a_whole_number_that_gaps_made_decimal_is_its_level(tmp_path):
    text = "a,b\n14.0,1\n,0\n2.00,0\n"
    schema = {"a": {"levels": ["2", "14"], "missing": "unknown"}, "b": BIT}
    assert accepted(tmp_path, text, schema) == [[1, 1], [2, 0], [0, 0]]
    schema["a"] = ["2", "2.00", "14", "14.0", ""]
    assert accepted(tmp_path, text, schema) == [[3, 1], [4, 0], [1, 0]]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a,b\n0,1\n1\n", "line 3, record 2: the row has 1 values for 2 columns; give every row"),
        ("a,b\n0,1\n\n0,1,1\n", "line 4, record 2: the row has 3 values for 2 columns"),
        ('a,b\n"0\n0",1\n1,0\n0,1,1\n', "line 5, record 3: the row has 3 values for 2 columns"),
        ("a,b\r0,1\r0\r", "line 3, record 2: the row has 1 values for 2 columns"),
        ("a,b\n0,1,1\n0,1\n", "line 2, record 1: the row has 3 values for 2 columns"),
        ("a,b\n0,1,\n", "line 2, record 1: the row has 3 values for 2 columns"),
    ],
)
def test_a_ragged_row_is_named_by_its_line_and_record(tmp_path, text, where):
    for empty in ([], [""]):  # a short row is refused where empty text is a level too
        schema = {"a": [*BIT, "0\n0"], "b": [*BIT, *empty]}
        refused(tmp_path, text, f"clinic.csv, {where}", schema)


def test_long_rows_never_shift_the_columns(tmp_path):
    text = "id,a,b\n7,1,0,1\n8,1,0,1\n"
    refused(tmp_path, text, "as many values as the header", ignore=["id"])


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("a,b\n0,1\n,1\n", "record 2, column 'a': the value is missing; drop or impute such"),
        ('a,b\n0,1\n0,"1\n1,0\n', "close every quotation mark"),
        ('a,b\n0,1\n0,"1', "close every quotation mark"),
        ("a,b,a\n0,1,0\n", "names column 'a' twice; rename one of the two"),
        ("a,b,c\n0,1,2\n", r"'c' of .*clinic.csv is not in the schema; .* or pass ignore=\['c'\]"),
        ("a\n0\n", "has no column 'b', which is in the schema; add the column or take it out"),
        *[(text, "has a header but no record; give") for text in ("a,b", "a,b\n", "a,b\r\n\r\n")],
        *[(text, "is empty; give a header and at least one rec") for text in ("", "\n", "\ufeff")],
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, cure):
    refused(tmp_path, text, cure)


def test_the_levels_never_depend_on_the_data(tmp_path):
    schema = {"a": ("low", "middle", "high"), "b": ("no", "yes")}
    one = read_csv(write(tmp_path, "a,b\nlow,no\n", "one.csv"), schema)
    two = read_csv(write(tmp_path, "a,b\nhigh,yes\nmiddle,no\n", "two.csv"), schema)
    assert dict(one.levels) == dict(two.levels) == schema
    assert one.codes.dtype == two.codes.dtype
    assert (one.codes.tolist(), two.codes.tolist()) == ([[0, 0]], [[2, 1], [1, 0]])


@pytest.mark.parametrize(
    "words",
    [
        ("None", "NA", "", "nan", "null", "NULL", "N/A"),
        ("1", "1.0", "01", "1e0", "-1", "0x1", "inf"),
        ("True", "true", "FALSE", "False"),
    ],
)
def test_words_that_programs_often_read_as_something_else_may_be_levels(tmp_path, words):
    text = "a,b\n" + "".join(f"{word},1\n" for word in words)
    assert accepted(tmp_path, text, {"a": words, "b": BIT}) == [[i, 1] for i in range(len(words))]


@pytest.mark.parametrize(
    ("text", "schema", "ignore", "codes"),
    [
        ('a,b\n"",1\n,0\n', {"a": ("x", ""), "b": BIT}, [], [[1, 1], [1, 0]]),
        ("a,b\n2,0\n1,1\n", {"a": (1, 2), "b": range(2)}, [], [[1, 0], [0, 1]]),
        ("\ufeffa,b\n0,1\n", LEVELS, [], [[0, 1]]),
        ('\ufeff"a",b\n1,0\n', LEVELS, [], [[1, 0]]),
        ("größe,b\nüber,1\n", {"größe": ("über",), "b": BIT}, [], [[0, 1]]),
        ("a,b\r\n0,1\r\n1,0\r\n", LEVELS, [], [[0, 1], [1, 0]]),
        ("id,a,note,b\n7,0,,1\n7,1,NA,0\n", LEVELS, ["id", "note"], [[0, 1], [1, 0]]),
        ("id,a,note,b\n7,0,,1\n", LEVELS, {"id", "note"}, [[0, 1]]),
        ("id,a,note,b\n7,0,,1\n", LEVELS, pd.Index(["id", "note"]), [[0, 1]]),
    ],
)
def test_a_table_is_read_as_it_is_written(tmp_path, text, schema, ignore, codes):
    assert accepted(tmp_path, text, schema, ignore=ignore) == codes


def test_quoted_values_may_hold_commas_quotes_and_line_ends(tmp_path):
    words = ("0, or less", 'the "1"', "two\nlines")
    text = 'a,"b"\n"0, or less",1\n"the ""1""",0\n"two\nlines",1\n'
    assert accepted(tmp_path, text, {"a": words, "b": BIT}) == [[0, 1], [1, 0], [2, 1]]


@pytest.mark.parametrize(
    ("ignore", "cure"),
    [
        (["id", "b"], "'b' is both in the schema and in ignore; take it out of one of them"),
        (["id", "ntoe"], "ignore names 'ntoe', .* no column of .*clinic.csv; did you mean 'note'"),
        (["id", "chd"], "ignore names 'chd', .* no column of .*clinic.csv; take it out of ignore"),
        (["id", 7], "ignore names 7, which is no column"),
        ([["id", "note"]], r"ignore names \['id', 'note'\], which is no column"),
        ("id", "ignore must be a list of columns, not 'id'; give a list"),
        (None, "ignore must be a list of columns, not None; give a list"),
    ],
)
def test_what_is_ignored_are_columns_and_no_variables(tmp_path, ignore, cure):
    refused(tmp_path, "id,a,note,b\n7,0,,1\n", cure, ignore=ignore)


def test_variables_come_in_the_order_of_the_schema(tmp_path):
    schema = {"b": ("no", "yes"), "c": BIT, "a": BIT}
    file = write(tmp_path, json.dumps(schema), "schema.json")
    table = write(tmp_path, "a,b,c\n1,no,0\n0,yes,0\n")
    for given in (schema, file, str(file)):
        data = read_csv(table, given)
        assert data.variables == ("b", "c", "a")
        assert data.codes.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_data_set_is_named_after_its_file_unless_told(tmp_path):
    file = write(tmp_path, "a,b\n0,1\n")
    assert read_csv(file, LEVELS).name == "clinic"
    assert read_csv(file, LEVELS, name="ward 3").name == "ward 3"


def test_codes_and_levels_are_read_only_copies():
    codes, levels = np.array([[0, 1], [1, 1]], np.uint8, order="F"), {"a": ["0", "1"], "b": BIT}
    data = Dataset(codes, levels)
    assert not np.shares_memory(codes, data.codes)
    with pytest.raises(ValueError, match="read-only"):
        data.codes[0, 0] = 1
    levels["a"].append("2")
    levels["c"] = ["0"]
    assert dict(data.levels) == LEVELS
    with pytest.raises(TypeError):
        data.levels["a"] = ("0",)


@pytest.mark.parametrize(
    ("size", "kind"), [(1, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "u4")]
)
def test_codes_take_the_smallest_type_that_holds_the_public_levels(size, kind):
    data = Dataset([[0, 0], [size - 1, 0]], {"a": range(size), "b": BIT})
    assert data.codes.dtype == np.dtype(kind)
    assert data.codes[1, 0] == size - 1


def test_a_data_set_says_how_large_it_is():
    truth = nx.DiGraph([("a", "b")])
    data = Dataset([[0, 2], [1, 1], [0, 0]], {"a": BIT, "b": range(3)}, truth=truth, name="toy")
    assert (data.n, data.d, data.variables, data.cardinalities) == (3, 2, ("a", "b"), (2, 3))
    assert repr(data) == "Dataset('toy', n=3, d=2, 1 true edges)"
    assert repr(Dataset([[0, 1]], LEVELS)) == "Dataset('data', n=1, d=2, no truth)"
