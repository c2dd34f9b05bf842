"""Arrows from released pairs: what is told apart, what knowledge forbids, and how sure it is."""

import itertools

import networkx as nx
import numpy as np
import pytest
from dpcgd_book.data.mixed_networks import gaussian_network
from dpcgd_book.results.known_tables import blurred
from exact_pairs import marginals_of
from hypothesis import given, settings, strategies as st
from known_tables import records
from scipy.special import logit

from dpcgd import private_graph
from dpcgd.datasets.random_networks import SHAPES, TABLES, random_network
from dpcgd.graphs.cpdag import CPDAG, meek
from dpcgd.moments.interactions import Marginals
from dpcgd.reading import orientation
from dpcgd.reading.orientation import arrow_confidence, collider_log_odds, open_triples, pointed
from dpcgd.reading.pair_score import PairScore


def rng(seed=0):
    return np.random.default_rng(seed)


def noisy(data, deviation, seed=0) -> Marginals:
    """All pairs with noise of this deviation on each mean."""
    return marginals_of(data, measure=blurred(deviation * data.n, rng(seed)))


def orient(marginals, joined, forbidden) -> np.ndarray:
    """Arrows of a skeleton where they are likely."""
    return pointed(arrow_confidence(marginals, joined, forbidden), joined, forbidden)


def arcs_of(data) -> np.ndarray:
    return nx.to_numpy_array(data.truth, nodelist=data.variables, weight=None) > 0


def skeleton(data) -> np.ndarray:
    return arcs_of(data) | arcs_of(data).T


def joined_by(*edges) -> np.ndarray:
    """Of three variables."""
    return np.any([only(a, b) | only(b, a) for a, b in edges], axis=0)


def only(start, end) -> np.ndarray:
    """This arc of three variables."""
    return np.outer(np.arange(3) == start, np.arange(3) == end)


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
        (odds,) = collider_log_odds(released(codes[:, order]), joined_by((a, b), (b, c))).values()
        assert odds > 2


def test_only_two_that_are_not_joined_can_show_a_collider():
    everything = ~np.eye(3, dtype=bool)
    assert collider_log_odds(released(collider(rng())), everything) == {}
    assert (orient(released(collider(rng())), everything, NOTHING) == everything).all()


def test_nothing_joined_has_no_arrows():
    assert not orient(released(chain(rng())), NOTHING, NOTHING).any()
    assert not arrow_confidence(released(chain(rng())), NOTHING).any()


def test_an_edge_that_is_missed_may_point_one_without_direction():
    """Two of three edges have a direction, and three in ten are missed."""
    x = rng(1).integers(0, 2, 50_000)
    codes = np.column_stack([collider(rng()), x, flipped(x, 0.2, rng(2))])
    marginals, joined = noisy(records(codes, (2,) * 5), 1e-4), np.pad(PATH, (0, 2))
    joined[3, 4] = joined[4, 3] = True
    at = [0, 2, 3, 4], [1, 1, 4, 3]
    sure = [arrow_confidence(marginals, joined, missed=share)[at] for share in (0, 0.3)]
    assert np.round(sure, 2).tolist() == [[1, 1, 0, 0], [1, 1, 0.2, 0.2]]


def test_what_is_forbidden_does_not_come_out_and_what_follows_does():
    """1 -> 0 is forbidden in a chain without direction: then 0 -> 1 -> 2."""
    marginals = released(chain(rng()))
    assert np.argwhere(orient(marginals, PATH, only(1, 0))).tolist() == [[0, 1], [1, 2]]
    assert arrow_confidence(marginals, PATH, only(1, 0), 0.2)[[0, 1], [1, 0]].tolist() == [1, 0]


def test_a_collider_that_is_forbidden_is_none():
    assert orient(released(collider(rng())), PATH, only(0, 1))[[0, 1], [1, 0]].tolist() == [0, 1]


def test_between_a_pair_that_was_never_looked_at_nothing_meets_for_sure():
    assert not arrow_confidence(released(collider(rng())), PATH, joined_by((0, 2))).any()


