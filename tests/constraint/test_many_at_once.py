"""What oracles look at together is what they find by looking at one test after the other."""

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd.constraint.em_pc import ExponentialOracle, share_of_the_choices
from dpcgd.constraint.laplace_pc import PlainOracle
from dpcgd.constraint.priv_pc import SieveOracle, share_of_the_rest
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.published_networks import load
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import exponential
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest
from dpcgd.statistics.rank_statistics import KendallP, KendallZ


class OneByOne:
    """An oracle without what it has for many tests at once."""

    def __init__(self, oracle):
        self.separates = oracle.separates
        self.nearness = getattr(oracle, "nearness", None)
        self._begin_order = getattr(oracle, "begin_order", None)

    def begin_order(self, order, joined, to_test):
        if self._begin_order:
            self._begin_order(order, joined, to_test)


class OnlyCounts:
    """Tables that only count: every statistic is then the plain definition."""

    def __init__(self, tables):
        self.n, self.levels, self.counts, self.shape = (
            tables.n,
            tables.levels,
            tables.counts,
            tables.shape,
        )


def private(kind, tables, budget):
    account, noise = Filter(budget), SeededNoise(default_rng(1))
    if kind is SieveOracle:
        price, how = share_of_the_rest(account, 190), (1.0, 0.0, 1.0)
    else:
        price, how = share_of_the_choices(account, exponential, 20, 3), (exponential, 1.0)
    return kind(tables, KendallZ(), price, *how, account, noise)


@pytest.mark.parametrize("n", [300, 5000, 50_000])
@pytest.mark.parametrize("statistic", [KendallP(), ChiSquared(0.05), GTest(0.01)])
def test_plain_pc_finds_what_it_finds_one_by_one(statistic, n):
    data = load("child", n=n, rng=default_rng(0))
    tables = Tables(data)
    many = PlainOracle(tables, statistic)
    single = OneByOne(PlainOracle(OnlyCounts(tables), statistic))
    found, expected = (
        search(oracle, data.variables, grading=oracle, max_order=2) for oracle in (many, single)
    )
    assert found == expected
    assert found.graph == expected.graph


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kind", [SieveOracle, ExponentialOracle])
def test_private_pc_spends_and_draws_as_one_by_one(kind, epsilon):
    data = load("child", n=20_000, rng=default_rng(0))
    tables, budget = Tables(data), Budget(epsilon, 1e-6)
    many = private(kind, tables, budget)
    single = private(kind, OnlyCounts(tables), budget)
    found = search(many, data.variables)
    expected = search(OneByOne(single), data.variables)
    assert found == expected
    assert many.account.ledger == single.account.ledger
    assert np.array_equal(many.noise._rng.random(3), single.noise._rng.random(3))


class Wary(PlainOracle):
    """Another answer to one question, and to how near it is, than the class it extends."""

    def separates(self, x, y, given):
        self.asked = getattr(self, "asked", 0) + 1
        return super().separates(x, y, given)

    def nearness(self, x, y, given):
        self.graded = getattr(self, "graded", 0) + 1
        return super().nearness(x, y, given)


def test_a_new_definition_of_one_question_is_asked_one_by_one():
    data = load("asia", n=2_000, rng=np.random.default_rng(0))
    oracle = Wary(Tables(data), KendallZ())
    found = search(oracle, data.variables, grading=oracle)
    assert oracle.asked == found.tests > 28
    assert oracle.graded > 0
    plain = PlainOracle(Tables(data), KendallZ())
    assert search(plain, data.variables, grading=plain) == found
