"""The one command of chapter 18: whatever else happens, the release is kept."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("papermill", reason="it is in the book extra")

import chapters

from dpcgd import check_receipt, open_account, read_release

pytestmark = pytest.mark.slow
CHAPTER = chapters.NOTEBOOKS / "18_your_own_table.ipynb"
HERE = chapters.ROOT, chapters.ROOT / "book" / "tools"


def one_command(folder, frame, schema, *more):
    """Run it beside a table, in a folder of its own."""
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "schema.json").write_text(json.dumps(schema))
    command = [sys.executable, "-m", "papermill", str(CHAPTER), "mine.ipynb", "--no-progress-bar"]
    command += ["-p", "table", "people.csv", "-p", "schema", "schema.json", *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, HERE))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def coins(n, d, levels):
    """Independent columns and the schema of them."""
    rng, names = np.random.default_rng([n, d]), [f"v{k}" for k in range(d)]
    frame = pd.DataFrame(rng.integers(levels, size=(n, d)), columns=names)
    return frame, {name: [str(level) for level in range(levels)] for name in names}


def with_codes():
    """Missing codes, numbers beyond the edges, a constant column, and a person with two rows."""
    frame, schema = coins(2_000, 3, 2)
    frame["age"] = np.random.default_rng(0).integers(10, 99, len(frame))
    frame["job"] = np.where(frame.v0 == 1, "yes", "not said")
    frame["same"], frame["who"] = "a", np.arange(len(frame)) // 2
    schema["age"] = {"edges": [15, 40, 80], "outside": "clip"}
    schema["job"] = {"levels": ["no", "yes"], "missing": "not said"}
    return frame, {**schema, "same": ["a", "b"]}


TABLES = {
    "of thirty records": (*coins(30, 4, 2), ()),
    "with codes": (*with_codes(), ("-p", "rows_per_person", "2", "-p", "ids", "who")),
}


def kept(folder, n):
    """The receipt, once it agrees with the account that paid."""
    release = read_release(folder / "receipt.json")
    (paid,) = open_account(folder / "account.json").runs
    promised = release.ledger.budget
    assert (promised.epsilon, promised.delta) == (paid.epsilon, paid.delta)
    assert (release.terms.n, release.terms.kind) == (n, "release")
    check_receipt(folder / "receipt.json")
    return release


@pytest.mark.parametrize("name", TABLES)
def test_a_release_keeps_its_receipt_whatever_can_be_shown_of_it(tmp_path, name):
    frame, schema, more = TABLES[name]
    done = one_command(tmp_path, frame, schema, *more)
    assert done.returncode == 0, done.stderr
    release = kept(tmp_path / "people_release", len(frame))
    assert release.graph.variables == tuple(schema)
    assert release.terms.system in ("dag_posterior", "graph_from_moments"), "the recommended call"
    assert (tmp_path / "people_release" / "report.html").exists()


def test_a_second_call_reads_the_receipt_and_spends_nothing(tmp_path):
    frame, schema = coins(500, 9, 2)
    home = tmp_path / "people_release"
    assert one_command(tmp_path, frame, schema).returncode == 0
    kept(home, 500)
    before = [(home / name).read_bytes() for name in ("account.json", "receipt.json")]
    (home / "report.html").unlink()
    assert one_command(tmp_path, frame, schema).returncode == 0
    assert before == [(home / name).read_bytes() for name in ("account.json", "receipt.json")]
    assert (home / "report.html").exists()


REFUSED = ("-y", "knowledge: {tiers: [[v0], [v7]]}"), ("-p", "delta", "0.01")


@pytest.mark.parametrize("more", REFUSED)
def test_what_no_run_would_accept_is_refused_before_anything_is_written(tmp_path, more):
    assert one_command(tmp_path, *coins(500, 3, 2), *more).returncode != 0
    assert list((tmp_path / "people_release").iterdir()) == []
