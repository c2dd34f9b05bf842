import networkx as nx
import numpy as np
import pytest

from dpcgd.datasets.random_networks import MOST_PARENTS, SHAPES, TABLES, random_network


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("d", [2, 5, 40])
def test_every_kind_is_a_network(shape, tables, d):
    rng = np.random.default_rng(d)
    network = random_network(shape, tables, d, rng)
    graph = network.graph
    assert nx.is_directed_acyclic_graph(graph)
    assert len(graph) == d
    assert max(dict(graph.in_degree()).values()) <= MOST_PARENTS
    for name, table in network.tables.items():
        of = [len(network.levels[v]) for v in (*network.parents[name], name)]
        assert table.shape == tuple(of)
        assert np.allclose(table.sum(axis=-1), 1)
        assert table.min() >= 0
    assert network.sample(50, rng=rng).codes.shape == (50, d)


def test_one_state_gives_one_network():
    one, two, other = (
        random_network("hubs", "mixed", 12, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one.parents == two.parents != other.parents


@pytest.mark.parametrize(("shape", "tables"), [("ring", "weak"), ("tree", "odd")])
def test_an_unknown_kind_is_refused(shape, tables):
    with pytest.raises(ValueError, match="is none of"):
        random_network(shape, tables, 5, np.random.default_rng(0))
