"""Ledgers just within their promise are accepted, ledgers just beyond it refused."""

import math

import pytest

from dpcgd import check_ledger
from dpcgd.privacy.budget import Budget, Spent
from dpcgd.privacy.conversions import gaussian_delta
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import Ledger

pytest.importorskip("dp_accounting")


def check(events, epsilon, delta, rows=1):
    used, promise = Spent(2 * epsilon, delta), Budget(epsilon, delta, rows)
    return check_ledger(Ledger(tuple(events), used, promise, "by hand"))


def refuses(*promise):
    try:
        check(*promise)
    except ValueError:
        return True
    return False


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
