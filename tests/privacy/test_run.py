"""A run refuses by public facts, in one line that names the cure, before anything is spent."""

import inspect
import math
from functools import partial
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from dpcgd_book.systems import as_published
from numpy.random import default_rng
from people import refused

import dpcgd
from dpcgd import Budget, Dataset, Knowledge, load, noleaks, pc, plan, priv_pc, table_pc
from dpcgd.datasets.variable import Parts
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report
from dpcgd.privacy import noise
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, PureFilter
from dpcgd.privacy.run import open_run
from dpcgd.statistics.rank_statistics import KendallP, KendallZ

SEARCHES = [dpcgd.laplace_pc, priv_pc, dpcgd.svt_pc, dpcgd.em_pc, dpcgd.curate_pc]
PUBLISHED = "priv_pc", "svt_pc", "em_pc", "curate_pc"
CLAIMED = [getattr(as_published, f"published_{name}") for name in PUBLISHED]
ASKING = [*SEARCHES, *CLAIMED, table_pc]
TAKE_NUMBERS = dpcgd.graph_from_moments, dpcgd.private_graph
CODED = [*ASKING, dpcgd.graph_from_moments, dpcgd.private_graph, dpcgd.dag_posterior]
SCORED = [dpcgd.gram_notears, noleaks, as_published.published_noleaks]
PAIRS = [dpcgd.private_anm, dpcgd.histogram_anm]
PRIVATE = [*CODED, *SCORED, *PAIRS]
DATA = load("survey", n=2000, rng=default_rng(0))
PAIR = synthetic_pair(200, rng=default_rng(0))


def test_every_private_system_is_here():
    functions = filter(inspect.isfunction, (getattr(dpcgd, name) for name in dpcgd.__all__))
    assert {f for f in functions if "secure" in inspect.signature(f).parameters} <= set(PRIVATE)


class Untouchable:
    """Public facts of coded data whose records must not be looked at."""

    n, d, variables, cardinalities, numbers = 1000, 3, tuple("abc"), (2, 2, 2), ()
    levels, rules = dict.fromkeys("abc", ("0", "1")), MappingProxyType({})

    @property
    def codes(self):
        raise AssertionError("the records were looked at")

    scaled = codes


@pytest.fixture
def spent(monkeypatch):
    """What filters and odometers are asked to pay."""
    asked = []
    for kind in (Filter, BasicFilter, as_published.Odometer):
        monkeypatch.setattr(kind, "spend", lambda self, *events: asked.extend(events))
    yield asked
    assert asked == []


HOW = {"epsilon": 1.0, "rng": default_rng(0)}
BAD_ROWS = 0, 1.5, "2", True, math.nan, 2001
SETTINGS = [
    ({"knowledge": {"required": [("a", "b")]}}, r"Knowledge\(forbidden.*not \{"),
    ({"knowledge": Knowledge(required=[("smokr", "b")])}, "no variable is called 'smokr'"),
    *(({"max_order": order}, "max_order must be") for order in (1.5, "2", True, -1)),
    *(({"epsilon": epsilon}, "epsilon must be") for epsilon in (True, "1", -1.0)),
    *(({"delta": delta}, "delta must be") for delta in (1.0, "1e-6")),
    *(({"rows_per_person": rows}, "rows_per_person must be") for rows in BAD_ROWS),
    ({"rng": 0}, "say where the noise comes from"),
]
MOVES = [type("Own", (KendallZ,), {"sensitivity": lambda *_, by=by: by})() for by in (-1, math.nan)]
STATISTICS = [
    *(({"statistic": kind}, r"be one such as KendallZ\(\)") for kind in ("kendall", KendallZ)),
    ({"statistic": SimpleNamespace(value=1, critical=1.0)}, "has no sensitivity"),
    *(({"statistic": moved}, "sensitivities are finite numbers, 0 or more") for moved in MOVES),
]
SIEVES = [priv_pc, dpcgd.svt_pc, as_published.published_priv_pc, as_published.published_svt_pc]
NO_NUMBERS = [
    *((table_pc, {"alpha": alpha}) for alpha in (-1, 0, 1, "0.01", True, math.nan)),
    *((system, {"rate": rate}) for system in SIEVES for rate in (0, 1.1, "0.5", math.nan)),
    *((system, {"margin": bad}) for system in SEARCHES for bad in (math.inf, math.nan, "1", True)),
    *((dpcgd.laplace_pc, {"planned_tests": tests}) for tests in (0, math.nan)),
    *((dpcgd.gram_notears, bad) for bad in ({"l1": -1.0}, {"threshold": "0.1"}, {"row_norm": 0.0})),
    (dpcgd.gram_notears, {"standardized": "no"}),
    *((noleaks, bad) for bad in ({"steps": 0}, {"steps": 2.5}, {"clip": math.nan})),
    *((noleaks, bad) for bad in ({"clip": 5e-324}, {"schedule": "uniform"})),
    (as_published.published_noleaks, {"steps": "30"}),
]


