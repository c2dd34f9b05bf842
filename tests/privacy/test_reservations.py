"""A reservation pays for one run, an account has one file, and runs add up as the book says."""

import contextlib
import inspect
import math
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from dpcgd_book.systems.as_published import (
    PublishedKendallP,
    published_curate_pc,
    published_em_pc,
    published_noleaks,
    published_priv_pc,
    published_svt_pc,
)
from numpy.random import default_rng
from scipy import stats

import dpcgd
from dpcgd import Budget, BudgetSpent, dag_posterior, laplace_pc, load, open_account, plan, priv_pc
from dpcgd.datasets.counts import Counts
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.dependence_scores import Iqr
from dpcgd.privacy import account_file
from dpcgd.privacy.budget import delta_for
from dpcgd.privacy.conversions import gaussian_delta, pure_divergence, renyi_limit, renyi_order
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import BasicFilter, Filter, GaussianFilter, Odometer, PureFilter
from dpcgd.privacy.run import open_run
from dpcgd.privacy.sealed_file import write_sealed

DATA = load("survey", n=2000, rng=default_rng(0))
PAIR = synthetic_pair(200, rng=default_rng(0))


def of_each(systems):
    names = [system.__name__ for system, _ in systems]
    return pytest.mark.parametrize(("system", "data"), systems, ids=names)


