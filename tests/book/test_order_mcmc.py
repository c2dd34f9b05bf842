"""Order chains against all 543 DAGs and all 24 orders of four variables."""

import itertools
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.systems import dag_searches as chains
from dpcgd_book.systems.tests_and_scores import BGe
from known_graphs import BIC, NAMES, all_dags, graph_score
from people import refused
from scipy.special import logsumexp

from dpcgd.graphs.cpdag import CPDAG

ANY = ~np.eye(4, dtype=bool)
DAGS = list(all_dags(4))
ORDERS = list(itertools.permutations(range(4)))


def four_columns(seed, n=25):
    """So few records that many DAGs stay probable."""
    values = np.random.default_rng(seed).normal(size=(n, 4))
    values[:, 2] += 0.7 * values[:, 0] + 0.5 * values[:, 1]
    values[:, 3] += 0.4 * values[:, 2]
    return BGe(values, NAMES)


def fits(dag, order):
    return all(order.index(NAMES.index(a)) < order.index(NAMES.index(b)) for a, b in dag.edges)


def limited(candidates):
    """DAGs of which each variable has at most one parent that is no candidate."""
    for dag in DAGS:
        arcs = nx.to_numpy_array(dag, nodelist=NAMES) > 0
        if ((arcs & ~candidates).sum(axis=0) <= 1).all():
            yield dag


SPACES = [ANY, np.zeros((4, 4), bool), np.array([[0, 1, 1, 0]] * 2 + [[0, 0, 0, 1]] * 2, bool)]


@pytest.mark.parametrize("space", range(len(SPACES)))
def test_tables_agree_with_a_sum_over_all_dags_of_an_order(space):
    score, dags = four_columns(0), list(limited(SPACES[space] & ANY))
    families = chains._families(score, SPACES[space])
    for order in ORDERS:
        scores = [graph_score(score, dag) for dag in dags if fits(dag, order)]
        under = [families[c].under(before) for c, before in chains._befores(order).items()]
        assert np.sum(under, axis=0) == pytest.approx([logsumexp(scores), max(scores)], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_chain_is_in_each_order_as_often_as_its_dags_are_probable(seed):
    score, at = four_columns(seed), dict.fromkeys(ORDERS, 0)
    chain = chains._Chain(chains._families(score, ANY), np.random.default_rng(seed))
    for _ in range(20_000):
        chain.step()
        at[tuple(chain.order)] += 1
    logs = [logsumexp([graph_score(score, dag) for dag in DAGS if fits(dag, o)]) for o in ORDERS]
    assert np.abs(np.array([*at.values()]) / 20_000 - np.exp(logs - logsumexp(logs))).max() < 0.03
    assert chain.best == pytest.approx(max(graph_score(score, dag) for dag in DAGS), rel=1e-12)


def test_the_best_of_a_restricted_space_is_found():
    score = four_columns(3, n=300)
    for space in SPACES:
        found = chains.order_mcmc(score, space, rng=np.random.default_rng(0))
        best = max(graph_score(score, dag) for dag in limited(space & ANY))
        assert found.score == pytest.approx(best, rel=1e-12)


BLIND = SimpleNamespace(separates=lambda x, y, given: True)
"""An oracle that finds everything independent: the first space is empty."""


def test_the_space_grows_until_the_best_dag_is_in_it():
    values = np.random.default_rng(4).normal(size=(2000, 4))
    values[:, 3] += values[:, :3].sum(axis=1)  # three parents, one more a round
    score = BGe(values, NAMES)
    once = chains.order_mcmc(score, np.zeros((4, 4), bool), rng=np.random.default_rng(0))
    found = chains.iterative_mcmc(score, BLIND, rng=np.random.default_rng(0))
    assert once.arcs[:, 3].sum() <= 1
    assert found.score == pytest.approx(max(graph_score(score, dag) for dag in DAGS), rel=1e-12)
    assert found.graph == CPDAG.from_dag(nx.DiGraph([("a", "d"), ("b", "d"), ("c", "d")]))


def test_too_many_candidates_are_refused_with_their_cure():
    rng, many = np.random.default_rng(0), chains.MOST_CANDIDATES + 2
    score, everyone = BIC(rng.normal(size=(20, many))), np.ones((many, many), bool)
    cure = "'x0' has 15 candidate parents, more than 14; leave some"
    refused(cure, chains.order_mcmc, score, everyone, rng=rng)
