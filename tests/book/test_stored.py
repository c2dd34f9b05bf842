"""Full results on file, and whether a sample that is run again would notice a change."""

from functools import partial
from itertools import product
from shutil import copytree

import numpy as np
import pandas as pd
import pytest
import results
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd_book.results import stored
from dpcgd_book.results.stored import FullResults, made_of, rows_on_file, standard_errors_apart
from dpcgd_book.results.sweep import VERSION

from dpcgd.privacy.events import GaussianEvent
from dpcgd.privacy.noise import SeededNoise

CELLS = product(("asia", "child"), (0.1, 1, 10.0), range(8))
CASES = [{"network": v, "epsilon": e, "n": 100, "run": run, "seed": 0} for v, e, run in CELLS]


def noisy(network, epsilon, n, run, seed, *, less=0.0):
    rng = np.random.default_rng([seed, run, int(10 * epsilon), len(network)])
    return {"F1": 0.8 - less + 0.05 * rng.normal(), "edges": None if network == "asia" else 3}


def decided(network, epsilon, n, run, seed, *, noise=SeededNoise, off=0.0):
    """Ten noisy scores, and how many of them come out right; one that has no noise is beside."""
    rng = np.random.default_rng([seed, run, int(10 * epsilon), len(network)])
    scores = np.linspace(-1, 1, 10) + rng.normal(0, 0.01, 10)
    answers = noise(rng).gaussian(1 / epsilon, GaussianEvent("Gaussian", 1.0))(scores)
    right = np.mean((answers > 0) == (np.linspace(-1, 1, 10) > 0))
    row = {"F1": right + off, "largest": float(answers.max()), "seconds": rng.random()}
    return row | {"best": None if right == 1 else f"score {answers.argmax()}"}


def refused(**case):
    raise AssertionError("nothing should be run")


def rows(task, cases=CASES, *, profile="quick", seed=0, few=(), **settings):
    full = FullResults("00_example", profile=profile, seed=seed)
    return full.rows("f1", task, cases, few=few, compare="F1", **settings), full


@pytest.fixture(params=[noisy])
def kept(request, tmp_path, monkeypatch):
    """The results of a task on file, made as `make results` does."""
    monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path))
    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path / "full")
    return rows(request.param, profile="paper")[0]


on_decisions = pytest.mark.parametrize("kept", [decided], indirect=True)


def test_what_is_on_file_comes_back_in_the_order_of_the_cases(kept, tmp_path):
    backwards, full = rows(noisy, CASES[::-1], seed=3)
    pd.testing.assert_frame_equal(backwards[::-1].reset_index(drop=True), kept, check_like=True)
    assert full.complete
    assert full.told("f1").startswith("8 of each, on file since 20")
    about = made_of(tmp_path / "full" / "00_example")["f1"]
    known = {"settings": {"n": 100, "seed": 0}, "made_by": "make results CHAPTER=00"}
    assert about | known | {"cell": ["network", "epsilon"]} == about


@pytest.mark.parametrize("seed", range(5))
def test_a_worse_system_is_noticed(kept, seed):
    with pytest.raises(AssertionError, match=r"fresh runs are -\d+\.\d standard errors from"):
        rows(partial(noisy, less=0.2), seed=seed, repeat=0)


def test_other_cases_are_run_and_are_not_called_full(kept):
    other = [{**case, "n": 50} for case in CASES]
    few, full = rows(noisy, other, few=other[:1])
    assert (len(few), full.complete) == (1, False)
    assert full.told("f1") == "1 of each in this build"


@on_decisions
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("but", [["largest", "best"], []])
def test_half_of_the_noise_is_noticed(kept, seed, but):
    with pytest.raises(AssertionError, match=r"[3-8] of 8 runs repeated.*make results CHAPTER=00"):
        rows(partial(decided, noise=NarrowNoise), seed=seed, rerun=0, but=but)


@on_decisions
def test_the_last_digit_and_one_of_many_results_may_differ(kept):
    for off in (0.0, 4e-6, -4e-6, 1e-3):
        rows(partial(decided, off=off), rerun=0)
    with pytest.raises(AssertionError, match="8 of 8 runs repeated"):
        rows(partial(decided, off=1e-3), rerun=0, but=["largest", "best", "seconds"])


@on_decisions
@pytest.mark.parametrize(("off", "repeat"), [(2, 8), (2, 6), (1, 5), (0, 2)])
def test_few_of_the_repeated_runs_may_differ(kept, off, repeat):
    """An edge that flips on another processor; one more is a change."""

    def repeated(flips):
        left, but = [0.3] * flips, ["largest", "best", "seconds"]
        flipped = lambda **case: decided(**case, off=left.pop() if left else 0.0)  # noqa: E731
        rows(flipped, rerun=0, repeat=repeat, but=but)

    repeated(off)
    with pytest.raises(AssertionError, match=f"{off + 1} of {repeat} runs repeated"):
        repeated(off + 1)


