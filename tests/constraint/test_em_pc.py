import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import Budget, BudgetSpent, load
from dpcgd.constraint.em_pc import ExponentialOracle, count_scores, share_of_the_choices
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.events import BoundedRangeEvent, PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import exponential, permute_and_flip
from dpcgd.privacy.noise import selection_scale
from dpcgd.statistics.rank_statistics import KendallZ

seeded = settings(derandomize=True, max_examples=200)
scores = st.lists(st.floats(-50, 50, allow_subnormal=False), min_size=1, max_size=6)


def oracle_for(data, account, noise, *, choose=exponential, price=None, margin=0.0):
    price = price or (lambda asked, separated: 0.5)
    return ExponentialOracle(Tables(data), KendallZ(), price, choose, margin, account, noise)


def plenty():
    return Filter(Budget(1000.0, 1e-6))


class Best:
    """Noise that is none: always the largest score; notes the scores."""

    def __init__(self):
        self.asked = []

    def gumbel_max(self, sensitivity, event):
        def draw(scores):
            self.asked.append((np.array(scores), selection_scale(sensitivity, event)))
            return int(np.argmax(scores))

        return draw

    exponential_max = gumbel_max


@seeded
@given(scores)
def test_the_best_count_is_the_number_of_scores_above_0(values):
    count = int(np.argmax(count_scores(values)))
    assert len(count_scores(values)) == len(values) + 1
    if all(value != 0 for value in values):
        assert count == sum(value > 0 for value in values)


def test_without_noise_the_pairs_that_any_set_separates_go_by_their_best_set():
    data = load("cancer", n=50_000, rng=default_rng(0))
    oracle = oracle_for(data, plenty(), Best())
    found = search(oracle, data.variables)
    z = KendallZ()

    def separates(pair, given=()):
        tested = map(data.variables.index, (*sorted(pair, key=data.variables.index), *given))
        return z.value(data.counts([*tested])) < z.critical

    assert all(separates(pair, given) for pair, given in found.separating_sets.items())
    for pair in map(frozenset, itertools.combinations(data.variables, 2)):
        assert not separates(pair) or found.separating_sets[pair] == ()


def begun(oracle, pairs, order=0, joined=()):
    """An order at which these pairs will be asked about."""
    to_test = np.zeros((8, 8), bool)
    to_test[tuple(np.transpose(pairs))] = True
    near = to_test.copy()
    for pair in joined:
        near[pair] = True
    oracle.begin_order(order, near | near.T, to_test)


def test_scores_are_distances_below_the_threshold_in_sensitivities():
    data = load("cancer", n=2_000, rng=default_rng(0))
    noise = Best()
    oracle = oracle_for(data, plenty(), noise, margin=1.5)
    begun(oracle, [(0, 1), (0, 2)])
    oracle.separates(0, 1, ())
    tables, z = Tables(data), KendallZ()
    expected = [
        (3 - z.value(tables.counts((0, y)))) / z.sensitivity(2_000, (2, 2)) + 1.5 * 2 / 0.5
        for y in (1, 2)
    ]
    counted, scale = noise.asked[0]
    assert counted == pytest.approx(count_scores(expected), rel=1e-12)
    assert scale == 2 / 0.5


def test_an_only_set_is_free_and_several_are_chosen_from():
    data = load("cancer", n=5_000, rng=default_rng(0))
    account, noise = plenty(), Best()
    oracle = oracle_for(data, account, noise, margin=1e6)  # every pair goes
    begun(oracle, [(0, 1), (0, 2)])
    assert oracle.separates(0, 1, ())
    assert len(account.ledger.events) == 1 + 2
    begun(oracle, [(1, 2)], order=1, joined=[(1, 3), (1, 4)])
    assert [oracle.separates(1, 2, (v,)) for v in (3, 4)].count(True) == 1
    assert len(account.ledger.events) == 3 + 1 + 2


def test_refused_tests_take_no_part():
    data = load("child", n=300, rng=default_rng(0))
    account = plenty()
    oracle = oracle_for(data, account, Best(), margin=1e6)
    joined = np.zeros((data.d, data.d), bool)
    joined[:5, :5] = ~np.eye(5, dtype=bool)
    oracle.begin_order(3, joined, np.triu(joined))
    assert oracle.separates(0, 1, (2, 3, 4)) is None
    assert account.ledger.events == ()


@pytest.mark.parametrize(
    ("choose", "event"), [(exponential, BoundedRangeEvent), (permute_and_flip, PureEvent)]
)
def test_the_price_is_a_share_of_the_rest(choose, event):
    account = Filter(Budget(1.0, 1e-6))
    price = share_of_the_choices(account, choose, d=5, max_order=3)
    for asked, separated in [(0, 0), (7, 3), (30, 9)]:
        before, epsilon = account.remaining, price(asked, separated)
        account.spend(event("choice", epsilon))
        share = 1 / (max(1, 20 - asked) + 2 * (10 - separated))
        assert before - account.remaining == pytest.approx(share * before, rel=1e-9)


def test_nothing_is_looked_at_before_it_is_paid_for():
    data = load("asia", n=1_000, rng=default_rng(0))

    oracle = oracle_for(data, Filter(Budget(0.01, 1e-6)), Best(), price=lambda *_: 5.0)
    oracle.tables.counts = None  # nobody may ask
    begun(oracle, [(0, 1)])
    with pytest.raises(BudgetSpent):
        oracle.separates(0, 1, ())
    found = search(oracle, data.variables)
    assert found.stopped_early
    assert len(found.graph.skeleton) == 28
