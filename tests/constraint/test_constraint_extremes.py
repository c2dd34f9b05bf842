"""Plans, margins and statistics of searches at the ends of double precision."""

import contextlib
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from extremes import LEAST, extreme, positive
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import BudgetSpent, Dataset, curate_pc, em_pc, laplace_pc, load, priv_pc, svt_pc
from dpcgd.constraint import curate_pc as curate
from dpcgd.constraint.curate_pc import MOST_EPSILON, Surrogate, concentrated, guessed_questions
from dpcgd.constraint.priv_pc import ThresholdOracle, share_of_the_rest
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.events import PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest
from dpcgd.statistics.moment_matrices import PartialCorrelation
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ

pytestmark = pytest.mark.filterwarnings("error")

DATA = load("survey", n=1000, rng=default_rng(0))
ONE_LEVEL = Dataset(
    np.column_stack([np.zeros(500, int), *default_rng(0).integers(0, 3, (2, 500))]),
    {"a": ["0"], "b": list("012"), "c": list("012")},
)


@pytest.mark.parametrize("statistic", [GTest(), ChiSquared(), KendallZ(critical=0.0)])
def test_curate_says_what_it_cannot_plan_by(statistic):
    with pytest.raises(ValueError, match=r"such as KendallZ\(\)"):
        curate_pc(DATA, epsilon=1.0, rng=default_rng(0), statistic=statistic)


@pytest.mark.parametrize("critical", [5e-324, 1e-300, 1e300, -1e300])
def test_searches_take_any_other_critical_value(critical):
    for system in (curate_pc, laplace_pc, priv_pc, em_pc):
        release = system(DATA, epsilon=1.0, rng=default_rng(0), statistic=KendallZ(critical))
        assert release.ledger.spent <= (1.0, 1e-6)


@pytest.mark.parametrize("system", [laplace_pc, priv_pc, svt_pc, em_pc, curate_pc])
@pytest.mark.parametrize(
    "statistic", [ChiSquared(), GTest(), KendallZ(), SpearmanZ(), PartialCorrelation(), KendallP()]
)
def test_a_variable_of_one_level_divides_nothing(system, statistic):
    if system is curate_pc and statistic.critical == 0:
        return
    release = system(ONE_LEVEL, epsilon=1e6, rng=default_rng(0), statistic=statistic)
    assert not release.graph.skeleton & {frozenset("ab"), frozenset("ac")}


def constant(number):
    """A statistic that no record moves."""
    calls = {"value": lambda table: number, "sensitivity": lambda n, levels: 0.0}
    return SimpleNamespace(name="constant", proved=True, critical=1.0, **calls)


@pytest.mark.parametrize("system", [laplace_pc, priv_pc, svt_pc, em_pc])
@pytest.mark.parametrize(("number", "edges"), [(0.0, 0), (2.0, 15)])
def test_a_statistic_that_no_record_moves_decides_for_sure(system, number, edges):
    settings = {"statistic": constant(number), "max_order": 0, "epsilon": 1e3, "margin": 0.0}
    assert len(system(DATA, rng=default_rng(0), **settings).graph.skeleton) == edges


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_margins_and_planned_tests_are_numbers(bad):
    for system in (laplace_pc, priv_pc, svt_pc, em_pc, curate_pc):
        with pytest.raises(ValueError, match="margin must be"):
            system(DATA, epsilon=1.0, rng=default_rng(0), margin=bad)
    for tests in (0, bad, 10**400):
        with pytest.raises(ValueError, match="planned_tests must be"):
            laplace_pc(DATA, epsilon=1.0, rng=default_rng(0), planned_tests=tests)


def test_the_price_of_a_sieve_is_a_number_or_the_budget_is_spent():
    account, noise = Filter(Budget(1.0, 1e-6)), SeededNoise(default_rng(0))
    price = share_of_the_rest(account, 10, examined=False)
    oracle = ThresholdOracle(Tables(DATA), KendallZ(), price, 1.0, 0.0, 1.0, account, noise)
    account.spend(PureEvent("all", math.sqrt(2 * account.rho) * (1 - 1e-12)))
    with contextlib.suppress(BudgetSpent):
        for x, y in itertools.combinations(range(6), 2):
            oracle.separates(x, y, ())
    assert account.ledger.spent.epsilon <= 1


# --- plans

counts_of_tests = st.one_of(st.integers(0, 10**6), st.integers(0, 10**300)).map(float)
plans = st.lists(counts_of_tests, min_size=1, max_size=5).filter(any)
budgets = st.one_of(positive, st.floats(5e-324, LEAST))
prices = st.sampled_from([concentrated, lambda tests, epsilon: 3 * tests * epsilon])
slopes = st.one_of(st.just(0.0), positive)


@settings(extreme, max_examples=60)
@given(plans, budgets, slopes, st.floats(0, 1), prices)
def test_a_plan_is_finite_never_rises_and_is_affordable(tests, remaining, slope, grey, price):
    planned = curate.allocate(tests, remaining, Surrogate(slope, grey), price)
    assert np.isfinite(planned).all()
    assert (planned >= 0).all()
    assert (np.diff(planned) <= 0).all()
    some = np.array(tests) > 0
    assert price(np.array(tests)[some], planned[some]).sum() <= remaining * (1 + 1e-9)


@extreme
@given(budgets, st.integers(1, 10**300), prices)
def test_the_scale_is_affordable_and_hardly_anything_more_is(remaining, tests, price):
    scale = curate._scale_to(lambda e: price(float(tests), e), remaining)
    assert 0 <= scale <= MOST_EPSILON
    assert price(float(tests), scale) <= remaining
    if curate.LEAST_EPSILON < scale < MOST_EPSILON:
        assert price(float(tests), scale * (1 + 1e-6)) >= remaining


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_slope_and_a_probability_are_refused_otherwise(bad):
    with pytest.raises(ValueError, match="slope must be finite"):
        Surrogate(bad)
    with pytest.raises(ValueError, match="grey between 0 and 1"):
        Surrogate(1.0, bad)


def test_numbers_of_questions_are_floats_however_many():
    joined = ~np.eye(1100, dtype=bool)
    assert np.isfinite(guessed_questions(joined, 0, 1)).all()
    assert guessed_questions(np.zeros((3, 3), bool), 0, 1).tolist() == [0, 0]


@pytest.mark.parametrize("left", [0.0, -1e-18, 1e-320])
def test_a_planner_with_nothing_left_says_so(left):
    plan = curate.planner(lambda: left, guessed_questions, Surrogate(10.0), concentrated, last=1)
    with pytest.raises(BudgetSpent):
        plan(~np.eye(4, dtype=bool), 0)
