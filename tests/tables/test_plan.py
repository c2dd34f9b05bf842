"""A plan says what the run refuses, and how wide its noise is; nothing of it needs data."""

import itertools
import math
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from known_tables import records, unrelated
from numpy.random import default_rng
from refusals import refusals

from dpcgd import (
    epsilon_for as epsilon_for_system,
    load,
    plan as plan_of,
    priv_pc,
    private_graph,
    table_pc,
)
from dpcgd.moments.clipped_moments import blocks_of
from dpcgd.tables import plan as planning
from dpcgd.tables.table_pc import TableOracle

plan = partial(plan_of, system=table_pc)
epsilon_for = partial(epsilon_for_system, system=table_pc)

BIT = ["no", "yes"]
LEVELS = {"a": BIT, "b": range(3), "c": BIT, "d": range(5)}
PLANNED = plan(LEVELS, 10_000, epsilon=1.0)

some_orders = st.sampled_from([2, 2, 2, 1, 1, 0, -1, 3])
some_rows = st.sampled_from([1, 1, 1, 2, 0])
some_tables = st.lists(st.integers(1, 7), min_size=2, max_size=5)


def check_testable(planned, release, order):
    """The plan and an oracle of the release agree on which tests given so many can be made."""
    oracle, names = TableOracle(release.marginals), list(planned.shares)
    for x, y in itertools.permutations(range(len(names)), 2):
        others = [v for v in range(len(names)) if v not in (x, y)]
        may = []
        for z in itertools.combinations(others, order):
            may.append(planned.testable(names[x], names[y], [names[v] for v in z]))
            assert may[-1] == (oracle.separates(x, y, z) is not None)
        if x < y:
            share = planned.pairs[names[x], names[y]].testable[order]
            assert share == pytest.approx(np.mean(may) if may else math.nan, nan_ok=True)


def run_or_refusal(system, *args, **how):
    try:
        with warnings.catch_warnings(action="ignore"):
            return system(*args, **how), None
    except ValueError as error:
        return None, str(error)


@settings(derandomize=True, max_examples=150)
@given(some_tables, st.integers(20, 20_000), st.floats(0.1, 5), some_orders, some_rows)
def test_what_a_plan_calls_not_testable_is_what_the_run_refuses(sizes, n, epsilon, max_order, rows):
    rng = default_rng(n)
    data = unrelated(sizes, n, rng)
    how = {"epsilon": epsilon, "delta": 1e-5, "max_order": max_order, "rows_per_person": rows}
    planned, refused = run_or_refusal(plan, data.levels, n, **how)
    release, refusal = run_or_refusal(table_pc, data, rng=rng, **how)
    assert refused == refusal
    if release is None:
        return
    assert release.ledger.spent <= (epsilon, 1e-5)
    assert (release.guarantee, release.answers.stopped_early) == ("proved", False)
    for order in range(max_order + 1):
        check_testable(planned, release, order)
    never = {pair for pair in planned.pairs if not planned.testable(*pair)}
    assert release.answers.untested == {frozenset(pair) for pair in never}


@settings(derandomize=True, max_examples=40)
@given(some_tables, st.integers(2000, 10**6), st.floats(0.5, 5))
def test_no_number_has_more_noise_than_planned(sizes, n, epsilon):
    rng = default_rng(n)
    codes = rng.integers(0, sizes, (2000, len(sizes)))
    codes[:, -1] = np.minimum(codes[:, 0], sizes[-1] - 1)
    data = records(codes, sizes)
    planned, refused = run_or_refusal(plan, data.levels, data.n, epsilon=epsilon)
    if refused:
        return
    release = table_pc(data, epsilon=epsilon, rng=rng)
    assert release.ledger.spent <= (epsilon, 1e-6)
    for subset, moment in planned.marginals.released.items():
        seen = release.marginals.released[subset].deviation
        assert seen <= moment.deviation * (1 + 1e-12)
        assert len(subset) > 1 or seen == moment.deviation


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_a_plan_knows_that_levels_will_be_joined(epsilon):
    rng = default_rng(0)
    data = unrelated((40, 2, 3, 25), 20_000, rng)
    with warnings.catch_warnings(action="ignore"):
        planned = plan(data.levels, data.n, epsilon=epsilon)
        release = table_pc(data, epsilon=epsilon, rng=rng)
    assert tuple(map(len, planned.shares.values())) == release.marginals.levels
    assert planned.deviation / data.n == pytest.approx(release.marginals.moment(0).deviation)
    check_testable(planned, release, 1)


