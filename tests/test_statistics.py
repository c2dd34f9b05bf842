"""Kendall's z against its definition, and its bounds against neighbours that try to break them."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import kendalltau, multinomial, norm

from dpcgd.statistics import KendallP, KendallZ, kendall_p, kendall_z, refusal

STATISTICS = [KendallZ(reach=0.5), KendallZ(reach=0.05), KendallZ(reach=1.5), KendallP()]
ROUNDING = 1 + 1e-12
exactly = settings(derandomize=True, deadline=None, database=None, max_examples=150)
small_tables = arrays(
    np.int64, array_shapes(min_dims=2, max_dims=4, max_side=4), elements=st.integers(0, 3)
)


def weight(n):
    return 9 * n * (n - 1) / (2 * (2 * n + 5))


def sign(number):
    return (number > 0) - (number < 0)


def z_by_definition(table):
    """The sum of w_i tau_i over the root of the sum of w_i, every pair of records looked at."""
    numerator = total = 0
    for stratum in itertools.product(*map(range, table.shape[2:])):
        cells = table[(slice(None), slice(None), *stratum)]
        records = [xy for xy in np.ndindex(*cells.shape) for _ in range(cells[xy])]
        n = len(records)
        pairs = itertools.combinations(records, 2)
        balance = sum(sign(x - v) * sign(y - w) for (x, y), (v, w) in pairs)
        tau_a = balance / (n * (n - 1) / 2) if n > 1 else 0
        numerator += weight(n) * tau_a
        total += weight(n)
    return numerator / math.sqrt(total) if total else 0.0


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12)


@exactly
@given(small_tables)
def test_z_is_its_definition(table):
    assert kendall_z(table) == close(z_by_definition(table))


@pytest.mark.parametrize("empty", [[], [1], [1, 1], [4, 0], [0, 3]])
def test_every_stratum_counts_whatever_it_holds(empty):
    rng = np.random.default_rng(0)
    table = np.zeros((3, 3, 4), int)
    table[..., 2] = rng.integers(5, size=(3, 3))
    table[..., 0] = np.diag([2, 1, 3])
    table[1, : len(empty), 3] = empty
    assert kendall_z(table) == close(z_by_definition(table))


def test_a_constant_stratum_dilutes_z():
    table = np.zeros((2, 2, 2), int)
    table[..., 0] = np.diag([5, 5])
    alone = kendall_z(table)
    table[0, 0, 1] = 10
    assert kendall_z(table) == close(alone / math.sqrt(2))


def test_z_is_the_standardised_tau_of_scipy_without_ties():
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 50, 200):
        x, y = rng.permutation(n), rng.permutation(n)
        table = np.zeros((n, n), int)
        table[x, y] = 1
        tau = kendalltau(x, y).statistic
        z = tau * math.sqrt(9 * n * (n - 1) / (2 * (2 * n + 5)))
        assert kendall_z(table) == pytest.approx(z, rel=1e-9, abs=1e-9)


def test_z_combines_the_taus_of_scipy_over_strata_without_ties():
    rng = np.random.default_rng(2)
    sizes, taus = (5, 20, 12), []
    table = np.zeros((20, 20, 3), int)
    for stratum, n in enumerate(sizes):
        x, y = np.sort(rng.choice(20, n, replace=False)), rng.choice(20, n, replace=False)
        table[x, y, stratum] = 1
        taus.append(kendalltau(x, y).statistic)
    w = [weight(n) for n in sizes]
    z = sum(a * b for a, b in zip(w, taus, strict=True)) / math.sqrt(sum(w))
    assert kendall_z(table) == pytest.approx(z, rel=1e-9)


@exactly
@given(small_tables)
def test_swapping_x_and_y_keeps_z(table):
    assert kendall_z(table.swapaxes(0, 1)) == close(kendall_z(table))


@exactly
@given(small_tables)
def test_reversing_the_levels_of_x_or_y_flips_the_sign_of_z(table):
    z = kendall_z(table)
    assert kendall_z(table[::-1]) == close(-z)
    assert kendall_z(table[:, ::-1]) == close(-z)
    assert kendall_z(table[::-1, ::-1]) == close(z)


@exactly
@given(small_tables, st.integers(0, 2**32 - 1))
def test_the_order_of_strata_and_of_conditioning_variables_does_not_matter(table, seed):
    rng, z = np.random.default_rng(seed), kendall_z(table)
    axes = [0, 1, *(2 + rng.permutation(table.ndim - 2))]
    assert kendall_z(table.transpose(axes)) == close(z)
    for axis in range(2, table.ndim):
        assert kendall_z(rng.permutation(table, axis=axis)) == close(z)
    assert kendall_z(table.reshape(*table.shape[:2], -1)) == close(z)


@exactly
@given(small_tables, st.integers(0, 4), st.integers(0, 4))
def test_levels_that_nobody_has_do_not_matter(table, row, column):
    wider = np.insert(table, min(row, table.shape[0]), 0, axis=0)
    wider = np.insert(wider, min(column, table.shape[1]), 0, axis=1)
    assert kendall_z(wider) == close(kendall_z(table))


@exactly
@given(small_tables)
def test_p_is_the_upper_tail_of_the_absolute_z(table):
    p = kendall_p(table)
    assert p == pytest.approx(norm.sf(abs(kendall_z(table))), rel=1e-12)
    assert 0 <= p <= 0.5


def test_p_of_overwhelming_dependence_is_zero_and_of_none_a_half():
    assert kendall_p(np.diag([10_000, 10_000])) == 0
    assert kendall_p(np.ones((3, 3), int)) == 0.5


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 4), (1, 1), (2, 2, 2, 2)])
def test_nobody_or_one_person_shows_no_dependence(shape):
    assert kendall_z(np.zeros(shape, int)) == 0
    for cell in np.ndindex(*shape):
        table = np.zeros(shape, int)
        table[cell] = 1
        assert kendall_z(table) == 0
        assert kendall_p(table) == 0.5


def test_people_alone_in_their_strata_show_no_dependence():
    table = np.zeros((2, 2, 3), int)
    table[0, 0, 0] = table[1, 1, 1] = table[1, 0, 2] = 1
    assert kendall_z(table) == 0


def test_large_strata_do_not_overflow():
    half = 10**9
    n, balance = 2 * half, half**2
    z = 9 * balance / (2 * n + 5) / math.sqrt(weight(n))
    assert kendall_z(np.diag([half, half])) == close(z)


def test_values_and_lines_are_those_of_z_and_p():
    table = np.array([[40, 10], [15, 35]])
    z, n = kendall_z(table), 100
    assert z > 3
    assert KendallZ(reach=1.5).value(table) == close(z)
    assert KendallZ(reach=1.5).value(table[::-1]) == close(z)
    assert KendallZ(reach=0.1).value(table) == close(0.1 * math.sqrt(n))
    assert KendallP().value(table) == close(-kendall_p(table))
    assert KendallP(alpha=0.05).critical == -0.05
    assert KendallZ(critical=2.5).critical == 2.5


@pytest.mark.parametrize("levels", [(2, 2), (3, 4), (2, 3, 2), (3, 3, 3, 2), (1, 5)])
def test_the_refusal_rule_is_five_records_a_cell(levels):
    cells = math.prod(levels)
    assert refusal(5 * cells, levels) is None
    reason = refusal(5 * cells - 1, levels)
    assert f"{5 * cells - 1} records for {cells} cells" in reason


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_a_refused_test_has_no_sensitivity(statistic):
    assert statistic.sensitivity(60, (2, 3, 2)) > 0
    with pytest.raises(ValueError, match="59 records for 12 cells is fewer than 5 a cell"):
        statistic.sensitivity(59, (2, 3, 2))


@exactly
@given(st.integers(20, 10**7), st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_the_bounds_are_the_formulas_of_the_proof(n, levels):
    levels = tuple(levels)
    assume(refusal(n, levels) is None)
    strata, clip = math.prod(levels[2:]), 0.7 * math.sqrt(n)
    if strata == 1:
        a, b = 18 * (n - 1) / (2 * n + 5) / math.sqrt(weight(n)), 0
        a /= 2 if max(levels[:2]) <= 2 else 1
        assert a < 6 / math.sqrt(n)
    else:
        least = strata * weight(n / strata)
        a, b = (9 if min(levels[:2]) <= 2 else 27 / 2) / math.sqrt(least), 9 / 8 / least
    assert KendallZ(reach=0.7).sensitivity(n, levels) == close(a + b * clip)
    u = np.linspace(0, 5, 20_001)
    moves = norm.pdf(u) * (a + b * u)
    bound = KendallP().sensitivity(n, levels)
    assert moves.max() <= bound * ROUNDING
    assert bound == pytest.approx(moves.max(), rel=1e-6)


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
EVERYTHING = [
    (2, (2, 2)),
    (3, (2, 2)),
    (4, (2, 2)),
    (9, (2, 2)),
    (4, (3, 3)),
    (6, (3, 3)),
    (5, (3, 4)),
    (3, (2, 2, 2)),
    (4, (2, 2, 2)),
    (7, (2, 2, 2)),
    (5, (2, 3, 2)),
    (4, (3, 3, 2)),
    (5, (2, 2, 3)),
    (5, (2, 2, 2, 2)),
]


@pytest.fixture
def nothing_refused(monkeypatch):
    monkeypatch.setattr("dpcgd.statistics.RECORDS_PER_CELL", 0)


@pytest.mark.usefixtures("nothing_refused")
@pytest.mark.parametrize(("n", "levels"), EVERYTHING)
@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_no_neighbours_of_any_tiny_data_set_differ_by_more_than_the_bound(statistic, n, levels):
    change = largest_change(statistic, n, levels)
    assert 0 < change <= statistic.sensitivity(n, levels) * ROUNDING


@pytest.mark.usefixtures("nothing_refused")
def test_the_bound_without_conditioning_is_reached():
    # Four records at (1, 1), (1, 1), (2, 2), (2, 2), a fifth at (0, 3) or (0, 0): S = 0 or 8.
    statistic = KendallZ(reach=1.5)
    assert largest_change(statistic, 5, (3, 4)) == close(statistic.sensitivity(5, (3, 4)))


@pytest.mark.usefixtures("nothing_refused")
@pytest.mark.parametrize("n", [4, 9])
def test_the_bound_for_two_binary_variables_is_reached(n):
    statistic = KendallZ(reach=1.5)
    assert largest_change(statistic, n, (2, 2)) == close(statistic.sensitivity(n, (2, 2)))


@pytest.mark.parametrize("k", [2, 3, 7])
def test_one_person_between_two_flat_crowds_comes_near_the_bound_for_a_binary_variable(k):
    # Everybody else has x = 0, so their own pairs are ties, but for two that keep z above 0.
    n, statistic = 10_000, KendallZ()
    before = np.zeros((2, k, 2), int)
    before[0, 0, 0], before[1, k - 1, 0] = n // 2 - 2, 2 + 1
    before[0, k - 1, 1] = n - before.sum()
    after = moved(before, (1, k - 1, 0), (1, 0, 1))
    bound = statistic.sensitivity(n, (2, k, 2))
    assert 0.95 * bound < abs(statistic.value(after) - statistic.value(before)) <= bound


def moved(table, origin, target):
    other = table.copy()
    other[origin] -= 1
    other[target] += 1
    return other


shapes = st.sampled_from([(2, 2), (3, 2), (3, 3), (2, 2, 2), (3, 2, 2), (2, 3, 2, 2), (2, 2, 5)])


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@settings(exactly, max_examples=40)
@given(st.integers(50, 2000), shapes, st.floats(0.02, 2), st.integers(0, 2**32 - 1))
def test_no_neighbour_of_a_random_table_differs_by_more_than_the_bound(
    statistic, n, levels, evenness, seed
):
    if refusal(n, levels):
        n = 5 * math.prod(levels)
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(math.prod(levels), evenness))
    table = rng.multinomial(n, chances).reshape(levels)
    value, bound = statistic.value(table), statistic.sensitivity(n, levels) * ROUNDING
    for origin in np.argwhere(table):
        for target in np.ndindex(*levels):
            neighbour = moved(table, tuple(origin), target)
            assert abs(statistic.value(neighbour) - value) <= bound


def crowds(n, surplus, k):
    """Neighbours that differ in a person who leaves one stratum for another.

    She was against everyone in a concordant crowd and is with everyone in a discordant one. The
    first crowd has `surplus` people more than the second, so that z is just above 0 before.
    """
    first, second = (n - 1 + surplus) // 2, (n - 1 - surplus) // 2
    table = np.zeros((k, k, 2), int)
    steps = np.arange(k - 1)
    np.add.at(table, (1 + np.arange(first) % (k - 1), np.arange(first) % (k - 1), 0), 1)
    table[1 + steps, k - 1 - steps, 1] = np.bincount(np.arange(second) % (k - 1), minlength=k - 1)
    table[0, k - 1, 0] = 1
    assert table.sum() == n
    return table, moved(table, (0, k - 1, 0), (0, 0, 1))


def crowd_change(statistic, n, surplus, k):
    before, after = crowds(n, surplus, k)
    return abs(statistic.value(after) - statistic.value(before))


def test_one_person_between_two_crowds_comes_near_the_bound():
    # 31 levels: 2 * 31 * 31 cells are the most that 10,000 records may have. Ties in the crowds
    # cost 27/4 (1 - 1/90) instead of 27/4, and 0.25 of the bound 9.25 is for a z at the clip.
    statistic, n = KendallZ(), 10_000
    bound = statistic.sensitivity(n, (31, 31, 2))
    assert 0.9 * bound < crowd_change(statistic, n, 7, 31) <= bound


@pytest.mark.parametrize("k", [3, 6, 31])
@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_no_two_crowds_exceed_the_bound(statistic, k):
    n = 10_000
    bound = statistic.sensitivity(n, (k, k, 2))
    surpluses = [*range(1, 60, 2), *range(101, n - 1, 400)]
    assert max(crowd_change(statistic, n, s, k) for s in surpluses) <= bound


@pytest.mark.parametrize("published", [9 / 2, 6])
def test_the_published_bounds_are_exceeded_by_one_person_between_two_crowds(published):
    # 9/2 is the constant of Priv-PC's Theorem 3, 6 that of its code: both too small.
    n = 10_000
    assert crowd_change(KendallZ(), n, 7, 31) > 1.3 * published / math.sqrt(n)


def test_the_published_bound_is_exceeded_without_conditioning():
    n = 10_001
    table = np.zeros((3, 3), int)
    table[1, 1], table[2, 2] = 9_000, 1_000
    table[0, 2] = 1
    statistic = KendallZ()
    change = abs(statistic.value(moved(table, (0, 2), (0, 0))) - statistic.value(table))
    assert 9 / 2 / math.sqrt(n) < change <= statistic.sensitivity(n, (3, 3))


def coins_deviation(n, chance):
    """Null deviation of z for two independent coins: ties make it smaller than 1."""
    q = chance * (1 - chance)
    variance_of_balance = 2 * n * (n - 1) * q * q + n * (n - 1) * (n - 2) * q * q
    return 9 * math.sqrt(variance_of_balance / weight(n)) / (2 * n + 5)


@pytest.mark.parametrize("chance", [0.5, 0.05])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_the_null_deviation_of_two_coins_is_exact(n, chance):
    law = multinomial(n, np.outer([chance, 1 - chance], [chance, 1 - chance]).ravel())
    squares = [
        law.pmf(cells) * kendall_z(np.reshape(cells, (2, 2))) ** 2
        for cells in itertools.product(range(n + 1), repeat=4)
        if sum(cells) == n
    ]
    assert math.sqrt(sum(squares)) == pytest.approx(coins_deviation(n, chance), rel=1e-9)


@pytest.mark.parametrize(("chance", "near"), [(0.5, 0.75), (0.05, 0.1425)])
def test_z_of_independent_coins_is_less_spread_than_a_normal(chance, near):
    # The deviation of 20,000 draws has relative standard error 1/200; eight of them are allowed,
    # a false alarm with probability about 2e-15 each.
    n, draws = 1000, 20_000
    cells = np.outer([chance, 1 - chance], [chance, 1 - chance]).ravel()
    rng = np.random.default_rng(0)
    tables = rng.multinomial(n, cells, size=draws).reshape(draws, 2, 2)
    spread = np.std([kendall_z(table) for table in tables])
    assert coins_deviation(n, chance) == pytest.approx(near, rel=0.002)
    assert spread == pytest.approx(coins_deviation(n, chance), rel=0.04)
