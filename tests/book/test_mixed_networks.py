"""Networks of numbers draw what they say, and effects survive that records are shortened."""

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.data.mixed_networks import (
    END,
    FAMILIES,
    GAUSSIAN_NETWORKS,
    gaussian_network,
    random_mixed_network,
)
from numpy.random import default_rng

from dpcgd.moments.clipped_moments import level_vectors, measure_moments, unshortened
from dpcgd.moments.interactions import exactly


@pytest.mark.parametrize("name", GAUSSIAN_NETWORKS)
def test_a_published_network_is_standardised_exactly(name):
    network = gaussian_network(name)
    assert np.allclose(np.diag(network.correlations), 1)
    drawn = network.sample(20_000, rng=default_rng(0)).scaled * END
    assert np.allclose(np.cov(drawn.T), network.correlations, atol=0.05)
    logs = np.log(network.sample(100, rng=default_rng(1), exponentials_to=200.0).scaled * 100 + 100)
    plain = network.sample(100, rng=default_rng(1)).scaled * END
    assert np.median(np.abs(logs - plain)) < 0.01  # parts are .006 wide there


@pytest.mark.parametrize("family", FAMILIES)
def test_random_networks_repeat_and_have_what_they_say(family):
    network = random_mixed_network(family, 12, default_rng(3))
    data = network.sample(5000, rng=default_rng(4))
    again = random_mixed_network(family, 12, default_rng(3)).sample(5000, rng=default_rng(4))
    assert (data.codes == again.codes).all()
    assert nx.is_directed_acyclic_graph(data.truth)
    assert (len(data.numbers) < 12) == (family == "mixed")
    v = [data.variables.index(name) for name in data.numbers]
    numbers = data.scaled[:, v] * END
    assert np.allclose(numbers.mean(axis=0), 0, atol=0.1)
    assert np.allclose(numbers.std(axis=0), 1, atol=0.15)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="ecoli70 or magic-niab"):
        gaussian_network("alarm")
    with pytest.raises(ValueError, match="take one of linear"):
        random_mixed_network("wild", 8, default_rng(0))


def test_moments_of_long_records_come_back():
    data = random_mixed_network("linear", 10, default_rng(5)).sample(100_000, rng=default_rng(6))
    clipped = measure_moments(data, exactly, 0.01, clipped=True)
    vectors = level_vectors(clipped)
    longest = sum((own**2).sum(axis=1).max() for own in vectors) ** 0.5
    whole = data.clipped_sums(vectors, bound=longest) / data.n
    bound = 0.9 * np.trace(whole) ** 0.5
    clipped.moments = data.clipped_sums(vectors, bound=bound) / data.n
    scores = np.ix_(range(0, 20, 2), range(0, 20, 2))
    before = np.abs(clipped.moments - whole)[scores].max()
    assert np.abs(unshortened(clipped, bound) - whole)[scores].max() < 0.1 * before
