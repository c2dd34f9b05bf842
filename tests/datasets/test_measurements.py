"""Real-valued data with public ranges, and the linear models that draw such data."""

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from dpcgd_book.data.linear_sems import LinearSEM, random_sem

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


@pytest.mark.parametrize(
    ("values", "ranges", "message"),
    [
        ([[1.0, np.nan]], RANGES, "missing or infinite"),
        ([[1.0, np.inf]], RANGES, "missing or infinite"),
        ([[1.0]], RANGES, "one column for each of the 2"),
        (np.empty((0, 2)), RANGES, "one row a record"),
        ([[1.0, 1.0]], {"age": (0, 80)}, "at least two variables"),
        ([[1.0, 1.0]], {"age": (0, 0), "height": (1, 2)}, "'age': the range 0 to 0 is empty"),
        ([[1.0, 1.0]], {"age": (0, np.inf), "height": (1, 2)}, "not finite"),
        ([[1.0, 1.0]], {"age": (0, np.nan), "height": (1, 2)}, "not finite"),
        ([[1.0, 1.0]], {"age": (80, 0), "height": (1, 2)}, "80 to 0 is the wrong way round; give"),
        ([[1.0, 1.0]], [(0, 80), (1, 2)], "ranges must map each of at least two variables to its"),
        ([[1.0, 1.0]], pd.DataFrame(RANGES), "ranges must map each of at least two variables to"),
        ([[1.0, 1.0]], RANGES | {"height": 2}, "a range is two numbers, not 2; give the public"),
        ([[1.0, 1.0]], RANGES | {"height": None}, "a range is two numbers, not None; give the"),
        ([[1.0, 1.0]], RANGES | {"height": "12"}, "a range is two numbers, not '12'; give the"),
        ([[1.0, 1.0]], RANGES | {"height": ("1", "2")}, "a range is two numbers, not"),
        ([[1.0, 1.0]], RANGES | {"height": (1, 1.5, 2)}, "a range is two numbers, not"),
        ([[1.0, 1.0]], RANGES | {"height": {1, 2}}, "a range is two numbers, not"),
        ([[1.0, 1.0]], {"age": (0, 80), 2: (1, 2)}, "variable name 2 is not text; write it as '2'"),
        ([[1.0, 1.0]], {"age": (0, 80), "b ": (1, 2)}, "'b ' has blanks at its ends; take them"),
        (
            [["1", "1"]],
            RANGES,
            r"must be numbers, not text .* convert them first, as with np.array",
        ),
        (np.array([["1", 1]], object), RANGES, "must be numbers, not text"),
        (np.array([[1, 1]], "datetime64[s]"), RANGES, "must be numbers, not text or other objects"),
        ([[1.0, None]], RANGES, "missing or infinite; drop or impute"),
        ([[1.0, 1.0], [1.0]], RANGES, "the rows of values differ in length; give all as many"),
    ],
)
def test_bad_input_is_refused_with_its_cure(values, ranges, message):
    with pytest.raises(ValueError, match=message):
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


def test_a_sample_has_the_covariance_of_its_model():
    model = random_sem(6, 8, rng=np.random.default_rng(0))
    data = model.sample(200_000, rng=np.random.default_rng(1))
    errors = np.cov(data.values.T) - model.covariance
    scale = np.sqrt(np.diag(model.covariance))
    # a correlation-scaled entry has a deviation of at most sqrt(2 / n) = 0.0032; clipping at four
    # deviations changes it by less than 0.001
    assert np.abs(errors / np.outer(scale, scale)).max() < 7 * 0.0032


def test_a_random_model_has_its_arcs_and_its_weights():
    model = random_sem(10, 20, rng=np.random.default_rng(2))
    weights = np.abs(model.weights[model.weights != 0])
    assert len(weights) == 20
    assert weights.min() >= 0.5
    assert weights.max() <= 2
    assert nx.is_directed_acyclic_graph(model.graph)


def test_impossible_models_are_refused():
    with pytest.raises(ValueError, match="at most 3 arcs"):
        random_sem(3, 4, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="cycle"):
        LinearSEM(np.ones((2, 2)))
    with pytest.raises(ValueError, match="square"):
        LinearSEM(np.zeros((2, 2)), ["a"])
    with pytest.raises(ValueError, match="d must be a whole number, at least 1, not"):
        random_sem(3.0, 2, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="arcs must be at least 0, not -1"):
        random_sem(3, -1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least 1"):
        random_sem(3, 2, rng=np.random.default_rng(0)).sample(0, rng=np.random.default_rng(0))
