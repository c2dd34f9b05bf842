"""Each mechanism pays, then looks, then answers with the noise of its proof, from either source.

The secure source asks OpenDP's own price first, and releases what OpenDP answers.
"""

import contextlib
import itertools
import math
import sys
import time
from fractions import Fraction
from functools import partial
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace

import numpy as np
import opendp.prelude as dp
import pytest
from dpcgd_book.attacks.audit import Recorder, empirical_epsilon
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd_book.attacks.toolkit_checks import flip_law
from hypothesis import given, strategies as st
from numpy.random import default_rng
from opendp.mod import OpenDPException
from people import refused
from scipy import special, stats
from scripted_noise import Silent

from dpcgd.privacy import mechanisms
from dpcgd.privacy.budget import Budget, BudgetSpent
from dpcgd.privacy.conversions import zcdp_rho
from dpcgd.privacy.events import ApproximateEvent, BoundedRangeEvent, GaussianEvent, PureEvent
from dpcgd.privacy.filters import Filter, NoPrivacy
from dpcgd.privacy.mechanisms import AboveThreshold, exponential, laplace, permute_and_flip
from dpcgd.privacy.noise import SecureNoise, SeededNoise, noise_source


def untouchable(*_):
    raise AssertionError("the data was looked at")


def laplace_of(noise, scale):
    """A draw of Laplace noise of this scale."""
    return noise.laplace(scale, PureEvent("Laplace", 1.0))


def gaussian_of(noise, scale):
    """A draw of Gaussian noise of this deviation."""
    return noise.gaussian(scale, GaussianEvent("Gaussian", 1.0))


def account():
    """Can pay for one tested release of delta 1e-3."""
    return Filter(Budget(50.0, 0.1), reserved=1.01e-3)


def answering(mechanism, **price):
    return lambda look, **how: mechanism(lambda: look(7.0), **price, **how)


def choosing(choice):
    return lambda look, **how: choice(lambda: look(SCORES), epsilon=0.5, **how)


def releasing(look, sensitivity, **how):
    how = {"epsilon": 0.5, "delta": 1e-3, "proposed": sensitivity} | how
    return mechanisms.propose_test_release(lambda: look(7.0), lambda: look(40.0), **how)


def asking(rate):
    def run(look, **how):
        sieve = AboveThreshold(5.0, epsilon=0.5, rate=rate, **how)
        return [sieve.above(lambda q=q: look(q)) for q in (4.0, 4.5)]

    return run


INSIDE = math.log(1 + (math.exp(0.5) - 1) / 0.1)
SCORES = [1.0, 7.0, 3.0]
SIEVE = [PureEvent("above threshold", 0.5)]
RUNS = {
    "laplace": answering(laplace, epsilon=0.5),
    "gaussian": answering(mechanisms.gaussian, noise_multiplier=4.0),
    "exponential": choosing(exponential),
    "permute and flip": choosing(permute_and_flip),
    "tested release": releasing,
    "above threshold": asking(rate=1.0),
    "above threshold of a sub-sample": asking(rate=0.1),
}
TESTED = [PureEvent("distance test", 0.5), ApproximateEvent("tested release", 0.5, 1e-3)]
STEPS = {
    "laplace": ([PureEvent("Laplace", 0.5)], [("Laplace", 7.0, 6.0)]),
    "gaussian": ([GaussianEvent("Gaussian", 4.0)], [("Gaussian", 7.0, 12.0)]),
    "exponential": ([BoundedRangeEvent("exponential", 0.5)], [("Gumbel", SCORES, 12.0)]),
    "permute and flip": ([PureEvent("permute and flip", 0.5)], [("exponential", SCORES, 12.0)]),
    "tested release": (TESTED, [("Laplace", 40.0, 2.0), ("Laplace", 7.0, 6.0)]),
    "above threshold": (SIEVE, [("Laplace", q, s) for q, s in ((5.0, 12), (4.0, 24), (4.5, 24))]),
    "above threshold of a sub-sample": (
        SIEVE,
        [("Laplace", q, s / INSIDE) for q, s in ((5.0, 6), (4.0, 12), (4.5, 12))],
    ),
}
every_mechanism = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_mechanism_pays_then_looks_and_answers_with_the_scale_of_its_proof(name):
    both, (events, draws) = Recorder(account(), Silent()), STEPS[name]

    def look(value):
        assert len(both.ledger.events) == len(events)
        return value

    RUNS[name](look, sensitivity=3.0, account=both, noise=both)
    paid, *drawn = both.steps
    assert [*paid.about] == events
    expected = [(kind, [*np.ravel(about)], pytest.approx(scale)) for kind, about, scale in draws]
    assert [(step.kind, [*np.ravel(step.about)], step.scale) for step in drawn] == expected


