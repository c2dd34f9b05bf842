"""One budget for several runs, in a file that no crash and no other run gets around.

A reservation pays for one run, an account has one file, and runs add up as the book says.
"""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from dpcgd_book.systems.as_published import PublishedKendallP
from hypothesis import given, settings, strategies as st
from numpy.random import default_rng
from people import refused
from scipy import stats

import dpcgd
from dpcgd import Budget, BudgetSpent, Counts, dag_posterior, load, open_account, priv_pc, table_pc
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.dependence_scores import Iqr
from dpcgd.pairwise.kernel_ridge import Ridge
from dpcgd.privacy import account_file
from dpcgd.privacy.account_file import Reservation
from dpcgd.privacy.budget import ROOM, Spent
from dpcgd.privacy.conversions import gaussian_delta, pure_divergence, renyi_limit, renyi_order
from dpcgd.privacy.events import ApproximateEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import Filter, GaussianFilter, PureFilter
from dpcgd.privacy.run import open_run
from dpcgd.privacy.sealed_file import digest_of, read_sealed, sealed, write_whole

DATA = load("survey", n=2000, rng=default_rng(0))
PAIR = synthetic_pair(200, rng=default_rng(0))
WHOLE = {"epsilon": 1.0, "delta": 1e-6}
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
    return open_account(path, **WHOLE)


@pytest.fixture
def renyi(path):
    return open_account(path, **WHOLE, composition="renyi")


def run_of(system, granted, data=DATA, seed=0, **more):
    return system(data, rng=default_rng(seed), **granted, **more)


# --- parts of a whole


def test_a_run_gets_what_it_asked_for_and_the_account_keeps_the_rest(account):
    release = run_of(table_pc, account.reserve(epsilon=0.3, label="tables"))
    assert release.ledger.budget == Budget(0.3, 3e-7)
    run_of(priv_pc, account.reserve(epsilon=0.5, delta=1e-7))
    cure = "study.json has epsilon = 0.2 at .* 0.3 at"
    refused(cure, account.reserve, kind=BudgetSpent, epsilon=0.3)
    assert account.runs == (Reservation(0.3, 3e-7, "tables"), Reservation(0.5, 1e-7))
    assert account.remaining == pytest.approx(Spent(0.2, 6e-7))
    assert "tables" in str(account)


parts = st.lists(st.floats(1e-3, 1), min_size=1, max_size=30)


@settings(derandomize=True, max_examples=40)
@given(parts, st.sampled_from([1.0, 0.1, 3.0, 0.7]))
def test_what_is_granted_never_exceeds_the_whole_not_by_a_digit(tmp_path_factory, parts, whole):
    """Exactly, in fractions; and parts that come to the whole but for rounding are all granted."""
    account = open_account(tmp_path_factory.mktemp("account") / "a.json", epsilon=whole, delta=1e-6)
    asked = np.array(parts) / math.fsum(parts) * whole
    granted = [account.reserve(epsilon=part) for part in asked]
    for name, total in (("epsilon", whole), ("delta", 1e-6)):
        assert sum(Fraction(each[name]) for each in granted) <= Fraction(total)
    assert [each["epsilon"] for each in granted] == pytest.approx(asked.tolist(), rel=1e-9)
    refused("ask for less", account.reserve, kind=BudgetSpent, epsilon=whole * 1e-6)


def test_what_rounding_leaves_is_shown_as_nothing(account):
    for _ in range(3):
        account.reserve(epsilon=1 / 3)
    assert "0 and 0 of it left" in str(account)


# --- crashes, and several programs


