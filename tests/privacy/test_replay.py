"""Whole runs replayed on other data: the same questions, the same release, each loss paid for."""

import sys
import warnings

import numpy as np
import pytest
from numpy.random import default_rng

from dpcgd import (
    Dataset,
    Measurements,
    curate_pc,
    em_pc,
    gram_notears,
    histogram_anm,
    laplace_pc,
    load,
    noleaks,
    priv_pc,
    private_anm,
    svt_pc,
    table_pc,
)
from dpcgd.datasets.contingency_tables import Tables
from dpcgd.marginals.table_pc import TableOracle
from dpcgd.pairwise.dependence_scores import Iqr, Kendall, Spearman
from dpcgd.privacy import run as run_module
from dpcgd.privacy.mechanisms import laplace, permute_and_flip
from dpcgd.privacy.replay import Divergence, replay, worst
from dpcgd.score.noleaks import _scale as noleaks_scale
from dpcgd.score.notears import measured
from dpcgd.statistics.categorical_statistics import GTest
from dpcgd.statistics.rank_statistics import KendallP, SpearmanZ

CODED = {
    "laplace_pc": (laplace_pc, {}),
    "laplace_pc on p": (laplace_pc, {"statistic": KendallP()}),
    "laplace_pc on G": (laplace_pc, {"statistic": GTest()}),
    "svt_pc": (svt_pc, {}),
    "priv_pc": (priv_pc, {}),
    "priv_pc, Spearman": (priv_pc, {"statistic": SpearmanZ()}),
    "priv_pc on a sample": (priv_pc, {"rate": 0.25}),
    "em_pc": (em_pc, {}),
    "em_pc, permute and flip": (em_pc, {"choose": permute_and_flip}),
    "curate_pc": (curate_pc, {}),
    "table_pc": (table_pc, {}),
    "gram_notears": (gram_notears, {}),
    "gram_notears, short rows": (gram_notears, {"row_norm": 1.0}),
    "noleaks": (noleaks, {"steps": 4}),
}
PAIRS = {
    "everyone": (private_anm, {}),
    "test set": (private_anm, {"protects": "test set"}),
    "Kendall": (private_anm, {"score": Kendall()}),
    "Spearman": (private_anm, {"score": Spearman()}),
    "IQR": (private_anm, {"score": Iqr(width=1.0), "delta": 0.2}),
    "histogram": (histogram_anm, {}),
}


def started(system, settings, seed, epsilon):
    """The system from this seed on."""
    how = {"delta": 1e-3} | settings

    def run(data):
        with warnings.catch_warnings(action="ignore"):  # delta is above 1/n
            return system(data, epsilon=epsilon, rng=default_rng(seed), **how)

    return run


def coded(rng, n, shape) -> np.ndarray:
    """Records: independent, copies of one column, or all the same."""
    codes = rng.integers(0, shape, (n, len(shape)))
    kind = rng.integers(4)
    if kind == 1:
        codes = np.minimum(codes[:, :1], np.array(shape) - 1)
    if kind == 2:
        codes[:] = codes[0]
    return codes


def data_set(codes, shape) -> Dataset:
    return Dataset(codes, {f"v{i}": [str(k) for k in range(of)] for i, of in enumerate(shape)})


def neighbours_of_codes(rng):
    shape = tuple(rng.integers(1, 4, rng.integers(2, 5)).tolist())
    codes = coded(rng, int(rng.integers(60, 400)), shape)
    other = codes.copy()
    other[rng.integers(len(codes))] = rng.integers(0, shape)
    return data_set(codes, shape), data_set(other, shape)


@pytest.mark.parametrize("name", CODED)
def test_neighbours_of_coded_records(name):
    system, settings = CODED[name]
    rng, found = default_rng(0), []
    for seed in range(20):
        pair = neighbours_of_codes(rng)
        run = started(system, settings, seed, float(rng.choice([1.0, 20.0])))
        if refused(run, pair[0]):
            continue
        found += replay(run, *pair, rate=settings.get("rate", 1.0))
    assert len(found) >= 10
    assert worst(found) <= 1


def refused(run, data) -> bool:
    """Whether public facts refuse the data."""
    try:
        run(data)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("name", CODED)
def test_any_data_with_the_same_public_facts(name):
    system, settings = CODED[name]
    data = load("cancer", n=2000, rng=default_rng(0))
    still = Dataset(np.zeros((2000, data.d), int), data.levels)
    other = Dataset(default_rng(1).permuted(data.codes, axis=0), data.levels)
    for seed, (one, two) in enumerate([(data, still), (still, data), (data, other)]):
        assert replay(started(system, settings, seed, 2.0), one, two)


