import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd_book.systems.as_published import CurateOdometer, most_questions
from extremes import LEAST, extreme, positive
from hypothesis import given, settings, strategies as st
from known_tables import alone_and_joined
from numpy.random import default_rng
from people import refused

from dpcgd import Budget, BudgetSpent, load, pc
from dpcgd.constraint import curate_pc as curate
from dpcgd.constraint.curate_pc import Surrogate, allocate, concentrated, guessed_questions
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import conditioning_sets, search
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.rank_statistics import KendallZ

some_epsilons = st.lists(st.floats(1e-3, 3), min_size=1, max_size=6)


@settings(derandomize=True, max_examples=60)
@given(some_epsilons, st.floats(0.1, 10), st.sampled_from([0, 1]))
def test_the_gradient_is_that_of_the_value(epsilons, slope, grey):
    surrogate, epsilons = Surrogate(slope, grey), np.array(epsilons)

    def complex_value(at):
        q = (grey + np.exp(-slope * at)) / 2
        return q.prod() + 1 - (1 - q).prod()

    steps = epsilons + 1e-30j * np.eye(len(epsilons))
    slopes = [complex_value(step).imag / 1e-30 for step in steps]
    assert surrogate.gradient(epsilons) == pytest.approx(slopes, rel=1e-10, abs=1e-14)
    assert surrogate.value(epsilons) == pytest.approx(complex_value(epsilons), rel=1e-12)


@pytest.mark.parametrize("tests", [(28, 60), (60, 28), (10, 1000), (5, 20, 40), (40, 40, 4)])
@pytest.mark.parametrize("surrogate", [Surrogate(60.0), Surrogate(60.0, 1.0), Surrogate(6.0, 1.0)])
def test_no_point_of_a_grid_is_better(tests, surrogate):
    tests, remaining = np.array(tests), 0.02
    planned = allocate(tests, remaining, surrogate, concentrated)
    shares = np.stack(np.meshgrid(*[np.linspace(0.002, 1, 120)] * (len(tests) - 1)), -1)
    shares = shares.reshape(-1, len(tests) - 1)
    shares = shares[shares.sum(axis=1) < 0.999]
    shares = np.column_stack([shares, 1 - shares.sum(axis=1)])
    epsilons = np.sqrt(2 * remaining * shares / tests)
    epsilons = epsilons[(np.diff(epsilons, axis=1) <= 0).all(axis=1)]
    assert surrogate.value(planned) <= min(map(surrogate.value, epsilons)) * (1 + 1e-6)


def test_orders_without_tests_cost_nothing_and_the_plan_still_falls():
    surrogate = Surrogate(60.0)
    only = allocate([28, 60], 0.02, surrogate, concentrated)
    planned = allocate([28, 0, 60, 0], 0.02, surrogate, concentrated)
    assert planned == pytest.approx([only[0], *[only[1]] * 3])


def test_nothing_to_plan_or_to_spend_is_refused():
    cure = "a plan needs tests and something to spend"
    for bad in (([], 1.0), ([0, 0], 1.0), ([5, -1], 1.0), ([5], 0.0), ([5], math.inf)):
        refused(cure, allocate, *bad, Surrogate(1.0), concentrated)


def test_a_failing_optimiser_leaves_the_feasible_start(monkeypatch):
    failed = SimpleNamespace(success=False)
    monkeypatch.setattr("dpcgd.constraint.curate_pc.minimize", lambda *_, **__: failed)
    best = min(curate._starts(np.array([10, 90]), 0.02, concentrated), key=Surrogate(60.0).value)
    assert allocate([10, 90], 0.02, Surrogate(60.0), concentrated) == pytest.approx(best)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_askable_counts_the_questions_of_the_search(order):
    rng = default_rng(order)
    for _ in range(20):
        joined = np.triu(rng.random((7, 7)) < 0.5, 1)
        joined |= joined.T
        near = [np.flatnonzero(row).tolist() for row in joined]
        pairs = np.argwhere(np.triu(joined)).tolist()
        asked = sum(len(list(conditioning_sets(x, y, near, order))) for x, y in pairs)
        assert curate.askable(joined, order) == asked
        assert most_questions(joined, order, order)[0] >= asked


def test_guesses_take_what_is_left_when_that_is_little():
    joined = np.zeros((6, 6), bool)
    joined[0, 1] = joined[1, 0] = joined[1, 2] = joined[2, 1] = True
    assert guessed_questions(joined, 1, 3).tolist() == [2, 0, 0]  # 2 edges, degree at most 1


def oracle_for(data, account, noise, plan):
    return curate.CurateOracle(Tables(data), KendallZ(), math.nan, 1.0, account, noise, plan=plan)


def test_the_ledger_has_a_row_for_each_order_and_prices_fall():
    data = load("sachs", n=100_000, rng=default_rng(0))
    ledger = curate.curate_pc(data, epsilon=1.0, rng=default_rng(0)).ledger
    rows = ledger.to_frame()
    assert rows.mechanism.tolist() == [f"Laplace, order {k}" for k in range(len(rows))]
    assert len({(e.label, e.epsilon) for e in ledger.events}) == len(rows) > 1


