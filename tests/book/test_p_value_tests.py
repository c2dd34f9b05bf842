"""Tests of conditional independence against scipy, regressions and exact tails."""

import math

import numpy as np
import pytest
from dpcgd_book.data.samples import load_sample
from dpcgd_book.systems.tests_and_scores import GSquare
from known_tables import records
from refusals import refusals
from scipy.special import logsumexp
from scipy.stats import chi2, norm

from dpcgd import pc
from dpcgd.statistics.categorical_statistics import g_statistic
from dpcgd.statistics.moment_matrices import FisherZ, fisher_z


def test_fisher_z_is_the_test_of_two_residuals():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))
    correlations = np.corrcoef(values.T)
    for x, y, given in [(0, 1, ()), (0, 1, (2,)), (3, 1, (0, 4)), (2, 4, (0, 1, 3))]:
        design = np.column_stack([np.ones(60), values[:, given]])
        left = values[:, [x, y]] - design @ np.linalg.lstsq(design, values[:, [x, y]])[0]
        r = np.corrcoef(left.T)[0, 1]
        p = 2 * norm.sf(abs(np.arctanh(r)) * math.sqrt(60 - len(given) - 3))
        both = fisher_z(correlations, 60, [(x, y, *given), (y, x, *given)])
        assert both == pytest.approx([math.log(p)] * 2, rel=1e-8)


def test_fisher_z_ranks_dependence_where_p_underflows():
    pairs = (np.array([[1, r], [r, 1]]) for r in (0.5, 0.9))
    weak, strong = (fisher_z(pair, 10**6, [(0, 1)])[0] for pair in pairs)
    assert strong < weak < -1000


def test_fisher_z_of_a_copy_and_of_a_determined_variable_is_finite():
    x = np.random.default_rng(2).normal(size=100)
    correlations = np.corrcoef([x, x, np.roll(x, 1)])
    assert -math.inf < fisher_z(correlations, 100, [(0, 1)])[0] < -100
    assert -math.inf < fisher_z(correlations, 100, [(0, 2, 1)])[0] <= 0


def test_g_square_has_the_tail_of_chi_squared():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (900, 3))
    codes[:, 1] = (codes[:, 0] + (rng.random(900) < 0.9) * rng.integers(0, 3, 900)) % 3
    test = GSquare(records(codes, (3, 3, 3)))
    for given, freedom in [((), 4), ((2,), 12)]:
        table = np.zeros((3,) * (2 + len(given)), int)
        np.add.at(table, tuple(codes[:, [0, 1, *given]].T), 1)
        expected = chi2.logsf(g_statistic(table), freedom)
        assert test.log_p(0, 1, given) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("levels", [3, 5, 9])
def test_g_square_goes_on_where_the_tail_underflows(levels):
    x = np.arange(2000) % levels
    test = GSquare(records(np.column_stack([x, x]), (levels, levels)))
    half = g_statistic(np.diag(np.bincount(x))) / 2
    pairs = (levels - 1) ** 2 // 2  # of degrees of freedom: an Erlang tail, term by term
    terms = [k * math.log(half) - half - math.lgamma(k + 1) for k in range(pairs)]
    assert -math.inf < test.log_p(0, 1, ()) < -745
    assert test.log_p(0, 1, ()) == pytest.approx(float(logsumexp(terms)), rel=1e-6)


def test_degrees_of_freedom_are_those_of_the_levels_that_occur():
    # stratum 0: two by three levels occur; stratum 1: two by one; stratum 2: nobody
    rows = [(0, 0, 0), (0, 1, 0), (3, 1, 0), (3, 2, 0), (0, 2, 0), (1, 2, 1), (2, 2, 1)] * 80
    test = GSquare(records(np.array(rows), (4, 4, 3)))
    expected = chi2.logsf(g_statistic(test._tables.counts((0, 1, 2))), 2)
    assert test.log_p(0, 1, (2,)) == pytest.approx(expected, rel=1e-9)
    alone = GSquare(records(np.array([(0, 0), (0, 1)] * 30), (2, 2)))
    assert alone.log_p(0, 1, ()) == 0  # x never varies


def test_g_square_takes_a_table_that_is_too_large_for_dependence():
    test = GSquare(records(np.random.default_rng(4).integers(0, 10, (900, 3)), (10, 10, 10)))
    assert test.log_p(0, 1, (2,)) == -math.inf
    assert test.log_p(0, 1, ()) > -20


@pytest.mark.parametrize("alpha", [0.001, 0.1])
def test_pc_on_codes_has_the_skeleton_of_causal_learn(alpha):
    peer = pytest.importorskip("causallearn.search.ConstraintBased.PC")
    data = load_sample("sachs_icam2").binned(10)
    ours, codes = pc(data, statistic=FisherZ(alpha), max_order=11).graph.arcs, data.codes * 1.0
    theirs = peer.pc(codes, alpha, "fisherz", stable=True, show_progress=False).G.graph
    np.testing.assert_array_equal(ours | ours.T, theirs != 0)


test_too_few_records_and_bad_levels_are_refused_with_their_cure = refusals(
    (lambda: fisher_z(np.eye(4), 5, [(0, 1, 2, 3)]), "cannot condition on 2 variables"),
    (lambda: FisherZ(1), "below 1"),
)
