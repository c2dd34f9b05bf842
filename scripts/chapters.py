"""Execute chapters with papermill: in parallel, in limited time, with readable errors."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
INSERTED = {"papermill-error-cell-tag", "injected-parameters"}
NO_KERNEL = "Kernel died before replying"
KERNEL_STARTS = 3
"""Kernels find free ports and then bind them: another may be quicker, before any cell has run."""
SECONDS_ALLOWED = {"quick": 600, "paper": 4 * 3600}


@dataclass(frozen=True)
class Outcome:
    chapter: str
    seconds: float
    error: str | None

    @property
    def result(self) -> str:
        return "ok" if self.error is None else "FAILED"


def chapters() -> list[Path]:
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def execute_all(folder: Path, results: Path, profile: str) -> Iterator[Outcome]:
    """Execute every chapter into `folder`; outcomes come as they finish."""
    folder.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    _compile_once()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = [pool.submit(_execute, path, folder, results, profile) for path in chapters()]
        for done in as_completed(running):
            yield done.result()


def _compile_once():
    """Fill numba's and matplotlib's caches, or every chapter would do it at the same time."""
    code = (
        "import numpy as np, dpcgd, matplotlib.pyplot; "
        "dpcgd.pc(dpcgd.load('cancer', n=100, rng=np.random.default_rng(0)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def _execute(path: Path, folder: Path, results: Path, profile: str) -> Outcome:
    chapter, copy = path.stem, folder / path.name
    if "profile" not in papermill.inspect_notebook(str(path)):
        return Outcome(chapter, 0.0, f"{chapter}: its parameters cell sets no profile")
    (results / f"{chapter}.json").unlink(missing_ok=True)
    copy.unlink(missing_ok=True)
    command = [sys.executable, "-m", "papermill", str(path), str(copy), "--no-progress-bar"]
    if profile != "quick":
        command += ["-p", "profile", profile]
    started = time.perf_counter()
    print(f"  {chapter} ...\n", end="", flush=True)  # one write: chapters start together
    for _ in range(KERNEL_STARTS):
        output = _run(command, results, SECONDS_ALLOWED[profile])
        if output is None or NO_KERNEL not in output:
            break
    return Outcome(chapter, time.perf_counter() - started, _error(chapter, copy, output))


def _run(command, results, seconds) -> str | None:
    """Run it with files of its own; return what it printed if it failed."""
    with tempfile.TemporaryDirectory() as own:  # kernels that share files can trip over each other
        environment = os.environ | {
            "DPCGD_RESULTS": str(results),
            "IPYTHONDIR": own,
            "JUPYTER_RUNTIME_DIR": own,
            "OMP_NUM_THREADS": "1",  # chapters run side by side, one a core
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        return _output(command, environment, seconds)


def _output(command, environment, seconds) -> str | None:
    """Run it in a process group of its own, so that all of it can be stopped in time."""
    process = subprocess.Popen(
        command,
        cwd=NOTEBOOKS,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
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
    for number, cell in enumerate(own, start=1):
        for shown in cell.get("outputs", []):
            if shown.output_type == "error":
                lines = [f"{chapter}, cell {number}: {shown.ename}: {shown.evalue}", cell.source]
                return "\n".join(lines)
    return f"{chapter}: {output.strip()[:1000]}\n...\n{output.strip()[-2000:]}"


def table(outcomes: list[Outcome]) -> str:
    lines = [f"{'chapter':<40}{'seconds':>9}  result"]
    for outcome in sorted(outcomes, key=lambda o: o.chapter):
        lines.append(f"{outcome.chapter:<40}{outcome.seconds:>9.1f}  {outcome.result}")
    return "\n".join(lines)