@every_mechanism
def test_a_mechanism_that_cannot_be_paid_looks_at_nothing_and_draws_nothing(run):
    both = Recorder(Filter(Budget(0.1, 2e-3), reserved=1.01e-3), Silent())
    paid = {"account": both, "noise": both}
    refused("would exceed", run, untouchable, kind=BudgetSpent, sensitivity=3.0, **paid)
    assert both.steps == []


@every_mechanism
@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf, 1e300])
@pytest.mark.filterwarnings("error")
def test_noise_without_a_scale_is_refused_before_it_is_paid(run, sensitivity):
    paid, noise = account(), SeededNoise(default_rng(0))
    settings = {"sensitivity": sensitivity, "account": paid, "noise": noise}
    refused("no scale of noise", run, untouchable, **settings)
    assert paid.ledger.events == ()


def release_if_far(noise, *, distance, query=lambda: 10.0, paid=None, epsilon=0.5):
    how = {"epsilon": epsilon, "delta": 1e-3, "account": paid or account(), "noise": noise}
    return mechanisms.propose_test_release(query, lambda: distance, proposed=3.0, **how)


def test_a_tested_release_is_refused_up_to_the_line_and_does_not_ask_its_query_then():
    line = math.log(1 / 2e-3) / 0.5
    for distance in (0, 12, math.nextafter(line, 0)):
        assert release_if_far(Silent(), distance=distance, query=untouchable) is None
    assert release_if_far(Silent(), distance=line + 1e-9) == 10.0


LITTLE = (10.0, 0.0), (10.0, 0.9e-3), (0.1, 2e-3), (2.0, 2e-3)


@pytest.mark.parametrize(("epsilon", "reserved"), LITTLE)
def test_a_tested_release_that_cannot_be_paid_looks_at_nothing_and_draws_nothing(epsilon, reserved):
    """Nothing or too little is reserved, or only one of two events could be paid."""
    both = Recorder(Filter(Budget(epsilon, 0.1), reserved=reserved), Silent())
    price = 1.2 * math.sqrt(both.rho)
    assert zcdp_rho(PureEvent("p", price)) < both.rho < 2 * zcdp_rho(PureEvent("p", price))
    settings = {"distance": 0, "query": untouchable, "paid": both, "epsilon": price}
    refused("would exceed|reserve", release_if_far, both, kind=BudgetSpent, **settings)
    assert both.steps == []


LAWS = {exponential: special.softmax, permute_and_flip: flip_law}


@pytest.mark.slow
@pytest.mark.parametrize("choice", LAWS)
@pytest.mark.parametrize("kind", ["seeded", "secure"])
@pytest.mark.parametrize("scores", [[0.0, 1.0, 2.5, 2.0], [3.0, 3.0], [-5.0, -1.0, -5.0]], ids=str)
def test_choices_are_as_likely_as_their_definition_says(choice, kind, scores):
    # Chi-squared; false alarm 1e-8 for each secure one, of which there are six.
    noise = SecureNoise() if kind == "secure" else SeededNoise(default_rng(4))
    trials = 5_000 if kind == "secure" else 30_000
    how = {"sensitivity": 0.7, "epsilon": 1.0, "account": NoPrivacy(), "noise": noise}
    chosen = [choice(lambda: scores, **how) for _ in range(trials)]
    expected = trials * LAWS[choice](np.array(scores) / (2 * 0.7))
    assert expected.min() > 50
    assert stats.chisquare(np.bincount(chosen, minlength=len(scores)), expected).pvalue > 1e-8


def kolmogorov_smirnov(draw, count, distribution):
    return stats.kstest([draw() for _ in range(count)], distribution.cdf, method="exact").pvalue


SEEDED = [(SeededNoise(default_rng(3)), scale, 20_000) for scale in (0.1, 3.0)]


@pytest.mark.parametrize(("noise", "scale", "count"), [*SEEDED, (SecureNoise(), 2.0, 3_000)])
def test_noise_has_the_named_distributions(noise, scale, count):
    # False alarm: 1e-8 each; equal draws are rarer (2^-50 each).
    for draw, law in ((laplace_of, stats.laplace), (gaussian_of, stats.norm)):
        drawn = draw(noise, scale)
        assert len({drawn(5.0) for _ in range(10)}) == 10
        assert kolmogorov_smirnov(lambda: drawn(5.0), count, law(5.0, scale)) > 1e-8  # noqa: B023


