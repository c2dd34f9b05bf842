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

import pandas as pd
from chapters import BUILD, ROOT, digest, write_results
from dpcgd_book.results.sweep import sweep

TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

from planted_bugs import BUGS  # noqa: E402
from planting import Bug  # noqa: E402
from replays import SYSTEMS  # noqa: E402

PAIRS = dict.fromkeys(SYSTEMS, 20_000) | {"curate_pc": 10_000, "table_pc": 12_000}
PAIRS |= {"dag_posterior": 4_000, "graph_from_moments": 2_000, "private_graph": 1_200}
"""Replays on neighbours, by system: some two minutes of one core each."""
STRANGERS = 200
"""Replays on data that share nothing with their own."""
CHUNKS = 4
"""Parts of the replays of a system."""
OF_A_SEED = "seeded_ or of_the_seed or same_seed or for_a_seed"
"""Names of tests that know the numbers of a seed: to notice by these alone is not enough."""
OF_A_BUG = 6, 2
"""By these the numbers of pairs and of strangers are divided where a bug is looked for."""
DIVERGED = re.compile(r"^(?:AssertionError|dpcgd\S+Divergence): ?(.*)", re.MULTILINE)
FAILED = re.compile(r"^FAILED \S+::(\S+)", re.MULTILINE)
BROKEN = re.compile(
    r"^(?:FAILED .*- |.*it has paid: )(Name|Type|Attribute|UnboundLocal|Import|LinAlg)Error", re.M
)
"""What is said of code that does not run at all: that shows nothing about the bug."""


def run(script: str, *arguments: str):
    """A script of the tests, in a process of its own that imports this package and no other."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "book" / "tools")])
    own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, TESTS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | own, cwd=ROOT)


def noticed(bug: Bug) -> tuple[str, str]:
    """Who notices a bug, and what it says; two empty texts if nobody does."""
    if bug.replayed:
        fewest = min(PAIRS[name] for name in bug.replayed.split(",")), STRANGERS
        many = [str(number // part) for number, part in zip(fewest, OF_A_BUG, strict=True)]
        done = run("planting.py", bug.name, "replays", bug.replayed, *many, "0")
        if done.returncode:
            return "replay", last_finding(bug, DIVERGED, done.stderr)
    if bug.tests:  # but for those that know the numbers of a seed
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-o", "addopts="]
        files = [str(TESTS / file) for file in bug.tests.split()]
        done = run("planting.py", bug.name, "pytest", *options, "-k", f"not ({OF_A_SEED})", *files)
        if done.returncode:
            return "tests", last_finding(bug, FAILED, done.stdout)
    return "", ""


def last_finding(bug: Bug, finding: re.Pattern, output: str) -> str:
    """What replay or tests found last; a patch that merely breaks the code shows nothing."""
    findings = finding.findall(output)
    if not findings or BROKEN.search(output):
        raise RuntimeError(f"{bug.name}: the patch breaks the code:\n{output[-2000:]}")
    return findings[-1]


def part(name: str, chunk: int) -> dict:
    """A part of the replays of a system; raises where one finds something."""
    many = [str(number // CHUNKS) for number in (PAIRS[name], STRANGERS)]
    done = run("replays.py", name, *many, str(chunk))
    if done.returncode:
        raise RuntimeError(f"{name}, replayed:\n{done.stderr}")
    print(f"  {name}: {done.stdout.strip()}", flush=True)
    return json.loads(done.stdout)


def planted(name: str) -> dict:
    """Who notices a bug, by its name."""
    bug = next(bug for bug in BUGS if bug.name == name)
    by, finding = noticed(bug)
    print(f"  {bug.where}: {name}: {by or 'NOBODY'}: {finding[:80]}", flush=True)
    return {"by": by, "finding": finding}


def main():
    roots = ROOT / "dpcgd", ROOT / "book" / "tools", TESTS
    files = [*(file for root in roots for file in root.rglob("*.py")), Path(__file__)]
    known = BUILD / "mutants" / f"{digest(sorted(files))[:16]}.jsonl"
    settings = {"path": known, "workers": os.cpu_count()}
    bugs = sweep(planted, [{"name": bug.name} for bug in BUGS], **settings)
    by = [bug["by"] for bug in bugs]
    results = {
        "planted": len(by),
        "caught": sum(map(bool, by)),
        "caught_by_replay": by.count("replay"),
        "noticed_by": {bug["name"]: f"{bug['by']}: {bug['finding']}" for bug in bugs},
    }
    write_results("attacks", results)
    if missed := [bug["name"] for bug in bugs if not bug["by"]]:
        sys.exit("\nnobody notices: " + "; ".join(missed))
    parts = [{"name": name, "chunk": chunk} for name in SYSTEMS for chunk in range(CHUNKS)]
    replays = pd.DataFrame(sweep(part, parts, **settings)).groupby("name", sort=False)
    shown = replays.agg({"pairs": "sum", "strangers": "sum", "worst": "max"})
    shown.columns = ["replayed_pairs", "strangers", "worst_loss_over_price"]
    file = write_results("attacks", results | shown.to_dict())
    print(shown.drop(columns="worst_loss_over_price").to_string())
    by_replay = f"{results['caught_by_replay']} by replay; the package as it is, by none: {file}"
    print(f"\n{results['caught']} of {results['planted']} planted bugs are noticed, {by_replay}")


if __name__ == "__main__":
    main()
