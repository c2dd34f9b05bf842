"""The page of open questions shows numbers on file, and what can be recomputed at once agrees."""

import json
import re

import numpy as np
import pages
import pytest
from scipy import stats

from benchmarks import open_questions

PAGE = (pages.ROOT / "book" / "open_questions.md").read_text()
NUMBERS = json.loads(pages.MEASURED.read_text())


def test_every_mark_of_the_page_is_a_number_on_file():
    assert len(pages.NUMBER.findall(PAGE)) > 20
    assert not pages.NUMBER.search(pages.with_numbers(PAGE, NUMBERS))
    filled = pages.with_numbers("[[a.1:+.2f]] and [[b:.0%]]", {"a": [0, 1.5], "b": 0.25})
    assert filled == "+1.50 and 25%"
    with pytest.raises(KeyError):
        pages.with_numbers("[[no:.2f]]", NUMBERS)


def test_every_question_has_numbers_and_the_page_shows_some_of_each():
    assert NUMBERS.keys() == open_questions.QUESTIONS.keys()
    assert {mark.split(".")[0] for mark, _ in pages.NUMBER.findall(PAGE)} == NUMBERS.keys()


def test_a_number_in_the_prose_is_a_setting():
    """No result is typed: decimals outside marks are settings of the runs."""
    bare = pages.NUMBER.sub("", re.sub(r"\{glue:text\}`[^`]*`", "", PAGE))
    assert set(re.findall(r"\d*\.\d+", bare)) <= {"0.01", "0.02", "0.1", "0.5", ".05"}


def test_no_sub_sample_has_a_smaller_error():
    found = open_questions.sub_sampling()
    assert found == pytest.approx(NUMBERS["sub_sampling"], rel=1e-6)
    assert found["least"] > 1


def test_the_test_that_knows_the_channel_has_its_level():
    """500 rejections at .05 are within a binomial's limits; false alarm 1e-6."""
    rates = NUMBERS["chi_squared"]
    assert stats.binomtest(round(500 * rates["level"]), 500, 0.05).pvalue > 1e-6
    assert rates["naive_level"] > 0.9


def test_a_cubic_is_fitted_to_a_table_of_a_cubic():
    assert open_questions.cubic(np.eye(10)) == pytest.approx(np.arange(2, 8) / 10)


def test_without_halves_noise_is_not_larger():
    assert 0.45 < NUMBERS["halves"]["noise"] < 0.6


def test_earlier_answers_move_the_threshold_the_same_way():
    """More pairs left joined: a lower threshold."""

    class Base(open_questions.Foreseeing):
        def __init__(self):
            self.plan, self.crowded, self.label = (lambda joined, order: 1.0), 0.0, ""

    lowered = []
    for joined in (np.eye(4, k=1, dtype=bool), ~np.eye(4, dtype=bool)):
        oracle = Base()
        oracle.begin_order(1, joined | joined.T, joined)
        lowered.append(oracle._lowered)
    assert lowered[0] < lowered[1]
