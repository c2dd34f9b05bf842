"""What a second reading looks at, against its definitions; it reads what the first one left."""

import numpy as np
import pytest
from exact_pairs import marginals_of, sample, turned, with_a_constant

from dpcgd.moments.blocks import blocks_of
from dpcgd.reading.pair_features import LocalEvidence, pair_features
from dpcgd.reading.reader import edge_probabilities, trained_reader
from dpcgd.reading.second_reading import (
    LEAST_LIKELY,
    SECOND_FEATURES,
    log_odds,
    second_features,
)


def probabilities(d, seed=1):
    likely = np.triu(np.random.default_rng(seed).beta(0.3, 0.5, (d, d)), 1)
    return likely + likely.T


def columns_of(data, likely):
    pairs, rows = second_features(blocks_of(marginals_of(data)), likely)
    assert rows.shape == (len(pairs), len(SECOND_FEATURES))
    return pairs.tolist(), dict(zip(SECOND_FEATURES, rows.T, strict=True))


def test_every_pair_that_is_not_ruled_out_is_read_again():
    likely = probabilities(8)
    pairs, columns = columns_of(sample(8), likely)
    assert pairs == np.argwhere(np.triu(likely) > LEAST_LIKELY).tolist()
    assert np.allclose(columns["log odds"], [log_odds(likely[x, y]) for x, y in pairs], rtol=1e-5)


def test_paths_run_through_a_third_variable():
    likely = probabilities(7)
    pairs, columns = columns_of(sample(7), likely)
    for i, (x, y) in enumerate(pairs):
        third = [z for z in range(7) if z not in (x, y)]
        weaker = sorted(min(likely[x, z], likely[z, y]) for z in third)
        assert columns["likeliest path"][i] == pytest.approx(weaker[-1])
        assert columns["second likeliest path"][i] == pytest.approx(weaker[-2])
        expected = sum(likely[x, z] * likely[z, y] for z in third)
        assert columns["expected paths"][i] == pytest.approx(expected)


def test_a_pair_is_conditioned_on_the_likely_neighbours_of_either_end():
    data, likely = sample(7), probabilities(7)
    local = LocalEvidence(blocks_of(marginals_of(data)), likely)
    pairs, columns = columns_of(data, likely)
    for i, (x, y) in enumerate(pairs):
        sets = [[z for z in range(7) if z not in (x, y) and likely[end, z] > 0.5] for end in (x, y)]
        least, most = sorted(local.given([(x, y, s) for s in sets]).tolist())
        names = "least given the neighbours of one", "effect at the least given neighbours"
        names = *names, "left open by neighbours"
        assert [columns[name][i] for name in names] == pytest.approx(least, rel=1e-3, abs=1e-5)
        assert columns["most given the neighbours of one"][i] == pytest.approx(most[0], rel=1e-3)


def test_other_edges_are_counted_by_their_probabilities():
    likely = probabilities(7)
    pairs, columns = columns_of(sample(7), likely)
    for i, (x, y) in enumerate(pairs):
        others = sorted(likely[end].sum() - likely[x, y] for end in (x, y))
        assert columns["fewer other edges"][i] == pytest.approx(others[0], rel=1e-5)
        assert columns["more other edges"][i] == pytest.approx(others[1], rel=1e-5)
        ranks = sorted(int((likely[a] > likely[x, y]).sum()) for a in (x, y))
        assert [columns["higher rank"][i], columns["lower rank"][i]] == ranks
    assert np.allclose(columns["expected edges a variable"], likely.sum() / 14)


@pytest.mark.parametrize("d", [2, 3, 12])
def test_features_are_numbers_for_few_variables_and_for_constant_ones(d):
    _, columns = columns_of(with_a_constant(sample(d, n=200)), probabilities(d))
    assert all(np.isfinite(column).all() for column in columns.values())


def test_nothing_likely_leaves_nothing_to_read():
    pairs, columns = columns_of(sample(5), np.zeros((5, 5)))
    assert pairs == []
    assert all(len(column) == 0 for column in columns.values())


def test_the_second_reading_replaces_the_first_where_it_looked():
    told = marginals_of(sample(9))
    found = edge_probabilities(told)
    pairs, rows = pair_features(told)
    first = np.zeros((9, 9))
    first[tuple(pairs.T)] = trained_reader().first.probabilities(rows)
    again, more = second_features(blocks_of(told), first + first.T)
    at = {tuple(pair): i for i, pair in enumerate(pairs.tolist())}
    both = np.hstack([rows[[at[tuple(pair)] for pair in again.tolist()]], more])
    second = trained_reader().second.probabilities(both)
    assert np.allclose(found[tuple(again.T)], second)
    left = (first > 0) & (first <= LEAST_LIKELY)
    assert np.allclose(found[left], first[left])
    assert (found == found.T).all()


def test_the_order_of_variables_and_of_levels_does_not_matter():
    data = sample(8)
    other = turned(data)
    order = [data.variables.index(name) for name in other.variables]
    plain, found = (edge_probabilities(marginals_of(d)) for d in (data, other))
    assert np.abs(plain[np.ix_(order, order)] - found).max() < 0.05