CRASH = """
import os, signal, sys
from numpy.random import default_rng
from dpcgd import load, open_account, priv_pc
from dpcgd.privacy.filters import Filter

data = load("survey", rng=default_rng(0))
account = open_account(sys.argv[1], epsilon=1.0, delta=1e-6)
kept = Filter.spend

def spend(self, *events):
    kept(self, *events)
    os.kill(os.getpid(), signal.SIGKILL)

Filter.spend = spend
priv_pc(data, rng=default_rng(0), **account.reserve(epsilon=0.6))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_run_that_is_killed_between_spend_and_release_has_spent_its_budget(path):
    ended = subprocess.run([sys.executable, "-c", CRASH, path], env=dict(os.environ))
    assert ended.returncode == -signal.SIGKILL
    account = open_account(path)
    assert account.remaining.epsilon == pytest.approx(0.4)
    refused("ask for less", account.reserve, kind=BudgetSpent, epsilon=0.6)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_account_that_cannot_be_written_stays_and_stops_a_run(account, path, monkeypatch, step):
    granted, before = account.reserve(epsilon=0.4), path.read_bytes()
    monkeypatch.setattr(os, step, Mock(side_effect=OSError(28, "No space left on device")))
    run = open_run(DATA, rng=default_rng(0), **granted)
    cure = "cannot be written: No space left"
    refused(cure, account.reserve, epsilon=0.3)
    for _ in range(2):
        refused(cure, run.account.spend, PureEvent("Laplace", 0.01))
    refused(cure, run_of, dpcgd.laplace_pc, granted)
    assert (run.account.ledger.events, path.read_bytes()) == ((), before)
    assert sorted(path.parent.iterdir()) == [path]


def test_a_budget_is_on_the_disk_before_the_run_has_it(account, path, monkeypatch):
    steps = []

    def note(name, call, at, *more):
        steps.append((name, os.stat(at).st_size > 0))
        return call(at, *more)

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, partial(note, name, getattr(os, name)))
    account.reserve(epsilon=0.3)
    assert steps[:2] == [("fsync", True), ("replace", True)]
    assert len(steps) == 3 or os.name == "nt", "the file's name, too"
    assert json.loads(path.read_text())["runs"][0]["epsilon"] == 0.3


def test_an_account_that_another_makes_meanwhile_is_kept(path, monkeypatch):
    locked = account_file._locked

    def late(at):
        monkeypatch.setattr(account_file, "_locked", locked)
        open_account(at, **WHOLE).reserve(epsilon=0.7)
        return locked(at)

    monkeypatch.setattr(account_file, "_locked", late)
    assert len(open_account(path, **WHOLE).runs) == 1


RACE = """
import sys
from dpcgd import BudgetSpent, open_account
account = open_account(sys.argv[1])
for granted in range(400):
    try:
        account.reserve(epsilon=0.125)
    except BudgetSpent:
        break