def test_the_distribution_test_notices_wrong_noise():
    noise = SeededNoise(default_rng(3))
    for wrong in (stats.laplace(0, 0.8), stats.laplace(0.25, 1), stats.norm(0, math.sqrt(2))):
        assert kolmogorov_smirnov(lambda: laplace_of(noise, 1.0)(0.0), 3_000, wrong) < 1e-8


@pytest.mark.parametrize("noise", [SeededNoise(default_rng(5)), SecureNoise()])
def test_every_subset_is_equally_likely(noise):
    # Chi-squared over the 10 pairs out of 5; false alarm 1e-8 each.
    pairs = [frozenset(noise.choose(5, 2).tolist()) for _ in range(10_000)]
    every = [*map(frozenset, itertools.combinations(range(5), 2))]
    assert set(pairs) == set(every)
    assert stats.chisquare([pairs.count(pair) for pair in every]).pvalue > 1e-8
    assert sorted(noise.choose(1000, 1000).tolist()) == list(range(1000))


def test_a_secure_sample_is_the_operating_systems(monkeypatch):
    system = SimpleNamespace(sample=lambda numbers, m: numbers[:m])
    monkeypatch.setattr("dpcgd.privacy.noise.secrets.SystemRandom", lambda: system)
    assert SecureNoise().choose(9, 3).tolist() == [0, 1, 2]


def test_noise_is_secure_unless_a_seed_is_asked_for():
    for nothing in (0, 42, np.random.RandomState(0), np.random):
        cure = r"default_rng\(seed\) for an experiment, no rng for"
        refused(cure, noise_source, nothing, secure=False)
    refused("leave out rng when secure=True", noise_source, default_rng(0), secure=True)
    assert type(noise_source(default_rng(0), secure=False)) is SeededNoise
    assert {type(noise_source(None, secure)) for secure in (True, False)} == {SecureNoise}


def test_secure_noise_without_opendp_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    for secure in (True, False):
        cure = r"pip install 'dpcgd\[secure\]'; or give rng="
        refused(cure, noise_source, None, secure, kind=ImportError)


def test_above_threshold_pays_once_and_stops_at_its_first_hit():
    paid = account()
    sieve = AboveThreshold(1.0, sensitivity=1.0, epsilon=0.5, account=paid, noise=Silent())
    answers = [bool(sieve.above(lambda v=v: v)) for v in (0.0, 0.5, 0.99, 1.0)]
    assert answers == [False, False, False, True]
    for _ in range(2):
        refused("pay for a new one", sieve.above, untouchable, kind=RuntimeError)
    assert len(paid.ledger.events) == 1


def test_of_threads_that_ask_one_sieve_one_gets_its_hit():
    how = {"sensitivity": 1.0, "epsilon": 0.5, "account": account(), "noise": Silent()}
    sieve = AboveThreshold(0.0, **how)

    def ask(_):
        with contextlib.suppress(RuntimeError):
            return bool(sieve.above(lambda: time.sleep(0.05) or 1.0))

    with ThreadPool(4) as threads:
        assert threads.map(ask, range(4), chunksize=1).count(True) == 1


# Audits at a confidence of 1 - 1e-9: with some ten of them, one fails by chance with less than
# 1e-7. The streams are seeded, so that it would fail always or never. Each has a twin with less
# noise that it must flag; with other seeds a twin would slip through with less than 1e-6, by the
# exact chances of the best event. What noise and choices alone show, book/test_audit.py looks at.
def audited(outputs, others, trials=None):
    """The epsilon shown by outputs on two neighbours that have been drawn already."""
    return empirical_epsilon(next, iter(outputs), iter(others), trials=trials or len(outputs))


LENGTH = 40
FLAT, HALF = np.zeros(LENGTH), np.repeat([-1.0, 1.0], LENGTH // 2)
TELLING = FLAT, np.where(np.arange(LENGTH) < 5, -1.0, 1.0)
NEIGHBOURS = [
    (FLAT, FLAT - 1),
    (FLAT, FLAT + 1),
    (FLAT, HALF),
    TELLING,
    (np.arange(LENGTH) % 2 * 1.0, np.arange(1, LENGTH + 1) % 2 * 1.0),
]
"""Queries on two data sets, each moved by at most a sensitivity of 1; the threshold is 0."""


def kinds(hits):
    """Of each row of hits: where the first is, or how they are spread if there are several."""
    half = LENGTH // 2
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), LENGTH)
    spread = hits[:, half:].sum(axis=1) - hits[:, :half].sum(axis=1)
    several = hits.sum(axis=1) > 1
    return list(zip(several.tolist(), np.where(several, spread, first).tolist(), strict=True))


