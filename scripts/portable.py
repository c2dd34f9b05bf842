"""Every chapter and test on other machines, emulated here: a table of what failed and what moved.

python scripts/portable.py [machines [chapters]]
python scripts/portable.py passed       # notes that all tests have passed here, as make test does

Machines are named as nehalem,zen; `foreign` is the first that is not this one. Without a name it is
all of them, and the wheel with the oldest and newest packages it allows. With chapters, as 06,07,
it is these alone, without the tests.

What is done is not done again, so that a run that was stopped goes on. Results are in
_build/results/portable.json: machine -> chapter -> {"failed": n, "moved": n}. A result has moved if
it differs from its golden value at all; beyond the value's tolerance it has failed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import golden
import pandas as pd
from chapters import BUILD, READ, RESULTS, ROOT, Home, Run, chapters, digest, home, write_results

AT = BUILD / "portable"
CODE = sorted((ROOT / "tests").rglob("*.py"))
PAGES = ("book", "notebooks", "_toc.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
TESTED = (*READ, *CODE, *PAGES, "scripts", "pyproject.toml", "environment.yml")
"""What the outcome of the tests depends on, but for those that execute chapters."""
FOR_BOOK = ("book", *map("test_{}.py".format, ("benchmarks", "mutants", "notebooks", "packaging")))
"""Tests that need what only the book needs."""
ELSEWHERE = ("test_notebooks.py", "test_mutants.py")
"""Tests that are no matter of the machine, or jobs of their own here."""
NO_BUILD = ("--no-deps", "--no-build-isolation")
OTHER_PYTHONS = ("python3.14", "python3.13", "python3.12")
OLD_X86 = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
NEW_X86 = "X86_V4 AVX512_ICL AVX512_SPR"


# --- machines


class Machine(NamedTuple):
    """A processor as its libraries see it: kernels of OpenBLAS, loops of numpy, code of numba."""

    name: str
    kernels: str
    shown_as: str
    """What OpenBLAS calls these kernels once loaded; some processors share them."""
    numpy_without: str = ""
    numba: str = ""
    threads: int = 1
    other_python: bool = False

    @property
    def folder(self) -> Path:
        return AT / self.name

    @property
    def here(self) -> bool:
        """Does it compute as this one does? Then what `make test` did is not done again."""
        changed = self.numpy_without or self.numba or self.threads > 1 or self.other_python
        return not changed and self.has(kernels())

    @property
    def environment(self) -> dict[str, str]:
        if self.here:
            return {"OMP_NUM_THREADS": "1"}
        return {
            "OPENBLAS_CORETYPE": self.kernels,
            "OMP_NUM_THREADS": str(self.threads),
            "OPENBLAS_THREAD_TIMEOUT": "4",  # threads that wait let the other job go on
            "NPY_DISABLE_CPU_FEATURES": self.numpy_without,
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
            "DPCGD_BUILD": str(self.folder),
        } | ({"NUMBA_CPU_NAME": self.numba, "NUMBA_CPU_FEATURES": ""} if self.numba else {})

    def has(self, kernels: str) -> bool:
        """Are these its kernels?"""
        return bool(re.search(f"'({self.shown_as})'", kernels))

    def tested(self, python: Path | str) -> str:
        """What the outcome of its tests depends on."""
        return digest(TESTED, str(python), repr(self.environment))


MACHINES = (
    Machine("nehalem", "Nehalem", "Nehalem", numpy_without=OLD_X86, numba="generic"),
    Machine("haswell", "Haswell", "Haswell", numpy_without=NEW_X86, threads=2),
    Machine("skylakex", "SkylakeX", "SkylakeX"),
    Machine("zen", "Zen", "Haswell|Zen", numpy_without=NEW_X86, other_python=True),
    Machine("armv8", "ARMV8", "ARMV8|armv8"),
    Machine("neoversen1", "NEOVERSEN1", "NEOVERSEN1|neoversen1", threads=2, other_python=True),
)
KERNELS = """
import numpy as np, scipy.linalg, threadpoolctl
a = np.eye(200) + 1 / 7
scipy.linalg.inv(a @ a), np.linalg.eigh(a), np.exp(a)
pools = threadpoolctl.threadpool_info()
print([pool["architecture"] for pool in pools if pool["internal_api"] == "openblas"])
"""


@cache
def kernels(machine: Machine | None = None) -> str:
    """The names of the kernels that run here, or on a machine; none if they do not run."""
    command = [sys.executable, "-c", KERNELS]
    environment = os.environ | (machine.environment if machine else {})
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip()


def foreign() -> str:
    """The first machine that this processor can stand in for and is not."""
    others = (machine for machine in MACHINES if not machine.has(kernels()))
    return next(other.name for other in others if other.has(kernels(other)))


# --- environments


def another_python() -> str | None:
    """The newest Python at hand that this is not."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    other = f"import sys, venv; sys.exit(sys.version_info[:2] == {sys.version_info[:2]})"
    for name in OTHER_PYTHONS:
        for python in filter(None, (shutil.which(name), *versions.glob(f"*/bin/{name}"))):
            if not subprocess.run([python, "-c", other], capture_output=True).returncode:
                return str(python)
    return None


