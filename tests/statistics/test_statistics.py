"""Every statistic against its definition, every bound against neighbours that try to break it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dpcgd_book.attacks.sensitivity_attack import every_neighbour, sensitivity_search
from extremes import MOST
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from known_tables import OnlyCounts, records
from people import refused
from scipy.stats import chi2, chi2_contingency, norm

from dpcgd import load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counted
from dpcgd.statistics import (
    categorical_statistics as categorical,
    many_tables as many,
    moment_matrices as matrices,
    rank_statistics as ranks,
)
from dpcgd.statistics.categorical_statistics import AdjustedChiSquared, ChiSquared, GTest
from dpcgd.statistics.moment_matrices import PartialCorrelation, clipped_gram, second_moments
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanP, SpearmanZ
from dpcgd.statistics.statistic import alone, distance_below, in_sensitivities, refusal

STATISTICS = [KendallZ(), KendallP(), SpearmanZ(), GTest(), ChiSquared(), PartialCorrelation()]
every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda each: each.name)
ROUNDING = 1 + 1e-12
exactly = settings(derandomize=True, database=None, max_examples=150)
shapes = array_shapes(min_dims=2, max_dims=4, max_side=4)
small_tables = arrays(np.int64, shapes, elements=st.integers(0, 3))


def weight(n):
    return 9 * n * (n - 1) / (2 * (2 * n + 5))


def sign(number):
    return (number > 0) - (number < 0)


def strata(table):
    """The table of x and y in each stratum."""
    for stratum in itertools.product(*map(range, table.shape[2:])):
        yield table[(slice(None), slice(None), *stratum)]


def records_of(table):
    """The records that a table counts, one a row."""
    return [cell for cell in np.ndindex(*table.shape) for _ in range(table[cell])]


def pooled(table, weighted):
    """The sum of w_i r_i over the root of the sum of w_i: a weight and a number a stratum."""
    known = [weighted(records_of(cells)) for cells in strata(table)]
    total = sum(weight for weight, _ in known)
    return sum(weight * number for weight, number in known) / math.sqrt(total) if total else 0.0


def tau(records):
    """Kendall's tau_a, every pair of records looked at."""
    n, pairs = len(records), itertools.combinations(records, 2)
    balance = sum(sign(x - v) * sign(y - w) for (x, y), (v, w) in pairs)
    return weight(n), balance / (n * (n - 1) / 2) if n > 1 else 0


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@exactly
@given(small_tables)
def test_z_and_p_are_their_definitions(table):
    z = pooled(table, tau)
    assert ranks.kendall_z(table) == close(z)
    assert KendallZ().value(table) == close(abs(z))
    assert ranks.kendall_p(table) == close(norm.sf(abs(z))) == -KendallP().value(table)


@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (2, 3, 2), (3, 3, 3, 2), (1, 5)])
def test_the_refusal_rule_is_five_records_a_cell(levels):
    cells = math.prod(levels)
    assert refusal(5 * cells, levels) is None
    assert f"{5 * cells - 1} records for {cells} cells" in refusal(5 * cells - 1, levels)


def twice_the_mean_rank(values):
    """Records below minus records above each: an offset and a factor from its mid-rank."""
    return [sum(sign(own - other) for other in values) for own in values]


def rho(records):
    """Spearman's rho of mid-ranks, from signs of pairs; its weight is n - 1."""
    if (n := len(records)) < 2:
        return 0, 0
    x, y = (twice_the_mean_rank(column) for column in zip(*records, strict=True))
    product = sum(a * b for a, b in zip(x, y, strict=True)) / 4  # of centred mid-ranks
    return n - 1, 12 * product / (n**3 - n)


@exactly
@given(small_tables)
def test_spearman_z_is_its_definition(table):
    z = pooled(table, rho)
    assert ranks.spearman_z(table) == close(z)
    assert SpearmanZ().value(table) == close(abs(z))


def of_scipy(table, **how):
    """A statistic of scipy added up over strata, without the levels that nobody there has."""
    total = 0.0
    for cells in strata(table):
        kept = cells[cells.any(axis=1)][:, cells.any(axis=0)]
        if kept.size:
            total += chi2_contingency(kept, correction=False, **how).statistic
    return total


