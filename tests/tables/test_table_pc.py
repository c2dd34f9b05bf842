import itertools
import math
import pickle
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred
from dpcgd_book.systems.edge_confidence import redrawn
from hypothesis import given, settings, strategies as st
from known_tables import exact, records, unrelated
from numpy.random import default_rng
from people import refused
from scipy import stats

from dpcgd import Knowledge, load, table_pc
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, paid
from dpcgd.moments.joined_levels import FIRST_LOOK
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.tables.table_pc import TableOracle, search_again, shares

ASIA = load("asia", rng=default_rng(0))


@pytest.mark.parametrize("d", [2, 3, 5, 8, 9, 40])
def test_shares_pay_for_the_pairs_and_all_triples_that_are_planned(d):
    for_pairs, for_triple = shares(d)
    assert 0.6 <= for_pairs <= 1
    assert for_pairs + for_triple * min(8 * d, math.comb(d, 3)) == pytest.approx(1)


def with_a_faint_effect(n, r, with_third=0.2):
    """Two variables that correlate by r given a third, with which both correlate."""
    table = np.zeros((2, 2, 2))
    for z, p in enumerate((0.5 - with_third / 2, 0.5 + with_third / 2)):
        both = p * p + r * p * (1 - p)
        table[:, :, z] = [[1 - 2 * p + both, p - both], [p - both, both]]
    return exact(table * n / 2)


@pytest.mark.parametrize("n", [10**5, 10**7, 10**9])
def test_others_that_leave_less_than_the_least_effect_separate(n):
    below, above = with_a_faint_effect(n, 0.009), with_a_faint_effect(n, 0.011)
    for marginals in (below, above):
        assert not TableOracle(marginals).separates(0, 1, ())
    assert TableOracle(below).separates(0, 1, (2,))
    assert not TableOracle(below, least_effect=0.0).separates(0, 1, (2,)) or n == 10**5
    assert not TableOracle(above).separates(0, 1, (2,))


@settings(derandomize=True, max_examples=100)
@given(st.floats(0.02, 0.5), st.floats(0.2, 0.9), st.floats(0.001, 0.5))
def test_others_that_leave_less_than_the_least_share_separate(r, with_third, share):
    marginals = with_a_faint_effect(10**9, r, with_third)
    alone = with_third**2 + r * (1 - with_third**2)  # their correlation given none
    oracle = TableOracle(marginals, least_share=share)
    assert not oracle.separates(0, 1, ())
    if abs(r**2 / (share * alone**2) - 1) > 1e-5:
        assert oracle.separates(1, 0, (2,)) == (r**2 < share * alone**2)
    assert not TableOracle(marginals, least_share=0.0).separates(0, 1, (2,))


def test_what_is_measured_again_is_tested_again():
    data = load("survey", n=5000, rng=default_rng(0))
    marginals = MeasuredMarginals(Tables(data), blurred(100.0, default_rng(1)))
    marginals.measure_pairs(1.0)
    for triple in itertools.combinations(range(data.d), 3):
        marginals.measure(triple, 1.0)
    tests = [(0, 1), (0, 2), (0, 1, 2), (1, 2, 0), (3, 4, 5), (2, 3, 0, 1), (2, 3, 4, 5)]

    def associations(oracle):
        rows = [tuple(oracle._association(x, y, tuple(given))) for x, y, *given in tests]
        return rows + [oracle._given_interacting(x, y, tuple(s)) for x, y, *s in tests[-2:]]

    oracle = TableOracle(marginals)
    before = associations(oracle)
    oracle.measure_again([(0, 1), (2, 5)], 1.0)
    after = associations(oracle)
    changed = [old != new for old, new in zip(before, after, strict=True)]
    assert changed == [True, False, True, True, False, True, True, True, True]
    for new, fresh in zip(after, associations(TableOracle(marginals)), strict=True):
        assert new == pytest.approx(fresh)


def test_a_determined_variable_separates_nothing():
    table = np.zeros((2, 2, 2, 2), int)
    for x, z, w in itertools.product(range(2), repeat=3):
        table[x, z | w, z, w] = 250
    marginals = exact(table)
    assert not TableOracle(marginals).separates(0, 1, (2, 3))
    assert TableOracle(marginals, determined=0.0).separates(0, 1, (2, 3))


def test_at_a_price_of_nothing_an_oracle_measures_nothing_new():
    data, account = load("asia", n=20_000, rng=default_rng(0)), GaussianFilter(Budget(1.0, 1e-6))
    marginals = MeasuredMarginals(Tables(data), paid(account, SeededNoise(default_rng(1))))
    marginals.measure_pairs(0.5 * account.rho)
    known, left = set(marginals.released), account.remaining
    found = search(TableOracle(marginals), data.variables, max_order=2)
    assert (set(marginals.released), account.remaining) == (known, left)
    again = TableOracle(marginals.without_data())
    assert search(again, data.variables, max_order=2).graph == found.graph


