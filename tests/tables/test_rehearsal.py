"""Rehearsals: a system on synthetic tables with the levels of the one to come."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
from numpy.random import default_rng
from refusals import refusals

from dpcgd import CPDAG, load, plan, rehearse, table_pc
from dpcgd.tables.rehearsal import Rehearsal, RehearsedRun

BIT = ["no", "yes"]
SCHEMA = {
    "smoke": BIT,
    "age": {"edges": [15, 25, 50], "missing": "unknown"},
    "pain": {"levels": ["none", "some", "much"], "ordered": True},
    "cough": BIT,
}


def seen_by(answer):
    """What a system is given that releases some graph, and the system."""
    seen = []

    def system(data, **how):
        seen.append((data, how))
        return SimpleNamespace(graph=CPDAG.from_dag(nx.DiGraph(answer(data))), answers=None)

    return seen, system


def test_the_twins_have_the_public_facts_of_the_table():
    seen, system = seen_by(lambda data: data.truth)
    budget, how = {"epsilon": 0.7, "delta": 1e-7}, {"system": system, "runs": 3, "alpha": 0.2}
    back = rehearse(SCHEMA, 50, rng=default_rng(0), **budget, **how)
    for data, how in seen:
        assert (data.n, data.variables) == (50, tuple(SCHEMA))
        assert data.levels["age"] == ("15 to 25", "25 to 50", "unknown")
        assert (data.ordered, dict(data.missing)) == ({"age", "pain"}, {"age": "unknown"})
        assert (how["epsilon"], how["delta"], how["alpha"]) == (0.7, 1e-7, 0.2)
    assert len({tuple(data.truth.edges) for data, _ in seen}) > 1
    frame = back.to_frame()
    assert (frame[["precision", "recall", "f1"]] == 1).all(axis=None)
    assert (frame["edges"] == [data.truth.number_of_edges() for data, _ in seen]).all()


def test_scores_are_of_edges_without_direction():
    runs = RehearsedRun(edges=4, drawn=3, right=2, untested=0), RehearsedRun(0, 0, 0, 0)
    scores = Rehearsal(runs, "").to_frame()[["precision", "recall", "f1"]]
    assert scores.to_numpy().tolist() == [[2 / 3, 1 / 2, 4 / 7], [1, 1, 1]]
    _, everything = seen_by(lambda data: itertools.combinations(data.variables, 2))
    back = rehearse(SCHEMA, 50, epsilon=1.0, rng=default_rng(0), system=everything, runs=4)
    assert all(run.drawn == 6 and run.right == run.edges for run in back.runs)
    assert any(run.edges < 6 for run in back.runs)
    _, system = seen_by(lambda data: [(y, x) for x, y in data.truth.edges])
    how = {"epsilon": 1.0, "rng": default_rng(0), "runs": 2}
    assert (rehearse(SCHEMA, 50, system=system, **how).to_frame()["f1"] == 1).all()


def test_a_plan_rehearses_itself():
    settings = {"epsilon": 0.8, "delta": 1e-7, "alpha": 0.05, "max_order": 1, "system": table_pc}
    one = plan(SCHEMA, 3000, **settings).rehearse(rng=default_rng(1), runs=2)
    assert one == rehearse(SCHEMA, 3000, rng=default_rng(1), runs=2, **settings)


def test_twins_of_a_public_table_are_its_records_and_have_its_true_graph():
    public = load("survey", n=40, rng=default_rng(1))
    seen, system = seen_by(lambda data: public.truth)
    how = {"system": system, "runs": 2, "public": public}
    back = rehearse(public.levels, 300, epsilon=0.5, rng=default_rng(0), **how)
    rows = {tuple(row) for row in public.codes.tolist()}
    for data, how in seen:
        assert (data.n, how["epsilon"]) == (300, 0.5)
        assert {tuple(row) for row in data.codes.tolist()} <= rows
    assert not np.array_equal(seen[0][0].codes, seen[1][0].codes)
    assert (back.to_frame()["f1"] == 1).all()
    assert "twins of survey" in back.title


def test_a_public_table_without_a_known_graph_is_held_against_a_run_without_noise():
    public = replace(load("survey", n=50_000, rng=default_rng(1)), truth=None)
    whole = table_pc(public, epsilon=1e6, rng=default_rng(2)).graph.skeleton
    back = rehearse(public.levels, 50_000, epsilon=50.0, rng=default_rng(0), runs=2, public=public)
    assert [run.edges for run in back.runs] == [len(whole)] * 2
    assert back.to_frame()["f1"].min() > 0.8


SMALL = load("asia", n=9, rng=default_rng(0))


def rehearsed(levels=SCHEMA, n=1000, **settings):
    return lambda: rehearse(levels, n, **{"epsilon": 1.0, "rng": default_rng(0), **settings})


test_a_rehearsal_of_what_cannot_be_run_is_refused = refusals(
    (rehearsed(public=SMALL), "has other variables or levels"),
    (rehearsed(public=pd.DataFrame()), "public must be a Dataset"),
    (rehearsed(SMALL), "this takes no data"),
    (rehearsed(runs=0), "runs must be a whole number, at least 1"),
    (rehearsed(rng=0), "rng must be a numpy Generator"),
    (rehearsed(system="table_pc"), "system must be one such as private_graph"),
    (rehearsed(epsilon=-1), "epsilon must be a positive finite number"),
)
