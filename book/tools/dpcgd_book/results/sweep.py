"""Sweeps: many runs over a grid, in parallel, that lose nothing when they are interrupted."""

import contextlib
import json
import os
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from IPython import get_ipython
from IPython.display import display
from joblib import Parallel, delayed

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

    A case that fails does not stop the others.

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
        a name, or if the cluster does not answer or has another version of the package.
    RuntimeError
        In the end, if cases failed. They are tried again by the next sweep.

    Examples
    --------
    >>> sweep(lambda x: {"square": x * x}, [{"x": 2}, {"x": 3}])
    [{'x': 2, 'square': 4}, {'x': 3, 'square': 9}]
    """
    cases = list(cases)
    name = name or getattr(task, "__name__", "<lambda>")
    if path and name == "<lambda>":
        raise ValueError(f"{path} may hold several sweeps; give this one a name")
    with _FinishedCases(path, (name, version)) if path else contextlib.nullcontext() as file:
        results = file.results() if file else {}
        left = {_text(case): case for case in cases if _text(case) not in results}
        progress, failed = _Progress(len(left)), []
        for outcome in _outcomes(task, list(left.values()), workers, cluster):
            if outcome.result is None:
                failed.append(outcome)
            else:
                results[_text(outcome.case)] = outcome.result
                if file:
                    file.add(outcome)
            progress.step(len(failed))
        progress.end()
    if failed:
        raise _failure(failed, len(left), path)
    return [{**case, **results[_text(case)]} for case in cases]


class _Outcome(NamedTuple):
    """The results of a case, or its error and where that came from."""

    case: dict
    result: dict | None = None
    error: str = ""
    trace: str = ""


class _OtherCodeError(ValueError):
    """A worker has another version of the package."""


class _FinishedCases:
    """A table in a SQLite file: a case is in it whole or not at all, whenever a run is killed."""

    def __init__(self, path: Path | str, key: tuple[str, str]):
        self.path, self._key = Path(path), key
        with self._named_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, SECONDS_FOR_FILE, isolation_level=None)
            columns = '(name, version, "case", result, PRIMARY KEY (name, version, "case"))'
            self._file.execute(f"CREATE TABLE IF NOT EXISTS finished {columns}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def results(self) -> dict[str, dict]:
        query = 'SELECT "case", result FROM finished WHERE name = ? AND version = ?'
        with self._named_errors():
            rows = self._file.execute(query, self._key).fetchall()
        return {case: json.loads(result) for case, result in rows}

    def add(self, outcome: _Outcome):
        row = (*self._key, _text(outcome.case), json.dumps(outcome.result))
        with self._named_errors():
            self._file.execute("INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _named_errors(self):
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ValueError(
                f"{self.path} cannot hold a sweep ({error}); make room, or name another file"
            ) from None


def _outcomes(task, cases, workers, cluster) -> Iterator[_Outcome]:
    """Outcomes as they come."""
    if not cases:
        return
    run = partial(_run, task, digest_of_package() if workers != 1 or cluster else None)
    if cluster:
        yield from _on_cluster(run, cases, cluster)
    elif workers == 1:
        yield from map(run, cases)
    else:
        pool = Parallel(workers, return_as="generator_unordered", batch_size=1)
        yield from pool(delayed(run)(case) for case in cases)


def _run(task, package, case) -> _Outcome:
    if package and package != digest_of_package():
        raise _OtherCodeError("a worker has another version of the package; install this one there")
    try:
        result = json.dumps({**task(**case)}, default=lambda value: value.tolist())
        return _Outcome(case, json.loads(result))
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
            except _OtherCodeError:
                raise
            except Exception as error:  # the worker was lost too often
                yield _Outcome(case, None, _in_a_line(error))


def _in_a_line(error) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _failure(failed, tried, path) -> RuntimeError:
    first = failed[0]
    kept = f"; those that did not are in {path}, so only these are tried again" if path else ""
    error = RuntimeError(
        f"{len(failed)} of {tried} cases failed, the first, {first.case}, with {first.error}{kept}"
    )
    error.add_note(first.trace)
    return error


def _text(case: dict) -> str:
    return json.dumps(case, sort_keys=True)


class _Progress:
    """How many cases are done and how long the others will take, in terminals and notebooks."""

    EVERY = 1.0
    """Seconds between two lines: what takes less says nothing."""

    def __init__(self, cases: int):
        self.cases, self.done = cases, 0
        self.started = self.last = time.monotonic()
        self.shown = None

    def step(self, failed: int):
        self.done += 1
        now = time.monotonic()
        if now - self.last >= self.EVERY:
            self.last = now
            seconds = (now - self.started) / self.done * (self.cases - self.done)
            left = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
            failures = f"; {failed} failed" if failed else ""
            self._show(f"{self.done} of {self.cases}; about {left} left{failures}")

    def end(self):
        """Leave nothing on the page."""
        if self.shown is not None:
            self._show("")

    def _show(self, text):
        if get_ipython() is None:
            if sys.stderr.isatty():
                print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)
                self.shown = text
        elif self.shown is None:
            self.shown = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self.shown.update({"text/plain": text}, raw=True)
