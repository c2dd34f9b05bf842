"""Schedules: totals, shapes and formulas."""

import math

import numpy as np
import pytest
from extremes import extreme, positive
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcgd.score.schedules import additive, exponential, multiplicative, rising, uniform

seeded = settings(derandomize=True, deadline=None, max_examples=100)
SCHEDULES = [uniform, additive, exponential, multiplicative, rising]
totals = st.floats(1e-3, 100)


@pytest.mark.parametrize("schedule", SCHEDULES)
@seeded
@given(total=totals, steps=st.integers(1, 300))
def test_schedules_spend_their_total_and_no_less_than_nothing_a_step(schedule, total, steps):
    shares = schedule(total, steps)
    assert shares.shape == (steps,)
    assert (shares > 0).all()
    assert math.fsum(shares) == pytest.approx(total, rel=1e-9)


@seeded
@given(total=totals, steps=st.integers(2, 100))
def test_which_schedules_rise(total, steps):
    for schedule in (additive, exponential, rising):
        assert (np.diff(schedule(total, steps)) >= 0).all()
    shares = multiplicative(total, steps)
    assert (np.diff(shares) <= 0).all() if shares[0] < 1 else (np.diff(shares) >= 0).all()


def test_schedules_follow_their_formulas():
    k = np.arange(8) / 8
    assert additive(1.0, 8) == pytest.approx(additive(1.0, 8)[0] * (1 + k), rel=1e-12)
    assert exponential(1.0, 8) == pytest.approx(exponential(1.0, 8)[0] * np.exp(k), rel=1e-12)
    first = multiplicative(1.0, 8)[0]
    assert multiplicative(1.0, 8) == pytest.approx(first ** (1 + k), rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("schedule", SCHEDULES)
@extreme
@given(positive, st.integers(1, 12))
def test_schedules_share_any_total(schedule, total, steps):
    shares = schedule(total, steps)
    assert (shares >= 0).all()
    assert math.fsum(shares / total) == pytest.approx(1)
    for bad in ((0.0, 3), (math.inf, 3), (math.nan, 3), (-1.0, 3), (1.0, 0)):
        with pytest.raises(ValueError, match="total must be positive"):
            schedule(*bad)


@pytest.mark.parametrize("total", [1e-6, 1e6])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_both_units_of_a_schedule_agree(total, steps):
    for near in (np.nextafter(total, 0), np.nextafter(total, math.inf)):
        assert multiplicative(total, steps) == pytest.approx(multiplicative(near, steps), rel=1e-9)
