import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from dpcgd_book.results.known_tables import Counts, blurred_marginals
from exact_pairs import marginals_of
from known_tables import Blind, exact, random_table, records
from moment_audits import audited
from numpy.random import default_rng
from people import refused
from scripted_noise import noting

from dpcgd import Budget, BudgetSpent, load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.moments import interactions
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Moment, exactly, paid
from dpcgd.privacy.budget import ROOM, kept_for_rounding
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise


def farthest(levels, subsets):
    """The largest distance of two records in these interactions."""
    if not subsets:
        return 0.0
    domain = (Tables(records(one, levels)) for one in itertools.product(*map(range, levels)))
    found = [MeasuredMarginals(one, exactly).exact(subsets) for one in domain]
    return max(np.linalg.norm(a - b) for a, b in itertools.product(found, repeat=2))


SHAPES = [(2, 2), (2, 3), (2, 2, 2), (2, 3, 4), (3, 3, 2, 2), (2,) * 5, (1, 2, 3), (1, 1)]


@pytest.mark.parametrize("levels", SHAPES)
def test_sensitivities_are_the_largest_distance_of_two_records(levels):
    variables = tuple(range(len(levels)))
    singles, pairs = ([*itertools.combinations(variables, k)] for k in (1, 2))
    proved = interactions.pairs_sensitivity(levels), interactions.interaction_sensitivity(levels)
    expected = farthest(levels, singles + pairs), farthest(levels, [variables])
    assert proved == pytest.approx(expected, abs=1e-12)


tables_of = cache(Tables)


def measured(data, measure=exactly):
    return MeasuredMarginals(tables_of(data), measure)


def test_all_interactions_without_noise_are_the_table():
    table = random_table((2, 3, 2, 4), 5000, default_rng(0)) + 1
    marginals = exact(table)
    assert np.allclose(marginals.table(0, 1, 2, 3), table / table.sum())
    assert np.allclose(marginals.table(3, 1), table.sum(axis=(0, 2)).T / table.sum())


def test_a_moment_is_the_mean_product_of_contrasts():
    data = load("survey", n=500, rng=default_rng(0))
    marginals = measured(data)
    marginals.measure((0, 3, 1), 1.0)
    of = [interactions.contrasts(data.cardinalities[v])[data.codes[:, v]] for v in (0, 1, 3)]
    expected = np.einsum("ia,ib,ic->abc", *of) / data.n
    assert np.allclose(marginals.moment(0, 1, 3).values, expected)
    assert np.allclose(marginals.moment(3, 0, 1).values, expected.transpose(2, 0, 1))


def whole_contrasts(levels):
    """By the definition: j ones, then -j."""
    return [[(i < j) - j * (i == j) for i in range(levels)] for j in range(1, levels)]


def exactly_squared(table, entry):
    """An entry of the interaction of all variables, squared, in fractions; and its sign."""
    rows = [whole_contrasts(levels)[j] for levels, j in zip(table.shape, entry, strict=True)]
    total = 0
    for cell, count in np.ndenumerate(table):
        total += int(count) * math.prod(row[i] for row, i in zip(rows, cell, strict=True))
    return Fraction(total**2, math.prod((j + 1) * (j + 2) for j in entry)), total


