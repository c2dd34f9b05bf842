"""Every statistic against its definition, every bound against neighbours that try to break it."""

import functools
import itertools
import math

import numpy as np
import pytest
from extremes import MOST
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from known_tables import OnlyCounts
from scipy.stats import chi2, chi2_contingency, norm, rankdata

from dpcgd import Dataset, load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.counts import Counted
from dpcgd.statistics import categorical_statistics as categorical
from dpcgd.statistics import many_tables
from dpcgd.statistics import moment_matrices as moments
from dpcgd.statistics import rank_statistics as ranks
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest, chi_squared, g_statistic
from dpcgd.statistics.many_tables import are_compiled, nearnesses_of, values_of
from dpcgd.statistics.moment_matrices import PartialCorrelation, clipped_gram, second_moments
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ
from dpcgd.statistics.statistic import alone, in_sensitivities, refusal

STATISTICS = [KendallZ(), KendallP(), SpearmanZ(), GTest(), ChiSquared(), PartialCorrelation()]
every_statistic = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda each: each.name)
ROUNDING = 1 + 1e-12
exactly = settings(derandomize=True, database=None, max_examples=150)
small_tables = arrays(
    np.int64, array_shapes(min_dims=2, max_dims=4, max_side=4), elements=st.integers(0, 3)
)


def weight(n):
    return 9 * n * (n - 1) / (2 * (2 * n + 5))


def strata(table):
    """The table of x and y in each stratum."""
    for stratum in itertools.product(*map(range, table.shape[2:])):
        yield table[(slice(None), slice(None), *stratum)]


def records_of(table):
    """The records that a table counts, one a row."""
    return [cell for cell in np.ndindex(*table.shape) for _ in range(table[cell])]


def averaged(table, weight, coefficient):
    """The sum of w_i c_i over the root of the sum of w_i, for the records of each stratum."""
    groups = [records_of(cells) for cells in strata(table)]
    weights = [weight(len(records)) for records in groups]
    products = (w * coefficient(records) for w, records in zip(weights, groups, strict=True) if w)
    return sum(products) / math.sqrt(sum(weights)) if any(weights) else 0.0


def tau_by_definition(records):
    """Every pair of records looked at, twice."""
    x, y = np.array(records).T
    balance = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    return balance.sum() / (len(records) * (len(records) - 1))


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@exactly
@given(small_tables)
def test_z_and_p_are_their_definitions(table):
    z = averaged(table, weight, tau_by_definition)
    assert ranks.kendall_z(table) == close(z)
    assert KendallZ().value(table) == close(abs(z))
    assert ranks.kendall_p(table) == close(norm.sf(abs(z))) == -KendallP().value(table)


@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (2, 3, 2), (3, 3, 3, 2), (1, 5)])
def test_the_refusal_rule_is_five_records_a_cell(levels):
    cells = math.prod(levels)
    assert refusal(5 * cells, levels) is None
    assert f"{5 * cells - 1} records for {cells} cells" in refusal(5 * cells - 1, levels)


def rho_by_definition(records):
    """From centred mid-ranks."""
    x, y = rankdata(records, axis=0).T - (len(records) + 1) / 2
    return 12 * (x @ y) / (len(records) ** 3 - len(records))


@exactly
@given(small_tables)
def test_spearman_z_is_its_definition(table):
    z = averaged(table, lambda n: max(0, n - 1), rho_by_definition)
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
    assert g_statistic(table) == pytest.approx(g, rel=1e-9, abs=1e-9)
    assert g_statistic(table) >= 0
    assert chi_squared(table) == pytest.approx(of_scipy(table), rel=1e-9, abs=1e-9)


def p_of(statistic, table):
    return float(statistic.p_values(alone(table))[0])


@pytest.mark.parametrize("alpha", [1e-3, 0.2])
@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (3, 2, 2, 3), (2, 2, 5), (1, 4)])
def test_the_values_of_g_and_chi_squared_are_above_zero_where_the_test_rejects(levels, alpha):
    table = np.random.default_rng(0).integers(9, size=levels)
    freedom = (levels[0] - 1) * (levels[1] - 1) * math.prod(levels[2:])
    critical = chi2.isf(alpha, max(1, freedom))
    assert GTest(alpha).value(table) == close(g_statistic(table) - critical)
    assert ChiSquared(alpha).value(table) == close(chi_squared(table) - critical)
    assert GTest(alpha).critical == ChiSquared(alpha).critical == 0
    assert p_of(GTest(alpha), table) == close(chi2.sf(g_statistic(table), max(1, freedom)))
    assert (p_of(ChiSquared(alpha), table) < alpha) == (ChiSquared(alpha).value(table) > 0)


