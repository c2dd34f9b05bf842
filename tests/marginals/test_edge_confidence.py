import dataclasses

import pytest
from numpy.random import default_rng

from dpcgd import Knowledge, load, table_pc
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.graphs.pc_search import search
from dpcgd.marginals.edge_confidence import edge_confidence
from dpcgd.marginals.interactions import ExactMarginals
from dpcgd.marginals.table_pc import TableOracle


def test_without_noise_every_edge_comes_again():
    data = load("cancer", rng=default_rng(0))
    marginals = ExactMarginals(Tables(data))
    marginals.measure_pairs(1.0)
    graph = search(TableOracle(marginals), data.variables, max_order=2).graph
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    release = dataclasses.replace(release, graph=graph, marginals=marginals)
    assert set(edge_confidence(release, runs=3, rng=default_rng(0)).values()) == {1.0}


def test_shares_are_of_the_runs_and_cover_the_released_edges():
    data = load("asia", rng=default_rng(0))
    release = table_pc(data, epsilon=0.3, rng=default_rng(1))
    found = edge_confidence(release, runs=20, rng=default_rng(2))
    assert found == edge_confidence(release, runs=20, rng=default_rng(2))
    assert release.graph.skeleton <= set(found)
    assert all(share * 20 == pytest.approx(round(share * 20)) for share in found.values())
    assert found[frozenset(("bronc", "dysp"))] == 1.0


def test_knowledge_and_order_are_those_of_the_call():
    data = load("survey", rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    known = Knowledge(required=[("A", "S")])
    found = edge_confidence(release, runs=5, rng=default_rng(2), knowledge=known)
    assert found[frozenset("AS")] == 1.0
    all_joined = edge_confidence(release, runs=5, rng=default_rng(2), max_order=0)
    assert len(all_joined) > len(found)
