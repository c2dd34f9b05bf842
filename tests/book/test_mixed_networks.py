"""Networks of numbers draw what they say, and effects survive that records are shortened."""

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.data import mixed_networks as mixed
from numpy.random import default_rng
from people import refused

from benchmarks.effects import intervened


@pytest.mark.parametrize("name", mixed.GAUSSIAN_NETWORKS)
def test_a_published_network_is_standardised_exactly(name):
    network = mixed.gaussian_network(name)
    assert np.allclose(np.diag(network.covariance), 1)
    drawn = network.sample(20_000, rng=default_rng(0)).scaled * mixed.END
    assert np.allclose(np.cov(drawn.T), network.covariance, atol=0.05)
    logs = np.log(network.sample(100, rng=default_rng(1), exponentials_to=200.0).scaled * 100 + 100)
    plain = network.sample(100, rng=default_rng(1)).scaled * mixed.END
    assert np.median(np.abs(logs - plain)) < 0.01  # parts are .006 wide there


@pytest.mark.parametrize("family", mixed.FAMILIES)
def test_random_networks_repeat_and_have_what_they_say(family):
    network = mixed.random_mixed_network(family, 12, default_rng(3))
    data = network.sample(5000, rng=default_rng(4))
    again = mixed.random_mixed_network(family, 12, default_rng(3)).sample(5000, rng=default_rng(4))
    assert (data.codes == again.codes).all()
    assert nx.is_directed_acyclic_graph(data.truth)
    assert (len(data.numbers) < 12) == (family == "mixed")
    numbers = data.scaled[:, [data.variables.index(v) for v in data.numbers]] * mixed.END
    assert np.allclose([numbers.mean(axis=0), numbers.std(axis=0) - 1], 0, atol=0.1)
    assert (intervened(network, "v0", 1).values(9, rng=default_rng(5))["v0"] == 1).all()


def test_unknown_names_and_impossible_models_are_refused():
    rng = default_rng(0)
    refused("ecoli70 or magic-niab", mixed.gaussian_network, "alarm")
    refused("take one of linear", mixed.random_mixed_network, "wild", 8, rng)
    refused("at most 3 arcs", mixed.random_sem, 3, 4, rng=rng)
    refused("at least 1", mixed.random_sem(3, 2, rng=rng).sample, 0, rng=rng)
