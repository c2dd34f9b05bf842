"""Moments of reports, and the test of partial correlations that knows the channel."""

import math

import networkx as nx
import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats

from dpcgd import CPDAG, Dataset
from dpcgd.graphs.pc_search import search
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import Geometric
from dpcgd.local.moments import CorrelationOracle, Moments
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report


def normal_data(n=20_000, seed=0):
    truth = nx.DiGraph([("a", "b"), ("b", "c")])
    columns = default_rng(seed).standard_normal((3, n)).cumsum(axis=0)
    codes = np.digitize(columns.T, np.linspace(-5, 5, 41)[1:-1])
    return Dataset(codes, {name: list(map(str, range(40))) for name in "abc"}, truth)


DATA, LEVELS = normal_data(), (40, 40, 40)
MECHANISM = ComponentWise.from_p_max(Geometric, LEVELS, 0.002)


def test_the_correlation_oracle_sees_through_the_noise_and_the_naive_one_does_not():
    reports = report(DATA, MECHANISM, rng=default_rng(1)).codes
    naive = search(CorrelationOracle(Moments.of_records(reports), 1e-4), "abc").graph
    corrected = search(CorrelationOracle(MECHANISM.moments(reports), 1e-4), "abc").graph
    assert corrected == CPDAG.from_dag(DATA.truth)
    p = 2 * stats.norm.sf(abs(CorrelationOracle(Moments.of_records(reports)).statistic(0, 2, (1,))))
    either = [CorrelationOracle(Moments.of_records(reports), k * p) for k in (0.9, 1.1)]
    assert [oracle.separates(0, 2, (1,)) for oracle in either] == [True, False]
    assert len(naive.skeleton) == 3


@pytest.mark.slow
@pytest.mark.parametrize("combined", [False, True])
def test_its_null_is_standard_normal(combined):
    # 400 samples with a -> b -> c: Kolmogorov and Smirnov, false alarms below 1e-9
    of_parts = ComponentWise.from_p_max(RandomizedResponse, LEVELS, 0.3)
    mechanism = RandomizedResponse.from_p_max(LEVELS, 0.3) if combined else of_parts
    rng, found = default_rng(3), []
    for run in range(400):
        reports = report(normal_data(1000, run), mechanism, rng=rng).codes
        found.append(CorrelationOracle(mechanism.moments(reports)).statistic(0, 2, (1,)))
    assert stats.kstest(found, "norm").pvalue > 1e-9
    assert 0.8 < np.std(found) < 1.25


def test_its_error_is_that_of_the_mean_of_what_each_report_adds():
    # of 20,000 reports, which are looked at in blocks; the definition looks at all of them at once
    moments = MECHANISM.moments(report(DATA, MECHANISM, rng=default_rng(5)).codes)
    values, roots, squares, _ = moments
    covariance = moments.covariance
    slope_a, slope_b = covariance[[0, 1], 2] / covariance[2, 2]
    a, b = np.array([1, 0, -slope_a]), np.array([0, 1, -slope_b])
    mean = values.mean(axis=0)
    added = (roots @ a) * (roots @ b) + squares @ (a * b)
    added -= (values @ a) * (mean @ b) + (values @ b) * (mean @ a)
    z = math.sqrt(len(values)) * (a @ covariance @ b) / np.std(added)
    assert CorrelationOracle(moments).statistic(0, 1, (2,)) == pytest.approx(z, rel=1e-9)


def test_sheppards_correction_gives_back_the_variance_of_a_smooth_density():
    values = default_rng(0).normal(size=(200_000, 2)) * 0.8 + 5
    found = Moments.of_records(np.floor(values)).without_bins().covariance
    assert np.diag(found) == pytest.approx(np.full(2, 0.64), abs=0.015)  # 7 deviations


def test_a_covariance_with_negative_eigenvalues_gives_an_answer():
    noisy = ComponentWise.from_epsilon(RandomizedResponse, LEVELS, 0.3)
    moments = noisy.moments(report(normal_data(50), noisy, rng=default_rng(2)).codes)
    assert np.linalg.eigvalsh(moments.covariance).min() < 0
    assert math.isfinite(CorrelationOracle(moments).statistic(0, 1, (2,)))


@pytest.mark.filterwarnings("error")
def test_correlations_of_constant_and_of_huge_columns():
    values = np.column_stack([np.full(50, 0.1), default_rng(0).normal(size=(50, 2)) * 1e60])
    oracle = CorrelationOracle(Moments.of_records(values))
    for question in ((0, 1, ()), (0, 1, (2,)), (1, 2, ())):
        assert oracle.separates(*question)
    same = CorrelationOracle(Moments.of_records(np.tile([[0, 0], [1, 1]], (25, 1))))
    assert not same.separates(0, 1, ())


@pytest.mark.parametrize("bad", [np.full((3, 2), 1e200), np.full((3, 2), np.nan), np.zeros((0, 2))])
def test_values_without_moments_are_refused(bad):
    with pytest.raises(ValueError, match="measure in other units"):
        Moments.of_records(bad)
