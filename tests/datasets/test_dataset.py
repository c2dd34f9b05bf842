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


@pytest.mark.parametrize("empty", [np.zeros((0, 2), int), np.zeros((0, 2))])
def test_an_empty_data_set_is_refused(empty):
    with pytest.raises(ValueError, match="give at least one record"):
        Dataset(empty, LEVELS)


def test_one_variable_is_refused():
    with pytest.raises(ValueError, match="at least two variables, this has 1"):
        Dataset([[0], [1]], {"a": BIT})


def test_no_variable_is_refused():
    with pytest.raises(ValueError, match="at least two variables, this has 0"):
        Dataset(np.zeros((3, 0), int), {})


@pytest.mark.parametrize(
    "codes",
    [[[0.0, 1.0]], [[True, False]], [["0", "1"]], np.array([[0, 1]], object), [[0, None]]],
)
def test_codes_that_are_not_integers_are_refused(codes):
    cure = (
        r"must be integers .* convert them with np.array\(codes, int\), and values with read_csv or"
    )
    with pytest.raises(ValueError, match=cure):
        Dataset(codes, LEVELS)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="rows of codes differ in length; give all as many"):
        Dataset([[0, 1], [0]], LEVELS)


@pytest.mark.parametrize("code", [-1, 2, 256, 2**40, -(2**40)])
def test_a_code_outside_the_levels_is_refused(code):
    cure = f"'b' has code {code},.*codes 0 to 1; add the level to the schema or correct the record"
    with pytest.raises(ValueError, match=cure):
        Dataset([[0, 1], [1, code]], LEVELS)


@pytest.mark.parametrize("codes", [[0, 1], [[0, 1, 0]], [[0], [1]], [[[0, 1]]], 0])
def test_codes_of_the_wrong_shape_are_refused(codes):
    with pytest.raises(ValueError, match="one row a record and one column for each of the 2"):
        Dataset(codes, LEVELS)


def test_a_level_listed_twice_is_refused():
    with pytest.raises(ValueError, match="'b' lists level '1' twice; list each level once"):
        Dataset([[0, 1]], {"a": BIT, "b": ("0", "1", "1")})


def test_levels_with_the_same_text_are_a_level_listed_twice():
    with pytest.raises(ValueError, match="list each level once"):
        Dataset([[0, 1]], {"a": BIT, "b": (1, "1")})


@pytest.mark.parametrize("levels", ["01", b"01", 2, None, {"0": "no", "1": "yes"}])
def test_levels_that_are_not_a_list_are_refused(levels):
    with pytest.raises(ValueError, match="'b': give its levels as a list"):
        Dataset([[0, 1]], {"a": BIT, "b": levels})


def test_a_set_of_levels_is_refused_because_it_has_no_order():
    with pytest.raises(ValueError, match="'b': give its levels as a list"):
        Dataset([[0, 1]], {"a": BIT, "b": {"0", "1"}})


def test_a_variable_without_levels_is_refused():
    with pytest.raises(ValueError, match="'b' has no level; list every value it may take"):
        Dataset([[0, 0]], {"a": BIT, "b": ()})


def test_a_schema_that_is_not_a_mapping_is_refused():
    with pytest.raises(ValueError, match="must be a mapping from each variable's name"):
        Dataset([[0, 1]], [("a", BIT), ("b", BIT)])


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        (1, "variable name 1 is not text; write it as '1'"),
        (None, "variable name None is not text"),
        ("", "a variable has an empty name; give it one"),
        (" b", "variable name ' b' has blanks at its ends; take them out"),
        ("b\n", "has blanks at its ends; take them out"),
    ],
)
def test_a_name_that_is_no_proper_text_is_refused(name, cure):
    with pytest.raises(ValueError, match=cure):
        Dataset([[0, 1]], {"a": BIT, name: BIT})


