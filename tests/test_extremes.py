"""Numbers at the ends of double precision: a defined outcome everywhere, and no warning."""

import itertools
import math
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.results.known_tables import Counts
from dpcgd_book.systems.as_published import (
    leakage,
    most_questions,
    optimal_rate,
    published_curate_pc,
    published_priv_pc,
    published_svt_pc,
)
from dpcgd_book.systems.p_value_tests import FisherZ
from dpcgd_book.systems.scores import BDeu, BGe
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import exact
from numpy.random import default_rng
from scipy import integrate, stats

from dpcgd import (
    BudgetSpent,
    Dataset,
    curate_pc,
    em_pc,
    laplace_pc,
    learned_pc,
    load,
    priv_pc,
    private_anm,
    private_graph,
    svt_pc,
    table_pc,
)
from dpcgd.constraint.allocation import (
    LEAST_EPSILON,
    MOST_EPSILON,
    Surrogate,
    _scale_to,
    allocate,
    concentrated,
    guessed_questions,
    planner,
)
from dpcgd.constraint.curate_pc import proved_plan
from dpcgd.constraint.priv_pc import ThresholdOracle, hits_of_the_rest
from dpcgd.datasets.cause_effect_pairs import synthetic_pair
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.linear_sems import LinearSEM
from dpcgd.datasets.measurements import Measurements
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import ClippedGeometric, Geometric, UniformGeometric
from dpcgd.local.moments import CorrelationOracle, Moments
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.moments.interactions import Marginals, MeasuredMarginals, Moment, paid
from dpcgd.moments.joined_levels import join_levels
from dpcgd.pairwise.anm import confidence, histogram_anm
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman
from dpcgd.pairwise.direction_scores import cds, igci, reci
from dpcgd.pairwise.kernel_ridge import DIVIDED, GaussianRidge, Ridge
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.conversions import (
    STEEP,
    _steep_delta,
    advanced_composition,
    epsilon_of_rho,
    gaussian_delta,
    gaussian_multiplier,
    multiplier_of_rho,
    rho_of_budget,
    zcdp_rho,
)
from dpcgd.privacy.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    GaussianEvent,
    PureEvent,
)
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter
from dpcgd.privacy.mechanisms import (
    AboveThreshold,
    amplified,
    before_amplification,
    exponential,
    gaussian,
    laplace,
    permute_and_flip,
    propose_test_release,
)
from dpcgd.privacy.noise import SeededNoise
from dpcgd.privacy.odometer import Odometer
from dpcgd.reading.association import _positive_part, _quadratic, association
from dpcgd.reading.edge_confidence import edge_confidence
from dpcgd.reading.fit_network import fit_network
from dpcgd.score.noleaks import noleaks
from dpcgd.score.notears import gram_notears
from dpcgd.score.schedules import additive, multiplicative, rising, uniform
from dpcgd.score.schedules import exponential as growing
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest, chi_squared
from dpcgd.statistics.moment_matrices import (
    PartialCorrelation,
    clipped_gram,
    partial_correlation,
)
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ, kendall_z
from dpcgd.statistics.statistic import in_sensitivities
from dpcgd.tables.table_pc import TableOracle

pytestmark = pytest.mark.filterwarnings("error")

LEAST, MOST = sys.float_info.min, sys.float_info.max

extreme = settings(deadline=None, derandomize=True, max_examples=40)
positive = st.one_of(
    st.floats(LEAST, MOST),
    st.floats(-700, 700).map(math.exp),
    st.floats(-3, 3).map(math.exp),
    st.sampled_from([LEAST, 1e-300, 1e-160, 1e-16, 1.0, 1e16, 1e154, 1e160, 1e300, MOST]),
)
deltas = st.one_of(
    st.floats(-708, -1e-9).map(math.exp), st.sampled_from([LEAST, 1e-6, 0.5, 1 - 2**-53])
)
numbers = st.one_of(st.just(0.0), positive, positive.map(lambda x: -x))


