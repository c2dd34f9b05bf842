"""Local mechanisms: exact privacy, exact samples, audits."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from extremes import extreme, numbers
from hypothesis import given, settings, strategies as st
from known_distances import cells_of, ways_by_distance
from numpy.random import default_rng
from refusals import refusals
from scipy import stats

from dpcgd import Dataset
from dpcgd.local.channels import privacy_loss
from dpcgd.local.component_wise import ComponentWise
from dpcgd.local.geometric import ClippedGeometric, Geometric, UniformGeometric, balls_of
from dpcgd.local.randomized_response import RandomizedResponse
from dpcgd.local.report import report
from dpcgd.privacy.budget import ROOM

KINDS = (RandomizedResponse, Geometric, ClippedGeometric, UniformGeometric)
ONE = [kind.from_p_max(k, p) for kind in KINDS for k, p in ((2, 0.7), (5, 0.5), (10, 0.2))]
WHOLE = [
    RandomizedResponse.from_p_max((3, 4), 0.3),
    *(Geometric((3, 4), 0.3, norm) for norm in (1, 2, math.inf)),
    *(Geometric((4, 2, 4, 5), 0.05, norm) for norm in (1, 2, math.inf)),
    Geometric((3, 3, 3), 0.1, 1),
]
PARTS = [
    *(ComponentWise.from_p_max(kind, (3, 4, 5), 0.3) for kind in KINDS[:-1]),
    ComponentWise([RandomizedResponse(3, 1.0), UniformGeometric(4, 0.6), Geometric(5, 0.4)]),
]


def distances_of(mechanism):
    cells = cells_of(mechanism).reshape(len(mechanism.channel), -1)
    return np.linalg.norm(cells[:, None] - cells, ord=getattr(mechanism, "norm", 1), axis=2)


def brute_force(mechanism, distances=None):
    """The supremum, written as it is defined."""
    channel, worst = mechanism.channel, 0.0
    for x, other in itertools.permutations(range(len(channel)), 2):
        ratio = np.log(channel[x] / channel[other]).max()
        worst = max(worst, ratio if distances is None else ratio / distances[x, other])
    return worst


def check_exact(mechanism, digits):
    """Both levels of privacy are those of the channel, up to so many digits."""
    assert np.abs(mechanism.channel.sum(axis=1) - 1).max() < 1e-12
    assert mechanism.epsilon == pytest.approx(brute_force(mechanism), abs=10**-digits)
    supremum = brute_force(mechanism, distances_of(mechanism))
    assert mechanism.d_privacy == pytest.approx(supremum, abs=10**-digits)


@pytest.mark.parametrize("mechanism", ONE + WHOLE + PARTS, ids=str)
def test_privacy_and_guesses_are_those_of_the_channel(mechanism):
    channel = mechanism.channel
    assert (channel > 0).all()
    check_exact(mechanism, digits=11)
    # Bayes' decision under a uniform prior: for every report the most likely input
    assert mechanism.p_max == pytest.approx(channel.max(axis=0).sum() / len(channel), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ONE + WHOLE + PARTS, ids=str)
def test_samples_follow_the_channel(mechanism):
    # chi-squared, false alarms 1e-10 each
    cells, times = cells_of(mechanism), 2000
    drawn = mechanism.sample(np.repeat(cells, times, axis=0), rng=default_rng(1))
    drawn = np.ravel_multi_index(drawn.reshape(len(drawn), -1).T, mechanism.shape)
    seen = np.array([np.bincount(row, minlength=len(cells)) for row in drawn.reshape(-1, times)])
    expected = mechanism.channel * times
    large = expected >= 5
    pooled = [(seen[large], expected[large]), (seen[~large].sum(), expected[~large].sum())]
    value = sum(((s - e) ** 2 / e).sum() for s, e in pooled if np.size(e) and np.all(e > 0))
    assert stats.chi2.sf(value, large.sum() + 1) > 1e-10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p_max", [0.1, 0.100001, 0.35, 0.9, 0.999])
def test_p_max_is_as_asked(kind, p_max):
    assert kind.from_p_max(10, p_max).p_max == pytest.approx(p_max, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 2.0, 30.0])
def test_epsilon_is_as_asked(kind, epsilon):
    assert kind.from_epsilon(7, epsilon).epsilon == pytest.approx(epsilon, abs=1e-9)
    whole = ComponentWise.from_epsilon(kind, (3, 7, 2), epsilon)
    assert whole.epsilon == pytest.approx(epsilon, abs=1e-9)
    shares = [part.epsilon for part in whole.mechanisms]
    assert shares == pytest.approx([epsilon * k / 12 for k in (3, 7, 2)], abs=1e-9)


@pytest.mark.parametrize("epsilon", [15.0, 20.0, 30.0, 35.5, 36.0, 50.0])
@pytest.mark.parametrize("levels", [2, 5, (2, 3)])
def test_the_epsilon_asked_for_is_not_exceeded_where_p_max_is_near_1(levels, epsilon):
    found = Geometric.from_epsilon(levels, epsilon).epsilon
    assert min(epsilon - 1, 36) < found <= epsilon * (1 + ROOM)


@pytest.mark.parametrize("levels", [2, 5, (3, 4)])
@pytest.mark.parametrize("slip", [1e-3, 1e-9, 1e-14])
def test_rates_keep_their_digits_where_p_max_is_near_1(levels, slip):
    mechanism = Geometric(levels, 1 - slip)
    slip, rates = 1 - mechanism.p_max, mechanism.rates(cells_of(mechanism))
    mass = np.exp(-rates[:, None] * distances_of(mechanism))
    np.fill_diagonal(mass, 0)
    assert mass.sum(axis=1) == pytest.approx(slip / (1 - slip), rel=1e-12, abs=0)
    if levels == 2:
        assert mechanism.epsilon == pytest.approx(math.log((1 - slip) / slip), abs=1e-12)


def test_what_falls_outside_a_domain_keeps_its_digits():
    for levels, rate in itertools.product((2, 3, 10), (0, 0.5, 3, 7.9, 11.7, 60)):
        mechanism = UniformGeometric(levels, rate)
        assert mechanism.channel.min() > 0
        assert np.abs(mechanism.channel.sum(axis=1) - 1).max() < 1e-15 * levels
        assert mechanism.epsilon == pytest.approx(brute_force(mechanism), abs=1e-11)


few_levels = st.lists(st.integers(2, 4), min_size=1, max_size=3)


@given(few_levels, st.floats(0.01, 0.9), st.sampled_from([1, 2, math.inf]))
@settings(max_examples=40)
def test_any_bounded_geometric_is_exact(levels, raised, norm):
    least = 1 / math.prod(levels)
    mechanism = Geometric(tuple(levels), least + raised * (1 - least), norm)
    check_exact(mechanism, digits=9)
    assert mechanism.d_privacy >= mechanism.rates(cells_of(mechanism)).max() - 1e-12


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_a_domain_of_ten_to_the_eleven_cells(norm):
    assert Geometric.from_epsilon((10,) * 11, 9.0, norm).epsilon == pytest.approx(9, abs=1e-9)
    mechanism = Geometric((10,) * 11, 0.05, norm)
    assert norm != 1 or mechanism.d_privacy > 5
    rows = np.repeat(default_rng(0).integers(0, 10, (20, 11)), 500, axis=0)
    kept = (mechanism.sample(rows, rng=default_rng(1)) == rows).all(axis=1).sum()
    assert stats.binomtest(int(kept), len(rows), 0.05).pvalue > 1e-10


def test_part_of_randomised_response_is_what_happens_to_some_variables():
    whole = RandomizedResponse.from_p_max((3, 4, 2), 0.2)
    channel = whole.channel.reshape(3, 4, 2, 3, 4, 2)[:, 0].sum(axis=3)  # x1 = 0; y1 summed
    expected = channel.transpose(1, 0, 3, 2).reshape(6, 6)
    assert whole.of([2, 0]).channel == pytest.approx(expected, abs=1e-12)
    parts = PARTS[0].mechanisms
    assert PARTS[0].of([2, 0]).mechanisms == (parts[2], parts[0])


@pytest.mark.parametrize("mechanism", WHOLE + PARTS, ids=str)
def test_forward_and_backward_are_the_channel(mechanism):
    joint, values = default_rng(0).random((2, *mechanism.levels))
    forward, backward = mechanism.forward(joint), mechanism.backward(values)
    assert forward.ravel() == pytest.approx(joint.ravel() @ mechanism.channel)
    assert backward.ravel() == pytest.approx(mechanism.channel @ values.ravel())
    if hasattr(mechanism, "inverse"):
        assert mechanism.inverse(forward) == pytest.approx(joint)


@pytest.mark.parametrize("mechanism", [*WHOLE[:1], *PARTS], ids=str)
def test_moments_are_unbiased_exactly(mechanism):
    # over all reports of each record, weighted by the channel
    cells, channel = cells_of(mechanism), mechanism.channel
    values, roots, squares, constant = mechanism.moments(cells)
    products = roots[:, :, None] * roots[:, None, :] + constant
    products[:, range(cells.shape[1]), range(cells.shape[1])] += squares
    assert channel @ values == pytest.approx(cells, abs=1e-9)
    expected = (cells[:, :, None] * cells[:, None, :]).reshape(len(cells), -1)
    assert channel @ products.reshape(len(cells), -1) == pytest.approx(expected, abs=1e-8)


def sampled(mechanism, codes):
    return lambda: mechanism.sample(np.array(codes), rng=default_rng(0))


LARGE = RandomizedResponse((10,) * 4, 1.0), Geometric((10,) * 4, 0.1)
LARGE += (ComponentWise.from_p_max(Geometric, (10,) * 4, 0.1),)
SILENT = RandomizedResponse((3, 3), 0.0), ComponentWise([RandomizedResponse(3, 0.0)] * 2)
DATA = Dataset([[0, 2]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
FOUR_HUNDRED = (10,) * 400


OUT_OF_RANGE = (5, 0.19, "at least 1/5"), (5, 1.0, "below 1"), (1, 0.5, "leave it out")
test_bad_input_is_refused_with_its_cure = refusals(
    *((partial(kind.from_p_max, *bad), words) for kind in KINDS for *bad, words in OUT_OF_RANGE),
    (lambda: Geometric((3, 1), 0.5), "leave it out"),
    (lambda: ComponentWise.from_p_max(Geometric, (3, 1), 0.5), "leave it out"),
    *((sampled(m, [0, bad]), "record 1 has") for m in ONE[::3] for bad in (-1, 2)),
    (sampled(ONE[0], [0.5]), "sort the values into bins"),
    (sampled(ONE[0], [[0], [0]]), "each record must have shape"),
    (sampled(ONE[0], 0), "each record must have shape"),
    (sampled(WHOLE[0], [[0, 0, 0]]), "each record must have shape"),
    *((lambda m=m: m.channel, "use sample, epsilon and p_max") for m in LARGE),
    (lambda: LARGE[1].d_privacy, "too large to write out"),
    (lambda: Geometric(tuple(range(2, 30)), 1e-9).epsilon, "fewer bins"),
    (lambda: Geometric((3, 3), 0.5, 3), "norm must be"),
    (lambda: Geometric((3, 3), 0.5).of([0]), "reconstruct the joint"),
    (lambda: RandomizedResponse(3, -1.0), "not negative"),
    (lambda: ClippedGeometric(3, math.nan), "not negative"),
    (lambda: ComponentWise([WHOLE[0]]), "one mechanism on one variable"),
    (lambda: ComponentWise([]), "one mechanism on one variable"),
    (lambda: ComponentWise.from_p_max(Geometric, (3, 4), 1 - 2**-53), "too near to 1"),
    *((partial(m.moments, np.zeros((2, 2), int)), "raise epsilon") for m in SILENT),
    *((partial(m.inverse, np.ones((3, 3))), "raise epsilon") for m in SILENT),
    (lambda: report(DATA, SILENT[0], rng=default_rng(0)), "from data.cardinalities"),
    (lambda: RandomizedResponse(FOUR_HUNDRED, 0.5), "use a component-wise mechanism"),
    (lambda: Geometric(FOUR_HUNDRED, 0.5), "use a component-wise mechanism"),
)


# --- channels and balls by looking at every entry and cell


def test_impossible_reports_distances_and_chosen_inputs_count_as_defined():
    channel = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]])
    assert privacy_loss(channel[:2]) == pytest.approx(math.log(2))  # impossible from both
    assert privacy_loss(channel) == math.inf  # possible from one only
    channel = np.array([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8]])
    apart = np.abs(np.subtract.outer(range(3), range(3)))
    assert privacy_loss(channel, apart) == pytest.approx(math.log(3))  # 0.6 to 0.2, a step
    assert privacy_loss(channel, inputs=[1]) == pytest.approx(math.log(3))
    assert privacy_loss(channel, apart, inputs=[0]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("levels", [(2, 3), (4, 2, 4), (5, 5, 5)])
def test_counts_and_radii_are_those_of_a_list_of_all_cells(levels, norm):
    balls = balls_of(levels, norm)
    cells, sorted_cells = (np.array([*np.ndindex(*own)]) for own in (levels, sorted(levels)))
    places = np.unique(balls.canonical(cells)[0], axis=0)
    assert {tuple(row) for rows in balls.kinds() for row in rows} == set(map(tuple, places))
    found = balls.counts(places)[0], balls.radius(places)
    for place, counts, radius in zip(places, *found, strict=True):
        apart = np.linalg.norm(sorted_cells - place, ord=norm, axis=1)
        expected = [np.isclose(apart, distance).sum() for distance in balls.distances]
        assert counts.tolist() == expected
        assert radius == pytest.approx(apart.max(), rel=1e-15)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_counts_of_a_large_domain_are_exact_integers(norm):
    levels, places = (10,) * 15, np.arange(15) % 5
    ways = ways_by_distance(places, 10, norm)
    found = balls_of(levels, norm).counts(np.sort(places)[None])[0][0]
    assert {far: int(count) for far, count in enumerate(found) if count} == ways


# --- the ends of double precision


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [*KINDS[:1], *KINDS[2:], Geometric.from_epsilon])
@extreme
@given(numbers.map(abs), st.integers(2, 6))
def test_any_epsilon_makes_a_channel(kind, epsilon, levels):
    mechanism = kind(levels, epsilon)
    assert mechanism.channel.sum(axis=1) == pytest.approx(np.ones(levels))
    assert min(mechanism.epsilon, mechanism.channel.min()) >= 0
    assert set(mechanism.sample(np.zeros(3, int), rng=default_rng(0))) <= set(range(levels))


@pytest.mark.parametrize("epsilon", [30.0, 50.0, 1e3, 1e300])
def test_some_variables_of_a_record_that_is_hardly_ever_replaced(epsilon):
    part = RandomizedResponse((2, 3), epsilon).of([0])
    assert part.channel == pytest.approx(np.eye(2), abs=1e-9)
    assert pytest.approx(epsilon - math.log(3), abs=1e-3) == part.epsilon <= epsilon


def test_a_chance_of_a_guess_makes_every_mechanism_say_nothing():
    rates = [ClippedGeometric.from_p_max(levels, 1 / levels).rate for levels in range(2, 400)]
    assert max(rates) < 1e-12


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_p_max_next_to_one_is_reached(kind):
    mechanism = ComponentWise.from_p_max(kind, (3, 4), 1 - 1e-12)
    assert mechanism.p_max == pytest.approx(1 - 1e-12, abs=1e-13)


def test_four_hundred_variables():
    mechanism = ComponentWise.from_p_max(RandomizedResponse, FOUR_HUNDRED, 0.1)
    assert mechanism.p_max == pytest.approx(0.1)