@pytest.mark.parametrize(
    ("level", "cure"),
    [
        (None, "'b' has the missing value None among its levels; take it out, or list ''"),
        (float("nan"), "missing value nan among its levels; take it out"),
        (pd.NA, "missing value <NA> among its levels; take it out"),
        (" 1", "'b': level ' 1' has blanks at its ends; take them out"),
        ("1\n", "has blanks at its ends; take them out"),
        (["1", "2"], r"'b' has \['1', '2'\] among its levels; list them one by one"),
        (b"1", "among its levels; list them one by one"),
    ],
)
def test_a_level_that_is_no_single_value_is_refused(level, cure):
    with pytest.raises(ValueError, match=cure):
        Dataset([[0, 1]], {"a": BIT, "b": ["0", level]})


def test_levels_given_as_booleans_are_read_as_their_text():
    data = Dataset([[0, 1]], {"a": [False, True], "b": [np.False_, np.True_]})
    assert set(data.levels.values()) == {("False", "True")}


def test_a_truth_over_other_variables_is_refused():
    truth = nx.DiGraph([("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match="must name the same variables; only one of them has c"):
        Dataset([[0, 1]], LEVELS, truth=truth)


def test_a_truth_that_lacks_a_variable_is_refused():
    with pytest.raises(ValueError, match="must name the same variables; only one of them has b"):
        Dataset([[0, 1]], LEVELS, truth=nx.empty_graph(["a"], create_using=nx.DiGraph))


@pytest.mark.parametrize("truth", [nx.Graph([("a", "b")]), [("a", "b")], "a -> b", np.eye(2)])
def test_a_truth_that_is_no_digraph_is_refused(truth):
    cure = r"truth must be a networkx.DiGraph, not .*; make one with networkx.DiGraph\(arcs\)"
    with pytest.raises(ValueError, match=cure):
        Dataset([[0, 1]], LEVELS, truth=truth)


@pytest.mark.parametrize("arcs", [[("a", "b"), ("b", "a")], [("a", "b"), ("a", "a")]])
def test_a_cyclic_truth_is_refused(arcs):
    with pytest.raises(ValueError, match="the true graph has a cycle; take one of its arcs out"):
        Dataset([[0, 1]], LEVELS, truth=nx.DiGraph(arcs))


def test_a_value_outside_the_schema_is_refused(tmp_path):
    cure = r"clinic.csv, record 2, column 'b': '2' is not among the levels 0, 1; .* to the schema"
    refused(tmp_path, "a,b\n0,1\n0,2\n", cure)


@pytest.mark.parametrize("value", [" 1", "01", "1.5", "1.", "1e0", "01.0", "NA", "nan"])
def test_values_are_compared_as_text(tmp_path, value):
    refused(tmp_path, f"a,b\n0,{value}\n", f"{value!r} is not among the levels")


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
    ],
)
def test_a_ragged_row_is_named_by_its_line_and_record(tmp_path, text, where):
    refused(tmp_path, text, f"clinic.csv, {where}", {"a": [*BIT, "0\n0"], "b": BIT})


def test_an_empty_cell_is_refused(tmp_path):
    cure = "record 2, column 'a': the value is missing; drop or impute such records first, or let"
    refused(tmp_path, "a,b\n0,1\n,1\n", cure)


def test_a_short_row_is_refused(tmp_path):
    refused(tmp_path, "a,b\n0,1\n1\n", "drop or impute such records|as many values as the header")


def test_a_short_row_is_refused_even_where_the_empty_answer_is_a_level(tmp_path):
    schema = {"a": BIT, "b": ("", "1")}
    refused(tmp_path, "a,b\n0,1\n1\n", "as many values as the header", schema)


@pytest.mark.parametrize(
    "rows", ["0,1\n0,1,1\n", "0,1,1\n0,1\n", "0,1,1\n", "0,1,\n"], ids=["2nd", "1st", "only", "end"]
)
def test_a_long_row_is_refused(tmp_path, rows):
    refused(tmp_path, f"a,b\n{rows}", "as many values as the header")


def test_long_rows_never_shift_the_columns(tmp_path):
    text = "id,a,b\n7,1,0,1\n8,1,0,1\n"
    refused(tmp_path, text, "as many values as the header", ignore=["id"])


def test_a_quote_that_never_ends_is_refused(tmp_path):
    for text in ('a,b\n0,1\n0,"1\n1,0\n', 'a,b\n0,1\n0,"1'):
        refused(tmp_path, text, "close every quotation mark")


def test_a_column_name_twice_is_refused(tmp_path):
    refused(tmp_path, "a,b,a\n0,1,0\n", "names column 'a' twice; rename one of the two")


def test_a_variable_twice_in_a_json_schema_is_refused(tmp_path):
    schema = write(tmp_path, '{"a": ["0"], "b": ["0", "1"], "a": ["0", "1"]}', "schema.json")
    refused(tmp_path, "a,b\n0,1\n", "twice", schema)


def test_a_schema_that_misses_a_column_is_refused(tmp_path):
    cure = r"'c' of .*clinic.csv is not in the schema; add it to the schema, or pass ignore=\['c'\]"
    refused(tmp_path, "a,b,c\n0,1,2\n", cure)


def test_a_schema_with_a_column_the_file_lacks_is_refused(tmp_path):
    cure = "has no column 'c', which is in the schema; add the column or take it out of the schema"
    refused(tmp_path, "a,b\n0,1\n", cure, {**LEVELS, "c": BIT})


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\r\n\r\n"])
def test_a_header_without_records_is_refused(tmp_path, text):
    refused(tmp_path, text, "has a header but no record; give at least one")


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path, text):
    refused(tmp_path, text, "is empty; give a header and at least one record")


