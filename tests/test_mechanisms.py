import math
import sys

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import integrate, stats

from dpcgd.mechanisms import (
    AboveThreshold,
    SecureNoise,
    SeededNoise,
    amplified,
    before_amplification,
    gaussian,
    laplace,
    noise_source,
)
from dpcgd.privacy import (
    Budget,
    BudgetSpent,
    Filter,
    GaussianEvent,
    Odometer,
    PureEvent,
    epsilon_of_rho,
)


class Tape:
    """Adds no noise and notes the scales."""

    def __init__(self):
        self.laplace_calls, self.gaussian_calls = [], []

    def laplace(self, value, scale):
        self.laplace_calls.append((value, scale))
        return value

    def gaussian(self, value, scale):
        self.gaussian_calls.append((value, scale))
        return value


class ManyTrials:
    """Stands for a Generator and draws all trials at once, so that package code runs them all."""

    def __init__(self, seed, trials):
        self.rng, self.trials = default_rng(seed), trials

    def laplace(self, scale):
        return self.rng.laplace(scale=scale, size=self.trials)

    def normal(self, scale):
        return self.rng.normal(scale=scale, size=self.trials)


def account(epsilon=10.0):
    return Filter(Budget(epsilon, 1e-6))


def test_laplace_pays_looks_and_answers_with_the_right_scale():
    noise, paid = Tape(), account()
    answer = laplace(lambda: 7.0, sensitivity=3.0, epsilon=0.5, account=paid, noise=noise)
    assert answer == 7.0
    assert noise.laplace_calls == [(7.0, 6.0)]
    assert paid.ledger.events == (PureEvent("Laplace", 0.5),)


def test_gaussian_pays_looks_and_answers_with_the_right_deviation():
    noise, paid = Tape(), account()
    answer = gaussian(lambda: 7.0, sensitivity=3.0, noise_multiplier=4.0, account=paid, noise=noise)
    assert answer == 7.0
    assert noise.gaussian_calls == [(7.0, 12.0)]
    assert paid.ledger.events == (GaussianEvent("Gaussian", 4.0),)


def test_seeded_answers_do_not_change():
    noise, paid = SeededNoise(default_rng(7)), account()
    found = [
        laplace(lambda: 10.0, sensitivity=2.0, epsilon=0.5, account=paid, noise=noise),
        gaussian(lambda: 10.0, sensitivity=2.0, noise_multiplier=3.0, account=paid, noise=noise),
        noise.laplace(0.0, 1.0),
        noise.gaussian(0.0, 1.0),
        *noise.choose(1000, 3),
    ]
    expected = [11.151746729898429, 11.79247322505082, 0.8015598615399733, -0.8905918387572742]
    assert found == pytest.approx([*expected, 55, 299, 285], rel=0, abs=1e-12)
    sieve = AboveThreshold(
        1.0, sensitivity=0.5, epsilon=0.5, account=paid, noise=SeededNoise(default_rng(10))
    )
    answers = []
    while not any(answers):
        answers.append(bool(sieve.above(lambda: 0.0)))
    assert len(answers) == 9


def test_the_same_seed_gives_the_same_noise_and_another_seed_other_noise():
    draws = [
        (noise.laplace(0.0, 1.0), noise.gaussian(0.0, 1.0), tuple(noise.choose(10**6, 5)))
        for noise in (SeededNoise(default_rng(seed)) for seed in (1, 1, 2))
    ]
    assert draws[0] == draws[1]
    assert not set(draws[0]) & set(draws[2])


def kolmogorov_smirnov(draw, count, distribution):
    return stats.kstest([draw() for _ in range(count)], distribution.cdf, method="exact").pvalue


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_seeded_noise_has_the_named_distributions(scale):
    # False alarm: 1e-8 each over seeds; this seed is fixed.
    noise = SeededNoise(default_rng(3))
    for draw, distribution in [
        (lambda: noise.laplace(5.0, scale), stats.laplace(5.0, scale)),
        (lambda: noise.gaussian(5.0, scale), stats.norm(5.0, scale)),
    ]:
        assert kolmogorov_smirnov(draw, 20_000, distribution) > 1e-8


def test_secure_noise_has_the_named_distributions_and_no_seed():
    # False alarm: 1e-8 for each of the two tests; equal draws are rarer (2^-50 each).
    noise = SecureNoise()
    for draw, distribution in [
        (lambda: noise.laplace(5.0, 2.0), stats.laplace(5.0, 2.0)),
        (lambda: noise.gaussian(5.0, 2.0), stats.norm(5.0, 2.0)),
    ]:
        assert len({draw() for _ in range(10)}) == 10
        assert draw() != draw()
        assert kolmogorov_smirnov(draw, 3_000, distribution) > 1e-8


