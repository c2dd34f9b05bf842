"""Systems for two variables join by a file; what they say is scored, repeated, and checked."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.attacks.replay import replay, worst
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from dpcgd_book.results import stored
from numpy.random import default_rng

from benchmarks import entries, kept, pair_cases, pairs
from benchmarks.pair_cases import PairSystem, noise_of, on_pair, pair_of, run_pair, shares_of
from dpcgd.datasets.dataset import Dataset
from dpcgd.pairwise.dependence_scores import Hsic, Kendall, Spearman

KNOWN = pair_cases.pair_systems()
CASE = {"kind": "sine", "n": 300, "epsilon": 1.0, "run": 0, "seed": 0}
OTHER = {"kind": "steep", "n": 301, "epsilon": 2.0, "run": 1, "seed": 1}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}

ENTRY = """
from benchmarks.pair_cases import PairSystem


def first(pair, *, epsilon, delta, rng):
    return pair.variables


SYSTEMS = [PairSystem("first", "no look", "none", first)]
"""


def test_a_file_adds_a_row(folder_of_entry, tmp_path, capsys, monkeypatch):
    folder_of_entry("pair_systems/first.py", ENTRY)
    pairs.main(["--runs", "2"])
    rows = stored.rows_on_file(tmp_path / "stored" / entries.HOME, "pairs")
    assert rows.system.tolist() == ["first"] * 2 * (3 + 3 + 2 + 1)
    assert set(rows.right) <= {0, 1}
    assert set(rows.columns) == {*kept.COLUMNS["pairs"], "seed"}
    pairs.main(["--runs", "2", "--system", "first"])
    assert "18 of 18 cases on file, 0 rows of other code" in capsys.readouterr().out
    pairs.main(["--case", "first real inf 1000 1"])
    row = rows[(rows.kind == "real") & (rows.n == 1000) & (rows.run == 1)].iloc[0]
    shown = re.search(r"right +(\S+) +(\S+)", capsys.readouterr().out)
    assert [float(x) for x in shown.groups()] == [row.right] * 2
    monkeypatch.setattr(kept, "BOOK", tmp_path)
    with pytest.raises(SystemExit, match="names other systems: their rows do not belong in"):
        pairs.main(["--runs", "2"])


def with_half_noise(system, kind, n, epsilon, run, seed):
    """The same draws for twice the epsilon."""
    rng = noise_of(system, kind, n, epsilon, run, seed)
    return on_pair(KNOWN[system], pair_of(kind, n, run, seed), 2 * epsilon, rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, system in KNOWN.items() if system.private])
def test_a_run_comes_out_again_from_its_seed_and_half_the_noise_is_noticed(name):
    """By released scores, or by the directions of twenty runs where only these are let out."""
    budgets = (0.3, 1.0) if KNOWN[name].trust == "local" else (5.0,)
    cases = [CASE | {"run": run, "epsilon": epsilon} for run in range(20) for epsilon in budgets]

    def said(task):
        return [(row["margin"], row["right"]) for row in (task(name, **case) for case in cases)]

    honest = said(run_pair)
    assert honest == said(run_pair)
    assert honest != said(with_half_noise)


def test_noise_differs_between_cases_and_records_only_where_the_run_does():
    draws = [noise_of("a", **CASE | {key: value}).random() for key, value in OTHER.items()]
    assert len({*draws, noise_of("a", **CASE).random(), noise_of("b", **CASE).random()}) == 7
    for kind in pair_cases.KINDS:
        one, same, other = (pair_of(kind, 1000, run, 0) for run in (0, 0, 1))
        assert (one.codes == same.codes).all()
        assert one.codes.shape == other.codes.shape == (1000, 2)
        assert (one.codes != other.codes).any()
        assert list(one.truth.edges) == [("x", "y")]


WORTH = ("HSIC", Hsic(), 1 / 3), ("Spearman", Spearman(), 2 / 5), ("Kendall", Kendall(), 2)


@pytest.mark.parametrize(("name", "proved", "share"), WORTH)
def test_what_a_published_system_is_worth_is_what_it_says(name, proved, share):
    """Two scores at epsilon each, with noise for the printed constant."""
    system, m = KNOWN[f"published-{name}"], 100_000
    printed = system.run.keywords["score"].sensitivity(m)
    assert 2 * proved.sensitivity(m) / printed == pytest.approx(share, rel=1e-3)
    words = {1 / 3: "a third of", 2 / 5: "two fifths of", 2: "twice"}
    assert system.really.startswith(words[share])
    found = system.run(synthetic_pair(400, rng=default_rng(0)), **BUDGET, rng=default_rng(0))
    assert (found.ledger.spent.epsilon, found.protects) == (pytest.approx(2), "test set")


@pytest.mark.parametrize("name", ["histogram", "histogram-RECI"])
def test_a_noisy_histogram_loses_no_more_than_it_pays_and_stops_at_no_data(name):
    """Replayed on neighbours and on strangers, with the same noisy counts."""
    data, ranges = synthetic_pair(300, rng=default_rng(0)), {"x": (-1, 1), "y": (-1, 1)}
    others = []
    for at, record in ((0, (1.0, 1.0)), (17, (-1.0, 1.0)), (200, (0.0, -0.9))):
        values = data.scaled
        values[at] = record
        others.append(Dataset.of_numbers(values, ranges))
    run = partial(KNOWN[name].run, **BUDGET)
    assert worst(replay(lambda of: run(of, rng=default_rng(1)), data, *others)) <= 1
    stranger = Dataset.of_numbers(np.zeros((300, 2)), ranges)
    replay(lambda of: run(of, rng=default_rng(1)), data, stranger)
    assert run(data, rng=default_rng(1)).ledger.spent.epsilon <= 1


def test_refusals_and_no_answer_count_as_a_coin():
    def refuses(pair, *, epsilon, delta, rng):
        raise ValueError("3 records are too few: take more")

    def silent(pair, *, epsilon, delta, rng):
        return None

    pair = pair_of("sine", 10, 0, 0)
    both = (PairSystem("x", "y", "none", run) for run in (refuses, silent))
    rows = [on_pair(system, pair, 1.0, default_rng(0)) for system in both]
    assert [row["right"] for row in rows] == [None, 0.5]
    assert rows[0]["why_not"].startswith("refused: ")
    cells = shares_of(pd.DataFrame(rows).assign(system="x"), ["system"])
    assert cells[["right", "silent"]].values.tolist() == [[0.5, 1.0]]