class TestConversions:
    @extreme
    @given(st.one_of(st.floats(0, MOST), positive, st.sampled_from([5e-324, math.inf])), deltas)
    def test_epsilon_of_rho_is_finite_for_finite_rho_and_at_most_that_of_bun_and_steinke(
        self, rho, delta
    ):
        epsilon = epsilon_of_rho(rho, delta)
        looser = rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))
        assert 0 <= epsilon < math.inf or rho == math.inf
        assert epsilon <= looser * (1 + 1e-9) or rho < LEAST
        if rho > 1e3:  # delta hardly matters
            assert epsilon >= rho / 2

    @extreme
    @given(positive, deltas)
    def test_a_budget_is_kept_by_its_rho_and_its_multiplier(self, epsilon, delta):
        budget = Budget(epsilon, delta)
        rho, multiplier = rho_of_budget(budget), gaussian_multiplier(budget)
        assert 0 <= rho < math.inf
        assert epsilon_of_rho(rho, delta) <= epsilon
        assert 0 < multiplier < math.inf
        assert gaussian_delta(multiplier, epsilon) <= delta

    @extreme
    @given(positive, st.one_of(numbers, st.just(math.inf)))
    def test_the_delta_of_gaussian_noise_is_a_probability(self, multiplier, epsilon):
        assert 0 <= gaussian_delta(multiplier, epsilon) <= 1

    @pytest.mark.parametrize("multiplier", [0.01, 1.0, 40.0, 3000.0, 0.9 * STEEP])
    def test_both_forms_of_that_delta_agree_where_both_have_digits(self, multiplier):
        for quantile in (-3.0, 0.0, 2.0, 6.0):
            epsilon = max(0.0, (0.5 / multiplier + quantile) / multiplier)
            half, shift = 0.5 / multiplier, epsilon * multiplier
            if 0 < epsilon < STEEP and half >= 0.5 / STEEP:
                found = gaussian_delta(multiplier, epsilon)
                assert _steep_delta(half, shift) == pytest.approx(found, rel=1e-6, abs=1e-12)

    @pytest.mark.parametrize("multiplier", [1e5, 1e8, 1e12])
    @pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
    def test_the_delta_of_much_noise_keeps_its_digits(self, multiplier, shift):
        def fall(x):  # of Mills' ratio
            return 1 - x * stats.norm.sf(x) / stats.norm.pdf(x)

        half = 0.5 / multiplier
        inside = integrate.quad(lambda t: fall(shift + half * t), -1, 1)[0] * half
        expected = stats.norm.pdf(shift - half) * inside
        found = gaussian_delta(multiplier, shift / multiplier)
        assert found == pytest.approx(expected, rel=1e-6, abs=0)

    @pytest.mark.parametrize("epsilon", [1e5, 1e9, 1e15])
    def test_the_delta_of_little_noise_keeps_its_digits(self, epsilon):
        # half - shift = 0 has delta 1/2 less next to nothing
        multiplier = math.sqrt(0.5 / epsilon)
        assert 0.4 < gaussian_delta(multiplier, epsilon) <= 0.5
        assert gaussian_delta(multiplier * 0.9, epsilon) > 0.9
        assert gaussian_delta(multiplier * 1.1, epsilon) < 1e-6

    @pytest.mark.parametrize("bad", [-1.0, math.nan])
    def test_what_is_no_number_of_its_kind_is_refused(self, bad):
        for call in (
            lambda: epsilon_of_rho(bad, 1e-6),
            lambda: epsilon_of_rho(1.0, bad),
            lambda: epsilon_of_rho(1.0, 1.0),
            lambda: gaussian_delta(bad, 1.0),
            lambda: gaussian_delta(0.0, 1.0),
            lambda: gaussian_delta(1.0, math.nan),
            lambda: multiplier_of_rho(bad),
            lambda: multiplier_of_rho(0.0),
            lambda: optimal_rate(bad),
            lambda: amplified(bad, 0.5),
            lambda: amplified(1.0, bad),
            lambda: before_amplification(1.0, 0.0),
            lambda: Odometer(bad),
            lambda: Odometer(0.0),
        ):
            with pytest.raises(ValueError, match="not"):
                call()

    @extreme
    @given(positive)
    def test_every_event_has_a_cost(self, value):
        for event in (
            PureEvent("a", value),
            BoundedRangeEvent("a", value),
            GaussianEvent("a", value),
            PureEvent("a", np.float64(value)),
        ):
            assert zcdp_rho(event) >= 0
        expected = value * value / 2  # infinite beyond doubles
        assert zcdp_rho(PureEvent("a", value)) == pytest.approx(expected)

    def test_a_whole_number_beyond_doubles_is_no_budget(self):
        with pytest.raises(ValueError, match="positive finite"):
            Budget(10**400, 1e-6)

    @extreme
    @given(numbers.map(abs), st.one_of(st.floats(LEAST, 1), st.floats(1e-9, 1)))
    def test_amplification_is_total_and_has_an_inverse(self, epsilon, rate):
        less = amplified(epsilon, rate)
        assert 0 <= less <= epsilon * (1 + 1e-15)
        more = before_amplification(epsilon, rate)
        assert epsilon * (1 - 1e-15) <= more < math.inf
        if rate >= 1e-9:
            assert amplified(more, rate) == pytest.approx(epsilon, rel=1e-9)

    def test_there_is_noise_however_large_epsilon(self):
        # at 705 the odds of a small sample were infinite, and the noise was nothing
        assert before_amplification(705.0, 1e-5) == pytest.approx(705 + 5 * math.log(10))
        account = Filter(Budget(1e7, 1e-6))
        noise = SeededNoise(default_rng(0))
        svt = AboveThreshold(
            0.0, sensitivity=1.0, epsilon=705.0, account=account, noise=noise, rate=1e-5
        )
        assert svt.scale > 0

    @extreme
    @given(positive)
    def test_the_optimal_rate_is_a_rate(self, epsilon):
        assert 0.05 <= optimal_rate(epsilon) <= 1

    @extreme
    @given(positive, st.integers(0, 10**9), deltas)
    def test_advanced_composition_is_a_number_or_infinite(self, epsilon, times, delta):
        assert advanced_composition(epsilon, times, delta) >= 0


class TestAccounts:
    @pytest.mark.parametrize("epsilon", [1e154, 1e160, 1e200, MOST, np.float64(1e200)])
    @pytest.mark.parametrize("kind", [PureEvent, BoundedRangeEvent])
    def test_an_infinite_price_is_refused_and_nothing_is_charged(self, epsilon, kind):
        for account in (Filter(Budget(1.0, 1e-6)), BasicFilter(Budget(1.0, 1e-6))):
            with pytest.raises(BudgetSpent, match="would exceed"):
                account.spend(kind("dear", epsilon))
            assert account.ledger.events == ()
            assert account.ledger.spent == (0.0, 0.0)

    def test_so_are_gaussian_events_without_noise(self):
        for account in (Filter(Budget(1.0, 1e-6)), GaussianFilter(Budget(1.0, 1e-6))):
            with pytest.raises(BudgetSpent):
                account.spend(GaussianEvent("dear", 1e-200))
            with pytest.raises(ValueError, match="more than nothing"):
                account.spend(GaussianEvent("free", 1e200))
            assert account.ledger.events == ()

    def test_a_delta_is_never_paid_back(self):
        account = BasicFilter(Budget(1.0, 1e-6))
        with pytest.raises(ValueError, match="delta of 0 or more"):
            account.spend(ApproximateEvent("refund", 0.1, -1e-6))
        assert account.ledger.events == ()

    @extreme
    @given(positive, deltas, st.sampled_from([Filter, GaussianFilter]))
    def test_a_filter_is_refused_or_pays_within_its_budget(self, epsilon, delta, kind):
        largest = (
            rho_of_budget
            if kind is Filter
            else lambda b: 0.5 / gaussian_multiplier(b) / gaussian_multiplier(b)
        )
        if largest(Budget(epsilon, delta)) < 0.9e-200:
            with pytest.raises(ValueError, match="too small a budget"):
                kind(Budget(epsilon, delta))
            return
        account = kind(Budget(epsilon, delta))
        multiplier = multiplier_of_rho(account.share(0.5))
        account.spend(GaussianEvent("half", multiplier))
        assert 0 < account.remaining < account.rho < math.inf
        assert account.ledger.spent.epsilon <= epsilon
        assert "half" in str(account.ledger)

    def test_a_share_of_next_to_nothing_is_refused(self):
        account = Filter(Budget(1.0, 1e-6))
        with pytest.raises(BudgetSpent, match="nothing is left"):
            account.share(1e-320)

    @extreme
    @given(st.lists(positive, min_size=1, max_size=5))
    def test_an_odometer_reads_whatever_ran(self, epsilons):
        account = Odometer(LEAST)
        account.spend(*(PureEvent("a", epsilon) for epsilon in epsilons))
        assert account.ledger.spent.epsilon >= 0
        assert "claimed" in str(account.ledger)


