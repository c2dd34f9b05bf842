"""A reservation pays for one run, an account has one file, and runs add up as the book says."""

import inspect
import math
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dpcgd_book.systems.as_published import (
    PublishedKendallP,
    published_curate_pc,
    published_em_pc,
    published_noleaks,
    published_priv_pc,
    published_svt_pc,
)
from numpy.random import default_rng

import dpcgd
from dpcgd import (
    Budget,
    BudgetSpent,
    curate_pc,
    dag_posterior,
    em_pc,
    epsilon_for,
    gram_notears,
    histogram_anm,
    laplace_pc,
    learned_pc,
    load,
    noleaks,
    open_account,
    plan,
    priv_pc,
    private_anm,
    private_graph,
    read_release,
    rehearse,
    svt_pc,
    table_pc,
)
from dpcgd.datasets.cause_effect_pairs import synthetic_pair
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.dependence_scores import Iqr
from dpcgd.privacy import account_file
from dpcgd.privacy.budget import delta_for
from dpcgd.privacy.conversions import (
    epsilon_of_rho,
    gaussian_delta,
    pure_divergence,
    renyi_limit,
    renyi_order,
)
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, PureFilter
from dpcgd.privacy.odometer import Odometer
from dpcgd.privacy.run import open_run
from dpcgd.privacy.sealed_file import write_sealed

DATA = load("survey", n=2000, rng=default_rng(0))
PAIR = synthetic_pair(200, rng=default_rng(0))
SYSTEMS = [
    *((system, DATA) for system in (priv_pc, laplace_pc, table_pc, learned_pc, private_graph)),
    *((system, DATA) for system in (dag_posterior, noleaks)),
    *((system, PAIR) for system in (private_anm, histogram_anm)),
]
each_system = pytest.mark.parametrize(
    ("system", "data"), SYSTEMS, ids=[system.__name__ for system, _ in SYSTEMS]
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.json"


@pytest.fixture
def account(path):
    return open_account(path, epsilon=1.0, delta=1e-6)


def refused(message, kind=ValueError):
    return pytest.raises(kind, match=message)


# --- one file


def test_links_lead_to_one_account(account, path):
    link = path.with_name("link.json")
    link.symlink_to(path)
    open_account(link).reserve(epsilon=0.6)
    for other in (account, open_account(path)):
        with refused("0.4 of 1 left", BudgetSpent):
            other.reserve(epsilon=0.6)
    assert link.is_symlink()


def test_a_linked_folder_leads_to_the_same_account(account, path, tmp_path):
    (tmp_path / "there").symlink_to(tmp_path, target_is_directory=True)
    other = open_account(tmp_path / "there" / path.name)
    assert other == account
    path.with_name(f"{path.name}.lock").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account_file, "LONGEST_WAIT", 0.05)
        with refused("in use by another run"):
            other.reserve(epsilon=0.1)


def test_a_link_to_an_account_yet_to_be_made_makes_it_there(path):
    link = path.with_name("link.json")
    link.symlink_to(path)
    open_account(link, epsilon=1.0, delta=1e-6)
    assert path.exists()
    assert link.is_symlink()


def test_a_file_of_two_names_is_refused(account, path):
    granted, other = account.reserve(epsilon=0.6), path.with_name("other.json")
    os.link(path, other)
    uses = [
        *(partial(open_account, name) for name in (path, other)),
        partial(account.reserve, epsilon=0.1),
        partial(priv_pc, DATA, rng=default_rng(0), **granted),
    ]
    for use in uses:
        with refused("one file under two names") as caught:
            use()
        assert "\n" not in str(caught.value)
    other.unlink()
    assert len(account.runs) == 1
    priv_pc(DATA, rng=default_rng(0), **granted)


def test_a_file_that_became_a_link_is_not_taken_for_an_account_of_its_own(account, path):
    moved = path.with_name("moved.json")
    path.rename(moved)
    path.symlink_to(moved)
    with refused("one file under two names"):
        account.reserve(epsilon=0.6)
    assert path.is_symlink()


def test_links_in_a_circle_are_no_account(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"a.json"):
        open_account(tmp_path / "a.json", epsilon=1.0, delta=1e-6)


