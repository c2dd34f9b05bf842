"""Scores for the direction of a pair, each against a second writing of its definition."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from dpcgd_book.systems.direction_scores import cds, igci, reci
from hypothesis import given, settings, strategies as st
from people import refused
from scipy.special import psi

SCORES = [reci, igci, cds]
seeded = settings(derandomize=True, max_examples=60)


@st.composite
def pairs(draw):
    """Reals and codes, few and many levels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(30, 400))
    x = rng.normal(size=n) if draw(st.booleans()) else rng.uniform(-2, 2, n)
    y = x**3 + draw(st.sampled_from([0.1, 1.0, 3.0])) * rng.normal(size=n)
    steps = st.sampled_from([None, 0.5, 2.0, 8.0])
    return tuple(
        v if step is None else np.floor((v - v.min()) * step) + np.arange(n) % 2
        for v, step in ((x, draw(steps)), (y, draw(steps)))
    )


def scaled(values):
    return (values - values.min()) / (values.max() - values.min())


def monomial_error(cause, effect):
    """Least squares of one regressor in closed form."""
    u, v = scaled(cause) ** 3, scaled(effect)
    return v.var() * (1 - np.corrcoef(u, v)[0, 1] ** 2)


def cubic_error(cause, effect):
    u, v = scaled(cause), scaled(effect)
    return ((np.polynomial.Polynomial.fit(u, v, 3)(u) - v) ** 2).mean()


def spacing_entropy(values):
    values = sorted((values - values.mean()) / values.std())
    gaps = [b - a for a, b in itertools.pairwise(values)]
    return sum(math.log(gap) for gap in gaps if gap > 0) / len(gaps) + psi(len(values)) - psi(1)


def bin_of(z):
    return max(-6, min(6, round(2 * z)))


def conditional_spread(cause, effect):
    """Record by record, with dictionaries."""
    if len(set(cause)) > 13:
        z = (cause - cause.mean()) / cause.std()
        usual = [v for v in z if abs(v) < 3]
        labels = [bin_of((v - np.mean(usual)) / np.std(usual)) for v in z]
    else:
        labels = list(cause)
    groups = (list(group) for _, group in pd.Series(effect).groupby(labels))
    shapes = [shape(group, effect) for group in groups if len(group) > 12]
    if not shapes:
        return 0.0
    return np.std(np.array(shapes) - np.mean(shapes, axis=0))


def shape(group, effect):
    if len(set(effect)) > 13:
        bins = Counter(bin_of((v - np.mean(group)) / effect.std()) for v in group)
        return [bins[b] / len(group) for b in range(-6, 7)]
    levels = sorted(set(effect))
    k = len(levels)
    whole = [list(effect).count(level) for level in levels]
    part = [group.count(level) / len(group) for level in levels]

    def agreement(move):
        return sum(whole[i + move] * part[i] for i in range(k) if 0 <= i + move < k)

    best = max(range(-k + 1, k), key=lambda move: (round(agreement(move), 9), move))
    return [0.0] * (k - 1 + best) + part + [0.0] * (k - 1 - best)


@seeded
@given(pairs())
def test_reci_compares_the_errors_of_two_regressions(pair):
    x, y = pair
    expected = monomial_error(y, x) - monomial_error(x, y)
    assert reci(x, y, powers=(3,)) == pytest.approx(expected, abs=1e-10)
    if min(len(set(x)), len(set(y))) > 3:
        expected = cubic_error(y, x) - cubic_error(x, y)
        assert reci(x, y) == pytest.approx(expected, abs=1e-10)


@seeded
@given(pairs())
def test_igci_compares_two_entropies(pair):
    x, y = pair
    assert igci(x, y) == pytest.approx(spacing_entropy(x) - spacing_entropy(y), abs=1e-9)


@seeded
@given(pairs())
def test_cds_compares_the_spreads_of_conditional_shapes(pair):
    x, y = pair
    assert cds(x, y) == pytest.approx(conditional_spread(y, x) - conditional_spread(x, y), abs=1e-9)


def test_cds_without_a_full_bin_says_nothing():
    assert cds(np.arange(12), np.arange(12) ** 2) == 0


def test_cds_survives_a_value_that_is_all_but_constant():
    far = 1e6 + np.arange(9)
    x = np.concatenate([-far, np.zeros(10_000), far])
    with np.errstate(all="raise"):
        assert math.isfinite(cds(x, np.random.default_rng(0).normal(size=len(x))))


NAN, INF = math.nan, math.inf


BAD = {
    "constant; leave it out": [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 0, 0])],
    "drop or impute": [([1, NAN, 3], [1, 2, 3]), ([1, 2, 3], [1, 2, INF])],
    "same shape": [([1, 2, 3], [1, 2])],
    "one row a record": [([[1, 2]], [[1, 2]])],
    "at least two": [([1], [2])],
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused_with_its_cure(score, message):
    for pair in BAD[message]:
        refused(message, score, *(np.array(column, float) for column in pair))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-400, 2.0**400, 2.0**1020])
def test_directions_do_not_depend_on_the_unit(score, unit):
    x = np.random.default_rng(0).uniform(-1, 1, 200)
    y = x**3 + np.random.default_rng(1).uniform(-0.1, 0.1, 200)
    assert score(x * unit, y * unit) == pytest.approx(score(x, y), rel=1e-9)
