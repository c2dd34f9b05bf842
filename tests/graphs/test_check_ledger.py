"""Ledgers just within their promise are accepted, ledgers just beyond it refused."""

import contextlib
import math
from dataclasses import replace
from functools import partial

import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from numpy.random import default_rng
from people import refused
from refusals import refusals

from dpcgd import Budget, check_ledger, private_anm
from dpcgd.pairwise.dependence_scores import Iqr
from dpcgd.privacy.budget import Spent
from dpcgd.privacy.conversions import gaussian_delta
from dpcgd.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    Neighbours,
    PureEvent,
)
from dpcgd.privacy.filters import BasicFilter, Filter, Ledger

pytest.importorskip("dp_accounting")


def check(events, epsilon, delta, rows=1):
    used, promise = Spent(2 * epsilon, delta), Budget(epsilon, delta, rows)
    return check_ledger(Ledger(tuple(events), used, promise, "by hand"))


def refuses(*promise):
    with contextlib.suppress(ValueError):
        return not check(*promise)
    return True


def failing(delta, epsilon=0.1):
    return ApproximateEvent("tested release", epsilon, delta)


@pytest.mark.parametrize("times", [1, 2, 10, 300])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_one_gaussian_event_more_than_was_promised_is_refused(times, rows):
    epsilon, alone = 1.0, 4.0 * math.sqrt(times) * rows
    promised = gaussian_delta(alone / math.sqrt(times) / rows, epsilon)
    events = [GaussianEvent("Gaussian", alone)] * times
    assert not refuses(events, epsilon, promised * 1.001, rows)
    assert refuses([*events, events[0]], epsilon, promised * 1.001, rows)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_one_pure_event_more_than_was_promised_is_refused(times, rows):
    events = [PureEvent("any", 0.1)] * times
    assert not refuses(events, 0.1 * times * rows, 1e-30, rows)
    assert refuses(events, 0.1 * times * rows * (1 - 1e-5), 1e-30, rows)
    assert refuses([*events, PureEvent("any", 1e-4)], 0.1 * times * rows, 1e-30, rows)


@pytest.mark.parametrize("times", [1, 2, 7, 1000])
def test_deltas_are_added_to_the_last(times):
    events = [failing(1e-6 / times, 1e-3)] * times
    assert not refuses(events, 10.0, 1e-6)
    assert refuses([*events, failing(1e-6 / times, 1e-3)], 10.0, 1e-6)
    assert refuses([*events, failing(1e-11, 1e-3)], 10.0, 1e-6)


@pytest.mark.parametrize("rows", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 5.0])
def test_a_delta_counts_for_a_person_with_a_growing_weight_a_row(rows, epsilon):
    """1 + e^epsilon + ... times, which is more than once a row."""
    weight = sum(math.exp(i * epsilon) for i in range(rows))
    assert not refuses([failing(1e-6 / weight, epsilon)], rows * epsilon, 1e-6, rows)
    assert refuses([failing(1e-6 / weight * 1.001, epsilon)], rows * epsilon, 1e-6, rows)


def test_what_deltas_leave_is_all_that_the_rest_may_use():
    noise, epsilon = GaussianEvent("Gaussian", 5.0), 1.0
    for_noise = check([noise, PureEvent("any", 1e-9)], 2.0, 1e-6).epsilon
    assert for_noise > epsilon - 0.2
    with_less = check([noise, failing(0.999e-6, 1e-9)], 2.0, 1e-6).epsilon
    without = check([noise, PureEvent("any", 1e-9)], 2.0, 0.001e-6).epsilon
    assert with_less == pytest.approx(without, rel=1e-3)
    assert with_less > for_noise + 0.1


BOTH = [GaussianEvent("Gaussian", 10.0), PureEvent("Laplace", 1e-3)]
LAPLACE, CHOICES = PureEvent("Laplace", 0.015), BoundedRangeEvent("exponential", 0.03)
KINDS = [LAPLACE] * 100, [CHOICES] * 100, BOTH


@pytest.mark.parametrize("events", KINDS)
def test_rows_of_a_person_count_for_noise_of_every_kind(events):
    account, persons = Filter(Budget(1.0, 1e-6)), Budget(9.0, 1e-6, rows_per_person=3)
    account.spend(*events)
    one = account.ledger
    three = replace(one, budget=persons, spent=Spent(9.0, 1e-6))
    assert check_ledger(three).epsilon > 2.5 * check_ledger(one).epsilon


def test_a_ledger_that_says_less_than_it_comes_to_is_refused():
    account = Filter(Budget(1.0, 1e-6))
    account.spend(PureEvent("Laplace", 0.1))
    less = replace(account.ledger, spent=Spent(0.01, 1e-6))
    refused("was used, and comes to", check_ledger, less)


def test_what_basic_composition_allows_a_person_is_accepted():
    account = BasicFilter(Budget(1.0, 1e-6, rows_per_person=4))
    epsilon, delta = (most / 2 * (1 - 1e-9) for most in account.limit)
    for _ in range(2):
        account.spend(failing(delta, epsilon))
    assert check_ledger(account.ledger).epsilon <= 1.0


@pytest.mark.parametrize("rows", [1, 2])
def test_a_release_with_a_tested_score_is_accepted(rows):
    pair, settings = synthetic_pair(2000, rng=default_rng(0)), {"score": Iqr(), "epsilon": 1.0}
    release = private_anm(pair, rows_per_person=rows, rng=default_rng(0), **settings)
    assert check_ledger(release.ledger).epsilon <= 1.0


NO_PRICES = [
    (PureEvent("Laplace", 0.1, Neighbours.ADD_OR_REMOVE_ONE), "add or remove one record"),
    (PureEvent("Laplace", -0.1), "must be a positive finite number"),
    (GaussianEvent("Gaussian", -9.0), "must be a positive finite number"),
    (PureEvent("x", math.nan), "must be a positive finite number"),
    (failing(9e-7, 1.1), "promises epsilon = 1, and its ledger comes to 1.1"),
    (failing(2e-6), "promises delta = 1e-06, and its ledger comes to 2e-06"),
]
test_what_is_no_price_or_too_much_is_refused_with_what_it_is = refusals(
    *((partial(check, [event], 1.0, 1e-6), words) for event, words in NO_PRICES)
)


PRICED = [
    ([GaussianEvent("Gaussian", 9.0)], "prices of Gaussian", "sensitivities"),
    ([PureEvent("Laplace", 0.1)] * 9, "prices of Laplace", "sensitivities"),
    ([GaussianEvent("Gaussian", 9.0), failing(1e-9)], "prices of Gaussian", "prices of tested"),
    ([PureEvent("above threshold", 0.1)], None, "prices of above threshold"),
    ([PureEvent("above threshold", 0.02)] * 90, "their sum", "prices of above threshold"),
]


@pytest.mark.parametrize(("events", "recomputed", "ours"), PRICED)
def test_it_is_said_whose_prices_they_are(events, recomputed, ours):
    found = check(events, 9.0, 1e-6)
    assert any(name.startswith(ours) for name in found.ours)
    assert not set(found.ours) & set(found.recomputed)
    assert recomputed in found.recomputed if recomputed else found.recomputed == ()