def fresh_environment(folder: Path, python: str, installs: list[list], contents: str) -> Path:
    """A virtual environment, made once for the same contents."""
    there, stamp = folder / "bin" / "python", folder / "contents"
    if not (stamp.exists() and stamp.read_text() == contents):
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        for arguments in installs:
            subprocess.run([there, "-m", "pip", "install", "-qq", *arguments], check=True)
        stamp.write_text(contents)
    return there


def python_of(machine: Machine) -> Path | str:
    """This interpreter, or another with the locked packages."""
    python = another_python() if machine.other_python else None
    if python is None:
        return sys.executable
    print(f"  {machine.name}: an environment for {Path(python).name}", flush=True)
    locked = ["--require-hashes", "--requirement", ROOT / "requirements.lock"]
    ours = [*NO_BUILD, "--editable", ROOT, "--editable", ROOT / "book" / "tools"]
    folder, contents = f"environment-{Path(python).name}", digest(["requirements.lock"], python)
    return fresh_environment(AT / folder, python, [locked, ours], contents)


# --- jobs


class Row(NamedTuple):
    machine: str
    what: str
    failed: int = 0
    moved: int = 0
    told: str = ""

    def __str__(self):
        moved = f", {self.moved} moved" if self.moved else ""
        return (f"{self.failed} FAILED" if self.failed else "ok") + moved


def chapter_row(machine: Machine, run: Run, path: Path) -> Row:
    """Execute a chapter, if it was not, and hold its results against the golden ones."""
    if not run.home.holds(path, run.contents(path)):
        outcome = run.execute(path)
        if outcome.error:
            return Row(machine.name, path.stem, failed=1, told=outcome.error)
    expected, results = golden.of(path.stem), json.loads(run.home.result(path).read_text())
    off = golden.off(expected, results)
    within = [line for line in golden.moved(expected, results) if line not in off]
    told = [*(f"FAILED {line}" for line in off), *(f"moved {line}" for line in within)]
    return Row(machine.name, path.stem, len(off), len(within), "\n".join(told))


def tests_row(name: str, command: list, without: tuple, contents: str, cwd, **variables) -> Row:
    """Run pytest, if these contents have not passed before; count what failed."""
    stamp, row = AT / name / "tests", Row(name, "the tests")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    if stamp.exists() and stamp.read_text() == contents:
        return row
    print(f"  {name}: the tests ...\n", end="", flush=True)
    left_out = (f"--ignore={ROOT / 'tests' / file}" for file in without)
    command, env = [*command, "-q", "-p", "no:cacheprovider", *left_out], os.environ | variables
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)
    if not done.returncode:
        stamp.write_text(contents)
        return row
    lines = done.stdout.splitlines()
    failed = sum(map(int, re.findall(r"(\d+) (?:failed|error)", "".join(lines[-1:]))))
    told = "\n".join([*lines[-60:], *done.stderr.splitlines()[-20:]])
    return row._replace(failed=max(1, failed), told=told)