def test_pairs_with_a_p_value_near_the_level_are_in_doubt():
    # chi-squared of 2 x 2 tables with 100 a cell but for some: 4 t^2 / 100
    for moved, in_doubt in ((1, []), (9, [(0, 1)]), (15, [(0, 1)]), (30, [])):
        table = np.array([[100 + moved, 100 - moved], [100 - moved, 100 + moved]])
        oracle, expected = TableOracle(exact(table)), stats.chi2.sf(4 * moved**2 / 100, 1)
        assert oracle.separates(1, 0, ()) == (expected > 0.01)
        assert oracle.largest == {(0, 1): pytest.approx(expected, rel=1e-6)}
        assert oracle.in_doubt() == in_doubt


def test_a_look_measures_what_is_in_doubt_with_its_share_and_searches_again():
    account = GaussianFilter(Budget(0.3, 1e-6))
    marginals = MeasuredMarginals(Tables(ASIA), paid(account, SeededNoise(default_rng(1))))
    for_pairs, for_triple = (share * account.rho for share in shares(ASIA.d))
    marginals.measure_pairs(for_pairs)
    known, left = dict(marginals.released), []

    class Watched(TableOracle):
        def measure_again(self, pairs, rho):
            left.append((account.remaining, rho, pairs))
            super().measure_again(pairs, rho)

    search_again(Watched(marginals, price=for_triple), account, ASIA.variables, looks=(0.5,))
    ((before, rho, pairs),) = left
    assert rho == pytest.approx(before / 2)
    assert {s for s in known if marginals.released[s].deviation < known[s].deviation} == set(pairs)


def test_a_run_spends_what_is_left_on_the_triples_of_families():
    release = table_pc(ASIA, epsilon=1.0, rng=default_rng(1))
    assert 0.999 < release.ledger.spent.epsilon <= 1.0
    assert release.ledger.accountant.startswith("Gaussian filter")


