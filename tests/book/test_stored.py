"""Full results on file, and whether a sample that is run again would notice a change."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd_book.results import stored
from dpcgd_book.results import sweep as sweeps
from dpcgd_book.results.stored import FullResults, standard_errors_apart

from dpcgd.privacy.events import GaussianEvent
from dpcgd.privacy.noise import SeededNoise

CASES = [
    {"network": name, "epsilon": e, "n": 100, "run": run, "seed": 0}
    for name in ("asia", "child")
    for e in (0.1, 1, 10.0)
    for run in range(8)
]


def noisy(network, epsilon, n, run, seed, *, less=0.0):
    rng = np.random.default_rng([seed, run, int(10 * epsilon), len(network)])
    return {"F1": 0.8 - less + 0.05 * rng.normal(), "edges": None if network == "asia" else 3}


def worse(**case):
    return noisy(**case, less=0.2)


def refused(**case):
    raise AssertionError("nothing should be run")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The results of `noisy` on file, made as `make results` does."""
    monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path))
    monkeypatch.setenv(stored.RENEW, "1")
    full = FullResults("00_example", profile="quick", seed=0)
    rows = full.rows("f1", noisy, CASES, few=(), compare="F1")
    monkeypatch.delenv(stored.RENEW)
    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path / "full")
    return rows


def test_what_is_on_file_comes_back_in_the_order_of_the_cases(kept, tmp_path):
    full = FullResults("00_example", profile="quick", seed=3)
    rows = full.rows("f1", noisy, CASES[::-1], few=(), compare="F1")
    pd.testing.assert_frame_equal(rows[::-1].reset_index(drop=True), kept, check_like=True)
    assert list(rows.run[:3]) == [7, 6, 5]
    assert full.complete
    assert full.told("f1").startswith("8 of each, on file since 20")
    assert full.told("f1").endswith("6 cells were run again, 8 runs repeated from their seeds")
    about = json.loads((tmp_path / "full" / "00_example" / "made.json").read_text())["f1"]
    assert about["settings"] == {"n": 100, "seed": 0}
    assert about["made_by"] == "make results CHAPTER=00"
    assert {"date", "versions", "runs"} <= set(about)
    assert about["cell"] == ["network", "epsilon"]


@pytest.mark.parametrize("seed", range(5))
def test_a_worse_system_is_noticed(kept, seed):
    full = FullResults("00_example", profile="quick", seed=seed)
    with pytest.raises(AssertionError, match=r"fresh runs are -\d+\.\d standard errors from"):
        full.rows("f1", worse, CASES, few=(), compare="F1", repeat=0)


def test_other_cases_are_run_and_are_not_called_full(kept):
    few = [{**CASES[0], "n": 50}]
    full = FullResults("00_example", profile="quick", seed=0)
    rows = full.rows("f1", noisy, [{**c, "n": 50} for c in CASES], few=few, compare="F1")
    assert len(rows) == 1
    assert not full.complete
    assert full.told("f1") == "1 of each in this build"


def test_cells_that_take_too_long_are_not_run_again(kept):
    full = FullResults("00_example", profile="quick", seed=0)
    rows = full.rows("f1", refused, CASES, few=(), compare="F1", again=0, repeat=0)
    assert len(rows) == len(CASES)
    assert full.told("f1").endswith("0 cells were run again")


def decided(network, epsilon, n, run, seed, *, noise=SeededNoise, off=0.0):
    """Ten noisy scores, and how many of them come out right; one that has no noise is beside."""
    rng = np.random.default_rng([seed, run, int(10 * epsilon), len(network)])
    scores = np.linspace(-1, 1, 10) + rng.normal(0, 0.01, 10)
    found = noise(rng).gaussian(1 / epsilon, GaussianEvent("Gaussian", 1.0))(scores)
    right = np.mean((found > 0) == (np.linspace(-1, 1, 10) > 0))
    told = {"F1": right + off, "largest": float(found.max()), "seconds": rng.random()}
    return told | {"best": None if right == 1 else f"of {found.argmax()}"}


@pytest.fixture
def decisions(tmp_path, monkeypatch):
    """The results of `decided` on file."""
    monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path))
    monkeypatch.setenv(stored.RENEW, "1")
    FullResults("00_example", profile="quick", seed=0).rows(
        "f1", decided, CASES, few=(), compare="F1"
    )
    monkeypatch.delenv(stored.RENEW)
    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path / "full")


OTHERS = ["largest", "best", "seconds"]


def repeated(task, seed=0, **how):
    full = FullResults("00_example", profile="quick", seed=seed)
    return full.rows("f1", task, CASES, few=(), compare="F1", again=0, **how)


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_noise_is_noticed(decisions, seed):
    halved = partial(decided, noise=NarrowNoise)
    said = r"[3-8] of 8 runs repeated.*'F1'.*make results CHAPTER=00"
    with pytest.raises(AssertionError, match=said):
        repeated(halved, seed, but=["largest", "best"])
    with pytest.raises(AssertionError, match=r"[3-8] of 8 runs repeated"):
        repeated(halved, seed)


@pytest.mark.parametrize("off", [0.0, 4e-6, -4e-6])
def test_the_same_noise_is_the_same_but_for_the_last_digit(decisions, off):
    assert len(repeated(partial(decided, off=off))) == len(CASES)


def test_a_digit_that_is_not_the_last_is_noticed(decisions):
    with pytest.raises(AssertionError, match="8 of 8 runs repeated"):
        repeated(partial(decided, off=1e-3), but=OTHERS)