def pair_of(values) -> Measurements:
    return Measurements(values, {"x": (-1, 1), "y": (-1, 1)})


@pytest.mark.parametrize("name", PAIRS)
def test_neighbours_on_two_columns(name):
    system, settings = PAIRS[name]
    rng, found = default_rng(2), []
    for seed in range(12):
        values = rng.uniform(-1, 1, (int(rng.integers(20, 120)), 2))
        values[:, 1] = values[:, 0] ** 2 if seed % 2 else values[:, 1]
        run = started(system, settings, seed, 4.0)
        replaced = values.copy()
        replaced[rng.integers(len(values))] = rng.choice([-1.0, 1.0], 2)
        if settings.get("protects") == "test set":
            replaced = values.copy()
            replaced[rng.choice(test_half(seed, len(values)))] = rng.choice([-1.0, 1.0], 2)
        found += replay(run, pair_of(values), pair_of(replaced))
    found = [draw for draw in found if draw.mechanism != "tested release"]  # but for its delta
    assert found
    assert worst(found) <= 1


def test_half(seed, n) -> np.ndarray:
    """Who gives residuals: a run draws its halves first, without a look at the data."""
    return default_rng(seed).choice(n, n - n // 2, replace=False, shuffle=False)


test_half.__test__ = False


@pytest.mark.parametrize("name", PAIRS)
def test_any_two_columns_of_the_same_length(name):
    system, settings = PAIRS[name]
    rng = default_rng(3)
    cases = [rng.uniform(-1, 1, (50, 2)), np.zeros((50, 2)), np.repeat([[-1, 1]], 50, axis=0)]
    for seed, (one, two) in enumerate(zip(cases, cases[1:] + cases[:1], strict=True)):
        assert replay(started(system, settings, seed, 4.0), pair_of(one), pair_of(two))


# --- mistakes that have to be found ------------------------------------------------------------


def all_ones(n):
    crowd = np.ones((n - 1, 2), int)
    return [data_set(np.vstack([first, crowd]), (2, 2)) for first in ([0, 0], [1, 1])]


def test_a_price_that_is_too_low_is_found(monkeypatch):
    def cheap(query, *, sensitivity, **how):
        return laplace(query, sensitivity=sensitivity / 2, **how)

    monkeypatch.setattr("dpcgd.constraint.laplace_pc.laplace", cheap)
    run = started(laplace_pc, {}, 0, 1.0)
    assert worst(replay(run, *all_ones(50))) == pytest.approx(2, rel=1e-6)


def test_a_second_draw_for_one_payment_is_found(monkeypatch):
    def twice(query, *, sensitivity, epsilon, account, noise, **how):
        first = laplace(
            query, sensitivity=sensitivity, epsilon=epsilon, account=account, noise=noise, **how
        )
        return (first + noise.laplace(query(), sensitivity / epsilon)) / 2

    monkeypatch.setattr("dpcgd.constraint.laplace_pc.laplace", twice)
    with pytest.raises(Divergence, match="nobody paid"):
        replay(started(laplace_pc, {}, 0, 1.0), *all_ones(50))


def test_a_scale_from_the_data_is_found(monkeypatch):
    def looks(query, *, sensitivity, **how):
        return laplace(query, sensitivity=sensitivity * (1 + query() ** 2), **how)

    monkeypatch.setattr("dpcgd.constraint.laplace_pc.laplace", looks)
    with pytest.raises(Divergence, match="laplace"):
        replay(started(laplace_pc, {}, 0, 1.0), *all_ones(50))


def test_a_branch_on_the_data_is_found(monkeypatch):
    kept = TableOracle._too_noisy

    def peeks(self, x, y, given):
        return bool((TABLES[-1].counts((x, y)) == 0).any()) or kept(self, x, y, given)

    TABLES, made = [], Tables.__init__

    def noted(self, data, *rest):
        made(self, data, *rest)
        TABLES.append(self)

    monkeypatch.setattr(Tables, "__init__", noted)
    monkeypatch.setattr(TableOracle, "_too_noisy", peeks)
    data = load("cancer", n=2000, rng=default_rng(0))
    still = Dataset(np.zeros((2000, data.d), int), data.levels)
    with pytest.raises(Divergence):
        replay(started(table_pc, {}, 0, 2.0), data, still)


def test_a_field_that_no_mechanism_covers_is_found(monkeypatch):
    kept = run_module.Run.receipt
    monkeypatch.setattr(
        run_module.Run, "receipt", lambda self: kept(self) | {"guarantee": SEEN[-1]}
    )
    SEEN = []

    def leaks(data):
        SEEN.append(str(data.codes.sum()))
        return laplace_pc(data, epsilon=1.0, delta=1e-3, rng=default_rng(0))

    with pytest.raises(Divergence, match="guarantee"):
        replay(leaks, *all_ones(50))


LEAKS = {
    "divided by its own deviations": (
        gram_notears,
        "dpcgd.score.notears.divisors_of",
        lambda data, kept: lambda *_: measured(data).scaled.std(axis=0) + 0.01,
    ),
    "squares known from the data": (
        gram_notears,
        "dpcgd.score.notears.squares_known",
        lambda data, kept: lambda _: (measured(data).scaled ** 2 == 1).all(axis=0),
    ),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_what_is_taken_from_the_data_beside_a_mechanism_is_found(leak, monkeypatch):
    system, place, mistake = LEAKS[leak]
    module, _, name = place.rpartition(".")
    kept = getattr(sys.modules[module], name)

    def leaky(data):
        monkeypatch.setattr(place, mistake(data, kept))
        return started(system, {}, 0, 50.0)(data)

    data = load("survey", n=3000, rng=default_rng(0))
    still = Dataset(np.zeros((3000, data.d), int), data.levels)
    others = [still, *(shuffled(data, seed) for seed in range(5))]
    assert any(diverge(leaky, data, other) for other in others)


def shuffled(data, seed) -> Dataset:
    """Independent columns, pushed towards their first level."""
    codes = np.minimum(data.codes, data.codes[::-1])
    return Dataset(default_rng(seed).permuted(codes, axis=0), data.levels)


def diverge(system, one, two) -> bool:
    try:
        replay(system, one, two)
    except Divergence:
        return True
    return False


SCALES = {
    "centred by its own means": lambda data, kept: (
        lambda *how: (measured(data).scaled.mean(axis=0), kept(*how)[1])
    ),
    "scaled by its own variances": lambda data, kept: (
        lambda *how: (kept(*how)[0], measured(data).scaled.var(axis=0) + 1e-4)
    ),
}


@pytest.mark.parametrize("mistake", SCALES)
def test_a_gradient_of_columns_that_no_mechanism_scaled_is_found(mistake, monkeypatch):
    """The release is the same, but one record moves every other one's gradient."""
    kept, worst_loss = noleaks_scale, 0.0

    def leaky(data):
        monkeypatch.setattr("dpcgd.score.noleaks._scale", SCALES[mistake](data, kept))
        return started(noleaks, {"steps": 6, "clip": 0.3}, 0, 50.0)(data)

    for n in (30, 60, 120):
        crowd = np.zeros((n, 3), int)
        one, two = crowd, np.vstack([[1, 1, 2], crowd[1:]])
        found = replay(leaky, *(data_set(codes, (2, 2, 3)) for codes in (one, two)))
        worst_loss = max(worst_loss, worst(found))
    assert worst_loss > 1.5


def test_bins_by_the_spread_of_the_data_are_found(monkeypatch):
    def own_range(pair, bins):
        edges = [np.linspace(c.min(), c.max() + 1e-9, bins + 1) for c in pair.values.T]
        return np.histogram2d(*pair.values.T, bins=edges)[0]

    monkeypatch.setattr("dpcgd.pairwise.anm._histogram", own_range)
    values = default_rng(0).uniform(-0.5, 0.5, (200, 2))
    far = np.vstack([[[1.0, 1.0]], values[1:]])
    assert worst(replay(started(histogram_anm, {}, 0, 4.0), pair_of(values), pair_of(far))) > 5


def furthest_training_record() -> float:
    """The largest loss of a distance test when a record is replaced that fitted the regression."""
    rng, found = default_rng(0), []
    for seed in range(60):
        run = started(private_anm, {"score": Iqr(width=0.2), "delta": 0.4}, seed, 4.0)
        n = int(rng.choice([20, 40, 80]))
        values = np.zeros((n, 2))
        values[:, 0] = rng.choice([-1.0, 0.0, 1.0], n) if seed % 2 else 0
        values[:, 1] = rng.choice([0.0, 0.001, 0.01]) * rng.standard_normal(n)
        training = np.setdiff1d(np.arange(n), test_half(seed, n))
        other = values.copy()
        other[rng.choice(training)] = [0.0, rng.choice([-1.0, 1.0])]
        found += replay(run, pair_of(values), pair_of(other))
    return worst([draw for draw in found if draw.mechanism == "distance test"])


def test_a_training_half_that_nobody_protects_is_found(monkeypatch):
    assert furthest_training_record() <= 1
    kept = Iqr.distance
    monkeypatch.setattr(Iqr, "distance", lambda self, values, *, change=0.0: kept(self, values))
    assert furthest_training_record() > 1.5