def test_a_relative_path_is_that_of_the_folder_where_the_account_was_opened(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("one", "two")]
    accounts = []
    for folder in folders:
        folder.mkdir()
        monkeypatch.chdir(folder)
        accounts.append(open_account("study.json", epsilon=1.0, delta=1e-6))
    accounts[0].reserve(epsilon=0.6)
    assert [len(open_account(folder / "study.json").runs) for folder in folders] == [1, 0]


# --- one run


@each_system
def test_a_reservation_pays_once(account, system, data):
    granted = account.reserve(epsilon=0.4)
    release = system(data, rng=default_rng(0), **granted)
    with refused("already; reserve again") as caught:
        system(data, rng=default_rng(1), **granted)
    assert "\n" not in str(caught.value)
    (run,) = account.runs
    assert (run.epsilon, run.delta, run.entry) == (0.4, 4e-7, release.terms.account_entry)
    assert (run.system, run.domain) == (release.terms.system, release.terms.digest)
    assert len(run.entry) >= 32


def test_another_system_cannot_use_it_either_nor_a_copy_of_it(account, path):
    granted = account.reserve(epsilon=0.4)
    copies = [granted, dict(granted), pickle.loads(pickle.dumps(granted))]
    table_pc(DATA, rng=default_rng(0), **copies[-1])
    for copy in copies:
        for system in (dag_posterior, priv_pc):
            with refused("a reservation that table_pc used already"):
                system(DATA, rng=default_rng(0), **copy)
    assert open_account(path).runs == account.runs


OTHER = """
import pickle, sys
from numpy.random import default_rng
from dpcgd import load, priv_pc
granted = pickle.load(sys.stdin.buffer)
data = load("survey", n=2000, rng=default_rng(0))
try:
    priv_pc(data, rng=default_rng(0), max_order=0, **granted)
    print("ran")
except ValueError as error:
    print(error)
"""


def test_of_processes_that_share_a_reservation_one_runs(account):
    granted = pickle.dumps(account.reserve(epsilon=0.4))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    runs = [subprocess.Popen([sys.executable, "-c", OTHER], **pipes) for _ in range(2)]
    said = [run.communicate(granted, timeout=120)[0].decode() for run in runs]
    assert sum(text.startswith("ran") for text in said) == 1
    assert sum("used already" in text for text in said) == 1


@pytest.mark.parametrize(
    "other",
    [{"delta": 1e-7}, {"delta": None}, {"rows_per_person": 2}, {"rows_per_person": 1}],
    ids=str,
)
def test_a_reservation_is_for_what_was_reserved(path, other):
    account = open_account(path, epsilon=1.0, delta=1e-5, rows_per_person=3)
    granted = account.reserve(epsilon=0.4)
    with refused("hand on the whole reservation"):
        priv_pc(DATA, rng=default_rng(0), **granted | other)
    priv_pc(DATA, rng=default_rng(0), **granted)


def test_a_run_that_is_refused_by_public_facts_leaves_its_reservation(account):
    granted = account.reserve(epsilon=0.4)
    few = replace(DATA, codes=DATA.codes[:4])
    for data, bad in ((DATA, {"max_order": 9}), (DATA, {"alpha": 2}), (few, {})):
        with pytest.raises(ValueError, match=r"max_order|alpha|records"):
            table_pc(data, rng=default_rng(0), **granted, **bad)
    table_pc(DATA, rng=default_rng(0), **granted)


def test_plans_and_rehearsals_leave_a_reservation(account):
    granted = account.reserve(epsilon=0.4)
    plan(DATA.levels, 2000, **granted)
    rehearse(DATA.levels, 2000, rng=default_rng(0), runs=2, **granted)
    table_pc(DATA, rng=default_rng(0), **granted)


def test_the_file_says_who_runs_before_a_record_is_looked_at(account):
    granted, seen = account.reserve(epsilon=0.4), []

    class Watched(Counts):
        n, levels = DATA.n, DATA.levels

        def counts(self, variables):
            seen.extend(run.system for run in account.runs)
            return DATA.counts(variables)

    dag_posterior(Watched(), rng=default_rng(0), **granted)
    assert seen
    assert set(seen) == {"dag_posterior"}