def test_the_distribution_test_notices_wrong_noise():
    noise = SeededNoise(default_rng(3))
    for wrong in (stats.laplace(0, 0.8), stats.laplace(0.25, 1), stats.norm(0, math.sqrt(2))):
        assert kolmogorov_smirnov(lambda: noise.laplace(0.0, 1.0), 3_000, wrong) < 1e-8


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_a_choice_is_distinct_in_range_and_differs(kind):
    # False alarm of the last line: 1 / C(1000, 20) twice, below 1e-40.
    noise = SecureNoise() if kind == "secure" else SeededNoise(default_rng(0))
    for n, m in [(1, 1), (5, 5), (10, 3), (1000, 20)]:
        chosen = noise.choose(n, m)
        assert len(set(chosen.tolist())) == len(chosen) == m
        assert chosen.min() >= 0
        assert chosen.max() < n
    assert len({tuple(sorted(noise.choose(1000, 20))) for _ in range(3)}) == 3


@pytest.mark.parametrize("kind", ["seeded", "secure"])
def test_every_subset_is_equally_likely(kind):
    # Chi-squared over the 10 pairs out of 5; false alarm 1e-8 each.
    noise = SecureNoise() if kind == "secure" else SeededNoise(default_rng(5))
    pairs = [frozenset(noise.choose(5, 2).tolist()) for _ in range(10_000)]
    counts = [pairs.count(pair) for pair in set(pairs)]
    assert len(counts) == 10
    assert stats.chisquare(counts).pvalue > 1e-8


def test_the_caller_has_to_say_where_noise_comes_from():
    for nothing in (None, 0, 42, np.random.RandomState(0), np.random):
        with pytest.raises(
            ValueError, match=r"default_rng\(seed\).*secure=True for a real release"
        ):
            noise_source(nothing, secure=False)
    with pytest.raises(ValueError, match="leave out rng when secure=True"):
        noise_source(default_rng(0), secure=True)
    assert isinstance(noise_source(default_rng(0), secure=False), SeededNoise)
    assert isinstance(noise_source(None, secure=True), SecureNoise)


def test_secure_noise_without_opendp_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"pip install 'dpcgd\[secure\]'"):
        noise_source(None, secure=True)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 7.0])
