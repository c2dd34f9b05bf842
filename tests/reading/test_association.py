import itertools

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred, blurred_marginals
from known_tables import exact, independent, random_table, records
from numpy.random import default_rng
from people import refused
from plain_association import Design, plain_association
from scipy import stats

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Moment, contrasts
from dpcgd.reading.association import association, associations, strength


def by_strata(table):
    """The same from strata: average covariance against its variance under independence."""
    n, x, y = table.sum(), *(contrasts(of) for of in table.shape[:2])
    q, spread = 0.0, 0.0
    for stratum in np.moveaxis(table.reshape(*table.shape[:2], -1), 2, 0) / n:
        p, a, b = stratum.sum(), stratum.sum(axis=1), stratum.sum(axis=0)
        q = q + x.T @ (stratum - np.outer(a, b) / p) @ y
        within = [np.diag(m / p) - np.outer(m / p, m / p) for m in (a, b)]
        spread = spread + p * np.kron(x.T @ within[0] @ x, y.T @ within[1] @ y)
    return n * q.ravel() @ np.linalg.solve(spread, q.ravel())


STRATA = [(2, 2), (3, 4), (2, 3, 2), (4, 3, 3), (2, 3, 2, 3), (3, 2, 3, 2)]


@pytest.mark.parametrize("shape", STRATA)
def test_association_without_noise_is_that_of_explicit_strata(shape):
    table = random_table(shape, 20_000, default_rng(1)) + 3
    found = association(exact(table), 0, 1, tuple(range(2, len(shape))), interacting=True)
    assert found.statistic == pytest.approx(by_strata(table), rel=1e-6)
    assert found.freedom == (shape[0] - 1) * (shape[1] - 1)
    if len(shape) == 2:
        pearson = stats.chi2_contingency(table, correction=False)
        assert found.statistic == pytest.approx(pearson.statistic, rel=1e-6)
        assert found.p_value == pytest.approx(pearson.pvalue, rel=1e-6)
        assert found.undetermined == pytest.approx(1)


def average(marginals, given, interacting):
    design = Design(marginals, given, interacting)
    pair = marginals.moment(0, 1).values
    return design.average(design.regress(0), design.regress(1), pair).ravel()


OF_PAIRS = [((3, 2), False), ((2, 3, 2), False), ((3, 2, 3), False), ((2, 3, 2, 3), False)]


@pytest.mark.parametrize(("shape", "interacting"), [*OF_PAIRS, ((2, 3, 2, 3), True)])
def test_privacy_variance_is_what_the_derivatives_say(shape, interacting):
    table = random_table(shape, 100_000, default_rng(4), 1.0) + 100
    given, truth, step = tuple(range(2, len(shape))), exact(table), 1e-6
    at = average(truth, given, interacting)
    expected = 0.0
    for subset, moment in list(truth.released.items())[1:]:
        for move in step * np.eye(moment.values.size):
            moved = Moment(moment.values + move.reshape(moment.values.shape), 0.0)
            released = truth.released | {subset: moved}
            change = average(Marginals(truth.n, shape, released), given, interacting) - at
            expected = expected + np.outer(change, change) / step**2
    released = {s: Moment(m.values, 1e-9) for s, m in truth.released.items() if s}
    design = Design(Marginals(truth.n, shape, released), given, interacting)
    found = design.noise(design.regress(0), design.regress(1), 1e-9) / 1e-18
    assert found == pytest.approx(expected, abs=2e-3)


LEVEL_CASES = [((2, 2), 400, 10.0), ((5, 5), 25_000, 1000.0)]
LEVEL_CASES += [((3, 3, 4), 36_000, 300.0), ((2, 2, 2, 2), 50_000, 300.0)]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "n", "deviation"), LEVEL_CASES)
def test_the_level_is_held(shape, n, deviation):
    """Of 1,500 tables of independent variables a test at level 0.1 takes some for others.

    Binomial: 75 to 225 but for a chance below 1e-9.
    """
    rng, count, given = default_rng(5), 0, tuple(range(2, len(shape)))
    joint = independent(shape, rng)
    for _ in range(1500):
        table = rng.multinomial(n, joint.ravel()).reshape(shape)
        marginals = blurred_marginals(table, deviation, rng)
        count += association(marginals, 0, 1, given, interacting=True).p_value < 0.1
    assert 75 < count < 225


