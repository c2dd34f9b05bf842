"""The power of a test, in closed form where there is one, and by simulation."""

import math

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred_marginals
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from scipy import stats

from dpcgd import plan, table_pc
from dpcgd.reading.association import association
from dpcgd.tables.detection import Detection, Population
from dpcgd.tables.plan import RELATED
from dpcgd.tables.table_pc import TableOracle


def even(levels):
    return (1 / levels,) * levels


def uneven(levels):
    return tuple(2 * k / (levels * (levels + 1)) for k in range(1, levels + 1))


some_shares = st.sampled_from([shares(k) for k in range(2, 7) for shares in (even, uneven)])


some_levels = st.lists(st.integers(2, 7), min_size=2, max_size=3)


@settings(derandomize=True, max_examples=60)
@given(some_levels, st.integers(100, 10**7), st.floats(1e-6, 0.01), st.floats(0.001, 0.3))
def test_with_even_shares_the_power_has_a_closed_form(levels, n, deviation, r):
    x, y, *_ = levels
    test = Detection(n, tuple(map(even, levels)), deviation, 0.01)
    freedom, noncentrality = (x - 1) * (y - 1), r**2 / (1 / n + x * y * deviation**2)
    expected = stats.ncx2.sf(stats.chi2.isf(0.01, freedom), freedom, noncentrality)
    assert test.power(r) == pytest.approx(expected, abs=1e-6)


@settings(derandomize=True, max_examples=60)
@given(st.lists(some_shares, min_size=2, max_size=3), st.floats(0.05, 0.95), st.floats(1e-6, 0.002))
def test_the_smallest_correlation_is_found_with_the_power_asked_for(shares, power, deviation):
    test = Detection(10_000, tuple(shares), deviation, 0.01, 0.3)
    r = test.smallest(power)
    if not math.isnan(r):
        assert test.power(r) == pytest.approx(power, abs=1e-6)
        assert test.table(r).min() >= 0
    noisier = Detection(10_000, tuple(shares), 1.1 * deviation, 0.01, 0.3)
    assert not noisier.smallest(power) < r
    assert noisier.power(0.1) < test.power(0.1) or test.power(0.1) > 1 - 1e-6


@settings(derandomize=True, max_examples=60)
@given(some_shares, some_shares, some_shares, st.floats(0, 0.3), st.floats(0.0, 0.3))
def test_the_least_share_is_of_the_correlation_given_none(x, y, z, related, r):
    test = Detection(10**6, (x, y, z), 1e-7, 0.01, related, least_share=0.02)
    r = min(r, test.largest)
    marginals = Population(10**6, test.table(r)).marginals(1e-7)
    told, alone = association(marginals, 0, 1, (2,)), association(marginals, 0, 1)
    if told.effect > 1e-6:
        per_effect = told.statistic / told.effect
        least = max(stats.chi2.isf(0.01, test.freedom), per_effect * 0.02 * alone.effect)
        expected = stats.ncx2.sf(least, test.freedom, told.statistic)
        assert test.power(r) == pytest.approx(expected, abs=1e-3)


def in_groups(table):
    """Sums over the levels of each group: the two are as even as the order allows."""
    for axis in range(table.ndim):
        margin = table.sum(axis=tuple(a for a in range(table.ndim) if a != axis))
        cut = 1 + np.argmin(np.abs(np.cumsum(margin)[:-1] - 0.5).round(9))
        table = np.add.reduceat(table, [0, cut], axis=axis)
    return table


def correlation(pair):
    """Phi of a table of two by two."""
    pair = pair / pair.sum()
    a, b = pair[1].sum(), pair[:, 1].sum()
    return (pair[1, 1] - a * b) / math.sqrt(a * (1 - a) * b * (1 - b))


