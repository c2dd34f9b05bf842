"""One release from one account: whatever strikes it, account and receipt agree."""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from people import refused

import dpcgd
from dpcgd.datasets import progress as bars
from dpcgd.privacy import sealed_file
from dpcgd.tables import door

SCHEMA = {"smoke": ["no", "yes"], "cough": ["no", "yes"]}
N = 300
CODES = default_rng(0).integers(2, size=(N, 2))
DATA = dpcgd.Dataset(CODES, SCHEMA)
FRAME = pd.DataFrame({name: np.array(SCHEMA[name])[CODES[:, k]] for k, name in enumerate(SCHEMA)})


PAID = r"paid for release\.json already"


def once(folder, data=DATA, schema=SCHEMA, **more):
    paths = {"account": folder / "study.json", "out": folder / "release.json"}
    asked = {"epsilon": 1.0, "rng": default_rng(1), **paths, **more}
    return dpcgd.release_once(data, schema, **asked)


def entries(folder):
    return dpcgd.open_account(folder / "study.json").runs


def spent_and_kept(folder):
    """Entries of runs that may have drawn noise, and the entry of the receipt."""
    account, receipt = folder / "study.json", folder / "release.json"
    spent = [run.entry for run in entries(folder)] if account.exists() else []
    return spent, [dpcgd.read_release(receipt).terms.account_entry] if receipt.exists() else []


# --- one release, and no other


def test_a_second_call_reads_and_neither_table_nor_account_is_touched(tmp_path):
    first = once(tmp_path, report=tmp_path / "report.md")
    shutil.move(tmp_path / "study.json", tmp_path / "elsewhere.json")
    second = once(tmp_path, data=lambda: pytest.fail("the table was read"))
    assert (first.spent, second.spent, second.release) == (True, False, first.release)
    assert type(first.release.ledger.budget.epsilon) is float
    assert not (tmp_path / "study.json").exists()
    assert (tmp_path / "report.md").exists()


OTHER = {"aim": "effects", "precision": 0.9, "delta": 1e-7, "rows_per_person": 2, "epsilon": 0.5}
OTHER |= {"knowledge": dpcgd.Knowledge(tiers=[["smoke"]]), "system": dpcgd.table_pc}


def test_a_receipt_of_other_settings_is_refused_and_none_is_overwritten(tmp_path):
    kept = once(tmp_path, system=dpcgd.graph_from_moments)
    for name, other in OTHER.items():
        asked = {"system": dpcgd.graph_from_moments, name: other}
        refused(f"another {name}; give", once, tmp_path, **asked)
    ordered = SCHEMA | {"cough": {"levels": SCHEMA["cough"], "ordered": True}}
    refused("another schema; give", once, tmp_path, schema=ordered, system=dpcgd.graph_from_moments)
    refused("read with another schema", once, tmp_path, schema=ordered, out=tmp_path / "b.json")
    terms, paid = replace(kept.release.terms, noise="secure"), tmp_path / "paid.json"
    replace(kept.release, terms=terms).save(paid)
    refused("another path", kept.release.save, paid)
    dpcgd.reread(kept.release, precision=0.9).save(kept.path)  # of an experiment


@pytest.mark.parametrize("system", [dpcgd.noleaks, dpcgd.gram_notears, dpcgd.priv_pc])
def test_a_system_that_reads_records_is_checked_and_runs(tmp_path, system):
    how = {"system": system} | ({"rate": 0.5} if system is dpcgd.priv_pc else {"l1": 0.1})
    refused("must be", once, tmp_path, **how | {next(reversed(how)): -1.0})
    assert not (tmp_path / "study.json").exists()
    assert once(tmp_path, **how).spent


def overtaken_by(another, last=dpcgd.private_graph):
    """A system that lets another run go first, once its own epsilon is reserved."""

    def system(data, **settings):
        if isinstance(settings["epsilon"], dpcgd.privacy.account_file.ReservedEpsilon):
            another()
        return last(data, **settings)

    return system


def test_of_two_that_start_together_the_first_to_spend_is_the_only_one(tmp_path):
    system = overtaken_by(lambda: once(tmp_path, budget=2.0, rng=default_rng(2)))
    refused(PAID, once, tmp_path, system=system, budget=2.0)
    (paid,) = entries(tmp_path)
    assert dpcgd.read_release(tmp_path / "release.json").terms.account_entry == paid.entry


@pytest.mark.parametrize("last", [dpcgd.private_graph, dpcgd.priv_pc, dpcgd.em_pc])
def test_a_budget_that_another_run_took_meanwhile_is_not_spent_twice(tmp_path, last):
    def another():
        dpcgd.open_account(tmp_path / "study.json").reserve(epsilon=0.5)

    refused("ask for less", once, tmp_path, system=overtaken_by(another, last))
    assert [run.system for run in entries(tmp_path)] == [""], "nothing was drawn"
    assert not (tmp_path / "release.json").exists()