def test_strength_without_noise_is_the_mean_square_contingency():
    table = random_table((3, 4), 5000, default_rng(0)) + 1
    share = table / table.sum()
    expected = (share**2 / np.outer(share.sum(1), share.sum(0))).sum() - 1
    assert strength(exact(table), 0, 1) == pytest.approx(expected, rel=1e-6)
    assert strength(exact(table), 1, 0) == pytest.approx(expected, rel=1e-6)


def test_noise_in_rare_levels_makes_nothing_strong():
    table = np.zeros((8, 8), int)
    table[0, 0] = 10_000
    marginals = blurred_marginals(table, 30.0, default_rng(0))
    assert association(marginals, 0, 1).effect > 10
    assert strength(marginals, 0, 1) < 49 / 20**2 * 4


def noisy(levels, n, deviation, seed):
    """All pairs of correlated variables, with noise."""
    rng = default_rng(seed)
    hidden = rng.normal(size=(n, 1)) + rng.normal(size=(n, len(levels)))
    cuts = [np.quantile(hidden[:, v], np.arange(1, k) / k) for v, k in enumerate(levels)]
    codes = np.column_stack([np.searchsorted(c, hidden[:, v]) for v, c in enumerate(cuts)])
    marginals = MeasuredMarginals(Tables(records(codes, levels)), blurred(deviation, rng))
    marginals.measure_pairs(1.0)
    marginals.measure_again([(0, 1), (1, 3)], 1.0)
    return marginals


@pytest.mark.parametrize("deviation", [0.0, 10.0, 300.0, 1e4, 1e30])
@pytest.mark.parametrize("levels", [(2, 2, 2, 2, 2), (2, 3, 4, 3, 6), (1, 2, 3, 1, 8)])
@pytest.mark.parametrize(("order", "interacting"), [(0, False), (1, False), (2, False), (2, True)])
def test_many_associations_are_those_of_the_plain_definition(levels, order, interacting, deviation):
    marginals = noisy(levels, 5000, deviation, 1)
    if interacting:
        for triple in itertools.combinations(range(5), 3):
            marginals.measure(triple, 1.0)
    tests = [t for t in itertools.permutations(range(5), 2 + order) if [*t[2:]] == sorted(t[2:])]
    rows = associations(marginals, tests, interacting=interacting)
    assert np.isfinite(rows).all()
    if deviation > 1e9:  # nothing but rounding is left
        return
    for (x, y, *given), row in zip(tests, rows, strict=True):
        plain = plain_association(marginals, x, y, tuple(given), interacting=interacting)
        assert row == pytest.approx(tuple(plain), rel=1e-9, abs=1e-12), (x, y, given)
    x, y, *given = tests[-1]
    alone = association(marginals, x, y, tuple(given), interacting=interacting)
    assert alone == pytest.approx(rows[-1], rel=1e-9, abs=1e-12)


def test_without_all_pairs_there_are_associations_of_the_others():
    whole = noisy((2, 3, 2, 2), 1000, 5.0, 2)
    few = {s: m for s, m in whole.released.items() if s != (2, 3)}
    marginals = Marginals(whole.n, whole.levels, few)
    expected = plain_association(marginals, 0, 1, (2,))
    assert associations(marginals, [(0, 1, 2)])[0] == pytest.approx(tuple(expected), rel=1e-9)
    refused("2, 3", associations, marginals, [(2, 3)], kind=KeyError)
    refused("2, 3", association, whole, 0, 1, (2, 3), interacting=True, kind=KeyError)
