"""Systems join by a file; what they find is scored, repeated, and checked."""

import importlib
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from dpcgd_book.results import score_table, stored
from dpcgd_book.results.entry_check import check_entry
from dpcgd_book.systems import graph_systems as systems
from dpcgd_book.systems.graph_systems import System, on_many_levels, run_case, scored, scores

import dpcgd
from dpcgd.graphs.cpdag import CPDAG

ROOT = Path(__file__).resolve().parents[2]
FORK = (ROOT / "book" / "fork.md").read_text()
ENTRY = re.search(r'```python\n(""".*?)```', FORK, re.DOTALL)[1]
"""The system of fork.md."""

ASIA = {"network": "asia", "n": 20_000, "run": 0, "seed": 0}


@pytest.fixture
def joined(tmp_path, monkeypatch):
    """A checkout to which only the system of fork.md belongs."""
    folder = tmp_path / "benchmarks" / "systems"
    folder.mkdir(parents=True)
    (folder / "tree.py").write_text(ENTRY)
    monkeypatch.setenv(systems.FOLDER, str(folder))
    monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path / "results"))
    return tmp_path


def test_a_file_adds_a_row(joined, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    table = importlib.import_module("table")
    monkeypatch.setattr(table, "stored_folder", lambda: joined / "stored")
    cases = [c for c in table.plan() if c["network"] == "cancer" and c["n"] == 10_000]
    monkeypatch.setattr(table, "plan", lambda: [c for c in cases if c["run"] < 2])
    table.main(["--system", "tree"])
    rows = stored.rows_on_file(joined / "stored" / systems.HOME, "table")
    assert set(rows.system) == {"tree"}
    assert len(rows) == 14
    assert rows.F1.between(0, 1).all()
    table.main(["--system", "tree"])
    assert "14 of 14 cases on file, 0 rows of other code" in capsys.readouterr().out
    table.main(["--case", "tree cancer 1 10000 1"])
    row = rows[(rows.epsilon == 1) & (rows.run == 1)].iloc[0]
    told = re.search(r"F1 +(\S+) +(\S+)", capsys.readouterr().out)
    assert [float(x) for x in told.groups()] == pytest.approx([row.F1] * 2, abs=1e-4)


def test_rows_of_other_code_are_told_and_made_anew(joined, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    table = importlib.import_module("table")
    monkeypatch.setattr(table, "stored_folder", lambda: joined / "stored")
    few = [c for c in table.plan() if c["network"] == "cancer" and c["run"] == 0][:2]
    monkeypatch.setattr(table, "plan", lambda: few)
    table.main([])
    before = systems.code_of("tree")
    (joined / "benchmarks" / "systems" / "tree.py").write_text(ENTRY + "\n# another version\n")
    systems.known_in.cache_clear()
    systems.digest_of.cache_clear()
    assert systems.code_of("tree") != before
    capsys.readouterr()
    table.main([])
    assert "2 of 2 cases on file, 2 rows of other code" in capsys.readouterr().out
    table.main(["--system", "tree"])
    assert "0 of 2 cases on file, 2 rows of other code" in capsys.readouterr().out
    rows = stored.rows_on_file(joined / "stored" / systems.HOME, "table")
    assert set(rows.code.astype(str)) == {systems.code_of("tree")}
    systems.known_in.cache_clear()
    systems.digest_of.cache_clear()


def test_the_systems_of_the_book_have_all_families_and_one_name_each():
    known = systems.systems()
    families = {system.family for system in known.values()}
    assert {"test by test", "noisy gradients", "released tables", "local reports"} <= families
    assert {"synthetic records", "without privacy", "no look", "as published"} <= families
    for system in known.values():
        if system.family == "as published":
            assert system.guarantee == "claimed, not proved"
            assert system.really


def test_two_systems_of_one_name_are_refused(joined):
    folder = joined / "benchmarks" / "systems"
    (folder / "twin.py").write_text(ENTRY)
    systems.known_in.cache_clear()
    with pytest.raises(ValueError, match="there is a system 'tree'; rename one"):
        systems.systems()
    systems.known_in.cache_clear()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "two words"},
        {"guarantee": "surely"},
        {"run": None},
        {"yardstick": "MST"},
    ],
)
def test_an_entry_that_is_not_complete_is_refused(wrong):
    right = {"name": "x", "family": "y", "guarantee": "proved", "run": print}
    with pytest.raises(ValueError, match=right["name"] if "name" not in wrong else "two words"):
        System(**right | wrong)


