"""The compiled loops against plain definitions of what they compute."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpcgd.datasets.contingency_tables import Tables
from dpcgd.datasets.random_networks import SHAPES, random_network
from dpcgd.moments.blocks import blocks_of, rows_of
from dpcgd.moments.interactions import MeasuredMarginals
from dpcgd.reading import pair_features
from dpcgd.reading.pair_features import FEW, LEAST_OPEN, STRONGEST, USUAL, LocalEvidence


def noisy(seed, d=7, n=4000, deviation=20.0):
    rng = np.random.default_rng(seed)
    network = random_network(SHAPES[seed % 6], "mixed", d, rng)

    def measure(query, *, sensitivity, rho):
        exact = query()
        return exact + deviation * rng.standard_normal(exact.shape), deviation

    marginals = MeasuredMarginals(Tables(network.sample(n, rng=rng)), measure)
    marginals.measure_pairs(1.0)
    return marginals.without_data()


class Plain:
    """Conditional associations, as a textbook has them."""

    def __init__(self, marginals):
        self.blocks = blocks_of(marginals)
        _, self.at = rows_of(marginals.levels)

    def given(self, x, y, s, ridge):
        b, v, n = self.blocks.correlations, self.blocks.noise, self.blocks.n
        of = np.concatenate([np.arange(len(b))[self.at[z]] for z in s] or [np.empty(0, int)])
        inner = b[np.ix_(of, of)] + np.diag(ridge[of] * math.sqrt(len(of)))
        slopes = {a: np.linalg.solve(inner, b[of, self.at[a]]) for a in (x, y)}
        left = {
            a: np.clip(1 - (b[of, self.at[a]] * to).sum(axis=0), LEAST_OPEN, 1).mean()
            for a, to in slopes.items()
        }
        q = b[self.at[x], self.at[y]] - b[self.at[x]][:, of] @ slopes[y]
        noise = v[self.at[x], self.at[y]] + v[self.at[x]][:, of] @ slopes[y] ** 2
        noise = noise + (v[self.at[y]][:, of] @ slopes[x] ** 2).T
        both = left[x] * left[y]
        return (*told(q**2 / both, noise / both + 1 / n), min(left.values()))

    def given_one(self, x, y, z):
        b, v, n = self.blocks.correlations, self.blocks.noise, self.blocks.n
        q = b[self.at[x], self.at[y]] - b[self.at[x], self.at[z]] @ b[self.at[z], self.at[y]]
        left = [
            np.clip(1 - (b[self.at[a], self.at[z]] ** 2).sum(axis=1), LEAST_OPEN, 1) for a in (x, y)
        ]
        noise = (
            v[self.at[x], self.at[y]] + b[self.at[x], self.at[z]] ** 2 @ v[self.at[z], self.at[y]]
        )
        noise = noise + v[self.at[x], self.at[z]] @ b[self.at[z], self.at[y]] ** 2
        both = np.outer(*left)
        return told(q**2 / both, noise / both + 1 / n)


def told(squares, variance):
    """The log Bayes factor of a usual effect against none, twice, as arsinh; and the effect."""
    signal = USUAL**2 / (variance + USUAL**2)
    evidence = (squares / variance * signal + np.log1p(-signal)).sum()
    return math.asinh(evidence), ((squares - variance) * signal).sum()


@pytest.mark.parametrize("seed", range(6))
def test_an_association_given_any_set_is_that_of_the_regression(seed):
    marginals = noisy(seed)
    local, plain = LocalEvidence(blocks_of(marginals), np.ones((7, 7))), Plain(marginals)
    for s in [(), (2,), (2, 3), (5, 3, 4), (2, 3, 4, 5, 6)]:
        (told,) = local.given([(0, 1, s)])
        assert told == pytest.approx(plain.given(0, 1, s, local.ridge), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_and_the_next_given_one_other(seed):
    marginals = noisy(seed)
    plain, d = Plain(marginals), 7
    rng = np.random.default_rng(seed)
    association, effect = rng.random((2, d, d))
    association, effect = association + association.T, effect + effect.T
    everywhere = {"association": association, "effect": effect}
    found = np.array([*pair_features._given_one(blocks_of(marginals), everywhere).values()])
    for x, y in combinations(range(d), 2):
        others = [z for z in range(d) if z not in (x, y)]
        whole = (association[x, y], effect[x, y])
        (least, size), second = sorted([whole, *(plain.given_one(x, y, z) for z in others)])[:2]
        path = max(min(effect[x, z], effect[z, y]) for z in others)
        assert found[:, x, y] == pytest.approx((least, second[0], size, path), abs=1e-9)
        assert (found[:, x, y] == found[:, y, x]).all()


@pytest.mark.parametrize("seed", range(6))
def test_what_the_nearest_of_either_tell(seed):
    marginals = noisy(seed)
    strength = np.random.default_rng(seed).random((7, 7))
    local, plain = LocalEvidence(blocks_of(marginals), strength), Plain(marginals)
    pairs = np.array(list(combinations(range(7), 2)))
    for (x, y), row in zip(pairs.tolist(), local.features(pairs), strict=True):
        near = {
            k: list(
                dict.fromkeys(
                    w for a in (x, y) for w in [w for w in local.order[a] if w not in (x, y)][:k]
                )
            )
            for k in (*STRONGEST, FEW)
        }
        strong = [plain.given(x, y, near[k], local.ridge) for k in STRONGEST]
        two = [plain.given(x, y, s, local.ridge) for s in combinations(near[FEW], 2)]
        least = min(two)
        expected = [*least[:2], *(s[0] for s in strong), *(s[1] for s in strong), strong[1][2]]
        assert row == pytest.approx(expected, abs=1e-9)


def test_no_question_has_no_answer():
    local = LocalEvidence(blocks_of(noisy(0)), np.ones((7, 7)))
    assert local.given([]).shape == (0, 3)
    assert local.features(np.empty((0, 2), int)).shape == (0, 3 + 2 * len(STRONGEST))
