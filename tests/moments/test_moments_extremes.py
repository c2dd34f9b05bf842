"""Moments that are no numbers, and measurements that cost nothing."""

import math

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd import BudgetSpent, load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Moment, paid
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.noise import SeededNoise

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("bad", [(np.inf, 0.1), (np.nan, 0.1), (1e200, 0.1), (0.1, np.inf)])
def test_what_is_no_number_is_not_released(bad):
    with pytest.raises(ValueError, match="that is noise only"):
        Marginals(10, (2, 2), {(0,): Moment(np.array([bad[0]]), bad[1])})
    with pytest.raises(ValueError, match="n must be at least 1"):
        Marginals(0, (2, 2))


@pytest.mark.parametrize("deviation", [0.0, 5e-324, 1e-300])
def test_two_exact_measurements_are_one(deviation):
    both = Moment(np.ones(1), deviation).combined(Moment(np.zeros(1), deviation))
    assert (both.values, both.deviation) == (0, deviation)


def test_a_rho_of_nothing_measures_nothing():
    data = load("survey", n=1000, rng=default_rng(0))
    account = Filter(Budget(1.0, 1e-6))
    marginals = MeasuredMarginals(Tables(data), paid(account, SeededNoise(default_rng(0))))
    for rho in (0.0, 5e-324, 1e-200):
        with pytest.raises(BudgetSpent, match="pays for no measurement"):
            marginals.measure((0, 1), rho)
    for rho in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="rho must be a positive finite number"):
            marginals.measure((0, 1), rho)
    assert account.ledger.events == ()
