"""What is worked out ahead is what would have been, and little of it is in vain."""

import itertools

import numpy as np
import pytest

from dpcgd.graphs.ahead import Ahead
from dpcgd.graphs.pc_search import conditioning_array, conditioning_sets, neighbours_of


def graph(d, seed):
    joined = np.triu(np.random.default_rng(seed).random((d, d)) < 0.6, 1)
    return joined | joined.T


class Work:
    def __init__(self):
        self.asked = []

    def __call__(self, tests):
        self.asked.append(list(tests))
        return [sum(test) for test in tests]


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("seed", range(5))
def test_sets_as_an_array_are_the_sets_in_their_order(order, seed):
    neighbours = neighbours_of(graph(8, seed))
    for x, y in itertools.combinations(range(8), 2):
        sets = conditioning_array(x, y, neighbours, order)
        assert [tuple(s) for s in sets.tolist()] == [*conditioning_sets(x, y, neighbours, order)]
        assert sets.shape[1] == order


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("order", range(3))
def test_every_answer_is_its_own_and_each_test_is_worked_out_once(order, first):
    joined, work = graph(8, 0), Work()
    ahead = Ahead(work, first)
    ahead.begin_order(order, joined, np.triu(joined))
    neighbours, asked = neighbours_of(joined), 0
    for x, y in np.argwhere(np.triu(joined)).tolist():
        for given in conditioning_sets(x, y, neighbours, order):
            asked += 1
            assert ahead.of((x, y, *given)) == x + y + sum(given)
    worked = [test for tests in work.asked for test in tests]
    assert len(worked) == len(set(worked)) == asked
    assert len(work.asked) < asked


def test_a_pair_that_is_given_up_is_looked_at_no_further():
    joined, work = graph(9, 1), Work()
    ahead = Ahead(work, 1)
    ahead.begin_order(2, joined, np.triu(joined))
    pairs, neighbours = np.argwhere(np.triu(joined)).tolist(), neighbours_of(joined)
    for x, y in pairs:
        given = next(conditioning_sets(x, y, neighbours, 2))
        ahead.of((x, y, *given))
    assert [len(tests) for tests in work.asked] == [len(pairs)]


def test_without_an_order_or_out_of_turn_a_test_is_worked_out_by_itself():
    work = Work()
    ahead = Ahead(work, 1)
    assert ahead.of((2, 3, 5)) == 10
    assert work.asked == [[(2, 3, 5)]]
    joined = np.ones((4, 4), bool) ^ np.eye(4, dtype=bool)
    ahead.begin_order(1, joined, np.triu(joined))
    assert ahead.of((1, 0, 3)) == 4
    assert (1, 0, 3) in work.asked[1]


def test_a_new_order_remembers_nothing():
    joined, work = graph(5, 0), Work()
    ahead = Ahead(work, 1)
    for _ in range(2):
        ahead.begin_order(0, joined, np.triu(joined))
        ahead.of(tuple(np.argwhere(np.triu(joined))[0].tolist()))
    assert work.asked[0] == work.asked[1]
