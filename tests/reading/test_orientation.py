"""Arrows from released pairs: what is told apart, what knowledge forbids, and how sure it is."""

import itertools

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred
from exact_pairs import marginals_of
from hypothesis import given, settings
from hypothesis import strategies as st
from known_tables import records

from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.moments.interactions import Marginals
from dpcgd.reading import orientation
from dpcgd.reading.orientation import arrow_confidence, collider_log_odds, orient


def rng(seed=0):
    return np.random.default_rng(seed)


def noisy(data, deviation, seed=0) -> Marginals:
    """All pairs with noise of this deviation on each mean."""
    return marginals_of(data, measure=blurred(deviation * data.n, rng(seed)))


def arcs_of(data) -> np.ndarray:
    return nx.to_numpy_array(data.truth, nodelist=data.variables, weight=None) > 0


def skeleton(data) -> np.ndarray:
    return arcs_of(data) | arcs_of(data).T


def joined_by(*edges) -> np.ndarray:
    """Of three variables."""
    graph = nx.empty_graph(3)
    graph.add_edges_from(edges)
    return nx.to_numpy_array(graph) > 0


def only(*arc) -> np.ndarray:
    """This arc of three variables."""
    found = NOTHING.copy()
    found[arc] = True
    return found


def flipped(codes, share, r):
    return np.where(r.random(len(codes)) < share, 1 - codes, codes)


def collider(r):
    a, b = r.integers(0, 2, (2, 50_000))
    return np.column_stack([a, flipped(a | b, 0.1, r), b])


def chain(r):
    a = r.integers(0, 2, 50_000)
    c = flipped(a, 0.2, r)
    return np.column_stack([a, c, flipped(c, 0.2, r)])


def released(codes) -> Marginals:
    return noisy(records(codes, (2, 2, 2)), 1e-4)


