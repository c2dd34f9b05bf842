"""What reports tell about distributions and tables of the records."""

import itertools

import numpy as np
import pytest
from dpcgd_book.attacks.reconstruction import CorrectedTables, reconstruct
from numpy.random import default_rng
from people import refused

from dpcgd import Dataset
from dpcgd.constraint.laplace_pc import PlainOracle
from dpcgd.graphs.pc_search import search
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import ClippedGeometric
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report
from dpcgd.statistics.categorical_statistics import ChiSquared


def test_a_report_that_is_never_made_is_refused():
    flat = ClippedGeometric(4, 0.0)  # the ends only
    refused("a report that the mechanism never makes", reconstruct, np.array([0, 1, 3]), flat)


CODES = default_rng(5).binomial(3, 0.4, (4000, 3)) + default_rng(6).integers(0, 1, (1, 3))
MECHANISM = ComponentWise.from_p_max(RandomizedResponse, (4, 4, 4), 0.5)
REPORTS = MECHANISM.sample(CODES, rng=default_rng(1))


def test_likelihood_never_falls_and_ends_within_the_gap():
    near, nearer = (reconstruct(REPORTS, MECHANISM, gap=gap) for gap in (5.0, 1e-3))
    assert (np.diff(nearer.log_likelihoods) > -1e-9).all()
    assert len(near.log_likelihoods) < len(nearer.log_likelihoods)
    assert 0 <= nearer.log_likelihoods[-1] - near.log_likelihoods[-1] <= near.gap <= 5.0


def test_axis_by_axis_is_the_dense_update():
    seen = np.bincount(np.ravel_multi_index(REPORTS.T, (4, 4, 4)), minlength=64) / 4000
    joint = np.full(64, 1 / 64)
    for _ in range(20):
        joint = joint * (MECHANISM.channel @ (seen / (joint @ MECHANISM.channel)))
    found = reconstruct(REPORTS, MECHANISM, gap=0.0, most=20)
    assert len(found.log_likelihoods) == 21
    assert found.joint.ravel() == pytest.approx(joint, abs=1e-12)


def test_without_noise_it_returns_what_was_reported():
    exact = ComponentWise.from_epsilon(RandomizedResponse, (4, 4, 4), 120.0)
    found = reconstruct(CODES, exact, gap=1e-9)
    seen = np.bincount(np.ravel_multi_index(CODES.T, (4, 4, 4)), minlength=64)
    assert (found.n * found.joint).ravel() == pytest.approx(seen, abs=1e-6)
    assert sorted(map(tuple, found.records())) == sorted(map(tuple, CODES))


def test_it_has_as_many_records_as_reports():
    found = reconstruct(REPORTS, MECHANISM)
    assert len(found.records()) == found.n == len(REPORTS)


ALONE = ComponentWise.from_epsilon(RandomizedResponse, (2, 3), 3.0)


@pytest.mark.parametrize("mechanism", [ALONE, RandomizedResponse((2, 3), 3.0)])
def test_tables_are_unbiased_where_nothing_is_clipped(mechanism):
    codes = np.repeat(list(itertools.product(range(2), range(3))), 5000, axis=0)
    data = Dataset(codes, {"a": ["0", "1"], "b": ["0", "1", "2"]})
    reports = report(data, mechanism, rng=default_rng(0))
    counts = CorrectedTables(reports, mechanism).counts([1, 0])
    assert np.abs(counts - 5000).max() < 600  # 7 deviations are about 560
    assert CorrectedTables(reports, mechanism).shape([1, 0]) == (3, 2)


def test_tables_fit_into_an_oracle():
    first = default_rng(0).integers(0, 4, 20_000)
    second = np.minimum(first + default_rng(1).integers(0, 2, 20_000), 3)
    data = Dataset(np.column_stack([first, second]), {name: list("0123") for name in "ab"})
    mechanism = ComponentWise.from_p_max(RandomizedResponse, (4, 4), 0.6)
    tables = CorrectedTables(report(data, mechanism, rng=default_rng(1)), mechanism)
    oracle = PlainOracle(tables, ChiSquared(1e-3))
    assert not oracle.separates(0, 1, ())
    assert search(oracle, data.variables).graph.skeleton == {frozenset("ab")}


def test_too_many_cells_and_no_reports_are_refused():
    mechanism = ComponentWise.from_epsilon(RandomizedResponse, (10,) * 7, 1.0)
    refused("leave variables out", reconstruct, np.zeros((5, 7), int), mechanism)
    refused("no report", reconstruct, np.zeros((0, 3), int), MECHANISM)
