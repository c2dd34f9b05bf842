"""Numbers of chapter 17's table, looked up."""

import itertools
import math

import pandas as pd
import pytest
from dpcgd_book.results import lookup

SCORES = [(0.5, 0.7), (0.4, 0.4), (0.9, 0.9), (0.8, 0.6)]


@pytest.fixture
def table():
    """Two networks, two systems, two runs; the second one is without privacy."""
    runs = pd.DataFrame(
        {"network": network, "system": system, "run": run, "F1": f1, "n": 100}
        | {"epsilon": 1.0 if system == "s" else math.inf}
        for (network, system), values in zip(itertools.product("ab", "st"), SCORES, strict=True)
        for run, f1 in enumerate(values)
    )
    cells = runs.groupby(["network", "system", "n", "epsilon"]).F1.mean().reset_index()
    return lookup.Lookup(runs, cells, {"both": ["a", "b"]}, epsilon=1.0, n=100)


def test_means_are_those_of_the_cell_that_is_asked_for(table):
    assert table.mean("s", network="a") == pytest.approx(0.6)
    assert table.mean("t", math.inf, "b") == pytest.approx(0.7)
    assert math.isnan(table.mean("t", network="b")), "not at epsilon 1"
    assert math.isnan(table.mean("s", network="a", n=99))
    both = table.means("st", math.inf, network="b")
    assert both.to_dict() == pytest.approx({"s": math.nan, "t": 0.7}, nan_ok=True)


def test_differences_are_paired_by_run_and_networks_count_alike(table):
    errors = [pd.Series(gains).sem() for gains in ((0.1, 0.3), (0.1, 0.3))]
    assert table.difference("s", "t") == pytest.approx((0.2, math.hypot(*errors) / 2))
    assert table.difference("t", "s", network="a") == pytest.approx((-0.2, errors[0]))
    assert all(map(math.isnan, table.difference("s", "u")))


def test_the_error_is_over_networks_where_one_has_a_single_run(table):
    short = table.runs[(table.runs.network == "b") | (table.runs.run == 0)]
    single = lookup.Lookup(short, table.cells, table.groups, 1.0, 100).difference("s", "t")
    assert single == pytest.approx((0.15, pd.Series([0.1, 0.2]).sem()))


def test_what_is_clear():
    pairs = (0.1, 0.04), (0.1, 0.06), (0.1, 0.02), (-0.05, 0.0), (-0.1, 0.02)
    differences = [lookup.Difference(*pair) for pair in pairs]
    assert [own.clear for own in differences] == [True, False, True, False, False]
