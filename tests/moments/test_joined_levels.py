import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from known_tables import records
from moment_audits import Noted, audited
from numpy.random import default_rng

from dpcgd import Budget, BudgetSpent, Dataset
from dpcgd.moments.interactions import exactly, paid
from dpcgd.moments.joined_levels import join_levels
from dpcgd.moments.scores import look_sensitivity
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise

some_counts = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=40)


def told(counts):
    """A first look that says these numbers, whatever the data."""
    return lambda query, *, sensitivity, rho: (np.array(counts, float), 1.0)


def one_wide(levels, name="a", ordered=()):
    """Every level of one variable once, beside a constant."""
    codes = np.column_stack([np.arange(levels), np.zeros(levels, int)])
    return Dataset(codes, {name: [str(k) for k in range(levels)], "b": ["0"]}, ordered=ordered)


@pytest.mark.parametrize("levels", [(3, 4), (3, 5, 3), (2, 3, 4)])
def test_the_sensitivity_is_the_largest_distance_of_two_records(levels):
    noted = Noted()
    for codes in itertools.product(*map(range, levels)):
        join_levels(records(codes, levels), noted, 1.0, most=2)
    pairs = itertools.combinations(noted.answers, 2)
    furthest = max(np.linalg.norm(a - b) for (a, _), (b, _) in pairs)
    assert noted.sensitivities == pytest.approx([furthest] * len(noted.answers))
    assert look_sensitivity(sum(of > 2 for of in levels)) == pytest.approx(furthest)


def test_the_most_frequent_levels_are_kept_and_the_rest_is_one():
    data, joined = join_levels(one_wide(6), told([5, 9, 1, 7, 2, 7]), 1.0, most=4)
    assert data.levels["a"] == ("1", "3", "5", "other")
    assert [*joined["a"].values()] == ["other", "1", "other", "3", "other", "5"]
    assert data.codes[:, 0].tolist() == [3, 0, 3, 1, 3, 2]


def test_neighbours_that_are_rarest_together_are_joined():
    look = told([5, 1, 2, 50, 3, 3, 40])
    data, joined = join_levels(one_wide(7, ordered=["a"]), look, 1.0, most=4)
    assert [*joined["a"].values()] == ["0..2", "0..2", "0..2", "3", "4..5", "4..5", "6"]
    assert data.codes[:, 0].tolist() == [0, 0, 0, 1, 2, 2, 3]


@pytest.mark.parametrize("ordered", [(), ("a",)])
def test_missing_values_stay_apart(ordered):
    data = replace(one_wide(6, ordered=ordered), missing={"a": "5"})
    data, joined = join_levels(data, told([5, 9, 1, 7, 2, 0]), 1.0, most=3)
    assert (data.missing, data.levels["a"][-1], data.cardinalities) == ({"a": "5"}, "5", (3, 1))
    assert [old for old, new in joined["a"].items() if new == "5"] == ["5"]


def test_new_names_are_not_those_of_other_levels():
    data = Dataset([[0, 0]], {"a": ["other", "x", "y", "z"], "b": ["0"]})
    joined, _ = join_levels(data, told([9, 3, 2, 1]), 1.0, most=2)
    assert joined.levels["a"] == ("other", "other'")
    data = Dataset([[0, 0]], {"a": ["a", "b..c", "a..b", "c"], "b": ["0"]}, ordered=["a"])
    joined, _ = join_levels(data, told([1, 1, 1, 1]), 1.0, most=2)
    assert joined.levels["a"] == ("a..b..c", "a..b..c'")


def test_tables_without_many_levels_are_not_looked_at():
    def refuse(query, *, sensitivity, rho):
        raise AssertionError("looked")

    data = one_wide(8)
    assert join_levels(data, refuse, 1.0) == (data, {})


def test_variables_records_and_truth_stay():
    levels = (3, 12, 2, 30)
    codes = default_rng(0).integers(0, levels, (500, 4))
    data = replace(records(codes, levels), ordered=["v3"])
    new, joined = join_levels(data, exactly, 1.0, most=5)
    facts = data.variables, data.n, data.name
    assert (new.cardinalities, new.variables, new.n, new.name) == ((3, 5, 2, 5), *facts)
    assert (new.codes[:, [0, 2]] == codes[:, [0, 2]]).all()
    for v, name in ((1, "v1"), (3, "v3")):
        renamed = [joined[name][data.levels[name][code]] for code in codes[:, v]]
        assert renamed == [new.levels[name][code] for code in new.codes[:, v]]


@settings(derandomize=True, max_examples=60)
@given(some_counts, st.integers(2, 8), st.booleans())
def test_any_first_look_leaves_few_levels_and_all_records(counts, most, by_order):
    data = one_wide(len(counts), ordered=["a"] if by_order else [])
    with np.errstate(over="ignore"):
        new, joined = join_levels(data, told(counts), 1.0, most=most)
    assert new.cardinalities[0] == min(most, len(counts))
    if len(counts) <= most:
        assert joined == {}
        return
    assert list(joined["a"]) == list(data.levels["a"])
    assert set(joined["a"].values()) == set(new.levels["a"])
    if by_order:
        assert (np.diff(new.codes[:, 0].astype(int)) >= 0).all()
    else:
        kept = [level == name for level, name in joined["a"].items()]
        assert min(itertools.compress(counts, kept)) >= max(np.delete(counts, np.nonzero(kept)))


def test_a_look_that_cannot_be_paid_for_is_not_taken():
    account = GaussianFilter(Budget(0.1, 1e-6))
    with pytest.raises(BudgetSpent):
        join_levels(one_wide(17), paid(account, SeededNoise(default_rng(0))), 1.0)
    assert account.ledger.events == ()


@pytest.mark.slow
def test_a_first_look_passes_its_audit_and_with_half_the_noise_it_fails():
    """Along the direction in which two neighbours differ, in all variables."""
    codes = np.column_stack([np.arange(200) % 10] * 3)
    pair = [records(np.vstack([codes, [last] * 3]), (10, 10, 10)) for last in (0, 9)]

    def released(data, account, paying):
        noted = Noted(paying)
        join_levels(data, noted, account.rho, most=8)
        table = noted.answers[0][0].reshape(3, 10)
        return (table[:, 0] - table[:, 9]).sum()

    assert math.isfinite(audited(released, *pair, epsilon=1.0, seed=0))