def test_several_releases_share_an_account(tmp_path):
    for k in range(3):
        once(tmp_path, epsilon=0.5, budget=1.5, out=tmp_path / f"{k}.json")
    account = dpcgd.open_account(tmp_path / "study.json")
    assert [run.label for run in account.runs] == ["0.json", "1.json", "2.json"]
    assert account.remaining.epsilon == 0
    with pytest.raises(dpcgd.BudgetSpent):
        once(tmp_path, epsilon=0.1, out=tmp_path / "3.json")
    lines = door.check_files([tmp_path / "study.json", tmp_path / "1.json"])
    assert sum("its receipt is" in line for line in lines) == 3
    assert not any("paid for it" in line for line in lines)
    dpcgd.open_account(tmp_path / "other.json", epsilon=1.0, delta=1e-6)
    *_, last = door.check_files([tmp_path / "other.json", tmp_path / "1.json"])
    assert last.endswith("1.json: no account that is named here paid for it")


def test_a_reservation_that_nobody_used_is_called_one(tmp_path):
    once(tmp_path, budget=2.0)
    dpcgd.open_account(tmp_path / "study.json").reserve(epsilon=0.5, label="later")
    *_, last = door.check_files([tmp_path / "study.json"])
    assert "no noise was drawn" in last
    assert "lost" not in last


REFUSED = [
    ({"system": lambda data, **_: 1 / 0}, ZeroDivisionError),
    ({"data": DATA.codes}, ValueError),
    ({"data": dpcgd.Dataset(CODES, {"a": ["0", "1"], "b": ["0", "1"]})}, ValueError),
    ({"margin": 1.0}, TypeError),
    ({"delta": 1e-4, "budget": 100.0}, ValueError),  # 1 / n or more in the whole account
]


@pytest.mark.parametrize(("wrong", "why"), REFUSED)
def test_what_is_refused_makes_no_account(tmp_path, wrong, why):
    with pytest.raises(why):
        once(tmp_path, **wrong)
    assert list(tmp_path.iterdir()) == []


def failing_for(path):
    """Write every file but this one."""
    right = sealed_file.write_whole

    def write(target, text):
        if Path(target) == path:
            raise ValueError(f"{path} cannot be written: the cable is out")
        right(target, text)

    return write


def test_a_receipt_that_its_folder_does_not_take_goes_to_another_one(tmp_path, monkeypatch):
    (home := tmp_path / "home").mkdir()
    monkeypatch.setattr(sealed_file, "write_whole", failing_for(home / "release.json"))
    monkeypatch.setattr(door.tempfile, "gettempdir", lambda: str(tmp_path))
    kept = once(home)
    assert (kept.path.parent, kept.spent) == (tmp_path, True)
    assert str(kept.path) in kept.problems[0]
    assert dpcgd.read_release(kept.path) == kept.release
    refused(PAID, once, home)
    shutil.move(kept.path, home / "release.json")
    assert not once(home).spent


def test_a_report_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("dpcgd.graphs.report.write_whole", failing_for(tmp_path / "r.html"))
    kept = once(tmp_path, report=tmp_path / "r.html")
    assert "the cable is out" in kept.problems[0]
    assert kept.path.exists()
    monkeypatch.undo()
    assert once(tmp_path, report=tmp_path / "r.html").problems == ()
    assert (tmp_path / "r.html").exists()


def test_a_warning_cannot_stop_a_run_that_has_spent(tmp_path):
    def warns_after_spending(data, **settings):
        release = dpcgd.private_graph(data, **settings)
        warnings.warn("late", UserWarning, stacklevel=1)
        return release

    with pytest.warns(UserWarning, match="late"), warnings.catch_warnings(action="error"):
        once(tmp_path, system=warns_after_spending)
    spent, kept = spent_and_kept(tmp_path)
    assert (len(spent), spent) == (1, kept)


def test_other_threads_release_too(tmp_path):
    kept = []
    worker = threading.Thread(target=lambda: kept.append(once(tmp_path)))
    worker.start()
    worker.join()
    assert kept[0].spent