@settings(derandomize=True, max_examples=60)
@given(some_shares, some_shares, some_shares, st.floats(0, 0.3))
def test_the_population_is_what_it_is_said_to_be(x, y, z, r):
    test = Detection(1000, (x, y, z), 0.001, 0.01, related=0.2)
    table = test.table(min(r, test.largest))
    for axis, shares in enumerate((x, y, z)):
        assert np.allclose(Population(1, table).counts((axis,)), shares)
    groups = in_groups(table)
    for stratum in (0, 1):
        assert correlation(groups[..., stratum]) == pytest.approx(min(r, test.largest), abs=1e-9)
    assert correlation(groups.sum(axis=0)) == pytest.approx(0.2, abs=1e-9)
    assert correlation(groups.sum(axis=1)) == pytest.approx(0.2, abs=1e-9)


@settings(derandomize=True, max_examples=60)
@given(some_shares, some_shares)
def test_points_and_the_largest_correlation_are_those_of_the_population(x, y):
    test = Detection(1000, (x, y), 0.001, 0.01)
    assert test.table(test.largest).min() == pytest.approx(0, abs=1e-12)
    assert test.table(1.01 * test.largest).min() < 0
    groups = in_groups(test.table(0.1))
    differences = [np.ptp(both[:, 1] / both.sum(axis=1)) for both in (groups, groups.T)]
    assert test.points(0.1) == pytest.approx(100 * max(differences))


def test_what_has_one_level_depends_on_nothing_and_conditions_nothing():
    alone = Detection(10_000, (even(2), even(3)), 0.002, 0.01)
    lonely = Detection(10_000, (even(2), even(3), (1.0,)), 0.002, 0.01, 0.3)
    assert lonely.smallest(0.8) == pytest.approx(alone.smallest(0.8))
    assert lonely.points(0.1) == pytest.approx(alone.points(0.1))
    nothing = Detection(10_000, ((1.0,), even(3)), 0.002, 0.01)
    assert math.isnan(nothing.points(nothing.smallest(0.8)))
    assert nothing.power(0.5) == 0


GRID = [  # levels of x, y and z; levels of the others; n; epsilon; power; shares
    ((2, 2), (2, 2), 1_000, 2.0, 0.8, even),
    ((2, 2), (2, 2), 1_000, 0.4, 0.8, even),
    ((2, 5), (3, 3, 4), 3_000, 0.3, 0.9, uneven),
    ((4, 4), (2,) * 10, 20_000, 0.1, 0.8, uneven),
    ((2, 2, 2), (2,) * 5, 2_000, 0.7, 0.9, even),
    ((2, 4, 6), (2, 3, 4), 30_000, 0.1, 0.8, even),
    ((2, 2, 2), (2,) * 5, 300_000, 1.0, 0.8, even),
    ((3, 4, 3), (4,) * 3, 1_000_000, 0.5, 0.9, uneven),
    ((2, 3, 2), (2,) * 5, 100_000_000, 1.0, 0.8, uneven),
]
"""Noise from a seventh to nearly all of the most that is tested; in the last ones the least effect
or the least share decides, alone or with the test."""


@pytest.mark.slow
@pytest.mark.parametrize(("tested", "others", "n", "epsilon", "power", "shares"), GRID)
def test_the_plan_is_right_about_simulated_tests(tested, others, n, epsilon, power, shares):
    # The plan is off by at most .005 (measured with 40,000 trials), which leaves .045: seven
    # deviations of the share of 4000 trials. False alarm below 1e-10.
    levels = {f"v{i}": range(of) for i, of in enumerate((*tested, *others))}
    known = {f"v{i}": shares(of) for i, of in enumerate(tested)}
    planned = plan(levels, n, epsilon=epsilon, power=power, shares=known, system=table_pc)
    x, y, *z = list(levels)[: len(tested)]
    r = planned.smallest(x, y, z)
    least = planned.rules.least_effect, planned.rules.least_share
    test = Detection(n, tuple(known.values()), planned.deviation / n, 0.01, RELATED, *least)
    assert test.smallest(power) == pytest.approx(r)
    rng, given = default_rng(0), tuple(range(2, len(tested)))
    found, trials = 0, 4000
    for table in rng.multinomial(n, test.table(r).ravel(), size=trials):
        marginals = blurred_marginals(table.reshape(tested), planned.deviation, rng)
        found += TableOracle(marginals).separates(0, 1, given) is False
    assert abs(found / trials - planned.power_of(r, x, y, z)) <= 0.05