@exactly
@given(small_tables)
def test_g_and_chi_squared_are_those_of_scipy_added_over_strata(table):
    g = of_scipy(table, lambda_="log-likelihood")
    assert 0 <= categorical.g_statistic(table) == pytest.approx(g, rel=1e-9, abs=1e-9)
    assert categorical.chi_squared(table) == pytest.approx(of_scipy(table), rel=1e-9, abs=1e-9)


def p_of(statistic, table):
    return float(statistic.p_values(alone(table))[0])


@pytest.mark.parametrize("alpha", [1e-3, 0.2])
@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (3, 2, 2, 3), (2, 2, 5), (1, 4)])
def test_the_values_of_g_and_chi_squared_are_above_zero_where_the_test_rejects(levels, alpha):
    table = np.random.default_rng(0).integers(9, size=levels)
    freedom = (levels[0] - 1) * (levels[1] - 1) * math.prod(levels[2:])
    critical = chi2.isf(alpha, max(1, freedom))
    g = categorical.g_statistic(table)
    assert GTest(alpha).value(table) == close(g - critical)
    assert ChiSquared(alpha).value(table) == close(categorical.chi_squared(table) - critical)
    assert GTest(alpha).critical == ChiSquared(alpha).critical == 0
    assert p_of(GTest(alpha), table) == close(chi2.sf(g, max(1, freedom)))
    assert (p_of(ChiSquared(alpha), table) < alpha) == (ChiSquared(alpha).value(table) > 0)


@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (3, 2, 2), (2, 1)])
def test_levels_that_do_not_occur_change_nothing_where_degrees_of_freedom_are_adjusted(levels):
    table = np.random.default_rng(1).integers(1, 9, size=levels)
    wide = np.zeros([of + 2 for of in levels], int)
    wide[tuple(slice(of) for of in levels)] = table
    adjusted, public = AdjustedChiSquared(0.05), ChiSquared(0.05)
    assert adjusted.value(wide) == close(adjusted.value(table)) == close(public.value(table))
    assert p_of(adjusted, wide) == close(p_of(public, table))
    assert adjusted.value(np.zeros_like(wide)) < 0


def partial_by_regression(table):
    """Correlation of what least squares leaves of x and y, one row a record; 0 if nothing is."""
    records = np.array(records_of(table), float)
    others = np.column_stack([np.ones(len(records)), records[:, 2:]])
    slopes = np.linalg.lstsq(others, records[:, :2], rcond=None)[0]
    x, y = (records[:, :2] - others @ slopes).T
    if min(x @ x, y @ y) < 1e-9:
        return 0.0
    return x @ y / math.sqrt((x @ x) * (y @ y))


@exactly
@given(small_tables)
def test_partial_correlation_is_that_of_the_residuals_of_least_squares(table):
    assume(table.any())
    expected = partial_by_regression(table)
    assert matrices.partial_correlation(table) == pytest.approx(expected, abs=1e-7)
    assert PartialCorrelation().value(table) == abs(matrices.partial_correlation(table)) <= 1


@every_statistic
def test_a_refused_test_has_no_sensitivity(statistic):
    assert statistic.proved
    assert statistic.sensitivity(60, (2, 3, 2)) > 0
    refused("59 records for 12 cells is fewer than 5 a cell", statistic.sensitivity, 59, (2, 3, 2))


@pytest.mark.parametrize("levels", [(2, 2), (3, 2, 2)])
def test_no_p_value_moves_by_more_than_the_bound_for_z_allows_anywhere(levels):
    z, p = (statistic.sensitivity(500, levels) for statistic in (KendallZ(), KendallP()))
    starts = np.linspace(0, 30, 10_001)
    moves = norm.sf(starts) - norm.sf(starts + z)
    assert moves.max() == close(p)
    assert moves.argmax() == 0


