import contextlib
import dataclasses
import itertools
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from dpcgd_book.systems.as_published import published_priv_pc
from known_tables import OnlyCounts
from numpy.random import default_rng
from people import refused
from scripted_noise import Script

import dpcgd
from dpcgd import Budget, BudgetSpent, Dataset, curate_pc, laplace_pc, load, pc, priv_pc, svt_pc
from dpcgd.constraint.em_pc import ExponentialOracle, share_of_the_choices
from dpcgd.constraint.laplace_pc import LaplaceOracle, PlainOracle
from dpcgd.constraint.priv_pc import Round, SieveOracle, ThresholdOracle, share_of_the_rest
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.privacy.conversions import epsilon_of_rho
from dpcgd.privacy.events import PureEvent
from dpcgd.privacy.filters import Filter
from dpcgd.privacy.mechanisms import before_amplification, exponential
from dpcgd.privacy.noise import SeededNoise
from dpcgd.statistics.categorical_statistics import ChiSquared, GTest
from dpcgd.statistics.moment_matrices import PartialCorrelation
from dpcgd.statistics.rank_statistics import KendallP, KendallZ, SpearmanZ


class WatchedTables:
    """Notes every look at the records."""

    def __init__(self, n=1000, levels=(2, 2, 2, 2), looks=None, name="all"):
        self.n, self.levels, self.name = n, levels, name
        self.looks = [] if looks is None else looks

    def shape(self, variables):
        return tuple(self.levels[v] for v in variables)

    def counts(self, variables):
        self.looks.append((self.name, tuple(variables)))
        return np.ones(self.shape(variables), int)

    def subsample(self, chosen):
        self.looks.append(("subsample", len(chosen)))
        return WatchedTables(len(chosen), self.levels, self.looks, "sample")


@dataclasses.dataclass(frozen=True)
class FlatStatistic:
    """The same value for every table, with a sensitivity that shows n."""

    critical: float = 3.0
    name = "flat"

    def value(self, table):
        return 1.0

    def sensitivity(self, n, levels):
        return 10 / n


def oracle_of(kind, noise, *, tables=None, account=None, margin=0.0, **settings):
    settings |= {"account": account or Filter(Budget(50.0, 1e-6)), "noise": noise}
    return kind(tables or WatchedTables(), FlatStatistic(), margin=margin, **settings)


OF_SIEVES = {"price": lambda separated: Round(0.2, 0.1), "rate": 1.0, "tweak": 0.0}
sieve_oracle = partial(oracle_of, SieveOracle, **OF_SIEVES)
laplace_oracle = partial(oracle_of, LaplaceOracle, epsilon=0.1)


SEARCHES = laplace_pc, svt_pc, dpcgd.em_pc, curate_pc, priv_pc
PRIVATE = {system.__name__: partial(system, epsilon=5.0) for system in SEARCHES}
PRIVATE["priv_pc on a sample"] = partial(priv_pc, epsilon=5.0, rate=0.2)
PRIVATE["published"] = partial(published_priv_pc, epsilon=1.0)


ASIA = load("asia", n=2_000, rng=default_rng(0))
WITH_PC = {"pc": lambda data, rng: pc(data), **PRIVATE}


@pytest.mark.parametrize("run", WITH_PC.values(), ids=WITH_PC)
def test_renaming_the_variables_renames_the_answer_and_changes_nothing_else(run):
    new = {name: f"{i} {name[::-1]}" for i, name in enumerate(reversed(ASIA.variables))}
    renamed = Dataset(ASIA.codes, {new[name]: own for name, own in ASIA.levels.items()})
    before, after = (run(data, rng=default_rng(1)) for data in (ASIA, renamed))
    assert before.graph.skeleton
    assert after.graph.variables == tuple(new[name] for name in before.graph.variables)
    assert (after.graph.arcs == before.graph.arcs).all()
    assert after.answers.separating_sets == {
        frozenset(new[v] for v in pair): tuple(new[v] for v in given)
        for pair, given in before.answers.separating_sets.items()
    }
    assert (after.ledger, after.answers.tests) == (before.ledger, before.answers.tests)


@pytest.mark.parametrize("name", ["asia", "survey", "sachs"])
def test_permuting_the_columns_permutes_the_graph_of_pc(name):
    data = load(name, n=100_000, rng=default_rng(0))
    expected = pc(data).graph
    assert expected.skeleton
    for seed in range(4):
        order = default_rng(seed).permutation(data.d)
        levels = {data.variables[v]: data.levels[data.variables[v]] for v in order}
        assert pc(Dataset(data.codes[:, order], levels)).graph == expected