def settings_of(epsilon=0.01):
    account = Filter(Budget(1.0, 1e-6), reserved=1e-7)
    return {"epsilon": epsilon, "account": account, "noise": SeededNoise(default_rng(0))}


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf, 1e300])
def test_noise_without_a_scale_is_refused_before_it_is_paid(sensitivity):
    def untouched():
        raise AssertionError("the data was looked at")

    for mechanism in (laplace, exponential, permute_and_flip):
        how = settings_of()
        with pytest.raises(ValueError, match="no scale of noise"):
            mechanism(untouched, sensitivity=sensitivity, **how)
        assert how["account"].ledger.events == ()
    how = settings_of()
    with pytest.raises(ValueError, match="no scale of noise"):
        propose_test_release(untouched, untouched, proposed=sensitivity, delta=1e-8, **how)
    with pytest.raises(ValueError, match="no scale of noise"):
        AboveThreshold(0.0, sensitivity=sensitivity, **how)
    del how["epsilon"]
    with pytest.raises(ValueError, match="no deviation of noise"):
        gaussian(untouched, sensitivity=sensitivity, noise_multiplier=10.0, **how)
    assert how["account"].ledger.events == ()


DATA = load("survey", n=1000, rng=default_rng(0))
SYSTEMS = (
    laplace_pc,
    priv_pc,
    svt_pc,
    em_pc,
    curate_pc,
    learned_pc,
    private_graph,
    table_pc,
    gram_notears,
    noleaks,
)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("budget", [(1e7, 1e-6), (705.0, 1e-6), (1e160, 1e-12), (MOST, LEAST)])
def test_every_system_runs_at_any_large_budget(system, budget):
    epsilon, delta = budget
    release = system(DATA, epsilon=epsilon, delta=delta, rng=default_rng(0))
    assert release.guarantee == "proved"
    assert release.ledger.spent <= budget


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_refuses_a_budget_that_double_precision_cannot_split(system):
    of_laplace = "buys nothing but noise" if system is private_graph else "too small a budget"
    with pytest.raises(ValueError, match=of_laplace):
        system(DATA, epsilon=1e-200, delta=1e-300, rng=default_rng(0))


MANY_LEVELS = Dataset(
    default_rng(0).integers(0, (2, 300, 9), (400, 3)),
    {name: [str(k) for k in range(of)] for name, of in zip("abc", (2, 300, 9), strict=True)},
)


@pytest.mark.parametrize("ordered", [(), ("b",)])
@pytest.mark.parametrize("budget", [(1e7, 1e-6), (705.0, 1e-6), (1e160, 1e-12), (MOST, LEAST)])
def test_many_levels_are_joined_at_any_large_budget(budget, ordered):
    epsilon, delta = budget
    data = replace(MANY_LEVELS, ordered=ordered)
    release = table_pc(data, epsilon=epsilon, delta=delta, rng=default_rng(0))
    assert release.marginals.levels == (2, 16, 9)
    assert release.ledger.spent <= budget


@pytest.mark.parametrize("epsilon", [1e-3, 1e-30, 1e-100])
def test_too_small_a_budget_for_many_levels_is_refused(epsilon):
    with pytest.raises(
        ValueError, match="is too much for 400 records and a variable with 4 levels"
    ):
        table_pc(MANY_LEVELS, epsilon=epsilon, rng=default_rng(0))


@extreme
@given(
    st.lists(st.one_of(numbers, st.just(0.0)), min_size=3, max_size=30),
    st.integers(2, 8),
    st.booleans(),
)
def test_any_counts_of_levels_say_what_is_joined(counts, most, by_order):
    codes = np.column_stack([np.arange(len(counts)), np.zeros(len(counts), int)])
    data = Dataset(codes, {"a": [str(k) for k in range(len(counts))], "b": ["0"]})
    data = replace(data, ordered=["a"] if by_order else [])
    told = lambda query, **how: (np.array(counts), 1.0)  # noqa: E731
    new, _ = join_levels(data, told, 1.0, most=most)
    assert new.cardinalities == (min(most, len(counts)), 1)


PUBLISHED = [published_priv_pc, published_svt_pc, published_curate_pc]


@pytest.mark.parametrize("system", PUBLISHED)
@pytest.mark.parametrize("epsilon", [1e-250, 1e4, 1e160, MOST])
def test_published_versions_read_whatever_they_spent(system, epsilon):
    release = system(DATA, epsilon=epsilon, rng=default_rng(0))
    assert release.guarantee == "claimed, not proved"
    assert release.ledger.spent.epsilon >= 0


@pytest.mark.parametrize("statistic", [GTest(), ChiSquared(), KendallZ(critical=0.0)])
def test_curate_says_what_it_cannot_plan_by(statistic):
    with pytest.raises(ValueError, match=r"critical value at 0.*such as KendallZ\(\)"):
        curate_pc(DATA, epsilon=1.0, rng=default_rng(0), statistic=statistic)
    release = published_curate_pc(DATA, epsilon=1.0, rng=default_rng(0), statistic=statistic)
    assert release.guarantee == "claimed, not proved"