print(granted)
"""
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


def said_by_two(program, *arguments, given=b""):
    """What two processes print that run at once."""
    command = [sys.executable, "-c", program, *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    runs = [subprocess.Popen(command, **pipes) for _ in range(2)]
    return [run.communicate(given, timeout=120)[0].decode() for run in runs]


def test_two_runs_at_once_share_one_budget(account, path):
    said = sum(map(int, said_by_two(RACE, path)))
    assert (said, len(account.runs), account.remaining.epsilon) == (8, 8, 0)


@pytest.mark.slow
def test_of_processes_that_share_a_reservation_one_runs(account):
    said = said_by_two(OTHER, given=pickle.dumps(account.reserve(epsilon=0.4)))
    assert sum(text.startswith("ran") for text in said) == 1
    assert sum("already" in text for text in said) == 1


# --- refusals


def test_what_is_no_budget_of_a_run_or_more_than_there_is_is_refused(account):
    for epsilon in (0.0, -1.0, math.nan, "1", None):
        refused("epsilon must be", account.reserve, epsilon=epsilon)
    refused("delta must be", account.reserve, epsilon=0.1, delta=0.0)
    refused("delta must be below 1", account.reserve, epsilon=0.1, delta=2)
    refused("label must be text", account.reserve, epsilon=0.1, label=3)
    refused("ask for less", account.reserve, kind=BudgetSpent, epsilon=1.1)
    refused("ask for less", account.reserve, kind=BudgetSpent, epsilon=0.1, delta=2e-6)
    assert account.runs == ()


def test_an_account_is_not_made_of_what_is_no_budget_or_in_no_place(path, monkeypatch):
    refused("there is no account .*; give epsilon and delta to make one", open_account, path)
    refused("there is no account", open_account, path, epsilon=1.0)
    refused("epsilon must be", open_account, path, epsilon=-1.0, delta=1e-6)
    refused("delta must be", open_account, path, epsilon=1.0, delta=1.0)
    refused("rows_per_person must be", open_account, path, **WHOLE, rows_per_person=0)
    refused("composition must be one of", open_account, path, **WHOLE, composition="rho")
    large = {"epsilon": 1e200, "delta": 0.5, "composition": "renyi"}
    refused("too large or too small", open_account, path, **large)
    monkeypatch.chdir(path.parent)
    for where in (None, 3, "", ".", "no/such/folder/a.json"):
        refused("give the path of a file|there is no folder", open_account, where, **WHOLE)
    assert list(path.parent.iterdir()) == []


def test_an_account_keeps_the_budget_it_was_made_for(account, path):
    others = {"epsilon": 2.0, "delta": 1e-5, "rows_per_person": 2, "composition": "renyi"}
    for name, value in others.items():
        cure = "study.json was made for .*, not .*; make another"
        refused(cure, open_account, path, **{name: value})


def edited(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


EDITS = [
    lambda content: content["runs"].clear(),
    lambda content: content["budget"].update(epsilon=9.0),
    *(lambda content, bad=bad: content["runs"][0].update(epsilon=bad) for bad in (0.1, math.nan)),
    lambda content: content.pop("sha256"),
    *(lambda content, bad=bad: content.update(bad) for bad in ({"sha256": ""}, {"more": 1})),
]


@pytest.mark.parametrize("change", EDITS)
def test_an_account_edited_by_hand_is_refused(account, path, change):
    account.reserve(epsilon=0.3)
    edited(path, change)
    before = path.read_bytes()
    refused("take the file as it was written", open_account, path)
    refused("take the file as it was written", account.reserve, epsilon=0.1)
    assert path.read_bytes() == before


TOO_LARGE = '{"format": "dpcgd account 2", "x": 1e999}'
NO_ACCOUNTS = ["", "{", "[]", "3", '{"format": "other"}', "\x00", "a,b\n1,2\n", "[" * 10**5]


@pytest.mark.parametrize("text", [*NO_ACCOUNTS, TOO_LARGE], ids=len)
def test_another_file_is_no_account(path, text):
    path.write_text(text)
    cure = "study.json is no dpcgd account 2; take the file as it was written"
    refused(cure, open_account, path, **WHOLE)
    assert path.read_text() == text


def test_a_sealed_file_of_another_shape_is_no_account(path):
    write_whole(path, sealed({"format": "dpcgd account 2", "budget": {"epsilon": 1.0}, "runs": []}))
    refused("is no dpcgd account", open_account, path)


def test_an_account_that_was_replaced_is_noticed(account, path):
    granted = account.reserve(epsilon=0.4)
    path.unlink()
    refused("there is no file", account.reserve, epsilon=0.1)
    refused("there is no file", run_of, priv_pc, granted)
    open_account(path, **WHOLE).reserve(epsilon=0.4)
    refused("no such reservation", run_of, priv_pc, granted)
    path.unlink()
    open_account(path, epsilon=5.0, delta=1e-6)
    refused("is another account by now; open it again", account.reserve, epsilon=0.1)


# --- files


def test_a_seal_holds_whatever_the_order_of_keys_and_no_key_comes_twice(path):
    write_whole(path, sealed({"format": "x", "b": [1, 2.5], "a": {"ü": None}}))
    assert read_sealed(path, "x") == {"format": "x", "b": [1, 2.5], "a": {"ü": None}}
    edited(path, lambda content: content.update(a=content.pop("a")))
    assert read_sealed(path, "x")["a"] == {"ü": None}
    assert digest_of({"a": 1}) != digest_of({"a": 2})
    path.write_text(path.read_text().replace('"b"', '"b": [], "b"'))
    refused("is no x", read_sealed, path, "x")


@pytest.mark.parametrize("name", ["link.json", "there/study.json"])
def test_links_lead_to_one_account(path, name):
    """Even a link to an account that is yet to be made."""
    path.with_name("link.json").symlink_to(path)
    account = open_account(path.with_name("link.json"), **WHOLE)
    assert path.exists()
    path.with_name("there").symlink_to(path.parent, target_is_directory=True)
    linked = open_account(path.parent / name)
    assert linked == account
    linked.reserve(epsilon=0.6)
    for other in (account, open_account(path)):
        refused("epsilon = 0.4 at", other.reserve, kind=BudgetSpent, epsilon=0.6)
    assert path.with_name("link.json").is_symlink()


def test_a_file_of_two_names_is_refused(account, path):
    granted, other = account.reserve(epsilon=0.6), path.with_name("other.json")
    os.link(path, other)
    for name in (path, other):
        refused("one file under two names", open_account, name)
    refused("one file under two names", account.reserve, epsilon=0.1)
    refused("one file under two names", run_of, priv_pc, granted)
    other.unlink()
    assert len(account.runs) == 1
    run_of(priv_pc, granted)
    path.rename(other)
    path.symlink_to(other)
    refused("one file under two names", account.reserve, epsilon=0.1)
    assert path.is_symlink()


def test_links_in_a_circle_are_no_account(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    refused(r"a.json", open_account, tmp_path / "a.json", **WHOLE)


def test_a_relative_path_is_that_of_the_folder_where_the_account_was_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = open_account("study.json", **WHOLE)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir("other")
    other = open_account("study.json", **WHOLE)
    account.reserve(epsilon=0.6)
    assert (len(account.runs), len(other.runs)) == (1, 0)


# --- the lock


def test_a_file_in_use_by_another_run_is_left_alone(account, path, monkeypatch):
    monkeypatch.setattr(account_file, "LONGEST_WAIT", 0.1)
    lock = path.with_name("study.json.lock")
    lock.touch()
    path.with_name("link.json").symlink_to(path)
    for opened in (account, open_account(path.with_name("link.json"))):
        cure = "in use by another run, and was for 0.1 seconds; .* delete .*lock"
        refused(cure, opened.reserve, epsilon=0.1)
    lock.unlink()
    assert account.runs == ()
    account.reserve(epsilon=0.1)
    assert not lock.exists()


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
    refused("epsilon = 0.4 at", account.reserve, kind=BudgetSpent, epsilon=0.6)
    assert path.read_bytes() == after


def test_a_lock_that_was_taken_away_lets_nobody_write(account, path, monkeypatch):
    """Somebody deletes the lock of a run that lives, and another run reserves meanwhile."""
    lock, read = path.with_name("study.json.lock"), account_file.read_sealed

    def interrupted(*args):
        monkeypatch.setattr(account_file, "read_sealed", read)
        content = read(*args)
        lock.unlink()
        open_account(path).reserve(epsilon=0.7)
        lock.write_text("another run's")
        return content

    monkeypatch.setattr(account_file, "read_sealed", interrupted)
    refused("taken away", account.reserve, epsilon=0.7)
    assert (lock.read_text(), account.runs) == ("another run's", (Reservation(0.7, 7e-7),))


# --- one run


@pytest.mark.parametrize(("system", "data"), SYSTEMS)
def test_a_reservation_pays_once(account, path, system, data):
    granted = account.reserve(epsilon=0.4)
    release = run_of(system, granted, data)
    for copy in (granted, dict(granted), pickle.loads(pickle.dumps(granted))):
        for other, its_data in ((system, data), (dag_posterior, DATA)):
            cure = f"used by {release.terms.system} already; reserve again"
            refused(cure, run_of, other, copy, its_data, seed=1)
    (run,), terms = open_account(path).runs, release.terms
    assert (run.epsilon, run.delta, run.entry) == (0.4, 4e-7, terms.account_entry)
    assert (run.system, run.domain) == (terms.system, terms.digest)
    assert len(run.entry) >= 32


def test_a_reservation_is_for_what_was_reserved(path):
    granted = open_account(path, epsilon=1.0, delta=1e-5, rows_per_person=3).reserve(epsilon=0.4)
    for other in ({"delta": 1e-7}, {"delta": None}, {"rows_per_person": 2}, {"rows_per_person": 1}):
        refused("hand on the whole reservation", run_of, priv_pc, granted | other)
    run_of(priv_pc, granted)


@pytest.mark.slow
def test_refusals_by_public_facts_plans_and_rehearsals_leave_a_reservation(account):
    granted = account.reserve(epsilon=0.4)
    few = replace(DATA, codes=DATA.codes[:4])
    for data, bad in ((DATA, {"max_order": 9}), (DATA, {"alpha": 2}), (few, {})):
        refused(r"max_order|alpha|records", run_of, table_pc, granted, data, **bad)
    dpcgd.plan(DATA.levels, 2000, **granted)
    dpcgd.rehearse(DATA.levels, 2000, rng=default_rng(0), runs=2, **granted)
    run_of(table_pc, granted)


def test_the_file_says_who_runs_before_a_record_is_looked_at(account):
    granted, seen = account.reserve(epsilon=0.4), []

    class Watched(Counts):
        n, levels = DATA.n, DATA.levels

        def counts(self, variables):
            seen.extend(run.system for run in account.runs)
            return DATA.counts(variables)

    run_of(dag_posterior, granted, Watched())
    assert set(seen) == {"dag_posterior"}


class Bare(Iqr):
    """A score of somebody's own, whose sensitivity nobody has proved."""


