"""Execute chapters with papermill: side by side, once for the same contents."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from dpcgd_book.results.digests import digest_of_files

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
BUILD = Path(os.environ.get("DPCGD_BUILD", ROOT / "_build"))
"""Where outcomes are kept; somewhere else for each machine that is emulated."""
RESULTS = BUILD / "results"

INSERTED = {"papermill-error-cell-tag", "injected-parameters"}
NO_KERNEL = "Kernel died before replying"
KERNEL_STARTS = 3
"""Kernels find free ports and then bind them: another may be quicker, before any cell has run."""
SECONDS_ALLOWED = {"quick": 600, "full": 4 * 3600, "paper": 4 * 3600}
"""By profile; "full" is the quick one with the tables of make results."""

READ = ("dpcgd", "book/tools", "data", "benchmarks", "requirements.lock", "scripts/chapters.py")
"""What a chapter's outcome depends on, beside the chapter itself, its profile and the machine."""
MACHINE = ("OPENBLAS_", "OMP_", "NPY_", "NUMBA_CPU_")
"""Environment variables that choose how a processor computes begin with these."""
REUSED = "not executed again: same chapter, package, data, lock and profile"


@dataclass(frozen=True)
class Outcome:
    chapter: str
    seconds: float
    error: str | None
    reused: bool = False

    @property
    def result(self) -> str:
        return "FAILED" if self.error else "reused" if self.reused else "ok"

    def __str__(self):
        details = REUSED if self.reused else f"{self.result} in {self.seconds:.1f} s"
        return f"{self.chapter} {details}"


@dataclass(frozen=True)
class Home:
    """The outcomes of one profile on one machine: copies with outputs, results, and of what."""

    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def copy(self, path: Path) -> Path:
        return self.folder / "executed" / path.name

    def result(self, path: Path) -> Path:
        return self.results / f"{path.stem}.json"

    def stamp(self, path: Path) -> Path:
        return self.folder / "contents" / path.stem

    def holds(self, path: Path, contents: str) -> bool:
        """Is there an outcome of this chapter with just these contents?"""
        files = self.stamp(path), self.copy(path), self.result(path)
        return all(file.exists() for file in files) and files[0].read_text() == contents

    def clear(self, path: Path):
        for file in (self.stamp(path), self.copy(path), self.result(path)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)


def home(profile: str) -> Home:
    return Home(BUILD / profile)


def chapters(names: str = "") -> list[Path]:
    """All of them, or those whose names begin with one of these, as ``06`` or ``06,07``."""
    found = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    wanted = tuple(name for name in names.split(",") if name)
    kept = [path for path in found if path.stem.startswith(wanted)] if wanted else found
    if not kept or any(not any(p.stem.startswith(w) for p in kept) for w in wanted):
        there = ", ".join(path.stem for path in found)
        raise SystemExit(f"no chapter begins with {names!r}; there are {there}")
    return kept


def digest(paths: Iterable[Path | str], *facts: str) -> str:
    """A hash of files and folders of the checkout, and of facts."""
    return digest_of_files(paths, *facts, root=ROOT)


def execute_all(
    at: Home, profile: str, paths: list[Path] | None = None, planted: str = "", **extra: str
) -> Iterator[Outcome]:
    """Execute chapters, but for those whose outcome is there; outcomes come as they finish.

    `planted` is code that each kernel runs first, and `extra` are environment variables.
    """
    paths = chapters() if paths is None else paths
    # side by side, each on one core
    run = Run(at, profile, os.environ | {"OMP_NUM_THREADS": "1"} | extra, planted=planted)
    left = [path for path in paths if not at.holds(path, run.contents(path))]
    yield from (Outcome(path.stem, 0.0, None, reused=True) for path in paths if path not in left)
    if left:
        run.compile_once()
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        for done in as_completed([pool.submit(run.execute, path) for path in left]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)  # who stops it waits for those that run, not for all


