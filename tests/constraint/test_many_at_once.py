"""What oracles work out together is what they find by one plain table after the other."""

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd.constraint.em_pc import ExponentialOracle, share_of_the_choices
from dpcgd.constraint.laplace_pc import PlainOracle
from dpcgd.constraint.priv_pc import SieveOracle, share_of_the_rest
from dpcgd.datasets.bayesian_networks import load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import exponential
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest
from dpcgd.statistics.rank_statistics import KendallP, KendallZ


class OnlyCounts:
    """Tables that only count: every statistic is then the plain definition."""

    def __init__(self, tables):
        self.n, self.levels = tables.n, tables.levels
        self.counts, self.shape = tables.counts, tables.shape


class OneByOne:
    """An oracle that is never told what will be asked."""

    def __init__(self, oracle):
        self.separates, self.nearnesses = oracle.separates, self._in_turn
        self._nearnesses = oracle.nearnesses

    def _in_turn(self, tests):
        return [near for test in tests for near in self._nearnesses([test])]


def private(kind, tables, budget):
    account, noise = Filter(budget), SeededNoise(default_rng(1))
    if kind is SieveOracle:
        price, settings = share_of_the_rest(account, 190), (1.0, 0.0, 1.0)
    else:
        price, settings = share_of_the_choices(account, exponential, 20, 3), (exponential, 1.0)
    return kind(tables, KendallZ(), price, *settings, account, noise)


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
    many, single = private(kind, tables, budget), private(kind, OnlyCounts(tables), budget)
    assert search(many, data.variables) == search(single, data.variables)
    assert many.account.ledger == single.account.ledger
    assert np.array_equal(many.noise._rng.random(3), single.noise._rng.random(3))