@pytest.mark.parametrize("critical", [5e-324, 1e-300, 1e300, -1e300])
def test_curate_plans_by_any_other_critical_value(critical):
    statistic = KendallZ(critical=critical)
    release = curate_pc(DATA, epsilon=1.0, rng=default_rng(0), statistic=statistic)
    assert release.ledger.spent <= (1.0, 1e-6)
    for system in (laplace_pc, priv_pc, em_pc):
        assert system(DATA, epsilon=1.0, rng=default_rng(0), statistic=statistic)


ONE_LEVEL = Dataset(
    np.column_stack([np.zeros(500, int), *default_rng(0).integers(0, 3, (2, 500))]),
    {"a": ["0"], "b": list("012"), "c": list("012")},
)


@pytest.mark.parametrize("system", [laplace_pc, priv_pc, svt_pc, em_pc, curate_pc])
@pytest.mark.parametrize(
    "statistic", [ChiSquared(), GTest(), KendallZ(), SpearmanZ(), PartialCorrelation(), KendallP()]
)
def test_a_variable_of_one_level_divides_nothing(system, statistic):
    if system is curate_pc and statistic.critical == 0:
        return
    release = system(ONE_LEVEL, epsilon=1e6, rng=default_rng(0), statistic=statistic)
    assert not release.graph.skeleton & {frozenset("ab"), frozenset("ac")}


class Constant:
    """A statistic that no record moves."""

    name, proved, critical = "constant", True, 1.0

    def __init__(self, number):
        self.number = number

    def value(self, table):
        return self.number

    def sensitivity(self, n, levels):
        return 0.0


@pytest.mark.parametrize("system", [laplace_pc, priv_pc, svt_pc, em_pc])
def test_a_statistic_that_no_record_moves_decides_for_sure(system):
    for number, edges in ((0.0, 0), (2.0, 15)):
        settings = {"statistic": Constant(number), "max_order": 0, "epsilon": 1e3, "margin": 0.0}
        assert len(system(DATA, rng=default_rng(0), **settings).graph.skeleton) == edges
    assert in_sensitivities(0.0, 0.0) == 0.0
    assert in_sensitivities(np.float64(1e200), 1e-200) == MOST


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_margins_and_critical_values_are_numbers(bad):
    for system in (laplace_pc, priv_pc, svt_pc, em_pc, curate_pc):
        with pytest.raises(ValueError, match="margin must be a finite number"):
            system(DATA, epsilon=1.0, rng=default_rng(0), margin=bad)
    for kind in (KendallZ, SpearmanZ, PartialCorrelation):
        with pytest.raises(ValueError, match="critical must be a finite number"):
            kind(critical=bad)
    for kind in (KendallP, GTest, ChiSquared):
        for alpha in (bad, 0.0, 1.0):
            with pytest.raises(ValueError, match="alpha is a level"):
                kind(alpha=alpha)
    for tests in (0, bad, 10**400):
        with pytest.raises(ValueError, match="planned_tests must be"):
            laplace_pc(DATA, epsilon=1.0, rng=default_rng(0), planned_tests=tests)


def test_the_price_of_a_sieve_is_a_number_or_the_budget_is_spent():
    account, noise = Filter(Budget(1.0, 1e-6)), SeededNoise(default_rng(0))
    oracle = ThresholdOracle(
        Tables(DATA), KendallZ(), hits_of_the_rest(account, 10), 1.0, 0.0, 1.0, account, noise
    )
    account.spend(PureEvent("all", math.sqrt(2 * account.rho) * (1 - 1e-12)))
    try:
        for x, y in itertools.combinations(range(6), 2):
            oracle.separates(x, y, ())
    except BudgetSpent:
        pass
    assert account.ledger.spent.epsilon <= 1


