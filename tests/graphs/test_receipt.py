"""Receipts: all of a release and nothing else, read back as it was, checked by others."""

import dataclasses
import io
import itertools
import json
import math
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import replays
from dpcgd_book.systems.as_published import PublishedKendallP
from numpy.random import default_rng
from people import read_back, refused

import dpcgd
from dpcgd.datasets.counts import Counts
from dpcgd.graphs.pc_search import search
from dpcgd.graphs.release import Release
from dpcgd.moments.interactions import NoisyTable
from dpcgd.privacy.budget import Budget
from dpcgd.privacy.mechanisms import permute_and_flip
from dpcgd.privacy.run import open_run
from dpcgd.privacy.sealed_file import digest_of
from dpcgd.score.schedules import rising

pytestmark = pytest.mark.filterwarnings("ignore:the edge model was", "ignore:100% of the pairs")
GRAPHS = [name for name in replays.SYSTEMS if replays.SYSTEMS[name].data is not replays.paired]
DATA = dpcgd.load("cancer", n=2000, rng=default_rng(0))


def run_of(name, **settings):
    how = replays.FAST.get(name, {}) | {"epsilon": 2.0, "delta": 1e-4} | settings
    return replays.SYSTEMS[name].system(DATA, **({"rng": default_rng(0)} | how))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "receipt.json"


# --- round trips


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_release_is_read_back_and_others_add_up_to_what_its_ledger_reads(name, rows, path):
    release = run_of(name, rows_per_person=rows)
    again, text, theirs = read_back(release, path), path.read_text(), dpcgd.check_receipt(path)
    assert again.seconds is None
    assert again == release
    assert str(again.graph) == str(release.graph)  # with the probabilities
    assert (again.pair_status(), str(again.ledger)) == (release.pair_status(), str(release.ledger))
    again.save(path)
    assert path.read_text() == text
    ours, ledger = release.ledger.spent, release.ledger
    # A sum of epsilons needs no delta.
    assert ours.delta == (0 if ledger.accountant.startswith("sum of epsilons") else theirs.delta)
    basic = rows * sum(getattr(event, "epsilon", math.inf) for event in ledger.events)
    assert theirs.epsilon <= min(ours.epsilon, basic) * (1 + 1e-6) <= 2.0 + 1e-5
    if "prices of Laplace" not in theirs.recomputed:  # those are priced lower than by a theorem
        assert theirs.epsilon == pytest.approx(min(ours.epsilon, basic), rel=1e-5)


def test_knowledge_and_a_statistic_go_along(path):
    knowledge = dpcgd.Knowledge(required=[("Smoker", "Cancer")], forbidden=[("Xray", "Smoker")])
    release = run_of("priv_pc", knowledge=knowledge, statistic=PublishedKendallP())
    again = read_back(release, path)
    assert (again.terms, again.terms.settings["knowledge"]) == (release.terms, knowledge)
    assert "PublishedKendallP" in again.terms.settings["statistic"]
    assert (again.guarantee, again.terms.theorems) == ("claimed, not proved", ())


# --- what stands in a receipt


def test_a_receipt_holds_what_a_reviewer_asks_for(path):
    run_of("table_pc").save(path)
    content = json.loads(path.read_text())
    source = f"numpy {np.__version__}, a seed"
    expected = {"kind": "experiment, not a release", "noise_source": source}
    assert content | expected | {"noise_distributions": ["Gaussian"]} == content
    promise = {"status": "proved", "epsilon": 2.0, "delta": 1e-4, "unit": "one record"}
    theorems = ["thm-table-pc", "thm-pairs", "thm-look-again"]
    promise |= {"neighbours": "replace one record", "theorems": theorems}
    assert content["guarantee"] | promise == content["guarantee"]
    assert content["made_by"]["system"] == "table_pc"
    assert {"python", "numpy"} <= set(content["made_by"]["versions"])
    data, levels = content["data"], {name: list(levels) for name, levels in DATA.levels.items()}
    assert (data["n"], list(data["rules"])) == (2000, list(levels))
    assert data["domain_sha256"] == digest_of([[name, levels[name]] for name in levels])
    assert [pair["status"] in ("confirmed", "removed") for pair in content["pairs"]] == [True] * 10
    assert content["ledger"]["events"][0]["mechanism"] == "Gaussian"
    assert "seconds" not in path.read_text()


def test_a_secure_run_is_a_release(path):
    pytest.importorskip("opendp")
    release = dpcgd.priv_pc(DATA, epsilon=1.0)
    assert repr(release).splitlines()[1] == "  release"
    release.save(path)
    content = json.loads(path.read_text())
    assert (content["kind"], content["noise"]) == ("release", "secure")
    assert content["noise_source"].startswith(f"OpenDP {version('opendp')}")
    assert content["noise_distributions"] == ["Laplace"]
    assert "experiment" not in path.read_text() + release.report()
    assert dpcgd.read_release(path) == release