def test_the_plan_sees_released_facts_only():
    data = load("asia", n=20_000, rng=default_rng(0))
    seen = []

    def plan(joined, order):
        seen.append((order, joined.copy()))
        return 0.02

    oracle = oracle_for(data, Filter(Budget(50.0, 1e-6)), SeededNoise(default_rng(0)), plan)
    found = search(oracle, data.variables)
    assert [order for order, _ in seen] == list(range(len(seen)))
    assert seen[0][1].sum() == 8 * 7
    at_order = {frozenset(pair): len(s) for pair, s in found.separating_sets.items()}
    for order, joined in seen:
        assert np.triu(joined).sum() == 28 - sum(k < order for k in at_order.values())


def test_an_order_that_noise_would_decide_is_not_begun():
    settings = guessed_questions, Surrogate(100.0), concentrated
    plan = curate.planner(lambda: 1e-6, *settings, last=3, least=0.01)
    joined = ~np.eye(8, dtype=bool)
    assert 0 < plan(joined, 0) < 0.01
    refused("order 1 would run at", plan, joined, 1, kind=BudgetSpent)


def test_without_noise_the_threshold_is_that_of_plain_pc():
    data = load("cancer", n=50_000, rng=default_rng(0))
    silent = SimpleNamespace(laplace=lambda sensitivity, event: lambda value: value)
    oracle = oracle_for(data, CurateOdometer(Budget(1.0, 1e-6)), silent, lambda *_: 1e9)
    found = search(oracle, data.variables).graph.skeleton
    assert found == pc(data, statistic=KendallZ()).graph.skeleton


@pytest.mark.slow
def test_a_whole_run_passes_its_audit_and_with_half_the_noise_it_fails(monkeypatch, shown):
    """On two variables a run makes one test, and its price is all that it may show.

    Half the noise slips through with less than 1e-7: the edge goes with chances of .733 and .040.
    """
    n, budget = 40, Budget(5.0, 1e-2)
    pair, move = alone_and_joined(n), KendallZ().sensitivity(n, (2, 2))
    statistic = KendallZ(critical=move / 5)
    plan = curate.proved_plan(Filter(budget), statistic, n, last=0)
    price = plan(~np.eye(2, dtype=bool), 0)
    # It follows from public numbers only, so it need not be made for every run.
    monkeypatch.setattr(curate, "proved_plan", lambda *_, **__: lambda *_: price)
    values = [KendallZ().value(Tables(data).counts((0, 1))) for data in pair]
    assert values == pytest.approx([move, 0])
    run = partial(curate.curate_pc, epsilon=5.0, statistic=statistic)
    (honest, prices), (narrow, _) = (shown(run, pair, k) for k in (SeededNoise, NarrowNoise))
    assert prices == {price}
    assert honest <= price < narrow


# --- plans at the ends of double precision

counts = st.integers(0, 10**6) | st.integers(0, 10**300)
plans = st.lists(counts.map(float), min_size=1, max_size=5).filter(any)
budgets = st.one_of(positive, st.floats(5e-324, LEAST))
simple = st.sampled_from([concentrated, lambda tests, epsilon: 3 * tests * epsilon])


@pytest.mark.filterwarnings("error")
@settings(extreme, max_examples=60)
@given(plans, budgets, st.just(0.0) | positive, st.floats(0, 1), simple)
def test_a_plan_is_finite_never_rises_and_is_affordable(tests, remaining, slope, grey, price):
    planned = allocate(tests, remaining, Surrogate(slope, grey), price)
    assert ((planned >= 0) & np.isfinite(planned)).all()
    assert (np.diff(planned) <= 0).all()
    some = np.array(tests) > 0
    assert price(np.array(tests)[some], planned[some]).sum() <= remaining * (1 + 1e-9)


@pytest.mark.filterwarnings("error")
@extreme
@given(budgets, st.integers(1, 10**300), simple)
def test_the_scale_is_affordable_and_hardly_anything_more_is(remaining, tests, price):
    scale = curate._scale_to(lambda e: price(float(tests), e), remaining)
    assert 0 <= scale <= curate.MOST_EPSILON
    assert price(float(tests), scale) <= remaining
    if curate.LEAST_EPSILON < scale < curate.MOST_EPSILON:
        assert price(float(tests), scale * (1 + 1e-6)) >= remaining


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_a_slope_and_a_probability_are_refused_otherwise(bad):
    refused("slope must be finite", Surrogate, bad)
    refused("slope must be finite", Surrogate, 1.0, bad)


@pytest.mark.slow
def test_numbers_of_questions_are_floats_however_many():
    assert np.isfinite(guessed_questions(~np.eye(1100, dtype=bool), 0, 1)).all()
    assert guessed_questions(np.zeros((3, 3), bool), 0, 1).tolist() == [0, 0]


@pytest.mark.parametrize("left", [0.0, -1e-18, 1e-320])
def test_a_planner_with_nothing_left_says_so(left):
    plan = curate.planner(lambda: left, guessed_questions, Surrogate(10.0), concentrated, last=1)
    refused("nothing is left|would run at", plan, ~np.eye(4, dtype=bool), 0, kind=BudgetSpent)
