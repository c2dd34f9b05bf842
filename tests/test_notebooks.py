"""Every chapter runs in its quick profile and still says what it said."""

import itertools
import json

import pytest

nbformat = pytest.importorskip("nbformat", reason="it is in the book extra, as papermill is")

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


@pytest.mark.parametrize("name", NAMES)
def test_chapter_runs(executed, name):
    assert executed[name].error is None, executed[name].error


@pytest.mark.parametrize("name", NAMES)
def test_results_are_the_golden_ones(executed, name):
    assert executed[name].error is None, "the chapter failed"
    found = json.loads((chapters.home("quick").results / f"{name}.json").read_text())
    assert golden.off(golden.of(name), found) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_value_is_exact_or_says_how_far_it_may_move(name):
    for result, entry in golden.of(name).items():
        assert entry.keys() in ({"value", "exact"}, {"value", "tolerance", "why"}), result
        assert len(entry.get("exact", entry.get("why"))) > 10, result
        allowed = entry.get("tolerance", 1.0)
        several = allowed.values() if isinstance(allowed, dict) else [allowed]
        assert all(golden.EXACT < size <= 1 for size in several), result


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
    toc = (chapters.ROOT / "_toc.yml").read_text()
    assert [name for name in NAMES if f"notebooks/{name}" not in toc] == []


def write_chapter(path, code):
    cells = [
        nbformat.v4.new_code_cell('profile = "quick"', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(code),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


def test_a_failing_chapter_is_reported_with_its_cell_and_error(tmp_path):
    broken = tmp_path / "99_broken.ipynb"
    write_chapter(broken, "1 / 0")
    at = chapters.Home(tmp_path / "home")
    (outcome,) = chapters.execute_all(at, "quick", [broken])
    assert outcome.result == "FAILED"
    assert "99_broken, cell 2: ZeroDivisionError" in outcome.error
    assert not at.stamp(broken).exists()


def test_a_chapter_is_executed_once_for_the_same_contents(tmp_path):
    at, chapter = chapters.Home(tmp_path / "home"), tmp_path / "98_counts.ipynb"

    def write(text):
        lines = ["import os, pathlib", 'folder = pathlib.Path(os.environ["DPCGD_RESULTS"])']
        lines += ['file = folder / "98_counts.json"', f"file.write_text({text!r})"]
        write_chapter(chapter, "\n".join(lines))

    def result(**how):
        (outcome,) = chapters.execute_all(at, "quick", [chapter], **how)
        assert outcome.error is None, outcome.error
        return outcome.result

    write("1")
    assert [result(), result()] == ["ok", "reused"]
    assert result(extra={"OPENBLAS_CORETYPE": "Generic"}) == "ok"
    write("2")
    assert [result(extra={}), result()] == ["ok", "reused"]
    assert at.result(chapter).read_text() == "2"
    at.result(chapter).unlink()
    assert result() == "ok"


def test_what_moved_is_told():
    old = {"a": {"value": {"x": 1.0}}, "b": {"value": 2, "tolerance": 0.5}, "gone": {"value": 0}}
    lines = ["a.x: 1.0 -> 1.1", "gone: no longer recorded", "new: not in the golden file"]
    new = {"a": {"x": 1.1}, "b": 2.2, "new": 1}
    assert golden.off(old, new) == lines
    assert golden.moved(old, new) == sorted([*lines, "b: 2 -> 2.2"])


def test_a_tolerance_may_differ_within_a_result():
    allowed = {"rough": 0.1, "otherwise": 1e-9}
    old = {"F1": {"value": {"0.1": {"fine": 1.0, "rough": 1.0}}, "tolerance": allowed}}
    assert golden.off(old, {"F1": {"0.1": {"fine": 1.0, "rough": 1.05}}}) == []
    assert golden.off(old, {"F1": {"0.1": {"fine": 1.05, "rough": 1.2}}}) == [
        "F1.0.1.fine: 1.0 -> 1.05",
        "F1.0.1.rough: 1.0 -> 1.2",
    ]


def test_chapters_are_named_by_how_they_begin():
    assert [path.stem[:2] for path in chapters.chapters("06,07")] == ["06", "07"]
    assert len(chapters.chapters("")) == len(NAMES)
    with pytest.raises(SystemExit, match="no chapter begins with '99'; there are 01_"):
        chapters.chapters("99")