def test_a_frame_has_the_worst_of_what_can_be_conditioned_on():
    planned = plan(LEVELS, 10_000, epsilon=0.5, shares={"d": (1, 1, 1, 1, 16)})
    for row in planned.to_frame().itertuples():
        others = [v for v in LEVELS if v not in (row.x, row.y)]
        assert row.correlation == planned.smallest(row.x, row.y)
        assert row.partial_correlation == max(planned.smallest(row.x, row.y, [v]) for v in others)
        assert row.partial_correlation > row.correlation
        assert planned.power_of(row.correlation, row.x, row.y) == pytest.approx(0.8)
        assert row.order_0 == row.order_1 == row.order_2 == 1


DEPENDENCES = [
    {"correlation": 0.05},
    {"correlation": 0.05, "order": 0},
    {"points": 12.5, "power": 0.9},
    {"correlation": 0.03, "between": ("c", "a"), "delta": 1e-8},
    {"correlation": 0.1, "shares": {"a": (1, 20)}},
    {"points": 10, "max_order": 0, "order": 0},
]


@pytest.mark.parametrize("how", DEPENDENCES)
def test_the_epsilon_for_a_dependence_is_the_smallest_of_three_digits_that_finds_it(how):
    found = epsilon_for(LEVELS, 50_000, **how)
    assert float(f"{found:.2e}") == found
    (kind, size), *others = how.items()
    settings = {key: value for key, value in others if key not in ("order", "between")}
    columns = [kind, f"partial_{kind}"][: 1 + how.get("order", 1)]
    asked = how.get("between", tuple(LEVELS))

    def finds(epsilon):
        planned, _ = run_or_refusal(plan, LEVELS, 50_000, epsilon=epsilon, **settings)
        if planned is None:
            return False
        frame = planned.to_frame()
        frame = frame[frame["x"].isin(asked) & frame["y"].isin(asked)]
        return bool((frame[columns] <= size).all(axis=None))

    assert finds(found)
    assert not finds(found - 10 ** (math.floor(math.log10(found) + 1e-9) - 2))


DATA = load("asia", n=100, rng=default_rng(0))


def planned_with(levels=LEVELS, n=10_000, epsilon=1.0, **settings):
    return lambda: plan(levels, n, epsilon=epsilon, **settings)


def epsilon_with(levels=LEVELS, **settings):
    return lambda: epsilon_for(levels, 10_000, **settings)


