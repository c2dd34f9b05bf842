"""Where variables stand in a drawing."""

import networkx as nx

from dpcgd.graphs.drawing import WIDEST, layered_positions


def test_many_variables_without_an_edge_make_no_wide_row():
    graph = nx.DiGraph([("a", "b")])
    graph.add_nodes_from(range(40 * WIDEST))
    places = layered_positions(graph)
    columns, layers = zip(*places.values(), strict=True)
    assert max(columns) - min(columns) < WIDEST
    assert len(set(places.values())) == len(places)
    assert places["a"][1] < places["b"][1] < min(places[v][1] for v in range(40 * WIDEST))
    assert max(layers) >= 40
