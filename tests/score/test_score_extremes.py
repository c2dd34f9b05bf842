"""Schedules at the ends of double precision."""

import math

import numpy as np
import pytest
from extremes import extreme, positive
from hypothesis import given
from hypothesis import strategies as st

from dpcgd.score.schedules import additive, exponential, multiplicative, rising, uniform

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("schedule", [uniform, additive, exponential, multiplicative, rising])
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
