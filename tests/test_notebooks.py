"""Every chapter runs in its quick profile and still says what it said."""

import itertools
import json
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import chapters  # noqa: E402
import golden  # noqa: E402

NAMES = [path.stem for path in chapters.chapters()]
SECTIONS = [
    "What you will be able to do",
    "Setting",
    "Claim",
    "Implementation",
    "Check the claim",
    "Experiment",
    "What breaks",
    "Fork me",
    "Exercises",
]


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chapters")
    outcomes = list(chapters.execute_all(folder / "executed", folder / "results", "quick"))
    print(chapters.table(outcomes))
    return folder / "results", {outcome.chapter: outcome for outcome in outcomes}


@pytest.mark.parametrize("name", NAMES)
def test_chapter_runs(executed, name):
    _, outcomes = executed
    assert outcomes[name].error is None, outcomes[name].error


@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_golden_ones(executed, name):
    results, _ = executed
    found = json.loads((results / f"{name}.json").read_text())
    expected = json.loads((golden.GOLDEN / f"{name}.json").read_text())
    assert golden.moved(expected, found) == []


@pytest.mark.parametrize("name", NAMES)
def test_chapter_is_stored_without_outputs_and_in_the_fixed_skeleton(name):
    book = nbformat.read(chapters.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert max(len(cell.source.splitlines()) for cell in code) <= 17
    headings = [
        line[3:]
        for cell in book.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    at = [next(i for i, h in enumerate(headings) if h.startswith(s)) for s in SECTIONS]
    assert at == sorted(at)


@pytest.mark.parametrize("name", NAMES)
def test_prose_stands_before_and_after_every_code_cell(name):
    book = nbformat.read(chapters.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    kinds = [cell.cell_type for cell in book.cells]
    assert ("code", "code") not in itertools.pairwise(kinds)
    assert kinds[0] == kinds[-1] == "markdown"


def test_the_table_of_contents_lists_every_chapter():
    toc = (ROOT / "_toc.yml").read_text()
    assert [name for name in NAMES if f"notebooks/{name}" not in toc] == []


def test_a_failing_chapter_is_reported_with_its_cell_and_error(tmp_path):
    cells = [
        nbformat.v4.new_code_cell('profile = "quick"', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("1 / 0"),
    ]
    broken = tmp_path / "99_broken.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), broken)
    (tmp_path / "executed").mkdir()
    outcome = chapters._execute(broken, tmp_path / "executed", tmp_path, "quick")
    assert outcome.result == "FAILED"
    assert "99_broken, cell 2: ZeroDivisionError" in outcome.error


def test_what_moved_is_told():
    old = {"a": {"value": {"x": 1.0}}, "b": {"value": 2, "tolerance": 0.5}, "gone": {"value": 0}}
    assert golden.moved(old, {"a": {"x": 1.1}, "b": 2.2, "new": 1}) == [
        "a.x: 1.0 -> 1.1",
        "gone: no longer recorded",
        "new: not in the golden file",
    ]