# n > K in each case, so that the public W_min = K w(n / K) is positive.
EVERYTHING = {
    (2, 2): (2, 3, 4, 9),
    (3, 3): (4, 6),
    (3, 4): (5,),
    (2, 2, 2): (3, 4, 7),
    (2, 3, 2): (5,),
    (3, 3, 2): (4,),
    (2, 2, 3): (5,),
    (2, 2, 2, 2): (5,),
}


@pytest.mark.slow
@every_statistic
@pytest.mark.parametrize("levels", EVERYTHING)
def test_no_tiny_neighbours_differ_by_more_than_the_bound(statistic, levels, monkeypatch):
    monkeypatch.setattr("dpcgd.statistics.statistic.refusal", lambda n, levels: None)
    for n in EVERYTHING[levels]:
        bound = statistic.sensitivity(n, levels)
        assert 0 < every_neighbour(statistic.value, n, levels).change <= bound * ROUNDING


SHAPES = [(2, 2), (3, 3), (2, 2, 2), (2, 3, 2), (3, 3, 3), (2, 3, 2, 2), (2, 2, 5)]


@pytest.mark.slow
@every_statistic
@pytest.mark.parametrize("levels", SHAPES, ids=str)
@pytest.mark.parametrize("n", [1000, 100_000])
def test_no_climber_finds_neighbours_that_differ_by_more_than_the_bound(statistic, n, levels):
    rng = np.random.default_rng(0)
    found = sensitivity_search(statistic.value, n, levels, pairs=6_000, rng=rng)
    assert found.change <= statistic.sensitivity(n, levels) * ROUNDING


def moved_in(others, cell, by=1):
    table = others.copy()
    table[cell] += by
    return table


def moved(table, origin, target):
    return moved_in(moved_in(table, origin, -1), target)


def change_of(statistic, before, after):
    assert before.sum() == after.sum()
    assert abs(before - after).sum() == 2
    return abs(statistic.value(after) - statistic.value(before))


def record_around_a_crowd(n):
    """n - 1 records in concordance, and one that disagrees or agrees with all of them."""
    table = np.zeros((3, 4), int)
    table[1, 1], table[2, 2] = n // 2, n - n // 2 - 1
    return moved_in(table, (0, 3)), moved_in(table, (0, 0))


def one_apart(n, levels=(2, 2)):
    """Everyone at the same place but one, who differs in both variables or in one."""
    others = np.zeros(levels, int)
    others.flat[-1] = n - 1
    _, *last = (k - 1 for k in levels)
    return moved_in(others, (0, 0, *last[1:])), moved_in(others, (0, *last))


WIDER = (2, 2), (2, 5), (4, 2, 3), (2, 2, 2, 2)
REACHED = {
    (KendallZ(), SpearmanZ()): [record_around_a_crowd(n) for n in (60, 1001, 100_000)],
    (KendallZ(), SpearmanZ(), ChiSquared()): [one_apart(n) for n in (20, 100_000)],
    (ChiSquared(), PartialCorrelation()): [one_apart(100_000, levels) for levels in WIDER],
}


CASES = [(kind, *pair) for some, pairs in REACHED.items() for kind in some for pair in pairs]


@pytest.mark.parametrize(("statistic", "before", "after"), CASES)
def test_these_neighbours_reach_the_bound(statistic, before, after):
    bound = statistic.sensitivity(int(before.sum()), before.shape)
    assert change_of(statistic, before, after) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("n", [1001, 100_000])
def test_one_person_between_two_halves_moves_g_as_far_as_its_bound(n):
    crowds = np.zeros((3, 3), int)
    crowds[0, 1], crowds[1, 0] = n // 2, n - n // 2 - 1
    change = change_of(GTest(), moved_in(crowds, (2, 2)), moved_in(crowds, (0, 0)))
    bound = GTest().sensitivity(n, (3, 3))
    assert bound * (1 - 1e-9) <= change <= bound * (1 + 1e-10)  # exact for an odd n
    assert change_of(GTest(), *one_apart(n)) == pytest.approx(2 * (1 + math.log(n)), rel=1e-3)


