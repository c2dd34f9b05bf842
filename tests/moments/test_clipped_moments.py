"""Clipped moments: what they say, how wide their noise is, and what one record may move."""

import math

import numpy as np
import pytest
from dpcgd_book.results.known_tables import blurred
from known_tables import records
from moment_audits import Noted, audited
from numpy.random import default_rng
from people import refused
from scipy.linalg import fractional_matrix_power

from dpcgd import Budget, BudgetSpent, check_receipt, graph_from_moments, load, private_graph
from dpcgd.datasets.random_networks import random_network
from dpcgd.moments import clipped_moments
from dpcgd.moments.clipped_moments import ClippedMoments, level_vectors, measure_moments
from dpcgd.moments.interactions import Moment, contrasts, exactly, paid
from dpcgd.moments.scores import Singles
from dpcgd.privacy.filters import GaussianFilter
from dpcgd.privacy.noise import SeededNoise
from dpcgd.reading.pair_features import pair_features

ENDLESS = 1e12
"""A rho for which no record is clipped."""


def drawn(d=8, n=20_000, seed=0):
    return random_network("sparse", "rare", d, default_rng(seed)).sample(n, rng=default_rng(seed))


def pairs_of(data):
    return measure_moments(data, exactly, 1.0, clipped=False)


def singles_of(data):
    pairs = pairs_of(data)
    return Singles(pairs.n, pairs.levels, pairs.released)


def clipped_of(data, measure, rho):
    return measure_moments(data, measure, rho, clipped=True)


@pytest.mark.parametrize("data", [drawn(), load("sachs", n=5000, rng=default_rng(0))])
def test_without_noise_and_unclipped_they_say_what_the_pairs_say(data, monkeypatch):
    monkeypatch.setattr(clipped_moments, "LAST_NORM", math.inf)
    both = clipped_of(data, exactly, ENDLESS), pairs_of(data)
    blocks = [*map(clipped_moments.blocks_of, both)]
    assert np.allclose(*(of.sums(of.correlations**2) for of in blocks), atol=1e-4)
    assert blocks[0].noise.max() < 1e-3  # of single records and shortening
    assert np.array_equal(*(pair_features(of)[0] for of in both))


def test_the_vectors_of_a_variable_have_the_root_of_its_covariance():
    data = drawn(4)
    singles = singles_of(data)
    for v, of in enumerate(level_vectors(singles)):
        share = singles.table(v)
        assert np.allclose(share @ of, 0)
        columns = contrasts(data.cardinalities[v])
        centred = columns - share @ columns
        root = fractional_matrix_power(singles.variance(v), -0.25)
        assert np.allclose(of, centred @ root)  # the symmetric one: no vector's sign matters


def test_noise_is_as_wide_as_it_says():
    data = drawn(5)
    exact = clipped_of(data, exactly, ENDLESS)
    size, apart = len(exact.moments), []
    for seed in range(200):
        told = clipped_moments._measured(data, exact, blurred(300.0, default_rng(seed)), ENDLESS)
        apart.append((told.moments - exact.moments) / told.deviation)
        assert np.array_equal(told.moments, told.moments.T)
    apart = np.array(apart)
    # of 200 draws an entry each; six deviations of a variance
    for entries, variance in ((np.triu_indices(size, 1), 1), (np.diag_indices(size), 2)):
        squares = apart[:, *entries] ** 2 / variance
        assert abs(squares.mean() - 1) < 6 * math.sqrt(2 / squares.size)


def test_records_are_clipped_where_noise_is_wide_and_later_where_it_is_narrow():
    data = drawn(n=1000)
    singles = singles_of(data)
    vectors = level_vectors(singles)
    squares = [(of**2).sum(axis=1) for of in vectors]
    norms = [of[column] for of, column in zip(squares, data.codes.T, strict=True)]
    expected = sum(singles.table(v) @ of for v, of in enumerate(squares))
    assert sum(norms).mean() == pytest.approx(expected, rel=0.03)
    mixed = sum(map(default_rng(0).permutation, norms))  # so variables are independent
    last = clipped_moments.longest_kept(singles, vectors, 1e-6) ** 2
    assert clipped_moments.longest_kept(singles, vectors, 1e6) ** 2 == pytest.approx(0.8 * expected)
    assert last == pytest.approx(expected + 2 * mixed.std(), rel=0.1)
    assert last < sum(of.max() for of in squares)
    middle = 0.5 * math.sqrt(1000) / expected
    assert clipped_moments.longest_kept(singles, vectors, middle) ** 2 == pytest.approx(expected)


