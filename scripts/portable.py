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

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import golden
from chapters import BUILD, READ, ROOT, Home, Run, chapters, digest, home

AT = BUILD / "portable"
CODE = sorted((ROOT / "tests").rglob("*.py"))
TESTED = (*READ, *CODE, "book", "README.md", "pyproject.toml", "environment.yml")
"""What the outcome of the tests depends on, but for those that execute chapters."""
TESTS = "the tests"
FOR_BOOK = (
    "book",
    "test_benchmarks.py",
    "test_mutants.py",
    "test_notebooks.py",
    "test_packaging.py",
)
"""Tests that need what only the book needs."""
ELSEWHERE = ("test_notebooks.py", "test_mutants.py")
"""Tests that are no matter of the machine, or jobs of their own here."""
NO_BUILD = ("--no-deps", "--no-build-isolation")
OTHER_PYTHONS = ("python3.14", "python3.13", "python3.12")
OLD_X86 = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
NEW_X86 = "X86_V4 AVX512_ICL AVX512_SPR"


@dataclass(frozen=True)
class Machine:
    """A processor as its libraries see it: kernels of OpenBLAS, loops of numpy, code of numba."""

    name: str
    kernels: str
    shown_as: str
    """What OpenBLAS calls these kernels once loaded; some processors share them."""
    numpy_without: str = ""
    numba: str = ""
    threads: int = 1
    other_python: bool = False
    here: bool = False
    """Is it this very machine? Then what `make test` did is not done again."""

    @property
    def variables(self) -> dict[str, str]:
        if self.here:
            return {"OMP_NUM_THREADS": "1"}
        return {
            "OPENBLAS_CORETYPE": self.kernels,
            "OMP_NUM_THREADS": str(self.threads),
            "OPENBLAS_THREAD_TIMEOUT": "4",  # threads that wait let the other job go on
            "NPY_DISABLE_CPU_FEATURES": self.numpy_without,
            "NUMBA_CACHE_DIR": str(AT / self.name / "numba"),
            "DPCGD_BUILD": str(AT / self.name),
        } | ({"NUMBA_CPU_NAME": self.numba, "NUMBA_CPU_FEATURES": ""} if self.numba else {})

    @property
    def home(self) -> Home:
        return home("quick") if self.here else Home(AT / self.name)

    def is_like(self, native: str) -> bool:
        """Does it compute as a processor with these kernels does when nothing is asked of it?"""
        changed = self.numpy_without or self.numba or self.threads > 1 or self.other_python
        return not changed and bool(re.search(f"'({self.shown_as})'", native))


MACHINES = (
    Machine("nehalem", "Nehalem", "Nehalem", numpy_without=OLD_X86, numba="generic"),
    Machine("haswell", "Haswell", "Haswell", numpy_without=NEW_X86, threads=2),
    Machine("skylakex", "SkylakeX", "SkylakeX"),
    Machine("zen", "Zen", "Haswell|Zen", numpy_without=NEW_X86, other_python=True),
    Machine("armv8", "ARMV8", "ARMV8|armv8"),
    Machine("neoversen1", "NEOVERSEN1", "NEOVERSEN1|neoversen1", threads=2, other_python=True),
)