test_a_plan_of_what_cannot_be_run_and_an_epsilon_for_what_cannot_be_seen_are_refused = refusals(
    (planned_with(n=0), "n must be a whole number, at least 1"),
    (planned_with(epsilon=0), "epsilon must be a positive finite number"),
    (planned_with(delta=1.5), "delta must be below 1"),
    (planned_with(alpha=0), "alpha must be a significance level above 0 and below 1"),
    (planned_with(max_order=3), "max_order must be 0, 1 or 2"),
    (planned_with(max_order=1.5), "max_order must be a whole number"),
    (planned_with(least_share=5), "least_share must be at least 0 and below 1"),
    (planned_with(least_effect=math.nan), "least_effect must be at least 0 and below 1"),
    (planned_with(rows_per_person=0), "rows_per_person must be a whole number, at least 1"),
    (planned_with(power=0.005), "power must be above 0.01 and below 1"),
    (planned_with(shares={"e": (1, 1)}), "is no variable; correct the name"),
    (planned_with(shares={"b": (1, 1)}), "give each level one"),
    (planned_with(shares={"a": (0, 1)}), "variable 'a' must be above 0"),
    (planned_with(shares={"a": (1, math.inf)}), "variable 'a' must be above 0"),
    (planned_with(shares={"a": "12"}), "give its shares as a list"),
    (planned_with(shares=[1, 1]), "shares must map variables"),
    (planned_with(system=priv_pc), "rehearse(..., system=priv_pc) takes"),
    (planned_with(system="table_pc"), "there is a plan for private_graph and table_pc"),
    (planned_with(epsilon=1e-4), "take a larger epsilon, fewer variables or levels"),
    (planned_with({"a": BIT}), "a causal graph needs at least two variables"),
    (planned_with(DATA), "this takes no data, and a Dataset holds some; pass the schema"),
    (planned_with(pd.DataFrame({"a": [0]})), "this takes no data"),
    (lambda: PLANNED.testable("a", "e"), "correct the name"),
    (lambda: PLANNED.testable("a", "b", ["a"]), "name each variable once"),
    (lambda: PLANNED.testable("a", "b", "c"), "given must be a list of variables"),
    (lambda: PLANNED.smallest("a", "b", ["c", "d"]), "testable"),
    (lambda: PLANNED.power_of("0.1", "a", "b"), "r must be at least 0 and below 1"),
    (epsilon_with(), "give the size to be found"),
    (epsilon_with(correlation=0), "correlation must be above 0 and below 1"),
    (epsilon_with(points="10"), "points must be above 0 and below 100"),
    (epsilon_with(correlation=0.1, order=2), "order must be 0 or 1"),
    (epsilon_with(correlation=0.1, between=("a", "a")), "between must name two variables"),
    (epsilon_with(correlation=0.001), "no epsilon up to 999 finds that among 10,000 records; look"),
    (epsilon_with({"a": BIT, "b": ["only"]}, correlation=0.1), "nothing can be found"),
)


LEAST_OF_ALL = {"least_effect": 0, "least_share": 0}
SIX = dict.fromkeys("abcdef", BIT)


UNEVEN = {"correlation": 0.5, "shares": {"a": (1, 999)}}


CURES = [
    (10**9, {"points": 0.9}, "a smaller least_share and a smaller least_effect", LEAST_OF_ALL),
    (10**9, {"points": 0.9}, "look for 1.47 or more", {"points": 1.47}),
    (100, {"points": 5}, "take more records", {"n": 100_000}),
    (10_000, {"points": 10, "max_order": 0}, "take max_order=1", {"max_order": 1}),
    (10_000, UNEVEN, "ask for one pair, such as between=('b', 'c')", {"between": ("b", "c")}),
]


@pytest.mark.parametrize(("n", "how", "cure", "changed"), CURES)
def test_what_an_epsilon_that_is_not_there_would_take_helps(n, how, cure, changed):
    with pytest.raises(ValueError, match=f"^.*{re.escape(cure)}.*$"):
        epsilon_for(SIX, n, **how)
    assert 0 < epsilon_for(SIX, **{"n": n, **how, **changed}) <= 999


def test_fewer_levels_are_no_cure_for_a_number():
    with pytest.raises(ValueError, match="or take more records"):
        epsilon_for_system({"a": {"range": [0, 1]}, "b": BIT, "c": BIT}, 200, correlation=0.05)


def test_a_plan_of_any_size_finds_less_with_less_noise():
    found = [plan(SIX, 10**k, epsilon=1.0).pairs["a", "b"] for k in range(6, 15)]
    assert all(pair.partial_correlation > 0 for pair in found)
    for more, less in itertools.pairwise(found):
        assert less.correlation < more.correlation
        assert less.partial_correlation < more.partial_correlation * (1 + 1e-5)


# --- systems that ask no tests


