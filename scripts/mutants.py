"""Bugs planted in the package, one at a time, each in a process of its own; then its replays.

python scripts/mutants.py

Replay or the room's tests have to notice each bug, and no replay of the package as it is may find
one. How many pairs a system gets is fixed by how fast it is. What is done is not done again, so
that a run that was stopped goes on. Results are in _build/results/attacks.json.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from chapters import BUILD, ROOT, digest
from dpcgd_book.results.sweep import sweep

TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

import planted_bugs  # noqa: E402
import planted_functions  # noqa: E402
from planting import Bug, Swap  # noqa: E402
from replays import SYSTEMS  # noqa: E402

BUGS = planted_bugs.BUGS + planted_functions.BUGS
PAIRS = dict.fromkeys(SYSTEMS, 20_000) | {
    "curate_pc": 10_000,
    "dag_posterior": 4_000,
    "learned_pc": 2_000,
    "private_graph": 1_200,
    "table_pc": 12_000,
}
"""Replays on neighbours, by system: some two minutes of one core each."""
STRANGERS = 200
"""Replays on data that share nothing with their own."""
CHUNKS = 4
"""Parts of the replays of a system."""
OF_A_SEED = "seeded_ or of_the_seed or same_seed or for_a_seed"
"""Names of tests that know the numbers of a seed: to notice by these alone is not enough."""
OF_A_BUG = 6, 2
"""By these the numbers of pairs and of strangers are divided where a bug is looked for."""
FOUND = re.compile(r"^(?:AssertionError|dpcgd\S+Divergence): ?(.*)", re.MULTILINE)
CLAIMS = BUILD / "results" / "claims.json"


def run(script: str, *arguments: str):
    """A script of the tests, in a process of its own that imports this package and no other."""
    own = {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, TESTS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | own, cwd=ROOT)


def noticed(bug: Bug | Swap) -> tuple[str, str]:
    """Who notices a bug, and what it says; two empty texts if nobody does."""
    if bug.replayed:
        systems = bug.replayed.split(",")
        fewest = min(PAIRS[name] for name in systems), STRANGERS
        many = [str(of // part) for of, part in zip(fewest, OF_A_BUG, strict=True)]
        done = run("planting.py", bug.name, "replay", bug.replayed, *many, "0")
        if done.returncode:
            return "replay", found_by_replay(bug, done.stderr)
    if bug.tests:
        done = tested(bug)
        if done.returncode:
            return "tests", failed_test(bug, done.stdout)
    return "", ""


def tested(bug: Bug | Swap):
    """The tests of a room, but for those that know the numbers of a seed."""
    how = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-o", "addopts="]
    files = [str(TESTS / file) for file in bug.tests.split()]
    return run("planting.py", bug.name, "pytest", *how, "-k", f"not ({OF_A_SEED})", *files)


def found_by_replay(bug: Bug | Swap, told: str) -> str:
    """What replay found; a patch that merely breaks the code shows nothing."""
    found = FOUND.findall(told)
    if not found:
        raise RuntimeError(f"{bug.name}: the patch breaks the code: {told[-500:]}")
    return found[-1]


def failed_test(bug: Bug | Swap, told: str) -> str:
    failures = re.findall(r"^FAILED \S+::(\S+)", told, re.MULTILINE)
    if not failures:
        raise RuntimeError(f"{bug.name}: no test could run:\n{told[-2000:]}")
    return failures[0]


def part(name: str, chunk: int) -> dict:
    """A part of the replays of a system; raises where one finds something."""
    many = [str(of // CHUNKS) for of in (PAIRS[name], STRANGERS)]
    done = run("replays.py", name, *many, str(chunk))
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
    bugs = sweep(planted, [{"name": bug.name} for bug in BUGS], **how)
    claim(planted=len(bugs), caught=sum(bool(bug["by"]) for bug in bugs))
    if missed := [bug["name"] for bug in bugs if not bug["by"]]:
        sys.exit("\nnobody notices: " + "; ".join(missed))
    parts = [{"name": name, "chunk": chunk} for name in SYSTEMS for chunk in range(CHUNKS)]
    write(sweep(part, parts, **how), bugs)


def claim(**figures):
    """Add figures to those that the project claims."""
    known = json.loads(CLAIMS.read_text()) if CLAIMS.exists() else {}
    CLAIMS.parent.mkdir(parents=True, exist_ok=True)
    CLAIMS.write_text(json.dumps(known | figures, indent=1) + "\n")


def write(replays, bugs):
    """Results on file, and in a few lines."""
    by = [bug["by"] for bug in bugs]
    of = {name: [found for found in replays if found["name"] == name] for name in SYSTEMS}
    results = {
        "planted": len(by),
        "caught": sum(map(bool, by)),
        "caught_by_replay": by.count("replay"),
        "replayed_pairs": {name: sum(f["pairs"] for f in of[name]) for name in of},
        "strangers": {name: sum(f["strangers"] for f in of[name]) for name in of},
        "worst_loss_over_price": {name: max(f["worst"] for f in of[name]) for name in of},
        "noticed_by": {bug["name"]: f"{bug['by']}: {bug['told']}" for bug in bugs},
    }
    file = BUILD / "results" / "attacks.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    for name in SYSTEMS:
        pairs, strangers = results["replayed_pairs"][name], results["strangers"][name]
        print(f"  {name}: {pairs:,} pairs of neighbours and {strangers:,} of strangers agree")
    print(
        f"\n{results['caught']} of {results['planted']} planted bugs are noticed, "
        f"{results['caught_by_replay']} by replay; no replay of the package as it is finds one.\n"
        f"The results: {file}"
    )


if __name__ == "__main__":
    main()