@pytest.mark.parametrize("is_refused", [True, False])
@pytest.mark.parametrize("kind", ["plain", "laplace", "sieve", "sieve of a half"])
def test_a_refused_test_separates_nothing_costs_nothing_and_looks_at_nothing(kind, is_refused):
    n, rate = (80, 0.5) if kind == "sieve of a half" else (40, 1.0)
    watched = {"tables": WatchedTables(n - is_refused), "account": Filter(Budget(50.0, 1e-6))}
    tables, account = watched.values()
    oracle = {
        "plain": lambda: PlainOracle(tables, FlatStatistic()),
        "laplace": lambda: laplace_oracle(Script([-100.0]), **watched),
    }.get(kind, lambda: sieve_oracle(Script([0.0, 1.0, 1.0]), **watched, rate=rate))()
    assert oracle.separates(0, 1, (2,)) is not is_refused
    assert (tables.looks == []) == is_refused
    assert (account.ledger.events == ()) == (is_refused or kind == "plain")


def test_sieves_and_examinations_take_turns_and_a_failed_examination_separates_nothing():
    hit, miss, passed, failed = 1.0, -1.0, 1.0, -1.0
    # Threshold noise 0.0 opens each sieve.
    noise = Script([0.0, miss, miss, hit, passed, 0.0, hit, failed, 0.0, miss, hit, passed])
    separated = []
    oracle = sieve_oracle(noise, price=lambda count: separated.append(count) or Round(0.2, 0.1))
    answers = [bool(oracle.separates(0, 1, ())) for _ in range(6)]
    assert answers == [False, False, True, False, False, True]
    assert separated == [0, 1, 1]
    events = PureEvent("above threshold", 0.2), PureEvent("Laplace", 0.1)
    assert oracle.account.ledger.events == events * 3


ROUNDS = (priv_pc, ["above threshold", "Laplace"]), (svt_pc, ["above threshold"])


@pytest.mark.parametrize("rate", [1.0, 0.5])
@pytest.mark.parametrize(("run", "names"), ROUNDS)
def test_a_run_spends_one_round_for_each_hit_and_perhaps_one_more_sieve(run, names, rate):
    data = load("asia", n=3_000, rng=default_rng(0))
    for seed in range(3):
        release = run(data, epsilon=3.0, rng=default_rng(seed), rate=rate)
        spent = [event.mechanism for event in release.ledger.events]
        hits = len(spent) // len(names)
        assert hits > 5
        assert spent == (names * (hits + 1))[: len(spent)]
        assert len(release.answers.separating_sets) <= hits
        assert release.ledger.spent <= (3.0, 1e-6)


def test_the_laplace_oracle_pays_for_each_test_at_the_sensitivity_of_all_records():
    noise = Script([4.09, 4.11])
    oracle = laplace_oracle(noise, tables=WatchedTables(1000), margin=11.0)
    # Critical value 3, and 11 noise scales of (10 / 1000) / 0.1.
    assert oracle.separates(0, 1, ())
    assert not oracle.separates(0, 1, (2,))
    assert noise.calls == [(1.0, pytest.approx(0.1))] * 2
    assert oracle.account.ledger.events == (PureEvent("Laplace", 0.1),) * 2


def test_the_sieve_has_the_sensitivity_of_its_sample_and_the_examination_that_of_all():
    noise = Script([0.0, 1.0, 1.0])
    oracle = sieve_oracle(noise, tables=WatchedTables(1000), rate=0.25, tweak=-0.5, margin=1.5)
    assert oracle.separates(0, 1, ())
    (threshold, scale), (sieved, sieve_scale), (examined, examination_scale) = noise.calls
    inner = math.log(1 + (math.exp(0.2) - 1) / 0.25)
    assert threshold == 0
    assert [scale, sieve_scale] == pytest.approx([2 / inner, 4 / inner], rel=1e-12)
    # of the sieve's threshold and of the examination, and a margin of 1.5 of their scales
    assert sieved == pytest.approx((3.0 - 0.5 - 1.0) / (10 / 250) + 1.5 * scale, rel=1e-12)
    assert examined == pytest.approx((3.0 - 1.0) / (10 / 1000) + 1.5 / 0.1, rel=1e-12)
    assert examination_scale == pytest.approx(1 / 0.1, rel=1e-12)


def test_a_sieve_draws_one_fresh_sample_for_itself():
    tables = WatchedTables(100)
    noise = Script([0.0, -1.0, -1.0, 1.0, 1.0, 0.0, -1.0, -1.0])
    oracle = sieve_oracle(noise, tables=tables, rate=0.5)
    for _ in range(5):
        oracle.separates(0, 1, ())
    sample, whole = ("sample", (0, 1)), ("all", (0, 1))
    first = [("subsample", 50), sample, sample, sample, whole]
    assert tables.looks == [*first, ("subsample", 50), sample, sample]


