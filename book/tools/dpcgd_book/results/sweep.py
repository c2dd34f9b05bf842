"""Sweeps: many runs over a grid, in parallel, that lose nothing when they are interrupted."""

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from IPython import get_ipython
from IPython.display import display
from joblib import Parallel, delayed

from dpcgd_book.results.digests import digest_of_package, digest_of_task
from dpcgd_book.results.line_file import LineFile

__all__ = ["CLUSTER", "sweep"]

CLUSTER = "DPCGD_CLUSTER"
"""An environment variable with the address of a Dask scheduler for full results."""

SECONDS_FOR_CLUSTER = 30
"""How long a scheduler and its first worker may take to answer."""


def sweep(
    task: Callable[..., dict],
    cases: Iterable[dict],
    *,
    path: Path | str | None = None,
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
        Where cases are kept, one JSON line each: beside the case its results or its error, the name
        of the task, and a digest of the package, the task and its settings. A finished case of the
        same digest is not run again, so several tasks may share a file. Delete it to start anew;
        leave it out to keep nothing.
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
        If the file is not one of this function's or in use by another sweep, or if the cluster does
        not answer or has another version of the package.
    RuntimeError
        In the end, if cases failed. They are tried again by the next sweep.

    Examples
    --------
    >>> sweep(lambda x: {"square": x * x}, [{"x": 2}, {"x": 3}])
    [{'x': 2, 'square': 4}, {'x': 3, 'square': 9}]
    """
    cases = list(cases)
    made_by = _made_by(task) if path else {}
    with LineFile(path) if path else nullcontext() as file:
        found = _finished(file, made_by) if file else {}
        left = {key: case for case in cases if (key := _key(case)) not in found}
        progress, failed = _Progress(len(left)), []
        for outcome in _run(task, list(left.values()), workers, cluster):
            if outcome.found is not None:
                found[_key(outcome.case)] = outcome.found
            else:
                failed.append(outcome)
            if file:
                file.append({**made_by, **outcome.line()})
            progress.step(len(failed))
        progress.end()
    if failed:
        raise _failure(failed, len(left), path)
    return [{**case, **found[_key(case)]} for case in cases]


class _Outcome(NamedTuple):
    """What became of a case: its results, or its error and where that came from."""

    case: dict
    found: dict | None = None
    error: str | None = None
    trace: str = ""

    def line(self) -> dict:
        told = {"error": self.error} if self.found is None else {"found": self.found}
        return {"case": self.case, **told}


class _OtherCode(ValueError):
    """A worker has another version of the package."""


def _made_by(task) -> dict[str, str]:
    name = getattr(task, "__name__", type(task).__name__)
    return {"task": name, "code": f"{digest_of_package()[:16]} {digest_of_task(task)[:16]}"}


def _finished(file: LineFile, made_by) -> dict[str, dict]:
    """The results on file that this code has made."""
    try:
        own = [line for line in file.lines if made_by.items() <= line.items()]
        return {_key(line["case"]): line["found"] for line in own if "found" in line}
    except (AttributeError, KeyError, TypeError):
        raise ValueError(
            f"{file.path} holds no sweep of this version; delete it or name another"
        ) from None


def _run(task, cases, workers, cluster) -> Iterator[_Outcome]:
    """Outcomes as they come."""
    if not cases:
        return
    one = partial(_one, task, digest_of_package() if workers != 1 or cluster else None)
    if cluster:
        yield from _on_cluster(one, cases, cluster)
    elif workers == 1:
        yield from map(one, cases)
    else:
        pool = Parallel(workers, return_as="generator_unordered", batch_size=1)
        yield from pool(delayed(one)(case) for case in cases)


def _one(task, package, case) -> _Outcome:
    if package and package != digest_of_package():
        raise _OtherCode("a worker has another version of the package; give all of them this one")
    try:
        found = {**task(**case)}
        return _Outcome(case, json.loads(json.dumps(found, default=lambda value: value.tolist())))
    except Exception as error:
        return _Outcome(case, None, _in_a_line(error), traceback.format_exc())


def _on_cluster(one, cases, address) -> Iterator[_Outcome]:
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
        futures = dict(zip(client.map(one, cases, pure=False), cases, strict=True))
        for future in as_completed(list(futures), loop=client.loop):
            yield _gathered(future, futures.pop(future))


def _gathered(future, case) -> _Outcome:
    """What a worker sent; of a worker that was lost too often, an error."""
    try:
        return future.result()
    except _OtherCode:
        raise
    except Exception as error:
        return _Outcome(case, None, _in_a_line(error))


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


def _key(case: dict) -> str:
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
            told = f"{self.done} of {self.cases}; about {_duration(seconds)} left"
            self._show(f"{told}; {failed} failed" if failed else told)

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


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
