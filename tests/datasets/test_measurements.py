"""Real-valued data with public ranges: clipped, refused, scaled, binned."""

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dpcgd import Dataset
from dpcgd.datasets.measurements import Measurements

RANGES = {"age": (0, 80), "height": (1, 2)}


def test_values_outside_a_range_go_to_its_nearer_end():
    data = Measurements([[-5.0, 3.0], [40.0, 1.25]], RANGES)
    assert data.values.tolist() == [[0, 2], [40, 1.25]]
    assert data.scaled.tolist() == [[-1, 1], [0, -0.5]]


def test_values_are_a_copy_that_cannot_be_changed():
    values = np.array([[1.0, 1.0], [2.0, 2.0]])
    data = Measurements(values, RANGES)
    values[0, 0] = 9
    assert data.values[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 3


ROW = [[1.0, 1.0]]
LARGEST = np.finfo(float).max


@pytest.mark.parametrize(
    ("values", "ranges", "cure"),
    [
        ([[1.0, np.nan]], RANGES, "missing or infinite"),
        ([[1.0, np.inf]], RANGES, "missing or infinite"),
        ([[1.0, None]], RANGES, "missing or infinite; drop or impute"),
        ([[1.0]], RANGES, "one column for each of the 2"),
        (np.empty((0, 2)), RANGES, "one row a record"),
        ([[1.0, 1.0], [1.0]], RANGES, "differ in length; give all as many"),
        ([["1", "1"]], RANGES, r"must be numbers, not text .* convert them first"),
        (np.array([["1", 1]], object), RANGES, "must be numbers, not text"),
        (np.array([[1, 1]], "datetime64[s]"), RANGES, "must be numbers, not text or other objects"),
        (ROW, {"age": (0, 80)}, "at least two variables"),
        (ROW, [(0, 80), (1, 2)], "ranges must map"),
        (ROW, pd.DataFrame(RANGES), "ranges must map"),
        *[
            (ROW, {"age": ends, "height": (1, 2)}, f"'age': .*{problem}.*; give the public")
            for ends, problem in [
                ((0, 0), "empty or not finite"),
                ((0, np.inf), "empty or not finite"),
                ((0, np.nan), "empty or not finite"),
                ((-LARGEST, LARGEST), "empty or not finite"),
                ((0.0, 5e-324), "empty or not finite"),
                ((80, 0), "the wrong way round"),
                (2, "two numbers"),
                (None, "two numbers"),
                ("12", "two numbers"),
                (("1", "2"), "two numbers"),
                ((1, 1.5, 2), "two numbers"),
                ({1, 2}, "two numbers"),
            ]
        ],
        (ROW, {"age": (0, 80), 2: (1, 2)}, "write it as '2'"),
        (ROW, {"age": (0, 80), "b ": (1, 2)}, "'b ' has blanks at its ends; take them"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_input_is_refused_with_its_cure(values, ranges, cure):
    with pytest.raises(ValueError, match=cure):
        Measurements(values, ranges)


def test_ends_and_values_may_be_any_numbers():
    ends = {"age": [np.int8(0), Fraction(160, 2)], "height": np.array([1, 2])}
    data = Measurements(np.array([[Decimal(20), 1.5]], object), ends)
    assert (dict(data.ranges), data.values.tolist()) == (RANGES, [[20, 1.5]])


def test_a_true_graph_that_is_cyclic_or_none_is_refused():
    with pytest.raises(ValueError, match="has a cycle; take one of its arcs out"):
        Measurements([[1, 1]], RANGES, nx.DiGraph([("age", "height"), ("height", "age")]))
    with pytest.raises(ValueError, match=r"truth must be a networkx.DiGraph, not list; make one"):
        Measurements([[1, 1]], RANGES, [("age", "height")])


def test_a_true_graph_over_other_variables_is_refused():
    with pytest.raises(ValueError, match="same variables"):
        Measurements([[1.0, 1.0]], RANGES, truth=nx.DiGraph([("age", "weight")]))


def test_codes_become_level_numbers():
    coded = Dataset([[0, 2], [1, 0]], {"smoke": ("no", "yes"), "pain": ("0", "1", "2")})
    data = Measurements.from_codes(coded)
    assert data.values.tolist() == [[0, 2], [1, 0]]
    assert data.scaled.tolist() == [[-1, 1], [1, -1]]


def test_a_variable_with_one_level_has_a_range_too():
    coded = Dataset([[0, 1]], {"all": ("yes",), "smoke": ("no", "yes")})
    assert Measurements.from_codes(coded).ranges["all"] == (0, 1)


def test_bins_are_equally_wide_and_hold_both_ends():
    data = Measurements([[0.0, 1.0], [19.9, 1.5], [80.0, 2.0]], RANGES)
    assert data.binned(4).codes.tolist() == [[0, 0], [0, 2], [3, 3]]
    assert data.binned(1).cardinalities == (1, 1)
    for bins in (0, 4.0, "4", True, None):
        with pytest.raises(ValueError, match=r"bins must be .*at least 1, not"):
            data.binned(bins)
