import networkx as nx
import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd import load, table_pc
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.marginals.fit_network import fit_network
from dpcgd.marginals.interactions import MeasuredMarginals, exactly
from dpcgd.marginals.table_pc import TableRelease


def exact_release(data, triples=()):
    """A release without noise, of pairs and some triples, with the true graph."""
    marginals = MeasuredMarginals(Tables(data), exactly)
    marginals.measure_pairs(1.0)
    for triple in triples:
        marginals.measure(triple, 1.0)
    found = table_pc(data, epsilon=1.0, rng=default_rng(0))
    return TableRelease(**{**vars(found), "marginals": marginals.without_data()})


def frequencies(data, child, parents):
    names = list(data.variables)
    counts = Tables(data).counts([names.index(v) for v in (*parents, child)])
    return counts / counts.sum(axis=-1, keepdims=True)


def test_without_noise_the_fit_is_the_frequencies():
    data = load("cancer", rng=default_rng(0))
    names = list(data.variables)
    family = tuple(sorted(map(names.index, ("Pollution", "Smoker", "Cancer"))))
    release = exact_release(data, [family])
    fitted = fit_network(release, rng=default_rng(1), dag=data.truth)
    for child, parents in fitted.network.parents.items():
        assert set(parents) == set(data.truth.predecessors(child))
        expected = frequencies(data, child, parents)
        assert fitted.network.tables[child] == pytest.approx(expected, abs=1e-9)
        size = Tables(data).counts([names.index(v) for v in (*parents, child)]).sum(-1)
        error = np.sqrt(expected * (1 - expected) / size[..., None])
        assert fitted.errors[child] == pytest.approx(error, rel=1e-6)


def test_errors_are_about_right():
    data = load("survey", rng=default_rng(0))
    off = []
    for seed in range(4):
        release = table_pc(data, epsilon=0.5, rng=default_rng(seed))
        fitted = fit_network(release, rng=default_rng(1), dag=data.truth)
        for child, parents in fitted.network.parents.items():
            if len(parents) < 2:
                exact = frequencies(data, child, parents)
                distance = fitted.network.tables[child] - exact
                off.append((distance / fitted.errors[child]).ravel())
    # Sampling is in the errors too but not in these distances, so they are below 1.
    assert 0.2 < np.sqrt(np.mean(np.concatenate(off) ** 2)) < 1.5


def test_a_fitted_network_can_be_sampled():
    data = load("asia", rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    fitted = fit_network(release, rng=default_rng(2))
    assert nx.is_directed_acyclic_graph(fitted.network.graph)
    again = fitted.network.sample(1000, rng=default_rng(3))
    assert again.levels == data.levels
    for table in fitted.network.tables.values():
        assert np.allclose(table.sum(axis=-1), 1)
        assert table.min() > 0


@pytest.mark.slow
def test_too_large_a_family_is_refused():
    data = load("alarm", n=100_000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    dag = nx.DiGraph()
    dag.add_nodes_from(data.variables)
    dag.add_edges_from((v, data.variables[-1]) for v in data.variables[:-1])
    with pytest.raises(ValueError, match="give a dag with fewer parents"):
        fit_network(release, rng=default_rng(2), dag=dag)
