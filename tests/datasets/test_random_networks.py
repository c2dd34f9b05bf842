import networkx as nx
import numpy as np
import pytest
from people import refused

from dpcgd.datasets import random_networks
from dpcgd.datasets.random_networks import MORE_TABLES, SHAPES, TABLES, random_network


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tables", TABLES + MORE_TABLES)
@pytest.mark.parametrize("d", [2, 5, 40])
def test_every_kind_is_a_network(shape, tables, d):
    rng = np.random.default_rng(d)
    network = random_network(shape, tables, d, rng)
    assert nx.is_directed_acyclic_graph(network.graph)
    assert len(network.graph) == d
    assert max(dict(network.graph.in_degree()).values()) <= random_networks.MOST_PARENTS
    for name, table in network.tables.items():
        assert table.shape == tuple(len(network.levels[v]) for v in (*network.parents[name], name))
        assert np.allclose(table.sum(axis=-1), 1)
        assert table.min() >= 0
    assert network.sample(50, rng=rng).codes.shape == (50, d)


def test_an_unknown_kind_and_too_few_levels_are_refused():
    rng, few = np.random.default_rng(0), {"a": ("0", "1")}
    refused("is none of", random_network, "ring", "weak", 5, rng)
    refused("is none of", random_network, "tree", "odd", 5, rng)
    refused("levels has 1 variables, not 5", random_network, "tree", "weak", 5, rng, levels=few)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tables", TABLES + MORE_TABLES)
def test_levels_may_be_given(shape, tables):
    levels = {"one": ("only",), "two": ("0", "1"), "ten": tuple("abcdefghij"), "six": range(6)}
    rng = np.random.default_rng(0)
    for _ in range(20):
        network = random_network(shape, tables, 4, rng, levels=levels)
        assert (list(network.levels.items()), network.parents["one"]) == (list(levels.items()), ())
        assert all("one" not in of for of in network.parents.values())
        assert network.sample(50, rng=rng).cardinalities == (1, 2, 10, 6)
        assert np.allclose(network.tables["ten"].sum(axis=-1), 1)


def test_what_seeds_draw_does_not_change():
    network = random_network("sparse", "mixed", 5, np.random.default_rng(0))
    assert [len(of) for of in network.levels.values()] == [3, 2, 2, 2, 2]
    three = ("v3", "v4", "v0")
    assert network.parents == {"v0": ("v4",), "v1": three, "v2": three, "v3": (), "v4": ()}
    assert network.tables["v0"].ravel()[:3] == pytest.approx([0.03820971, 0.71170017, 0.25009013])


def test_in_order_a_parent_pushes_one_way():
    rng, pushed_up = np.random.default_rng(0), []
    for _ in range(50):
        network = random_network("chain", "ordered", 2, rng)
        for child in filter(network.parents.get, network.parents):
            below = network.tables[child].cumsum(axis=-1)[:, :-1]
            ends = below[-1] - below[0]
            assert (ends > -1e-3).all() or (ends < 1e-3).all()
            pushed_up.append(bool((ends < 0).all()))
    assert len(pushed_up) > 20
    assert set(pushed_up) == {False, True}


def test_a_second_cause_only_adds():
    rng, seen = np.random.default_rng(0), 0
    for _ in range(50):
        network = random_network("dense", "causes", 4, rng)
        for child, of in network.parents.items():
            none = network.tables[child][..., 0]  # of the effect
            for axis in range(len(of)):
                assert (np.take(none, [0], axis) >= none - 1e-3).all()
            seen += len(of) > 1
    assert seen > 20


def test_some_levels_are_many():
    levels = random_networks.mixed_levels(300, np.random.default_rng(0))
    sizes = np.array([len(of) for of in levels.values()])
    assert (sizes.min(), sizes.max() <= 20) == (2, True)
    assert 0.05 < (sizes > 6).mean() < 0.4
    network = random_network("hubs", "any", 300, np.random.default_rng(0), levels=levels)
    assert network.graph.number_of_edges() > 200
