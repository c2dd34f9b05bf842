"""One release: every reading takes whatever has been measured, and refuses what has not."""

import numpy as np
import pytest
from numpy.random import default_rng
from people import refused

import dpcgd
from dpcgd import Knowledge, climb, fit_network, load, priv_pc, private_graph, read, read_release

MEASURE = [private_graph, dpcgd.dag_posterior, dpcgd.graph_from_moments, dpcgd.table_pc]


@pytest.fixture(scope="module", params=MEASURE, ids=lambda system: system.__name__)
def release(request):
    data = load("survey", n=5_000, rng=default_rng(0))
    return request.param(data, epsilon=0.5, rng=default_rng(1))


@pytest.mark.slow
def test_every_reading_takes_it(release, tmp_path):
    pairs = {frozenset(pair) for pair in release.pair_status()}
    assert set(release.probabilities) == pairs
    assert fit_network(release, rng=default_rng(2), redraws=2).network.levels == release.levels
    assert climb(release).variables == release.graph.variables
    release.save(tmp_path / "receipt.json")
    again = read_release(tmp_path / "receipt.json")
    assert (again, read(again)) == (release, read(release))


@pytest.mark.slow
def test_what_is_read_is_free(release):
    spent, graphs = release.ledger, [read(release, precision=p) for p in (None, 0.99, 0.5, "f1")]
    assert release.ledger is spent
    sizes = [len(graph.skeleton) for graph in graphs]
    assert sizes[1] <= sizes[2]
    assert graphs[3].skeleton
    for graph in graphs:
        assert graph.certainty.edges == graphs[0].certainty.edges


@pytest.mark.slow
def test_other_knowledge_may_be_tried(release):
    free = read(release, precision="f1")
    start, end = sorted(free.skeleton, key=sorted)[0]
    apart = Knowledge(forbidden=[(start, end), (end, start)])
    without = read(release, precision="f1", knowledge=apart)
    assert frozenset((start, end)) not in without.skeleton
    forced = read(release, knowledge=Knowledge(required=[(start, end)]))
    assert (start, end) in forced.arrows
    assert forced.certainty.edges[frozenset((start, end))] == 1.0


def test_knowledge_of_the_run_is_that_of_its_readings():
    data, known = load("survey", n=5_000, rng=default_rng(0)), Knowledge(forbidden=[("A", "E")])
    release = private_graph(data, epsilon=1.0, rng=default_rng(1), knowledge=known)
    assert read(release) == release.graph
    assert ("A", "E") not in read(release, precision=0.01).arrows


@pytest.mark.parametrize("precision", [0, 1.5, "most", np.nan])
def test_a_precision_that_is_none_is_refused(release, precision):
    refused("precision must be above 0 and at most 1, or 'f1'", read, release, precision=precision)


@pytest.mark.parametrize("reading", [read, climb, lambda r: fit_network(r, rng=default_rng(2))])
def test_answers_to_tests_hold_no_moments(reading):
    asked = priv_pc(load("cancer", rng=default_rng(0)), epsilon=1.0, rng=default_rng(1))
    refused("holds a graph and no moments, for priv_pc measured none", reading, asked)


@pytest.mark.filterwarnings("ignore:the edge model was trained")
def test_edges_that_are_hardly_likely_get_no_direction():
    """Of independent columns hundreds of edges have the largest expected F1; none is likely."""
    codes = default_rng(0).integers(0, 2, (40, 60))
    data = dpcgd.Dataset(codes, {f"v{i}": ("no", "yes") for i in range(60)})
    settings = {"epsilon": 0.05, "rng": default_rng(1), "precision": "f1"}
    free = dpcgd.graph_from_moments(data, **settings)
    likely = [free.probabilities[edge] for edge in free.graph.skeleton]
    assert len(likely) > 300
    assert max(likely) < 0.1
    assert not free.graph.arrows