NOT_PAID = [
    (partial(dpcgd.private_anm, PAIR, protects="test set"), "protects everyone"),
    (partial(dpcgd.private_anm, PAIR, score=Bare()), "claimed"),
    (partial(dpcgd.private_anm, PAIR, ridge=type("Own", (Ridge,), {})()), "claimed"),
    (partial(priv_pc, DATA, statistic=PublishedKendallP()), "claimed"),
]


@pytest.mark.parametrize(
    ("run", "message"), NOT_PAID, ids=["a part", "a score", "a ridge", "a statistic"]
)
def test_what_protects_a_part_or_is_not_proved_is_not_paid_for(account, run, message):
    refused(message, run, rng=default_rng(0), **account.reserve(epsilon=0.4))
    assert account.runs[0].system == ""
    release = run(epsilon=1.0, rng=default_rng(1))
    assert release.guarantee == ("claimed, not proved" if message == "claimed" else "proved")
    assert bool(release.ledger.whole) == (message != "claimed")


# --- what a run satisfies, and how runs add up


@pytest.mark.parametrize("kind", [Filter, GaussianFilter, PureFilter])
def test_all_rows_of_a_person_count_in_an_account(kind):
    one, five = (kind(Budget(0.5, 1e-6, rows)) for rows in (1, 5))
    assert five.divergence(20.0) == pytest.approx(one.divergence(20.0), rel=1e-8)


