"""Sweeps: many runs over a grid, in parallel, that lose nothing when they are interrupted."""

import contextlib
import json
import os
import sqlite3
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed

from dpcgd.datasets.progress import progress
from dpcgd_book.results.digests import digest_of_package
from dpcgd_book.results.record import results_folder

__all__ = ["CLUSTER", "VERSION", "sweep", "sweep_file"]

CLUSTER = "DPCGD_CLUSTER"
"""An environment variable with the address of a Dask scheduler for full results."""

VERSION = "DPCGD_VERSION"
"""An environment variable with a digest of all that a chapter depends on; `make book` sets it."""

SECONDS_FOR_CLUSTER = 30
"""Seconds that a scheduler and its first worker may take to answer."""

SECONDS_FOR_FILE = 30
"""Seconds that another sweep may keep the file busy."""


def sweep_file() -> tuple[Path | None, str]:
    """Where a chapter's sweeps keep finished cases, and the version of what makes them.

    Returns
    -------
    path, version
        No path where nothing says what the chapter depends on, as in a session of JupyterLab: there
        every case is run.
    """
    version = os.environ.get(VERSION, "")
    return (results_folder() / "sweeps.sqlite3" if version else None), version


def sweep(
    task: Callable[..., dict],
    cases: Iterable[dict],
    *,
    path: Path | str | None = None,
    name: str = "",
    version: str = "",
    workers: int = 1,
    cluster: str | None = None,
) -> list[dict]:
    """Run a task on every case; a finished case is on file at once and not run again.

    A case that fails does not stop the others. A terminal shows how many are finished.

    Parameters
    ----------
    task : callable
        Called as ``task(**case)``; returns a dictionary of results. Both must fit into JSON, but
        for numpy's numbers and arrays.
    cases : iterable of dict
    path : path, optional
        A SQLite file for finished cases. Delete it to start anew; leave it out to keep nothing.
    name : str
        The sweep's name in that file, as chapter and table; the task's name unless given.
    version : str
        What else the results depend on, as a digest. A case of another version is run again.
    workers : int
        Processes on this machine.
    cluster : str, optional
        The address of a Dask scheduler, ``"tcp://..."``, whose workers run the cases instead. They
        need the same package, to the last file.

    Returns
    -------
    list of dict
        Case and results together, in the order of the cases: rows for a table.

    Raises
    ------
    ValueError
        If the file cannot be written or holds something else, if a file is to hold a sweep without
        a name, or if the cluster does not answer.
    RuntimeError
        In the end, if cases failed, as all do on workers with another version of the package. They
        are tried again by the next sweep.

    Examples
    --------
    >>> sweep(lambda x: {"square": x * x}, [{"x": 2}, {"x": 3}])
    [{'x': 2, 'square': 4}, {'x': 3, 'square': 9}]
    """
    cases, name = list(cases), name or getattr(task, "__name__", "<lambda>")
    if path and name == "<lambda>":
        raise ValueError(f"{path} may hold several sweeps; give this one a name")
    failed: list[_Outcome] = []
    with _opened(path) as file:
        results = dict(file.execute(RESULTS, (name, version)))
        left = {_text(case): case for case in cases if _text(case) not in results}
        outcomes = _outcomes(task, list(left.values()), workers, cluster)
        for outcome in progress(outcomes, name, len(left)):
            if outcome.result is None:
                failed.append(outcome)
            else:
                row = (name, version, _text(outcome.case), outcome.result)
                file.execute("REPLACE INTO finished VALUES (?, ?, ?, ?)", row)
                results |= [row[2:]]
    if failed:
        kept = f"; those that did not are in {path}, so only these are tried again" if path else ""
        about = f"the first, {failed[0].case}, with {failed[0].error}{kept}"
        error = RuntimeError(f"{len(failed)} of {len(left)} cases failed, {about}")
        error.add_note(failed[0].trace)
        raise error
    return [{**case, **json.loads(results[_text(case)])} for case in cases]


class _Outcome(NamedTuple):
    """The results of a case as JSON, or its error and where that came from."""

    case: dict
    result: str | None = None
    error: str = ""
    trace: str = ""


RESULTS = 'SELECT "case", result FROM finished WHERE name = ? AND version = ?'


@contextlib.contextmanager
def _opened(path) -> Iterator[sqlite3.Connection]:
    """A table of finished cases: each is in it whole or not at all, whenever a run is killed."""
    try:
        if path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path or ":memory:", SECONDS_FOR_FILE, isolation_level=None)
        with contextlib.closing(connection) as file:
            columns = '(name, version, "case", result, PRIMARY KEY (name, version, "case"))'
            file.execute(f"CREATE TABLE IF NOT EXISTS finished {columns}")
            yield file
    except (OSError, sqlite3.Error) as error:
        cure = "make room, or name another file"
        raise ValueError(f"{path} cannot hold a sweep ({error}); {cure}") from None


def _outcomes(task, cases, workers, cluster) -> Iterable[_Outcome]:
    """Outcomes as they come."""
    run = partial(_run, task, digest_of_package())
    if cluster and cases:
        return _on_cluster(run, cases, cluster)
    pool = Parallel(workers, return_as="generator_unordered", batch_size=1)
    return pool(delayed(run)(case) for case in cases)


def _run(task, package, case) -> _Outcome:
    try:
        if package != digest_of_package():
            raise ValueError("a worker has another version of the package; install this one there")
        return _Outcome(case, json.dumps({**task(**case)}, default=lambda value: value.tolist()))
    except Exception as error:
        return _Outcome(case, None, _in_a_line(error), traceback.format_exc())


def _on_cluster(run, cases, address) -> Iterator[_Outcome]:
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise ValueError("a cluster needs Dask: pip install dpcgd[cluster]") from None
    try:
        client = Client(address, timeout=SECONDS_FOR_CLUSTER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"no Dask scheduler answers at {address} ({error})") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS_FOR_CLUSTER)
        except TimeoutError:
            raise ValueError(f"the Dask scheduler at {address} has no worker; start one") from None
        futures = dict(zip(client.map(run, cases, pure=False), cases, strict=True))
        for future in as_completed(list(futures), loop=client.loop):
            case = futures.pop(future)
            try:
                yield future.result()
            except Exception as error:  # the worker was lost too often
                yield _Outcome(case, None, _in_a_line(error))


def _in_a_line(error) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _text(case: dict) -> str:
    return json.dumps(case, sort_keys=True)