@pytest.mark.parametrize("name", ["Laplace-PC", "EM-PC", "Priv-PC", "table_pc", "k-RR-reports"])
def test_a_run_comes_out_again_from_its_seed_and_half_the_noise_is_noticed(name):
    """Eight budgets; the graph, its tests and its edges together."""

    def graphs(times):
        cases = [run_case(name, epsilon=times * 0.25 * 2**k, **ASIA) for k in range(8)]
        return [(c["F1"], c["SHD"], c["edges"], c["tests"]) for c in cases]

    honest = graphs(1)
    assert honest == graphs(1)
    assert honest != graphs(2)


def test_a_refusal_and_a_run_without_end_have_no_graph_and_a_reason(monkeypatch):
    refused = run_case("table_pc", "alarm", 1000, 0.1, 0, 0)
    assert refused["F1"] is None
    assert refused["why_not"].startswith("refused: ")
    monkeypatch.setattr(systems, "PATIENCE", 0.05)
    monkeypatch.setattr(systems, "_warm", lambda system: None)
    data = dpcgd.load("asia", n=1000, rng=np.random.default_rng(0))

    def endless(data, **private):
        while True:
            pass

    found = scored(System("endless", "x", "none", endless), data, 1.0, 0, 0)
    assert found["F1"] is None
    assert "of processor time" in found["why_not"]


@pytest.mark.slow
def test_a_network_with_many_levels_is_drawn_by_its_run_and_read():
    at = {"d": 30, "n": 20_000, "epsilon": 1.0, "seed": 0}
    first, same, other = (on_many_levels("learned_pc", **at, run=run) for run in (0, 0, 1))
    assert first == same
    assert first != other
    assert first["why_not"] is None
    assert 7 <= first["levels"] <= 100
    assert first["precision"] > 0.5


HUNGRY = """
import numpy as np

from dpcgd_book.systems.graph_systems import System
from dpcgd.graphs.cpdag import CPDAG


def hungry(data, *, epsilon, delta, rng):
    if epsilon < 1:
        raise ValueError("no less than 1")
    return CPDAG(data.variables, np.ones((1_000, 1_000))[: data.d, : data.d] < 0)


SYSTEMS = [System("hungry", "x", "none", hungry)]
"""


def test_a_peak_of_memory_is_that_of_the_arrays_beside_the_records(joined):
    (joined / "benchmarks" / "systems" / "hungry.py").write_text(HUNGRY)
    systems.known_in.cache_clear()
    case = {"network": "cancer", "n": 200_000, "run": 0, "seed": 0}
    assert 8 <= systems.peak_of("hungry", epsilon=1.0, **case)["megabytes"] < 8.5
    refused = systems.peak_of("hungry", epsilon=0.5, **case)
    assert refused == {"megabytes": None, "why_not": "refused: no less than ..."}
    systems.known_in.cache_clear()


def test_scores_of_the_true_graph_are_the_best_there_are():
    truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    found = scores(CPDAG.from_dag(truth), truth)
    assert found.pop("SHD") == 0
    assert found.pop("edges") == 3
    assert all(value == 1.0 for value in found.values())


def test_an_honest_system_passes_and_its_check_says_how():
    found = check_entry(systems.systems()["Laplace-PC"], trials=40)
    assert set(found) == {"ledger by dp-accounting", "largest loss over its price", "audit"}
    assert float(found["largest loss over its price"]) <= 1
    assert "of one that spends 16" in found["audit"]