def crowds(n, surplus, k):
    """Neighbours that differ in a person who leaves one stratum for another.

    She was against everyone in a concordant crowd and is with everyone in a discordant one. The
    first crowd has `surplus` people more than the second, so that z is just above 0 before.
    """
    first, second = (n - 1 + surplus) // 2, (n - 1 - surplus) // 2
    table = np.zeros((k, k, 2), int)
    steps = np.arange(k - 1)
    table[1 + steps, steps, 0] = np.bincount(np.arange(first) % (k - 1), minlength=k - 1)
    table[1 + steps, k - 1 - steps, 1] = np.bincount(np.arange(second) % (k - 1), minlength=k - 1)
    table[0, k - 1, 0] = 1
    assert table.sum() == n
    return table, moved(table, (0, k - 1, 0), (0, 0, 1))


@pytest.mark.parametrize("k", [3, 6, 31])
@pytest.mark.parametrize("statistic", [KendallZ(), SpearmanZ()], ids=repr)
def test_one_person_between_two_crowds_comes_near_the_bound_and_not_beyond(statistic, k):
    n = 100_000
    bound = statistic.sensitivity(n, (k, k, 2))
    surpluses = [*range(1, 60, 2), *range(101, n - 1, 4_000)]
    found = max(change_of(statistic, *crowds(n, surplus, k)) for surplus in surpluses)
    assert 0.999 * bound < found <= bound


def test_a_replaced_record_moves_a_table_by_its_constants():
    rng = np.random.default_rng(0)
    for levels in [(2,), (3, 4), (2, 2, 2)]:
        table = rng.integers(1, 9, size=levels)
        pairs = itertools.product(np.ndindex(*levels), repeat=2)
        moves = [(moved(table, *pair) - table).ravel() for pair in pairs]
        assert max(np.linalg.norm(move, 1) for move in moves) == ranks.TABLE_L1 == 2
        assert max(np.linalg.norm(move, 2) for move in moves) == ranks.TABLE_L2 == math.sqrt(2)


def test_gram_matrices_and_second_moments_are_their_definitions():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 4)) * rng.choice([0.01, 0.1, 1, 10], size=(30, 1))
    gram, moments = np.zeros((4, 4)), np.zeros((5, 5))
    for row in rows:
        row = row * min(1, 1.5 / math.hypot(*row))
        gram += np.outer(row, row) / 30
        moments += np.outer([1, *row], [1, *row]) / 30
    assert clipped_gram(rows, bound=1.5) == pytest.approx(gram, rel=1e-12, abs=1e-15)
    assert second_moments(rows, bound=1.5) == pytest.approx(moments, rel=1e-12, abs=1e-15)


def upper(matrix):
    return matrix[np.triu_indices(len(matrix))]


@exactly
@given(st.integers(1, 20), st.integers(1, 4), st.floats(0.1, 10), st.integers(0, 2**32 - 1))
def test_no_replaced_row_moves_a_gram_matrix_by_more_than_its_bound(n, d, bound, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * 10 ** rng.uniform(-3, 3, size=(n, 1))
    other = rows.copy()
    other[rng.integers(n)] = rng.normal(size=d) * 10 ** rng.uniform(-3, 3)
    move = clipped_gram(rows, bound=bound) - clipped_gram(other, bound=bound)
    allowed = matrices.gram_sensitivity(n, bound=bound) * (1 + 1e-9)
    assert np.linalg.norm(upper(move)) <= np.linalg.norm(move) <= allowed


def test_orthogonal_rows_of_full_norm_reach_the_bound_of_a_gram_matrix():
    rows, other = np.array([[3.0, 0.0], [1.0, -2.0]]), np.array([[0.0, 4.0], [1.0, -2.0]])
    move = upper(clipped_gram(rows, bound=3.0) - clipped_gram(other, bound=3.0))
    assert np.linalg.norm(move) == close(matrices.gram_sensitivity(2, bound=3.0))


bounds, seeds = st.sampled_from([0.5, 1.0, 1.7, 3.0]), st.integers(0, 2**32 - 1)


@given(st.integers(1, 5), st.integers(1, 6), bounds, seeds)
def test_no_replaced_row_moves_second_moments_by_more_than_their_bound(n, d, bound, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1, 1, 0, rng.uniform()], (n, d))
    other = rows.copy()
    other[0] = rng.choice([-1, 1, 0, rng.uniform()], d)
    move = upper(second_moments(rows, bound=bound) - second_moments(other, bound=bound))
    most = matrices.second_moments_sensitivity(n, d, bound=bound)
    assert np.linalg.norm(move) <= most * (1 + 1e-9)