NAMES = "priv_pc laplace_pc table_pc graph_from_moments private_graph dag_posterior noleaks"
SYSTEMS = [
    *((getattr(dpcgd, name), DATA) for name in NAMES.split()),
    *((system, PAIR) for system in (dpcgd.private_anm, dpcgd.histogram_anm)),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.json"


@pytest.fixture
def account(path):
    return open_account(path, epsilon=1.0, delta=1e-6)


@contextlib.contextmanager
def refused(message, kind=ValueError):
    """A refusal in one line."""
    with pytest.raises(kind, match=message) as caught:
        yield
    assert "\n" not in str(caught.value)


# --- one file


@pytest.mark.parametrize("name", ["link.json", "there/study.json"])
def test_links_lead_to_one_account(account, path, name, monkeypatch):
    path.with_name("link.json").symlink_to(path)
    path.with_name("there").symlink_to(path.parent, target_is_directory=True)
    linked = open_account(path.parent / name)
    assert linked == account
    linked.reserve(epsilon=0.6)
    for other in (account, open_account(path)):
        with refused("epsilon = 0.4 at", BudgetSpent):
            other.reserve(epsilon=0.6)
    assert path.with_name("link.json").is_symlink()
    path.with_name("study.json.lock").touch()
    monkeypatch.setattr(account_file, "LONGEST_WAIT", 0.05)
    with refused("in use by another run"):
        linked.reserve(epsilon=0.1)


def test_a_link_to_an_account_yet_to_be_made_makes_it_there(path):
    link = path.with_name("link.json")
    link.symlink_to(path)
    open_account(link, epsilon=1.0, delta=1e-6)
    assert path.exists()
    assert link.is_symlink()


def test_a_file_of_two_names_is_refused(account, path):
    granted, other = account.reserve(epsilon=0.6), path.with_name("other.json")
    os.link(path, other)
    opened = (partial(open_account, name) for name in (path, other))
    run = partial(priv_pc, DATA, rng=default_rng(0), **granted)
    for use in (*opened, partial(account.reserve, epsilon=0.1), run):
        with refused("one file under two names"):
            use()
    other.unlink()
    assert len(account.runs) == 1
    run()


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
    monkeypatch.chdir(tmp_path)
    account = open_account("study.json", epsilon=1.0, delta=1e-6)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir("other")
    other = open_account("study.json", epsilon=1.0, delta=1e-6)
    account.reserve(epsilon=0.6)
    assert (len(account.runs), len(other.runs)) == (1, 0)


# --- one run


@of_each(SYSTEMS)
def test_a_reservation_pays_once(account, system, data):
    granted = account.reserve(epsilon=0.4)
    release = system(data, rng=default_rng(0), **granted)
    with refused("already; reserve again"):
        system(data, rng=default_rng(1), **granted)
    (run,) = account.runs
    assert (run.epsilon, run.delta, run.entry) == (0.4, 4e-7, release.terms.account_entry)
    assert (run.system, run.domain) == (release.terms.system, release.terms.digest)
    assert len(run.entry) >= 32


def test_another_system_cannot_use_it_either_nor_a_copy_of_it(account, path):
    granted = account.reserve(epsilon=0.4)
    copies = [granted, dict(granted), pickle.loads(pickle.dumps(granted))]
    dpcgd.table_pc(DATA, rng=default_rng(0), **copies[-1])
    for copy in copies:
        for system in (dag_posterior, priv_pc):
            with refused("used by table_pc already"):
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
    assert sum("already" in text for text in said) == 1


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
            dpcgd.table_pc(data, rng=default_rng(0), **granted, **bad)
    dpcgd.table_pc(DATA, rng=default_rng(0), **granted)


def test_plans_and_rehearsals_leave_a_reservation(account):
    granted = account.reserve(epsilon=0.4)
    plan(DATA.levels, 2000, **granted)
    dpcgd.rehearse(DATA.levels, 2000, rng=default_rng(0), runs=2, **granted)
    dpcgd.table_pc(DATA, rng=default_rng(0), **granted)


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
    release = dpcgd.table_pc(DATA, rng=default_rng(0), **account.reserve(epsilon=0.4))
    release.save(tmp_path / "receipt.json")
    again = dpcgd.read_release(tmp_path / "receipt.json")
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
    with refused("epsilon = 0.4 at", BudgetSpent):
        account.reserve(epsilon=0.6)
    assert path.read_bytes() == after


# --- how runs add up


@pytest.mark.parametrize("kind", [Filter, GaussianFilter, PureFilter])
def test_all_rows_of_a_person_count_in_an_account(kind):
    one, five = (kind(Budget(0.5, 1e-6, rows)) for rows in (1, 5))
    assert five.divergence(20.0) == pytest.approx(one.divergence(20.0), rel=1e-8)


@pytest.mark.parametrize("rho", [*np.geomspace(1e-8, 1e3, 40), 0.024352, 1.0])
def test_a_rho_is_never_printed_smaller_than_it_is(rho):
    epsilon = math.sqrt(2 * rho)
    text = PureFilter(Budget(epsilon, 1e-6)).whole.split(" and ")[-1].removesuffix("-zCDP")
    assert epsilon**2 / 2 <= float(text) <= epsilon**2 / 2 * 1.0011


def test_a_pure_filter_takes_no_delta_and_no_more_than_its_epsilon():
    account = PureFilter(Budget(1.0, 1e-6))
    with pytest.raises(BudgetSpent):
        account.spend(ApproximateEvent("tested release", 0.1, 1e-9))
    with pytest.raises(TypeError):
        account.spend(GaussianEvent("Gaussian", 5.0))
    account.spend(PureEvent("a", 0.5))
    with pytest.raises(BudgetSpent):
        account.spend(PureEvent("b", 0.6))


def test_pairs_are_pure_except_with_the_score_that_spends_delta():
    for score, says in ((None, "(1, 0)-private"), (Iqr(), "(1, 1e-06)-private")):
        release = dpcgd.private_anm(PAIR, epsilon=1.0, rng=default_rng(0), score=score)
        assert says in release.ledger.whole


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
        entry, run = granted["epsilon"].entry, {"system": "x", "domain": ""}
        try:
            account.redeem(entry, promised, **run, divergence=kind.divergence)
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
    right = np.arange(responses + 1)
    weights = stats.binom.pmf(right, responses, 1 / (1 + math.exp(-part)))
    left = total - part * (2 * right - responses)
    deltas = [gaussian_delta(1 / math.sqrt(2 * rho), epsilon) for epsilon in left.tolist()]
    return weights @ deltas


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
        (partial(dpcgd.table_pc, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
        (partial(dag_posterior, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
        (partial(dpcgd.private_anm, PAIR, score=Iqr()), "may have inf"),
    ],
    ids=["Gaussian", "pure", "no divergence"],
)
def test_a_run_that_costs_more_than_a_zcdp_filter_is_charged_for_it_or_refused(path, run, message):
    account = open_account(path, epsilon=1.0, delta=1e-6, composition="renyi")
    granted = account.reserve(epsilon=1.0)
    with refused(message):
        run(rng=default_rng(0), **granted)
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
SEARCHES = (dpcgd.svt_pc, dpcgd.em_pc, dpcgd.curate_pc, dpcgd.gram_notears)
EVERY = [*((system, DATA) for system in (*CLAIMED, *SEARCHES, published_noleaks)), *SYSTEMS]


def test_every_system_that_takes_a_delta_is_here():
    public = [getattr(dpcgd, name) for name in dpcgd.__all__]
    functions = [value for value in public if inspect.isfunction(value)]
    private = {f for f in functions if "secure" in inspect.signature(f).parameters}
    assert private <= {system for system, _ in EVERY}


@of_each(EVERY)
def test_a_delta_of_one_over_n_is_refused_before_anything_is_spent(
    account, system, data, monkeypatch
):
    for kind in (Filter, BasicFilter, Odometer):
        monkeypatch.setattr(kind, "spend", lambda *_: pytest.fail("spent"))
    for delta in (1 / data.n, 0.5):
        with refused("not below 1/n = .*allow_delta=True"):
            system(data, epsilon=1.0, delta=delta, rng=default_rng(0))
    with refused("allow_delta must be True or False"):
        system(data, epsilon=1.0, delta=0.5, allow_delta="yes", rng=default_rng(0))
    with refused("delta must be below 1"):
        system(data, epsilon=1.0, delta=1.0, allow_delta=True, rng=default_rng(0))


@of_each(EVERY)
def test_a_large_delta_that_is_allowed_runs_without_a_word_about_it(system, data, recwarn):
    release = system(data, epsilon=1.0, delta=0.1, allow_delta=True, rng=default_rng(0))
    assert (release.ledger.budget or release.ledger.spent).delta == 0.1 or system in CLAIMED
    assert not any("delta" in str(warning.message) for warning in recwarn)


@pytest.mark.parametrize(
    ("n", "delta"),
    [(1, 1e-6), (100_000, 1e-6), (100_001, 1 / 1_000_010), (1_000_000, 1e-7), (10**9, 1e-10)],
)
def test_a_delta_that_nobody_names_falls_with_the_number_of_records(n, delta):
    assert delta_for(n) == pytest.approx(delta, rel=1e-12)
    levels = {"a": [0, 1], "b": [0, 1]}
    assert n < 5000 or plan(levels, n, epsilon=1.0).budget.delta == delta_for(n)


def test_plans_and_rehearsals_follow_the_same_rule():
    levels = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    for call in (
        partial(plan, levels, 1000, epsilon=1.0),
        partial(dpcgd.epsilon_for, levels, 1000, points=50),
        partial(dpcgd.rehearse, levels, 1000, epsilon=5.0, rng=default_rng(0), runs=1),
    ):
        with refused("not below 1/n"):
            call(delta=0.001)
        call(delta=0.001, allow_delta=True)
    public = Dataset(np.tile([[0, 1, 0], [1, 0, 0]], (600_000, 1)), levels)
    dpcgd.rehearse(levels, 1000, epsilon=5.0, rng=default_rng(0), runs=1, public=public)


def test_a_part_that_is_kept_for_rounding_is_no_part_of_the_promise(account):
    data = Many(DATA.codes[:1], DATA.levels)
    run = open_run(data, rng=default_rng(0), **account.reserve(epsilon=0.5, delta=1e-11))
    run.account.spend(PureEvent("x", 1e-6))
    assert run.account.rho < Filter(Budget(0.5, 1e-11)).rho
    assert account.runs[0].system


class Many(Dataset):
    n = 10**10


class Bare(Iqr):
    """A score of somebody's own, whose sensitivity nobody has proved."""


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (partial(dpcgd.private_anm, PAIR, protects="test set"), "protects everyone"),
        (partial(dpcgd.private_anm, PAIR, score=Bare()), "claimed"),
        (partial(priv_pc, DATA, statistic=PublishedKendallP()), "claimed"),
    ],
    ids=["a part", "a score", "a statistic"],
)
def test_what_protects_a_part_or_is_not_proved_is_not_paid_for(account, run, message):
    granted = account.reserve(epsilon=0.4)
    with refused(message):
        run(rng=default_rng(0), **granted)
    assert account.runs[0].system == ""
    assert run(epsilon=1.0, rng=default_rng(1)).guarantee == "proved" or message == "claimed"


def test_a_statistic_without_a_proof_makes_a_claimed_run_that_says_no_rho():
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
