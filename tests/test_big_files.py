"""The benchmark of big files, at a size that is none."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpcgd import load, read_parquet

pytest.importorskip("pyarrow", reason="it is in the parquet extra")
SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "big_files.py"


def test_files_hold_the_records_that_were_drawn(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    big_files = importlib.import_module("big_files")
    monkeypatch.setattr(big_files, "GROUP", 300)
    monkeypatch.setattr(big_files, "FILE", 1000)
    big_files.make("asia", 2500, tmp_path / "asia", np.random.default_rng(3))
    rng = np.random.default_rng(3)
    drawn = [load("asia", n, rng=rng) for n in (300, 300, 300, 100) * 2 + (300, 200)]
    found = read_parquet(tmp_path / "asia", drawn[0].levels)
    assert len(list((tmp_path / "asia").iterdir())) == 3
    assert found.n == 2500
    for at in [(0, 1), (3, 7, 2)]:
        assert np.array_equal(found.counts(at), sum(data.counts(at) for data in drawn))


@pytest.mark.slow
def test_a_size_is_one_line_and_its_files_are_removed(tmp_path):
    command = [sys.executable, SCRIPT, "earthquake", "2e4", "4e4", "--folder", tmp_path, "--spill"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    one, two = map(json.loads, told.splitlines())
    assert (one["n"], two["n"], one["spill"]) == (20_000, 40_000, True)
    assert min(one["seconds"], one["disk_bytes"], one["peak_bytes"]) > 0
    assert two["predicted"] == pytest.approx(2 * one["seconds"], abs=0.01)
    assert list(tmp_path.iterdir()) == []
