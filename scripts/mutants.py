"""Bugs planted in a copy of the package, one at a time: replay or the room's tests notice each.

python scripts/mutants.py

Before that, the package as it is: a hundred thousand replays of every system. What is done is not
done again, so that a run that was stopped goes on. Results are in _build/results/attacks.json.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from chapters import BUILD, ROOT, digest

from dpcgd.book.sweep import sweep

TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

from planted_bugs import BUGS, Bug  # noqa: E402
from replays import SYSTEMS  # noqa: E402

PAIRS, STRANGERS, CHUNKS = 100_000, 200, 4
"""Replays of each system, in so many parts."""
OF_A_SEED = "seeded_ or of_the_seed or same_seed or for_a_seed"
"""Names of tests that know the numbers of a seed: to notice by these alone is not enough."""
FOR_A_BUG = 1600, 60
FOUND = re.compile(r"^(?:AssertionError|dpcgd\S+Divergence): ?(.*)", re.MULTILINE)


def replayed(systems: str, pairs: int, strangers: int, seed: int, package: Path = ROOT):
    """Replays of some systems of a package, in a process of its own."""
    command = [sys.executable, TESTS / "replays.py", systems, *map(str, (pairs, strangers, seed))]
    return subprocess.run(command, capture_output=True, text=True, env=using(package))


def using(package: Path) -> dict[str, str]:
    """Variables under which this package is imported, and no other."""
    return os.environ | {"PYTHONPATH": str(package), "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}


def copy_with(bug: Bug, folder: Path):
    """A copy of the package with a bug in it."""
    ignored = shutil.ignore_patterns("book")
    shutil.copytree(ROOT / "dpcgd", folder / "dpcgd", ignore=ignored)
    (folder / "dpcgd" / "book").symlink_to(ROOT / "dpcgd" / "book")
    (folder / "data").symlink_to(ROOT / "data")
    file = folder / "dpcgd" / bug.file
    file.write_text(bug.patched(file.read_text()))


def noticed(bug: Bug) -> tuple[str, str]:
    """Who notices a bug, and what it says; two empty texts if nobody does."""
    with TemporaryDirectory() as folder:
        package = Path(folder)
        copy_with(bug, package)
        if bug.replayed:
            done = replayed(bug.replayed, *FOR_A_BUG, 0, package)
            if done.returncode:
                return "replay", found_by_replay(bug, done.stderr)
        if bug.tests:
            done = tested(bug, package)
            if done.returncode:
                return "tests", failed_test(bug, done.stdout)
    return "", ""


def tested(bug: Bug, package: Path):
    """The tests of a room, but for those that know the numbers of a seed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:doctest", "-o", "addopts=", "-k", f"not ({OF_A_SEED})", TESTS / bug.tests]
    return subprocess.run(command, capture_output=True, text=True, env=using(package), cwd=ROOT)


def found_by_replay(bug: Bug, told: str) -> str:
    """What replay found; a patch that merely breaks the code shows nothing."""
    found = FOUND.findall(told)
    if not found:
        raise RuntimeError(f"{bug.name}: the patch breaks the code: {told[-500:]}")
    return found[-1]


def failed_test(bug: Bug, told: str) -> str:
    failures = re.findall(r"^FAILED \S+::(\S+)", told, re.MULTILINE)
    if not failures:
        raise RuntimeError(f"{bug.name}: no test could run:\n{told[-2000:]}")
    return failures[0]


def part(name: str, chunk: int) -> dict:
    """A part of the replays of a system; raises where one finds something."""
    done = replayed(name, PAIRS // CHUNKS, STRANGERS // CHUNKS, chunk)
    if done.returncode:
        raise RuntimeError(f"{name}, replayed:\n{done.stderr}")
    print(f"  {name}: {done.stdout.strip()}", flush=True)
    return json.loads(done.stdout)


def planted(name: str) -> dict:
    """Who notices a bug, by its name."""
    bug = next(bug for bug in BUGS if bug.name == name)
    by, told = noticed(bug)
    print(f"  {bug.file}: {name}: {by or 'NOBODY'}: {told[:80]}", flush=True)
    return {"by": by, "told": told}


def main():
    files = [*(ROOT / "dpcgd").rglob("*.py"), *TESTS.rglob("*.py"), Path(__file__)]
    known = BUILD / "mutants" / f"{digest(sorted(files))[:16]}.jsonl"
    how = {"path": known, "workers": os.cpu_count()}
    parts = [{"name": name, "chunk": chunk} for name in SYSTEMS for chunk in range(CHUNKS)]
    replays = sweep(part, parts, **how)
    bugs = sweep(planted, [{"name": bug.name} for bug in BUGS], **how)
    write(replays, bugs)
    if missed := [bug["name"] for bug in bugs if not bug["by"]]:
        sys.exit("\nnobody notices: " + "; ".join(missed))


def write(replays, bugs):
    """Results on file, and in a line."""
    by = [bug["by"] for bug in bugs]
    of = {name: [found for found in replays if found["name"] == name] for name in SYSTEMS}
    results = {
        "planted": len(by),
        "caught": sum(map(bool, by)),
        "caught_by_replay": by.count("replay"),
        "replayed_pairs": {name: sum(f["pairs"] for f in of[name]) for name in of},
        "worst_loss_over_price": {name: max(f["worst"] for f in of[name]) for name in of},
        "noticed_by": {bug["name"]: f"{bug['by']}: {bug['told']}" for bug in bugs},
    }
    file = BUILD / "results" / "attacks.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    print(
        f"\n{results['caught']} of {results['planted']} planted bugs are noticed, "
        f"{results['caught_by_replay']} by replay; no replay of the package as it is finds one.\n"
        f"The results: {file}"
    )


if __name__ == "__main__":
    main()