@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 4), (1, 3), (2, 3, 4), (60, 50)])
@pytest.mark.parametrize("n", [1, 2**24 + 1, 10**12, 4 * 10**18])
def test_an_interaction_is_exact_but_for_one_rounding_of_each_entry(shape, n):
    # Nearly balanced: entries are small beside n, where sums in doubles lose their digits.
    balanced = np.full(shape, n // math.prod(shape)) + default_rng(n % 1000).integers(0, 3, shape)
    skewed = np.zeros(shape, np.int64)
    skewed[(-1,) * len(shape)] = n
    for table in (balanced, skewed):
        values = interactions.interaction_of(table)
        assert values.shape == tuple(levels - 1 for levels in shape)
        for entry in list(np.ndindex(values.shape))[:: max(1, values.size // 20)]:
            squared, total = exactly_squared(table, entry)
            value = Fraction(float(values[entry]))
            assert abs(value**2 - squared) <= squared / 2**50
            assert np.sign(float(value)) == np.sign(total)


@pytest.mark.parametrize("n", [1000, 500_000, 10**9, 10**12])
@pytest.mark.parametrize("levels", [(2, 2, 2), (3, 4, 2), (2, 7, 5)])
def test_no_record_of_many_moves_rounded_interactions_by_more_than_is_kept_for_it(levels, n):
    rng, subsets = default_rng(n % 1000), [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    for _ in range(20):
        table = rng.multinomial(n - 1, rng.dirichlet(np.full(math.prod(levels), 0.3)))
        both = []
        for cell in rng.integers(table.size, size=2):
            one = table + np.eye(1, table.size, cell, dtype=int)[0]
            both.append(MeasuredMarginals(Counts(one.reshape(levels)), exactly).exact(subsets))
        moved = np.linalg.norm(both[0] - both[1]) / interactions.pairs_sensitivity(levels)
        assert moved**2 <= 1 + max(ROOM, kept_for_rounding(n))


def test_an_interaction_that_was_not_released_counts_as_zero_in_a_table():
    table = random_table((2, 3, 2), 5000, default_rng(0)) + 1
    marginals = MeasuredMarginals(Counts(table), exactly)
    marginals.measure_pairs(1.0)
    joint = marginals.table(0, 1, 2)
    for axis in range(3):
        assert np.allclose(joint.sum(axis=axis), table.sum(axis=axis) / table.sum())
    refused("0,", Marginals(10, (2, 2), {}).table, 0, 1, kind=KeyError)


def test_one_draw_of_the_right_width_for_all_pairs():
    data, noise = load("asia", n=1000, rng=default_rng(0)), noting()
    marginals = measured(data, paid(Filter(Budget(10.0, 1e-6)), noise))
    marginals.measure_pairs(0.5)
    marginals.measure((2, 0, 1), 0.125)
    assert [s.scale for s in noise.steps] == pytest.approx([5.0, 2 * math.sqrt(0.5)])
    assert marginals.moment(0, 7).deviation == pytest.approx(5.0 / 1000)
    assert (0, 1, 2) in marginals.released


def test_nothing_is_looked_at_before_it_is_paid_for():
    data = load("asia", n=1_000, rng=default_rng(0))

    account = Filter(Budget(0.01, 1e-6))
    marginals = MeasuredMarginals(Blind(data), paid(account, SeededNoise(default_rng(0))))
    refused("would exceed", marginals.measure_pairs, 2 * account.rho, kind=BudgetSpent)
    refused("would exceed", marginals.measure, (0, 1, 2), 2 * account.rho, kind=BudgetSpent)
    assert (account.ledger.events, list(marginals.released)) == ((), [()])


@pytest.mark.parametrize("levels", [(2, 2, 2, 2), (2, 3, 2), (3, 4, 2, 2)])
def test_some_pairs_together_move_no_further_than_their_noise_is_made_for(levels):
    data = records([0] * len(levels), levels)
    pairs = list(itertools.combinations(range(len(levels)), 2))
    for some in itertools.chain(*(itertools.combinations(pairs, k) for k in (1, 2, 3, len(pairs)))):
        noise = noting()
        measured(data, paid(Filter(Budget(9.0, 1e-3)), noise)).measure_again(some, 0.5)
        moved = farthest(levels, some)
        scale = noise.steps[0].scale
        assert moved <= scale + 1e-12
        assert len(some) > 1 or moved == pytest.approx(scale)


@pytest.mark.filterwarnings("error")
def test_two_measurements_are_weighed_by_their_precision():
    first, second = Moment(np.array([1.0]), 3.0), Moment(np.array([2.0]), 4.0)
    both = first.combined(second)
    assert both.values == pytest.approx([(1 * 16 + 2 * 9) / 25])
    assert both.deviation == pytest.approx(12 / 5)
    assert second.combined(first).values == pytest.approx(both.values)
    assert first.combined(Moment(np.array([5.0]), 0.0)) == (5.0, 0.0)
    for deviation in (0.0, 5e-324, 1e-300):  # exact, or as good as that
        both = Moment(np.ones(1), deviation).combined(Moment(np.zeros(1), deviation))
        assert (both.values, both.deviation) == (0, deviation)


def test_what_has_been_derived_follows_a_new_release():
    table = random_table((2, 3, 2), 5000, default_rng(0)) + 1
    marginals = blurred_marginals(table, 300.0, default_rng(1))
    rough, joint = marginals.table(0, 1), marginals.table(0, 1, 2)
    marginals.measure_again([(0, 1)], 1.0)
    marginals.measure((0, 1, 2), 1.0)
    assert not np.allclose(marginals.table(0, 1), rough)
    assert not np.allclose(marginals.table(0, 1, 2), joint)


def all_pairs(marginals, account):
    marginals.measure_pairs(account.rho * (1 - 1e-9))


def pairs_twice(marginals, account):
    marginals.measure_pairs(account.rho / 2)
    marginals.measure_again([(0, 2), (1, 2)], account.share(1 - 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize("measure", [all_pairs, pairs_twice])
def test_a_release_passes_its_audit_and_with_half_the_noise_it_fails(measure):
    """By the likelihood along the way between two data sets of few records."""
    pair = [records([[0, 0, 0]] * 40 + [last], (2, 2, 3)) for last in ([0, 0, 0], [1, 1, 0])]
    here, there = (marginals_of(data, [(0, 1, 2)]).released for data in pair)
    way = {subset: there[subset].values - here[subset].values for subset in here if subset}

    def released(data, account, paying):
        marginals = measured(data, paying)
        measure(marginals, account)
        moments = {subset: moment for subset, moment in marginals.released.items() if subset}
        return sum((m.values * way[s]).sum() / m.deviation**2 for s, m in moments.items())

    audited(released, *pair, epsilon=2.0, seed=7)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [(np.inf, 0.1), (np.nan, 0.1), (1e200, 0.1), (0.1, np.inf)])
def test_what_is_no_number_is_not_released(bad):
    refused("that is noise only", Marginals, 10, (2, 2), {(0,): Moment(np.array([bad[0]]), bad[1])})
    refused("n must be at least 1", Marginals, 0, (2, 2))


@pytest.mark.filterwarnings("error")
def test_a_rho_of_nothing_measures_nothing():
    data = load("survey", n=1000, rng=default_rng(0))
    account = Filter(Budget(1.0, 1e-6))
    marginals = measured(data, paid(account, SeededNoise(default_rng(0))))
    for rho in (0.0, 5e-324, 1e-200):
        refused("pays for no measurement", marginals.measure, (0, 1), rho, kind=BudgetSpent)
    for rho in (-1.0, math.nan, math.inf):
        refused("rho must be a positive finite number", marginals.measure, (0, 1), rho)
    assert account.ledger.events == ()
