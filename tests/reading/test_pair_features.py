"""Features of released pairs against their definitions, on exact moments and on noisy ones."""

import numpy as np
import pytest
from exact_pairs import marginals_of, sample, turned, with_a_constant

from dpcgd import Dataset
from dpcgd.moments.blocks import blocks_of
from dpcgd.reading.pair_features import (
    FEATURES,
    LocalEvidence,
    candidates,
    pair_features,
)


def binary(d=4, n=4000, seed=1):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n, d))
    for j in range(1, d):
        codes[:, j] = np.where(rng.random(n) < 0.4, codes[:, j - 1], codes[:, j])
    return Dataset(codes, {f"x{j}": ("no", "yes") for j in range(d)})


def test_of_binary_variables_a_block_is_their_correlation():
    data = binary()
    blocks = blocks_of(marginals_of(data))
    assert np.allclose(np.abs(blocks.correlations), np.abs(np.corrcoef(data.codes.T)))
    assert np.allclose(blocks.variances[0, 1], 1 / data.n)


def test_conditioning_is_regression():
    data = binary()
    local = LocalEvidence(blocks_of(marginals_of(data)), np.ones((4, 4)))
    local.ridge = np.zeros(4)
    x, y, *others = data.codes.T.astype(float)
    design = np.column_stack([np.ones(data.n), *others])
    rest = [v - design @ np.linalg.lstsq(design, v)[0] for v in (x, y)]
    partial = np.corrcoef(*rest)[0, 1]
    _, effect, left = local.given([(0, 1, (2, 3))])[0]
    signal = 0.05**2 / (1 / data.n + 0.05**2)
    assert effect == pytest.approx((partial**2 - 1 / data.n) * signal, abs=1e-9)
    assert left == pytest.approx(min(rest[0].var() / x.var(), rest[1].var() / y.var()), abs=1e-9)


def test_the_order_of_variables_and_of_levels_does_not_matter():
    found = [dict_of(d) for d in (sample(7), turned(sample(7)))]
    assert found[0].keys() == found[1].keys()
    for pair, row in found[0].items():
        assert np.allclose(row, found[1][pair], rtol=1e-3, atol=1e-3), pair


def dict_of(data):
    pairs, rows = pair_features(marginals_of(data))
    names = data.variables
    return {frozenset((names[x], names[y])): row for (x, y), row in zip(pairs, rows, strict=True)}


@pytest.mark.parametrize("d", [2, 3, 12])
def test_features_are_numbers_for_few_variables_and_for_constant_ones(d):
    pairs, rows = pair_features(marginals_of(with_a_constant(sample(d, n=200))))
    assert rows.shape == (len(pairs), len(FEATURES))
    assert np.isfinite(rows).all()


def test_candidates_are_near_for_one_of_both():
    strength = np.zeros((30, 30))
    strength[0, 1:] = strength[1:, 0] = np.arange(29, 0, -1)
    assert {(0, k) for k in range(1, 30)} <= set(map(tuple, candidates(strength).tolist()))
