"""Compiled statistics of many tables against the plain definitions of one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd.datasets.bayesian_networks import load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counted
from dpcgd.datasets.dataset import Dataset
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared, ChiSquared, GTest
from dpcgd.statistics.many_tables import (
    are_allowed,
    are_compiled,
    nearnesses_of,
    sensitivities_of,
    value_of,
    values_of,
)
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanP, SpearmanZ
from dpcgd.statistics.statistic import all_in_sensitivities, in_sensitivities, refusal

STATISTICS = [
    KendallZ(),
    KendallP(),
    SpearmanZ(),
    SpearmanP(),
    GTest(),
    ChiSquared(),
    AdjustedChiSquared(),
]
exactly = settings(derandomize=True, deadline=None, database=None, max_examples=100)


def counted(tables):
    sizes = [table.size for table in tables]
    flat = np.concatenate([table.ravel() for table in tables])
    return Counted(flat, np.cumsum([0, *sizes]), np.array([table.shape for table in tables]))


def drawn(rng, strata, scale):
    """A table of random shape, with empty levels and empty strata."""
    shape = (*rng.integers(1, 6, 2), *rng.integers(1, 4, strata))
    return rng.poisson(scale * rng.random(shape) * (rng.random(shape) < 0.7)).astype(np.int64)


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.name)
@exactly
@given(st.integers(0, 3), st.sampled_from([0.0, 1.0, 30.0, 1e4, 1e6]), st.integers(0, 2**32 - 1))
def test_many_tables_give_what_each_gives(statistic, strata, scale, seed):
    rng = np.random.default_rng(seed)
    tables = [drawn(rng, strata, scale) for _ in range(5)]
    found, n = statistic.values(counted(tables)), max(int(table.sum()) for table in tables)
    # Sums of t ln t lose what cancels: a few units in the last place of n ln n.
    rounding = 1e-14 * n * math.log(n + 2) if isinstance(statistic, GTest) else 1e-12
    expected = [statistic.value(table) for table in tables]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=rounding)


def test_nearness_is_the_p_value_or_minus_the_statistic():
    tables = Tables(load("asia", n=2000, rng=np.random.default_rng(0)))
    asked = np.array([[0, 1, 2], [3, 5, 1], [2, 7, 4]])
    for statistic in STATISTICS:
        near = nearnesses_of(statistic, tables, asked)
        each = [tables.counts(of) for of in asked.tolist()]
        if hasattr(statistic, "p_value"):
            expected = [statistic.p_value(table) for table in each]
        else:
            expected = [-statistic.value(table) for table in each]
        np.testing.assert_allclose(near, expected, rtol=1e-7)


class Halved(KendallZ):
    """A definition of one's own for one table."""

    def value(self, table):
        return super().value(table) / 2


class Flat:
    """A statistic that knows nothing of many tables."""

    critical = 1.0

    def value(self, table):
        return float(table.sum())

    def sensitivity(self, n, levels):
        return float(len(levels))


class OnlyCounts:
    """Tables of one's own."""

    def __init__(self, tables):
        self.n, self.levels, self.counts = tables.n, tables.levels, tables.counts


@pytest.mark.parametrize("statistic", [Halved(), Flat()])
def test_a_new_definition_for_one_table_holds_for_many(statistic):
    tables = Tables(load("asia", n=500, rng=np.random.default_rng(0)))
    assert not are_compiled(statistic, tables)
    asked = [[0, 1], [2, 3]]
    expected = [statistic.value(tables.counts(of)) for of in asked]
    assert values_of(statistic, tables, asked).tolist() == expected
    assert value_of(statistic, tables, asked[1]) == expected[1]


def test_tables_that_only_count_are_asked_one_by_one():
    tables = Tables(load("asia", n=500, rng=np.random.default_rng(0)))
    assert are_compiled(KendallP(), tables)
    assert not are_compiled(KendallP(), OnlyCounts(tables))
    asked = [[0, 1], [2, 3]]
    found = values_of(KendallP(), OnlyCounts(tables), asked)
    np.testing.assert_allclose(values_of(KendallP(), tables, asked), found, rtol=1e-12)
    assert values_of(KendallP(), tables, np.empty((0, 3), np.int64)).shape == (0,)


def test_public_facts_allow_what_is_not_refused():
    levels = {f"v{i}": range(k) for i, k in enumerate((2, 3, 4, 5))}
    tables = Tables(Dataset(np.zeros((100, 4), int), levels))
    asked = np.array([[0, 1, 2], [1, 2, 3], [0, 2, 1], [0, 1, 3], [3, 2, 0]])
    expected = [refusal(100, tables.shape(of)) is None for of in asked.tolist()]
    assert are_allowed(tables, asked).tolist() == expected
    assert 0 < sum(expected) < len(expected) or expected.count(False) == len(expected)


def test_sensitivities_are_those_of_each_shape():
    tables = Tables(load("child", n=10_000, rng=np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    asked = np.array([rng.permutation(20)[:3] for _ in range(50)])
    for statistic in (KendallZ(), SpearmanP(), ChiSquared(), Flat()):
        expected = [statistic.sensitivity(tables.n, tables.shape(of)) for of in asked.tolist()]
        assert sensitivities_of(statistic, tables, asked).tolist() == expected


def test_distances_in_sensitivities_are_those_of_each():
    distances = np.array([1.0, -1.0, 0.0, 2.0, -3.0, 1e300, -1e300])
    sensitivities = np.array([0.25, 0.0, 0.0, 0.0, 2.0, 1e-300, 1e-300])
    each = [in_sensitivities(*of) for of in zip(distances, sensitivities, strict=True)]
    assert all_in_sensitivities(distances, sensitivities).tolist() == each
