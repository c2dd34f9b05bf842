"""Numbers as vectors: what the look at them says, how wide its noise is, what a record may move."""

import math

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred
from hypothesis import given, settings, strategies as st
from moment_audits import Noted, audited
from numpy.random import default_rng
from replays import as_bits
from scipy import stats
from scipy.spatial.distance import pdist

from dpcgd import CPDAG, Budget, BudgetSpent, Dataset, Schema
from dpcgd.datasets.variable import PARTS, Parts
from dpcgd.moments.clipped_moments import clipped_sensitivity, level_vectors, measure_moments
from dpcgd.moments.entries import FARTHEST
from dpcgd.moments.interactions import exactly, paid
from dpcgd.moments.scores import DEPTH, LENGTH, SECOND, Histogram, measure_singles, number_vectors
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.tables.check_receipt import check_noise
from dpcgd.tables.private_graph import measure_for_edges
from dpcgd.tables.public_facts import PublicFacts, RecordsAsked

NUMBER, HOLED = Parts(0.0, 1.0), Parts(1.0, 1e6, "log", missing="unknown")
LAST = PARTS - 1
MIXED = (2, NUMBER, 3, HOLED, NUMBER, 1, HOLED)
some = settings(derandomize=True, max_examples=60)
seeds = st.integers(0, 2**32 - 1)
more_levels = st.lists(st.sampled_from([1, 2, 3, 30, NUMBER, HOLED]), min_size=1, max_size=12)
some_levels = st.lists(st.sampled_from([1, 2, 3, 7, NUMBER, HOLED]), min_size=1, max_size=6)


def levels_of(sizes):
    lists = (own if isinstance(own, Parts) else [str(k) for k in range(own)] for own in sizes)
    return {f"v{i}": own for i, own in enumerate(lists)}


def table(codes, sizes=MIXED):
    return Dataset(np.atleast_2d(codes), levels_of(sizes))


def codes_of(rng, sizes, n):
    """Records anywhere in a range, in a narrow part of it, at a few places, or mostly missing."""

    def column(own):
        if not isinstance(own, Parts):
            return rng.integers(own, size=n)
        width = rng.choice([len(own), 300, 3, 1])
        first = rng.integers(len(own) + 1 - width)
        missing = (own is HOLED) * (rng.random(n) < rng.random())
        return np.where(missing, PARTS, first + rng.integers(width, size=n))

    return np.column_stack([*map(column, sizes)])


class Scripted:
    """Answers each question by itself, whatever the data, and keeps what is exact.

    So all data sets come to the same pieces, of any depth.
    """

    def __init__(self, seed, n):
        self._rng, self._n, self.looks = default_rng(seed), n, []

    def __call__(self, query, *, sensitivity, rho):
        exact = query()
        self.looks.append((exact, sensitivity))
        size = self._n * self._rng.choice([0.02, 0.3, 1.0])
        return size * self._rng.uniform(-1, 1, len(exact)), 0.0


def looks_at(data, seed):
    measure = Scripted(seed, data.n)
    measure_singles(data, measure, 1.0)
    return measure.looks


# --- what one record may move


@some
@given(some_levels, seeds)
def test_no_record_moves_a_look_by_more_than_its_sensitivity(sizes, seed):
    sizes, rng = (*sizes, NUMBER), default_rng(seed)
    *crowd, one, other = codes_of(rng, sizes, 6)
    both = [looks_at(table([*crowd, last], sizes), seed) for last in (one, other)]
    for (here, sensitivity), (there, same) in zip(*both, strict=True):
        assert np.linalg.norm(here - there) <= sensitivity == same


def test_records_that_differ_everywhere_reach_it_at_every_depth():
    sizes, noted = (2, NUMBER, 3, HOLED, NUMBER), Noted()
    low, high = [0] * 5, [1, LAST, 2, LAST, LAST]
    for many in (500, 501):
        measure_singles(table([low] * many + [high] * (1000 - many), sizes), noted, 1.0)
    looks = [look for look, _ in noted.answers]
    assert len(looks) == 2 * DEPTH
    for depth, reckoned in enumerate(noted.sensitivities[:DEPTH]):
        apart = looks[depth] - looks[DEPTH + depth]
        assert np.linalg.norm(apart) == pytest.approx(reckoned, rel=1e-12)


