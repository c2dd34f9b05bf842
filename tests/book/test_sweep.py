"""Sweeps run every case once, keep what is finished, and say what failed."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from dpcgd_book.results import sweep as sweeps
from dpcgd_book.results.sweep import sweep
from people import refused

CASES = [{"x": x} for x in range(8)]
ROWS = [{"x": x, "square": x * x} for x in range(8)]


def square(x):
    return {"square": x * x}


def half(x):
    return {"half": x / 2}


class Squares:
    """A task that counts its calls, and is interrupted at one of them."""

    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def square(self, x):
        if len(self.calls) == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append(x)
        return {"square": x * x}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "sweeps.sqlite3"


def finished(path):
    """The numbers of the cases on file."""
    with sqlite3.connect(path) as file:
        return sorted(int(case[6:-1]) for (case,) in file.execute('SELECT "case" FROM finished'))


def test_an_interrupted_sweep_goes_on_where_it_stopped(path):
    first, second, third = Squares(stop_at=4), Squares(), Squares()
    with pytest.raises(KeyboardInterrupt):
        sweep(first.square, CASES, path=path)
    assert sweep(second.square, CASES, path=path) == ROWS == sweep(square, CASES)
    assert (first.calls, second.calls) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert (sweep(third.square, CASES[::-1], path=path), third.calls) == (ROWS[::-1], [])


def test_a_case_that_comes_twice_is_run_once(path):
    task = Squares()
    assert sweep(task.square, CASES + CASES, path=path) == ROWS + ROWS
    assert len(task.calls) == len(CASES)


@pytest.mark.parametrize("other", [{"name": "another"}, {"version": "another"}])
def test_another_sweep_and_another_version_run_every_case_again(path, other):
    task = Squares()
    sweep(task.square, CASES, path=path)
    sweep(task.square, CASES, path=path, **other)
    assert len(task.calls) == 2 * len(CASES)


def test_a_sweep_on_file_has_a_name(path):
    refused("give this one a name", sweep, lambda x: {}, CASES, path=path)


def test_another_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n" * 100)
    refused("notes.txt .* name another file$", sweep, square, CASES, path=path)
    assert path.read_text() == "shopping list\n" * 100


def test_a_full_disk_leaves_whole_cases_only(path, monkeypatch):
    class Full(sqlite3.Connection):
        def execute(self, query, *values):
            if query.startswith("CREATE"):
                super().execute("PRAGMA max_page_count = 5")
            return super().execute(query, *values)

    sweep(square, CASES[:1], path=path)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Full))
    with pytest.raises(ValueError, match=r"full.*make room"):
        sweep(lambda x: {"padding": "." * 5000}, CASES, path=path, name="square")
    monkeypatch.undo()
    assert sweep(Squares(stop_at=0).square, CASES[:1], path=path) == ROWS[:1]


def test_two_sweeps_write_to_a_file_side_by_side(path):
    def meanwhile(x):
        assert sweep(half, [{"x": x}], path=path) == [{"x": x, "half": x / 2}]
        return {"square": x * x}

    assert sweep(meanwhile, CASES, path=path) == ROWS
    assert finished(path) == sorted([*range(8), *range(8)])


def fails_on_odd(x):
    if x % 2 and "ODD_IS_FINE" not in os.environ:
        raise KeyError(f"no\nodd {x}")
    return {"square": x * x}


@pytest.mark.parametrize("workers", [1, 2])
def test_failing_cases_are_told_in_the_end_and_tried_again(path, workers, monkeypatch):
    why = r"^4 of 8 cases failed, the first, {'x': \d}, with KeyError: 'no\\nodd \d'; .*tried again"
    with pytest.raises(RuntimeError, match=why) as raised:
        sweep(fails_on_odd, CASES, path=path, workers=workers)
    assert "raise KeyError" in raised.value.__notes__[0]
    assert finished(path) == [0, 2, 4, 6]
    monkeypatch.setenv("ODD_IS_FINE", "1")
    assert sweep(fails_on_odd, CASES, path=path) == ROWS


def test_numbers_of_numpy_come_back_as_from_the_file(path):
    def of_numpy(x):
        return {"mean": np.float64(x), "count": np.int64(x), "all": np.arange(x)}

    rows = sweep(of_numpy, [{"x": 2}], path=path)
    assert rows == [{"x": 2, "mean": 2.0, "count": 2, "all": [0, 1]}]
    assert rows == sweep(of_numpy, [{"x": 2}], path=path)


def test_workers_find_the_same_and_another_package_is_refused(path, monkeypatch):
    assert sweep(square, CASES, path=path, workers=2) == ROWS
    assert finished(path) == [*range(8)]
    monkeypatch.setattr(sweeps, "digest_of_package", lambda: "another")
    refused("another version", sweep, square, CASES, kind=RuntimeError, workers=2)


@pytest.mark.slow
def test_a_cluster_finds_the_same_and_tells_failures_and_other_packages(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="it is in the cluster extra")
    places = {"host": "127.0.0.1", "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **places) as local:
        cluster = local.scheduler_address
        assert sweep(square, CASES, cluster=cluster) == ROWS
        asked = {"kind": RuntimeError, "cluster": cluster}
        why = "4 of 8 cases failed, the first, .*KeyError: 'no"
        refused(why, sweep, fails_on_odd, CASES, **asked)
        monkeypatch.setattr(sweeps, "digest_of_package", lambda: "another")
        refused("another version", sweep, square, CASES, **asked)


def test_a_cluster_that_is_not_there_is_told(monkeypatch):
    pytest.importorskip("distributed", reason="it is in the cluster extra")
    monkeypatch.setattr(sweeps, "SECONDS_FOR_CLUSTER", 0.2)
    place = "tcp://127.0.0.1:9"
    refused(f"^no Dask scheduler answers at {place} ", sweep, square, CASES, cluster=place)


KILLED = """
import sys, time
from dpcgd_book.results.sweep import sweep

path, log, workers = sys.argv[1:]

def task(x):
    time.sleep(0.04)
    with open(log, "a") as file:
        file.write(f"{x}\\n")
    return {"square": x * x, "padding": "." * 2000}

print("begins", flush=True)
sweep(task, [{"x": x} for x in range(100)], path=path, workers=int(workers))
"""


KILLS = 5


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_kills_lose_no_finished_case(tmp_path, workers):
    """Seeded moments; a case may be run again only if it was under way when a kill came.

    Each takes longer than to write it down, or finished ones would wait for that.
    """
    path, log, rng = tmp_path / "sweep.sqlite3", tmp_path / "log", random.Random(workers)
    command = [sys.executable, "-c", KILLED, str(path), str(log), str(workers)]
    before = set()
    for _ in range(KILLS):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.uniform(0, 0.3 if workers == 1 else 0.8))
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        after = set(finished(path)) if path.exists() and path.stat().st_size else set()
        assert before <= after
        before = after
    subprocess.run(command, check=True, capture_output=True)
    assert finished(path) == [*range(100)]
    assert 100 <= len(log.read_text().splitlines()) <= 100 + KILLS * 2 * workers