def test_what_a_run_pays_with_is_on_the_disk_before_it_spends(account, monkeypatch):
    granted, steps = account.reserve(epsilon=0.4), []
    done, spend = os.fsync, Filter.spend

    def spent(self, *events):
        before = len(self.ledger.events)
        spend(self, *events)
        steps.append("spent" if len(self.ledger.events) > before else "refused")

    monkeypatch.setattr(os, "fsync", lambda file: steps.append("fsync") or done(file))
    monkeypatch.setattr(Filter, "spend", spent)
    laplace_pc(DATA, rng=default_rng(0), max_order=0, **granted)
    assert steps[0] == "fsync"
    assert set(steps[steps.index("spent") :]) == {"spent"}


def test_an_account_that_cannot_be_written_stops_the_run(account, path, monkeypatch):
    granted, before = account.reserve(epsilon=0.4), path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            run = open_run(DATA, rng=default_rng(0), **granted)
            with refused("No space left"):
                run.account.spend(PureEvent("Laplace", 0.01))
            assert run.account.ledger.events == ()
            with refused("No space left"):
                laplace_pc(DATA, rng=default_rng(0), **granted)
    assert path.read_bytes() == before


def test_a_reservation_of_another_account_is_none(account, path):
    granted = account.reserve(epsilon=0.4)
    path.unlink()
    with refused("there is no file"):
        priv_pc(DATA, rng=default_rng(0), **granted)
    open_account(path, epsilon=1.0, delta=1e-6).reserve(epsilon=0.4)
    with refused("no such reservation"):
        priv_pc(DATA, rng=default_rng(0), **granted)


def test_a_run_whose_guarantee_is_claimed_is_not_paid_for(account):
    granted = account.reserve(epsilon=0.4)
    del granted["rows_per_person"]
    with refused("an account pays for proved runs"):
        published_priv_pc(DATA, rng=default_rng(0), **granted)
    assert account.runs[0].system == ""


def test_accounts_of_earlier_versions_are_read_and_their_entries_pay_nothing(path):
    old = {"epsilon": 0.4, "delta": 4e-7, "label": "old"}
    budget = {"epsilon": 1.0, "delta": 1e-6, "rows_per_person": 1}
    write_sealed(path, {"format": "dpcgd account 1", "budget": budget, "runs": [old]})
    account = open_account(path)
    assert account.remaining.epsilon == pytest.approx(0.6)
    with refused("no such reservation"):
        account.redeem("", Budget(0.4, 4e-7), system="x", domain="", divergence=float)
    priv_pc(DATA, rng=default_rng(0), **account.reserve(epsilon=0.6))
    assert [(run.label, run.system) for run in account.runs] == [("old", ""), ("", "priv_pc")]


def test_the_receipt_names_the_entry(account, tmp_path):
    release = table_pc(DATA, rng=default_rng(0), **account.reserve(epsilon=0.4))
    release.save(tmp_path / "receipt.json")
    again = read_release(tmp_path / "receipt.json")
    assert again.terms.account_entry == account.runs[0].entry != ""
    assert again.ledger == release.ledger
    assert type(release.ledger.budget.epsilon) is float
    assert priv_pc(DATA, epsilon=1.0, rng=default_rng(0)).terms.account_entry == ""


# --- the lock


def test_what_others_wrote_while_a_run_waited_counts(account, path, monkeypatch):
    empty = path.read_bytes()
    account.reserve(epsilon=0.6)
    after = path.read_bytes()
    path.write_bytes(empty)
    lock = path.with_name(f"{path.name}.lock")
    lock.touch()

    def other_run_ends(seconds):
        path.write_bytes(after)
        lock.unlink()

    monkeypatch.setattr(time, "sleep", other_run_ends)
    with refused("0.4 of 1 left", BudgetSpent):
        account.reserve(epsilon=0.6)
    assert path.read_bytes() == after


