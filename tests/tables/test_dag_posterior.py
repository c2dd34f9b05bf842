"""Whole tables with noise, and graphs weighed by their likelihood: against plain definitions."""

import math

import networkx as nx
import numpy as np
import pytest
from known_graphs import all_dags
from known_tables import records
from numpy.random import default_rng
from people import refused
from scipy.special import gammaln, logsumexp
from scipy.stats import poisson

from dpcgd import Budget, BudgetSpent, Knowledge, dag_posterior, load
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.moments.interactions import MeasuredMarginals, NoisyTable, exactly, measure_table
from dpcgd.privacy.filters import BasicFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading import graph_posterior as compiled
from dpcgd.reading.graph_posterior import EDGE, UNLIKELY, GraphPosterior, best_graph
from dpcgd.reading.orientation import bits_of

DAGS = [np.array(bits_of(nx.to_numpy_array(dag) > 0)) for dag in all_dags(3)]
"""Every graph without cycles of three variables, as bits of the parents of each."""


def noisy_table(scale):
    """Three variables in a chain, 2,000 records, with noise."""
    rng = default_rng(3)
    first = rng.integers(0, 2, 2000)
    second = np.where(rng.random(2000) < 0.15, rng.integers(0, 3, 2000), first)
    third = np.where(rng.random(2000) < 0.8, rng.integers(0, 2, 2000), second % 2)
    table = np.zeros((2, 3, 2))
    np.add.at(table, (first, second, third), 1)
    return table + rng.laplace(scale=scale, size=table.shape)


def by_definition(released, counts, means, scale):
    """Log likelihood of each released number, and the expected count given it."""
    weights = poisson.logpmf(counts, means) - abs(released[:, None] - counts) / scale
    exact = logsumexp(weights, axis=1)
    return exact, np.exp(weights - exact[:, None]) @ counts


@pytest.mark.parametrize("scale", [0.2, 2.0, 20.0])
def test_the_likelihood_is_that_of_a_poisson_count_with_noise(scale):
    rng = default_rng(1)
    means = np.array([1e-7, 0.3, 4.0, 60.0, 900.0])
    released = rng.poisson(means) + rng.laplace(scale=scale, size=5) + [3 * scale, 0, 0, 0, 0]
    found = np.empty(5)
    likelihood = compiled.expected_counts(released, means, scale, found)
    exact, expected = by_definition(released, np.arange(4000), means[:, None], scale)
    assert likelihood == pytest.approx(exact.sum(), rel=1e-7)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("scale", [2.0, 130.0, 150.0, 1500.0, 20_000.0])
def test_the_likelihood_of_many_records_is_the_same(scale):
    mean, steps = 2e6, np.array([-6.0, -2.0, 0.0, 0.5, 3.0, 40.0])
    released = mean + steps * np.hypot(np.sqrt(mean), scale)
    found = np.empty(6)
    exact, expected = by_definition(released, np.arange(mean - 90_000, mean + 90_000), mean, scale)
    single = ((released[[i]], np.array([mean]), scale, found[i : i + 1]) for i in range(6))
    one_by_one = [compiled.expected_counts(*arguments) for arguments in single]
    np.testing.assert_allclose(one_by_one[:5], exact[:5], atol=0.15)
    np.testing.assert_allclose(found[:5], expected[:5], atol=0.05 * np.sqrt(mean))
    assert np.isfinite(one_by_one[5])


def test_a_graph_that_joins_everyone_implies_the_counts_themselves():
    levels, n = np.array([2, 3, 2]), 1000.0
    codes = np.array([*np.ndindex(2, 3, 2)], np.int64)
    counts = default_rng(0).random(12) + 0.1
    counts *= n / counts.sum()
    everyone = compiled.families(codes, levels, np.array([0, 1, 3]))[:2]
    nobody = compiled.families(codes, levels, np.array([0, 0, 0]))[:2]
    np.testing.assert_allclose(compiled.implied(counts, n, levels, *everyone), counts, rtol=1e-4)
    table = counts.reshape(2, 3, 2)
    single = [table.sum(axis=tuple({0, 1, 2} - {v})) / n for v in range(3)]
    independent = n * np.einsum("i,j,k->ijk", *single).ravel()
    np.testing.assert_allclose(compiled.implied(counts, n, levels, *nobody), independent, rtol=1e-4)


def test_the_search_finds_the_largest_bic_of_all_graphs():
    assert len(DAGS) == 25
    table = np.maximum(noisy_table(5.0), 0.5)

    def bic(parents):
        total = 0.0
        for v in range(3):
            others = tuple(u for u in range(3) if u != v and not parents[v] >> u & 1)
            family = table.sum(axis=others, keepdims=True)
            alone = family.sum(axis=v, keepdims=True)
            rows = family.size / table.shape[v]
            price = 0.5 * math.log(table.sum()) * rows * (table.shape[v] - 1)
            total += (family * np.log(family / alone)).sum() - price
        return total

    assert bic(best_graph(table)) == pytest.approx(max(map(bic, DAGS)), rel=1e-12)