def test_a_string_of_levels_in_a_schema_is_refused(tmp_path):
    schema = write(tmp_path, json.dumps({"a": BIT, "b": "01"}), "schema.json")
    refused(tmp_path, "a,b\n0,1\n", "'b': give its levels as a list, not '01'", schema)


def test_a_one_variable_schema_is_refused(tmp_path):
    refused(tmp_path, "a,b\n0,1\n", "at least two variables", {"a": BIT}, ignore=["b"])


def test_a_constant_column_keeps_its_public_levels(tmp_path):
    data = read_csv(write(tmp_path, "a,b\n0,1\n0,0\n"), {"a": ("0", "1", "2"), "b": BIT})
    assert data.levels["a"] == ("0", "1", "2")
    assert data.cardinalities == (3, 2)


def test_a_variable_with_one_level_is_fine():
    data = Dataset([[0, 0], [1, 0]], {"a": BIT, "b": ("only",)})
    assert data.cardinalities == (2, 1)


def test_the_levels_never_depend_on_the_data(tmp_path):
    schema = {"a": ("low", "middle", "high"), "b": ("no", "yes")}
    one = read_csv(write(tmp_path, "a,b\nlow,no\n", "one.csv"), schema)
    two = read_csv(write(tmp_path, "a,b\nhigh,yes\nmiddle,no\n", "two.csv"), schema)
    assert dict(one.levels) == dict(two.levels) == schema
    assert one.codes.dtype == two.codes.dtype
    assert (one.codes.tolist(), two.codes.tolist()) == ([[0, 0]], [[2, 1], [1, 0]])


def test_words_that_often_mean_missing_may_be_levels(tmp_path):
    words = ("None", "NA", "", "nan", "null", "NULL", "N/A")
    text = "a,b\n" + "".join(f"{word},1\n" for word in words)
    assert accepted(tmp_path, text, {"a": words, "b": BIT}) == [[i, 1] for i in range(len(words))]


def test_a_level_listed_as_the_empty_text_may_be_quoted(tmp_path):
    assert accepted(tmp_path, 'a,b\n"",1\n,0\n', {"a": ("x", ""), "b": BIT}) == [[1, 1], [1, 0]]


def test_levels_that_look_like_numbers_stay_text(tmp_path):
    words = ("1", "1.0", "01", "1e0", "-1", "0x1", "inf")
    text = "a,b\n" + "".join(f"{word},1\n" for word in words)
    assert accepted(tmp_path, text, {"a": words, "b": BIT}) == [[i, 1] for i in range(len(words))]


def test_levels_given_as_numbers_are_read_as_their_text(tmp_path):
    assert accepted(tmp_path, "a,b\n2,0\n1,1\n", {"a": (1, 2), "b": range(2)}) == [[1, 0], [0, 1]]