@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (3, 2, 2), (2, 1)])
def test_levels_that_do_not_occur_change_nothing_where_degrees_of_freedom_are_adjusted(levels):
    table = np.random.default_rng(1).integers(1, 9, size=levels)
    wide = np.zeros([of + 2 for of in levels], int)
    wide[tuple(slice(of) for of in levels)] = table
    adjusted, public = categorical.AdjustedChiSquared(0.05), ChiSquared(0.05)
    assert adjusted.value(wide) == close(adjusted.value(table)) == close(public.value(table))
    assert p_of(adjusted, wide) == close(p_of(public, table))
    assert adjusted.value(np.zeros_like(wide)) < 0


def partial_by_regression(table):
    """Correlation of what least squares leaves of x and y, one row a record; 0 if nothing is."""
    records = np.array(records_of(table), float)
    others = np.column_stack([np.ones(len(records)), records[:, 2:]])
    x, y = (records[:, :2] - others @ np.linalg.lstsq(others, records[:, :2])[0]).T
    return x @ y / math.sqrt((x @ x) * (y @ y)) if min(x @ x, y @ y) >= 1e-9 else 0.0


@exactly
@given(small_tables)
def test_partial_correlation_is_that_of_the_residuals_of_least_squares(table):
    assume(table.any())
    expected = partial_by_regression(table)
    assert moments.partial_correlation(table) == pytest.approx(expected, abs=1e-7)
    assert PartialCorrelation().value(table) == abs(moments.partial_correlation(table)) <= 1


@every_statistic
def test_a_refused_test_has_no_sensitivity(statistic):
    assert statistic.proved
    assert statistic.sensitivity(60, (2, 3, 2)) > 0
    with pytest.raises(ValueError, match="59 records for 12 cells is fewer than 5 a cell"):
        statistic.sensitivity(59, (2, 3, 2))


@pytest.mark.parametrize("levels", [(2, 2), (3, 2, 2)])
def test_no_p_value_moves_by_more_than_the_bound_for_z_allows_anywhere(levels):
    z, p = (statistic.sensitivity(500, levels) for statistic in (KendallZ(), KendallP()))
    starts = np.linspace(0, 30, 10_001)
    moves = norm.sf(starts) - norm.sf(starts + z)
    assert moves.max() == close(p)
    assert moves.argmax() == 0


def largest_change(statistic, n, levels):
    """The most a replaced record changes a statistic, over all data sets of n records."""
    cells = math.prod(levels)

    @functools.cache
    def value(records):
        return statistic.value(np.bincount(records, minlength=cells).reshape(levels))

    worst = 0.0
    for others in itertools.combinations_with_replacement(range(cells), n - 1):
        values = [value(tuple(sorted((*others, cell)))) for cell in range(cells)]
        worst = max(worst, max(values) - min(values))
    return worst


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
def test_no_neighbours_of_any_tiny_data_set_differ_by_more_than_the_bound(
    statistic, levels, monkeypatch
):
    monkeypatch.setattr("dpcgd.statistics.statistic.refusal", lambda n, levels: None)
    for n in EVERYTHING[levels]:
        bound = statistic.sensitivity(n, levels)
        assert 0 < largest_change(statistic, n, levels) <= bound * ROUNDING


def moved_in(others, cell, records=1):
    table = others.copy()
    table[cell] += records
    return table


def moved(table, origin, target):
    return moved_in(moved_in(table, origin, -1), target)


def change_of(statistic, before, after):
    assert before.sum() == after.sum()
    assert abs(before - after).sum() == 2
    return abs(statistic.value(after) - statistic.value(before))


def one_apart(n, levels=(2, 2)):
    """Everyone at the same place but one, who differs in both variables or in one."""
    others = np.zeros(levels, int)
    others.flat[-1] = n - 1
    _, *last = (k - 1 for k in levels)
    return moved_in(others, (0, 0, *last[1:])), moved_in(others, (0, *last))


REACHED = {
    (KendallZ(), SpearmanZ(), ChiSquared()): [one_apart(n) for n in (20, 100_000)],
    (ChiSquared(), PartialCorrelation()): [
        one_apart(100_000, levels) for levels in ((2, 2), (2, 5), (4, 2, 3), (2, 2, 2, 2))
    ],
}