def test_a_run_waits_for_another_to_leave_its_account(account, path, monkeypatch):
    granted = account.reserve(epsilon=0.3)
    lock = path.with_name(f"{path.name}.lock")
    monkeypatch.setattr(time, "sleep", lambda seconds: lock.unlink())
    lock.touch()
    account.reserve(epsilon=0.3)
    lock.touch()
    laplace_pc(DATA, rng=default_rng(0), **granted)
    assert [run.system for run in account.runs] == ["laplace_pc", ""]
    assert account_file.LONGEST_WAIT >= 1


# --- how runs add up


def test_each_account_says_what_a_whole_run_satisfies():
    budget = Budget(1.0, 1e-6)
    assert "0.02436-zCDP" in Filter(budget).whole
    assert "0.02802-zCDP" in GaussianFilter(budget).whole
    assert "(1, 0)-private and 0.5-zCDP" in PureFilter(budget).whole
    assert "no rho is proved" in BasicFilter(budget).whole
    assert "except with probability" in Filter(budget, reserved=1e-7).whole
    for kind in (Filter, GaussianFilter):
        of_persons = kind(replace(budget, rows_per_person=5)).promised_rho
        assert of_persons == pytest.approx(kind(budget).rho, rel=1e-9)


@pytest.mark.parametrize("kind", [Filter, GaussianFilter, PureFilter])
def test_all_rows_of_a_person_count_in_an_account(kind):
    one, five = (kind(Budget(0.5, 1e-6, rows)) for rows in (1, 5))
    assert five.divergence(20.0) == pytest.approx(one.divergence(20.0), rel=1e-8)


@pytest.mark.parametrize("rho", [*np.geomspace(1e-8, 1e3, 40), 0.024352, 1.0])
def test_a_rho_is_never_printed_smaller_than_it_is(rho):
    epsilon = math.sqrt(2 * rho)
    text = PureFilter(Budget(epsilon, 1e-6)).whole.split(" and ")[-1].removesuffix("-zCDP")
    assert epsilon**2 / 2 <= float(text) <= epsilon**2 / 2 * 1.0011


@pytest.mark.parametrize(
    ("system", "says"),
    [
        (dag_posterior, "(0.5, 0)-private"),
        (table_pc, "Gaussian mechanism"),
        (priv_pc, "-zCDP"),
    ],
    ids=["pure", "Gaussian", "zCDP"],
)
def test_ledger_and_receipt_say_what_the_whole_run_satisfies(system, says, tmp_path):
    release = system(DATA, epsilon=0.5, rng=default_rng(0))
    assert says in str(release.ledger)
    release.save(tmp_path / "receipt.json")
    assert says in (tmp_path / "receipt.json").read_text()


def test_a_pure_filter_takes_no_delta_and_no_more_than_its_epsilon():
    account = PureFilter(Budget(1.0, 1e-6))
    with pytest.raises(BudgetSpent):
        account.spend(ApproximateEvent("tested release", 0.1, 1e-9))
    with pytest.raises(TypeError):
        account.spend(GaussianEvent("Gaussian", 5.0))
    account.spend(PureEvent("a", 0.5))
    with pytest.raises(BudgetSpent):
        account.spend(PureEvent("b", 0.6))


def test_pairs_are_pure_but_for_the_score_that_spends_delta():
    pure, tested = (
        private_anm(PAIR, epsilon=1.0, rng=default_rng(0), score=score) for score in (None, Iqr())
    )
    assert "(1, 0)-private" in pure.ledger.whole
    assert "(1, 1e-06)-private" in tested.ledger.whole


def exact_delta(epsilons, total):
    """Of randomised responses run one after another, each the worst of its epsilon."""
    most = 0.0
    for answers in product((1, -1), repeat=len(epsilons)):
        loss = math.fsum(a * e for a, e in zip(answers, epsilons, strict=True))
        chance = math.prod(
            1 / (1 + math.exp(-a * e)) for a, e in zip(answers, epsilons, strict=True)
        )
        most += chance * max(0.0, -math.expm1(total - loss))
    return most


