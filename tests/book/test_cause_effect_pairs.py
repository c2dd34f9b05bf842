"""The Tuebingen pairs are whole, and synthetic pairs are what they say."""

import gzip
import runpy
from pathlib import Path

import numpy as np
import pytest
from dpcgd_book.data.cause_effect_pairs import PAIRS, load_pair, pair_weights, synthetic_pair
from known_tables import check_kept
from numpy.random import default_rng
from people import refused

from dpcgd.datasets.variable import PARTS

DATA = Path(__file__).resolve().parents[2] / "data"


def test_every_pair_is_there_and_no_value_is_clipped():
    lines = gzip.decompress((DATA / "pairs" / "records.txt.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 2 * len(PAIRS)
    assert [len(line.split()) for line in lines[::2]] == [len(line.split()) for line in lines[1::2]]
    for number in (1, 52, 65, 84, 99):
        own_lines = lines[2 * number - 2 : 2 * number]
        check_kept(load_pair(number), [np.array(line.split(), float) for line in own_lines])


def test_sizes_and_weights_are_the_published_ones():
    assert (load_pair(1).n, load_pair(65).n) == (349, 16_382)
    assert sum(pair_weights().values()) == pytest.approx(35.498, abs=0.001)
    assert tuple(pair_weights()) == PAIRS


def test_ranges_are_rounded_outward(monkeypatch):
    monkeypatch.syspath_prepend(DATA)
    rounded = runpy.run_path(str(DATA / "make_pairs.py"))["rounded_outward"]
    pairs = [(0.0, 2942.0), (-5.83, 11.0), (0.121, 0.178), (-0.0251, 0.004), (5.0, 5.0001)]
    ends = [(0.0, 3000.0), (-6.0, 11.0), (0.12, 0.18), (-0.026, 0.004), (5.0, 5.1)]
    assert [rounded([*pair]) for pair in pairs] == ends


@pytest.mark.slow
def test_columns_are_shuffled_with_their_ranges_and_the_truth_stays():
    plain = load_pair(3)
    orders = set()
    for seed in range(64):  # one order only: 2^-63
        pair = load_pair(3, rng=default_rng(seed))
        orders.add(pair.variables)
        assert set(pair.truth.edges) == {("x", "y")}
        assert pair.levels["x"] == plain.levels["x"]
        assert np.array_equal(pair.codes[:, pair.variables.index("x")], plain.codes[:, 0])
    assert orders == {("x", "y"), ("y", "x")}


def test_unknown_pairs_are_refused():
    for number in (0, 100, "1", None, True, 1.0):
        refused("take one from 1 to 99", load_pair, number)


@pytest.mark.parametrize("lipschitz", [0.5, 3.0, 6.0])
def test_a_synthetic_pair_has_its_lipschitz_constant_and_its_noise(lipschitz):
    pair = synthetic_pair(20_000, lipschitz=lipschitz, noise=1e-9, rng=default_rng(0))
    x, y = pair.scaled[:, [pair.variables.index(name) for name in "xy"]].T
    part = 2 / PARTS
    order = x.argsort()[::50]  # steps of many parts
    steps = np.abs(np.diff(y[order])), np.diff(x[order])
    assert (steps[0] <= lipschitz * (steps[1] + part) + part + 3e-9).all()
    wide = steps[1] > 40 * part  # where neither they nor the tiny noise count
    assert (steps[0][wide] / steps[1][wide]).max() > 0.9 * lipschitz
    noisy = synthetic_pair(1000, lipschitz=lipschitz, noise=0.5, rng=default_rng(1))
    ends = {0, PARTS - 1}  # nothing was moved there
    assert ends.isdisjoint(noisy.codes[:, noisy.variables.index("y")].tolist())


def test_impossible_synthetic_pairs_are_refused():
    bad = ("noise", 0.0), ("noise", 0.6), ("lipschitz", 0.0), ("lipschitz", np.inf), ("n", 0)
    for name, value in bad:
        refused(name, synthetic_pair, **{"n": 10, "rng": default_rng(0)} | {name: value})
