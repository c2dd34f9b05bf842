"""Additive noise models for a pair: directions, guarantees, what a release may depend on."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import synthetic_pair
from extremes import MOST, extreme, numbers
from hypothesis import given
from numpy.random import default_rng
from people import refused

import dpcgd.pairwise.anm
from dpcgd import Budget, Dataset
from dpcgd.pairwise.anm import anm, confidence, histogram_anm, private_anm
from dpcgd.pairwise.dependence_scores import Hsic, Iqr, Kendall, Spearman
from dpcgd.pairwise.kernel_ridge import GaussianRidge, Ridge
from dpcgd.privacy.events import ApproximateEvent, PureEvent
from dpcgd.privacy.filters import BasicFilter

RANGES = {"x": (-1, 1), "y": (-1, 1)}

PRIVATE = {
    "test set": partial(private_anm, epsilon=2.0, protects="test set"),
    "everyone": partial(private_anm, epsilon=2.0),
    "ranks": partial(private_anm, epsilon=2.0, score=Spearman()),
    "IQR": partial(private_anm, epsilon=2.0, score=Iqr()),
    "histogram": partial(histogram_anm, epsilon=2.0),
}
every_private_run = pytest.mark.parametrize("run", PRIVATE.values(), ids=PRIVATE)


def pair_of(x, y):
    return Dataset.of_numbers(np.column_stack([x, y]), RANGES)


def model(n=2000, seed=0):
    return synthetic_pair(n, rng=default_rng(seed))


class Spy(Dataset):
    """Fails when its values are looked at."""

    @property
    def scaled(self):
        raise AssertionError("looked")

    binned = scaled


def test_the_direction_of_additive_noise_models_is_found():
    found = [anm(model(800, seed), rng=default_rng(seed)).direction for seed in range(10)]
    assert found.count(("x", "y")) >= 9  # seeded


def test_a_run_without_privacy_says_so():
    release = anm(model(), rng=default_rng(0))
    assert (release.guarantee, release.protects, release.confidence) == ("none", "nobody", 1.0)
    assert release.ledger.spent == (math.inf, 1.0)


def test_the_smaller_score_decides_and_columns_may_be_in_any_order():
    pair = model(600)
    swapped = Dataset(pair.codes[:, ::-1], dict(reversed(pair.levels.items())))
    one, two = (anm(each, rng=default_rng(3)) for each in (pair, swapped))
    assert one.scores == two.scores
    assert one.direction == two.direction == min(one.scores, key=one.scores.get)


# --- private runs ------------------------------------------------------------------------------


@every_private_run
def test_the_ledger_stays_within_the_budget(run):
    release = run(model(), rng=default_rng(0))
    assert release.guarantee == "proved"
    assert (1.99, 1) < release.ledger.spent <= (2.0, 1e-6)


@pytest.mark.parametrize("protects", ["test set", "everyone"])
def test_plain_cells_agree_draw_for_draw(protects):
    """A second writing of the private run: halves, regression, scores, noise."""
    pair, epsilon, rng = model(501), 1.5, default_rng(5)
    test = np.isin(np.arange(501), rng.choice(501, 251, replace=False, shuffle=False))
    expected, change = {}, Ridge().change(250) * (protects == "everyone")
    scale = 2 * max(2 / 251 + 4 / 251**2, Hsic().residual_sensitivity(251, change)) / epsilon
    for cause, effect in ((0, 1), (1, 0)):
        x, y = pair.scaled[:, cause], pair.scaled[:, effect]
        residual = y[test] - Ridge().fit(x[~test], y[~test]).predict(x[test])
        names = pair.variables[cause], pair.variables[effect]
        expected[names] = Hsic().value(x[test], residual) + rng.laplace(scale=scale)
    release = private_anm(pair, epsilon=epsilon, protects=protects, rng=default_rng(5))
    assert release.scores == pytest.approx(expected, rel=1e-6)
    assert release.confidence == pytest.approx(confidence(np.ptp([*expected.values()]), scale))
    assert ("thm-everyone" in release.terms.theorems) == (protects == "everyone")


@pytest.mark.filterwarnings("error")
@every_private_run
def test_degenerate_data_are_no_reason_to_refuse(run):
    """A refusal or a warning would tell about the data."""
    n, rng = 400, default_rng(0)
    ties = rng.integers(0, 2, (2, n)) * 2.0 - 1
    for x, y in [(np.zeros(n), rng.uniform(-1, 1, n)), (np.ones(n), -np.ones(n)), ties]:
        assert run(pair_of(x, y), rng=default_rng(1)).direction in (("x", "y"), ("y", "x"), None)


@every_private_run
def test_secure_runs_tell_no_seconds(run):
    pytest.importorskip("opendp")
    assert run(model(400), secure=True).seconds is None
    assert run(model(400), rng=default_rng(0)).seconds > 0


@pytest.mark.slow
def test_iqr_answers_where_there_are_many_records_only():
    few = private_anm(model(100), epsilon=0.5, score=Iqr(), rng=default_rng(0))
    assert {few.direction, few.confidence, *few.scores.values()} == {None}
    assert few.ledger.spent <= (0.5, 1e-6)
    settings = {"score": Iqr(), "protects": "test set", "rng": default_rng(1)}
    many = private_anm(model(40_000), epsilon=4.0, **settings)
    assert many.direction is not None
    assert [type(e) for e in many.ledger.events] == 2 * [PureEvent, ApproximateEvent]


# --- confidence --------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.0, 0.3, 2.0, 8.0])
def test_confidence_is_the_chance_that_noise_keeps_the_order(margin):
    """False alarms below 1e-9: 6.1 deviations of 0.5 / sqrt(400,000) at most."""
    noise = default_rng(8).laplace(scale=1.5, size=(2, 400_000))
    kept = (noise[0] - noise[1] < margin).mean()
    assert abs(kept - confidence(margin, 1.5)) < 6.2 * 0.5 / math.sqrt(400_000)


@pytest.mark.filterwarnings("error")
@extreme
@given(numbers.map(abs), numbers.map(abs))
def test_confidence_is_a_probability_and_refused_in_less_than_nothing(margin, scale):
    assert 0.5 <= confidence(margin, scale) <= 1
    for bad in ((-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)):
        refused("0 or more", confidence, *bad)


# --- histograms ------


def test_a_histogram_counts_everyone_once():
    pair = model(500)
    counts = dpcgd.pairwise.anm._histogram(pair, 8)
    assert counts.sum() == 500
    edges = np.linspace(-1, 1, 9)
    assert np.array_equal(counts, np.histogram2d(*pair.scaled.T, bins=(edges, edges))[0])


def test_drawn_records_lie_in_their_cells():
    weights = np.zeros((4, 4))
    weights[3, 0] = 2.0
    drawn = dpcgd.pairwise.anm._drawn(model(100), weights, default_rng(0)).scaled
    assert (drawn * (1, -1)).min() >= 0.5


def test_independent_histograms_have_the_margins_and_the_size():
    counts = dpcgd.pairwise.anm._histogram(model(500), 8) + default_rng(0).normal(size=(8, 8))
    alone = dpcgd.pairwise.anm._independent(counts, 500)
    assert (alone.sum(), np.linalg.matrix_rank(alone)) == (pytest.approx(500), 1)
    assert alone.min() >= 0
    shares = [np.maximum(counts.sum(axis=axis), 0) for axis in (0, 1)]
    for axis, share in enumerate(shares):
        assert alone.sum(axis=axis) / 500 == pytest.approx(share / share.sum(), abs=1e-9)
    assert np.isfinite(dpcgd.pairwise.anm._independent(-np.ones((4, 4)), 500)).all()


# --- accounts ----------------------------------------------------------------------------------


def test_epsilons_and_deltas_add_up():
    account = BasicFilter(Budget(1.0, 1e-6))
    account.spend(PureEvent("a", 0.5), ApproximateEvent("b", 0.4, 1e-6))
    assert account.ledger.spent == pytest.approx((0.9, 1e-6))


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [anm, *PRIVATE.values()], ids=["anm", *PRIVATE])
def test_bad_pairs_are_refused_before_a_look(run):
    triple = Spy.of_numbers(np.zeros((9, 3)), RANGES | {"z": (0, 1)})
    refused("two columns, not 3", run, triple, rng=default_rng(0))
    for n in (2, 3):
        few = Spy.of_numbers(np.zeros((n, 2)), RANGES)
        refused(f"{n} records cannot be split", run, few, rng=default_rng(0))
    run(pair_of([-1, 0, 0.5, 1], [1, 0, 0, -1]), rng=default_rng(0))  # four are enough


def test_bad_settings_are_refused_before_a_look():
    spy = Spy.of_numbers(np.zeros((50, 2)), RANGES)
    settings = {"epsilon": 1.0, "rng": default_rng(0)}
    refused("no seed", private_anm, spy, **settings, secure=True)
    refused("protects must be one of", private_anm, spy, **settings, protects="nobody")
    refused("bins", histogram_anm, spy, **settings, bins=1)
    many = Spy.of_numbers(np.zeros((10_002, 2)), RANGES)
    for run in (private_anm, histogram_anm):
        refused("at random", run, many, ridge=GaussianRidge(), **settings)


def test_a_constant_column_is_refused_where_looking_is_allowed():
    pair = pair_of(np.linspace(-1, 1, 20), np.zeros(20))
    refused("'y' is constant", anm, pair, rng=default_rng(0))


def test_more_than_half_a_million_records_keep_a_part_of_the_budget_for_rounding():
    pair = Dataset.of_numbers(default_rng(0).uniform(-1, 1, (600_000, 2)), RANGES)
    release = private_anm(pair, epsilon=1.0, score=Kendall(), rng=default_rng(0))
    assert len(release.ledger.events) == 2
    assert 1 - 3e-9 < release.ledger.spent.epsilon < 1


def test_rows_that_leave_no_delta_for_a_test_are_refused_before_anything_is_spent(monkeypatch):
    """At a large epsilon the delta of a row is too small a number."""
    paid = []
    monkeypatch.setattr(BasicFilter, "spend", lambda self, *events: paid.extend(events))
    settings = {"epsilon": 1e6, "score": Iqr(), "rows_per_person": 3, "rng": default_rng(0)}
    refused("delta above 0.*fewer rows", private_anm, model(200), **settings)
    assert not paid


# --- the ends of double precision

PAIR = synthetic_pair(60, rng=default_rng(0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [1e-290, 1e6, MOST])
@pytest.mark.parametrize("protects", ["everyone", "test set"])
@pytest.mark.parametrize("score", [Hsic(), Hsic(width=1e300), Kendall(), Spearman(), Iqr()])
def test_a_direction_and_a_confidence_at_any_epsilon(epsilon, protects, score):
    release = private_anm(PAIR, epsilon=epsilon, score=score, protects=protects, rng=default_rng(0))
    assert release.confidence is None or 0.5 <= release.confidence <= 1
    assert release.ledger.spent <= (epsilon, 1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [1e-90, 1e6, MOST])
def test_histograms_at_any_epsilon(epsilon):
    release = histogram_anm(PAIR, epsilon=epsilon, delta=1e-100, rng=default_rng(0))
    assert release.ledger.spent <= (epsilon, 1e-100)
    assert release.confidence is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ridge", [Ridge(1e-9, 1e300), Ridge(1.0, MOST), GaussianRidge(1e-9)])
def test_neighbours_do_not_differ_in_whether_a_fit_fails(ridge):
    for data in (PAIR, replace(PAIR, codes=0 * PAIR.codes)):
        assert private_anm(data, epsilon=1.0, ridge=ridge, rng=default_rng(0)).direction


def test_noise_and_widths_that_are_no_numbers_are_refused_first():
    settings = {"epsilon": 1.0, "score": Hsic(width=1e-320), "rng": default_rng(0)}
    refused("no scale of noise", private_anm, PAIR, **settings)
    for width in (1e-320, 1e300):
        refused("width must lie between", Iqr, width=width)