def test_a_filter_with_a_reserved_delta_keeps_to_no_divergence():
    assert Filter(Budget(1.0, 1e-6), reserved=1e-7).divergence(2.0) == math.inf


def test_divergences_leave_room_for_rounding(renyi):
    (left,) = renyi._left(())
    assert left < renyi_limit(renyi.order, renyi.budget) * (1 - 0.4 * ROOM)


@pytest.mark.parametrize("rho", [*np.geomspace(1e-8, 1e3, 40), 0.024352, 1.0])
def test_a_rho_is_never_printed_smaller_than_it_is(rho):
    epsilon = math.sqrt(2 * rho)
    text = PureFilter(Budget(epsilon, 1e-6)).ledger.whole.split(" and ")[-1].removesuffix("-zCDP")
    assert epsilon**2 / 2 <= float(text) <= epsilon**2 / 2 * 1.0011


def test_a_pure_filter_takes_no_delta_and_no_more_than_its_epsilon():
    account = PureFilter(Budget(1.0, 1e-6))
    approximate = ApproximateEvent("tested release", 0.1, 1e-9)
    refused("would exceed", account.spend, approximate, kind=BudgetSpent)
    refused("Gaussian", account.spend, GaussianEvent("Gaussian", 5.0), kind=TypeError)
    account.spend(PureEvent("a", 0.5))
    refused("would exceed", account.spend, PureEvent("b", 0.6), kind=BudgetSpent)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("order", [1.1, 2.0, 22.0, 300.0])