@pytest.mark.parametrize("d", [1, 3, 11])
def test_signs_that_cancel_reach_the_bound_of_second_moments(d):
    rows = np.ones((10, d))
    other = rows.copy()
    other[0, : (d + 1) // 2] = -1
    move = upper(second_moments(rows, bound=math.sqrt(d)) - second_moments(other, bound=9.0))
    bound = matrices.second_moments_sensitivity(10, d, bound=math.sqrt(d))
    assert np.linalg.norm(move) == pytest.approx(bound, rel=1e-12)


# --- the ends of double precision


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_critical_values_and_levels_are_numbers(bad):
    for kind in (KendallZ, SpearmanZ, PartialCorrelation):
        refused("critical must be a finite number", kind, critical=bad)
    for kind in (KendallP, GTest, ChiSquared):
        for alpha in (bad, 0.0, 1.0):
            refused("alpha must be a significance level", kind, alpha=alpha)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_large_counts_do_not_leave_the_integers():
    crowd = 5 * 10**9
    table, fewer = (np.diag([n, n]) for n in (crowd, crowd // 10**3))
    for z in (ranks.kendall_z, ranks.spearman_z):
        assert z(table) == pytest.approx(z(fewer) * math.sqrt(1e3), rel=1e-6)
    assert categorical.chi_squared(table) == pytest.approx(2 * crowd)
    assert categorical.g_statistic(table) == pytest.approx(2 * categorical.g_statistic(table // 2))
    assert matrices.partial_correlation(table) == pytest.approx(1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-200])
def test_rows_and_their_bound(bad):
    rows = np.array([[1e200, 1.0], [0.5, 0.5], [0.0, 0.0]])
    assert np.isfinite(clipped_gram(rows, bound=1.0)).all()
    refused("bound must lie between", clipped_gram, rows, bound=bad)


# --- many tables at once

COMPILED = [*STATISTICS[:-1], SpearmanP(), AdjustedChiSquared()]


def counted(tables):
    sizes = [table.size for table in tables]
    flat = np.concatenate([table.ravel() for table in tables])
    return Counted(flat, np.cumsum([0, *sizes]), np.array([table.shape for table in tables]))


def drawn_table(rng, strata, scale):
    """A table of random shape, with empty levels and empty strata."""
    shape = (*rng.integers(1, 6, 2), *rng.integers(1, 4, strata))
    return rng.poisson(scale * rng.random(shape) * (rng.random(shape) < 0.7)).astype(np.int64)


@pytest.mark.parametrize("statistic", COMPILED, ids=lambda statistic: statistic.name)
@settings(exactly, max_examples=100)
@given(st.integers(0, 3), st.sampled_from([0.0, 1.0, 30.0, 1e4, 1e6]), st.integers(0, 2**32 - 1))
def test_many_tables_give_what_each_gives(statistic, strata, scale, seed):
    rng = np.random.default_rng(seed)
    tables = [drawn_table(rng, strata, scale) for _ in range(5)]
    expected = [statistic.value(table) for table in tables]
    assert statistic.values(counted(tables)).tolist() == expected


def test_nearness_is_the_p_value_or_minus_the_statistic():
    tables = Tables(load("asia", n=2000, rng=np.random.default_rng(0)))
    asked = np.array([[0, 1, 2], [3, 5, 1], [2, 7, 4]])
    for statistic in COMPILED:
        of_one = getattr(statistic, "p_values", lambda table, s=statistic: -s.values(table))
        expected = [of_one(alone(tables.counts(tested)))[0] for tested in asked.tolist()]
        assert many.nearnesses_of(statistic, tables, asked).tolist() == expected


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


@pytest.mark.parametrize("statistic", [Halved(), Flat()])
def test_a_new_definition_for_one_table_holds_for_many(statistic):
    tables = Tables(load("asia", n=500, rng=np.random.default_rng(0)))
    assert not many.are_compiled(statistic, tables)
    asked = [[0, 1], [2, 3]]
    expected = [statistic.value(tables.counts(of)) for of in asked]
    assert many.values_of(statistic, tables, asked).tolist() == expected
    assert many.value_of(statistic, tables, asked[1]) == expected[1]


def test_tables_that_only_count_are_asked_one_by_one():
    tables = Tables(load("asia", n=500, rng=np.random.default_rng(0)))
    assert many.are_compiled(KendallP(), tables)
    assert not many.are_compiled(KendallP(), OnlyCounts(tables))
    asked = [[0, 1], [2, 3]]
    found = many.values_of(KendallP(), OnlyCounts(tables), asked)
    np.testing.assert_allclose(many.values_of(KendallP(), tables, asked), found, rtol=1e-12)
    assert many.values_of(KendallP(), tables, np.empty((0, 3), np.int64)).shape == (0,)


def test_public_facts_allow_what_is_not_refused():
    tables = Tables(records(np.zeros((100, 4), int), (2, 3, 4, 5)))
    asked = np.array([[0, 1, 2], [1, 2, 3], [0, 2, 1], [0, 1, 3], [3, 2, 0]])
    expected = [refusal(100, tables.shape(tested)) is None for tested in asked.tolist()]
    found = many.where_allowed(many.values_of, KendallZ(), tables, asked)
    assert np.isfinite(found).tolist() == expected


def test_distances_in_sensitivities_are_numbers_in_any_case():
    distances = np.array([1.0, -1.0, 0.0, 2.0, -3.0, 1e300, -1e300])
    sensitivities = np.array([0.25, 0.0, 0.0, 0.0, 2.0, 1e-300, 1e-300])
    expected = [4.0, -MOST, 0.0, MOST, -1.5, MOST, -MOST]
    assert list(map(in_sensitivities, distances, sensitivities)) == expected


def test_a_large_threshold_does_not_round_the_statistic_away():
    for critical, margin in itertools.product([0.0, 1e3, 8.2e17, 1e300], [-1e300, -1e18, 0.0, 7.0]):
        below = [distance_below(critical, value, 0.03, margin, 1e4) for value in (63.99, 64.0)]
        assert below[0] - below[1] == pytest.approx(1 / 3, rel=1e-8)


@pytest.mark.parametrize("statistic", [*COMPILED, ChiSquared(1 - 2**-53), GTest(1 - 2**-53)])
def test_a_variable_of_one_level_gives_one_value_whatever_was_counted(statistic):
    tables = [np.array([[k, 800_000_003 - k]]) for k in range(300_000_000, 300_000_040)]
    assert len({statistic.value(each) for each in tables}) == 1


@pytest.mark.parametrize(("n", "many"), [(10**9, 1000), (10**7, 100_000)])
def test_rounding_does_not_add_up_over_strata(n, many):
    """A first stratum takes the sum of z near a power of two; all others cancel in pairs."""
    power = 2.0 ** math.floor(math.log2(n / 4))
    half = round(power * 4 / 9)
    table = np.zeros((2, 2, many), np.int64)
    table[:, :, 0] = np.diag([half, half])
    table[0, 0, 1::2] = table[1, 1, 1::2] = table[0, 1, 2::2] = table[1, 0, 2::2] = 7
    sizes = table.sum(axis=(0, 1)).tolist()
    turned = [
        math.prod(np.diag(t).tolist()) - math.prod(np.diag(t[::-1]).tolist()) for t in table.T
    ]
    exact = sum(Fraction(9 * s, 2 * m + 5) for s, m in zip(turned, sizes, strict=True))
    total = sum(Fraction(9 * m * (m - 1), 2 * (2 * m + 5)) for m in sizes)
    assert ranks.kendall_z(table) == pytest.approx(float(exact) / math.sqrt(total), rel=1e-15)