def test_two_pure_runs_are_not_what_two_zcdp_runs_are():
    """Two runs of dag_posterior at (1, 1e-6): the rule by Filter.rho is false for them."""
    budget = Budget(1.0, 1e-6)
    false_total = epsilon_of_rho(2 * Filter(budget).rho, 1e-6)
    assert false_total == pytest.approx(1.451, abs=0.001)
    assert exact_delta([1.0, 1.0], false_total) > 0.2
    # a replaced record moves two cells of the table by one: noise of scale 2 in each, twice
    cell = privacy_loss_distribution.from_laplace_mechanism(2.0, value_discretization_interval=1e-3)
    exact = cell.self_compose(4)
    assert exact.get_delta_for_epsilon(false_total) == pytest.approx(0.043, abs=0.001)
    as_the_book_says = (2.0, epsilon_of_rho(2 * 0.5, 1e-6))
    for total in as_the_book_says:
        assert exact_delta([1.0, 1.0], total) <= 1e-12
        assert exact.get_delta_for_epsilon(total) <= 1e-12


def test_what_a_run_of_a_whole_table_satisfies_is_what_the_ledger_says():
    ledger = dag_posterior(DATA, epsilon=1.0, rng=default_rng(0)).ledger
    assert ledger.whole == "the whole run is (1, 0)-private and 0.5-zCDP"
    assert [type(event) for event in ledger.events] == [PureEvent]


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("order", [1.1, 2.0, 22.0, 300.0])
def test_the_divergence_of_a_pure_run_is_that_of_randomised_response(epsilon, order):
    right = -math.log1p(math.exp(-epsilon))
    wrong = right - epsilon
    moment = np.logaddexp(order * right + (1 - order) * wrong, order * wrong + (1 - order) * right)
    exact = moment / (order - 1)
    ours = pure_divergence(order, epsilon)
    assert ours >= exact * (1 - 1e-9) - 1e-13
    assert ours <= max(exact * (1 + 1e-9) + 1e-12, order * epsilon**2 / 2)
    assert ours <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 1e-4)])
