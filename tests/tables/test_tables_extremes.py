"""Every system at budgets at the ends of double precision; many levels; any counts of levels."""

from dataclasses import replace

import pytest
from extremes import LARGE_BUDGETS
from known_tables import unrelated
from numpy.random import default_rng

import dpcgd
from dpcgd import load, table_pc

pytestmark = pytest.mark.filterwarnings("error")

DATA = load("survey", n=1000, rng=default_rng(0))
SYSTEMS = ["laplace_pc", "priv_pc", "svt_pc", "em_pc", "curate_pc", "gram_notears", "noleaks"]
SYSTEMS += ["graph_from_moments", "table_pc", "private_graph"]
MANY_LEVELS = unrelated((2, 300, 9), 400, default_rng(0))


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("epsilon", "delta"), LARGE_BUDGETS)
def test_every_system_runs_at_any_large_budget(system, epsilon, delta):
    release = getattr(dpcgd, system)(DATA, epsilon=epsilon, delta=delta, rng=default_rng(0))
    assert release.guarantee == "proved"
    assert release.ledger.spent <= (epsilon, delta)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_refuses_a_budget_that_double_precision_cannot_split(system):
    with pytest.raises(ValueError, match=r"too small a budget|buys nothing but noise"):
        getattr(dpcgd, system)(DATA, epsilon=1e-200, delta=1e-300, rng=default_rng(0))


@pytest.mark.parametrize("ordered", [(), ("v1",)])
@pytest.mark.parametrize("budget", LARGE_BUDGETS)
def test_many_levels_are_joined_at_any_large_budget(budget, ordered):
    data = replace(MANY_LEVELS, ordered=ordered)
    release = table_pc(data, epsilon=budget[0], delta=budget[1], rng=default_rng(0))
    assert release.marginals.levels == (2, 16, 9)
    assert release.ledger.spent <= budget


@pytest.mark.parametrize("epsilon", [1e-3, 1e-30, 1e-100])
def test_too_small_a_budget_for_many_levels_is_refused(epsilon):
    with pytest.raises(ValueError, match="too much for 400 records and a variable with 4 levels"):
        table_pc(MANY_LEVELS, epsilon=epsilon, rng=default_rng(0))
