"""A person with several rows: what is promised is promised for all of them together."""

import contextlib
import inspect
import math
import re

import numpy as np
import pandas as pd
import pytest
import replays
from dpcgd_book.attacks.replay import replay, worst
from hypothesis import given, settings, strategies as st
from known_tables import alone_and_joined
from numpy.random import default_rng
from people import refused

from dpcgd import Budget, BudgetSpent, check_rows_per_person, load, table_pc
from dpcgd.privacy import conversions
from dpcgd.privacy.conversions import epsilon_of_rho, gaussian_multiplier, rho_of_budget
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter

seeded = settings(derandomize=True)
epsilons = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(0.1)).map(math.exp)
rows = st.integers(1, 40)

# --- accounts: the budget of one row, and what it comes to for a person


@seeded
@given(epsilons, deltas, rows)
def test_concentrated_costs_of_one_row_come_to_the_budget_of_a_person(epsilon, delta, k):
    one, person = Budget(epsilon, delta), Budget(epsilon, delta, k)
    assert rho_of_budget(person) == rho_of_budget(one) / k**2
    assert epsilon_of_rho(k**2 * rho_of_budget(person), delta) <= epsilon
    assert epsilon_of_rho(rho_of_budget(one) * (1 + 1e-6), delta) > epsilon


@seeded
@given(epsilons, deltas, rows)
def test_gaussian_noise_for_one_row_is_enough_for_a_person(epsilon, delta, k):
    multiplier = gaussian_multiplier(Budget(epsilon, delta, k))
    assert conversions.gaussian_delta(multiplier / k, epsilon) <= delta * (1 + 1e-9)
    assert conversions.gaussian_delta(multiplier / k * (1 - 1e-6), epsilon) > delta


def chain(epsilon, delta, k):
    """Group privacy one row at a time: P_k <= e^eps P_(k-1) + delta, and so on."""
    total = 0.0
    for _ in range(k):
        total = math.exp(epsilon) * total + delta
    return k * epsilon, total


@seeded
@given(epsilons, deltas, rows)
def test_a_sum_of_epsilons_is_cut_into_a_chain_of_rows(epsilon, delta, k):
    reached = chain(*BasicFilter(Budget(epsilon, delta, k)).limit, k)
    assert reached[0] <= epsilon
    assert reached[1] <= delta * (1 + 1e-12)
    assert reached == pytest.approx((epsilon, delta), rel=1e-7)


def test_readings_are_those_of_a_person():
    budget = Budget(1.0, 1e-6, 3)
    for account, event in (
        (Filter(budget), PureEvent("Laplace", 0.04)),
        (GaussianFilter(budget), GaussianEvent("Gaussian", 20.0)),
    ):
        account.spend(event)
        exact, spent = epsilon_of_rho(9 * conversions.zcdp_rho(event), 1e-6), account.ledger.spent
        assert 0.9 * exact < spent.epsilon <= exact * (1 + 1e-9)
        refused("would exceed", account.spend, *[event] * 18, kind=BudgetSpent)
    basic = BasicFilter(budget)
    basic.spend(PureEvent("Laplace", 0.1), ApproximateEvent("tested release", 0.1, 1e-8))
    assert basic.ledger.spent == pytest.approx(chain(0.2, 1e-8, 3))
    refused("would exceed", basic.spend, *[PureEvent("Laplace", 0.1)] * 2, kind=BudgetSpent)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 700.0, 1e6, 1e300])
def test_any_epsilon_leaves_a_limit_that_is_a_number(epsilon):
    account = BasicFilter(Budget(epsilon, 1e-6, 5))
    assert 0 <= account.limit.delta <= 1e-6 / 5
    account.spend(PureEvent("Laplace", account.limit.price * (1 - 1e-12)))
    assert account.ledger.spent <= (epsilon, 0.0)


def test_no_delta_is_reserved_for_persons_with_several_rows():
    refused("no part of delta can be reserved", Filter, Budget(1.0, 1e-6, 2), reserved=1e-7)


# --- systems


@pytest.mark.parametrize("name", replays.SYSTEMS)
def test_every_private_system_promises_to_persons_by_the_theorems_of_its_docstring(name):
    case, how = replays.SYSTEMS[name], replays.FAST.get(name, {})
    numbers = replays.numbers_of(default_rng(0).uniform(-1, 1, (50, 2)))
    data = numbers if case.data is replays.paired else load("cancer", n=2000, rng=default_rng(0))
    promise = {"epsilon": 2.0, "delta": 1e-4, "rows_per_person": 2}
    release = case.system(data, rng=default_rng(0), **promise, **how)
    assert release.ledger.budget == Budget(**promise)
    assert release.ledger.spent <= (2.0, 1e-4)
    assert release.terms.rows_per_person == 2
    assert "replace up to 2 records, all of one person" in str(release.ledger)
    assert release.terms.system == ("dag_posterior" if name == "private_graph" else name)
    *theorems, persons = release.terms.theorems
    assert (persons, bool(theorems)) == ("thm-rows-per-person", True)
    assert set(theorems) <= set(re.findall(r":prf:ref:`([\w-]+)`", inspect.getdoc(case.system)))