@pytest.mark.parametrize(
    "levels",
    [LEVELS, {f"v{i}": range(2 + i % 3) for i in range(9)}, {f"v{i}": BIT for i in range(20)}],
    ids=["whole table", "triples", "clipped"],
)
def test_a_plan_of_private_graph_has_the_noise_of_its_run(levels):
    data = unrelated([*map(len, levels.values())], 50_000, default_rng(0))
    release = private_graph(data, epsilon=1.0, rng=default_rng(1))
    planned = plan_of(data.levels, data.n, epsilon=1.0)
    assert planned.marginals.released.keys() == release.marginals.released.keys()
    for subset, moment in release.marginals.released.items():
        assert planned.marginals.released[subset].deviation == pytest.approx(moment.deviation)
    noise, expected = (blocks_of(of).noise for of in (release.marginals, planned.marginals))
    np.testing.assert_allclose(noise, expected, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "levels", "times"), [(3, 2, 1.5), (20, 2, 1.5), (3, 5, 2), (3, 30, 2.5), (3, 100, 4)]
)
def test_a_larger_edge_is_drawn_as_often_as_the_plan_says(d, levels, times):
    """In 20 runs fewer than 11 of probability .8 come once in 400 such tests, and none here did."""
    sizes = [2, levels, *[2] * (d - 2)]
    known = {f"v{i}": range(size) for i, size in enumerate(sizes)}
    r, rng = plan_of(known, 50_000, epsilon=0.5).smallest("v0", "v1"), default_rng(0)

    def is_joined(size, run):
        codes = rng.integers(0, 2, (50_000, d))
        codes[:, 1] = np.where(rng.random(50_000) < size, codes[:, 0], codes[:, 1])
        codes[:, 1] = codes[:, 1] * (levels // 2) + rng.integers(0, levels // 2, 50_000)
        release = private_graph(records(codes, sizes), epsilon=0.5, rng=default_rng(run))
        return frozenset(("v0", "v1")) in release.graph.skeleton

    few, many = (sum(is_joined(size, run) for run in range(20)) for size in (r / 2, times * r))
    assert few <= 10 < many


@pytest.mark.parametrize(("n", "epsilon"), [(100_000, 2.0), (10_000, 1.0)])
def test_of_groups_of_levels_a_pair_has_the_plan_of_all_levels(n, epsilon, monkeypatch):
    levels, frames = {"a": BIT, "b": range(12), "c": range(24)}, []
    for most in (24, 12, 4):
        monkeypatch.setattr(planning, "MOST_LEVELS", most)
        frames.append(plan_of(levels, n, epsilon=epsilon).to_frame()[["correlation", "points"]])
    assert np.allclose(frames[0], frames[1:], rtol=1e-3)
    town = plan_of({**levels, "town": range(900)}, 100_000, epsilon=2.0)
    assert 2 * town.smallest("a", "c") < town.smallest("a", "town") < 0.2


def test_more_records_than_the_edge_model_knows_show_it_no_more():
    million, more = (plan_of(SIX, n, epsilon=100.0).pairs["a", "b"] for n in (10**6, 10**9))
    assert more.correlation == pytest.approx(million.correlation, rel=1e-3)
    assert more.partial_correlation == pytest.approx(million.partial_correlation, rel=1e-3)


def test_cures_are_settings_of_the_system_that_runs():
    assert 0 < epsilon_for_system(SIX, 10**9, points=0.9) < 1
    with pytest.raises(ValueError, match="no epsilon up to 999") as error:
        epsilon_for_system(SIX, 10**9, points=0.2)
    assert "look for" in str(error.value)
    assert not any(word in str(error.value) for word in ("least_", "records and", "more records"))


def test_a_plan_warns_where_the_edge_model_was_trained_on_nothing_alike():
    with pytest.warns(UserWarning, match="30 records and more"):
        planned = plan_of({f"v{i}": BIT for i in range(9)}, 20, epsilon=1.0)
    assert "30 records and more" in planned.caution
    assert planned.caution in repr(planned)
    assert plan_of(SIX, 50_000, epsilon=1.0).caution == ""


def test_a_variable_of_one_level_neither_warns_nor_changes_another_pair():
    with warnings.catch_warnings(action="error"):
        frame = plan_of(
            {"one": ["x"], "b": BIT, "c": {"range": [0, 9]}}, 3000, epsilon=1.0
        ).to_frame()
    assert frame.partial_correlation.isna().tolist() == [True, True, False]
