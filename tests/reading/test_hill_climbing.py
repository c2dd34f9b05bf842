import math

import numpy as np
import pytest
from exact_pairs import marginals_of
from numpy.random import default_rng

from dpcgd import load, table_pc
from dpcgd.reading import hill_climbing as climbing
from dpcgd.reading.hill_climbing import climb
from dpcgd.reading.pair_score import PairScore

CANCER = load("cancer", n=10_000, rng=default_rng(0))


def gain(score, child, parent):
    return score.family(child, frozenset({parent})) - score.family(child, frozenset())


def test_for_two_binary_variables_the_gain_is_that_of_their_correlation_either_way():
    score = PairScore(marginals_of(CANCER))
    correlation = np.corrcoef(CANCER.codes[:, 1], CANCER.codes[:, 2])[0, 1]
    expected = -5000 * math.log(1 - correlation**2) - math.log(10_000) / 2
    assert gain(score, 2, 1) == pytest.approx(expected, rel=1e-6)
    assert gain(score, 1, 2) == pytest.approx(gain(score, 2, 1), rel=1e-9)


def test_noise_makes_a_coefficient_dearer():
    data = load("cancer", rng=default_rng(0))
    noisy = PairScore(table_pc(data, epsilon=0.3, rng=default_rng(1)).marginals)
    assert gain(noisy, 0, 1) < gain(PairScore(marginals_of(data)), 0, 1) < 0


def test_parents_are_limited_and_the_result_is_a_class():
    data = load("sachs", rng=default_rng(0))
    release = table_pc(data, epsilon=10.0, rng=default_rng(1))
    graph = climb(release, most_parents=1)
    assert len(graph.skeleton) <= data.d - 1
    assert graph == climb(release, most_parents=1)


@pytest.mark.parametrize("network", ["cancer", "asia", "survey"])
def test_the_last_digits_of_a_score_choose_nothing(network, monkeypatch):
    data = load(network, n=20_000, rng=default_rng(0))
    release = table_pc(data, epsilon=1.0, rng=default_rng(1))
    expected = climb(release)
    for seed in range(4):
        rng = default_rng(seed)

        class Shaken(PairScore):
            def _family(self, child, parents, rng=rng):
                return super()._family(child, parents) + 1e-6 * rng.standard_normal()

        monkeypatch.setattr(climbing, "PairScore", Shaken)
        assert climb(release) == expected
        monkeypatch.undo()