BAD = [
    *((system, *case) for system in ASKING for case in SETTINGS),
    *((system, *case) for system in [*SEARCHES, *CLAIMED] for case in STATISTICS),
    *((system, bad, f"{name} must be") for system, bad in NO_NUMBERS for name in bad),
    *((system, {"rows_per_person": 2}, "enforces no budget of persons") for system in CLAIMED),
]


@pytest.mark.parametrize(
    ("system", "bad", "message"), BAD, ids=lambda part: getattr(part, "__name__", str(part))
)
def test_bad_settings(system, bad, message, spent):
    refused(message, system, Untouchable(), **HOW | bad)


def how_to_run(system):
    """What a private system needs beside its data; the others take no budget."""
    how = {"epsilon": 1.0, "rng": default_rng(0)}
    return how if system in PRIVATE else {"rng": how["rng"]} if system is dpcgd.anm else {}


def mixed(*numbers):
    """Records of a category and numbers."""
    codes = default_rng(0).integers(0, 2, (1000, 1 + len(numbers)))
    return Dataset(codes, {"a": ("0", "1"), **dict.fromkeys(numbers, Parts(-1.0, 1.0))})


MECHANISM = RandomizedResponse.from_epsilon((2, 32768), 1.0)
TAKE_CATEGORIES = [partial(pc, statistic=KendallP()), *(s for s in CODED if s not in TAKE_NUMBERS)]
REPORT = partial(report, mechanism=MECHANISM, rng=default_rng(0))


HOLED = Dataset([[0, 1]] * 50, dict.fromkeys("xy", Parts(-1.0, 1.0, missing="unknown")))
NO_DATA = ["people.csv", pd.DataFrame({"a": [0], "b": [1]}), None, [[0, 1]], Dataset]
NO_SET = "data must be a data set, not a .*; make one with"
NUMBER = r"^'x' is a number, .*; cut .* data.binned\(5\).*range$"
MISSING = "^the number 'x' may be missing, .*; drop or .*bins$"
CATEGORY = "'a' is a category, and a pair holds numbers; give it"
UNFIT = [
    *((system, data, NO_SET) for system in [pc, dpcgd.notears, *PRIVATE] for data in NO_DATA),
    *((system, mixed("x"), NUMBER) for system in [*TAKE_CATEGORIES, REPORT]),
    *((system, HOLED, MISSING) for system in [dpcgd.notears, dpcgd.anm, *SCORED, *PAIRS]),
    *((system, mixed("x"), CATEGORY) for system in [dpcgd.anm, *PAIRS]),
]


@pytest.mark.parametrize(("system", "data", "cure"), UNFIT)
def test_data_that_a_system_does_not_take(system, data, cure, spent):
    refused(cure, system, data, **how_to_run(system))


@pytest.mark.parametrize("system", [dpcgd.notears, *SCORED])
def test_scores_take_categories_beside_numbers(system):
    assert system(mixed("x", "y"), **how_to_run(system)).graph.variables == ("a", "x", "y")


@pytest.mark.parametrize("system", [dpcgd.anm, *PAIRS])
@pytest.mark.parametrize("bad", [{"score": "hsic"}, {"ridge": 0.1}], ids=str)
def test_bad_parts_of_a_run_on_a_pair(system, bad, spent):
    pair = Dataset.of_numbers(default_rng(0).random((9, 2)), {"a": (0, 1), "b": (0, 1)})
    (name,) = bad
    refused(f"{name} must be one such as", system, pair, **how_to_run(system), **bad)


LARGE_DELTAS = [
    *(({"delta": delta}, "not below 1/n = .*allow_delta=True") for delta in (1 / PAIR.n, 0.5)),
    ({"delta": 0.5, "allow_delta": "yes"}, "allow_delta must be True or False"),
    ({"delta": 1.0, "allow_delta": True}, "delta must be below 1"),
]


@pytest.mark.parametrize("system", PRIVATE)
@pytest.mark.parametrize(("bad", "message"), LARGE_DELTAS, ids=str)
def test_a_delta_of_one_over_n(system, bad, message, spent):
    refused(message, system, PAIR if system in PAIRS else DATA, **HOW | bad)


@pytest.mark.parametrize("system", PRIVATE)
def test_a_large_delta_that_is_allowed_runs_without_a_word_about_it(system, recwarn):
    data, promise = PAIR if system in PAIRS else DATA, {"epsilon": 1.0, "delta": 0.1}
    ledger = system(data, **promise, allow_delta=True, rng=default_rng(0)).ledger
    assert (ledger.budget or ledger.spent).delta == 0.1 or system in CLAIMED
    assert not any("delta" in str(warning.message) for warning in recwarn)