def test_every_likely_graph_is_met_and_has_its_posterior():
    posterior = GraphPosterior(NoisyTable(2000, noisy_table(20.0), 20.0))
    odds = np.array([posterior.score(g) + EDGE * sum(map(int.bit_count, g.tolist())) for g in DAGS])
    exact = np.exp(odds - odds.max())
    exact /= exact.sum()
    graphs, weights = posterior.met(default_rng(0))
    found = [weights[(graphs == graph).all(axis=1)].sum() for graph in DAGS]
    assert 0.02 < max(exact) < 0.9, "an easy table would prove nothing"
    np.testing.assert_allclose(found, exact, atol=25 * math.exp(-UNLIKELY))


def test_averaging_is_the_integral_over_a_dirichlet_prior():
    counts = np.array([3.0, 0.0, 7.5, 1.0])
    prior = np.full(4, 3 / 4)
    best = (counts * np.log(np.where(counts > 0, counts, 1))).sum()
    beta = gammaln(prior + counts).sum() - gammaln(prior).sum()
    assert compiled.averaging(counts, prior) == pytest.approx(best - beta)


def test_noise_is_as_wide_as_a_replaced_record_needs():
    data, account = load("cancer", n=1000, rng=default_rng(0)), BasicFilter(Budget(1.0, 1e-6))
    how = {"account": account, "noise": SeededNoise(default_rng(1))}
    tables = [measure_table(data, epsilon=1e-4, **how).counts for _ in range(500)]
    # 16,000 draws, kurtosis 6: the standard error is 0.9 %; half the noise is 50 % off
    assert np.std(tables, axis=0).mean() == pytest.approx(math.sqrt(2) * 2e4, rel=0.07)
    assert account.ledger.spent.epsilon == pytest.approx(0.05)
    refused("would exceed", measure_table, data, epsilon=1.1, kind=BudgetSpent, **how)


def test_marginals_are_those_of_the_table_and_know_their_noise():
    data = load("survey", n=5000, rng=default_rng(0))
    exact = Tables(data).counts_many([tuple(range(data.d))])[0]
    released, rng = NoisyTable(data.n, exact, 3.0).released, default_rng(1)
    measured = MeasuredMarginals(Tables(data), exactly)
    for subset in [(1,), (0, 3), (2, 4, 5)]:
        measured.measure(subset, 1.0)
        expected = measured.released[subset].values
        np.testing.assert_allclose(released[subset].values, expected, atol=1e-12)
    noisy = [exact + rng.laplace(scale=3.0, size=exact.shape) for _ in range(300)]
    values = [NoisyTable(data.n, table, 3.0).released[0, 3].values for table in noisy]
    spread = np.sqrt(np.var(values, axis=0).mean())
    assert spread == pytest.approx(released[0, 3].deviation, rel=0.35)


def test_knowledge_holds_in_graph_and_in_what_is_drawn():
    data = load("survey", n=20_000, rng=default_rng(0))
    knowledge = Knowledge(required=[("A", "R")], forbidden=[("E", "O"), ("O", "E"), ("R", "T")])
    graph = dag_posterior(data, epsilon=1.0, rng=default_rng(1), knowledge=knowledge).graph
    assert ("A", "R") in graph.arrows
    assert frozenset("EO") not in graph.skeleton
    assert ("R", "T") not in graph.arrows
    forbidden, required = knowledge.arrays(data.variables)
    table = NoisyTable(data.n, Tables(data).counts_many([tuple(range(6))])[0] * 1.0, 2.0)
    met, _ = GraphPosterior(table, forbidden, required).met(default_rng(0), sweeps=50)
    assert len(met) > 5
    assert not (met & bits_of(forbidden)).any()
    assert not (~met & bits_of(required)).any()


def test_too_large_a_table_is_refused_before_anything_is_spent():
    sachs, how = load("sachs", n=100, rng=default_rng(0)), {"epsilon": 1.0, "rng": default_rng(0)}
    refused("the whole table has 177,147 cells of 11 variables", dag_posterior, sachs, **how)


@pytest.mark.parametrize("epsilon", [1e-120, 1e-290])
def test_an_epsilon_that_buys_only_noise_is_refused_before_it_is_spent(epsilon):
    data, account = load("cancer", n=9, rng=default_rng(0)), BasicFilter(Budget(1.0, 1e-6))
    refused("take a larger one", measure_table, data, epsilon=epsilon, account=account, noise=None)
    assert not account.ledger.events
    refused("take a larger one", dag_posterior, data, epsilon=epsilon, delta=0.01)


def test_two_copies_are_joined_and_a_variable_of_one_level_is_not():
    codes = default_rng(0).integers(0, 2, (500, 1)) * [1, 1, 0]
    release = dag_posterior(records(codes, (2, 2, 1)), epsilon=1.0, delta=1e-6, rng=default_rng(0))
    assert release.graph.skeleton == {frozenset(("v0", "v1"))}