def test_large_counts_do_not_leave_the_integers():
    crowd = 5 * 10**9
    table = np.array([[crowd, 0], [0, crowd]])
    assert kendall_z(table) == pytest.approx(kendall_z(table // 10**3) * math.sqrt(1e3), rel=1e-6)
    assert chi_squared(table) == pytest.approx(2 * crowd)
    assert partial_correlation(table) == pytest.approx(1)


def test_rows_and_their_bound():
    rows = np.array([[1e200, 1.0], [0.5, 0.5], [0.0, 0.0]])
    assert np.isfinite(clipped_gram(rows, bound=1.0)).all()
    for bad in (0.0, -1.0, math.nan, math.inf, 1e-200):
        with pytest.raises(ValueError, match="bound must lie between"):
            clipped_gram(rows, bound=bad)


counts_of_tests = st.one_of(st.integers(0, 10**6), st.integers(0, 10**300)).map(float)
plans = st.lists(counts_of_tests, min_size=1, max_size=5).filter(any)
prices = st.sampled_from([concentrated, lambda t, e: leakage(t, e, 1e-6)])


class TestPlanner:
    @settings(extreme, max_examples=60)
    @given(
        plans,
        st.one_of(positive, st.floats(5e-324, LEAST)),
        st.one_of(st.just(0.0), positive),
        st.floats(0, 1),
        prices,
    )
    def test_a_plan_is_finite_never_rises_and_is_affordable(
        self, tests, remaining, slope, grey, price
    ):
        planned = allocate(tests, remaining, Surrogate(slope, grey), price)
        assert np.isfinite(planned).all()
        assert (planned >= 0).all()
        assert (np.diff(planned) <= 0).all()
        some = np.array(tests) > 0
        assert price(np.array(tests)[some], planned[some]).sum() <= remaining * (1 + 1e-9)

    @pytest.mark.parametrize(
        ("tests", "remaining"),
        [
            ([], 1.0),
            ([0, 0], 1.0),
            ([-1, 2], 1.0),
            ([math.nan], 1.0),
            ([math.inf, 1], 1.0),
            ([1], 0.0),
            ([1], -1.0),
            ([1], math.inf),
            ([1], math.nan),
        ],
    )
    def test_without_tests_or_anything_to_spend_there_is_no_plan(self, tests, remaining):
        with pytest.raises(ValueError, match="a plan needs tests and something to spend"):
            allocate(tests, remaining, Surrogate(1.0), concentrated)

    @extreme
    @given(st.one_of(positive, st.floats(5e-324, LEAST)), st.integers(1, 10**300), prices)
    def test_the_scale_is_affordable_and_hardly_anything_more_is(self, remaining, tests, price):
        found = _scale_to(lambda e: price(float(tests), e), remaining)
        assert 0 <= found <= MOST_EPSILON
        assert price(float(tests), found) <= remaining
        if LEAST_EPSILON < found < MOST_EPSILON:
            assert price(float(tests), found * (1 + 1e-6)) >= remaining

    def test_the_scale_of_very_many_tests_is_found_too(self):
        expected = math.sqrt(2 / 3.6e134) * (1 - 1e-9)
        assert _scale_to(lambda e: concentrated(3.6e134, e), 1.0) == pytest.approx(expected)

    @pytest.mark.parametrize("cost", [lambda e: 0.0, lambda e: 1e300 if e else 0.0])
    def test_a_cost_that_does_not_grow_ends_the_search_too(self, cost):
        assert _scale_to(cost, 1.0) in (0.0, MOST_EPSILON)

    @extreme
    @given(
        st.one_of(st.just(0.0), positive),
        st.floats(0, 1),
        st.lists(numbers.map(abs), min_size=1, max_size=4),
    )
    def test_the_surrogate_and_its_slope_are_finite(self, slope, grey, epsilons):
        surrogate, epsilons = Surrogate(slope, grey), np.array(epsilons)
        assert 0 <= surrogate.value(epsilons) <= 2
        assert np.isfinite(surrogate.gradient(epsilons)).all()

    @pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
    def test_a_slope_and_a_probability_are_refused_otherwise(self, bad):
        with pytest.raises(ValueError, match="slope must be finite"):
            Surrogate(bad)
        with pytest.raises(ValueError, match="grey between 0 and 1"):
            Surrogate(1.0, bad)

    def test_numbers_of_questions_are_floats_however_many(self):
        joined = ~np.eye(1100, dtype=bool)
        for count in (most_questions(joined, 549, 550), guessed_questions(joined[:3, :3], 0, 1)):
            assert np.isfinite(count).all()
        assert guessed_questions(np.zeros((3, 3), bool), 0, 1).tolist() == [0, 0]

    @pytest.mark.parametrize("left", [0.0, -1e-18, 1e-320])
    def test_a_planner_with_nothing_left_says_so(self, left):
        plan = planner(lambda: left, guessed_questions, Surrogate(10.0), concentrated, last=1)
        with pytest.raises(BudgetSpent):
            plan(~np.eye(4, dtype=bool), 0)

    def test_a_filter_that_is_spent_plans_nothing(self):
        account = Filter(Budget(1.0, 1e-6))
        plan = proved_plan(account, KendallZ(), 1000, last=1)
        account.spend(PureEvent("all", math.sqrt(2 * account.rho) * (1 - 1e-16)))
        try:
            epsilon = plan(~np.eye(4, dtype=bool), 0)
        except BudgetSpent:
            return
        assert epsilon > 0


inputs = st.one_of(
    st.floats(-1, 1),
    st.sampled_from([-1.0, 0.0, 1e-300, 2.0**-20, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
widths = st.one_of(positive, st.sampled_from([5e-324, 1e-320]))


class TestRidge:
    @settings(extreme, max_examples=60)
    @given(
        st.lists(st.tuples(inputs, st.floats(-1, 1)), min_size=2, max_size=12),
        st.floats(math.log(1e-9), 0).map(lambda x: max(1e-9, math.exp(x))),
        widths,
        st.sampled_from([Ridge, GaussianRidge]),
    )
    def test_every_fit_predicts_numbers(self, records, penalty, width, kind):
        x, y = np.array(records).T
        ridge = kind(penalty, width)
        predicted = ridge.fit(x, y).predict(np.concatenate([x, np.linspace(-2, 2, 9)]))
        assert np.isfinite(predicted).all()
        assert 0 < ridge.change(len(x)) < math.inf
        if kind is Ridge:
            assert np.abs(predicted).max() <= 1 + 1e-6

    @pytest.mark.parametrize("width", [0.01, 0.5, 30.0])
    def test_both_ways_to_solve_agree_where_both_have_digits(self, width):
        rng, ridge = default_rng(0), Ridge(0.1, width)
        x, y = rng.uniform(-1, 1, (2, 300))
        knots, at = np.unique(np.round(x * 2**20) / 2**20, return_inverse=True)
        fitted = ridge.fit(x, y)
        assert len(x) * 0.1 * width < DIVIDED
        smoothed = ridge._smoothed(np.diff(knots) / width, at, y)
        assert smoothed == pytest.approx(fitted.predict(knots), abs=1e-6)

    @pytest.mark.parametrize("width", [1e9, 1e100, 1e300, MOST])
    def test_a_wide_kernel_fits_a_constant(self, width):
        x, y = default_rng(1).uniform(-1, 1, (2, 500))
        predicted = Ridge(0.1, width).fit(x, y).predict(x)
        # all of x at one place: minimise penalty / 2 f^2 + mean (f - y)^2
        assert predicted == pytest.approx(np.full(500, y.mean() / 1.05), abs=1e-6)

    def test_crowds_at_near_places_do_not_divide_by_zero(self):
        x = np.repeat(np.arange(50) * 2.0**-20, 1000)
        fitted = Ridge(1.0, 1e6).fit(x, np.ones(len(x)))
        assert fitted.predict(x) == pytest.approx(2 / 3, abs=1e-6)

    @pytest.mark.parametrize("penalty", [0.0, 5e-324, 1e-300, 1e-10])
    def test_a_penalty_that_rounding_swallows_is_refused(self, penalty):
        for kind in (Ridge, GaussianRidge):
            with pytest.raises(ValueError, match="at 1e-09 or more"):
                kind(penalty)

    def test_the_smallest_penalty_does_for_a_matrix_of_ones(self):
        x, y = np.zeros(2000), np.ones(2000)
        assert np.isfinite(GaussianRidge(1e-9).fit(x, y).predict(x)).all()


class TestPairs:
    @pytest.mark.parametrize("epsilon", [1e-290, 1e6, MOST])
    @pytest.mark.parametrize("score", [Hsic(), Hsic(width=1e300), Kendall(), Spearman(), Iqr()])
    def test_a_direction_and_a_confidence_at_any_epsilon(self, epsilon, score):
        pair = synthetic_pair(60, rng=default_rng(0))
        for protects in ("everyone", "test set"):
            release = private_anm(
                pair, epsilon=epsilon, score=score, protects=protects, rng=default_rng(0)
            )
            assert release.confidence is None or 0.5 <= release.confidence <= 1
            assert release.ledger.spent <= (epsilon, 1e-6)

    @pytest.mark.parametrize("ridge", [Ridge(1e-9, 1e300), Ridge(1.0, MOST), GaussianRidge(1e-9)])
    def test_neighbours_do_not_differ_in_whether_a_fit_fails(self, ridge):
        pair = synthetic_pair(60, rng=default_rng(0))
        same = Measurements(np.zeros((60, 2)), pair.ranges)
        for data in (pair, same):
            assert private_anm(data, epsilon=1.0, ridge=ridge, rng=default_rng(0)).direction

    def test_noise_that_is_no_number_is_refused_first(self):
        pair = synthetic_pair(60, rng=default_rng(0))
        with pytest.raises(ValueError, match="no scale of noise"):
            private_anm(pair, epsilon=1.0, score=Hsic(width=1e-320), rng=default_rng(0))

    @pytest.mark.parametrize("epsilon", [1e-90, 1e6, MOST])
    def test_histograms_too(self, epsilon):
        pair = synthetic_pair(60, rng=default_rng(0))
        release = histogram_anm(pair, epsilon=epsilon, delta=1e-100, rng=default_rng(0))
        assert release.ledger.spent <= (epsilon, 1e-100)

    @extreme
    @given(numbers.map(abs), numbers.map(abs))
    def test_confidence_is_a_probability(self, margin, scale):
        assert 0.5 <= confidence(margin, scale) <= 1

    def test_confidence_in_less_than_nothing_is_refused(self):
        for bad in ((-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)):
            with pytest.raises(ValueError, match="0 or more"):
                confidence(*bad)

    @extreme
    @given(st.lists(st.floats(-MOST, MOST), min_size=1, max_size=9))
    def test_scores_of_any_columns_are_numbers(self, values):
        x, y = np.array(values), np.array(values[::-1])
        for score in (Hsic(), Hsic(5e-324), Hsic(MOST), Iqr(), Kendall(), Spearman()):
            assert math.isfinite(score.value(x, y))
        if len(x) > 1:
            assert Iqr(width=1e-9).distance(x) >= -1
            assert Iqr(width=1e9).distance(x, change=1e300) >= -1

    def test_an_interquartile_range_has_a_width_that_can_be_counted(self):
        for width in (1e-320, 1e300):
            with pytest.raises(ValueError, match="width must lie between"):
                Iqr(width=width)

    @pytest.mark.parametrize("ends", [(-MOST, MOST), (0.0, 5e-324)])
    def test_a_range_has_a_length(self, ends):
        with pytest.raises(ValueError, match="empty or not finite"):
            Measurements([[0.0, 0.0]], {"a": ends, "b": (0, 1)})

    @pytest.mark.parametrize("unit", [2.0**-900, 2.0**-400, 2.0**400, 2.0**1020])
    def test_directions_do_not_depend_on_the_unit(self, unit):
        x = default_rng(0).uniform(-1, 1, 200)
        y = x**3 + default_rng(1).uniform(-0.1, 0.1, 200)
        for score in (reci, igci, cds):
            assert score(x * unit, y * unit) == pytest.approx(score(x, y), rel=1e-9)
        with pytest.raises(ValueError, match="powers must be 0 or more"):
            reci(x, y, powers=(-1,))


def marginals_of(values, deviation, levels, n=1000):
    """All subsets of three variables, their moments filled with given numbers."""
    subsets = [s for k in (1, 2, 3) for s in itertools.combinations(range(len(levels)), k)]
    numbers = itertools.cycle(values)
    released = {}
    for subset in subsets:
        shape = tuple(levels[v] - 1 for v in subset)
        moment = np.array([next(numbers) for _ in range(math.prod(shape))]).reshape(shape)
        released[subset] = Moment(moment, deviation)
    return Marginals(n, levels, released)


moments = st.one_of(
    st.just(0.0), st.floats(-1, 1), st.floats(-1e100, 1e100), st.sampled_from([1e-300, 1e100])
)
deviations = st.one_of(
    st.just(0.0), st.floats(0, 1), st.sampled_from([5e-324, 1e-200, 1e-30, 1e10, 1e100])
)


class TestMarginals:
    @settings(extreme, max_examples=60)
    @given(
        st.lists(moments, min_size=1, max_size=8),
        deviations,
        st.lists(st.integers(1, 4), min_size=4, max_size=4),
        st.sampled_from([1, 1000, 10**18]),
    )
    def test_an_association_is_made_of_numbers(self, values, deviation, levels, n):
        marginals = marginals_of(values, deviation, levels, n)
        for given_these, interacting in (((), False), ((2,), False), ((2, 3), False), ((2, 3), 1)):
            found = association(marginals, 0, 1, given_these, interacting=bool(interacting))
            assert 0 <= found.p_value <= 1
            assert found.freedom == (levels[0] - 1) * (levels[1] - 1)
            assert math.isfinite(found.statistic)
            assert math.isfinite(found.effect)
            assert math.isfinite(found.undetermined)

    def test_empty_strata_and_levels_nobody_has(self):
        table = np.zeros((3, 3, 2, 2), int)
        table[0, 0, 0, 0] = 1000
        for given_these in ((), (2,), (2, 3)):
            assert association(exact(table), 0, 1, given_these).p_value > 0.01
        table[1, 1, 1, 1] = 1000
        assert association(exact(table), 0, 1).p_value < 1e-6
        assert association(exact(table), 0, 1, (2, 3), interacting=True).undetermined < 0.1

    @extreme
    @given(
        st.integers(1, 4),
        st.lists(numbers, min_size=1, max_size=16),
        st.sampled_from([1e-14, 1e-6]),
    )
    def test_a_quadratic_form_of_any_matrix_is_a_number(self, size, values, ridge):
        matrix = np.resize(np.array(values), (size, size))
        with np.errstate(over="ignore", invalid="ignore"):
            assert math.isfinite(_quadratic(matrix, np.ones(size), ridge))
            assert math.isfinite(_quadratic(matrix @ matrix.T, np.resize(values, size), ridge))
            part = _positive_part(matrix)
        assert np.isfinite(part).all() or np.abs(values).max() > 1e150

    def test_singular_matrices_and_equal_eigenvalues(self):
        ones = np.full((2, 2), 1e5)  # beside which the ridge is lost
        assert _quadratic(ones, np.ones(2), 1e-14) == pytest.approx(1e-5)
        assert _quadratic(np.zeros((2, 2)), np.zeros(2), 1e-14) == 0
        assert _quadratic(np.full((2, 2), np.nan), np.ones(2), 1e-14) == 0
        assert _positive_part(np.eye(3)) == pytest.approx(np.eye(3))
        assert _positive_part(-np.eye(3)) == pytest.approx(np.zeros((3, 3)))
        assert _positive_part(np.full((2, 2), np.inf)) == pytest.approx(np.zeros((2, 2)))

    @pytest.mark.parametrize("moment", [np.inf, np.nan, 1e200])
    def test_what_is_no_number_is_not_released(self, moment):
        with pytest.raises(ValueError, match="that is noise only"):
            Marginals(10, (2, 2), {(0,): Moment(np.array([moment]), 0.1)})
        with pytest.raises(ValueError, match="that is noise only"):
            Marginals(10, (2, 2), {(0,): Moment(np.array([0.1]), moment)})
        with pytest.raises(ValueError, match="n must be at least 1"):
            Marginals(0, (2, 2))

    @pytest.mark.parametrize("deviation", [0.0, 5e-324, 1e-300])
    def test_two_exact_measurements_are_one(self, deviation):
        both = Moment(np.ones(1), deviation).combined(Moment(np.zeros(1), deviation))
        assert both.values == 0
        assert both.deviation == deviation

    def test_a_rho_of_nothing_measures_nothing(self):
        account = Filter(Budget(1.0, 1e-6))
        marginals = MeasuredMarginals(Tables(DATA), paid(account, SeededNoise(default_rng(0))))
        for rho in (0.0, 5e-324, 1e-200):
            with pytest.raises(BudgetSpent, match="pays for no measurement"):
                marginals.measure((0, 1), rho)
        for rho in (-1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="rho must be a positive finite number"):
                marginals.measure((0, 1), rho)
        assert account.ledger.events == ()

    def test_settings_of_an_oracle(self):
        marginals = exact(np.ones((2, 2), int))
        for bad in ({"price": -1.0}, {"price": math.nan}, {"alpha": 0.0}, {"doubt": 0.0}):
            with pytest.raises(ValueError, match="not"):
                TableOracle(marginals, **bad)


RELEASE = table_pc(load("cancer", n=20_000, rng=default_rng(0)), epsilon=1.0, rng=default_rng(0))


class TestFits:
    def with_moments(self, values, deviation):
        values, deviation = np.clip(values, -1e90, 1e90), min(deviation, 1e90)
        marginals = marginals_of(values, deviation, RELEASE.marginals.levels)
        return type(RELEASE)(**{**vars(RELEASE), "marginals": marginals})

    @settings(extreme, max_examples=15)
    @given(st.lists(moments, min_size=1, max_size=8), deviations)
    def test_a_fit_has_probabilities_and_errors(self, values, deviation):
        dag = nx.DiGraph([("Pollution", "Cancer"), ("Smoker", "Cancer"), ("Cancer", "Xray")])
        dag.add_node("Dyspnoea")
        dag = nx.relabel_nodes(dag, dict(zip(dag, RELEASE.graph.variables, strict=True)))
        release = self.with_moments(values, deviation)
        fitted = fit_network(release, rng=default_rng(0), dag=dag, redraws=2)
        for name, table in fitted.network.tables.items():
            assert table.sum(axis=-1) == pytest.approx(np.ones(table.shape[:-1]))
            assert np.isfinite(fitted.errors[name]).all()

    @settings(extreme, max_examples=8)
    @given(st.lists(moments, min_size=1, max_size=8), deviations)
    def test_confidence_is_a_share(self, values, deviation):
        release = self.with_moments(values, deviation)
        found = edge_confidence(release, runs=2, rng=default_rng(0))
        assert set(found.values()) <= {0.0, 0.5, 1.0}

    @pytest.mark.parametrize("number", [0, -1])
    def test_without_redraws_nothing_can_be_told(self, number):
        with pytest.raises(ValueError, match="redraws must be at least 1"):
            fit_network(RELEASE, rng=default_rng(0), redraws=number)
        with pytest.raises(ValueError, match="runs must be at least 1"):
            edge_confidence(RELEASE, runs=number, rng=default_rng(0))


class TestLocal:
    @extreme
    @given(numbers.map(abs), st.integers(2, 6))
    def test_any_epsilon_makes_a_channel(self, epsilon, levels):
        for mechanism in (
            RandomizedResponse(levels, epsilon),
            ClippedGeometric(levels, epsilon),
            UniformGeometric(levels, epsilon),
            Geometric.from_epsilon(levels, epsilon),
        ):
            assert mechanism.channel.sum(axis=1) == pytest.approx(np.ones(levels))
            assert (mechanism.channel >= 0).all()
            assert mechanism.epsilon >= 0
            reports = mechanism.sample(np.zeros(3, int), rng=default_rng(0))
            assert set(reports.tolist()) <= set(range(levels))

    @pytest.mark.parametrize("epsilon", [30.0, 50.0, 1e3, 1e300])
    def test_some_variables_of_a_record_that_is_hardly_ever_replaced(self, epsilon):
        part = RandomizedResponse((2, 3), epsilon).of([0])
        assert part.channel == pytest.approx(np.eye(2), abs=1e-9)
        assert part.epsilon <= epsilon

    def test_a_chance_of_a_guess_makes_every_mechanism_say_nothing(self):
        for levels in range(2, 400):
            assert ClippedGeometric.from_p_max(levels, 1 / levels).rate < 1e-12

    @pytest.mark.parametrize("kind", [RandomizedResponse, Geometric, ClippedGeometric])
    def test_p_max_next_to_one_is_reached(self, kind):
        found = ComponentWise.from_p_max(kind, (3, 4), 1 - 1e-12)
        assert found.p_max == pytest.approx(1 - 1e-12, abs=1e-13)

    def test_a_p_max_that_no_epsilon_reaches_is_refused(self):
        with pytest.raises(ValueError, match="too near to 1"):
            ComponentWise.from_p_max(Geometric, (3, 4), 1 - 2**-53)

    def test_four_hundred_variables(self):
        levels = (10,) * 400
        mechanism = ComponentWise.from_p_max(RandomizedResponse, levels, 0.1)
        assert mechanism.p_max == pytest.approx(0.1)
        for whole in (lambda: RandomizedResponse(levels, 1.0), lambda: Geometric(levels, 0.5)):
            with pytest.raises(ValueError, match="use a component-wise mechanism"):
                whole()

    def test_correlations_of_constant_and_of_huge_columns(self):
        values = np.column_stack([np.full(50, 0.1), default_rng(0).normal(size=(50, 2)) * 1e60])
        oracle = CorrelationOracle(Moments.of_records(values))
        assert oracle.separates(0, 1, ())
        assert oracle.separates(0, 1, (2,))
        assert oracle.separates(1, 2, ())
        same = CorrelationOracle(Moments.of_records(np.tile([[0, 0], [1, 1]], (25, 1))))
        assert not same.separates(0, 1, ())
        for bad in (np.full((3, 2), 1e200), np.full((3, 2), np.nan), np.zeros((0, 2))):
            with pytest.raises(ValueError, match="measure in other units"):
                Moments.of_records(bad)


class TestOthers:
    @extreme
    @given(positive, st.integers(1, 12))
    def test_schedules_share_any_total(self, total, steps):
        for schedule in (uniform, additive, growing, multiplicative, rising):
            shares = schedule(total, steps)
            assert (shares >= 0).all()
            assert math.fsum(shares / total) == pytest.approx(1)

    @pytest.mark.parametrize("bad", [(0.0, 3), (math.inf, 3), (math.nan, 3), (-1.0, 3), (1.0, 0)])
    def test_schedules_refuse_other_totals_and_steps(self, bad):
        for schedule in (uniform, additive, growing, multiplicative, rising):
            with pytest.raises(ValueError, match="total must be positive"):
                schedule(*bad)

    @pytest.mark.parametrize("total", [1e-6, 1e6])
    @pytest.mark.parametrize("steps", [1, 3, 10])
    def test_both_units_of_a_schedule_agree(self, total, steps):
        within, beyond = multiplicative(total, steps), multiplicative(np.nextafter(total, 0), steps)
        around = multiplicative(np.nextafter(total, math.inf), steps)
        assert within == pytest.approx(beyond, rel=1e-9)
        assert within == pytest.approx(around, rel=1e-9)

    def test_scores_of_singular_covariances_are_numbers(self):
        for covariance in (np.ones((3, 3)), np.eye(3), 1e100 * np.eye(3), np.diag([1e-100, 1, 1])):
            for score in (BGe(covariance, 100), BGe(covariance, 10**9)):
                for parents in ((), (0,), (0, 1)):
                    assert math.isfinite(score.local(2, parents))
        for bad in (1e-200 * np.eye(2), 1e200 * np.eye(2)):
            with pytest.raises(ValueError, match="bring the variables to variance 1"):
                BGe(bad, 100)

    def test_weights_of_a_prior(self):
        for weight in (1e-100, 1e100):
            assert math.isfinite(BDeu(DATA, weight).local(1, (0,)))
        for weight in (1e-300, MOST, math.nan):
            with pytest.raises(ValueError, match="weight must be positive"):
                BDeu(DATA, weight)

    @pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
    def test_correlations_do_not_depend_on_the_unit(self, unit):
        values = default_rng(0).normal(size=(40, 3))
        values[:, 2] += values[:, 0]
        expected = FisherZ.from_values(values).log_p(0, 2, (1,))
        assert FisherZ.from_values(values * unit).log_p(0, 2, (1,)) == pytest.approx(expected)
        assert BGe.from_values(values * unit).local(2, (0,)) == pytest.approx(
            BGe.from_values(values).local(2, (0,))
        )

    @extreme
    @given(st.lists(st.floats(-1e99, 1e99), min_size=9, max_size=9))
    def test_a_partial_correlation_of_any_matrix_has_a_p_value(self, values):
        matrix = np.array(values).reshape(3, 3)
        assert FisherZ(matrix + matrix.T, 100).log_p(0, 1, (2,)) <= 0

    def test_weights_of_a_linear_model(self):
        huge = np.zeros((4, 4))
        huge[0, 1] = huge[1, 2] = huge[2, 3] = 1e80
        for bad in (huge, np.full((2, 2), np.nan), np.triu(np.full((3, 3), 1e300), 1)):
            with pytest.raises(ValueError, match="weight"):
                LinearSEM(bad)
        assert LinearSEM(np.triu(np.full((3, 3), 1e30), 1)).sample(5, rng=default_rng(0)).n == 5

    def test_tables_of_one_record(self):
        marginals = exact(np.array([[1, 0], [0, 0]]))
        assert 0 <= association(marginals, 0, 1).p_value <= 1
        assert Counts(np.array([[1, 0], [0, 0]])).n == 1