def test_plans_and_rehearsals_follow_the_same_rule():
    levels = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    rehearse = partial(dpcgd.rehearse, levels, 1000, epsilon=5.0, rng=default_rng(0), runs=1)
    for call in (
        partial(plan, levels, 1000, epsilon=1.0),
        partial(dpcgd.epsilon_for, levels, 1000, points=50),
        rehearse,
    ):
        refused("not below 1/n", call, delta=0.001)
        call(delta=0.001, allow_delta=True)
    rehearse(public=Dataset(np.tile([[0, 1, 0], [1, 0, 0]], (600_000, 1)), levels))


def test_a_statistic_without_a_proof_takes_the_guarantee():
    run = partial(open_run, DATA, epsilon=1.0, rng=default_rng(0))
    assert run(statistic=KendallZ()).guarantee == "proved"
    heir = type("Heir", (KendallZ,), {"values": lambda self, tables: tables.levels[:, 0]})
    for unproved in (as_published.PublishedKendallP(), heir()):
        assert run(statistic=unproved).guarantee == "claimed, not proved"


@pytest.mark.parametrize("system", [*SEARCHES, *SCORED])
def test_a_secure_run_keeps_its_budget_and_tells_no_time(system):
    pytest.importorskip("opendp")
    release = system(load("earthquake", n=300, rng=default_rng(0)), epsilon=1.0, secure=True)
    assert release.ledger.events
    assert release.seconds is None
    assert (release.answers is None) == (system in SCORED)  # scores test no pairs
    if release.guarantee == "proved":
        assert release.ledger.spent <= (1.0, 1e-6)


@pytest.mark.parametrize(("n", "kept"), [(500_000, 0), (10**7, 1e7 / 2**49), (10**9, 1e9 / 2**49)])
def test_large_data_keep_a_part_of_the_budget_for_rounding(n, kept):
    levels = {"x": ("0", "1"), "y": ("0", "1")}
    facts = SimpleNamespace(n=n, cardinalities=(2, 2), levels=levels, rules={}, numbers=())
    for epsilon, delta in ((2.0, 1e-12), (1e-6, 1e-12), (1e-9, 0.9 / n)):
        how = {"epsilon": epsilon, "delta": delta, "rng": default_rng(0)}
        for account in (Filter, GaussianFilter, PureFilter):
            run, whole = open_run(facts, account=account, **how), account(Budget(epsilon, delta))
            assert run.account.budget == Budget(epsilon, delta)
            assert run.account.limit[0] == whole.limit[0] * (1 - kept)


BAD_N = [(np.int32(10**9), "use int"), (1e3, "use int"), (1 << 49, "too many for exact sums")]


@pytest.mark.parametrize(("n", "cure"), BAD_N)
def test_numbers_of_records_that_would_overflow_or_round(n, cure):
    data = Untouchable()
    data.n = n
    refused(cure, open_run, data, **HOW)
    data.levels = {"a": ("0", "1")}
    refused("at least two variables", open_run, data, **HOW)


NARROW = [
    (noleaks, {"clip": np.float16(8)}),
    (noleaks, {"clip": np.uint8(128), "epsilon": np.float32(1)}),
    (dpcgd.gram_notears, {"row_norm": np.uint8(16)}),
    (dpcgd.laplace_pc, {"planned_tests": np.float16(60_000), "epsilon": np.float16(0.3)}),
    (priv_pc, {"rate": np.float16(0.3)}),
]


@pytest.mark.parametrize(("system", "narrow"), NARROW)
def test_settings_of_narrow_types_have_the_noise_of_doubles(system, narrow, monkeypatch):
    scales = []
    monkeypatch.setattr(noise, "_checked_scale", lambda scale, *_: scales.append(scale) or scale)
    for settings in (narrow, {name: value.item() for name, value in narrow.items()}):
        system(DATA, **HOW | {"rng": default_rng(0)} | settings)
    assert scales[: len(scales) // 2] == scales[len(scales) // 2 :]


def test_a_pair_has_no_more_bins_than_fit_in_memory(spent):
    refused("at most 1024, not 1000000", dpcgd.histogram_anm, PAIR, bins=10**6, **HOW)


@pytest.mark.parametrize("system", [*SEARCHES, *CLAIMED, *SCORED])
def test_a_system_refuses_keywords_that_it_does_not_have(system, spent):
    call = rf"{system.__name__}\(\) "
    wrong = {"epsilom": 1.0, "account": Filter, "numbers": True, "planned_test": 3}
    for name, value in wrong.items():
        cure = f"{call}got an unexpected.*{name}"
        refused(cure, system, Untouchable(), kind=TypeError, **HOW, **{name: value})
    refused(f"{call}missing.*epsilon", system, Untouchable(), kind=TypeError, rng=default_rng(0))
    refused("secure", system, Untouchable(), secure=True, **HOW)
