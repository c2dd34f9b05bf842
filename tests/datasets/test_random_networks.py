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


def test_some_variables_may_have_many_levels():
    network = random_network("sparse", "mixed", 200, np.random.default_rng(0), most_levels=100)
    sizes = [len(of) for of in network.levels.values()]
    many = [k for k in sizes if k > 6]
    assert 20 <= len(many) <= 60  # 40 expected; outside by chance below 1e-3, and the seed is fixed
    assert min(many) >= 7
    assert 50 < max(many) <= 100
    same, usual = (
        random_network("sparse", "mixed", 9, np.random.default_rng(0), **how)
        for how in ({"most_levels": 6}, {})
    )
    assert same.levels == usual.levels
    assert same.parents == usual.parents
    with pytest.raises(ValueError, match="most_levels must be at least 6"):
        random_network("sparse", "mixed", 9, np.random.default_rng(0), most_levels=5)