def test_a_report_replaces_a_report_and_no_other_page(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>A thesis</title>")
    refused("another path", once, tmp_path, report=page)
    assert [*tmp_path.iterdir()] == [page]
    page.unlink()
    assert not any(once(tmp_path, report=page).problems for _ in range(2))


# --- what is read


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_rows_of_a_person_are_counted_in_either_form(tmp_path, ending):
    frame = FRAME.assign(who=np.arange(N) // 2)
    path = tmp_path / f"people.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        path.mkdir()
        (path / "README.txt").write_text("two files")
        for k, own in enumerate((frame[:101], frame[101:])):
            own.to_parquet(path / f"{k}.parquet")
    assert door.read_table(path, SCHEMA, ids="who", rows_per_person=2).n == N
    refused("more rows than rows_per_person", door.read_table, path, SCHEMA, ids="who")
    refused("'' is no column", door.read_table, path, SCHEMA, ids="")
    assert door.read_table(path, SCHEMA, ignore=["who"]).n == N


def test_ids_are_found_in_a_file_of_another_form(tmp_path):
    frame, path = FRAME.assign(who=np.arange(N)), tmp_path / "people.csv"
    frame.to_csv(path, index=False, sep=";", encoding="utf-16")
    assert door.read_table(path, SCHEMA, ids="who", separator=";", encoding="utf-16").n == N


# --- bars


class Terminal(io.StringIO):
    """A screen."""

    def isatty(self):
        return True


STREAMS = [(Terminal(), 0.0, True), (Terminal(), 3600.0, False)]
STREAMS += [(no_screen, 0.0, False) for no_screen in (io.StringIO(), None)]


@pytest.mark.parametrize(("stream", "seconds", "shown"), STREAMS)
def test_a_bar_shows_on_a_screen_what_takes_longer(monkeypatch, stream, seconds, shown):
    monkeypatch.setattr(bars, "SECONDS", seconds)
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(bars.progress(iter("ab"), "counting", 2)) == ["a", "b"]
    text = stream.getvalue() if stream else ""
    assert "counting" in text if shown else text == ""


# --- a release that is struck


def every_moment(test):
    """Of ten, where processes can be struck at all."""
    test = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")(test)
    return pytest.mark.slow(pytest.mark.parametrize("moment", range(10))(test))


@pytest.fixture(scope="module")
def struck(tmp_path_factory):
    """Of each blow and moment the folder that is left, and the exit code."""
    pytest.importorskip("opendp", reason="a release has secure noise")
    home = tmp_path_factory.mktemp("struck")
    (table := home / "table").mkdir()
    FRAME.to_csv(table / "people.csv", index=False)
    (table / "schema.json").write_text(json.dumps(SCHEMA))
    environment = {**os.environ, "PYTHONPATH": str(Path(dpcgd.__file__).parents[1])}
    line = [sys.executable, Path(__file__).with_name("moments_of_release.py"), home]
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return home, json.loads(done.stdout)


def retry(folder):
    (folder / "study.json.lock").unlink(missing_ok=True)  # of whom the kill has met in there
    return once(folder, rng=None)


@every_moment
def test_a_kill_leaves_nothing_spent_or_a_receipt_or_an_account_that_says_so(struck, moment):
    folder = struck[0] / f"kill-{moment}"
    assert struck[1][folder.name] == -9
    spent, kept = spent_and_kept(folder)
    if moment < 6:
        assert (spent, kept) == ([], []), "no noise was drawn"
        assert retry(folder).spent
    elif moment < 8:
        assert (len(spent), kept) == (1, [])
        assert "spent by" in str(dpcgd.open_account(folder / "study.json"))
        explained = "\n".join(dpcgd.check_files([folder / "study.json"]))
        assert "what was drawn is lost and stays spent" in explained
        before = (folder / "study.json").read_bytes()
        refused(PAID, retry, folder)
        assert (folder / "study.json").read_bytes() == before
        return
    else:
        assert spent == kept
        assert not retry(folder).spent
    spent, kept = spent_and_kept(folder)
    assert (len(spent), spent) == (1, kept)


@every_moment
def test_an_interrupt_waits_for_the_receipt(struck, moment):
    folder = struck[0] / f"interrupt-{moment}"
    assert struck[1][folder.name] == 130
    spent, kept = spent_and_kept(folder)
    assert spent == kept
    assert len(spent) == (moment > 3), "from the first call that may spend it waits"
    assert retry(folder).spent == (moment <= 3)


@every_moment
def test_a_full_disk_stops_a_run_that_has_not_spent_and_loses_none_that_has(struck, moment):
    folder = struck[0] / f"disk-{moment}"
    code, (spent, kept) = struck[1][folder.name], spent_and_kept(folder)
    printed = Path(f"{folder}.stdout").read_text()
    assert "Traceback" not in Path(f"{folder}.stderr").read_text()
    if moment < 6:
        assert (code, spent, kept, printed) == (2, [], [], "")
    elif moment < 8:
        assert (code, len(spent), kept) == (1, 1, []), "no folder took the receipt"
        (folder / "release.json").write_text(printed)
        assert spent_and_kept(folder) == (spent, spent), "it was printed"
    else:
        assert (code, spent) == (int(moment == 8), kept)
    assert (retry(folder).spent, len(entries(folder))) == (moment < 6, 1)