@settings(max_examples=15)
@given(st.sampled_from(SHAPES), st.sampled_from(TABLES), st.integers(4, 12), st.integers(0, 99))
def test_arrows_are_edges_of_the_skeleton_and_close_no_cycle(shape, tables, d, seed):
    data = random_network(shape, tables, d, rng(seed)).sample(2_000, rng=rng(seed))
    joined = skeleton(data)
    arcs = orient(noisy(data, 0.01), joined, joined & False)
    assert ((arcs | arcs.T) == joined).all()
    assert nx.is_directed_acyclic_graph(nx.DiGraph(np.argwhere(arcs & ~arcs.T).tolist()))


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


def test_numbers_have_trees_that_have_seen_weak_effects():
    """Less than .8 with the trees of categories."""
    data = gaussian_network("magic-niab").sample(100_000, rng=rng(0))
    assert private_graph(data, epsilon=0.3, rng=rng(1)).graph.arrowhead_f1(data.truth) > 0.9


def test_one_release_has_one_answer():
    data = random_network("dense", "mixed", 10, rng(1)).sample(5_000, rng=rng(2))
    marginals, joined = noisy(data, 0.005), skeleton(data)
    again = Marginals(marginals.n, marginals.levels, marginals.released)
    assert (arrow_confidence(marginals, joined) == arrow_confidence(again, joined)).all()


def test_a_lone_edge_goes_either_way_equally_often(monkeypatch):
    """10,000 coins: six deviations."""
    monkeypatch.setattr(orientation, "DRAWS", 10_000)
    joined = np.ones((2, 2), bool) ^ np.eye(2, dtype=bool)
    drawn = orientation.drawn_graphs(joined, joined & False, orientation.by_colliders({}))
    assert abs(drawn[:, 0, 1].mean() - 0.5) < 0.03


@pytest.mark.slow
def test_on_fresh_networks_arrows_are_right_as_often_as_they_say():
    """Seeds that the model was not fitted to, true skeletons."""
    arrows = []
    for k, (shape, tables) in enumerate(itertools.product(SHAPES, TABLES)):
        r = rng([11, k])
        data = random_network(shape, tables, int(r.integers(8, 25)), r).sample(50_000, rng=r)
        joined, truth = skeleton(data), CPDAG.from_dag(data.truth).arcs
        sure = arrow_confidence(noisy(data, 10 ** r.uniform(-4, -2.3), seed=k), joined)
        arrows.append((sure[joined], (truth & ~truth.T)[joined]))
    said, right = map(np.concatenate, zip(*arrows, strict=True))
    for low, high in ((-1, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.0)):
        of = (said > low) & (said <= high)
        expected, found = said[of].mean(), right[of].mean()
        # arrows of one network stand and fall together: a deviation is taken five times as wide
        wide = 5 * np.sqrt(max(expected * (1 - expected), 0.01) / of.sum())
        assert abs(found - expected) < 0.03 + wide, (low, expected, found)


def test_draws_by_families_follow_the_likelihood_of_whole_graphs(monkeypatch):
    """x -> c <- y with faint effects, four graphs: their shares are those of their likelihoods.

    10,000 draws, each a few sweeps from the last: a deviation is below .014 even if only one in ten
    is news. Odds 1e-9 that this fails by chance.
    """
    monkeypatch.setattr(orientation, "DRAWS", 10_000)
    marginals = noisy(records(collider(rng(3))[:150], (2, 2, 2)), 0.05)
    drawn = orientation.drawn_graphs(PATH, NOTHING, orientation.by_families(marginals))
    score, logs = PairScore(marginals), {}
    for into in itertools.product((False, True), repeat=2):
        meet = frozenset(itertools.compress((0, 2), into))
        away = (score.log_odds(v, frozenset({1})) for v in {0, 2} - meet)
        logs[into] = score.log_odds(1, meet) + sum(away)
    weights = {into: np.exp(log - max(logs.values())) for into, log in logs.items()}
    for into, weight in weights.items():
        share = np.mean((drawn[:, 1, 0] == into[0]) & (drawn[:, 1, 2] == into[1]))
        assert abs(share - weight / sum(weights.values())) < 6.1 * 0.014


