import json

import pytest

from dpcgd.book.sweep import _duration, _Progress, sweep

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


def test_another_file_is_refused_with_the_cure(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n")
    with pytest.raises(ValueError, match=r"holds no sweep .*delete it or name another"):
        sweep(Counting(), CASES, path=path)
    assert path.read_text() == "shopping list\n"


def test_workers_find_the_same(tmp_path):
    pytest.importorskip("joblib", reason="joblib is in the book extra")
    path = tmp_path / "sweep.jsonl"
    cases = [{"x": x} for x in range(8)]
    assert sweep(square, cases, path=path, workers=2) == sweep(square, cases)
    assert len({json.loads(line)[1]["x"] for line in path.read_text().splitlines()}) == 8


def test_what_is_left_is_told_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(_Progress, "EVERY", 0.0)
    sweep(Counting(), CASES)
    lines = capsys.readouterr().err.split("\r")
    assert lines[1].strip() == "1 of 6; about 0 s left"
    assert lines[-1].strip() == ""


def test_a_long_time_is_told_in_minutes():
    assert [_duration(seconds) for seconds in (7, 600)] == ["7 s", "10 min"]
