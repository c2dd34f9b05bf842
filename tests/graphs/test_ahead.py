"""What is worked out ahead is what would have been, and little of it is in vain."""

import itertools

import numpy as np
import pytest

from dpcgd.graphs.pc_search import FIRST, TOGETHER, Ahead, conditioning_sets, neighbours_of


def graph(d, seed):
    joined = np.triu(np.random.default_rng(seed).random((d, d)) < 0.6, 1)
    return joined | joined.T


class Work:
    def __init__(self, tells=sum):
        self.tells, self.asked = tells, []

    def __call__(self, tests):
        self.asked.append(list(tests))
        return [self.tells(test) for test in tests]


def never(_):
    return False


def small(result):
    return result < 12


@pytest.mark.parametrize("separates", [never, small])
@pytest.mark.parametrize("order", range(3))
def test_every_answer_is_its_own_and_each_test_is_worked_out_once(order, separates):
    joined, work = graph(8, 0), Work()
    ahead = Ahead(work, separates)
    ahead.begin_order(order, joined, np.triu(joined))
    neighbours, asked = neighbours_of(joined), 0
    for x, y in np.argwhere(np.triu(joined)).tolist():
        for given in conditioning_sets(x, y, neighbours, order):
            asked += 1
            assert ahead.of((x, y, *given)) == x + y + sum(given)
    worked = [test for tests in work.asked for test in tests]
    assert len(worked) == len(set(worked)) == asked
    assert len(work.asked) < asked


def begun(separates):
    """Two conditioning variables among 20, the first test of the first pair asked."""
    joined, work = np.ones((20, 20), bool) ^ np.eye(20, dtype=bool), Work(tuple)
    ahead = Ahead(work, separates)
    ahead.begin_order(2, joined, np.triu(joined))
    ahead.of((0, 1, 2, 3))
    return ahead, work


def test_at_first_the_first_sets_of_every_pair_are_looked_at():
    _, work = begun(never)
    pairs = [test[:2] for test in work.asked[0]]
    assert set(pairs) == set(itertools.combinations(range(20), 2))
    assert {pairs.count(pair) for pair in pairs} == {FIRST}


def test_pairs_that_are_given_up_are_looked_at_no_further():
    ahead, work = begun(never)
    for y in range(1, 20):
        ahead.of((0, y, *[v for v in (1, 2, 3) if v != y][:2]))
    assert len(work.asked) == 1


def test_further_sets_are_those_of_pairs_not_yet_asked_about_nor_likely_to_be_separated():
    ahead, work = begun(lambda test: test == (0, 5, 1, 2))
    ahead.of((0, 3, 18, 19))
    looked_at = list(dict.fromkeys(test[:2] for test in work.asked[1]))
    assert looked_at[:3] == [(0, 3), (0, 4), (0, 6)]
    assert len(looked_at) <= TOGETHER
    assert [test[:2] for test in work.asked[1]].count((0, 4)) == 2 * FIRST


def test_a_pair_is_looked_at_further_though_it_was_likely_to_be_separated():
    ahead, work = begun(lambda test: True)
    ahead.of((0, 1, 3, 4))
    assert {test[:2] for test in work.asked[1]} == {(0, 1)}


def test_without_an_order_or_out_of_turn_a_test_is_worked_out_by_itself():
    work = Work()
    ahead = Ahead(work, never)
    assert ahead.of((2, 3, 5)) == 10
    assert work.asked == [[(2, 3, 5)]]
    joined = np.ones((4, 4), bool) ^ np.eye(4, dtype=bool)
    ahead.begin_order(1, joined, np.triu(joined))
    assert ahead.of((1, 0, 3)) == 4
    assert (1, 0, 3) in work.asked[1]


def test_a_new_order_remembers_nothing():
    joined, work = graph(5, 0), Work()
    ahead = Ahead(work, never)
    for _ in range(2):
        ahead.begin_order(0, joined, np.triu(joined))
        ahead.of(tuple(np.argwhere(np.triu(joined))[0].tolist()))
    assert work.asked[0] == work.asked[1]