RATES = (1000, 0.25), (51, 0.5), (60, 0.36), (23, 0.9), (50, 0.99), (333, 0.35)


@pytest.mark.parametrize(("n", "rate"), RATES)
def test_the_sieve_is_as_private_as_it_paid_for_on_the_sample_that_it_takes(n, rate):
    # Balle et al. (2018) need the fraction of the records that are really looked at.
    tables, noise = WatchedTables(n), Script([0.0, -1.0])
    sieve_oracle(noise, tables=tables, rate=rate).separates(0, 1, ())
    allowed = before_amplification(0.2, dict(tables.looks).get("subsample", n) / n)
    assert noise.calls[0][1] >= 2 / allowed * (1 - 1e-12)
    assert noise.calls[1][1] >= 4 / allowed * (1 - 1e-12)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_data_is_not_looked_at_before_it_is_paid_for(rate):
    for made in (laplace_oracle, partial(sieve_oracle, rate=rate)):
        tables = WatchedTables()
        oracle = made(Script([]), tables=tables, account=Filter(Budget(0.01, 1e-6)))
        refused("would exceed", oracle.separates, 0, 1, (), kind=BudgetSpent)
        assert tables.looks == []


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_an_examination_that_cannot_be_paid_does_not_look_at_the_records(rate):
    account = Filter(Budget(1.0, 1e-6))
    tables, noise = WatchedTables(), Script([0.0, 1.0])
    watched = {"tables": tables, "account": account, "rate": rate}
    oracle = sieve_oracle(noise, **watched, price=lambda separated: Round(0.2, 0.2))
    refused("would exceed", oracle.separates, 0, 1, (), kind=BudgetSpent)
    where = "all" if rate == 1 else "sample"
    assert [look for look in tables.looks if look[0] != "subsample"] == [(where, (0, 1))]
    assert [event.mechanism for event in account.ledger.events] == ["above threshold"]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_round_costs_its_share_of_the_rest(parts):
    account = Filter(Budget(2.0, 1e-6))
    for pairs, separated in [(10, 0), (10, 4), (10, 9), (3, 1)]:
        before = account.remaining
        sieve, examination = share_of_the_rest(account, pairs, examined=parts == 2)(separated)
        assert examination == (sieve if parts == 2 else 0)
        account.spend(*[PureEvent("above threshold", sieve)] * parts)
        share = 1 / (parts * (pairs - separated) + 1)
        assert before - account.remaining == pytest.approx(share * before, rel=1e-12)


def test_laplace_pc_splits_its_budget_evenly_over_the_planned_tests():
    for planned in (1, 7, None):
        release = laplace_pc(ASIA, epsilon=2.0, rng=default_rng(0), planned_tests=planned)
        events = release.ledger.events
        assert len(set(events)) == 1
        whole = (planned or 8 * 7) * events[0].epsilon ** 2 / 2
        assert epsilon_of_rho(whole, 1e-6) == pytest.approx(2.0, rel=1e-6)
        if planned:
            assert len(events) == release.answers.tests == planned
            assert release.answers.stopped_early


@pytest.mark.parametrize("run", PRIVATE.values(), ids=PRIVATE)
def test_knowledge_and_the_largest_order_reach_the_search(run):
    known = dpcgd.Knowledge(required=[("dysp", "asia")], forbidden=[("lung", "either")])
    release = run(ASIA, rng=default_rng(0), knowledge=known, max_order=1)
    assert ("dysp", "asia") in release.graph.arrows
    assert not release.graph.to_networkx().has_edge("lung", "either")
    assert max(map(len, release.answers.separating_sets.values())) <= 1


# --- what oracles work out together


class OneByOne:
    """An oracle that is never told what will be asked."""

    def __init__(self, oracle):
        self.separates, self.nearnesses = oracle.separates, self._in_turn
        self._nearnesses = oracle.nearnesses

    def _in_turn(self, tests):
        return [near for test in tests for near in self._nearnesses([test])]


def private(kind, tables, budget):
    account, noise = Filter(budget), SeededNoise(default_rng(1))
    if kind is SieveOracle:
        price, settings = share_of_the_rest(account, 190), (1.0, 0.0, 1.0)
    else:
        price, settings = share_of_the_choices(account, exponential, 20, 3), (exponential, 1.0)
    return kind(tables, KendallZ(), price, *settings, account, noise)