def peeks(data, *, epsilon, delta, rng):
    order = int(data.codes[:, 0].sum() % 2)
    return dpcgd.laplace_pc(data, epsilon=epsilon, delta=delta, rng=rng, max_order=order)


def spends_twice(data, *, epsilon, delta, rng):
    return dpcgd.laplace_pc(data, epsilon=2 * epsilon, delta=delta, rng=rng)


def no_ledger(data, *, epsilon, delta, rng):
    return dpcgd.laplace_pc(data, epsilon=epsilon, delta=delta, rng=rng).graph


@pytest.mark.parametrize(
    ("system", "why"),
    [(peeks, "through mechanisms only"), (spends_twice, "promises"), (no_ledger, "no release")],
)
def test_what_would_be_refused(system, why):
    with pytest.raises(ValueError, match=why):
        check_entry(System("x", "y", "proved", system), trials=20)


def test_means_over_networks_count_a_refusal_as_the_empty_graph():
    rows = pd.DataFrame(
        {
            "system": ["s", "s", "s", "s", "empty"],
            "network": ["a", "a", "b", "b", "b"],
            "n": 100,
            "epsilon": [1.0, 1.0, 1.0, 1.0, np.inf],
            "run": [0, 1, 0, 1, 0],
            "F1": [0.5, 0.7, None, None, 0.0],
            "SHD": [2, 4, None, None, 9],
        }
    )
    for name in {*score_table.MEASURES} - {"F1", "SHD"}:
        rows[name] = 1.0
    cells = score_table.cells_of(rows, {"both": ["a", "b"], "more": ["a", "b", "c"]}, ["s"])
    both = cells[(cells.network == "both") & (cells.system == "s")].iloc[0]
    assert pytest.approx(both.SHD) == (3 + 9) / 2
    alone = score_table.cells_of(rows[rows.system == "s"], {"both": ["a", "b"]}, ["s"])
    assert alone[alone.network == "both"].F1.tolist() == pytest.approx([0.3])
    assert both["F1"] == pytest.approx(0.3)
    assert both.error == pytest.approx(0.05)
    assert both.runs == 2
    assert both.refused == 1
    assert "more" not in set(cells.network)


def test_how_far_a_system_is_behind_is_paired_by_records():
    f1 = {"first": [0.9, 0.7], "second": [0.8, 0.6]}
    rows = pd.DataFrame(
        [
            {"system": s, "network": "a", "n": 100, "epsilon": 1.0, "run": run, "F1": of[run]}
            for s, of in f1.items()
            for run in (0, 1)
        ]
    )
    for name in score_table.MEASURES[1:]:
        rows[name] = 1.0
    cells = score_table.cells_of(rows, {}, list(f1)).set_index("system")
    assert cells.behind.to_dict() == pytest.approx({"first": 0.0, "second": 0.1})
    assert cells["behind error"].max() == pytest.approx(0.0, abs=1e-12)


def test_the_table_of_the_page_is_plain_html_that_carries_its_data():
    rows = pd.DataFrame(
        {"system": ["s", "<t>"], "network": "a", "n": 100, "epsilon": [1.0, np.inf], "run": 0}
        | dict.fromkeys(score_table.MEASURES, 0.5)
    )
    heads = [name for name in score_table.COLUMNS if name in score_table.MEASURES]
    assert heads == score_table.MEASURES, "cells stand under their own heads"
    page = score_table.score_table(
        score_table.cells_of(rows, {"all": ["a"]}, ["s"]),
        shown={"network": "all", "n": 100, "epsilon": 1.0},
        families={"s": "x", "<t>": "y"},
        examples={"all": "a"},
        title="scores",
    )
    assert page.count("<tr>") == 3
    assert {len(re.findall("<t[hd]>", row)) for row in page.split("<tr>")[1:]} == {15}
    assert "s a 1 100 0" in page
    assert "&lt;t&gt;" in page
    assert "&lt;t&gt; a inf 100 0" in page
    assert "NaN" not in page
    assert "Infinity" not in page