@on_decisions
def test_seconds_may_differ_and_some_rows_may_be_left_out(kept):
    asked = []

    def later(**case):
        asked.append(case["network"])
        return decided(**case) | {"seconds": 7.0}

    but = ["seconds", "largest", "best"]
    rows(later, rerun=0, but=but, sample=lambda kept: kept.network == "asia")
    assert asked == ["asia"] * 8
    with pytest.raises(AssertionError, match="'seconds'"):
        rows(later, rerun=0, but=but[1:])


def test_renewing_goes_on_where_it_stopped_while_nothing_changes(kept, monkeypatch):
    monkeypatch.setenv(stored.RENEW, "1")
    monkeypatch.setenv(VERSION, "one digest")
    rows(noisy)
    assert rows(refused)[0].F1.tolist() == kept.F1.tolist()
    monkeypatch.setenv(VERSION, "another")
    with pytest.raises(RuntimeError, match="nothing should be run"):
        rows(refused)


def test_rows_stay_where_a_program_ended_before_it_said_what_varies(tmp_path):
    cases = [{"network": name, "run": run} for name in ("asia", "child") for run in range(2)]
    for some in (cases[:2], cases):
        table = pd.DataFrame(some).assign(F1=0.5)
        stored.keep(tmp_path, "f1", table, some, "F1", made_by="by hand")
        if len(some) == 2:
            before = (tmp_path / "made.json").read_text()
    (tmp_path / "made.json").write_text(before)
    assert rows_on_file(tmp_path, "f1").network.tolist() == ["asia", "asia", "child", "child"]


def test_other_tables_stay_known_where_a_copy_of_new_ones_is_stopped(tmp_path, monkeypatch):
    for name in ("old", "new"):
        cases = [{"network": "asia", "run": run} for run in range(2)]
        table = pd.DataFrame(cases).assign(F1=0.5)
        stored.keep(tmp_path / name, name, table, cases, "F1", made_by="by hand")

    def stopped(*folders, **how):
        copytree(*folders, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr("results.shutil.copytree", stopped)
    with pytest.raises(KeyboardInterrupt):
        results.take(tmp_path / "new", tmp_path / "old")
    assert made_of(tmp_path / "old").keys() == {"old"}


def test_equal_values_on_file_do_not_say_that_nothing_varies():
    assert standard_errors_apart([1.0], [[1.0] * 9], 0.0) == 0
    assert abs(standard_errors_apart([0.9, 0.9], [[1.0] * 9, [0.8, 1.0, 0.9]], 0.005)) < 2
    assert standard_errors_apart([0.9], [[1.0] * 9], 0.0) == -np.inf


ONE_RUN_EACH = ("memory",)
"""Tables without noise: a second run would be like the first."""

LARGE = {"table": 2_000_000, "pairs": 1_000_000}
"""Bytes of the two tables that have every system."""

TABLES = sorted(stored.stored_folder().glob("*/*.parquet"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_table_on_file_says_how_it_was_made_and_its_own_runs_agree(path):
    """One run of each of six cells is held against the others of its cell, many times."""
    about, table = made_of(path.parent)[path.stem], rows_on_file(path.parent, path.stem)
    assert about["made_by"].startswith(("make results CHAPTER=", "python benchmarks/"))
    assert about["runs"] >= (1 if path.stem in ONE_RUN_EACH else 2)
    assert table.run.max() < stored.FRESH
    assert path.stat().st_size < LARGE.get(path.stem, 400_000)
    if path.stem in ONE_RUN_EACH:
        return
    cells = table.dropna(subset=about["compare"])
    cells = cells.groupby(about["cell"] or np.zeros(len(cells)))[about["compare"]]
    values = [runs.to_numpy(float) for _, runs in cells if len(runs) > 2]
    usual = np.mean([np.var(runs, ddof=1) for runs in values])
    rng = np.random.default_rng(0)
    for _ in range(1000):
        chosen = [values[i] for i in rng.choice(len(values), min(6, len(values)), replace=False)]
        places = [rng.integers(len(runs)) for runs in chosen]
        fresh = [runs[i] for runs, i in zip(chosen, places, strict=True)]
        others = [np.delete(runs, i) for runs, i in zip(chosen, places, strict=True)]
        assert abs(standard_errors_apart(fresh, others, usual)) < 0.9 * stored.LIMIT