def test_a_release_holds_no_data():
    data = load("sachs", n=50_000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    assert type(release.marginals) is Marginals
    assert len(pickle.dumps(release)) < 200_000 < data.codes.nbytes
    assert not hasattr(release.marginals, "measure")


def test_redrawn_marginals_carry_their_noise_twice():
    marginals = table_pc(ASIA, epsilon=1.0, rng=default_rng(1)).marginals
    told, again = marginals.released, redrawn(marginals, default_rng(2)).released
    assert again.keys() == told.keys()
    assert again[0,].deviation == pytest.approx(math.sqrt(2) * told[0,].deviation)
    moved = {s: again[s].values - m.values for s, m in told.items() if s}
    ratio = np.concatenate([part.ravel() / told[s].deviation for s, part in moved.items()])
    assert abs(ratio.mean()) < 6.2 / math.sqrt(len(ratio))  # false alarm below 1e-9
    assert stats.kstest(ratio, "norm").pvalue > 1e-9


def test_knowledge_is_obeyed():
    data = load("survey", rng=default_rng(0))
    known = Knowledge(required=[("A", "S")], forbidden=[("A", "E"), ("E", "A")])
    graph = table_pc(data, epsilon=1.0, rng=default_rng(0), knowledge=known).graph
    assert ("A", "S") in graph.arrows
    assert frozenset("AE") not in graph.skeleton


def test_variables_with_one_level_stand_alone():
    rng = default_rng(0)
    first = rng.integers(0, 2, 5000)
    codes = np.column_stack([np.zeros(5000, int), first, first, np.zeros(5000, int)])
    release = table_pc(records(codes, (1, 2, 2, 1)), epsilon=2.0, rng=rng)
    assert release.graph.skeleton == {frozenset(("v1", "v2"))}
    assert table_pc(records([[0, 0]] * 5000, (1, 1)), epsilon=2.0, rng=rng).ledger.events == ()


NO_SHARES, BELOW_1 = (-0.1, 1, math.nan, "0.1"), "must be at least 0 and below 1"
BAD_INPUT = [
    ({"epsilon": 0.01}, "take a larger epsilon, fewer variables, or more records"),
    ({"untested": "maybe"}, "untested must be 'keep' or 'drop'"),
    *(({"least_effect": bad}, f"least_effect {BELOW_1}") for bad in NO_SHARES),
    *(({"least_share": bad}, f"least_share {BELOW_1}") for bad in NO_SHARES),
]


@pytest.mark.parametrize(("how", "cure"), BAD_INPUT)
def test_bad_input_is_refused_before_anything_is_spent(how, cure):
    data, rng = load("asia", n=5000, rng=default_rng(0)), default_rng(0)
    refused(cure, table_pc, data, **{"epsilon": 1.0, "rng": rng, **how})
    assert rng.bit_generator.state == default_rng(0).bit_generator.state


# --- many levels ------------------------------------------------------------------------------


def a_cause_with_many_levels(n=20_000):
    """A variable of forty levels, three effects of it that copy parts of it, and a stranger."""
    rng = default_rng(0)
    cause = np.minimum(rng.geometric(0.08, n) - 1, 39)
    parts = [cause % 2, cause % 3, (cause // 4) % 2]
    effects = [np.where(rng.random(n) < 0.8, part, rng.integers(0, 2, n)) for part in parts]
    return records(np.column_stack([cause, *effects, rng.integers(0, 3, n)]), (40, 2, 3, 2, 3))


MANY = a_cause_with_many_levels()


def test_a_run_says_which_levels_it_has_joined():
    release = table_pc(MANY, epsilon=1.0, rng=default_rng(1))
    ((name, joined),) = release.joined_levels.items()
    assert (name, *joined) == ("v0", *MANY.levels["v0"])
    assert set(joined.values()) == set(release.levels["v0"])
    assert release.marginals.levels == (16, 2, 3, 2, 3)
    assert (joined["0"], joined["38"]) == ("0", "other")
    by_order = table_pc(replace(MANY, ordered=["v0"]), epsilon=1.0, rng=default_rng(1))
    assert any(".." in level for level in by_order.levels["v0"])
    assert release.ledger.spent <= (1.0, 1e-6)


def test_a_first_look_is_paid_from_the_same_budget_and_only_where_it_is_taken():
    rho = GaussianFilter(Budget(1.0, 1e-6)).rho
    first, second, *_ = map(zcdp_rho, table_pc(MANY, epsilon=1.0, rng=default_rng(1)).ledger.events)
    assert first == pytest.approx(FIRST_LOOK * rho)
    assert second == pytest.approx(shares(5)[0] * (1 - FIRST_LOOK) * rho)
    few = table_pc(ASIA, epsilon=1.0, rng=default_rng(1))
    assert few.joined_levels == {}
    assert zcdp_rho(few.ledger.events[0]) == pytest.approx(shares(8)[0] * rho)


def test_effects_of_a_joined_cause_are_not_joined_to_each_other():
    run = partial(table_pc, MANY, epsilon=3.0)
    kept, dropped = (run(rng=default_rng(1), untested=word) for word in ("keep", "drop"))
    true = {frozenset(("v0", name)) for name in ("v1", "v2", "v3")}
    assert dropped.graph.skeleton == true
    false = kept.graph.skeleton - true
    assert false
    assert false == dropped.answers.untested == kept.answers.untested
    assert "pairs left out, never tested" in repr(dropped)
    assert "of them never tested" in repr(kept)


def test_a_required_edge_stays_whatever_explains_it():
    known = Knowledge(required=[("v1", "v2")])
    graph = table_pc(MANY, epsilon=3.0, rng=default_rng(1), knowledge=known).graph
    assert ("v1", "v2") in graph.arrows


def test_pairs_refused_for_noise_stay_if_nothing_can_explain_them():
    alike = 1 + 3 * np.eye(2, dtype=int)  # x - z - y, weaker from end to end
    marginals = exact(1000 * np.einsum("xz,yz->xyz", alike, alike))
    refusing, tested = TableOracle(marginals, most_noise=-1.0), TableOracle(marginals)
    joint, joined = TableOracle(marginals, joined=[2]), ~np.eye(3, dtype=bool)
    assert not refusing.unconfirmed(joined).any()  # no question was asked given others
    assert refusing.separates(0, 1, (2,)) is None
    for oracle, pairs in ((refusing, [[0, 1]]), (tested, []), (joint, [[0, 1]])):
        oracle.separates(0, 1, (2,))
        assert np.argwhere(np.triu(oracle.unconfirmed(joined))).tolist() == pairs
    joined[0, 2] = joined[2, 0] = False  # then nothing is between them
    assert not joint.unconfirmed(joined).any()


def test_a_run_that_can_test_too_little_says_so_before_it_spends():
    data = unrelated((8,) * 6, 3000, default_rng(0))
    rng = default_rng(1)
    with warnings.catch_warnings(action="error"):
        words = r"100% of the pairs are too noisy.*larger epsilon"
        refused(words, table_pc, data, epsilon=1.0, rng=rng, kind=UserWarning)
        assert rng.bit_generator.state == default_rng(1).bit_generator.state
        table_pc(data, epsilon=1.0, rng=rng, max_order=0)  # asks nothing given others
        table_pc(data, epsilon=30.0, rng=rng)


def test_no_table_is_refused_for_its_levels_alone():
    data = unrelated((100,) * 30, 100_000, default_rng(0))
    with warnings.catch_warnings(action="ignore"):
        release = table_pc(data, epsilon=0.3, rng=default_rng(0))
    assert set(release.marginals.levels) == {16}
    assert len(release.graph.skeleton) < 30  # of 435 pairs at 0.01; false alarm below 1e-9