@pytest.mark.parametrize("k", [2, 3])
def test_the_losses_of_all_rows_of_a_person_are_within_the_budget(k):
    one, other = alone_and_joined(2000, k)

    def run(rows_per_person):
        how = {"epsilon": 1.0, "delta": 1e-6, "rows_per_person": rows_per_person}
        return lambda data: table_pc(data, rng=default_rng(0), **how)

    allowed = 0.5 / gaussian_multiplier(Budget(1.0, 1e-6)) ** 2
    cost, of_one = (sum(d.loss**2 / 2 for d in replay(run(rows), one, other)) for rows in (k, 1))
    assert cost <= allowed < of_one / (k**2 - 1)  # the sensitivity is that of one row


@pytest.mark.slow
@pytest.mark.parametrize("name", replays.SYSTEMS)
def test_two_rows_move_every_answer_by_at_most_two_prices(name):
    """And in no way that only some of several rows could: same questions, same release."""
    case, rng, compared = replays.SYSTEMS[name], default_rng(11), 0
    settings = {"epsilon": 5.0, "delta": 1e-3, "seed": 0, "rows_per_person": 2}
    settings = replays.FAST.get(name, {}) | settings
    for _ in range(6):
        data, *others = case.data(rng, settings)
        if data.n < 40:
            continue
        with contextlib.suppress(ValueError):  # refused by public facts
            draws = replay(replays.started(case.system, settings), data, *others)
            compared += len(draws)
            assert worst(draws) <= 2
    assert compared


# --- refusals


def test_a_bound_beyond_doubles_is_refused():
    refused("at most 1,000,000,000", Budget, 1.0, 1e-6, 10**400)
    refused("too small a budget to be split up", Filter, Budget(1e-95, 1e-95, 10**9))


TWICE = [[1, "1"], [7.0, "7.00"], [" ann", "ann"], [10**16, 1e16], [("a", 1), ("a", "1")]]
TOO_MANY = [
    *((ids, 1) for ids in (*TWICE, ["ann", "bob", "ann"])),
    *((ids, 2) for ids in ([1, 2, 1, 1], [1, 1.0, np.int64(1)], ["7", 7.0, "7.0"])),
]
NAMELESS = [None, "", " \t", pd.NaT, math.nan]
OF_NOBODY = [*(["ann", "bob", name] for name in NAMELESS), [("a", 1), ("a", None)]]
NO_COLUMN = [
    *({"ann": 1, "bob": 2}, {10, 20}, frozenset([1, 2]), {"ann": 1}.keys(), "ann", 7),
    *([("a", [1]), ("b", [2])], [[1, 2], [3, 4]], np.array(7), np.zeros((2, 2))),
    pd.DataFrame({"id": [1, 2]}),
]


NO_IDS = [
    *((ids, k, "a person has more rows") for ids, k in TOO_MANY),
    *((ids, 1, "a row belongs to nobody") for ids in OF_NOBODY),
    *((ids, 1, "ids must be one column") for ids in NO_COLUMN),
    ([], 1, "ids is empty"),
    ([1, 2], 0, "rows_per_person must be a whole number, at least 1"),
    ([1, 2], 1.5, "rows_per_person must be a whole number"),
]


@pytest.mark.parametrize(("ids", "k", "message"), NO_IDS, ids=str)
def test_tables_that_break_the_bound_are_refused_without_saying_whose_rows(ids, k, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_rows_per_person(ids, k)
    assert not re.search("ann|bob|3|\n", str(caught.value))


def test_tables_within_the_bound_pass():
    ids = ["ann", "bob", "ann", 7, "7", ("a", 1)]
    for column in (ids, pd.Series(ids), np.array(ids[:4], dtype=object), iter(ids)):
        check_rows_per_person(column, 2)
    check_rows_per_person([7, "07", 7.5, "seven", "7.5e0", math.inf], 1)


def test_ids_are_as_many_as_records():
    check_rows_per_person(["ann", "bob", "ann"], 2, 3)
    check_rows_per_person(iter([1, 2]), 1, n=2)
    for n in (2, 4):
        cure = f"ids has 3 entries for {n} records; give one for"
        refused(cure, check_rows_per_person, ["ann", "bob", "ann"], 2, n)