def test_the_divergence_of_a_pure_run_is_that_of_randomised_response(epsilon, order):
    right = -math.log1p(math.exp(-epsilon))
    wrong = right - epsilon
    moment = np.logaddexp(order * right + (1 - order) * wrong, order * wrong + (1 - order) * right)
    exact = moment / (order - 1)
    most = min(epsilon, max(exact * (1 + 1e-9) + 1e-12, order * epsilon**2 / 2))
    assert exact * (1 - 1e-9) - 1e-13 <= pure_divergence(order, epsilon) <= most


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (5.0, 1e-4)])
def test_divergences_have_room_for_many_runs_and_stay_within_the_budget(path, epsilon, delta):
    account = open_account(path, epsilon=epsilon, delta=delta, composition="renyi")
    assert open_account(path) == account
    times, part, promised = 0, epsilon / 10, Budget(epsilon / 10, delta)
    while account.remaining.epsilon >= part:
        granted = account.reserve(epsilon=part)
        kind = (Filter, GaussianFilter, PureFilter)[times % 3](promised)
        run = {"system": "x", "domain": ""}
        try:
            account.redeem(granted["epsilon"], promised, **run, divergence=kind.divergence)
        except ValueError:
            break
        times += 1
    assert times > 10
    in_all = sum(run.divergence for run in account.runs)
    assert in_all <= renyi_limit(renyi_order(account.budget), account.budget)
    # the same runs, each at its worst: Gaussian noise of the filters' rho, randomised response
    gaussian = sum((Filter, GaussianFilter)[i % 3](promised).rho for i in range(times) if i % 3 < 2)
    assert worst_delta(gaussian, part, times // 3, epsilon) <= delta


def worst_delta(rho, part, responses, total):
    """Delta at a total epsilon of one Gaussian mechanism and some randomised responses."""
    right = np.arange(responses + 1)
    weights = stats.binom.pmf(right, responses, 1 / (1 + math.exp(-part)))
    left = total - part * (2 * right - responses)
    return weights @ [gaussian_delta(1 / math.sqrt(2 * rho), epsilon) for epsilon in left.tolist()]


def test_what_is_left_of_the_divergence_can_be_asked_for(renyi):
    renyi.reserve(epsilon=0.7)
    renyi.reserve(**renyi.remaining._asdict())
    assert renyi.remaining.epsilon < 1e-3
    refused("left, and 0.01 at 1e-06 was asked for", renyi.reserve, kind=BudgetSpent, epsilon=0.01)


TOO_DEAR = [
    (partial(table_pc, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
    (partial(dag_posterior, DATA), "more than a zCDP filter; reserve a smaller epsilon"),
    (partial(dpcgd.private_anm, PAIR, score=Iqr()), "may have inf"),
]


@pytest.mark.parametrize(("run", "message"), TOO_DEAR, ids=["Gaussian", "pure", "no divergence"])
def test_a_run_that_costs_more_than_a_zcdp_filter_is_charged_for_it_or_refused(renyi, run, message):
    granted = renyi.reserve(epsilon=1.0)
    assert granted["delta"] == 1e-6
    refused(message, run, rng=default_rng(0), **granted)
    assert renyi.runs[0].system == ""
    run_of(priv_pc, granted)  # it is still good for what it was reserved for


class Many(Dataset):
    n = 10**10


def test_a_part_that_is_kept_for_rounding_is_no_part_of_the_promise(account):
    data = Many(DATA.codes[:1], DATA.levels)
    run = open_run(data, rng=default_rng(0), **account.reserve(epsilon=0.5, delta=1e-11))
    run.account.spend(PureEvent("x", 1e-6))
    assert run.account.rho < Filter(Budget(0.5, 1e-11)).rho
    assert account.runs[0].system
