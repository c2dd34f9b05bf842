"""One budget for several runs, in a file that no crash and no other run gets around."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from dpcgd import Budget, BudgetSpent, load, open_account, priv_pc, table_pc
from dpcgd.privacy import account_file, sealed_file
from dpcgd.privacy.account_file import Reservation
from dpcgd.privacy.budget import Spent
from dpcgd.privacy.sealed_file import digest_of, read_sealed, write_sealed, write_whole


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.json"


@pytest.fixture
def account(path):
    return open_account(path, epsilon=1.0, delta=1e-6)


def test_a_run_gets_what_it_asked_for_and_the_account_keeps_the_rest(account):
    data = load("survey", rng=default_rng(0))
    release = table_pc(data, rng=default_rng(1), **account.reserve(epsilon=0.3, label="tables"))
    assert release.ledger.budget == Budget(0.3, 3e-7)
    priv_pc(data, rng=default_rng(1), **account.reserve(epsilon=0.5, delta=1e-7))
    assert account.runs == (Reservation(0.3, 3e-7, "tables"), Reservation(0.5, 1e-7))
    assert account.remaining == pytest.approx(Spent(0.2, 6e-7))
    with pytest.raises(BudgetSpent, match=r"study.json has epsilon = 0.2 at .* 0.3 at"):
        account.reserve(epsilon=0.3)
    assert len(account.runs) == 2
    assert "tables" in str(account)


parts = st.lists(st.floats(1e-3, 1), min_size=1, max_size=30)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(parts, st.sampled_from([1.0, 0.1, 3.0, 0.7]))
def test_what_is_granted_never_exceeds_the_whole_not_by_a_digit(tmp_path_factory, parts, whole):
    """Exactly, in fractions; and parts that come to the whole but for rounding are all granted."""
    path = tmp_path_factory.mktemp("account") / "a.json"
    account = open_account(path, epsilon=whole, delta=1e-6)
    asked = np.array(parts) / math.fsum(parts) * whole
    granted = [account.reserve(epsilon=part) for part in asked]
    for name, total in (("epsilon", whole), ("delta", 1e-6)):
        assert sum(Fraction(each[name]) for each in granted) <= Fraction(total)
    assert [each["epsilon"] for each in granted] == pytest.approx(asked.tolist(), rel=1e-9)
    with pytest.raises(BudgetSpent):
        account.reserve(epsilon=whole * 1e-6)


def test_ten_tenths_are_a_whole_that_is_read_again_from_the_file(account, path):
    for _ in range(10):
        open_account(path).reserve(epsilon=0.1)
    again = open_account(path, epsilon=1.0, delta=1e-6, rows_per_person=1)
    assert again.budget == Budget(1.0, 1e-6)
    assert again.runs == account.runs
    for opened in (account, again):
        with pytest.raises(BudgetSpent, match="epsilon = 0 at"):
            opened.reserve(epsilon=1e-9)


# --- crashes


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
    with pytest.raises(BudgetSpent):
        account.reserve(epsilon=0.6)


def test_a_crash_while_the_account_is_written_leaves_it_as_it_was(account, path, monkeypatch):
    account.reserve(epsilon=0.3)
    before = path.read_bytes()

    def crash(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(sealed_file.os, name, crash)
            with pytest.raises(ValueError, match="cannot be written: No space left"):
                account.reserve(epsilon=0.3)
        assert path.read_bytes() == before
        assert sorted(path.parent.iterdir()) == [path]
    account.reserve(epsilon=0.3)


def test_a_budget_is_on_the_disk_before_the_run_has_it(account, path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        noted = partial(lambda name, call, *args: steps.append(name) or call(*args), name)
        monkeypatch.setattr(os, name, partial(noted, getattr(os, name)))
    account.reserve(epsilon=0.3)
    assert steps[:2] == ["fsync", "replace"]
    assert json.loads(path.read_text())["runs"][0]["epsilon"] == 0.3


RACE = """
import sys
from dpcgd import BudgetSpent, open_account
account = open_account(sys.argv[1])
granted = 0
for _ in range(400):
    try:
        account.reserve(epsilon=0.125)
        granted += 1
    except BudgetSpent:
        break