NOTHING = np.zeros((3, 3), bool)
PATH = joined_by((0, 1), (1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_strong_colliders_and_chains_are_told_apart(seed):
    meet, pass_on = released(collider(rng(seed))), released(chain(rng(seed)))
    assert collider_log_odds(meet, PATH)[0, 1, 2] > 2
    assert collider_log_odds(pass_on, PATH)[0, 1, 2] < -2
    into = orient(meet, PATH, NOTHING)
    assert np.argwhere(into & ~into.T).tolist() == [[0, 1], [2, 1]]
    assert (orient(pass_on, PATH, NOTHING) == PATH).all()


def test_the_order_of_the_columns_does_not_matter_to_the_odds():
    codes = collider(rng())
    for order in itertools.permutations(range(3)):
        a, b, c = map(order.index, range(3))
        joined = joined_by((a, b), (b, c))
        (odds,) = collider_log_odds(released(codes[:, order]), joined).values()
        assert odds > 2


def test_only_two_that_are_not_joined_can_show_a_collider():
    everything = ~np.eye(3, dtype=bool)
    marginals = released(collider(rng()))
    assert collider_log_odds(marginals, everything) == {}
    assert (orient(marginals, everything, NOTHING) == everything).all()


def test_nothing_joined_has_no_arrows():
    assert not orient(released(chain(rng())), NOTHING, NOTHING).any()
    assert not arrow_confidence(released(chain(rng())), NOTHING).any()


def test_what_is_forbidden_does_not_come_out_and_what_follows_does():
    """1 -> 0 is forbidden in a chain without direction: then 0 -> 1 -> 2."""
    marginals = released(chain(rng()))
    found = orient(marginals, PATH, only(1, 0))
    assert np.argwhere(found).tolist() == [[0, 1], [1, 2]]
    sure = arrow_confidence(marginals, PATH, only(1, 0))
    assert (sure[0, 1], sure[1, 0]) == (1, 0)


def test_a_collider_that_is_forbidden_is_none():
    found = orient(released(collider(rng())), PATH, only(0, 1))
    assert (found[0, 1], found[1, 0]) == (False, True)


def test_between_a_pair_that_was_never_looked_at_nothing_meets_for_sure():
    sure = arrow_confidence(released(collider(rng())), PATH, joined_by((0, 2)))
    assert not sure.any()


@settings(max_examples=15)
@given(st.sampled_from(SHAPES), st.sampled_from(TABLES), st.integers(4, 12), st.integers(0, 99))
def test_arrows_are_edges_of_the_skeleton_and_close_no_cycle(shape, tables, d, seed):
    data = random_network(shape, tables, d, rng(seed)).sample(2_000, rng=rng(seed))
    joined = skeleton(data)
    arcs = orient(noisy(data, 0.01), joined, joined & False)
    assert ((arcs | arcs.T) == joined).all()
    arrows = nx.from_numpy_array(arcs & ~arcs.T, create_using=nx.DiGraph)
    assert nx.is_directed_acyclic_graph(arrows)


@settings(max_examples=15)
@given(st.integers(0, 99), st.data())
def test_knowledge_of_a_true_order_is_never_broken(seed, draw):
    data = random_network("dense", "mixed", 8, rng(seed)).sample(2_000, rng=rng(seed))
    true = arcs_of(data)
    known = np.array(draw.draw(st.lists(st.booleans(), min_size=64, max_size=64))).reshape(8, 8)
    forbidden = true.T & known
    arcs = orient(noisy(data, 0.01), true | true.T, forbidden)
    assert not (arcs & forbidden).any()
    assert arcs[true & known.T].all()


def test_one_release_has_one_answer():
    data = random_network("dense", "mixed", 10, rng(1)).sample(5_000, rng=rng(2))
    marginals, joined = noisy(data, 0.005), skeleton(data)
    again = Marginals(marginals.n, marginals.levels, marginals.released)
    assert (arrow_confidence(marginals, joined) == arrow_confidence(again, joined)).all()


def test_draws_follow_the_odds(monkeypatch):
    """x - c - y with log odds l: colliders come once in 1 + 3 exp(-l) draws.

    Four graphs, of which one is the collider. 10,000 draws, each a few sweeps from the last: a
    deviation is below .014 even if only one in ten is news. Odds 1e-9 that this fails by chance.
    """
    log_odds = 1.0
    monkeypatch.setattr(orientation, "DRAWS", 10_000)
    drawn = orientation.drawn_graphs(PATH, NOTHING, {(0, 1, 2): log_odds})
    share = np.mean([parents[1] == 0b101 for parents in drawn])
    expected = 1 / (1 + 3 * np.exp(-log_odds))
    assert abs(share - expected) < 6.1 * 0.014


def test_a_lone_edge_goes_either_way_equally_often(monkeypatch):
    """10,000 coins: six deviations."""
    monkeypatch.setattr(orientation, "DRAWS", 10_000)
    joined = np.ones((2, 2), bool) ^ np.eye(2, dtype=bool)
    drawn = orientation.drawn_graphs(joined, joined & False, {})
    assert abs(np.mean([parents[1] for parents in drawn]) - 0.5) < 0.03


@pytest.mark.slow
def test_on_fresh_networks_arrows_are_right_as_often_as_they_say():
    """Seeds that the model was not fitted to, true skeletons."""
    said, right = [], []
    for k, (shape, tables) in enumerate(itertools.product(SHAPES, TABLES)):
        r = rng([11, k])
        data = random_network(shape, tables, int(r.integers(8, 25)), r).sample(50_000, rng=r)
        joined, truth = skeleton(data), CPDAG.from_dag(data.truth).arcs
        sure = arrow_confidence(noisy(data, 10 ** r.uniform(-4, -2.3), seed=k), joined)
        said.append(sure[joined])
        right.append((truth & ~truth.T)[joined])
    said, right = np.concatenate(said), np.concatenate(right)
    for low, high in ((-1, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.0)):
        of = (said > low) & (said <= high)
        expected, found = said[of].mean(), right[of].mean()
        # arrows of one network stand and fall together: a deviation is taken five times as wide
        wide = 5 * np.sqrt(max(expected * (1 - expected), 0.01) / of.sum())
        assert abs(found - expected) < 0.03 + wide, (low, expected, found)
