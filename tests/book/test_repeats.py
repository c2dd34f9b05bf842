"""Runs on file that are repeated: which ones, and when they count as the same."""

import math

import pandas as pd
import pytest
from dpcgd_book.results.stored import repeats, telling

ROWS = pd.DataFrame({"name": ["a", "b"], "run": [0.0, 1.0], "seed": 0})
KEYS = ["name", "run", "seed"]


RESULTS = [(0.333333, 1 / 3, True), (1234570.0, 1234567.0, True), (0.5, 0.5006, False)]
RESULTS += [(0.0, 1e-6, False), (math.inf, math.inf, True), (math.inf, 3.0, False)]
RESULTS += [(math.nan, None, True), (math.nan, math.nan, True), (math.nan, 0.0, False)]
RESULTS += [(0.0, None, False), ("a b", "b a", False), (7, "7", True)]


@pytest.mark.parametrize(("old", "new", "same"), RESULTS)
def test_when_two_results_are_the_same(old, new, same):
    rows = ROWS.assign(F1=pd.Series([old, old], dtype=object))
    again = repeats(lambda name, run, seed: {"F1": new}, rows, KEYS, ["F1"])
    assert again["same"].tolist() == [same, same]


def test_the_result_that_differs_is_told():
    rows = ROWS.assign(F1=1.0, edges=[4.0, 5.0])
    again = repeats(lambda **case: {"F1": 1.0, "edges": 4}, rows, KEYS, ["F1", "edges"])
    shown = again[["column", "on file", "now", "same"]].values.tolist()
    assert shown == [["F1", 1, 1, True], ["edges", 5, 4, False]]


def test_noise_shows_where_runs_differ():
    of = {"none": [1, 1], "little": [0.5, 0.51], "much": [0.1, 0.9], "lost": [None, None]}
    rows = pd.DataFrame([{"cell": c, "F1": v} for c, values in of.items() for v in values])
    for first, cell in ((8, "much"), (4, "little"), (2, "none")):
        assert set(rows[:first][telling(rows[:first], ["cell"], "F1")].cell) == {cell}
    assert telling(rows[4:], [], "F1").tolist() == [True, True, False, False]
