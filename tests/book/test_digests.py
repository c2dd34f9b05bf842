"""What a digest of code sees, and what it does not."""

import subprocess
import sys
from functools import cache, partial

import pytest
from dpcgd_book.results import digests
from dpcgd_book.results.digests import digest_of_files, digest_of_package, digest_of_task

BEFORE = """
import numpy as np
from dataclasses import dataclass
SETTINGS = {"rate": 0.5, "of": (1, 2)}
TABLE = np.arange(3)

@dataclass(frozen=True)
class Plan:
    tests: int

PLAN = Plan(3)

def helper(x):
    return x + 1

def task(x, most=4):
    return {"y": [helper(x) * SETTINGS["rate"] for _ in range(most)], "z": TABLE.sum() + PLAN.tests}
"""


def of(text):
    names = {"__name__": "__main__"}
    exec(text, names)
    return digest_of_task(names["task"])


CHANGES = [
    ("x + 1", "x - 1"),
    ('"rate": 0.5', '"rate": 0.25'),
    ("(1, 2)", "(1, 3)"),
    ("arange(3)", "arange(4)"),
    ("Plan(3)", "Plan(4)"),
    ("most=4", "most=5"),
    ('"z"', '"w"'),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_change_of_code_or_settings_is_seen(old, new):
    assert old in BEFORE
    assert of(BEFORE.replace(old, new)) != of(BEFORE)


def test_what_the_task_does_not_use_is_no_part_of_it():
    assert of("# why\n\n" + BEFORE + "\nOTHER = 3\n") == of(BEFORE)


def test_every_process_finds_the_same():
    text = "KINDS = {'a', 'b', 'c', 'd'}\ndef task(x):\n    return {'y': x in {'p', 'q'} | KINDS}\n"
    code = (
        f"from dpcgd_book.results.digests import digest_of_task\n{text}print(digest_of_task(task))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert found == {of(text) + "\n"}


def twice(x, factor):
    return {"y": twice(x - 1, factor) if x else factor}


@cache
def kept(x):
    return {"y": twice(x, 2)}


def test_partials_and_decorated_functions_have_code_and_settings():
    different = [partial(twice, factor=2), partial(twice, factor=3), twice, kept, print]
    assert len({digest_of_task(task) for task in different}) == len(different)
    assert digest_of_task(partial(twice, factor=2)) == digest_of_task(different[0])


def test_a_digest_of_files_hangs_on_names_contents_and_facts_alone(tmp_path):
    for root in ("one", "two"):
        (tmp_path / root / "__pycache__").mkdir(parents=True)
        (tmp_path / root / "a.py").write_text("1")
        (tmp_path / root / "__pycache__" / root).write_text(root)
    first, second = (digest_of_files(["."], "fact", root=tmp_path / n) for n in ("one", "two"))
    assert first == second
    (tmp_path / "two" / "a.py").rename(tmp_path / "two" / "b.py")
    others = [
        digest_of_files(["."], "fact", root=tmp_path / "two"),
        digest_of_files(["."], root=tmp_path / "one"),
    ]
    assert len({first, *others}) == 3


def test_the_package_without_its_pictures():
    names = {path.name for path in digests._files(digests.TOOLS)}
    assert {"pc_search.py", "larger_networks.py", "stored.py"} <= names
    assert not {"style.py", "charts.py", "plots_01.py"} & names
    assert digest_of_package() == digest_of_package.__wrapped__()