def test_a_run_without_privacy_has_no_receipt(path):
    refused("this run was not private", dpcgd.pc(DATA).save, path)
    assert not path.exists()


def test_a_value_that_a_receipt_cannot_hold_is_refused_and_no_file_is_left(path):
    @dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
    class Odd(Release):
        records: object

    release = Odd(**vars(run_of("priv_pc")), records=object())
    refused("not JSON serializable", release.save, path, kind=TypeError)
    assert list(path.parent.iterdir()) == []


class Fair(Counts):
    """Four variables that are independent and fair, of any number of records."""

    levels = dict.fromkeys("abcd", ("no", "yes"))

    def __init__(self, n):
        self.n = n

    def counts(self, variables):
        return np.full([2] * len(variables), self.n // 2 ** len(variables))


@pytest.mark.parametrize("n", [10**6, 10**9, 10**14])
@pytest.mark.parametrize("system", [dpcgd.dag_posterior, dpcgd.graph_from_moments, dpcgd.priv_pc])
def test_a_receipt_says_the_budget_that_was_asked_for(system, n, path):
    """Of a billion records a part of rho or epsilon is kept for rounding, and the promise stays."""
    release = system(Fair(n), epsilon=1.0, delta=1e-16, rng=default_rng(0))
    assert release.ledger.budget == Budget(1.0, 1e-16)
    release.save(path)
    promise = json.loads(path.read_text())["guarantee"]
    assert (promise["epsilon"], promise["delta"]) == (1.0, 1e-16)
    assert "(1, 1e-16)-differentially private" in promise["in_words"][0]
    least = 0.45 * n * 2.0**-49 * (n > 10**6)  # rho grows with its square
    assert dpcgd.check_receipt(path).epsilon <= 1.0 - least + 1e-9


THEOREMS = [
    (dpcgd.graph_from_moments, 500, [2] * 3, "learned-pc pairs"),
    (dpcgd.graph_from_moments, 200_000, [2] * 9, "learned-pc pairs"),
    (dpcgd.graph_from_moments, 500, [2] * 9, "learned-pc clipped-moments look-at-numbers"),
    (dpcgd.graph_from_moments, 500, [30, 2, 2], "learned-pc clipped-moments look-at-numbers"),
    (dpcgd.table_pc, 20_000, [2] * 3, "table-pc pairs"),
    (dpcgd.table_pc, 20_000, [30, 2, 2], "table-pc pairs joined-levels"),
    (dpcgd.dag_posterior, 500, [2] * 3, "whole-table"),
]


@pytest.mark.parametrize(("system", "n", "levels", "theorems"), THEOREMS)
def test_only_theorems_that_ran_are_named(system, n, levels, theorems):
    codes = default_rng(0).integers(0, levels, (n, len(levels)))
    data = dpcgd.Dataset(codes, {f"v{i}": list(map(str, range(of))) for i, of in enumerate(levels)})
    named = system(data, epsilon=1.0, rng=default_rng(0)).terms.theorems
    optional = {"thm-interactions", "thm-look-again"} if system is dpcgd.table_pc else set()
    assert set(named) - optional == {f"thm-{name}" for name in theorems.split()}


DECISIVE = [
    ("graph_from_moments", {"precision": 0.7}),
    ("dag_posterior", {"precision": 0.7}),
    ("table_pc", {"untested": "keep"}),
    ("em_pc", {"choose": permute_and_flip}),
    ("gram_notears", {"standardized": False}),
    ("noleaks", {"standardized": False, "schedule": rising}),
]


@pytest.mark.parametrize(("name", "settings"), DECISIVE)
def test_settings_that_decide_what_is_released_are_on_the_receipt(name, settings, path):
    written = read_back(run_of(name, **settings), path).terms.settings
    names = {setting: getattr(value, "__name__", value) for setting, value in settings.items()}
    assert written | names == written


def test_another_release_is_not_equal():
    one, other = (dpcgd.table_pc(DATA, epsilon=2.0, rng=default_rng(seed)) for seed in (0, 1))
    less = dataclasses.replace(one, marginals=one.marginals.as_of(1999))
    table = dpcgd.dag_posterior(DATA, epsilon=1.0, rng=default_rng(0))
    n, counts, scale = table.terms.n, table.marginals.counts, table.marginals.scale
    tables = (NoisyTable(n, cells, scale) for cells in (counts.copy(), counts * 1.1))
    same, moved = (dataclasses.replace(table, marginals=own, seconds=7.0) for own in tables)
    assert table == same
    assert one.marginals != other.marginals
    for first, second in ((one, other), (one, less), (table, moved), (table, one)):
        assert first != second


# --- rules of the schema

RULES = {
    "age": {"edges": [0, 50, 80], "outside": "clip", "missing": "unknown"},
    "pain": {"levels": ["none", "some", "much"], "ordered": True},
    "smoke": ["no", "yes"],
}
TABLE = "age,pain,smoke\n" + "119,none,no\n20,much,yes\n,some,yes\n-3,none,no\n" * 50


def test_a_second_person_codes_the_table_by_the_receipt_alone(path):
    frame = pd.read_csv(io.StringIO(TABLE))
    data = dpcgd.Dataset.from_pandas(frame, RULES)
    dpcgd.table_pc(data, epsilon=2.0, delta=1e-4, rng=default_rng(0)).save(path)
    rules = dpcgd.read_release(path).terms.rules
    assert dpcgd.Schema(rules).to_dict() == dpcgd.Schema(RULES).to_dict()
    again = dpcgd.Dataset.from_pandas(frame, rules)
    assert (again.levels, again.ordered, again.missing) == (data.levels, data.ordered, data.missing)
    np.testing.assert_array_equal(again.codes, data.codes)
    assert dpcgd.check_receipt(path).epsilon <= 2.0


# --- checking


def test_a_run_that_could_test_nothing_cost_nothing(path):
    few = dpcgd.Dataset(np.zeros((5, 3), int), dict.fromkeys("abc", ("no", "yes")))
    release = dpcgd.priv_pc(few, epsilon=1.0, rng=default_rng(0))
    assert set(release.pair_status().values()) == {"not testable"}
    release.save(path)
    assert dpcgd.check_receipt(path).epsilon == 0


def test_without_dp_accounting_the_cure_is_named(path, monkeypatch):
    run_of("table_pc").save(path)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    refused("pip install dp-accounting$", dpcgd.check_receipt, path, kind=ImportError)


@pytest.mark.parametrize("use", [dpcgd.read_release, dpcgd.check_receipt])
def test_a_receipt_edited_by_hand_does_not_verify(path, use):
    run_of("table_pc").save(path)
    content = json.loads(path.read_text())
    graph = {"graph": content["graph"] | {"directed": [["Xray", "Smoker"]]}}
    promise = {"guarantee": content["guarantee"] | {"epsilon": 0.1}}
    for edit in ({"comment": "checked"}, {"sha256": None}, {"released": {}}, graph, promise):
        path.write_text(json.dumps(content | edit))
        refused("does not verify: it is not what was written", use, path)


# --- the status of pairs


class Scripted:
    """Separates the pairs it is told to, cannot test others, and ends after so many questions."""

    def __init__(self, separated=(), untestable=(), asked=10**9):
        self.separated, self.untestable, self.asked = separated, untestable, asked

    def separates(self, x, y, given):
        if not self.asked:
            raise dpcgd.BudgetSpent
        self.asked -= 1
        if {x, y} in self.untestable:
            return None
        return {x, y} in self.separated


KNOWN = dpcgd.Knowledge(required=[("a", "b")], forbidden=[("c", "d"), ("d", "c"), ("a", "c")])
C, R, N, L, K = "confirmed", "removed", "not testable", "not reached", "known"


WHOLE = [C, N, C, C, R, C]
STATUSES = [
    (Scripted([{0, 1}], [{2, 3}]), None, [R, C, C, C, C, N]),
    (Scripted([{0, 3}]), KNOWN, [K, C, R, C, C, K]),
    (Scripted(asked=2), dpcgd.Knowledge(required=[("a", "b")]), [K, C, C, L, L, L]),
    *((Scripted([{1, 3}], [{0, 2}], k), None, WHOLE[:k] + [L] * (6 - k)) for k in range(8)),
]


@pytest.mark.parametrize(("oracle", "knowledge", "words"), STATUSES)
def test_the_status_says_what_became_of_each_pair(oracle, knowledge, words):
    """The six pairs in order: ab ac ad bc bd cd."""
    data = dpcgd.Dataset(np.zeros((9, 4), int), dict.fromkeys("abcd", ("0", "1")))
    how = {"max_order": 1, "knowledge": knowledge}
    run = open_run(data, epsilon=1.0, delta=1e-6, rng=default_rng(0), **how)
    answered = search(oracle, data.variables, **how)
    status = Release(answered.graph, **run.receipt(), answers=answered.answers).pair_status()
    assert [status[frozenset(pair)] for pair in itertools.combinations("abcd", 2)] == words


@pytest.mark.parametrize("name", GRAPHS)
def test_the_status_of_every_pair_agrees_with_the_graph(name):
    release = run_of(name)
    joined, apart = ("confirmed", "removed") if release.answers else ("joined", "apart")
    for pair, word in release.pair_status().items():
        if release.graph.certainty is not None:
            assert word == ("likely" if release.probabilities[pair] >= 0.5 else "unlikely")
        elif release.answers and pair in release.answers.untested:
            assert word in ("not testable", "not reached")
        else:
            assert word == (joined if pair in release.graph.skeleton else apart)