def test_divergences_have_room_for_many_runs_and_stay_within_the_budget(tmp_path, epsilon, delta):
    account = open_account(tmp_path / "a.json", epsilon=epsilon, delta=delta, composition="renyi")
    times, part, promised = 0, epsilon / 10, Budget(epsilon / 10, delta)
    while account.remaining.epsilon >= part:
        granted = account.reserve(epsilon=part)
        kind = (Filter, GaussianFilter, PureFilter)[times % 3](promised)
        try:
            account.redeem(
                granted["epsilon"].entry,
                promised,
                system="x",
                domain="",
                divergence=kind.divergence,
            )
        except ValueError:
            break
        times += 1
    assert times > 10
    order = renyi_order(account.budget)
    in_all = sum(run.divergence for run in account.runs)
    assert in_all <= renyi_limit(order, account.budget)
    # the same runs, each at its worst: Gaussian noise of the filters' rho, randomised response
    gaussian = sum((Filter, GaussianFilter)[i % 3](promised).rho for i in range(times) if i % 3 < 2)
    assert worst_delta(gaussian, part, times // 3, epsilon) <= delta


def worst_delta(rho, part, responses, total):
    """Delta at a total epsilon of one Gaussian mechanism and some randomised responses."""
    chance = 1 / (1 + math.exp(-part))
    delta = 0.0
    for right in range(responses + 1):
        weight = math.comb(responses, right) * chance**right * (1 - chance) ** (responses - right)
        left = total - part * (2 * right - responses)
        delta += weight * gaussian_delta(1 / math.sqrt(2 * rho), left)
    return delta


def test_a_whole_zcdp_run_takes_all_of_the_divergence(path):
    account = open_account(path, epsilon=1.0, delta=1e-6, composition="renyi")
    granted = account.reserve(epsilon=1.0)
    assert granted["delta"] == 1e-6
    with refused("left, and 0.01 at 1e-06 was asked for", BudgetSpent):
        account.reserve(epsilon=0.01)
    priv_pc(DATA, rng=default_rng(0), **granted)


def test_what_is_left_of_the_divergence_can_be_asked_for(path):
    account = open_account(path, epsilon=1.0, delta=1e-6, composition="renyi")
    account.reserve(epsilon=0.7)
    account.reserve(**account.remaining._asdict())
    assert account.remaining.epsilon < 1e-3


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (partial(table_pc, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
        (partial(dag_posterior, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
        (partial(private_anm, PAIR, score=Iqr()), "may have inf"),
    ],
    ids=["Gaussian", "pure", "no divergence"],
)
def test_a_run_that_costs_more_than_a_zcdp_filter_is_charged_for_it_or_refused(path, run, message):
    account = open_account(path, epsilon=1.0, delta=1e-6, composition="renyi")
    granted = account.reserve(epsilon=1.0)
    with refused(message) as caught:
        run(rng=default_rng(0), **granted)
    assert "\n" not in str(caught.value)
    assert account.runs[0].system == ""
    priv_pc(DATA, rng=default_rng(0), **granted)  # it is still good for what it was reserved for


def test_an_account_keeps_the_way_its_runs_add_up(account, path):
    with refused("was made for composition = basic, not 'renyi'"):
        open_account(path, composition="renyi")
    with refused("composition must be one of"):
        open_account(path.with_name("b.json"), epsilon=1.0, delta=1e-6, composition="rho")
    other = open_account(path.with_name("c.json"), epsilon=1.0, delta=1e-6, composition="renyi")
    assert open_account(other.path) == other
    with refused("too large or too small"):
        open_account(path.with_name("d.json"), epsilon=1e200, delta=0.5, composition="renyi")


# --- delta


CLAIMED = [published_priv_pc, published_svt_pc, published_em_pc, published_curate_pc]
EVERY = [
    *((system, DATA) for system in (*CLAIMED, svt_pc, em_pc, curate_pc, gram_notears)),
    (published_noleaks, DATA),
    *SYSTEMS,
]
with_every_system = pytest.mark.parametrize(
    ("system", "data"), EVERY, ids=[system.__name__ for system, _ in EVERY]
)


def test_every_system_that_takes_a_delta_is_here():
    public = [getattr(dpcgd, name) for name in dpcgd.__all__]
    functions = [value for value in public if inspect.isfunction(value)]
    private = {f for f in functions if "secure" in inspect.signature(f).parameters}
    assert private <= {system for system, _ in EVERY}


@with_every_system
def test_a_delta_of_one_over_n_is_refused_before_anything_is_spent(
    account, system, data, monkeypatch
):
    for kind in (Filter, BasicFilter, Odometer):
        monkeypatch.setattr(kind, "spend", lambda *_: pytest.fail("spent"))
    for delta in (1 / data.n, 0.5):
        with refused("not below 1/n = .*allow_delta=True") as caught:
            system(data, epsilon=1.0, delta=delta, rng=default_rng(0))
        assert "\n" not in str(caught.value)
    with refused("allow_delta must be True or False"):
        system(data, epsilon=1.0, delta=0.5, allow_delta="yes", rng=default_rng(0))
    with refused("delta must be below 1"):
        system(data, epsilon=1.0, delta=1.0, allow_delta=True, rng=default_rng(0))


@with_every_system
def test_a_large_delta_that_is_allowed_runs_without_a_word_about_it(system, data, recwarn):
    release = system(data, epsilon=1.0, delta=0.1, allow_delta=True, rng=default_rng(0))
    assert (release.ledger.budget or release.ledger.spent).delta == 0.1 or system in CLAIMED
    assert not any("delta" in str(warning.message) for warning in recwarn)


def test_a_delta_is_a_millionth_up_to_a_hundred_thousand_records_and_a_tenth_of_one_over_n_then():
    for n, delta in ((1, 1e-6), (50, 1e-6), (100_000, 1e-6), (1_000_000, 1e-7), (10**9, 1e-10)):
        assert plan({"a": [0, 1], "b": [0, 1]}, max(n, 5000), epsilon=1.0).budget.delta == (
            delta if n >= 5000 else 1e-6
        )
        assert delta_for(n) == pytest.approx(delta, rel=1e-12)
    assert delta_for(100_000) == 1e-6
    assert delta_for(100_001) < 1e-6


def test_a_million_records_have_the_smaller_delta_on_their_receipt(tmp_path):
    data = load("cancer", n=1_000_000, rng=default_rng(0))
    with refused("delta = 1e-06 is not below 1/n = 1e-06"):
        dag_posterior(data, epsilon=1.0, delta=1e-6, rng=default_rng(0))
    release = laplace_pc(data, epsilon=1.0, rng=default_rng(0), max_order=0)
    assert release.ledger.budget == Budget(1.0, 1e-7)
    release.save(tmp_path / "receipt.json")
    assert '"delta": 1e-07' in (tmp_path / "receipt.json").read_text()


def test_plans_and_rehearsals_follow_the_same_rule():
    levels = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    for call in (
        partial(plan, levels, 1000, epsilon=1.0),
        partial(epsilon_for, levels, 1000, points=50),
        partial(rehearse, levels, 1000, epsilon=5.0, rng=default_rng(0), runs=1),
    ):
        with refused("not below 1/n"):
            call(delta=0.001)
        call(delta=0.001, allow_delta=True)
    public = Dataset(np.tile([[0, 1, 0], [1, 0, 0]], (600_000, 1)), levels)
    rehearse(levels, 1000, epsilon=5.0, rng=default_rng(0), runs=1, public=public)


def test_the_promise_is_the_budget_that_was_asked_for(account):
    """A part of it is kept for rounding, of more than half a million records."""
    facts = replace(DATA, codes=np.broadcast_to(DATA.codes[:1], (1, DATA.d)))
    data = Many(facts.codes, facts.levels)
    run = open_run(data, epsilon=1.0, delta=None, rng=default_rng(0))
    assert run.account.ledger.budget == Budget(1.0, 1e-11)
    assert run.account.rho < Filter(Budget(1.0, 1e-11)).rho
    granted = account.reserve(epsilon=0.5, delta=1e-11)
    run = open_run(data, rng=default_rng(0), **granted)
    run.account.spend(PureEvent("x", 1e-6))
    assert account.runs[0].system


class Many(Dataset):
    n = 10**10


class Bare(Iqr):
    """A score of somebody's own, whose sensitivity nobody has proved."""


def test_what_protects_a_part_or_is_not_proved_is_not_paid_for(tmp_path):
    account = open_account(tmp_path / "study.json", epsilon=3.0, delta=1e-6)
    pair = synthetic_pair(200, rng=default_rng(0))
    with pytest.raises(ValueError, match="protects everyone"):
        private_anm(pair, protects="test set", rng=default_rng(1), **account.reserve(epsilon=1.0))
    with pytest.raises(ValueError, match="claimed"):
        private_anm(pair, score=Bare(), rng=default_rng(1), **account.reserve(epsilon=1.0))
    assert private_anm(pair, epsilon=1.0, score=Bare(), rng=default_rng(1)).guarantee != "proved"


def test_a_claimed_run_does_not_say_what_it_satisfies():
    data = load("cancer", n=1000, rng=default_rng(0))
    claimed = priv_pc(data, epsilon=1.0, statistic=PublishedKendallP(), rng=default_rng(1))
    proved = priv_pc(data, epsilon=1.0, rng=default_rng(1))
    assert claimed.guarantee == "claimed, not proved"
    assert "zCDP" in proved.ledger.whole
    assert not claimed.ledger.whole


def test_a_lock_that_was_taken_away_lets_nobody_write(tmp_path, monkeypatch):
    """Somebody deletes the lock of a run that lives, and another run reserves meanwhile."""
    path, other = tmp_path / "study.json", tmp_path / "study.json.lock"
    account = open_account(path, epsilon=1.0, delta=1e-6)
    read = account_file.read_sealed

    def interrupted(*args):
        monkeypatch.setattr(account_file, "read_sealed", read)
        content = read(*args)
        other.unlink()
        open_account(path).reserve(epsilon=0.7)
        other.write_text("another run's")
        return content

    monkeypatch.setattr(account_file, "read_sealed", interrupted)
    with pytest.raises(ValueError, match="taken away"):
        account.reserve(epsilon=0.7)
    assert other.read_text() == "another run's"
    assert [run.epsilon for run in account.runs] == [0.7]