@pytest.mark.parametrize("n", [300, 5000, 50_000])
@pytest.mark.parametrize("statistic", [KendallP(), ChiSquared(0.05), GTest(0.01)])
def test_plain_pc_finds_what_it_finds_one_by_one(statistic, n):
    data = load("child", n=n, rng=default_rng(0))
    tables = Tables(data)
    many = PlainOracle(tables, statistic)
    single = OneByOne(PlainOracle(OnlyCounts(tables), statistic))
    run = partial(search, variables=data.variables, max_order=2)
    found, expected = (run(oracle, grading=oracle) for oracle in (many, single))
    assert found == expected
    assert found.graph == expected.graph


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kind", [SieveOracle, ExponentialOracle])
def test_private_pc_spends_and_draws_as_one_by_one(kind, epsilon):
    data = load("child", n=20_000, rng=default_rng(0))
    tables, budget = Tables(data), Budget(epsilon, 1e-6)
    many, single = private(kind, tables, budget), private(kind, OnlyCounts(tables), budget)
    assert search(many, data.variables) == search(single, data.variables)
    assert many.account.ledger == single.account.ledger
    assert np.array_equal(many.noise._rng.random(3), single.noise._rng.random(3))


# --- statistics at the ends of double precision

DATA = load("survey", n=1000, rng=default_rng(0))


CODES = np.column_stack([np.zeros(500, int), *default_rng(0).integers(0, 3, (2, 500))])
ONE_LEVEL = Dataset(CODES, {"a": ["0"], "b": list("012"), "c": list("012")})


@pytest.mark.parametrize("statistic", [GTest(), ChiSquared(), KendallZ(critical=0.0)])
def test_curate_says_what_it_cannot_plan_by(statistic):
    settings = {"epsilon": 1.0, "rng": default_rng(0), "statistic": statistic}
    refused(r"such as KendallZ\(\)", curate_pc, DATA, **settings)


@pytest.mark.parametrize("critical", [5e-324, 1e-300, 1e300, -1e300])
def test_searches_take_any_other_critical_value(critical):
    for system in SEARCHES:
        release = system(DATA, epsilon=1.0, rng=default_rng(0), statistic=KendallZ(critical))
        assert release.ledger.spent <= (1.0, 1e-6)


KINDS = ChiSquared, GTest, KendallZ, SpearmanZ, PartialCorrelation, KendallP


@pytest.mark.parametrize("system", SEARCHES)
@pytest.mark.parametrize("statistic", [kind() for kind in KINDS])
def test_a_variable_of_one_level_divides_nothing(system, statistic):
    if system is curate_pc and statistic.critical == 0:
        return
    release = system(ONE_LEVEL, epsilon=1e6, rng=default_rng(0), statistic=statistic)
    assert not release.graph.skeleton & {frozenset("ab"), frozenset("ac")}


def constant(number, moves=0.0):
    """A statistic that no record moves."""
    calls = {"value": lambda table: number, "sensitivity": lambda n, levels: moves}
    return SimpleNamespace(name="constant", proved=True, critical=1.0, **calls)


@pytest.mark.parametrize("system", [laplace_pc, priv_pc, svt_pc, dpcgd.em_pc])
@pytest.mark.parametrize(("number", "edges"), [(0.0, 0), (2.0, 15), (math.nan, 0)])
def test_a_statistic_that_no_record_moves_decides_for_sure(system, number, edges):
    settings = {"statistic": constant(number), "max_order": 0, "epsilon": 1e3, "margin": 0.0}
    assert len(system(DATA, rng=default_rng(0), **settings).graph.skeleton) == edges


@pytest.mark.parametrize("moves", [math.nan, -1.0, math.inf, "1"])
def test_a_sensitivity_that_is_no_number_is_refused(moves):
    statistic = constant(0.0, moves)
    refused(
        "sensitivities are finite",
        priv_pc,
        DATA,
        epsilon=1,
        rng=default_rng(0),
        statistic=statistic,
    )


def test_the_price_of_a_sieve_is_a_number_or_the_budget_is_spent():
    account, noise = Filter(Budget(1.0, 1e-6)), SeededNoise(default_rng(0))
    price = share_of_the_rest(account, 10, examined=False)
    oracle = ThresholdOracle(Tables(DATA), KendallZ(), price, 1.0, 0.0, 1.0, account, noise)
    account.spend(PureEvent("all", math.sqrt(2 * account.rho) * (1 - 1e-12)))
    with contextlib.suppress(BudgetSpent):
        for x, y in itertools.combinations(range(6), 2):
            oracle.separates(x, y, ())
    assert account.ledger.spent.epsilon <= 1