@pytest.mark.parametrize(
    ("statistic", "before", "after"),
    [(one, *pair) for some, pairs in REACHED.items() for one in some for pair in pairs],
)
def test_these_neighbours_reach_the_bound(statistic, before, after):
    bound = statistic.sensitivity(int(before.sum()), before.shape)
    assert change_of(statistic, before, after) == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("n", [1001, 100_000])
def test_one_person_between_two_halves_moves_g_as_far_as_its_bound(n):
    crowds = np.zeros((3, 3), int)
    crowds[0, 1], crowds[1, 0] = n // 2, n - n // 2 - 1
    change = change_of(GTest(), moved_in(crowds, (2, 2)), moved_in(crowds, (0, 0)))
    bound = GTest().sensitivity(n, (3, 3))
    assert change <= bound * (1 + 1e-10)
    assert change == pytest.approx(bound, rel=1e-9)  # exact for an odd n
    binary = change_of(GTest(), *one_apart(n))
    assert binary == pytest.approx(2 * (1 + math.log(n)), rel=1e-3)


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
    allowed = moments.gram_sensitivity(n, bound=bound) * (1 + 1e-9)
    assert np.linalg.norm(upper(move)) <= np.linalg.norm(move) <= allowed


@pytest.mark.parametrize("d", [1, 3, 11])
def test_signs_that_cancel_reach_the_bound_of_second_moments(d):
    rows = np.ones((10, d))
    other = rows.copy()
    other[0, : (d + 1) // 2] = -1
    move = upper(second_moments(rows, bound=math.sqrt(d)) - second_moments(other, bound=9.0))
    bound = moments.second_moments_sensitivity(10, d, bound=math.sqrt(d))
    assert np.linalg.norm(move) == pytest.approx(bound, rel=1e-12)


# --- the ends of double precision


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_critical_values_and_levels_are_numbers(bad):
    for kind in (KendallZ, SpearmanZ, PartialCorrelation):
        with pytest.raises(ValueError, match="critical must be a finite number"):
            kind(critical=bad)
    for kind in (KendallP, GTest, ChiSquared):
        for alpha in (bad, 0.0, 1.0):
            with pytest.raises(ValueError, match="alpha must be a level"):
                kind(alpha=alpha)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_large_counts_do_not_leave_the_integers():
    crowd = 5 * 10**9
    table, fewer = (np.diag([n, n]) for n in (crowd, crowd // 10**3))
    for z in (ranks.kendall_z, ranks.spearman_z):
        assert z(table) == pytest.approx(z(fewer) * math.sqrt(1e3), rel=1e-6)
    assert chi_squared(table) == pytest.approx(2 * crowd)
    assert g_statistic(table) == pytest.approx(2 * g_statistic(table // 2))
    assert moments.partial_correlation(table) == pytest.approx(1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-200])
def test_rows_and_their_bound(bad):
    rows = np.array([[1e200, 1.0], [0.5, 0.5], [0.0, 0.0]])
    assert np.isfinite(clipped_gram(rows, bound=1.0)).all()
    with pytest.raises(ValueError, match="bound must lie between"):
        clipped_gram(rows, bound=bad)


# --- many tables at once

COMPILED = [*STATISTICS[:-1], ranks.SpearmanP(), categorical.AdjustedChiSquared()]


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
        assert nearnesses_of(statistic, tables, asked).tolist() == expected


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
    assert not are_compiled(statistic, tables)
    asked = [[0, 1], [2, 3]]
    expected = [statistic.value(tables.counts(of)) for of in asked]
    assert values_of(statistic, tables, asked).tolist() == expected
    assert many_tables.value_of(statistic, tables, asked[1]) == expected[1]


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
    expected = [refusal(100, tables.shape(tested)) is None for tested in asked.tolist()]
    found = many_tables.where_allowed(values_of, KendallZ(), tables, asked)
    assert np.isfinite(found).tolist() == expected


def test_distances_in_sensitivities_are_numbers_in_any_case():
    distances = np.array([1.0, -1.0, 0.0, 2.0, -3.0, 1e300, -1e300])
    sensitivities = np.array([0.25, 0.0, 0.0, 0.0, 2.0, 1e-300, 1e-300])
    expected = [4.0, -MOST, 0.0, MOST, -1.5, MOST, -MOST]
    assert list(map(in_sensitivities, distances, sensitivities)) == expected