def audit_of_sieve(run, pairs=NEIGHBOURS):
    """The most that is shown by any of the pairs of neighbours."""
    return max(
        audited(*(kinds(run(queries, default_rng([i, side]))) for side, queries in enumerate(pair)))
        for i, pair in enumerate(pairs)
    )


def package_sieve(queries, rng, trials=30_000, kind=SeededNoise):
    """Asks every query of the package's own above-threshold until it refuses to go on."""
    paid, noise = NoPrivacy(), kind(rng)
    answers = np.zeros((trials, len(queries)), bool)
    for row in answers:
        sieve = AboveThreshold(0.0, sensitivity=1.0, epsilon=1.0, account=paid, noise=noise)
        for j, q in enumerate(queries):
            try:
                row[j] = sieve.above(lambda q=q: q)
            except RuntimeError:
                break
    return answers


@pytest.mark.slow
def test_audit_of_above_threshold():
    assert 0.2 < audit_of_sieve(package_sieve) <= 1.0


@pytest.mark.slow
def test_audit_flags_an_above_threshold_of_the_package_with_half_the_noise():
    def halved(queries, rng):
        return package_sieve(queries, rng, trials=100_000, kind=NarrowNoise)

    assert audit_of_sieve(halved, [TELLING]) > 1.0


SIGNS = np.repeat([-1.0, 1.0], 5)


def sub_sampled_sieve(records, rng, rate, kind=SeededNoise):
    """Looks at a sample of its own: each query is plus or minus the count of ones in it."""
    paid, noise, records = NoPrivacy(), kind(rng), np.array(records)
    settings = {"epsilon": 1.0, "account": paid, "noise": noise, "rate": rate}
    while True:
        sieve = AboveThreshold(0.0, sensitivity=1.0, **settings)
        sample = records[noise.choose(len(records), round(rate * len(records)))]
        queries = (SIGNS * sample.sum()).tolist()
        yield next((j for j, q in enumerate(queries) if sieve.above(lambda q=q: q)), None)


@pytest.mark.slow
def test_audit_of_above_threshold_on_a_sub_sample():
    def shown(kind, trials):
        pair = enumerate([[1, 0], [0, 0]])
        runs = (sub_sampled_sieve(data, default_rng(i), 0.5, kind) for i, data in pair)
        return audited(*runs, trials=trials)

    assert 0.2 < shown(SeededNoise, 60_000) <= 1.0
    # A third of the noise: with half the loss is 1.44, which takes 100,000 runs to be seen surely.
    assert shown(partial(NarrowNoise, share=1 / 3), 20_000) > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [SeededNoise(np.random.default_rng(4)), SecureNoise()])
def test_gaussian_noise_on_an_array_is_drawn_anew_for_each_entry(noise):
    start = np.arange(6.0).reshape(2, 3)
    noisy = np.stack([gaussian_of(noise, 2.0)(start) for _ in range(3_000)])
    assert noisy.shape == (3_000, 2, 3)
    left = (noisy - start).reshape(3_000, 6) / 2
    # 21 entries of a covariance, each with a deviation below sqrt(2 / 3000) = 0.026
    assert np.abs(np.cov(left.T) - np.eye(6)).max() < 7 * 0.026


# --- the secure source


class Watched:
    """A measurement of OpenDP whose calls are noted; it may be made to cost more, or to fail."""

    def __init__(self, measurement, costs=1.0, fails=False, drawn=None):
        self.measurement, self.costs, self.fails, self.drawn = measurement, costs, fails, drawn
        self.calls = []

    def map(self, d_in):
        return self.costs * self.measurement.map(d_in)

    def __call__(self, value):
        if self.fails:
            raise OpenDPException("FailedFunction", "no randomness")
        self.calls.append((value, (self.drawn or self.measurement)(value)))
        return self.calls[-1][1]


def watched(patch, *, wider=1.0, **how):
    """Watch the measurements of OpenDP; the list fills with those that are made."""
    made = []

    def making(make):
        def run(*space, scale, **rest):
            made.append(Watched(make(*space, scale=wider * scale, **rest), **how))
            return made[-1]

        return run

    for name in ("make_laplace", "make_gaussian", "make_noisy_max"):
        patch.setattr(dp.m, name, making(getattr(dp.m, name)))
    return made


@pytest.fixture
def watch(monkeypatch):
    return partial(watched, monkeypatch)


ANSWERS = {
    "laplace": partial(laplace, epsilon=0.7),
    "gaussian": partial(mechanisms.gaussian, noise_multiplier=3.3),
}


