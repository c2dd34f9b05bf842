import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from dpcgd_book.results import sweep as sweeps
from dpcgd_book.results.sweep import _duration, _Progress, sweep
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = [{"x": x, "name": name} for x in (1, 2, 3) for name in "ab"]


class Counting:
    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def __call__(self, x, name):
        if len(self.calls) == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append((x, name))
        return {"result": f"{name * x}"}


def square(x):
    return {"square": x * x}


def half(x):
    return {"half": x / 2}


class Calls:
    """A task that counts, and is the same task every time."""

    def __init__(self):
        self.calls = []

    def square(self, x):
        self.calls.append(x)
        return {"square": x * x}


SQUARES = [{"x": x} for x in range(8)]


def test_rows_come_in_the_order_of_the_cases():
    rows = sweep(Counting(), CASES)
    assert rows == [{**case, "result": case["name"] * case["x"]} for case in CASES]


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "folder" / "sweep.jsonl"
    first, second = Counting(stop_at=4), Counting()
    with pytest.raises(KeyboardInterrupt):
        sweep(first, CASES, path=path)
    rows = sweep(second, CASES, path=path)
    assert first.calls + second.calls == [(case["x"], case["name"]) for case in CASES]
    assert rows == sweep(Counting(), CASES)
    third = Counting()
    assert sweep(third, CASES, path=path) == rows
    assert third.calls == []


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    path = tmp_path / "sweep.jsonl"
    rows = sweep(Counting(), CASES, path=path)
    path.write_text(path.read_text()[:-9])
    again = Counting()
    assert sweep(again, CASES, path=path) == rows
    assert again.calls == [(3, "b")]
    assert len(path.read_text().splitlines()) == len(CASES)
    assert sweep(Counting(stop_at=0), CASES, path=path) == rows


def test_more_cases_only_run_the_new_ones(tmp_path):
    path = tmp_path / "sweep.jsonl"
    sweep(Counting(), CASES[:2], path=path)
    later = Counting()
    sweep(later, CASES, path=path)
    assert len(later.calls) == 4


def test_tasks_with_the_same_cases_share_a_file(tmp_path):
    path, cases = tmp_path / "sweep.jsonl", [{"x": 2}]
    for _ in range(2):
        assert sweep(square, cases, path=path) == [{"x": 2, "square": 4}]
        assert sweep(half, cases, path=path) == [{"x": 2, "half": 1.0}]
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("text", ["shopping list\n", '["square", {"x": 2}, {"square": 4}]\n'])
def test_another_file_is_refused_with_the_cure(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"^.*notes.txt holds no .*; delete it or name another$"):
        sweep(Counting(), CASES, path=path)
    assert path.read_text() == text


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whole_lines_outlive_a_cut_anywhere(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "sweep.jsonl"
    rows = sweep(Calls().square, SQUARES, path=path)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    again = Calls()
    assert sweep(again.square, SQUARES, path=path) == rows
    assert again.calls == [case["x"] for case in SQUARES[content[:cut].count(b"\n") :]]
    assert path.read_bytes() == content


def test_a_full_disk_leaves_whole_lines_only(tmp_path, monkeypatch):
    path, write = tmp_path / "sweep.jsonl", os.write
    sweep(square, SQUARES[:2], path=path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:7]))
    with pytest.raises(ValueError, match=r"^.*sweep.jsonl cannot be written: the disk is full$"):
        sweep(square, SQUARES, path=path)
    monkeypatch.undo()
    assert path.read_bytes() == before


def test_two_sweeps_do_not_write_to_a_file_at_once(tmp_path):
    path = tmp_path / "sweep.jsonl"

    def meanwhile(x):
        with pytest.raises(ValueError, match=r"sweep.jsonl is being written by another process"):
            sweep(square, [{"x": x}], path=path)
        return {"square": x * x}

    assert sweep(meanwhile, SQUARES[:1], path=path) == [{"x": 0, "square": 0}]
    assert sweep(square, SQUARES[:1], path=path) == [{"x": 0, "square": 0}]


def test_a_case_that_comes_twice_is_run_once(tmp_path):
    once = Counting()
    assert len(sweep(once, CASES + CASES, path=tmp_path / "sweep.jsonl")) == 2 * len(CASES)
    assert len(once.calls) == len(CASES)


def fails_on_odd(x):
    if x % 2 and "ODD_IS_FINE" not in os.environ:
        raise KeyError(f"no\nodd {x}")
    return {"square": x * x}