def test_a_first_look_is_paid_for_and_the_rest_goes_into_moments():
    data, account = drawn(), GaussianFilter(Budget(1.0, 1e-6))
    paying = paid(account, SeededNoise(default_rng(0)))
    told = clipped_of(data, paying, account.rho)
    first, second = account.ledger.events
    share = clipped_moments.share_of_singles([size - 1 for size in data.cardinalities])
    ratio = first.noise_multiplier / second.noise_multiplier
    assert ratio == pytest.approx(math.sqrt((1 - share) / share))
    assert account.remaining == pytest.approx(0, abs=1e-8 * account.rho)
    assert isinstance(told, ClippedMoments)
    refused("would exceed", clipped_of, data, paying, account.rho, kind=BudgetSpent)


def test_variables_of_one_level_have_no_moments():
    codes = np.zeros((50, 3), int)
    codes[:, 1] = np.arange(50) % 3
    told = clipped_of(records(codes, (1, 3, 1)), blurred(1.0, default_rng(0)), 1.0)
    assert told.moments.shape == (4, 4)
    blocks = clipped_moments.blocks_of(told)
    assert np.array_equal(blocks.correlations, np.eye(4))
    assert not blocks.noise.any()
    assert not clipped_of(records(codes[:, [0, 2]], (1, 1)), exactly, 1.0).deviation


def test_moments_that_are_noise_only_are_refused():
    singles = {(v,): Moment(np.zeros(1), 1.0) for v in range(2)}
    for moments, deviation in ((np.full((2, 2), 1e101), 1.0), (np.eye(2), math.inf)):
        known = Singles(10, (2, 2), singles)
        refused("measure it for a larger rho", ClippedMoments, known, moments, deviation)


def fair(n, levels):
    """Single variables whose levels are equally frequent."""
    values = {(v,): np.full(of, 1 / of) @ contrasts(of) for v, of in enumerate(levels)}
    return Singles(n, levels, {of: Moment(mean, 0.0) for of, mean in values.items()})


@pytest.mark.slow
def test_a_release_passes_its_audit_and_with_half_the_noise_it_fails():
    """Along the way between two data sets."""
    pair = [records([[0, 0]] * 40 + [last], (2, 2)) for last in ([0, 0], [0, 1])]
    singles = fair(41, (2, 2))
    here, there = (clipped_moments._measured(of, singles, exactly, 1e-3).moments for of in pair)

    def released(data, account, paying):
        found = clipped_moments._measured(data, singles, paying, account.rho * (1 - 1e-9))
        return (found.moments * (there - here)).sum() / 2 / found.deviation**2

    audited(released, *pair, epsilon=2.0, seed=7)


@pytest.mark.parametrize("levels", [(2, 2), (2, 3, 4), (5, 2, 2)])
def test_neighbours_move_a_release_by_no_more_than_it_reckons_with(levels):
    rng, singles, moved, noted = default_rng(0), fair(3, levels), [], Noted()
    for _ in range(100):
        codes = rng.integers(levels, size=(4, len(levels)))
        pair = codes[[0, 1, 2]], codes[[0, 1, 3]]
        told = [clipped_moments._measured(records(of, levels), singles, noted, 0.1) for of in pair]
        apart = 3 * (told[0].moments - told[1].moments)
        moved.append(np.linalg.norm(apart) / math.sqrt(2) / noted.sensitivities[-1])
    assert 0.5 < max(moved) <= 1 + 1e-9


def test_for_effects_records_are_shortened_two_and_a_half_times_as_late(tmp_path):
    data = load("alarm", n=5000, rng=default_rng(0))
    deviations = []
    for aim in ("edges", "effects"):
        release = graph_from_moments(data, epsilon=1.0, rng=default_rng(1), aim=aim)
        release.save(tmp_path / "receipt.json")
        check_receipt(tmp_path / "receipt.json")
        deviations.append(release.marginals.deviation)
    assert deviations[1] == pytest.approx(2.5 * deviations[0])


@pytest.mark.parametrize("network", ["asia", "alarm"])
def test_an_aim_that_is_none_is_refused_before_a_record_is_looked_at(network):
    cure = "aim must be 'edges' or 'effects', not 'both'"
    refused(cure, private_graph, load(network, n=500, rng=default_rng(0)), epsilon=1.0, aim="both")