def test_levels_that_look_like_booleans_stay_text(tmp_path):
    words = ("True", "true", "FALSE", "False")
    text = "a,b\n" + "".join(f"1,{word}\n" for word in words)
    assert accepted(tmp_path, text, {"a": BIT, "b": words}) == [[1, i] for i in range(len(words))]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    assert accepted(tmp_path, "\ufeffa,b\n0,1\n") == [[0, 1]]
    assert accepted(tmp_path, '\ufeff"a",b\n1,0\n') == [[1, 0]]


def test_quoted_values_may_hold_commas_quotes_and_line_ends(tmp_path):
    words = ("0, or less", 'the "1"', "two\nlines")
    text = 'a,"b"\n"0, or less",1\n"the ""1""",0\n"two\nlines",1\n'
    assert accepted(tmp_path, text, {"a": words, "b": BIT}) == [[0, 1], [1, 0], [2, 1]]


def test_names_and_levels_may_hold_any_letters(tmp_path):
    assert accepted(tmp_path, "größe,b\nüber,1\n", {"größe": ("über",), "b": BIT}) == [[0, 1]]


def test_dos_line_ends_are_fine(tmp_path):
    assert accepted(tmp_path, "a,b\r\n0,1\r\n1,0\r\n") == [[0, 1], [1, 0]]


def test_ignored_columns_may_hold_anything(tmp_path):
    text = "id,a,note,b\n7,0,,1\n7,1,NA,0\n"
    assert accepted(tmp_path, text, ignore=["id", "note"]) == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("ignore", "cure"),
    [
        (["id", "b"], "'b' is both in the schema and in ignore; take it out of one of them"),
        (["id", "ntoe"], "ignore names 'ntoe', .* no column of .*clinic.csv; did you mean 'note'"),
        (["id", "chd"], "ignore names 'chd', .* no column of .*clinic.csv; take it out of ignore"),
        (["id", 7], "ignore names 7, which is no column"),
        ([["id", "note"]], r"ignore names \['id', 'note'\], which is no column"),
        ("id", r"ignore must be a list of columns, not 'id'; give a list, such as ignore="),
        (None, r"ignore must be a list of columns, not None; give a list, such as ignore="),
    ],
)
def test_what_is_ignored_are_columns_and_no_variables(tmp_path, ignore, cure):
    refused(tmp_path, "id,a,note,b\n7,0,,1\n", cure, ignore=ignore)


@pytest.mark.parametrize("ignore", [{"id", "note"}, iter(["id", "note"]), pd.Index(["id", "note"])])
def test_columns_to_ignore_may_come_from_any_iterable(tmp_path, ignore):
    assert accepted(tmp_path, "id,a,note,b\n7,0,,1\n", ignore=ignore) == [[0, 1]]


def test_variables_come_in_the_order_of_the_schema(tmp_path):
    schema = {"b": ("no", "yes"), "c": BIT, "a": BIT}
    data = read_csv(write(tmp_path, "a,b,c\n1,no,0\n0,yes,0\n"), schema)
    assert data.variables == ("b", "c", "a")
    assert data.codes.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_schema_may_be_a_json_file(tmp_path):
    schema = {"b": ["no", "yes"], "a": ["0", "1"]}
    file = write(tmp_path, json.dumps(schema), "schema.json")
    table = write(tmp_path, "a,b\n1,no\n")
    for path in (file, str(file)):
        data = read_csv(table, path)
        assert data.variables == ("b", "a")
        assert data.codes.tolist() == [[0, 1]]


def test_a_data_set_is_named_after_its_file_unless_told(tmp_path):
    file = write(tmp_path, "a,b\n0,1\n")
    assert read_csv(file, LEVELS).name == "clinic"
    assert read_csv(file, LEVELS, name="ward 3").name == "ward 3"


def test_codes_are_a_read_only_copy():
    mine = np.array([[0, 1], [1, 1]], np.uint8, order="F")
    data = Dataset(mine, LEVELS)
    assert not np.shares_memory(mine, data.codes)
    mine[0, 0] = 1
    assert data.codes[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        data.codes[0, 0] = 1


def test_levels_are_a_read_only_copy():
    mine = {"a": ["0", "1"], "b": ["0", "1"]}
    data = Dataset([[0, 1]], mine)
    mine["a"].append("2")
    mine["c"] = ["0"]
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