def test_a_million_pairs_of_records_keep_to_the_bounds_and_come_within_a_hundredth():
    sizes, rng = (2, NUMBER, 3, HOLED, NUMBER, HOLED), default_rng(1)
    records = rng.integers(0, [len(own) for own in levels_of(sizes).values()], (1000, 6))
    looks = [looks_at(table(record, sizes), 5) for record in records]
    for depth, parts in enumerate(zip(*looks, strict=True)):
        exact, sensitivities = map(np.array, zip(*parts, strict=True))
        assert (depth == 0) * 0.99 < pdist(exact).max() / sensitivities[0] <= 1 + 1e-12
    singles, _ = measure_singles(table(records, sizes), blurred(5.0, rng), 1.0)
    vectors, at = level_vectors(singles), np.triu_indices(12)
    bound = 0.5 * math.sqrt(sum((own**2).sum(axis=1).mean() for own in vectors))
    halves = np.where(at[0] == at[1], math.sqrt(0.5), 1.0)
    sums = (table(record, sizes).clipped_sums(vectors, bound=bound) for record in records)
    released = np.array([own[at] * halves for own in sums])
    assert 0.99 < pdist(released).max() / clipped_sensitivity(bound) <= 1 + 1e-9


@pytest.mark.slow
def test_all_looks_together_pass_their_audit_and_with_half_the_noise_they_fail():
    """Between two crowds at the ends of two ranges: pieces are halved down to single parts."""
    low, high, sizes = [0, 0], [LAST, LAST], (NUMBER, NUMBER)
    pair = [table([low] * many + [high] * (2000 - many), sizes) for many in (1000, 1001)]

    def released(data, account, paying):
        noted = Noted(paying)
        _, used = measure_singles(data, noted, account.rho * (1 - 1e-9) * 8 / DEPTH)
        assert used <= account.rho
        numbers = ((half, wide) for answer, wide in noted.answers for half in np.split(answer, 2))
        return sum((half[0] - half[-1]) / wide**2 for half, wide in numbers)

    audited(released, *pair, epsilon=2.0, seed=3)


# --- what is paid


@pytest.mark.filterwarnings("error", "ignore:the edge model was trained")
@some
@given(more_levels, st.floats(0.5, 12), st.floats(-3, 9), st.sampled_from([1, 1, 3]), seeds)
def test_looks_and_moments_cost_the_budget_and_have_the_noise_that_was_paid(
    sizes, size, budget, rows_per_person, seed
):
    """Of a few kinds of records, of up to 10^12 people."""
    sizes, rng, epsilon = (*sizes, NUMBER), default_rng(seed), 10.0**budget
    weights = rng.multinomial(int(10**size), rng.dirichlet(np.full(20, 0.5)))
    data = as_bits(codes_of(rng, sizes, 20), weights, levels_of(sizes), ())
    measured = measure_for_edges(data, epsilon=epsilon, rows_per_person=rows_per_person, rng=rng)
    account, moments = measured.run.account, measured.marginals
    assert account.ledger.spent.epsilon <= epsilon
    assert sum(map(zcdp_rho, account.ledger.events)) <= account.rho
    assert np.isfinite(moments.moments).all()
    check_noise(measured.release(CPDAG(data.variables, np.zeros((data.d, data.d), bool))))


def test_nothing_is_counted_before_it_is_paid_for():
    blind = PublicFacts(Schema({"a": ["0", "1"], "x": {"range": [0, 1]}}), 1000)
    account = GaussianFilter(Budget(1.0, 1e-6))
    paying = paid(account, SeededNoise(default_rng(0)))
    for rho, ends in ((1e3, BudgetSpent), (1.0, RecordsAsked)):
        with pytest.raises(ends):
            measure_singles(blind, paying, rho * account.rho)
        assert len(account.ledger.events) == (ends is RecordsAsked)


# --- what is released


