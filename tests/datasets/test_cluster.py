"""A cluster of two worker processes on this machine: the same counts, whoever dies."""

import contextlib
import itertools
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from people import frame_of, refused

from dpcgd import Dataset, graph_from_moments, load, priv_pc, read_parquet, table_pc
from dpcgd.datasets import cluster_records
from dpcgd.datasets.contingency_tables import Tables

pytest.importorskip("pyarrow", reason="it is in the cluster extra")
dask = pytest.importorskip("dask", reason="it is in the cluster extra")
distributed = pytest.importorskip("distributed", reason="it is in the cluster extra")

pytestmark = pytest.mark.slow
PAIRS = [(i, j) for i in range(8) for j in range(i)]
SETTINGS = {"host": "127.0.0.1", "dashboard_address": ":0", "silence_logs": 50}


@pytest.fixture(scope="module")
def client():
    """Two worker processes, each with a nurse that starts it again.

    Unless told otherwise, Dask gives up a worker that is down 15 seconds after it was lost, though
    it may have been back and been killed again since.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **SETTINGS) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Ten files, and the same records in memory."""
    data = load("asia", 20_000, rng=default_rng(0))
    frame = frame_of(data)
    frame["wide"] = (np.arange(len(frame)) * 7 % 900).astype(str)  # so that nothing is collapsed
    folder = tmp_path_factory.mktemp("survey")
    for i, part in enumerate(np.array_split(np.arange(len(frame)), 10)):
        frame.iloc[part].to_parquet(folder / f"{i}.parquet", index=False)
    return folder, Dataset.from_pandas(frame, {**data.levels, "wide": [str(k) for k in range(900)]})


def kill_one(client, which=0):
    """End one worker the hard way, as soon as one is up."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        pids = sorted(nanny.pid for nanny in client.cluster.workers.values() if nanny.pid)
        if pids:
            with contextlib.suppress(ProcessLookupError):
                return os.kill(pids[which % len(pids)], signal.SIGKILL)
        time.sleep(0.05)
    raise TimeoutError("no worker is up")


def same(found, expected):
    return all(map(np.array_equal, found.counts_many(PAIRS), expected.counts_many(PAIRS)))


def test_the_cluster_counts_what_is_there_and_packs_again_what_a_dead_worker_held(client, survey):
    folder, plain = survey
    found = read_parquet(folder, plain.levels, client=client)
    assert (found.n, found.variables, found.name) == (20_000, plain.variables, folder.name)
    assert same(found, plain)
    assert np.array_equal(found.counts([8, 0]), plain.counts([8, 0]))
    assert found.counts_many([]) == []
    many = [(i % 7, 7) for i in range(20_000)]
    expected = itertools.cycle(plain.counts_many(many[:7]))
    assert all(map(np.array_equal, found.counts_many(many), expected))
    kill_one(client)
    assert same(found, plain)


def ask_and_kill(found, client):
    """Until every part has been lost."""
    for i in range(10):
        found.counts([0, 1])
        kill_one(client, i)


@pytest.mark.parametrize("keep_the_time", [False, True])
def test_a_part_that_has_changed_is_not_packed_again(client, tmp_path, keep_the_time):
    """Files of equal length; where the time is kept too, a digest of the records tells."""
    for i in range(6):
        frame = pd.DataFrame({"a": ["0"] * 501 + ["1"] * 499, "b": "0"})
        frame.to_parquet(tmp_path / f"{i}.parquet")
    found = read_parquet(tmp_path, {"a": ["0", "1"], "b": ["0", "1"]}, client=client)
    assert found.counts([0]).tolist() == [3006, 2994]
    frame["a"] = ["0"] * 499 + ["1"] * 501
    for path in tmp_path.iterdir():
        before = path.stat()
        frame.to_parquet(path)
        assert path.stat().st_size == before.st_size
        if keep_the_time:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    kill_one(client)
    refused("other records than at first; let nobody write", ask_and_kill, found, client)


def test_kills_at_random_moments_change_no_count(client, survey):
    folder, plain = survey
    rng, rounds = default_rng(0), 0

    def kill():
        for moment in rng.uniform(0.1, 2.0, 6):
            time.sleep(moment)
            kill_one(client, int(rng.integers(2)))

    killer = threading.Thread(target=kill)
    killer.start()
    while killer.is_alive() or rounds < 3:
        assert same(read_parquet(folder, plain.levels, client=client), plain)
        rounds += 1


def test_a_run_on_a_cluster_is_the_run_on_the_data_set(client, survey):
    folder, plain = survey
    tables = plain, read_parquet(folder, plain.levels, client=client)
    for system in (table_pc, priv_pc, graph_from_moments):
        one, other = (system(of, epsilon=2.0, rng=default_rng(1)) for of in tables)
        assert one == other


def test_numbers_come_to_the_same_parts_on_a_cluster(client, tmp_path):
    rng, schema = default_rng(0), {"a": ["0", "1"], "x": {"range": [-1, 1]}}
    frame = pd.DataFrame({"a": rng.choice(["0", "1"], 3000), "x": rng.uniform(-1, 1, 3000)})
    for i in range(3):
        frame[i::3].to_parquet(tmp_path / f"{i}.parquet", index=False)
    found, plain = read_parquet(tmp_path, schema, client=client), Dataset.from_pandas(frame, schema)
    assert np.array_equal(found.counts([1, 0]), plain.counts([1, 0]))
    both = (graph_from_moments(d, epsilon=1.0, rng=default_rng(1)) for d in (found, plain))
    assert next(both) == next(both)


def test_the_first_bad_value_is_named_by_file_and_record(client, survey, tmp_path):
    for i in range(6):
        bad = pd.DataFrame({"a": ["0"] * 20, "b": ["0"] * 19 + ["7" if i > 3 else "0"]})
        bad.to_parquet(tmp_path / f"{i}.parquet")
    cure, schema = "4.parquet, record 20, column 'b': '7' is not", {"a": ["0"], "b": ["0"]}
    refused(cure, read_parquet, tmp_path, schema, client=client)


def test_a_cluster_without_a_worker_is_not_waited_for_in_vain(survey, monkeypatch):
    monkeypatch.setattr(cluster_records, "PATIENCE", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, **SETTINGS) as cluster,
        distributed.Client(cluster) as client,
    ):
        cure = "the cluster has no worker; start some, and call again"
        refused(cure, read_parquet, survey[0], survey[1].levels, client=client)


def test_what_is_no_client_and_spilling_with_one_are_refused(client, survey):
    read = partial(read_parquet, survey[0], survey[1].levels)
    refused("client must be a distributed.Client, not a str; use Client", read, client="tcp://here")
    refused("spill is for one machine; with a client, leave it", read, client=client, spill=True)


def test_many_questions_at_once_are_answered_whatever_was_asked_before(client, survey):
    """What is large Dask would make a task of its own, under a name that hangs on no contents."""
    folder, data = survey
    far = read_parquet(folder, data.levels, client=client)
    here = Tables(data)
    for asked in (PAIRS * 400, [pair[::-1] for pair in PAIRS] * 400):
        told = far.counts_many(asked)
        kill_one(client)
        assert all(map(np.array_equal, told, here.counts_many(asked)))
        assert all(map(np.array_equal, far.counts_many(asked), told))
