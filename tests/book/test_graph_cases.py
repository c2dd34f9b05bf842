"""Systems join by a file; what they release is scored, repeated, and checked."""

import json
import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from dpcgd_book.results.graph_scores import scores
from dpcgd_book.results.stored import rows_on_file
from people import refused

import dpcgd
from benchmarks import entries, graph_cases, score_table, table
from benchmarks.entry_check import check_entry
from benchmarks.graph_cases import System, run_case, scored, systems
from dpcgd.constraint.laplace_pc import pc
from dpcgd.graphs.cpdag import CPDAG

FORK = (Path(__file__).resolve().parents[2] / "book" / "fork.md").read_text()
ENTRY = re.search(r'```python\n(""".*?)```', FORK, re.DOTALL)[1]
"""The system of fork.md."""


@pytest.fixture
def joined(folder_of_entry):
    """A folder of systems to which only that of fork.md belongs, and a table without rows."""
    yield folder_of_entry("systems/tree.py", ENTRY)
    entries._files_of.cache_clear()
    entries._digest.cache_clear()


def test_a_file_adds_a_row_and_rows_of_other_code_are_made_anew(joined, monkeypatch, capsys):
    cases = [c for c in table.Table().plan() if c["network"] == "cancer" and c["n"] == 10_000]
    few = [case for case in cases if case["run"] < 2]
    monkeypatch.setattr(table.Table, "plan", lambda self: few)
    table.main(["--system", "tree"])
    rows = rows_on_file(joined.parents[1] / "stored" / entries.HOME, "table")
    assert rows.system.tolist() == ["tree"] * 14
    assert rows.F1.between(0, 1).all()
    table.main(["--case", "tree cancer 1 10000 1"])
    row = rows[(rows.epsilon == 1) & (rows.run == 1)].iloc[0]
    shown = re.search(r"F1 +(\S+) +(\S+)", capsys.readouterr().out)
    assert [float(x) for x in shown.groups()] == pytest.approx([row.F1] * 2, abs=1e-4)
    (joined / "tree.py").write_text(ENTRY + "\n# another version\n")
    entries._digest.cache_clear()
    table.main([])
    assert "14 of 14 cases on file, 14 rows of other code" in capsys.readouterr().out
    table.main(["--system", "tree"])
    assert "0 of 14 cases on file, 14 rows of other code" in capsys.readouterr().out
    table.main(["--system", "tree"])
    assert "14 of 14 cases on file, 0 rows of other code" in capsys.readouterr().out


def test_two_systems_of_one_name_are_refused(joined):
    (joined / "twin.py").write_text(ENTRY)
    refused("there is a system 'tree'; rename one", systems)


def test_a_published_system_says_what_its_guarantee_is_worth():
    for system in systems().values():
        if system.family == "as published":
            assert system.guarantee == "claimed, not proved"
            assert system.really


def test_an_entry_that_is_not_complete_is_refused():
    right = {"name": "x", "family": "y", "guarantee": "proved", "run": print}
    wrong = {"name": "two words", "guarantee": "surely", "run": None, "yardstick": "MST"}
    for name, value in wrong.items():
        refused("hyphens|one of|give a callable", System, **right | {name: value})


@pytest.mark.parametrize("name", ["Laplace-PC", "EM-PC", "Priv-PC", "table_pc", "k-RR-reports"])
def test_a_run_comes_out_again_from_its_seed_and_half_the_noise_is_noticed(name):
    """Eight budgets; the graph, its tests and its edges together."""

    def graphs(times):
        cases = [run_case(name, "asia", 20_000, times * 0.25 * 2**k, 0, 0) for k in range(8)]
        return [(c["F1"], c["SHD"], c["edges"], c["tests"]) for c in cases]

    honest = graphs(1)
    assert honest == graphs(1)
    assert honest != graphs(2)


def test_a_refusal_and_a_run_without_end_have_no_graph_and_a_reason(monkeypatch):
    row = run_case("table_pc", "alarm", 1000, 0.1, 0, 0)
    assert row["F1"] is None
    assert row["why_not"].startswith("refused: ")
    monkeypatch.setattr(entries, "PATIENCE", 0.05)
    monkeypatch.setattr(graph_cases, "_warm", lambda system: None)
    data = dpcgd.load("asia", n=1000, rng=np.random.default_rng(0))

    def endless(data, **private):
        while True:
            pass

    row = scored(System("endless", "x", "none", endless), data, 1.0, 0, 0)
    assert row["F1"] is None
    assert "of processor time" in row["why_not"]


def test_scores_of_the_true_graph_are_the_best_there_are():
    truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    best = scores(CPDAG.from_dag(truth), truth)
    assert (best.pop("SHD"), best.pop("edges")) == (0, 3)
    assert set(best.values()) == {1.0}


@pytest.mark.parametrize("name", ["Laplace-PC", "Priv-PC"])
def test_an_honest_system_passes_its_check(name):
    report = check_entry(systems()[name], trials=40)
    assert float(report["largest loss over its price"]) <= 1
    assert float(report["ledger by dp-accounting"].split()[0]) <= 1
    assert "of one that spends 16" in report["audit"]


def test_a_system_that_looks_past_its_mechanisms_is_refused():
    def peeks(data, **private):
        return dpcgd.laplace_pc(data, **private, max_order=int(data.codes[:, 0].sum() % 2))

    def pays_for_show(data, *, rng, **private):
        return replace(dpcgd.laplace_pc(data, rng=rng, **private), graph=pc(data).graph)

    for looking in (peeks, pays_for_show):
        refused("mechanisms only", check_entry, System("x", "y", "proved", looking), trials=20)


def table_of(**columns):
    """Rows of runs, with 1 in all scores that are not given."""
    return pd.DataFrame({"n": 100} | dict.fromkeys(score_table.MEASURES, 1.0) | columns)


def test_means_over_networks_count_a_refusal_as_the_empty_graph():
    cases = {"system": [*"ssss", "empty"], "network": [*"aabbb"], "run": [0, 1, 0, 1, 0]}
    results = {"F1": [0.5, 0.7, None, None, 0.0], "SHD": [2, 4, None, None, 9]}
    rows = table_of(**cases, **results, epsilon=[1.0] * 4 + [np.inf])
    cells = score_table.cells_of(rows, {"both": ["a", "b"], "more": ["a", "b", "c"]}, ["s"])
    both = cells[(cells.network == "both") & (cells.system == "s")].iloc[0]
    expected = {"SHD": (3 + 9) / 2, "F1": 0.3, "error": 0.05, "runs": 2, "refused": 1}
    assert both[[*expected]].to_dict() == pytest.approx(expected)
    assert "more" not in set(cells.network)
    alone = score_table.cells_of(rows[rows.system == "s"], {"both": ["a", "b"]}, ["s"])
    assert alone[alone.network == "both"].F1.tolist() == pytest.approx([0.3])


def test_a_page_has_what_its_script_reads():
    rows = table_of(system=["s", "empty"], network=["a", "a"], epsilon=[1.0, np.inf], run=[0, 0])
    html = score_table.score_table(
        score_table.cells_of(rows, {"both": ["a"]}, ["s"]),
        shown={"network": "a", "n": 100, "epsilon": 1.0},
        families={"s": "test by test", "empty": "no look"},
        examples={"both": "a"},
        title="",
    )
    told = json.loads(re.search(r"<script[^>]*>(.*)</script>", html)[1])
    script = (Path(__file__).resolve().parents[2] / "_static" / "scores.js").read_text()
    for name, part in re.findall(r"told\.(\w+)(?:\.(\w+))?", script):
        assert name in told
        assert name != "shown" or part in told["shown"]