@pytest.mark.parametrize("workers", [1, 2])
def test_failing_cases_are_told_in_the_end_and_tried_again(tmp_path, workers, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    told = r"^4 of 8 cases failed, the first, {'x': \d}, with KeyError: 'no\\nodd \d'; those that "
    told += r"did not are in .*sweep.jsonl, so only these are tried again\n"
    with pytest.raises(RuntimeError, match=told) as raised:
        sweep(fails_on_odd, SQUARES, path=path, workers=workers)
    assert "raise KeyError" in raised.value.__notes__[0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["case"]["x"] for line in lines if "error" in line) == [1, 3, 5, 7]
    monkeypatch.setenv("ODD_IS_FINE", "1")
    assert sweep(fails_on_odd, SQUARES, path=path) == sweep(square, SQUARES)
    tried = [json.loads(line)["case"]["x"] for line in path.read_text().splitlines()[8:]]
    assert tried == [1, 3, 5, 7]


def test_results_that_do_not_fit_into_a_line_are_a_failure():
    with pytest.raises(RuntimeError, match=r"1 of 1 cases failed, .*'set' object has no attribute"):
        sweep(lambda x: {"found": {x}}, [{"x": 1}])


def test_numbers_of_numpy_come_back_as_from_the_file(tmp_path):
    def of_numpy(x):
        return {"mean": np.float64(x), "count": np.int64(x), "all": np.arange(x)}

    rows = sweep(of_numpy, [{"x": 2}], path=tmp_path / "sweep.jsonl")
    assert rows == [{"x": 2, "mean": 2.0, "count": 2, "all": [0, 1]}]
    assert rows == sweep(of_numpy, [{"x": 2}], path=tmp_path / "sweep.jsonl")


def test_another_package_runs_every_case_again(tmp_path, monkeypatch):
    path, later = tmp_path / "sweep.jsonl", Calls()
    sweep(later.square, SQUARES, path=path)
    monkeypatch.setattr(sweeps, "digest_of_package", lambda: "another")
    sweep(later.square, SQUARES, path=path)
    assert len(later.calls) == 2 * len(SQUARES)


def test_a_worker_with_another_package_is_refused(monkeypatch):
    monkeypatch.setattr(sweeps, "digest_of_package", lambda: "another")
    with pytest.raises(ValueError, match="a worker has another version of the package"):
        sweep(square, SQUARES, workers=2)


def test_workers_find_the_same(tmp_path):
    path = tmp_path / "sweep.jsonl"
    assert sweep(square, SQUARES, path=path, workers=2) == sweep(square, SQUARES)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["case"]["x"] for line in lines) == [case["x"] for case in SQUARES]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="it is in the cluster extra")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as found:
        yield found.scheduler_address


@pytest.mark.slow
def test_a_cluster_finds_the_same_as_processes(tmp_path, cluster):
    paths = [tmp_path / f"{name}.jsonl" for name in ("processes", "cluster")]
    here = sweep(square, SQUARES, path=paths[0], workers=2)
    there = sweep(square, SQUARES, path=paths[1], cluster=cluster)
    assert here == there == sweep(square, SQUARES)
    lines = [sorted(path.read_text().splitlines()) for path in paths]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_failing_cases_on_a_cluster_are_told_in_the_end(cluster):
    with pytest.raises(RuntimeError, match=r"4 of 8 cases failed, the first, .*KeyError: 'no"):
        sweep(fails_on_odd, SQUARES, cluster=cluster)


@pytest.mark.slow
def test_a_cluster_with_another_package_is_refused(cluster, monkeypatch):
    monkeypatch.setattr(sweeps, "digest_of_package", lambda: "another")
    with pytest.raises(ValueError, match="a worker has another version of the package"):
        sweep(square, SQUARES, cluster=cluster)


def test_a_cluster_that_is_not_there_is_told(monkeypatch):
    pytest.importorskip("distributed", reason="it is in the cluster extra")
    monkeypatch.setattr(sweeps, "SECONDS_FOR_CLUSTER", 0.2)
    with pytest.raises(ValueError, match=r"^no Dask scheduler answers at tcp://127.0.0.1:9 "):
        sweep(square, SQUARES, cluster="tcp://127.0.0.1:9")


def test_without_dask_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"needs Dask: pip install dpcgd\[cluster\]"):
        sweep(square, SQUARES, cluster="tcp://127.0.0.1:9")


KILLED = """
import os, sys, time
from dpcgd_book.results.sweep import sweep

path, log, workers = sys.argv[1:]

def task(x):
    time.sleep(0.01)
    with open(log, "a") as file:
        file.write(f"{x}\\n")
    return {"square": x * x, "padding": "." * 2000}

print("begins", flush=True)
sweep(task, [{"x": x} for x in range(100)], path=path, workers=int(workers))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ten_kills_lose_no_finished_case(tmp_path, workers):
    """Seeded moments; a case may be run again only if it was under way when a kill came."""
    path, log, rng = tmp_path / "sweep.jsonl", tmp_path / "log", random.Random(workers)
    command = [sys.executable, "-c", KILLED, str(path), str(log), str(workers)]
    before = b""
    for _ in range(10):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.uniform(0, 0.3 if workers == 1 else 0.8))
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        after = path.read_bytes() if path.exists() else b""
        whole = before[: before.rfind(b"\n") + 1]
        assert after.startswith(whole)
        before = after
    subprocess.run(command, check=True, capture_output=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["case"]["x"] for line in lines) == list(range(100))
    assert all(line["found"]["square"] == line["case"]["x"] ** 2 for line in lines)
    assert 100 <= len(log.read_text().splitlines()) <= 100 + 10 * 2 * workers


def test_what_is_left_is_told_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(_Progress, "EVERY", 0.0)
    sweep(Counting(), CASES)
    lines = capsys.readouterr().err.split("\r")
    assert lines[1].strip() == "1 of 6; about 0 s left"
    assert lines[-1].strip() == ""


def test_a_long_time_is_told_in_minutes():
    assert [_duration(seconds) for seconds in (7, 600)] == ["7 s", "10 min"]