print(granted)
"""


def test_two_runs_at_once_share_one_budget(account, path):
    runs = [
        subprocess.Popen([sys.executable, "-c", RACE, path], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    granted = [int(run.communicate(timeout=120)[0]) for run in runs]
    assert sum(granted) == 8 == len(account.runs)
    assert account.remaining.epsilon == 0


# --- refusals


@contextlib.contextmanager
def refused(message, kind=ValueError):
    """A refusal in one line."""
    with pytest.raises(kind, match=message) as caught:
        yield
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        *(
            ({"epsilon": epsilon}, "epsilon must be")
            for epsilon in (0.0, -1.0, math.nan, "1", None)
        ),
        ({"epsilon": 0.1, "delta": 0.0}, "delta must be"),
        ({"epsilon": 0.1, "delta": 2}, "delta must be below 1"),
        ({"epsilon": 0.1, "label": 3}, "label must be text"),
    ],
    ids=str,
)
def test_what_is_no_budget_of_a_run_is_refused(account, bad, message):
    with refused(message):
        account.reserve(**bad)
    assert account.runs == ()


@pytest.mark.parametrize("bad", [{"epsilon": 1.1}, {"epsilon": 0.1, "delta": 2e-6}], ids=str)
def test_more_than_there_is_is_refused(account, bad):
    with refused("reserve less", BudgetSpent):
        account.reserve(**bad)
    assert account.runs == ()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "there is no account .*; give epsilon and delta to make one"),
        ({"epsilon": 1.0}, "there is no account"),
        ({"epsilon": -1.0, "delta": 1e-6}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be"),
        ({"epsilon": 1.0, "delta": 1e-6, "rows_per_person": 0}, "rows_per_person must be"),
    ],
    ids=str,
)
def test_an_account_is_not_made_of_what_is_no_budget(path, how, message):
    with refused(message):
        open_account(path, **how)
    assert list(path.parent.iterdir()) == []


def test_an_account_keeps_the_budget_it_was_made_for(account, path):
    for other in ({"epsilon": 2.0}, {"delta": 1e-5}, {"rows_per_person": 2}):
        with refused(r"study.json was made for .*, not .*; leave it out"):
            open_account(path, **other)


@pytest.mark.parametrize("where", [None, 3, "", ".", "no/such/folder/a.json"], ids=str)
def test_an_account_needs_a_place(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    with refused("give the path of a file|there is no folder"):
        open_account(where, epsilon=1.0, delta=1e-6)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_use_by_another_run_is_left_alone(account, path, monkeypatch):
    monkeypatch.setattr(account_file, "LONGEST_WAIT", 0.1)
    lock = path.with_name("study.json.lock")
    lock.touch()
    still = "study.json is in use by another run, and was for 0.1 seconds; .* delete .*lock"
    with refused(still):
        account.reserve(epsilon=0.1)
    lock.unlink()
    assert account.runs == ()
    account.reserve(epsilon=0.1)
    assert not lock.exists()


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
    for use in (lambda: open_account(path), lambda: account.reserve(epsilon=0.1)):
        with refused("take the file as it was written"):
            use()
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"format": "other"}', "\x00", "a,b\n1,2\n"])
def test_another_file_is_no_account(path, text):
    path.write_text(text)
    with refused("study.json is no dpcgd account 2; take the file as it was written"):
        open_account(path, epsilon=1.0, delta=1e-6)
    assert path.read_text() == text


def test_a_sealed_file_of_another_shape_is_no_account(path):
    write_sealed(path, {"format": "dpcgd account 1", "budget": {"epsilon": 1.0}, "runs": []})
    with refused("is no dpcgd account"):
        open_account(path)


def test_an_account_that_was_replaced_is_noticed(account, path):
    path.unlink()
    with refused("there is no file"):
        account.reserve(epsilon=0.1)
    open_account(path, epsilon=5.0, delta=1e-6)
    with refused("is another account by now; open it again"):
        account.reserve(epsilon=0.1)


# --- files


def test_a_seal_holds_whatever_the_order_of_keys(path):
    write_sealed(path, {"format": "x", "b": [1, 2.5], "a": {"ü": None}})
    assert read_sealed(path, "x") == {"format": "x", "b": [1, 2.5], "a": {"ü": None}}
    edited(path, lambda content: content.update(a=content.pop("a")))
    assert read_sealed(path, "x")["a"] == {"ü": None}
    assert digest_of({"a": 1}) != digest_of({"a": 2})


def test_a_key_that_comes_twice_is_refused(path):
    write_sealed(path, {"format": "x", "epsilon": 1.0})
    path.write_text(path.read_text().replace('"epsilon"', '"epsilon": 0.1, "epsilon"'))
    with refused("is no x"):
        read_sealed(path, "x")


def test_a_file_is_replaced_whole(path):
    write_whole(path, "one")
    write_whole(path, "two\n")
    assert path.read_bytes() == b"two\n"
    assert list(path.parent.iterdir()) == [path]


def test_what_rounding_leaves_is_shown_as_nothing(account):
    for _ in range(3):
        account.reserve(epsilon=1 / 3)
    assert "0 and 0 of it left" in str(account)