def jobs_of(machine: Machine, names: str) -> Iterator[partial]:
    """The jobs of one machine, longest first; a line if it cannot be emulated here."""
    if not machine.has(shown := kernels(machine)):
        print(f"  {machine.name} is left out: here its kernels are {shown or 'none'}", flush=True)
        return
    python, variables = python_of(machine), machine.environment
    place = home("quick") if machine.here else Home(machine.folder)
    run = Run(place, "quick", os.environ | variables, python)
    run.compile_once()
    if not names:
        command, contents = [python, "-m", "pytest"], machine.tested(python)
        yield partial(tests_row, machine.name, command, ELSEWHERE, contents, ROOT, **variables)
    for path in chapters(names):
        yield partial(chapter_row, machine, run, path)


def installed(name: str, constraints: list[str]) -> Row:
    """The wheel in an environment of its own, with the attacks: the tests that need no book."""
    folder, contents = AT / name, digest(TESTED, repr(constraints), sys.version)
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    build = [sys.executable, "-m", "pip", "wheel", *NO_BUILD, "--quiet"]
    subprocess.run([*build, "--wheel-dir", folder / "wheel", ROOT], check=True)
    (wheel,) = (folder / "wheel").glob("*.whl")
    limits = folder / "constraints.txt"
    limits.write_text("\n".join(constraints))
    needed = ["--constraint", limits, f"dpcgd[secure,test] @ {wheel.as_uri()}"]
    installs = [needed, [*NO_BUILD, ROOT / "book" / "tools"]]
    python = fresh_environment(folder / "environment", sys.executable, installs, contents)
    command = [python, "-m", "pytest", "-m", "not slow", "--doctest-ignore-import-errors"]
    command += ["--pyargs", "dpcgd", ROOT / "tests", f"--rootdir={ROOT}"]
    return tests_row(name, command, FOR_BOOK, contents, folder, OMP_NUM_THREADS="1")


def oldest() -> list[str]:
    """The lower bounds of the package's dependencies, as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["secure"]]
    return [re.sub(r">=([^,]+).*", r"==\1", line) for line in needed]


def jobs(wanted: list[str], names: str) -> Iterator[partial]:
    """Everything that is to be done."""
    if not wanted:
        yield partial(installed, "oldest packages", oldest())
        yield partial(installed, "newest packages", [])
    for machine in (m for m in MACHINES if not wanted or m.name in wanted):
        yield from jobs_of(machine, names)


def note_passed():
    """Note that `make test` has passed on this machine, so that it is not done again."""
    for machine in (machine for machine in MACHINES if machine.here):
        machine.folder.mkdir(parents=True, exist_ok=True)
        (machine.folder / "tests").write_text(machine.tested(sys.executable))


def add(row: Row):
    """Put a row on file."""
    file = RESULTS / "portable.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    known.setdefault(row.machine, {})[row.what] = {"failed": row.failed, "moved": row.moved}
    write_results("portable", dict(sorted(known.items())))


def main(machines: str = "", names: str = ""):
    wanted = [foreign() if name == "foreign" else name for name in machines.split(",") if name]
    if unknown := set(wanted) - {machine.name for machine in MACHINES}:
        there = ", ".join(machine.name for machine in MACHINES)
        sys.exit(f"no machine is called {', '.join(unknown)}; there are {there}")
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(job) for job in jobs(wanted, names)]):
            rows.append(row := done.result())
            print(f"  {row.machine}: {row.what}: {row}", flush=True)
            add(row)
    for row in (row for row in rows if row.told):
        print(f"\n{row.machine}, {row.what}:\n{row.told}")
    texts = [{"what": row.what, "machine": row.machine, "result": str(row)} for row in rows]
    table = pd.DataFrame(texts).pivot(index="what", columns="machine", values="result")
    print("", table.fillna("-").to_string(), sep="\n")
    print(f"\nThe results: {RESULTS / 'portable.json'}")
    if any(row.failed for row in rows):
        sys.exit("\nSomething fails on another machine: see above")


if __name__ == "__main__":
    if sys.argv[1:] == ["passed"]:
        note_passed()
    else:
        main(*sys.argv[1:])