def kernels(environment) -> str | None:
    """The names of the kernels that run under these variables, or None if they do not run."""
    code = (
        "import numpy as np, scipy.linalg, threadpoolctl; a = np.eye(200) + 1 / 7; "
        "scipy.linalg.inv(a @ a), np.linalg.eigh(a), np.exp(a); "
        "print([i['architecture'] for i in threadpoolctl.threadpool_info()"
        " if i['internal_api'] == 'openblas'])"
    )
    how = {"env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], **how)
    return None if done.returncode else done.stdout.strip()


def cannot(machine: Machine) -> str | None:
    """Why this processor cannot stand in for the machine, if it cannot."""
    found = kernels(os.environ | machine.variables)
    if found is None:
        return f"its {machine.kernels} kernels do not run on this processor"
    if not re.search(f"'({machine.shown_as})'", found):
        return f"there are no {machine.kernels} kernels here, only {found}"
    return None


def works(python: str) -> bool:
    """Is there such an interpreter, and another version than this one?"""
    other = f"import sys, venv; sys.exit(sys.version_info[:2] == {tuple(sys.version_info[:2])})"
    try:
        return not subprocess.run([python, "-c", other], capture_output=True).returncode
    except OSError:
        return False


def another_python() -> str | None:
    """The newest Python at hand that this is not."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = [str(path) for n in OTHER_PYTHONS for path in versions.glob(f"*/bin/{n}")]
    return next((python for python in (*OTHER_PYTHONS, *kept) if works(python)), None)


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
    installs = [
        ["--require-hashes", "--requirement", ROOT / "requirements.lock"],
        [*NO_BUILD, "--editable", ROOT, "--editable", ROOT / "book" / "tools"],
    ]
    name = f"environment-{Path(python).name}"
    return fresh_environment(AT / name, python, installs, digest(["requirements.lock"], python))


@dataclass(frozen=True)
class Row:
    machine: str
    what: str
    failed: int = 0
    moved: int = 0
    told: str = ""


def chapter_row(machine: Machine, run: Run, path: Path) -> Row:
    """Execute a chapter, if it was not, and hold its results against the golden ones."""
    if not machine.home.holds(path, run.contents(path)):
        outcome = run.execute(path)
        if outcome.error:
            return Row(machine.name, path.stem, failed=1, told=outcome.error)
    expected = golden.of(path.stem)
    results = json.loads(machine.home.result(path).read_text())
    off, moved = golden.off(expected, results), golden.moved(expected, results)
    kept = [line for line in moved if line not in off]
    told = [*(f"FAILED {line}" for line in off), *(f"moved {line}" for line in kept)]
    return Row(machine.name, path.stem, len(off), len(kept), "\n".join(told))


def tests_row(name: str, folder: Path, command: list, contents: str, **how) -> Row:
    """Run pytest, if these contents have not passed before; count what failed."""
    stamp, report = folder / "tests", folder / "tests.xml"
    folder.mkdir(parents=True, exist_ok=True)
    if stamp.exists() and stamp.read_text() == contents:
        return Row(name, TESTS)
    report.unlink(missing_ok=True)
    print(f"  {name}: the tests ...\n", end="", flush=True)
    command = [*command, "-p", "no:cacheprovider", "-q", f"--junitxml={report}"]
    done = subprocess.run(command, capture_output=True, text=True, **how)
    if not done.returncode:
        stamp.write_text(contents)
        return Row(name, TESTS)
    told = "\n".join([*done.stdout.splitlines()[-60:], *done.stderr.splitlines()[-20:]])
    if not report.exists():
        return Row(name, TESTS, failed=1, told=told)
    suites = xml.etree.ElementTree.parse(report).getroot().iter("testsuite")
    failed = sum(int(suite.get("failures")) + int(suite.get("errors")) for suite in suites)
    return Row(name, TESTS, failed=max(1, failed), told=told)


def of_machine(machine: Machine, python: Path | str, names: str):
    """The jobs of one machine, longest first."""
    run = Run(machine.home, "quick", os.environ | machine.variables, python)
    run.compile_once()
    if not names:
        yield tests_of(machine, python)
    for path in chapters(names):
        yield functools.partial(chapter_row, machine, run, path)


def tested(machine: Machine, python: Path | str) -> str:
    """What the outcome of a machine's tests depends on."""
    return digest(TESTED, str(python), repr(machine.variables))


def note_passed():
    """Note that `make test` has passed on this machine, so that it is not done again."""
    native = kernels(os.environ)
    for machine in MACHINES:
        if machine.is_like(native):
            here = replace(machine, here=True)
            (AT / here.name).mkdir(parents=True, exist_ok=True)
            (AT / here.name / "tests").write_text(tested(here, sys.executable))


def tests_of(machine: Machine, python: Path | str):
    """All tests but those that execute chapters, which are jobs of their own."""
    command = [python, "-m", "pytest", *(f"--ignore={ROOT / 'tests' / name}" for name in ELSEWHERE)]
    contents = tested(machine, python)
    folder, how = AT / machine.name, {"cwd": ROOT, "env": os.environ | machine.variables}
    return functools.partial(tests_row, machine.name, folder, command, contents, **how)


def installed(name: str, constraints: list[str]) -> Row:
    """The wheel in an environment of its own: the tests that need no book, the README's lines."""
    folder, contents = AT / name, digest(TESTED, repr(constraints), sys.version)
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    build = [sys.executable, "-m", "pip", "wheel", *NO_BUILD, "--quiet"]
    subprocess.run([*build, "--wheel-dir", folder / "wheel", ROOT], check=True)
    (wheel,) = (folder / "wheel").glob("*.whl")
    limits = folder / "constraints.txt"
    limits.write_text("\n".join(constraints))
    installs = [["--constraint", limits, f"dpcgd[secure,test] @ {wheel.as_uri()}"]]
    python = fresh_environment(folder / "environment", sys.executable, installs, contents)
    command = [python, "-m", "pytest", "-m", "not slow", "--doctest-ignore-import-errors"]
    command += [f"--ignore={ROOT / 'tests' / name}" for name in FOR_BOOK]
    command += ["--pyargs", "dpcgd", ROOT / "tests", f"--rootdir={ROOT}"]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    return tests_row(name, folder, command, contents, cwd=folder, env=one_thread)


def oldest() -> list[str]:
    """The lower bounds of the package's dependencies, as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["secure"]]
    return [re.sub(r">=([^,]+).*", r"==\1", line) for line in needed]


def jobs(machines: list[str], names: str):
    """Everything that is to be done, and a line for what cannot be."""
    if not machines:
        yield functools.partial(installed, "oldest packages", oldest())
        yield functools.partial(installed, "newest packages", [])
    native = kernels(os.environ)
    for machine in MACHINES:
        if machines and machine.name not in machines:
            continue
        machine = replace(machine, here=machine.is_like(native))
        if reason := cannot(machine):
            print(f"  {machine.name} is left out: {reason}", flush=True)
        else:
            yield from of_machine(machine, python_of(machine), names)


def foreign() -> str:
    """The first machine that this processor can stand in for and is not."""
    native = kernels(os.environ)
    others = (m for m in MACHINES if not re.search(f"'({m.shown_as})'", native))
    return next(machine.name for machine in others if cannot(machine) is None)


def write(rows: list[Row]):
    """Add rows to the results on file."""
    file = BUILD / "results" / "portable.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text()) if file.exists() else {}
    for row in rows:
        known.setdefault(row.machine, {})[row.what] = {"failed": row.failed, "moved": row.moved}
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def table(rows: list[Row]) -> str:
    """Chapter by machine: what failed, and what moved within its tolerance."""
    machines = list(dict.fromkeys(row.machine for row in rows))
    said = {
        (row.machine, row.what): (f"{row.failed} FAILED" if row.failed else "ok")
        + (f", {row.moved} moved" if row.moved else "")
        for row in rows
    }
    lines = [f"{'':<34}" + "".join(f"{name:<17}" for name in machines)]
    for what in sorted({row.what for row in rows}):
        cells = "".join(f"{said.get((name, what), '-'):<17}" for name in machines)
        lines.append(f"{what:<34}{cells}")
    return "\n".join(lines)


def main(machines: str = "", names: str = ""):
    wanted = [name for name in machines.split(",") if name]
    if wanted == ["foreign"]:
        wanted = [foreign()]
    unknown = set(wanted) - {machine.name for machine in MACHINES}
    if unknown:
        there = ", ".join(machine.name for machine in MACHINES)
        sys.exit(f"no machine is called {', '.join(unknown)}; there are {there}")
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(job) for job in jobs(wanted, names)]):
            rows.append(row := done.result())
            verdict = f"{row.failed} failed, {row.moved} moved"
            print(f"  {row.machine}: {row.what}: {verdict}", flush=True)
            write([row])
    for row in rows:
        if row.told:
            print(f"\n{row.machine}, {row.what}:\n{row.told}")
    print(f"\n{table(rows)}\n\nThe results: {BUILD / 'results' / 'portable.json'}")
    if any(row.failed for row in rows):
        sys.exit("\nSomething fails on another machine: see above")


if __name__ == "__main__":
    if sys.argv[1:] == ["passed"]:
        note_passed()
    else:
        main(*sys.argv[1:])