@some
@given(some_levels, st.sampled_from([0.0, 1.0, 30.0, 1e3, 1e9]), st.integers(1, 3000), seeds)
def test_pieces_cover_a_range_and_their_shares_are_shares(sizes, noise, n, seed):
    sizes, rng = (*sizes, HOLED), default_rng(seed)
    data = table(codes_of(rng, sizes, n), sizes)
    singles, _ = measure_singles(data, blurred(noise, rng), 1.0)
    assert [data.variables[v] for v in singles.numbers] == list(data.numbers)
    for v, own in singles.numbers.items():
        widths = np.diff(own.starts, append=PARTS)
        assert own.starts[0] == 0 < widths.min()
        assert not (own.starts % widths).any()
        assert own.depth == DEPTH - math.log2(widths.min()) >= 1
        assert own.shares.min() >= 0
        assert (own.shares.sum(), own.by_part.sum()) == pytest.approx((1, 1))
        assert len(own.missing) == (sizes[v] is HOLED)
        assert np.abs(own.by_part @ own.vectors).max() < 1e-9 * np.abs(own.vectors).max()
        counts = data.counts([v])
        if not noise and (sizes[v] is NUMBER or 0 < counts[PARTS] < n):
            assert own.missing == pytest.approx(counts[PARTS:] / n)
            exact = np.add.reduceat(counts[:PARTS], own.starts) / counts[:PARTS].sum()
            assert own.shares == pytest.approx(exact, abs=1e-12)


@some
@given(st.lists(st.floats(0, 1), min_size=3, max_size=40).filter(any), seeds)
def test_a_number_has_its_normal_score_and_what_its_square_tells_beside_it(weights, seed):
    """By ranks of scipy and least squares; entries of hardly any variance are not stretched."""
    shares = np.array(weights) / sum(weights)
    score = stats.norm.ppf(np.clip(shares.cumsum() - shares / 2, 1e-12, 1 - 1e-12))
    score = np.clip(score, -FARTHEST, FARTHEST)
    found, rest = number_vectors(shares), np.vander(score, 2)
    root = np.sqrt(shares)[:, None]
    for entry, (target, known, length) in enumerate(
        [(score, rest[:, 1:], LENGTH), (score**2, rest, LENGTH * SECOND)]
    ):
        left = target - known @ np.linalg.lstsq(root * known, root[:, 0] * target)[0]
        spread = math.sqrt(shares @ left**2)
        if spread > 0.01:
            assert found[:, entry] == pytest.approx(length * left / spread, abs=1e-6 * length)
    assert np.abs(found).max() <= LENGTH * (FARTHEST + FARTHEST**2) / 1e-3 * 2


@some
@given(st.integers(1, 16), seeds)
def test_a_number_has_the_vectors_of_its_ranks_whatever_its_unit(many, seed):
    rng = default_rng(seed)
    ranks = np.concatenate([np.arange(many), rng.integers(many, size=many)])
    vectors = []
    for _ in range(2):
        places = np.sort(rng.choice(PARTS, many, replace=False))[ranks]
        data = table(np.column_stack([places, LAST - places]), (NUMBER, NUMBER))
        singles, _ = measure_singles(data, exactly, 1.0)
        one, other = (singles.numbers[v].vectors for v in (0, 1))
        vectors.append(one[places])
        assert one[places] == pytest.approx(other[LAST - places] * (-1, 1), abs=1e-9)
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-9)


def test_moments_go_with_the_variables_whatever_the_order_of_records():
    rng = default_rng(0)
    codes, order = codes_of(rng, MIXED, 500), [4, 3, 6, 2, 0, 5, 1]
    told = measure_moments(table(codes), exactly, 1.0, clipped=True)
    turned = table(rng.permutation(codes)[:, order], [MIXED[v] for v in order])
    again = measure_moments(turned, exactly, 1.0, clipped=True)
    rows = np.split(np.arange(len(told.moments)), np.cumsum([max(1, k - 1) for k in told.levels]))
    at = np.concatenate([rows[v] for v in order])
    assert again.moments == pytest.approx(told.moments[np.ix_(at, at)], abs=1e-12)


def test_a_missing_number_has_an_entry_of_its_own():
    own = Histogram(np.array([0, PARTS // 2]), np.array([0.25, 0.75]), np.array([0.9]))
    assert own.vectors.shape == (PARTS + 1, 3)
    assert [np.ptp(own.vectors[:PARTS, 2]), *own.vectors[PARTS, :2]] == [0, 0, 0]
    assert (own.by_part @ own.vectors**2)[2] == pytest.approx(math.sqrt(0.9 * 0.1))
