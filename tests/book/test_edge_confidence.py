import dataclasses

import pytest
from dpcgd_book.systems.edge_confidence import edge_confidence
from exact_pairs import marginals_of
from numpy.random import default_rng

from dpcgd import Knowledge, load, table_pc
from dpcgd.graphs.pc_search import search
from dpcgd.tables.table_pc import TableOracle


def test_without_noise_every_edge_comes_again():
    data = load("cancer", rng=default_rng(0))
    marginals = marginals_of(data)
    graph = search(TableOracle(marginals), data.variables, max_order=2).graph
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    release = dataclasses.replace(release, graph=graph, marginals=marginals)
    assert set(edge_confidence(release, runs=3, rng=default_rng(0)).values()) == {1.0}


@pytest.mark.slow
def test_shares_are_of_the_runs_and_cover_the_released_edges():
    release = table_pc(load("asia", rng=default_rng(0)), epsilon=0.3, rng=default_rng(1))
    found = edge_confidence(release, runs=20, rng=default_rng(2))
    assert found == edge_confidence(release, runs=20, rng=default_rng(2))
    assert release.graph.skeleton <= set(found)
    assert all(share * 20 == pytest.approx(round(share * 20)) for share in found.values())
    assert found[frozenset(("bronc", "dysp"))] == 1.0


def test_knowledge_and_order_are_those_of_the_run():
    data, known = load("survey", rng=default_rng(0)), Knowledge(required=[("A", "S")])
    release = table_pc(data, epsilon=1.0, rng=default_rng(1), knowledge=known)
    found = edge_confidence(release, runs=5, rng=default_rng(2))
    assert found[frozenset("AS")] == 1.0
    marginal = table_pc(data, epsilon=1.0, rng=default_rng(1), max_order=0)
    assert len(edge_confidence(marginal, runs=5, rng=default_rng(2))) > len(found)