@pytest.mark.parametrize("shape", [(), (1,), (10,), (7, 3), (100_000,), (1_000_000,)], ids=str)
@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_released_is_what_opendp_answered_to_the_exact_value(kind, shape, watch):
    made = watch(drawn=lambda values: [x + math.sqrt(2 + i) for i, x in enumerate(values)])
    size = math.prod(shape)
    exact = np.reshape(2.0**24 + 1 + np.arange(size) / 3, shape) if shape else 2.0**24 + 1 / 3
    released = ANSWERS[kind](lambda: exact, sensitivity=0.3, account=account(), noise=SecureNoise())
    assert made[-1].calls == [(np.ravel(exact).tolist(), np.ravel(released).tolist())]
    assert np.shape(released) == shape


@pytest.mark.parametrize("choice", [exponential, permute_and_flip])
@pytest.mark.parametrize("size", [1, 10, 100_000])
def test_what_is_chosen_is_what_opendp_chose_by_the_exact_scores(choice, size, watch):
    made = watch(drawn=lambda values: len(values) // 2)
    scores = 1 / np.arange(3.0, 3.0 + size)
    paid = {"epsilon": 0.7, "account": account(), "noise": SecureNoise()}
    chosen = choice(lambda: scores, sensitivity=0.3, **paid)
    assert made[-1].calls == [(scores.tolist(), size // 2)]
    assert chosen == size // 2


@every_mechanism
def test_an_error_of_opendp_is_an_error_of_every_mechanism(run, watch):
    watch(fails=True)
    with pytest.raises(OpenDPException):
        run(lambda value: value, sensitivity=0.3, account=account(), noise=SecureNoise())


@every_mechanism
@pytest.mark.parametrize("changed", [{"costs": 1 + 1e-12}, {"wider": 0.5}, {"wider": 1 - 1e-9}])
def test_noise_that_opendp_prices_higher_is_refused_before_anything_is_paid(run, watch, changed):
    watch(**changed)
    paid = account()
    settings = {"sensitivity": 0.3, "account": paid, "noise": SecureNoise()}
    refused("OpenDP prices.*nothing was spent", run, untouchable, kind=RuntimeError, **settings)
    assert paid.ledger.events == ()


amounts = st.floats(1e-9, 1e9)


@given(sensitivity=amounts, epsilon=st.floats(1e-6, 100.0), multiplier=st.floats(1e-2, 1e6))
def test_by_opendps_price_noise_is_worth_its_event_and_no_more(sensitivity, epsilon, multiplier):
    noise = SecureNoise()
    for draw, event, price in [
        (noise.laplace, PureEvent("Laplace", epsilon), epsilon),
        (noise.laplace, ApproximateEvent("tested release", epsilon, 1e-9), epsilon),
        (noise.gaussian, GaussianEvent("Gaussian", multiplier), 0.5 / multiplier**2),
        (noise.gumbel_max, BoundedRangeEvent("exponential", epsilon), epsilon**2 / 8),
        (noise.exponential_max, PureEvent("permute and flip", epsilon), epsilon),
    ]:
        with pytest.MonkeyPatch.context() as patch:
            made = watched(patch)
            draw(sensitivity, event)
        assert (1 - 1e-13) * price <= made[0].map(sensitivity) <= (1 + 1e-15) * price


@pytest.mark.parametrize("sensitivity", [0.0, 1e-300, 1e300])
def test_extreme_scales_are_drawn(sensitivity):
    noisy = SecureNoise().laplace(sensitivity, PureEvent("Laplace", 1.0))(1.0)
    assert (noisy == 1.0) == (sensitivity < 1)
    assert math.isfinite(noisy)


def test_a_scale_too_small_for_doubles_is_refused():
    refused("give no scale of noise", SecureNoise().laplace, 1e-320, PureEvent("Laplace", 1e10))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_sum_with_noise_is_not_rounded_before_it_is_added(kind):
    # Noise that is drawn around zero and added to 1 in doubles is a multiple of 2^-54 where the
    # sum is small. OpenDP rounds the exact sum once: of a number below 2^-5 its last bit stands for
    # 2^-58 or less, so each is such a multiple with a chance of at most 1/16. All 30 are with a
    # chance below 1e-36; fewer than 30 of 30,000 are that small with one far below that.
    answer, paid = ANSWERS[kind], {"account": account(), "noise": SecureNoise()}
    sensitivity = {"laplace": 0.7, "gaussian": 1 / 3.3}[kind]  # noise of scale or deviation 1
    noisy = answer(lambda: np.ones(30_000), sensitivity=sensitivity, **paid)
    small = [Fraction(x) for x in noisy.tolist() if abs(x) < 2**-5]
    assert len(small) >= 30
    assert any((x * 2**54).denominator > 1 for x in small)