# --- draws of graphs are those of the plain definition, arc for arc


def some(seed, d=9):
    """A skeleton, what knowledge forbids (some of it both ways), and log odds of its triples."""
    r = rng(seed)
    joined = np.triu(r.random((d, d)) < r.choice([0.2, 0.4, 0.7]), 1)
    joined |= joined.T
    joined[0, 1] = joined[1, 0] = True
    forbidden = r.random((d, d)) < r.choice([0.0, 0.05, 0.2])
    forbidden &= ~(joined & forbidden.T)  # one way at least stays possible
    forbidden |= ~joined & np.triu(r.random((d, d)) < 0.2, 1)
    forbidden |= ~joined & forbidden.T
    return joined, forbidden, {triple: r.normal(scale=3) for triple in open_triples(joined)}


def is_ancestor(parents, a, b):
    return a != b and nx.has_path(nx.from_numpy_array(parents.T, create_using=nx.DiGraph), a, b)


def swept(parents, edges, chosen, needed, forbidden, odds):
    """One sweep by the definition."""
    parents = parents.copy()

    def collider(x, c):
        others = set(np.flatnonzero(parents[c]).tolist()) - {x}
        return sum(odds.get((min(x, y), c, max(x, y)), 0.0) for y in others)

    for (a, b), least in zip(edges[chosen].tolist(), needed.tolist(), strict=True):
        if not parents[b, a]:
            a, b = b, a
        if forbidden[b, a] or collider(b, a) - collider(a, b) < least:
            continue
        parents[b, a] = False
        back = is_ancestor(parents, a, b)
        parents[b, a], parents[a, b] = back, not back
    return parents


def with_colliders(parents, joined, forbidden):
    """The skeleton with the arrows into the colliders of a graph, and those that are known."""
    arcs, apart = joined & ~forbidden, ~(joined | (forbidden & forbidden.T))
    for c, row in enumerate(parents):
        for a, b in itertools.combinations(np.flatnonzero(row).tolist(), 2):
            if apart[a, b]:
                for v in (a, b):
                    arcs[c, v] &= not arcs[v, c]
    return arcs


@pytest.mark.parametrize("seed", range(40))
def test_sweeps_turn_the_arcs_that_the_definition_turns(seed, monkeypatch):
    joined, forbidden, odds = some(seed)
    for name, value in {"COOLING": 1, "APART": 1, "DRAWS": 5}.items():
        monkeypatch.setattr(orientation, name, value)
    r, edges = rng(0), np.argwhere(np.triu(joined))
    expected = orientation._first(joined, forbidden)
    assert (expected | expected.T == joined).all()
    drawn = iter(orientation.drawn_graphs(joined, forbidden, orientation.by_colliders(odds)))
    for heat in (1 + orientation.HOTTEST, 1, 1, 1, 1, 1):
        chosen = r.integers(len(edges), size=len(edges))
        needed = heat * logit(r.random(len(edges)))
        expected = swept(expected, edges, chosen, needed, forbidden, odds)
        if heat == 1:  # the first sweep cools down
            np.testing.assert_array_equal(next(drawn), expected)


@pytest.mark.parametrize("seed", range(60))
def test_completed_forms_are_those_of_the_plain_rules(seed):
    joined, forbidden, odds = some(seed)
    graphs = orientation.drawn_graphs(joined, forbidden, orientation.by_colliders(odds))
    assert len(graphs) == orientation.DRAWS
    for parents, arcs in zip(graphs, orientation.completed(graphs, joined, forbidden), strict=True):
        plain = meek(with_colliders(parents, joined, forbidden), untested=forbidden & forbidden.T)
        np.testing.assert_array_equal(arcs, plain)
