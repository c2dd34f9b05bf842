"""Sweeps: many runs over a grid, in parallel, that lose nothing when they are interrupted."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from IPython import get_ipython
from IPython.display import display
from joblib import Parallel, delayed

__all__ = ["sweep"]


def sweep(
    task: Callable[..., dict],
    cases: Iterable[dict],
    *,
    path: Path | str | None = None,
    workers: int = 1,
) -> list[dict]:
    """Run a task on every case; a finished case is on file at once and not run again.

    Parameters
    ----------
    task : callable
        Called as ``task(**case)``; returns a dictionary of results. Both must fit into JSON.
    cases : iterable of dict
    path : path, optional
        Where finished cases are kept, one JSON line each, beside the name of their task: several
        tasks may share a file. Delete it to start anew; leave it out to keep nothing.
    workers : int
        Processes.

    Returns
    -------
    list of dict
        Case and results together, in the order of the cases: rows for a table.

    Raises
    ------
    ValueError
        If the file is not one of this function's.

    Examples
    --------
    >>> sweep(lambda x: {"square": x * x}, [{"x": 2}, {"x": 3}])
    [{'x': 2, 'square': 4}, {'x': 3, 'square': 9}]
    """
    cases = list(cases)
    path = None if path is None else Path(path)
    name = getattr(task, "__name__", type(task).__name__)
    done = _read(path) if path and path.exists() else {}
    left = [case for case in cases if _key(name, case) not in done]
    progress = _Progress(len(left))
    for case, found in _run(task, left, workers):
        done[_key(name, case)] = found
        if path:
            _append(path, name, case, found)
        progress.step()
    progress.end()
    return [{**case, **done[_key(name, case)]} for case in cases]


def _run(task, cases, workers):
    if workers == 1:
        yield from ((case, task(**case)) for case in cases)
        return
    pool = Parallel(workers, return_as="generator_unordered")
    yield from pool(delayed(_one)(task, case) for case in cases)


def _one(task, case):
    return case, task(**case)


def _key(name: str, case: dict) -> str:
    return json.dumps([name, case], sort_keys=True)


def _append(path, name, case, found):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps([name, case, found]) + "\n")


def _read(path) -> dict[str, dict]:
    """What is on file; a last line that was cut off is dropped, from the file too."""
    whole, _, rest = path.read_text().rpartition("\n")
    if rest:
        path.write_text(whole + "\n" if whole else "")
    try:
        rows = [json.loads(line) for line in whole.splitlines()]
        return {_key(name, case): found for name, case, found in rows}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} holds no sweep ({error}); delete it or name another") from None


class _Progress:
    """How many cases are done and how long the others will take, in terminals and notebooks."""

    EVERY = 1.0
    """Seconds between two lines: what takes less says nothing."""

    def __init__(self, cases: int):
        self.cases, self.done = cases, 0
        self.started = self.last = time.monotonic()
        self.shown = None

    def step(self):
        self.done += 1
        now = time.monotonic()
        if now - self.last >= self.EVERY:
            self.last = now
            seconds = (now - self.started) / self.done * (self.cases - self.done)
            self._show(f"{self.done} of {self.cases}; about {_duration(seconds)} left")

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