@dataclass(frozen=True)
class Run:
    """How chapters are executed: where to, at which size, on which machine."""

    home: Home
    profile: str
    environment: dict[str, str]
    python: Path | str = sys.executable
    planted: str = ""
    """Code that each kernel runs first."""

    def contents(self, path: Path) -> str:
        """What a chapter's outcome depends on."""
        kernels = sorted((k, v) for k, v in self.environment.items() if k.startswith(MACHINE))
        where = f"{self.python} {platform.platform()} {platform.processor()}{self.planted}"
        text, files = path.read_text(), sorted((ROOT / "book" / "stored").iterdir())
        stored = [file for file in files if file.stem in text or file.stem == path.stem]
        return digest([path, *READ, *stored], self.profile, repr(kernels), where)

    def compile_once(self):
        """Fill numba's and matplotlib's caches, or every chapter would do it at the same time."""
        code = (
            "import numpy as np, dpcgd, matplotlib.pyplot; rng = np.random.default_rng(0); "
            "data = dpcgd.load('cancer', n=50_000, rng=rng); dpcgd.pc(data); "
            "[system(data, epsilon=1.0, rng=rng) for system in (dpcgd.table_pc, "
            "dpcgd.graph_from_moments, dpcgd.dag_posterior)]"
        )
        command = [self.python, "-c", code]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=self.environment)

    def execute(self, path: Path) -> Outcome:
        """One chapter, from nothing."""
        chapter, copy = path.stem, self.home.copy(path)
        self.home.clear(path)
        if "profile" not in papermill.inspect_notebook(str(path)):
            return Outcome(chapter, 0.0, f"{chapter}: its parameters cell sets no profile")
        contents = self.contents(path)
        command = [self.python, "-m", "papermill", str(path), str(copy), "--no-progress-bar"]
        if self.profile == "paper":
            command += ["-p", "profile", self.profile]
        started = time.perf_counter()
        print(f"  {chapter} ...\n", end="", flush=True)  # one write: chapters start together
        for _ in range(KERNEL_STARTS):
            output = self.output(command, contents)
            if output is None or NO_KERNEL not in output:
                break
        error, seconds = _error(chapter, copy, output), time.perf_counter() - started
        if error is None:
            self.home.stamp(path).write_text(contents)
        return Outcome(chapter, seconds, error)

    def output(self, command, contents: str) -> str | None:
        """Run it with files of its own; return what it printed if it failed."""
        with tempfile.TemporaryDirectory() as own:  # kernels that share files trip over each other
            environment = self.environment | {
                "DPCGD_RESULTS": str(self.home.results),
                "DPCGD_VERSION": contents,
                "IPYTHONDIR": own,
                "JUPYTER_RUNTIME_DIR": own,
                "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            }
            startup = Path(own, "profile_default", "startup", "00-planted.py")
            startup.parent.mkdir(parents=True)
            startup.write_text(self.planted)
            return _output(command, environment, SECONDS_ALLOWED[self.profile])


def _output(command, env, seconds) -> str | None:
    """Run it in a process group of its own, so that all of it can be stopped in time."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=NOTEBOOKS, env=env, start_new_session=True, **pipes)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"took more than {seconds} s and was stopped"
    return output if process.returncode else None


def _error(chapter: str, copy: Path, output: str | None) -> str | None:
    """The chapter, the cell and the error, read from the executed copy."""
    if output is None:
        return None
    cells = nbformat.read(copy, as_version=4).cells if copy.exists() else []
    own = [cell for cell in cells if not INSERTED & set(cell.metadata.get("tags", []))]
    shown = [(k, cell, out) for k, cell in enumerate(own, 1) for out in cell.get("outputs", [])]
    for number, cell, out in shown:
        if out.output_type == "error":
            return f"{chapter}, cell {number}: {out.ename}: {out.evalue}\n{cell.source}"
    return f"{chapter}: {output.strip()[:1000]}\n...\n{output.strip()[-2000:]}"


def table(outcomes: list[Outcome]) -> str:
    rows = sorted((done.chapter, done.seconds, done.result) for done in outcomes)
    lines = [f"{chapter:<40}{seconds:>9.1f}  {result}" for chapter, seconds, result in rows]
    return "\n".join([f"{'chapter':<40}{'seconds':>9}  result", *lines])


def publish(at: Home):
    """Copy the results to `_build/results`, beside those of other commands."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for file in at.results.glob("*.json"):
        shutil.copy(file, RESULTS)


def write_results(name: str, results: dict) -> Path:
    """Put what a command found beside the chapters' results."""
    file = RESULTS / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    return file