def test_above_threshold_uses_the_scales_of_the_proof(epsilon, sensitivity):
    noise = Tape()
    sieve = AboveThreshold(
        5.0, sensitivity=sensitivity, epsilon=epsilon, account=Odometer(0.1), noise=noise
    )
    sieve.above(lambda: 4.0)
    sieve.above(lambda: 4.5)
    assert [value for value, _ in noise.laplace_calls] == [5.0, 4.0, 4.5]
    scales = [scale * epsilon / sensitivity for _, scale in noise.laplace_calls]
    assert scales == pytest.approx([2, 4, 4], rel=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_above_threshold_on_a_sub_sample_spends_inside_what_amplification_allows(rate):
    noise, paid = Tape(), account()
    sieve = AboveThreshold(0.0, sensitivity=1.0, epsilon=0.5, account=paid, noise=noise, rate=rate)
    sieve.above(lambda: -1.0)
    inner = math.log(1 + (math.exp(0.5) - 1) / rate)
    scales = [scale for _, scale in noise.laplace_calls]
    assert scales == pytest.approx([2 / inner, 4 / inner], rel=1e-12)
    assert paid.ledger.events == (PureEvent("above threshold", 0.5),)


def test_above_threshold_pays_once_and_stops_at_its_first_hit():
    noise, paid = Tape(), account()
    sieve = AboveThreshold(1.0, sensitivity=1.0, epsilon=0.5, account=paid, noise=noise)
    assert len(paid.ledger.events) == 1
    answers = [bool(sieve.above(lambda v=v: v)) for v in (0.0, 0.5, 0.99, 1.0)]
    assert answers == [False, False, False, True]
    taken = []
    for _ in range(2):
        with pytest.raises(RuntimeError, match="has fired; pay for a new one"):
            sieve.above(lambda: taken.append(1) or 0.0)
    assert taken == []
    assert len(paid.ledger.events) == 1


def test_above_threshold_that_cannot_be_paid_draws_nothing():
    noise, paid = Tape(), account(0.1)
    with pytest.raises(BudgetSpent):
        AboveThreshold(1.0, sensitivity=1.0, epsilon=5.0, account=paid, noise=noise)
    assert noise.laplace_calls == []


def test_amplification_is_the_closed_form_and_its_inverse():
    for epsilon in (1e-6, 0.1, 1.0, 5.0):
        for rate in (0.001, 0.05, 0.5, 1.0):
            expected = math.log(1 + rate * (math.exp(epsilon) - 1))
            assert amplified(epsilon, rate) == pytest.approx(expected, rel=1e-8)
            assert amplified(epsilon, rate) <= epsilon * (1 + 1e-12)
            inner = before_amplification(epsilon, rate)
            assert inner == pytest.approx(math.log(1 + (math.exp(epsilon) - 1) / rate), rel=1e-8)
            assert amplified(inner, rate) == pytest.approx(epsilon, rel=1e-12)
            outer = amplified(epsilon, rate)
            assert before_amplification(outer, rate) == pytest.approx(epsilon, rel=1e-12)
    assert amplified(1e-12, 0.5) == pytest.approx(0.5e-12, rel=1e-9)


@pytest.mark.parametrize("sampled", [1, 2, 4])
def test_amplification_of_a_randomised_count_holds_with_equality_where_it_is_tight(sampled):
    # Randomised response on whether the one differing record of 4 is in the sample: by hand, the
    # worst ratio is that of the mixture of sampled / 4 and its complement.
    epsilon, rate = 1.2, sampled / 4
    yes, no = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    worst = (rate * yes + (1 - rate) * no) / no
    assert amplified(epsilon, rate) == pytest.approx(math.log(worst), rel=1e-12)


def hit_probabilities(queries, threshold, scale):
    """P(first hit at j), and P(no hit) last, by integration over the threshold's noise."""
    z = np.linspace(-60 * scale, 60 * scale, 400_001)
    density = np.exp(-np.abs(z) / scale) / (2 * scale)
    silent, found = np.ones_like(z), []
    for q in queries:
        hit = stats.laplace.sf(threshold + z - q, scale=2 * scale)
        found.append(integrate.trapezoid(density * silent * hit, z))
        silent = silent * (1 - hit)
    return np.array([*found, integrate.trapezoid(density * silent, z)])


def first_hits(queries, threshold, trials, **how):
    counts = np.zeros(len(queries) + 1, int)
    for _ in range(trials):
        sieve = AboveThreshold(threshold, **how)
        for j, q in enumerate(queries):
            if sieve.above(lambda q=q: q):
                counts[j] += 1
                break
        else:
            counts[-1] += 1
    return counts


def test_hits_are_as_likely_as_integration_says():
    # Chi-squared over five outcomes, each expected at least 1,000 times; false alarm 1e-8.
    queries, epsilon, sensitivity, trials = [-1.0, 0.5, 0.0, 2.0], 1.5, 0.7, 30_000
    expected = hit_probabilities(queries, 0.5, 2 * sensitivity / epsilon)
    assert expected.sum() == pytest.approx(1, abs=1e-7)
    counts = first_hits(
        queries,
        0.5,
        trials,
        sensitivity=sensitivity,
        epsilon=epsilon,
        account=Odometer(0.1),
        noise=SeededNoise(default_rng(11)),
    )
    assert trials * expected.min() > 1_000
    assert stats.chisquare(counts, trials * expected / expected.sum()).pvalue > 1e-8


# Audits. Each compares how often an event happens on two neighbouring inputs; Clopper-Pearson
# bounds at ALPHA: with fewer than 6,000 of them, one of all the audits fails with less than 1e-7.
ALPHA = 1e-11


def at_least(hits, trials):
    return stats.beta.ppf(ALPHA, hits, trials - hits + 1) if hits else 0.0


def at_most(hits, trials):
    return stats.beta.isf(ALPHA, hits + 1, trials - hits) if hits < trials else 1.0


def audited_epsilon(events, others, delta=0.0):
    """Largest epsilon that some event proves to be exceeded: one row a trial, one column an event.

    Both directions are tried.
    """
    trials, found = len(events), 0.0
    for p, q in [(events, others), (others, events)]:
        for hits, rare in zip(p.sum(axis=0), q.sum(axis=0), strict=True):
            excess = at_least(hits, trials) - delta
            if excess > 0:
                found = max(found, math.log(excess / at_most(rare, trials)))
    return found


def beyond(values, cuts):
    return values[:, None] > np.asarray(cuts)


def laplace_answers(true, seed, epsilon, trials=100_000):
    return laplace(
        lambda: true,
        sensitivity=2.0,
        epsilon=epsilon,
        account=Odometer(0.1),
        noise=SeededNoise(ManyTrials(seed, trials)),
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_audit_of_laplace(epsilon):
    cuts = [-2.0, 0.0, 1.0, 2.0, 4.0]
    claimed = audited_epsilon(
        beyond(laplace_answers(0.0, 1, epsilon), cuts),
        beyond(laplace_answers(2.0, 2, epsilon), cuts),
    )
    assert 0.7 * epsilon < claimed <= epsilon
    halved = audited_epsilon(
        beyond(laplace_answers(0.0, 1, 2 * epsilon), cuts),
        beyond(laplace_answers(2.0, 2, 2 * epsilon), cuts),
    )
    assert halved > epsilon


def gaussian_answers(true, seed, multiplier, trials=100_000):
    return gaussian(
        lambda: true,
        sensitivity=2.0,
        noise_multiplier=multiplier,
        account=Filter(Budget(100.0, 1e-6)),
        noise=SeededNoise(ManyTrials(seed, trials)),
    )


@pytest.mark.parametrize("multiplier", [1.0, 2.0])
def test_audit_of_gaussian(multiplier):
    delta, cuts = 0.01, np.linspace(-2, 8, 21)
    epsilon = epsilon_of_rho(1 / (2 * multiplier**2), delta)
    claimed = audited_epsilon(
        beyond(gaussian_answers(0.0, 1, multiplier), cuts),
        beyond(gaussian_answers(2.0, 2, multiplier), cuts),
        delta,
    )
    assert 0.5 * epsilon < claimed <= epsilon
    halved = audited_epsilon(
        beyond(gaussian_answers(0.0, 1, multiplier / 2), cuts),
        beyond(gaussian_answers(2.0, 2, multiplier / 2), cuts),
        delta,
    )
    assert halved > epsilon


LENGTH = 40
FLAT, HALF = np.zeros(LENGTH), np.repeat([-1.0, 1.0], LENGTH // 2)
NEIGHBOURS = [
    (FLAT, FLAT - 1),
    (FLAT, FLAT + 1),
    (FLAT, HALF),
    (FLAT, np.where(np.arange(LENGTH) < 5, -1.0, 1.0)),
    (np.arange(LENGTH) % 2 * 1.0, np.arange(1, LENGTH + 1) % 2 * 1.0),
]
"""Queries on two data sets, each moved by at most a sensitivity of 1; the threshold is 0."""


def sieve_events(answers):
    """From one row of hits a trial: where the first is, whether late, and how hits are spread."""
    length = answers.shape[1]
    first = np.where(answers.any(axis=1), answers.argmax(axis=1), length)
    position = first[:, None] == np.arange(length + 1)
    late = first[:, None] >= np.arange(1, length + 1)
    half = length // 2
    spread = answers[:, half:].sum(axis=1) - answers[:, :half].sum(axis=1)
    return np.hstack([position, late, spread[:, None] >= np.arange(-half, half + 1)])


def audit_of_sieve(run):
    found = 0.0
    for i, (queries, others) in enumerate(NEIGHBOURS):
        events, other_events = (
            sieve_events(run(q, default_rng([i, side]))) for side, q in enumerate((queries, others))
        )
        found = max(found, audited_epsilon(events, other_events))
    return found


def package_sieve(queries, rng, epsilon, trials=20_000):
    """Asks every query of the package's own above-threshold until it refuses to go on."""
    how = {"sensitivity": 1.0, "epsilon": epsilon}
    paid, noise = Odometer(0.1), SeededNoise(rng)
    answers = np.zeros((trials, len(queries)), bool)
    for row in answers:
        sieve = AboveThreshold(0.0, account=paid, noise=noise, **how)
        for j, q in enumerate(queries):
            try:
                row[j] = sieve.above(lambda q=q: q)
            except RuntimeError:
                break
    return answers


def planted_sieve(
    queries, rng, epsilon, *, threshold_noise=1.0, query_noise=1.0, stops=True, trials=150_000
):
    """Above-threshold from its formula, with bugs to order."""
    scale = 2 / epsilon
    threshold = threshold_noise * rng.laplace(scale=scale, size=(trials, 1))
    noise = query_noise * rng.laplace(scale=2 * scale, size=(trials, len(queries)))
    hits = queries + noise >= threshold
    if stops:
        hits &= hits.cumsum(axis=1) == 1
    return hits


def test_audit_of_above_threshold():
    assert 0.2 < audit_of_sieve(lambda q, rng: package_sieve(q, rng, 1.0)) <= 1.0


def test_audit_of_a_faithful_copy_of_above_threshold():
    assert 0.2 < audit_of_sieve(lambda q, rng: planted_sieve(q, rng, 1.0)) <= 1.0


@pytest.mark.parametrize(
    "bug",
    [{"query_noise": 0.0}, {"threshold_noise": 0.0}, {"stops": False}],
    ids=["no query noise", "no threshold noise", "many hits from one spend"],
)
def test_audit_flags_planted_bugs_in_above_threshold(bug):
    assert audit_of_sieve(lambda q, rng: planted_sieve(q, rng, 1.0, **bug)) > 1.0


def test_audit_flags_an_above_threshold_of_the_package_that_never_stops(monkeypatch):
    above = AboveThreshold.above

    def forgetful(self, query):
        self._fired = False
        return above(self, query)

    monkeypatch.setattr(AboveThreshold, "above", forgetful)
    assert audit_of_sieve(lambda q, rng: package_sieve(q, rng, 1.0, trials=6_000)) > 1.0
