"""The recorded samples, where they come from, and the linear models beside them."""

import csv
import gzip
import hashlib
import runpy
from pathlib import Path

import numpy as np
import pytest
from dpcgd_book.data.samples import SAMPLES, load_sample, synthetic_model
from known_tables import check_kept
from people import refused

DATA = Path(__file__).parents[2] / "data"
SIZES = {"galton": (898, 3, 2), "sachs": (853, 11, 17), "sachs_icam2": (902, 11, 17)}
SIZES |= {"synth5": (50_000, 5, 7), "synth10": (5_000, 10, 15)}


def on_file(name):
    with open(DATA / "samples" / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_sample_has_its_size_and_its_graph():
    assert set(SAMPLES) == set(SIZES)
    for name in SAMPLES:
        data = load_sample(name)
        assert (data.name, data.n, data.d, len(data.truth.edges)) == (name, *SIZES[name])


@pytest.mark.parametrize("folder", ["networks", "samples", "pairs", "fertility", "earnings"])
def test_the_checksums_on_file_are_those_of_the_files(folder):
    """Of tables those of their rows, whatever packs them."""
    listed = dict(line.split()[::-1] for line in (DATA / folder / "SHA256SUMS").open())
    files = {f.name: f.read_bytes() for f in (DATA / folder).iterdir() if f.name != "SHA256SUMS"}
    for name in [name for name in files if name.endswith(".gz")]:
        files[name.removesuffix(".gz")] = gzip.decompress(files.pop(name))
    assert listed == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_the_script_finds_the_ranges_on_file(monkeypatch):
    monkeypatch.syspath_prepend(DATA)
    script = runpy.run_path(str(DATA / "make_samples.py"))
    found = script["ranges"]({name: on_file(name) for name in ("sachs", "sachs_icam2", "galton")})
    assert [list(map(str, row)) for row in found] == on_file("ranges")


@pytest.mark.parametrize("name", ["galton", "sachs", "sachs_icam2"])
def test_no_recorded_value_is_cut_off_by_its_range(name):
    header, *rows = on_file(name)
    data = load_sample(name)
    values = np.array(rows, float)
    assert data.variables == tuple(header)
    check_kept(data, (values if name == "galton" else np.log(values)).T)


def test_the_icam2_cells_are_those_of_the_benchpress_file():
    # its first three z-scores of Raf and Akt, from natural logarithms with divisor n - 1
    data = load_sample("sachs_icam2")
    scores = (data.scaled - data.scaled.mean(axis=0)) / data.scaled.std(axis=0, ddof=1)
    raf, akt = (scores[:3, data.variables.index(v)] for v in ("Raf", "Akt"))
    parts = 2e-4  # half a part, or a little more, since the deviation is of parts too
    np.testing.assert_allclose(raf, [-0.514837876, -0.110112967, 0.645707051], atol=parts)
    np.testing.assert_allclose(akt, [-0.634336123, -3.040910292, -0.107952693], atol=parts)


@pytest.mark.parametrize("name", ["synth5", "synth10"])
def test_a_synthetic_sample_is_one_fixed_draw_from_its_model(name):
    data, model = load_sample(name), synthetic_model(name)
    np.testing.assert_array_equal(data.codes, load_sample(name).codes)
    assert set(data.truth.edges) == set(model.graph.edges)
    scale = np.sqrt(np.diag(model.covariance))
    values = data.scaled * data.half_widths
    errors = (np.cov(values.T) - model.covariance) / np.outer(scale, scale)
    # an entry's deviation is at most sqrt(2 / n); clipping at 4 deviations moves it by under 0.001
    assert np.abs(errors).max() < 7 * np.sqrt(2 / data.n) + 0.001


def test_an_unknown_name_is_refused():
    refused("no sample is called 'sachs_icam'; take one of galton", load_sample, "sachs_icam")
    refused("called synth5 and synth10, not 'sachs'", synthetic_model, "sachs")
