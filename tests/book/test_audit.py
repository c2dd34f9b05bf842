"""The attacks of the package: they find what is planted, and nothing where nothing is."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from dpcgd_book.attacks.audit import empirical_epsilon
from dpcgd_book.attacks.mutants import MUTANTS
from dpcgd_book.attacks.sensitivity_attack import every_neighbour, sensitivity_search
from numpy.random import default_rng
from scipy import stats

from dpcgd.statistics.categorical_statistics import chi_squared
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_mutant_is_flagged_and_its_correct_twin_is_not(mutant, seed):
    # An audit of correct code is wrong with probability below 1e-9 over seeds, the search and the
    # replay never; these seeds are fixed.
    assert mutant.flagged(mutant.broken, default_rng(seed))
    assert not mutant.flagged(mutant.correct, default_rng(seed))


def randomised_response(epsilon, rng, answers=(False, True)):
    """Tells the truth, 0 or 1, with odds of e^epsilon to one."""
    honest = 1 / (1 + math.exp(-epsilon))
    return lambda truth: answers[truth if rng.random() < honest else 1 - truth]


KNOWN = ("response", 0.5, 0.0), ("response", 2.0, 0.0), ("laplace", 1.0, 0.0), ("leak", 0.5, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "truth", "delta"), KNOWN)
def test_a_bound_exceeds_the_truth_no_more_often_than_its_confidence_says(mechanism, truth, delta):
    # Of 600 audits at confidence 0.9 at most 60 on average; the line is crossed with probability
    # 1e-8 over seeds, and the seed is fixed.
    rng, audits, confidence = default_rng(0), 600, 0.9
    run = {
        "response": randomised_response(truth, rng),
        "laplace": lambda x: x + rng.laplace(scale=1 / truth),
        "leak": leaky(truth, delta, rng),
    }[mechanism]
    audit = partial(empirical_epsilon, run, 0, 1, delta=delta, confidence=confidence, trials=100)
    wrong = sum(audit() > truth for _ in range(audits))
    assert wrong <= stats.binom.isf(1e-8, audits, 1 - confidence)


def leaky(epsilon, delta, rng):
    """(epsilon, delta)-private exactly: with chance delta it says all, else it answers randomly."""
    response = randomised_response(epsilon, rng)

    def run(truth):
        if rng.random() < delta:
            return ("all", truth)
        return response(truth)

    return run


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_a_bound_comes_close_to_the_truth_with_many_trials(epsilon):
    run = randomised_response(epsilon, default_rng(0))
    few, many = (empirical_epsilon(run, 0, 1, trials=trials) for trials in (2_000, 150_000))
    assert few < many
    assert epsilon - 0.15 < many <= epsilon


def test_delta_is_honoured():
    run = leaky(0.5, 0.2, default_rng(0))
    shown = {d: empirical_epsilon(run, 0, 1, delta=d, trials=40_000) for d in (0.0, 0.1, 0.2, 0.9)}
    assert shown[0.0] > 5
    assert shown[0.1] > 1
    assert 0.3 < shown[0.2] <= 0.5
    assert shown[0.9] == 0


def test_a_bound_is_found_whichever_data_set_tells_more():
    # One output that only one of the two ever gives, now and then.
    rng = default_rng(0)

    def run(truth):
        return "seldom" if truth and rng.random() < 0.02 else "mostly"

    there = empirical_epsilon(run, 0, 1, trials=20_000)
    back = empirical_epsilon(run, 1, 0, trials=20_000)
    assert min(there, back) > 1


KINDS = (False, True), ("no", "yes"), (None, 1.5), ((0, 1), (1, 0)), (0, 1), (None, ("all", 3))


@pytest.mark.parametrize("answers", KINDS, ids=str)
def test_outputs_of_any_kind_tell_the_same(answers):
    expected = empirical_epsilon(randomised_response(1.0, default_rng(0)), 0, 1, trials=4_000)
    run = randomised_response(1.0, default_rng(0), answers)
    assert empirical_epsilon(run, 0, 1, trials=4_000) == expected > 0.5


def test_numbers_mixed_with_none_are_sorted_into_bins():
    rng = default_rng(0)

    def run(x):
        return None if rng.random() < 0.5 else x + rng.laplace(scale=1.0)

    assert 0.5 < empirical_epsilon(run, 0.0, 1.0, trials=20_000) <= 1


@pytest.mark.parametrize("constant", [0, None, "x", (1, 2), 0.5, True], ids=str)
def test_a_constant_shows_nothing(constant):
    assert empirical_epsilon(lambda data: constant, 0, 1, trials=1_000) == 0


def weigh(table):
    """A number that tells all tables apart, so that a largest change has one pair."""
    return float(np.sin(1 + np.arange(table.size)) @ np.sqrt(1.0 + table.ravel()))


SMALL = [(1, (2,)), (2, (2, 2)), (3, (3,)), (4, (2, 2)), (3, (2, 3)), (3, (2, 2, 2))]


def brute_force(value, n, levels):
    """The largest change over all data sets with an order, one record replaced by any other."""
    cells = list(np.ndindex(*levels))

    def of(records):
        table = np.zeros(levels, int)
        np.add.at(table, tuple(zip(*records, strict=True)), 1)
        return value(table)

    values = {records: of(records) for records in itertools.product(cells, repeat=n)}
    places = itertools.product(values, range(n), cells)
    return max(abs(values[r] - values[(*r[:i], cell, *r[i + 1 :])]) for r, i, cell in places)


@pytest.mark.parametrize("value", [weigh, chi_squared, KendallZ().value], ids=["any", "chi", "z"])
@pytest.mark.parametrize(("n", "levels"), SMALL)
def test_every_neighbour_finds_the_largest_change_that_there_is(value, n, levels):
    if len(levels) == 1 and value is not weigh:
        levels = (*levels, 1)
    worst = every_neighbour(value, n, levels)
    assert worst.change == pytest.approx(brute_force(value, n, levels), rel=1e-12, abs=1e-12)


STATISTICS = [KendallZ(), SpearmanZ(), KendallP()]


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("levels", [(2, 2), (3, 2, 2)])
@pytest.mark.parametrize("n", [60, 3_000])
def test_the_pair_of_a_search_differs_in_one_record_and_by_the_change(statistic, levels, n):
    worst = sensitivity_search(statistic.value, n, levels, pairs=3_000, rng=default_rng(0))
    for table in (worst.table, worst.neighbour):
        assert (table.shape, table.sum()) == (levels, n)
        assert table.min() >= 0
    apart = abs(worst.table - worst.neighbour)
    assert (apart.sum(), apart.max()) == (2, 1)
    assert worst.change == abs(statistic.value(worst.table) - statistic.value(worst.neighbour)) > 0
    step = math.comb(math.prod(levels), 2)
    assert 3_000 <= worst.pairs <= 3_000 + 2 * step
    assert worst.pairs % step == 0


def on_another_machine(value):
    """The same number but for its last digits."""

    def nudged(table):
        place = np.arange(1, table.size + 1).reshape(table.shape)
        return value(table) * (1 + 1e-14 * math.sin(float((table * place).sum())))

    return nudged


def is_same_pair(here, there):
    tables = (here.table, there.table), (here.neighbour, there.neighbour)
    return all(np.array_equal(*both) for both in tables)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_a_search_climbs_the_same_way_whatever_the_last_digits_are(statistic, seed):
    search = partial(sensitivity_search, n=5_000, levels=(2, 2, 2), pairs=8_000)
    values = statistic.value, on_another_machine(statistic.value)
    here, there = (search(value, rng=default_rng(seed)) for value in values)
    assert is_same_pair(here, there)
    assert here.change == pytest.approx(there.change, rel=1e-9)


@pytest.mark.parametrize(("n", "levels"), [(8, (2, 2)), (4, (2, 2, 2))])
def test_of_neighbours_that_are_equally_bad_the_same_pair_is_told_everywhere(n, levels):
    value = KendallZ().value
    here, there = (every_neighbour(v, n, levels) for v in (value, on_another_machine(value)))
    assert is_same_pair(here, there)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [KendallZ(), SpearmanZ()], ids=repr)
@pytest.mark.parametrize("n", [1_000, 100_000])
def test_a_search_comes_close_to_the_bound_of_a_conditional_test(statistic, n):
    levels = (2, 2, 2)
    worst = sensitivity_search(statistic.value, n, levels, pairs=40_000, rng=default_rng(0))
    assert 0.9 < worst.change / statistic.sensitivity(n, levels) <= 1