def test_one_of_many_results_may_differ(decisions):
    assert len(repeated(partial(decided, off=1e-3))) == len(CASES)


@pytest.mark.parametrize(("off", "repeat"), [(2, 8), (2, 6), (1, 5), (0, 2)])
def test_few_of_the_repeated_runs_may_differ(decisions, off, repeat):
    """An edge that flips on another processor; one more is a change."""
    left = []

    def flipped(**case):
        found = decided(**case)
        return found | {"F1": found["F1"] + (len(left) and bool(left.pop()))}

    left[:] = [0.3] * off
    repeated(flipped, repeat=repeat, but=OTHERS)
    left[:] = [0.3] * (off + 1)
    with pytest.raises(AssertionError, match=f"{off + 1} of {repeat} runs repeated"):
        repeated(flipped, repeat=repeat, but=OTHERS)


def test_seconds_may_differ_and_some_rows_may_be_left_out(decisions):
    asked = []

    def later(**case):
        asked.append(case)
        return decided(**case) | {"seconds": 7.0}

    of_clock = {"but": ["seconds", "largest", "best"]}
    repeated(later, **of_clock, sample=lambda rows: rows.network == "asia")
    assert len(asked) == 8
    assert {case["network"] for case in asked} == {"asia"}
    with pytest.raises(AssertionError, match="'seconds'"):
        repeated(later, but=["largest", "best"])


def test_renewing_goes_on_where_it_stopped(kept, monkeypatch):
    monkeypatch.setenv(stored.RENEW, "1")
    monkeypatch.setattr(sweeps, "digest_of_task", lambda task: "same")
    again = FullResults("00_example", profile="quick", seed=0)
    again.rows("f1", noisy, CASES, few=(), compare="F1")
    monkeypatch.setattr(refused, "__name__", "noisy")
    rows = again.rows("f1", refused, CASES, few=(), compare="F1")
    assert rows.F1.tolist() == kept.F1.tolist()


@pytest.mark.parametrize("address", ["tcp://there", ""])
def test_full_results_are_made_where_the_environment_says(kept, monkeypatch, address):
    monkeypatch.setenv(stored.RENEW, "1")
    monkeypatch.setenv(stored.CLUSTER, address)
    asked = []

    def noted(task, cases, **how):
        asked.append(how)
        return sweeps.sweep(task, cases)

    monkeypatch.setattr(stored, "sweep", noted)
    again = FullResults("00_example", profile="quick", seed=0)
    again.rows("f1", noisy, CASES, few=(), compare="F1")
    assert [how["cluster"] for how in asked] == [address]


def test_equal_values_on_file_do_not_say_that_nothing_varies():
    assert standard_errors_apart([1.0], [[1.0] * 9], 0.0) == 0
    assert abs(standard_errors_apart([0.9, 0.9], [[1.0] * 9, [0.8, 1.0, 0.9]], 0.005)) < 2
    assert standard_errors_apart([0.9], [[1.0] * 9], 0.0) == -np.inf


ONE_RUN_EACH = ("memory",)
"""Not of noise: a second run would be like the first."""

LARGE = {"table": 5_000_000, "pairs": 2_000_000}
"""Bytes of the two that have every system."""

TABLES = sorted(stored.stored_folder().glob("*/*.csv"))
OF_RUNS = [path for path in TABLES if path.stem not in ONE_RUN_EACH]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_table_on_file_says_how_it_was_made(path):
    about = stored._made(path.parent)[path.stem]
    assert about["made_by"].startswith(("make results CHAPTER=", "python benchmarks/"))
    assert about["runs"] >= (1 if path.stem in ONE_RUN_EACH else 2)
    rows = pd.read_csv(path)
    assert rows.run.max() < stored.FRESH
    assert path.stat().st_size < LARGE.get(path.stem, 400_000)


@pytest.mark.parametrize("path", OF_RUNS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_runs_like_those_on_file_agree_with_them(path):
    """One run of each of six cells is held against the others of its cell, many times."""
    about = stored._made(path.parent)[path.stem]
    values = runs_by_cell(path, about)
    usual = np.mean([np.var(v, ddof=1) for v in values])
    rng = np.random.default_rng(0)
    apart = []
    for _ in range(1000):
        of = [values[i] for i in rng.choice(len(values), min(6, len(values)), replace=False)]
        at = [rng.integers(len(v)) for v in of]
        fresh = [v[i] for v, i in zip(of, at, strict=True)]
        others = [np.delete(v, i) for v, i in zip(of, at, strict=True)]
        apart.append(standard_errors_apart(fresh, others, usual))
    assert np.max(np.abs(apart)) < 0.9 * stored.LIMIT


def runs_by_cell(path, about):
    rows = pd.read_csv(path).dropna(subset=about["compare"])
    groups = (
        rows.groupby(about["cell"])[about["compare"]]
        if about["cell"]
        else [(0, rows[about["compare"]])]
    )
    return [v.to_numpy(float) for _, v in groups if len(v) > 2]


def test_a_table_of_one_run_each_is_read_and_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path)
    rows = pd.DataFrame({"x": [1, 2], "run": 0, "seed": 0, "bytes": [3.0, 4.0]})
    cases = rows[["x", "run", "seed"]].to_dict("records")
    stored.keep(tmp_path / "00_example", "peaks", rows, cases, "bytes", made_by="a test")
    full = FullResults("00_example", profile="quick", seed=0)
    kept = full.kept("peaks", noisy, sample=None, compare="bytes", again=0)
    assert kept["bytes"].tolist() == [3.0, 4.0]
