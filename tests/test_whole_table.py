"""The experiment with whole tables: its likelihood, its searches and its noise, by definition."""

import importlib
import itertools
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from numpy.random import default_rng
from scipy.stats import poisson

from dpcgd import load

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def experiment():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("whole_table")


@pytest.fixture(scope="module")
def dags():
    """Every graph without cycles of three variables, as bits of the parents of each."""
    found = []
    for parents in itertools.product(range(8), repeat=3):
        arcs = [(u, v) for v in range(3) for u in range(3) if parents[v] >> u & 1]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            found.append(np.array(parents, np.int64))
    assert len(found) == 25
    return found


def noisy_table(scale):
    """Three variables in a chain, 2,000 records, with noise."""
    rng = default_rng(3)
    first = rng.integers(0, 2, 2000)
    second = np.where(rng.random(2000) < 0.15, rng.integers(0, 3, 2000), first)
    third = np.where(rng.random(2000) < 0.8, rng.integers(0, 2, 2000), second % 2)
    table = np.zeros((2, 3, 2))
    np.add.at(table, (first, second, third), 1)
    return table + rng.laplace(scale=scale, size=table.shape)


@pytest.mark.parametrize("scale", [0.2, 2.0, 20.0])
def test_the_likelihood_is_that_of_a_poisson_count_with_noise(experiment, scale):
    rng = default_rng(1)
    means = np.array([1e-7, 0.3, 4.0, 60.0, 900.0])
    released = rng.poisson(means) + rng.laplace(scale=scale, size=5) + [3 * scale, 0, 0, 0, 0]
    found = np.empty(5)
    likelihood = experiment.expected_counts(released, means, scale, found)
    counts = np.arange(4000)
    weights = poisson.logpmf(counts, means[:, None]) - abs(released[:, None] - counts) / scale
    weights = np.exp(weights)
    assert likelihood == pytest.approx(np.log(weights.sum(axis=1)).sum(), rel=1e-7)
    np.testing.assert_allclose(found, weights @ counts / weights.sum(axis=1), rtol=1e-5, atol=1e-9)


def test_a_graph_that_joins_everyone_implies_the_counts_themselves(experiment):
    levels, n = np.array([2, 3, 2]), 1000.0
    codes = np.array([*np.ndindex(2, 3, 2)], np.int64)
    counts = default_rng(0).random(12) + 0.1
    counts *= n / counts.sum()
    everyone = experiment.families(codes, levels, np.array([0, 1, 3]))
    nobody = experiment.families(codes, levels, np.array([0, 0, 0]))
    np.testing.assert_allclose(experiment.implied(counts, n, levels, *everyone), counts, rtol=1e-4)
    table = counts.reshape(2, 3, 2)
    single = [table.sum(axis=tuple({0, 1, 2} - {v})) / n for v in range(3)]
    independent = n * np.einsum("i,j,k->ijk", *single).ravel()
    np.testing.assert_allclose(
        experiment.implied(counts, n, levels, *nobody), independent, rtol=1e-4
    )


def test_the_search_finds_the_largest_bic_of_all_graphs(experiment, dags):
    table = np.maximum(noisy_table(5.0), 0.5)

    def bic(parents):
        total = 0.0
        for v in range(3):
            family = table.sum(
                axis=tuple(u for u in range(3) if u != v and not parents[v] >> u & 1)
            )
            within = tuple(u for u in range(3) if u == v or parents[v] >> u & 1)
            alone = family.sum(axis=within.index(v), keepdims=True)
            rows = family.size / table.shape[v]
            price = 0.5 * math.log(table.sum()) * rows * (table.shape[v] - 1)
            total += (family * np.log(family / alone)).sum() - price
        return total

    best = experiment.best_graph(table)
    assert bic(best) == pytest.approx(max(map(bic, dags)), rel=1e-12)


def test_graphs_are_drawn_as_often_as_they_are_likely(experiment, dags):
    posterior = experiment.Posterior(noisy_table(20.0), 2000, 20.0)
    edges = [sum(int(of).bit_count() for of in graph) for graph in dags]
    weights = [posterior.fitted(graph)[0] for graph in dags] + experiment.EDGE * np.array(edges)
    weights = np.exp(weights - max(weights))
    weights /= weights.sum()
    drawn = posterior.drawn(default_rng(0), draws=20_000)
    often = [(drawn == graph).all(axis=1).mean() for graph in dags]
    assert 0.02 < max(weights) < 0.9, "an easy table would prove nothing"
    np.testing.assert_allclose(often, weights, atol=0.03)
    wrong = np.exp(np.log(weights) / 2)
    assert abs(often - wrong / wrong.sum()).max() > 0.03, "a temperature of two is noticed"


def test_noise_is_as_wide_as_a_replaced_record_needs(experiment, monkeypatch):
    class Noise:
        widths = []  # noqa: RUF012

        def laplace(self, scale, size):
            self.widths.append((scale, size))
            raise StopIteration

    data = load("cancer", n=100, rng=default_rng(0))
    with pytest.raises(StopIteration):
        experiment.whole_table(data, 0.5, Noise())
    assert Noise.widths == [(2 / 0.5, data.cardinalities)]
